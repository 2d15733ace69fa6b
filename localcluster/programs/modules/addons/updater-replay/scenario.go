package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	vpatypes "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

// scenario is one VPA, the pods that its updater sees at each of its loops, and the pod that is created after it.
// Times are in seconds from the scenario's start; those before it are negative.
type scenario struct {
	Name string                         `json:"name"`
	VPA  vpatypes.VerticalPodAutoscaler `json:"vpa"`
	// Flags are fields of the updater's UpdaterConfig; durations in nanoseconds.
	Flags json.RawMessage `json:"flags"`
	// Template has the containers of a new pod, before the webhook changes them.
	Template []container `json:"template"`
	Steps    []step      `json:"steps"`
}

// step is one loop of the updater. Steps are in order of time.
type step struct {
	At       float64 `json:"at"`
	Replicas int32   `json:"replicas"`
	Pods     []pod   `json:"pods"`
	// Recommendation is the VPA's from now on, if there is one.
	Recommendation *vpatypes.RecommendedPodResources `json:"recommendation"`
}

// pod is a pod as the API server has it.
type pod struct {
	Name       string      `json:"name"`
	Node       string      `json:"node"`
	Started    *float64    `json:"started"`
	Deleted    *float64    `json:"deleted"`
	Containers []container `json:"containers"`
	// Resize is the state of a resize that waits: Deferred, Infeasible or Error; the spec of such a pod says Desired.
	Resize  string      `json:"resize"`
	Desired []container `json:"desired"`
	// Refused: the API server refuses to resize the pod.
	Refused bool `json:"refused"`
}

// container is a container with its resources, and the beginning and the end of a run that ended in an OOM.
type container struct {
	Name      string                      `json:"name"`
	Resources corev1.ResourceRequirements `json:"resources"`
	OOM       []float64                   `json:"oom"`
}

// result is what updater and webhook did in a scenario.
type result struct {
	Name    string   `json:"name"`
	Answers []answer `json:"answers"`
}

// answer is what one loop did to which pods, in order, and the containers that the webhook gives a new pod.
type answer struct {
	At       float64            `json:"at"`
	Resized  []resized          `json:"resized"`
	Evicted  []string           `json:"evicted"`
	Admitted []corev1.Container `json:"admitted"`
}

// resized is a pod that was resized, with the containers of its new spec.
type resized struct {
	Pod        string             `json:"pod"`
	Containers []corev1.Container `json:"containers"`
}
