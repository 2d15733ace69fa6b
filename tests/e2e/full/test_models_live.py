"""Our models beside the recommenders at work: what kube-controller-manager's HPA controller and the VPA recommender
say of running pods, our models say too. How they get there is compared by `tests/recorded`, in virtual time.

Timing: the HPA controller reads the pods and their metrics at times that are not reported, so the load is constant
and the comparison waits for a status that stays while everything is read; nothing is tolerated but the last millicore
of a measured mean. Of the VPA recommender, the checkpoint and the recommendation must come from the same samples
(`_settled_pair`); 1 percent is tolerated there, since checkpoints round weights.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, TypeVar, cast

import msgspec
import pytest

from hvpa.api.objects.read_models import Hpa, HpaStatusRead, MetricName, Pod, Vpa, condition
from hvpa.api.values.duration import parse_duration
from hvpa.api.values.quantity import parse_quantity
from hvpa.api.values.timestamp import parse_timestamp
from hvpa.recommend.golang import milli_value
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaSettings, MetricsError, PodReading, Scale
from hvpa.recommend.vpa.recommender import VerticalRecommender, VpaSettings
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import Settings
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION
from localcluster.workloads import samples
from tests.recorded.vpa.model import load_checkpoint

pytestmark = pytest.mark.owned_cluster

Kind = TypeVar("Kind")
TIMEOUT = 150
# Name -> usage of each pod that requests 200m, replicas, and the reasons of AbleToScale and ScalingLimited that come of
# it under a target of 100 percent and 2 to 4 replicas.
WORKLOADS = {
    "fits": ("195m", 3, "ReadyForNewScale", "DesiredWithinRange"),
    "busy": ("300m", 4, "ReadyForNewScale", "TooManyReplicas"),
    "idle": ("40m", 2, "ReadyForNewScale", "TooFewReplicas"),
    "resting": ("40m", 3, "ScaleDownStabilized", "DesiredWithinRange"),
}


def _decoded(found: Json, kind: type[Kind]) -> Kind:
    return msgspec.json.decode(msgspec.json.encode(found), type=kind)


def _hpa(name: str, namespace: str, target: Json) -> Json:
    made = samples.hpa(name, namespace, target, most=4, utilization=100)
    made["spec"]["minReplicas"] = 2
    if name == "resting":  # the stabilization of 5 minutes holds it
        del made["spec"]["behavior"]
    return made


class Measured:
    """The metrics API's readings of some pods now, as the HPA controller's metrics client takes it."""

    def __init__(self, api: KubeApi, namespace: str, selector: str) -> None:
        self._found = api.list("PodMetrics", namespace, selector)

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        assert container == ""
        return {
            pod["metadata"]["name"]: PodReading(
                sum(milli_value(entry["usage"][resource]) for entry in pod["containers"]),
                parse_timestamp(pod["timestamp"]),
                parse_duration(pod["window"]),
            )
            for pod in self._found
        }

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        raise MetricsError("not here")

    def object(self, metric: MetricName, described: object) -> int:
        raise MetricsError("not here")

    def external(self, metric: MetricName) -> list[int]:
        raise MetricsError("not here")


@pytest.fixture
def workloads(cluster: ControlPlane, namespace: str) -> KubeApi:
    """All of WORKLOADS with their HPAs."""
    for name, (usage, replicas, _, _) in WORKLOADS.items():
        annotations = {CPU_ANNOTATION: usage, MEMORY_ANNOTATION: "64Mi"}
        made = samples.deployment(name, namespace, replicas=replicas, cpu="200m", annotations=annotations)
        cluster.api.create(made)
        cluster.api.create(_hpa(name, namespace, samples.target_of(made)))
    return cluster.api


def _reasons(status: HpaStatusRead) -> dict[str, tuple[str, str]]:
    kinds = ("AbleToScale", "ScalingActive", "ScalingLimited")
    found = {kind: condition(status.conditions, kind) for kind in kinds}
    return {kind: (one.status, one.reason) for kind, one in found.items() if one is not None}


def _average(status: HpaStatusRead) -> tuple[float, int | None]:
    assert status.current_metrics
    source = status.current_metrics[0].source()
    assert source is not None
    assert source.current.average_value is not None
    return float(parse_quantity(source.current.average_value)), source.current.average_utilization


class Judged:
    """HPAs of the cluster beside our model."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        flags = Settings()
        self._settings = HpaSettings(
            tolerance=flags.hpa_tolerance,
            cpu_initialization_period=parse_duration(flags.hpa_cpu_initialization_period).total_seconds(),
            initial_readiness_delay=parse_duration(flags.hpa_initial_readiness_delay).total_seconds(),
            downscale_stabilization=parse_duration(flags.hpa_downscale_stabilization).total_seconds(),
        )

    def _read(self, name: str) -> Json:
        return self._api.get("HorizontalPodAutoscaler", name, self._namespace)

    def settled(self, name: str) -> bool:
        """Whether the HPA gives the reasons that WORKLOADS expects."""
        reasons = _reasons(_decoded(self._read(name), Hpa).status)
        _, _, able, limited = WORKLOADS[name]
        found = tuple(reasons[kind][1] for kind in ("AbleToScale", "ScalingActive", "ScalingLimited"))
        return found == (able, "ValidMetricFound", limited)

    def compare(self, name: str) -> bool:
        """Assert that our model gives the same; False where its input is not of one time: again."""
        before, selector = self._read(name), f"app={name}"
        pods = [_decoded(pod, Pod) for pod in self._api.list("Pod", self._namespace, selector)]
        measured = Measured(self._api, self._namespace, selector)
        deployment = self._api.get("Deployment", name, self._namespace)
        if self._read(name)["status"] != before["status"]:
            return False
        real = _decoded(before, Hpa)
        scale = Scale(deployment["spec"]["replicas"], deployment["status"]["replicas"], selector)
        now = dt.datetime.now(dt.UTC)
        outcome = HorizontalAutoscaler(self._settings).sync(real, scale, pods, measured, now)
        assert outcome.status.desired_replicas == real.status.desired_replicas
        assert outcome.replicas is None
        assert _reasons(outcome.status) == _reasons(real.status)
        (our_mean, our_percent), (mean, percent) = _average(outcome.status), _average(real.status)
        assert our_mean == pytest.approx(mean, abs=0.001)
        assert our_percent == pytest.approx(percent, abs=1)
        return True


def test_our_hpa_says_what_kube_controller_manager_says(workloads: KubeApi, namespace: str) -> None:
    hpas = Judged(workloads, namespace)
    for name in WORKLOADS:
        wait_for(partial(hpas.settled, name), TIMEOUT, f"the HPA {name} has settled")
    for name in WORKLOADS:
        wait_for(partial(hpas.compare, name), 60, f"our model gives {name} the status that its HPA has")


class Pair(NamedTuple):
    """A VPA and the status of the checkpoint that goes with its recommendation."""

    vpa: Json
    checkpoint: Json


def _settled_pair(api: KubeApi, namespace: str) -> Pair | None:
    """A recommendation and a checkpoint of the same samples, or None: again.

    Every loop of the recommender (2 s here) writes the recommendation, then the checkpoint; new samples come with every
    measurement (11 s). A recommendation that was read between two checkpoints of the same samples is of those too.
    """

    def checkpoint() -> Json:
        listed = f"/apis/autoscaling.k8s.io/v1/namespaces/{namespace}/verticalpodautoscalercheckpoints"
        return cast(Json, api.raw("GET", f"{listed}/db-app")["status"])

    def of_samples(status: Json) -> object:
        return status["totalSamplesCount"], status["lastSampleStart"]

    before = checkpoint()
    vpa = api.get("VerticalPodAutoscaler", "db", namespace)
    wait_for(lambda: checkpoint()["lastUpdateTime"] != before["lastUpdateTime"], 60, "the next checkpoint")
    after = checkpoint()
    settled = of_samples(before) == of_samples(after) and after["totalSamplesCount"] >= 12
    return Pair(vpa, after) if settled else None


def _amounts(recommendation: Json) -> dict[str, float]:
    (entry,) = recommendation["containerRecommendations"]
    kinds = ("target", "lowerBound", "upperBound", "uncappedTarget")
    return {
        f"{kind} {resource}": float(parse_quantity(quantity))
        for kind in kinds
        for resource, quantity in entry[kind].items()
    }


def _recommender_settings() -> VpaSettings:
    """The flags that the cluster's recommender runs with."""
    flags = Settings()
    return VpaSettings(
        safety_margin=flags.recommendation_margin,
        cpu_half_life=parse_duration(flags.cpu_half_life).total_seconds(),
        memory_half_life=parse_duration(flags.memory_half_life).total_seconds(),
        memory_aggregation_interval=parse_duration(flags.memory_aggregation_interval).total_seconds(),
        memory_aggregation_interval_count=flags.memory_aggregation_count,
        pod_min_cpu_millicores=flags.pod_min_cpu_millicores,
        pod_min_memory_mb=flags.pod_min_memory_megabytes,
    )


def test_our_recommender_goes_on_from_the_checkpoint_of_the_real_one(
    cluster: ControlPlane, namespace: str
) -> None:
    api = cluster.api
    usage = {CPU_ANNOTATION: "120m", MEMORY_ANNOTATION: "150Mi"}
    made = samples.deployment("db", namespace, replicas=3, annotations=usage)
    api.create(made)
    api.create(samples.vpa("db", namespace, samples.target_of(made)))
    wait_for(lambda: len(api.list("Pod", namespace, "app=db")) == 3, 90, "three pods")
    pod = api.list("Pod", namespace, "app=db")[0]["metadata"]["name"]
    # One pod uses much more than the others, so that the lower bound and the target come from different buckets.
    more = {"metadata": {"annotations": {CPU_ANNOTATION: "700m", MEMORY_ANNOTATION: "600Mi"}}}
    api.patch("Pod", pod, namespace, more)
    found_pair = partial(_settled_pair, api, namespace)
    pair = wait_for(found_pair, TIMEOUT, "checkpoint and recommendation of the same samples")
    assert pair is not None
    ours = VerticalRecommender(_recommender_settings())
    load_checkpoint(ours, "app", pair.checkpoint)
    ours.add_sample(pod, "app", 0.0, None, None)
    vpa = _decoded(pair.vpa, Vpa)
    status = msgspec.to_builtins(ours.recommend(vpa, dt.datetime.now(dt.UTC)))
    found, real = _amounts(status["recommendation"]), _amounts(pair.vpa["status"]["recommendation"])
    # Within 1 percent: a checkpoint keeps weights rounded to 1/10000 of the largest.
    assert found == pytest.approx(real, rel=0.01)
    assert real["lowerBound cpu"] < real["target cpu"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {"RecommendationProvided": "True"}
