// The VPA's webhook for new pods, put together as the main of its admission controller does it: that one listens on all
// addresses, this one on loopback alone. Who starts it registers it.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/vertical-pod-autoscaler/common"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/patch"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/vpa"
	vpaclientset "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	vpautil "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig")
	listen := flag.String("listen", "", "address and port")
	certificate := flag.String("tls-cert-file", "", "certificate")
	key := flag.String("tls-private-key-file", "", "its key")
	flag.Parse()

	config := common.CreateKubeConfigOrDie(*kubeconfig, 50, 100)
	stop := make(chan struct{})
	_, vpas := vpautil.NewVpasListerWithIndexer(vpaclientset.NewForConfigOrDie(config), stop, "")
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	selectors := target.NewVpaTargetSelectorFetcher(config, client, factory, stop)
	controllers := controllerfetcher.NewControllerFetcher(config, client, factory, 10*time.Minute, time.Hour, 1, stop)
	limits, err := limitrange.NewLimitsRangeCalculator(factory)
	if err != nil {
		log.Fatal(err)
	}
	provider := recommendation.NewProvider(limits, vpautil.NewCappingRecommendationProcessor(limits))
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	server := logic.NewAdmissionServer(
		pod.NewDefaultPreProcessor(), vpa.NewDefaultPreProcessor(), limits, vpa.NewMatcher(vpas, selectors, controllers),
		[]patch.Calculator{
			patch.NewResourceUpdatesCalculator(provider, resource.QuantityValue{}),
			patch.NewObservedContainersCalculator(),
		},
	)
	http.HandleFunc("/", server.Serve)
	log.Fatal(http.ListenAndServeTLS(*listen, *certificate, *key, nil))
}
