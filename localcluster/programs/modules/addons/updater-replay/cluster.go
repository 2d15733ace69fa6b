package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	admission "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource"
	podhandler "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/patch"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	vpahandler "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/vpa"
	vpatypes "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpaclientset "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
	updaterconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/inplace"
	updaterlogic "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/priority"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	vpautil "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core"
	coreinformersv1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

const replicaSet = "web-1"

var podLabels = labels.Set{"app": "web"}

// cluster is what updater and webhook see of a scenario, and what was done to its pods in the present loop.
type cluster struct {
	context.Context
	began    time.Time
	vpa      *vpatypes.VerticalPodAutoscaler
	server   *vpaServer
	kube     *fake.Clientset
	factory  informers.SharedInformerFactory
	provider recommendation.Provider
	limits   limitrange.LimitRangeCalculator
	pods     []*corev1.Pod
	refused  map[string]bool
	resized  []resized
	evicted  []string
}

func newCluster(given *scenario) *cluster {
	c := &cluster{Context: context.Background(), vpa: given.VPA.DeepCopy()}
	c.server = newVPAServer(c.vpa)
	c.kube = fake.NewSimpleClientset()
	c.kube.PrependReactor("create", "pods", c.evict)
	c.kube.PrependReactor("patch", "pods", c.patch)
	c.factory = informers.NewSharedInformerFactory(c.kube, 0) // its stores are filled by hand
	var err error
	c.limits, err = limitrange.NewLimitsRangeCalculator(c.factory)
	must(err)
	c.provider = recommendation.NewProvider(c.limits, vpautil.NewCappingRecommendationProcessor(c.limits))
	return c
}

func (c *cluster) clientset() *vpaclientset.Clientset {
	return vpaclientset.NewForConfigOrDie(&rest.Config{Host: "http://vpa", Transport: c.server, QPS: -1})
}

// newUpdater wires the updater as its main does it.
func (c *cluster) newUpdater(flags *updaterconfig.UpdaterConfig) updaterlogic.Updater {
	made, err := updaterlogic.NewUpdater(
		c.kube, c.clientset(), c.factory, podInformers{lister: c},
		flags.MinReplicas, flags.EvictionRateLimit, flags.EvictionRateBurst, flags.EvictionToleranceFraction,
		false, // no webhook of which a Lease would say that it is alive
		flags.InPlaceSkipDisruptionBudget, flags.DefaultUpdateThreshold, flags.PodLifetimeUpdateThreshold,
		flags.EvictAfterOOMThreshold, flags.AdmissionControllerStatusLeaseName, metav1.NamespaceSystem,
		flags.AdmissionControllerStatusLeaseTimeout,
		vpautil.NewCappingRecommendationProcessor(c.limits), priority.NewScalingDirectionPodEvictionAdmission(),
		c, c, priority.NewProcessor(), metav1.NamespaceAll, nil,
		[]patch.Calculator{
			inplace.NewResourceInPlaceUpdatesCalculator(c.provider),
			inplace.NewInPlaceUpdatedCalculator(),
			inplace.NewUnboostAnnotationCalculator(),
		},
	)
	must(err)
	return made
}

// newWebhook wires the handler of new pods as the admission controller's main does it.
func (c *cluster) newWebhook() admission.Handler {
	_, vpas := vpautil.NewVpasListerWithIndexer(c.clientset(), make(chan struct{}), metav1.NamespaceAll)
	return podhandler.NewResourceHandler(
		podhandler.NewDefaultPreProcessor(), vpahandler.NewMatcher(vpas, c, c),
		[]patch.Calculator{
			patch.NewResourceUpdatesCalculator(c.provider, resource.QuantityValue{}),
			patch.NewObservedContainersCalculator(),
		},
	)
}

// admitted has the containers of a new pod after the webhook.
func (c *cluster) admitted(webhook admission.Handler, template []container) []corev1.Container {
	raw, err := json.Marshal(c.made(&pod{Name: "new", Containers: template}))
	must(err)
	patches, _, failed := webhook.GetPatches(c, &admissionv1.AdmissionRequest{
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: c.vpa.Namespace,
		Object: runtime.RawExtension{Raw: raw},
	})
	must(failed.ToAggregate())
	encoded, err := json.Marshal(patches)
	must(err)
	return patched(raw, encoded)
}

// patched has the containers of a pod after a JSON patch.
func patched(pod, patches []byte) []corev1.Container {
	decoded, err := jsonpatch.DecodePatch(patches)
	must(err)
	changed, err := decoded.Apply(pod)
	must(err)
	var made corev1.Pod
	must(json.Unmarshal(changed, &made))
	return made.Spec.Containers
}

func (c *cluster) time(seconds float64) time.Time {
	return c.began.Add(time.Duration(seconds * float64(time.Second)))
}

// update makes the cluster that of this step.
func (c *cluster) update(now *step) {
	c.pods, c.resized, c.evicted, c.refused = nil, nil, nil, map[string]bool{}
	for i := range now.Pods {
		one := c.made(&now.Pods[i])
		c.refused[one.Name] = now.Pods[i].Refused
		if one.Spec.NodeName != "" { // the field selector of the updater's main
			c.pods = append(c.pods, one)
		}
	}
	meta := metav1.ObjectMeta{Namespace: c.vpa.Namespace, Name: replicaSet}
	must(c.factory.Apps().V1().ReplicaSets().Informer().GetStore().Add(
		&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &now.Replicas}},
	))
	if now.Recommendation != nil {
		c.vpa = c.vpa.DeepCopy()
		c.vpa.Status.Recommendation = now.Recommendation
		c.server.update(c.vpa)
	}
}

// made is the pod as the API server has it.
func (c *cluster) made(given *pod) *corev1.Pod {
	isController := true
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.vpa.Namespace, Name: given.Name, UID: types.UID(given.Name), Labels: podLabels,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, Controller: &isController},
			},
		},
		Spec: corev1.PodSpec{NodeName: given.Node},
	}
	if given.Node != "" {
		made.Status.Phase = corev1.PodRunning
	}
	if given.Started != nil {
		made.Status.StartTime = c.stamp(*given.Started)
	}
	if given.Deleted != nil {
		made.DeletionTimestamp = c.stamp(*given.Deleted)
	}
	desired := given.Desired
	if desired == nil {
		desired = given.Containers
	}
	for i := range desired {
		made.Spec.Containers = append(made.Spec.Containers, corev1.Container{
			Name: desired[i].Name, Resources: desired[i].Resources,
		})
	}
	if given.Node != "" {
		for i := range given.Containers {
			made.Status.ContainerStatuses = append(made.Status.ContainerStatuses, c.status(&given.Containers[i]))
		}
	}
	if given.Resize != "" {
		made.Status.Conditions = append(made.Status.Conditions, resizeCondition(given.Resize))
	}
	return made
}

func (c *cluster) status(given *container) corev1.ContainerStatus {
	made := corev1.ContainerStatus{Name: given.Name, Resources: &given.Resources}
	if given.OOM != nil {
		made.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", StartedAt: *c.stamp(given.OOM[0]), FinishedAt: *c.stamp(given.OOM[1]),
		}
	}
	return made
}

func (c *cluster) stamp(seconds float64) *metav1.Time { return &metav1.Time{Time: c.time(seconds)} }

func resizeCondition(state string) corev1.PodCondition {
	made := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: state}
	if state == corev1.PodReasonError {
		made.Type = corev1.PodResizeInProgress
	}
	return made
}

// evict is the eviction API.
func (c *cluster) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
	c.evicted = append(c.evicted, eviction.Name)
	return true, nil, nil
}

// patch is the resize subresource of pods; patches of annotations do nothing.
func (c *cluster) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	given := action.(clienttesting.PatchAction)
	if given.GetSubresource() != "resize" {
		return true, nil, nil
	}
	if c.refused[given.GetName()] {
		return true, nil, errors.New("the API server refuses it")
	}
	for _, one := range c.pods {
		if one.Name == given.GetName() {
			raw, err := json.Marshal(one)
			must(err)
			c.resized = append(c.resized, resized{Pod: one.Name, Containers: patched(raw, given.GetPatch())})
		}
	}
	return true, nil, nil
}

// The rest are the listers and fetchers that updater and webhook need.

// List is that of all pods, in the scenario's order.
func (c *cluster) List(labels.Selector) ([]*corev1.Pod, error) { return c.pods, nil }

// Pods is never called.
func (c *cluster) Pods(string) listersv1.PodNamespaceLister {
	panic("pods are listed over all namespaces")
}

// podInformers is a factory of informers of which the updater uses the lister of pods only.
type podInformers struct {
	informers.SharedInformerFactory
	lister listersv1.PodLister
}

func (f podInformers) Core() coreinformers.Interface { return podGroup{lister: f.lister} }

type podGroup struct {
	coreinformersv1.Interface
	lister listersv1.PodLister
}

func (g podGroup) V1() coreinformersv1.Interface { return g }

func (g podGroup) Pods() coreinformersv1.TypedPodInformer { return podInformer{lister: g.lister} }

type podInformer struct {
	coreinformersv1.TypedPodInformer
	lister listersv1.PodLister
}

func (i podInformer) Lister() listersv1.PodLister { return i.lister }

// Fetch says which pods the VPA's workload selects.
func (c *cluster) Fetch(context.Context, *vpatypes.VerticalPodAutoscaler) (labels.Selector, error) {
	return labels.SelectorFromSet(podLabels), nil
}

// FindTopMostWellKnownOrScalable says that all pods are of the VPA's target.
func (c *cluster) FindTopMostWellKnownOrScalable(
	context.Context, *controllerfetcher.ControllerKeyWithAPIVersion,
) (*controllerfetcher.ControllerKeyWithAPIVersion, error) {
	target := c.vpa.Spec.TargetRef
	return &controllerfetcher.ControllerKeyWithAPIVersion{
		ControllerKey: controllerfetcher.ControllerKey{
			Namespace: c.vpa.Namespace, Kind: target.Kind, Name: target.Name,
		},
		ApiVersion: target.APIVersion,
	}, nil
}
