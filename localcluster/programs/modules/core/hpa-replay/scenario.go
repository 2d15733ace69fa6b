package main

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// scenario is one HPA's life: what the controller is given, and when. Times are in seconds from the start,
// which is 2000-01-01T00:00:00Z.
type scenario struct {
	Name     string                                `json:"name"`
	HPA      autoscalingv2.HorizontalPodAutoscaler `json:"hpa"`
	Settings settings                              `json:"settings"`
	// Syncs is how many syncs are replayed: at syncPeriod, 2 × syncPeriod, …
	Syncs int    `json:"syncs"`
	Steps []step `json:"steps"`
}

// settings are flags of kube-controller-manager; durations in seconds.
type settings struct {
	SyncPeriod              float64 `json:"syncPeriod"`
	Tolerance               float64 `json:"tolerance"`
	DownscaleStabilization  float64 `json:"downscaleStabilization"`
	CPUInitializationPeriod float64 `json:"cpuInitializationPeriod"`
	InitialReadinessDelay   float64 `json:"initialReadinessDelay"`
}

// step is a change of the cluster just before the first sync at or after At; what it does not name stays.
type step struct {
	At    float64                                    `json:"at"`
	Spec  *autoscalingv2.HorizontalPodAutoscalerSpec `json:"spec"`
	Scale *scaleStep                                 `json:"scale"`
	Pods  *[]corev1.Pod                              `json:"pods"`
	// Follow: of Pods only the first spec.replicas exist, status.replicas counts them, and nothing is measured of
	// the others.
	Follow   *bool     `json:"follow"`
	Readings *readings `json:"readings"`
}

type scaleStep struct {
	Replicas *int32  `json:"replicas"`
	Current  *int32  `json:"current"`
	Selector *string `json:"selector"`
}

// readings are what the metrics client answers. A metric that is not listed has no answer.
type readings struct {
	Resource []podReadings    `json:"resource"`
	Pods     []podReadings    `json:"pods"`
	Object   []objectReading  `json:"object"`
	External []externalValues `json:"external"`
}

// podReadings are one metric's values by pod name: milli-units, age and window in milliseconds.
type podReadings struct {
	Name      string `json:"name"`
	Container string `json:"container"`
	Selector  string `json:"selector"`
	Error     string `json:"error"`
	// Share, where not 0, is a total that the pods of Values share equally, rounded down; their own values don't count.
	Share  int64               `json:"share"`
	Values map[string][3]int64 `json:"values"`
}

// objectReading is an object's value in milli-units; Described is `kind/name`.
type objectReading struct {
	Name      string `json:"name"`
	Selector  string `json:"selector"`
	Described string `json:"described"`
	Error     string `json:"error"`
	Value     int64  `json:"value"`
}

// externalValues are an external metric's values in milli-units.
type externalValues struct {
	Name     string  `json:"name"`
	Selector string  `json:"selector"`
	Error    string  `json:"error"`
	Values   []int64 `json:"values"`
}

// result is what the controller did in a scenario.
type result struct {
	Name  string `json:"name"`
	Syncs []sync `json:"syncs"`
}

// sync is what one sync left behind.
type sync struct {
	At float64 `json:"at"`
	// Spec is the HPA's spec after the API's defaulting, where it is new.
	Spec   *autoscalingv2.HorizontalPodAutoscalerSpec  `json:"spec,omitempty"`
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
	// Written is the count that was written to /scale; absent where nothing was written.
	Written *int32   `json:"written,omitempty"`
	Events  []event  `json:"events"`
	Errors  []string `json:"errors"`
}

type event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func seconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Second))
}
