// A service whose requests cost something: each uses a stated amount of CPU, by the clock of its thread, and its memory is
// kept for a while after it was answered, as that of sessions is. At most two are worked on at a time, the others wait in
// order, so that too many of them are slow, and not refused. `/ready` answers without work, and `/limits` with the limits
// that Go's runtime sets itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "", "address and port")
	cpu := flag.Duration("cpu", 5*time.Millisecond, "CPU time of a request")
	base := flag.Int("base", 16, "MiB of memory in any case")
	memory := flag.Int("memory", 256, "KiB of memory of a request")
	keep := flag.Duration("keep", 5*time.Second, "how long a request's memory is kept after the answer")
	flag.Parse()

	hold(*base << 20)
	working := make(chan struct{}, 2)
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/limits", func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(response, `{"cpus": %d, "memory": %d}`, runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1))
	})
	http.HandleFunc("/", func(_ http.ResponseWriter, request *http.Request) {
		held := hold(*memory << 10)
		defer time.AfterFunc(*keep, func() { syscall.Munmap(held) })
		select {
		case working <- struct{}{}:
			burn(*cpu)
			<-working
		case <-request.Context().Done(): // the client waits no longer
		}
	})
	server := &http.Server{Addr: *listen}
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Fatal(err)
		}
	}()
	<-end.Done()
	server.Shutdown(context.Background()) // answers the rest; the kubelet does not wait for ever
}

// hold takes memory from the kernel, not from Go's heap: it goes back as soon as it is given back.
func hold(size int) []byte {
	held, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	return held
}

// burn uses so much CPU, however long that takes.
func burn(wanted time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var sum uint64
	for end := used() + wanted; used() < end; {
		for i := range 20000 {
			sum += uint64(i)
		}
	}
	runtime.KeepAlive(sum)
}

// used is the CPU time of this thread.
func used() time.Duration {
	var at syscall.Rusage
	syscall.Getrusage(1, &at) // RUSAGE_THREAD
	return time.Duration(at.Utime.Nano() + at.Stime.Nano())
}
