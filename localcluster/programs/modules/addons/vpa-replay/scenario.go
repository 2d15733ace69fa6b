package main

import (
	"encoding/json"

	vpatypes "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

// scenario is what one VPA's recommender gets, and when it is asked. Times are in seconds from the start, which
// is 2000-01-01T00:00:00Z.
type scenario struct {
	Name string                         `json:"name"`
	VPA  vpatypes.VerticalPodAutoscaler `json:"vpa"`
	// Flags are fields of the recommender's RecommenderConfig; durations in nanoseconds.
	Flags json.RawMessage `json:"flags"`
	Steps []step          `json:"steps"`
}

// step is one thing that happens. Steps are in order of time.
type step struct {
	At     float64 `json:"at"`
	Sample *sample `json:"sample"`
	OOM    *oom    `json:"oom"`
	// Gone is a pod that is no more.
	Gone string                              `json:"gone"`
	Spec *vpatypes.VerticalPodAutoscalerSpec `json:"spec"`
	// Recommend: the recommender's loop comes round.
	Recommend bool `json:"recommend"`
	// Restart: the recommender writes its checkpoints, ends, and another one starts with them.
	Restart bool `json:"restart"`
}

// sample is a container's usage: cores and bytes; absent where it is not measured. A new pod appears with it.
type sample struct {
	Pod           string   `json:"pod"`
	Container     string   `json:"container"`
	CPU           *float64 `json:"cpu"`
	Memory        *float64 `json:"memory"`
	CPURequest    float64  `json:"cpuRequest"`
	MemoryRequest float64  `json:"memoryRequest"`
}

// oom is a container's end for want of memory, with its request in bytes; it came that many seconds ago.
type oom struct {
	Pod       string  `json:"pod"`
	Container string  `json:"container"`
	Memory    float64 `json:"memory"`
	Ago       float64 `json:"ago"`
}

// result is what the recommender answered in a scenario.
type result struct {
	Name    string   `json:"name"`
	Answers []answer `json:"answers"`
}

// answer is the VPA's status after a loop, or the checkpoints of a restart by container.
type answer struct {
	At          float64                                                   `json:"at"`
	Status      *vpatypes.VerticalPodAutoscalerStatus                     `json:"status,omitempty"`
	Checkpoints map[string]vpatypes.VerticalPodAutoscalerCheckpointStatus `json:"checkpoints,omitempty"`
}
