package main

import (
	"context"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	hpadefaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
)

// cluster is all that the controller sees: caches, clients, metrics. It is changed between syncs only.
type cluster struct {
	hpas    cache.Indexer
	cached  cache.Indexer // pods
	scale   autoscalingv1.Scale
	pods    []corev1.Pod
	order   map[string]int // of pods, by name
	follow  bool
	reading readings
	handler cache.ResourceEventHandler

	spec    *autoscalingv2.HorizontalPodAutoscalerSpec
	written *int32
	events  []event
	errors  []string
}

func newCluster(hpa *autoscalingv2.HorizontalPodAutoscaler) *cluster {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	made := &cluster{
		hpas:   cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		cached: cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		scale: autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: hpa.Spec.ScaleTargetRef.Name, Namespace: hpa.Namespace},
		},
	}
	made.put(hpa)
	return made
}

// put keeps an HPA as the API server would: with its defaults.
func (c *cluster) put(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	hpa = hpa.DeepCopy()
	hpadefaults.SetDefaults_HorizontalPodAutoscaler(hpa)
	c.spec = hpa.Spec.DeepCopy()
	must(c.hpas.Update(hpa))
}

func (c *cluster) hpa() *autoscalingv2.HorizontalPodAutoscaler {
	return c.hpas.List()[0].(*autoscalingv2.HorizontalPodAutoscaler)
}

func (c *cluster) apply(change step) {
	if change.Spec != nil {
		hpa := c.hpa().DeepCopy()
		hpa.Spec = *change.Spec
		c.put(hpa)
	}
	if change.Pods != nil {
		c.pods = *change.Pods
	}
	if change.Follow != nil {
		c.follow = *change.Follow
	}
	if change.Readings != nil {
		c.reading = *change.Readings
	}
	if given := change.Scale; given != nil {
		if given.Replicas != nil {
			c.scale.Spec.Replicas = *given.Replicas
		}
		if given.Current != nil {
			c.scale.Status.Replicas = *given.Current
		}
		if given.Selector != nil {
			c.scale.Status.Selector = *given.Selector
		}
	}
}

// settle brings the cached pods up to date.
func (c *cluster) settle() {
	exist := c.pods
	if c.follow {
		exist = exist[:min(len(exist), int(c.scale.Spec.Replicas))]
		c.scale.Status.Replicas = int32(len(exist))
	}
	objects := make([]interface{}, len(exist))
	c.order = make(map[string]int, len(exist))
	for i := range exist {
		objects[i] = &exist[i]
		c.order[exist[i].Name] = i
	}
	must(c.cached.Replace(objects, ""))
}

// informer is a shared informer of which the controller uses the store and one handler only.
type informer struct {
	cache.SharedIndexInformer
	store   cache.Store
	handler *cache.ResourceEventHandler
}

func (i informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	*i.handler = handler
	return nil, nil
}

func (i informer) HasSynced() bool       { return true }
func (i informer) GetStore() cache.Store { return i.store }

type hpaInformer struct{ *cluster }

func (i hpaInformer) Informer() cache.SharedIndexInformer {
	return informer{store: i.hpas, handler: &i.handler}
}
func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.hpas)
}

type podInformer struct{ *cluster }

func (i podInformer) Informer() cache.SharedIndexInformer { return informer{handler: &i.handler} }
func (i podInformer) Lister() corelisters.PodLister       { return podLister{cluster: i.cluster} }

// podLister lists pods in the scenario's order. A cache has none, and which of several pods without a request is named in
// a message would be chance.
type podLister struct {
	corelisters.PodLister
	*cluster
}

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	listed := corelisters.NewPodLister(l.cached).Pods(namespace)
	return podsOfNamespace{PodNamespaceLister: listed, cluster: l.cluster}
}

type podsOfNamespace struct {
	corelisters.PodNamespaceLister
	*cluster
}

func (l podsOfNamespace) List(selector labels.Selector) ([]*corev1.Pod, error) {
	found, err := l.PodNamespaceLister.List(selector)
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return l.order[a.Name] - l.order[b.Name] })
	return found, err
}

type hpaClient struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	*cluster
}

func (c hpaClient) HorizontalPodAutoscalers(string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return c
}

func (c hpaClient) UpdateStatus(
	_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions,
) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	stored := c.hpa().DeepCopy()
	stored.Status = *hpa.Status.DeepCopy() // the status subresource: the spec stays
	return stored, c.hpas.Update(stored)
}

type scaleClient struct {
	scale.ScaleInterface
	*cluster
}

func (c scaleClient) Scales(string) scale.ScaleInterface { return c }

func (c scaleClient) Get(
	context.Context, schema.GroupResource, string, metav1.GetOptions,
) (*autoscalingv1.Scale, error) {
	return c.cluster.scale.DeepCopy(), nil
}

func (c scaleClient) Update(
	_ context.Context, _ schema.GroupResource, given *autoscalingv1.Scale, _ metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	c.cluster.scale.Spec.Replicas = given.Spec.Replicas
	count := given.Spec.Replicas
	c.written = &count
	return given, nil
}

// eventClient takes events and forgets them: those that are reported come from the log (see logger).
type eventClient struct{ coreclient.EventInterface }

func (c eventClient) Events(string) coreclient.EventInterface { return c }

func (c eventClient) CreateWithEventNamespace(given *corev1.Event) (*corev1.Event, error) {
	return given, nil
}
func (c eventClient) PatchWithEventNamespace(given *corev1.Event, _ []byte) (*corev1.Event, error) {
	return given, nil
}

func mapper() meta.RESTMapper {
	version := schema.GroupVersion{Group: "apps", Version: "v1"}
	made := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	made.Add(version.WithKind("Deployment"), meta.RESTScopeNamespace)
	return made
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
