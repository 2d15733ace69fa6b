// hpa-replay runs the HPA controller of kube-controller-manager, as it is in the module k8s.io/kubernetes, through
// scenarios in virtual time: a JSON list of scenarios on stdin, a JSON list of results on stdout.
//
// Only what surrounds the controller is ours: caches, clients and metrics that answer from the scenario. Time is
// that of testing/synctest, which needs a *testing.T; so main starts itself as a test.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
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
	c := newCluster(&given.HPA)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, _ ...interface{}) {
			c.errors = append(c.errors, fmt.Sprintf("%s%v", message, err))
		},
	}
	ctx, stop := context.WithCancel(klog.NewContext(ctx, logr.New(logger{c})))
	period := seconds(given.Settings.SyncPeriod)
	controller := podautoscaler.NewHorizontalController(
		ctx,
		eventClient{},
		scaleClient{cluster: c},
		hpaClient{cluster: c},
		mapper(),
		metrics{c},
		hpaInformer{c},
		podInformer{c},
		period,
		seconds(given.Settings.DownscaleStabilization),
		given.Settings.Tolerance,
		seconds(given.Settings.CPUInitializationPeriod),
		seconds(given.Settings.InitialReadinessDelay),
	)
	began := time.Now()
	go controller.Run(ctx, 1)
	time.AfterFunc(period, func() { c.handler.OnAdd(c.hpa(), true) }) // syncs it then, and every period from then on
	done := result{Name: given.Name, Syncs: make([]sync, 0, given.Syncs)}
	steps := given.Steps
	slices.SortStableFunc(steps, func(a, b step) int { return int(seconds(a.At) - seconds(b.At)) })
	for count := 1; count <= given.Syncs; count++ {
		at := time.Duration(count) * period
		time.Sleep(time.Until(began.Add(at - time.Millisecond)))
		for len(steps) > 0 && seconds(steps[0].At) <= at {
			c.apply(steps[0])
			steps = steps[1:]
		}
		c.settle()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		done.Syncs = append(done.Syncs, c.take(at))
	}
	stop()
	return done
}

// take hands out what the last sync left behind.
func (c *cluster) take(at time.Duration) sync {
	taken := sync{
		At:      at.Seconds(),
		Spec:    c.spec,
		Status:  *c.hpa().Status.DeepCopy(),
		Written: c.written,
		Events:  append([]event{}, c.events...),
		Errors:  append([]string{}, c.errors...),
	}
	c.spec, c.written, c.events, c.errors = nil, nil, nil, nil
	return taken
}

// logger catches the controller's events on their way into its log, where they are complete: the event recorder's
// other end drops and merges what is too much.
type logger struct{ *cluster }

func (l logger) Init(logr.RuntimeInfo)                  {}
func (l logger) Enabled(int) bool                       { return true }
func (l logger) Error(error, string, ...interface{})    {}
func (l logger) WithValues(...interface{}) logr.LogSink { return l }
func (l logger) WithName(string) logr.LogSink           { return l }
func (l logger) Info(_ int, text string, pairs ...interface{}) {
	if text != "Event occurred" {
		return
	}
	values := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, isText := pairs[i+1].(string); isText {
			values[pairs[i].(string)] = value
		}
	}
	l.events = append(l.events, event{values["type"], values["reason"], values["message"]})
}
