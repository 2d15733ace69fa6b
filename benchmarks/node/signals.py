"""Measures the age of the signals of a load: a pod steps from 100m to 500m of CPU and back at random times, and each
source is read until it shows half of the step."""

from __future__ import annotations

import random
import ssl
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hvpa.api.values.quantity import parse_cpu
from hvpa.core.fast.counters import CpuCounter, Sample, newest
from hvpa.kube.kubelets.answer import PodName, read_answer
from localcluster.client.api import ApiError, Json, KubeApi
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads import samples
from localcluster.workloads.real_pods import RealPods, status

LOW, HIGH = 100, 500
"""Millicores."""
CGROUP, KUBELET, METRICS_SERVER, HPA = "the cgroup", "the kubelet", "metrics-server", "the HPA's status"
BOTH = "the kubelet, of pod and container"
_HALF: Final = (LOW + HIGH) / 2
_LOOK: Final = 0.5
_WITHIN: Final = 90.0
"""Seconds after which a step counts as not seen."""
_PAUSE: Final = 20.0
"""Longest pause before a step in seconds: the kubelet samples a container every 10 to 20 s."""
_POD: Final = "signals"


@dataclass
class Counter:
    """A counter of CPU seconds that is read repeatedly. Returns the millicores between its last two values; 0 until
    there are two."""

    read: Callable[[], tuple[float, float]]
    """Returns time and count."""
    last: tuple[float, float] = (0.0, 0.0)
    rate: float = 0.0

    def __call__(self) -> float:
        """Return millicores."""
        at, count = self.read()
        before, counted = self.last
        if at > before:
            self.rate = (count - counted) / (at - before) * 1000 if before else 0.0
            self.last = at, count
        return self.rate


def signals(
    plane: ControlPlane, pods: RealPods, steps: int, chance: random.Random
) -> dict[str, list[float | None]]:
    """Return the seconds of each source until it showed half of each step; None if it never did."""
    pods.use(_POD, LOW, 30)
    workload = pods.deploy(_POD, {"cpu": "600m", "memory": "64Mi"})
    pods.api.create(_hpa(pods.namespace, samples.target_of(workload)))
    name = pods.only_pod(_POD)
    pod = pods.get(name)
    kubelet = Kubelet(plane, PodName(pods.namespace, name))
    sources: Mapping[str, Callable[[], float]] = {
        CGROUP: Counter(lambda: _from_cgroup(pods, pod)),
        KUBELET: Counter(kubelet.of_container),
        BOTH: kubelet.usage,
        METRICS_SERVER: lambda: _from_metrics_server(pods.api, pods.namespace, name),
        HPA: lambda: _from_hpa(pods.api, pods.namespace),
    }
    delays: dict[str, list[float | None]] = {source: [] for source in sources}
    _await(sources, is_high=False)
    for step in range(steps):
        is_high = step % 2 == 0
        _read(sources, chance.uniform(0, _PAUSE))
        began = time.monotonic()
        pods.use(_POD, HIGH if is_high else LOW, 30)
        shown_at = _await(sources, is_high=is_high)
        for source in sources:
            delays[source].append(shown_at[source] - began if source in shown_at else None)
    for kind in ("HorizontalPodAutoscaler", "Deployment"):
        pods.api.delete(kind, _POD, pods.namespace)
    return delays


def _await(sources: Mapping[str, Callable[[], float]], *, is_high: bool) -> dict[str, float]:
    """Return when each source showed the step. All are read until the last source shows it, because a counter's rate
    depends on its previous reading."""
    shown_at: dict[str, float] = {}
    end = time.monotonic() + _WITHIN
    while len(shown_at) < len(sources) and time.monotonic() < end:
        for source, read in sources.items():
            value = read()
            if source not in shown_at and value > 0 and (value > _HALF) == is_high:
                shown_at[source] = time.monotonic()
        time.sleep(_LOOK)
    return shown_at


def _read(sources: Mapping[str, Callable[[], float]], seconds: float) -> None:
    """Keep reading the sources, and ignore their values."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for read in sources.values():
            read()
        time.sleep(_LOOK)


@dataclass
class Kubelet:
    """The counters of a pod's CPU in its kubelet's `/metrics/resource`."""

    plane: ControlPlane
    pod: PodName
    counters: Mapping[str, CpuCounter] = field(default_factory=lambda: defaultdict(CpuCounter))
    """By container; empty: of the whole pod."""
    context: ssl.SSLContext = field(init=False)
    url: str = field(init=False)

    def __post_init__(self) -> None:
        pair = self.plane.pki.client("reader-of-metrics", "system:masters")
        self.context = ssl.create_default_context(cafile=str(self.plane.authority))
        self.context.load_cert_chain(pair.certificate, pair.key)
        (node,) = self.plane.api.list("Node")
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        self.url = f"https://{node['metadata']['name']}:{port}/metrics/resource"

    def read(self) -> dict[str, Sample]:
        """Return the samples by container (empty: of the whole pod)."""
        with urllib.request.urlopen(self.url, timeout=10, context=self.context) as answer:
            usage = read_answer(answer.read(), {self.pod: {"app"}}).get(self.pod, {})
        return {container: used.cpu for container, used in usage.items() if used.cpu is not None}

    def of_container(self) -> tuple[float, float]:
        """Return time and seconds of CPU of the pod's only container; zeros if there is no sample yet."""
        return next((sample for container, sample in self.read().items() if container), (0.0, 0.0))

    def usage(self) -> float:
        """Return the millicores between the last samples of the pod or of its container, whichever are newer; 0 without
        two samples."""
        for container, sample in self.read().items():
            self.counters[container].add(sample)
        rate = newest(*[counter.rate() for counter in self.counters.values()])
        return 0.0 if rate is None else rate.millicores


def _from_cgroup(pods: RealPods, pod: Json) -> tuple[float, float]:
    container = status(pod)["containerID"].rpartition("://")[2]
    folder = pods.node_of(pod).cgroup_of(
        pod["metadata"]["uid"], pod["status"]["qosClass"], container, "cpuacct"
    )
    return time.monotonic(), int((folder / "cpuacct.usage").read_text()) / 1e9


def _from_metrics_server(api: KubeApi, namespace: str, pod: str) -> float:
    """Return millicores; 0 if there are none yet."""
    try:
        metrics = api.raw("GET", f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{pod}")
    except ApiError:
        return 0.0
    return parse_cpu(metrics["containers"][0]["usage"]["cpu"])


def _from_hpa(api: KubeApi, namespace: str) -> float:
    """Return millicores; 0 if there are none yet."""
    status = api.get("HorizontalPodAutoscaler", _POD, namespace).get("status", {})
    metrics = [
        metric["resource"]["current"]
        for metric in status.get("currentMetrics") or []
        if metric.get("resource")
    ]
    return max((parse_cpu(metric.get("averageValue", "0")) for metric in metrics), default=0)


def _hpa(namespace: str, target: Json) -> Json:
    """Return an HPA that never scales: no pod uses ten cores."""
    hpa = samples.hpa(_POD, namespace, target)
    wanted = {"type": "AverageValue", "averageValue": "10"}
    hpa["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]
    return hpa
