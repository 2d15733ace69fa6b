// vpa-replay runs the recommender of the Vertical Pod Autoscaler, as it is in its module, through scenarios in
// virtual time: a JSON list of scenarios on stdin, a JSON list of results on stdout.
//
// Time is that of testing/synctest, which needs a *testing.T; so main starts itself as a test.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/klog/v2"
)

func main() {
	everything := func(string, string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{{Name: "replay", F: replayAll}}, nil, nil)
}

func replayAll(t *testing.T) {
	klog.SetLogger(logr.Discard()) // klog's own buffers would be flushed from inside a scenario's bubble
	var scenarios []scenario
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&scenarios); err != nil {
		t.Fatal(err)
	}
	results := make([]result, len(scenarios))
	for i := range scenarios {
		synctest.Test(t, func(t *testing.T) { results[i] = replay(t.Context(), &scenarios[i]) })
	}
	output := bufio.NewWriter(os.Stdout)
	must(json.NewEncoder(output).Encode(results))
	must(output.Flush())
	os.Exit(0) // before the test framework says PASS
}

func replay(ctx context.Context, given *scenario) result {
	flags := config.DefaultRecommenderConfig()
	if given.Flags != nil {
		must(json.Unmarshal(given.Flags, flags))
	}
	r := newRecommender(&given.VPA, flags)
	began := time.Now()
	done := result{Name: given.Name}
	for _, now := range given.Steps {
		at := began.Add(time.Duration(now.At * float64(time.Second)))
		time.Sleep(time.Until(at))
		if now.Sample != nil {
			r.sample(at, now.Sample)
		}
		if now.OOM != nil {
			r.oom(at, now.OOM)
		}
		if now.Gone != "" {
			r.gone(now.Gone)
		}
		if now.Spec != nil {
			r.vpa = r.vpa.DeepCopy()
			r.vpa.Spec = *now.Spec
		}
		if now.Recommend {
			done.Answers = append(done.Answers, answer{At: now.At, Status: r.loop(ctx)})
		}
		if now.Restart {
			saved := r.save(ctx)
			done.Answers = append(done.Answers, answer{At: now.At, Checkpoints: saved})
			r = newRecommender(r.vpa, flags)
			r.restore(saved)
		}
	}
	return done
}
