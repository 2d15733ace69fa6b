// updater-replay runs the updater and the webhook of the Vertical Pod Autoscaler, as they are in its module, through
// scenarios in virtual time: a JSON list of scenarios on stdin, a JSON list of results on stdout.
//
// Time is that of testing/synctest, which needs a *testing.T; so main starts itself as a test. All scenarios share one
// bubble, one after the other: the updater's caches can't be stopped, and synctest would wait for them.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	updaterconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/config"
	"k8s.io/klog/v2"
)

func main() {
	everything := func(string, string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{{Name: "replay", F: replayAll}}, nil, nil)
}

func replayAll(t *testing.T) {
	klog.SetLogger(logr.Discard()) // klog's own buffers would be flushed from inside the bubble
	var scenarios []scenario
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&scenarios); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(*testing.T) {
		results := make([]result, len(scenarios))
		for i := range scenarios {
			results[i] = replay(&scenarios[i])
		}
		output := bufio.NewWriter(os.Stdout)
		must(json.NewEncoder(output).Encode(results))
		must(output.Flush())
		os.Exit(0) // before the test framework says PASS, and with the caches still running
	})
}

func replay(given *scenario) result {
	flags := updaterconfig.DefaultUpdaterConfig()
	if given.Flags != nil {
		must(json.Unmarshal(given.Flags, flags))
	}
	c := newCluster(given)
	updater, webhook := c.newUpdater(flags), c.newWebhook()
	c.began = time.Now() // some passed until the caches were filled
	done := result{Name: given.Name}
	for i := range given.Steps {
		now := &given.Steps[i]
		time.Sleep(time.Until(c.time(now.At)))
		c.update(now)
		updater.RunOnce(c)
		done.Answers = append(done.Answers, answer{
			At: now.At, Resized: c.resized, Evicted: c.evicted, Admitted: c.admitted(webhook, given.Template),
		})
	}
	return done
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
