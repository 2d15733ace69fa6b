package main

import (
	"context"
	"encoding/json"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	vpatypes "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpaclient "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned/typed/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/checkpoint"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
)

// gcInterval is that of routines.NewRecommenderController.
const gcInterval = time.Hour

var podLabels = labels.Set{"app": "web"}

// recommender is the VPA recommender's state and loop without its caches and clients: what `main` of the real one
// wires, wired to nothing.
type recommender struct {
	routines.Recommender
	cluster     model.ClusterState
	vpa         *vpatypes.VerticalPodAutoscaler
	written     checkpoints
	checkpoints checkpoint.CheckpointWriter
}

func newRecommender(vpa *vpatypes.VerticalPodAutoscaler, flags *config.RecommenderConfig) *recommender {
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		flags.MemoryAggregationInterval,
		flags.MemoryAggregationIntervalCount,
		flags.MemoryHistogramDecayHalfLife,
		flags.CpuHistogramDecayHalfLife,
		flags.OOMBumpUpRatio,
		flags.OOMMinBumpUp,
	))
	cluster := model.NewClusterState(gcInterval)
	made := &recommender{cluster: cluster, vpa: vpa, written: checkpoints{}}
	made.checkpoints = checkpoint.NewCheckpointWriter(cluster, made)
	made.Recommender = routines.RecommenderFactory{
		ClusterState:                 cluster,
		ControllerFetcher:            made,
		VpaClient:                    made,
		PodResourceRecommender:       logic.CreatePodResourceRecommender(recommendation(flags)),
		RecommendationFormat:         format(flags),
		RecommendationPostProcessors: postProcessors(flags),
		UpdateWorkerCount:            1,
	}.Make()
	made.load()
	return made
}

func recommendation(flags *config.RecommenderConfig) logic.RecommendationConfig {
	return logic.RecommendationConfig{
		SafetyMarginFraction:       flags.SafetyMarginFraction,
		PodMinCPUMillicores:        flags.PodMinCPUMillicores,
		PodMinMemoryMb:             flags.PodMinMemoryMb,
		TargetCPUPercentile:        flags.TargetCPUPercentile,
		LowerBoundCPUPercentile:    flags.LowerBoundCPUPercentile,
		UpperBoundCPUPercentile:    flags.UpperBoundCPUPercentile,
		ConfidenceIntervalCPU:      flags.ConfidenceIntervalCPU,
		TargetMemoryPercentile:     flags.TargetMemoryPercentile,
		LowerBoundMemoryPercentile: flags.LowerBoundMemoryPercentile,
		UpperBoundMemoryPercentile: flags.UpperBoundMemoryPercentile,
		ConfidenceIntervalMemory:   flags.ConfidenceIntervalMemory,
	}
}

func format(flags *config.RecommenderConfig) logic.RecommendationFormat {
	return logic.RecommendationFormat{
		HumanizeMemory:     flags.HumanizeMemory,
		RoundCPUMillicores: flags.RoundCPUMillicores,
		RoundMemoryBytes:   flags.RoundMemoryBytes,
	}
}

func postProcessors(flags *config.RecommenderConfig) []routines.RecommendationPostProcessor {
	var made []routines.RecommendationPostProcessor
	if flags.PostProcessorCPUasInteger {
		made = append(made, &routines.IntegerCPUPostProcessor{})
	}
	most := corev1.ResourceList{}
	if !flags.MaxAllowedCPU.IsZero() {
		most[corev1.ResourceCPU] = flags.MaxAllowedCPU.Quantity
	}
	if !flags.MaxAllowedMemory.IsZero() {
		most[corev1.ResourceMemory] = flags.MaxAllowedMemory.Quantity
	}
	return append(made, routines.NewCappingRecommendationProcessor(most))
}

// load is what the recommender's loop begins with: the VPA object as it is now.
func (r *recommender) load() {
	must(r.cluster.AddOrUpdateVpa(r.vpa, labels.SelectorFromSet(podLabels)))
	r.cluster.SetObservedVPAs([]*vpatypes.VerticalPodAutoscaler{r.vpa})
}

func (r *recommender) inModel() *model.Vpa {
	return r.cluster.VPAs()[model.VpaID{Namespace: r.vpa.Namespace, VpaName: r.vpa.Name}]
}

// loop is one turn of the recommender's loop after the samples are in.
func (r *recommender) loop(ctx context.Context) *vpatypes.VerticalPodAutoscalerStatus {
	r.load()
	r.UpdateVPAs()
	r.cluster.RateLimitedGarbageCollectAggregateCollectionStates(ctx, time.Now(), r)
	return r.vpa.Status.DeepCopy()
}

// save is what the recommender writes for its successor.
func (r *recommender) save(ctx context.Context) checkpoints {
	r.checkpoints.StoreCheckpoints(ctx, 1)
	return r.written
}

// restore is what the cluster feeder does with checkpoints.
func (r *recommender) restore(saved checkpoints) {
	for container, status := range saved {
		state := model.NewAggregateContainerState()
		must(state.LoadFromCheckpoint(&status))
		r.inModel().ContainersInitialAggregateState[container] = state
	}
}

func (r *recommender) sample(at time.Time, given *sample) {
	pod := r.pod(given.Pod)
	container := model.ContainerID{PodID: pod, ContainerName: given.Container}
	r.cluster.AddOrUpdatePod(pod, podLabels, corev1.PodRunning)
	must(r.cluster.AddOrUpdateContainer(container, model.Resources{
		model.ResourceCPU:    model.CPUAmountFromCores(given.CPURequest),
		model.ResourceMemory: model.MemoryAmountFromBytes(given.MemoryRequest),
	}))
	// The metrics API has nanocores, of which the recommender's metrics client makes millicores as Quantity does it.
	if given.CPU != nil {
		usage := resource.NewScaledQuantity(int64(math.Round(*given.CPU*1e9)), resource.Nano)
		r.add(container, at, model.ResourceCPU, model.ResourceAmount(usage.MilliValue()))
	}
	if given.Memory != nil {
		r.add(container, at, model.ResourceMemory, model.ResourceAmount(*given.Memory))
	}
}

func (r *recommender) add(
	container model.ContainerID, at time.Time, of model.ResourceName, usage model.ResourceAmount,
) {
	// An error says that the sample was discarded, as the recommender's loop says in its log.
	_ = r.cluster.AddSample(&model.ContainerUsageSampleWithKey{
		ContainerUsageSample: model.ContainerUsageSample{MeasureStart: at, Usage: usage, Resource: of},
		Container:            container,
	})
}

func (r *recommender) oom(at time.Time, given *oom) {
	container := model.ContainerID{PodID: r.pod(given.Pod), ContainerName: given.Container}
	at = at.Add(-time.Duration(given.Ago * float64(time.Second)))
	_ = r.cluster.RecordOOM(container, at, model.MemoryAmountFromBytes(given.Memory))
}

func (r *recommender) gone(pod string) { r.cluster.DeletePod(r.pod(pod)) }

func (r *recommender) pod(name string) model.PodID {
	return model.PodID{Namespace: r.vpa.Namespace, PodName: name}
}

// The rest are the clients that the packages need.

// FindTopMostWellKnownOrScalable says that the workload exists.
func (r *recommender) FindTopMostWellKnownOrScalable(
	_ context.Context, controller *controllerfetcher.ControllerKeyWithAPIVersion,
) (*controllerfetcher.ControllerKeyWithAPIVersion, error) {
	return controller, nil
}

func (r *recommender) VerticalPodAutoscalers(string) vpaclient.VerticalPodAutoscalerInterface {
	return vpaWriter{recommender: r}
}

func (r *recommender) VerticalPodAutoscalerCheckpoints(
	string,
) vpaclient.VerticalPodAutoscalerCheckpointInterface {
	return checkpointWriter{recommender: r}
}

type vpaWriter struct {
	vpaclient.VerticalPodAutoscalerInterface
	*recommender
}

// Patch takes the patch that replaces a VPA's status.
func (w vpaWriter) Patch(
	_ context.Context, _ string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*vpatypes.VerticalPodAutoscaler, error) {
	var patches []struct {
		Value vpatypes.VerticalPodAutoscalerStatus `json:"value"`
	}
	must(json.Unmarshal(data, &patches))
	changed := w.vpa.DeepCopy()
	changed.Status = patches[0].Value
	w.vpa = changed
	return changed, nil
}

type checkpoints map[string]vpatypes.VerticalPodAutoscalerCheckpointStatus

type checkpointWriter struct {
	vpaclient.VerticalPodAutoscalerCheckpointInterface
	*recommender
}

func (w checkpointWriter) Patch(
	_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string,
) (*vpatypes.VerticalPodAutoscalerCheckpoint, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name) // so that it is created
}

func (w checkpointWriter) Create(
	_ context.Context, given *vpatypes.VerticalPodAutoscalerCheckpoint, _ metav1.CreateOptions,
) (*vpatypes.VerticalPodAutoscalerCheckpoint, error) {
	w.written[given.Spec.ContainerName] = given.Status
	return given, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
