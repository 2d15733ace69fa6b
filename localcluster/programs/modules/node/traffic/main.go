// Sends HTTP requests at a rate, whether or not earlier ones were answered, each to one of some addresses on loopback, at
// random as a Service does. Rate and addresses are in a file, `{"rate": 20, "addresses": ["127.101.0.2:8080"]}`, read ten
// times a second. Prints for each second, once all of its requests have ended, how many failed (an error, or no answer
// within the timeout) and the milliseconds of all others: `{"second": 1764338400, "failed": 0, "milliseconds": [5.2, 6.1]}`.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

type plan struct {
	Rate      float64  `json:"rate"`
	Addresses []string `json:"addresses"`
}

// second has the requests that began in it.
type second struct {
	Second       int64     `json:"second"`
	Failed       int       `json:"failed"`
	Milliseconds []float64 `json:"milliseconds"`
	pending      sync.WaitGroup
}

// results has the seconds that are not printed yet.
type results struct {
	sync.Mutex
	seconds map[int64]*second
}

func main() {
	file := flag.String("plan", "", "the file")
	timeout := flag.Duration("timeout", 2*time.Second, "how long to wait for an answer")
	flag.Parse()
	client := &http.Client{Timeout: *timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	found := &results{seconds: map[int64]*second{}}
	go found.print()
	chance := rand.New(rand.NewPCG(1, 2)) // the same requests each time
	var now plan
	var read time.Time
	for next := time.Now(); ; time.Sleep(time.Until(next)) {
		if time.Since(read) > 100*time.Millisecond {
			now, read = readPlan(*file, now), time.Now()
		}
		if now.Rate <= 0 {
			next = time.Now().Add(100 * time.Millisecond)
			continue
		}
		address := ""
		if len(now.Addresses) > 0 {
			address = now.Addresses[chance.IntN(len(now.Addresses))]
		}
		go found.send(client, address, found.begin())
		next = next.Add(time.Duration(chance.ExpFloat64() / now.Rate * float64(time.Second)))
	}
}

// begin counts a request that begins now.
func (r *results) begin() *second {
	r.Lock()
	defer r.Unlock()
	at := time.Now().Unix()
	if r.seconds[at] == nil {
		r.seconds[at] = &second{Second: at}
	}
	r.seconds[at].pending.Add(1)
	return r.seconds[at]
}

func (r *results) send(client *http.Client, address string, of *second) {
	defer of.pending.Done()
	began := time.Now()
	err := get(client, address)
	took := time.Since(began)
	r.Lock()
	defer r.Unlock()
	if err != nil {
		of.Failed++
	} else {
		of.Milliseconds = append(of.Milliseconds, float64(took.Microseconds())/1000)
	}
}

func (r *results) print() {
	to := json.NewEncoder(os.Stdout)
	for at := time.Now().Unix(); ; at++ {
		time.Sleep(time.Until(time.Unix(at+1, 0)))
		r.Lock()
		of := r.seconds[at]
		delete(r.seconds, at)
		r.Unlock()
		if of == nil {
			continue
		}
		of.pending.Wait()
		if err := to.Encode(of); err != nil {
			log.Fatal(err)
		}
	}
}

// readPlan has the plan of the file, or the one before while there is none.
func readPlan(file string, before plan) plan {
	text, err := os.ReadFile(file)
	if err != nil {
		return before
	}
	var found plan
	if err := json.Unmarshal(text, &found); err != nil {
		log.Fatal(err)
	}
	for _, address := range found.Addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			log.Fatalf("%s is not on loopback", address)
		}
	}
	return found
}

func get(client *http.Client, address string) error {
	if address == "" {
		return errors.New("no pod is ready")
	}
	answer, err := client.Get("http://" + address + "/")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
