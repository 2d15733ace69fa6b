"""Real load, real metrics, the real HPA controller and the real VPA recommender: the workload is scaled on both axes,
by the operator alone."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import HPA_CONTROLLER, MEBI, OPERATOR, OPERATOR_USER

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 180


@dataclass(frozen=True)
class ClosedLoop:
    """The control plane, and the operator that scales on it."""

    cluster: ControlPlane
    operator: Operator
    namespace: str

    @property
    def api(self) -> KubeApi:
        """The administrator's client."""
        return self.cluster.api

    def load(
        self, stack: ExitStack, name: str, cpu: float, memory: float = 0, base_memory: float = 16 * MEBI
    ) -> PodLoad:
        """A load on the Deployment `name` until the stack is closed."""
        await_pods(self.api, self.namespace, name)
        load = PodLoad(
            self.api, self.namespace, f"app={name}", cpu=cpu, memory=memory, base_memory=base_memory
        )
        return stack.enter_context(load)


@pytest.fixture
def loop(cluster: ControlPlane, operator: Operator, namespace: str) -> ClosedLoop:
    return ClosedLoop(cluster, operator, namespace)


def first_step_is_part_of_the_way(loop: ClosedLoop, name: str, part: float) -> None:
    """The operator's first patch of the Deployment's count went so far from 2 to the HPA's desired replicas:
    4, or 3 where the measurement was of a moment when only one of the two pods had got its share of the load."""
    audit, namespace = loop.cluster.audit, loop.namespace
    asked = audit.requests(writes=True, namespace=namespace, name=name, code=200)
    counts = [
        request for request in asked if request.user == OPERATOR_USER and request.resource == "deployments"
    ]
    first = next(request for request in counts if "replicas" in request.body["spec"])
    written = [
        request for request in asked if request.user == HPA_CONTROLLER and request.subresource == "scale"
    ]
    desired = [
        int(request.body["spec"]["replicas"]) for request in written if request.received < first.received
    ][-1]
    assert desired in (3, 4)
    assert int(first.body["spec"]["replicas"]) == math.ceil(2 + (desired - 2) * part)


def test_each_axis_follows_its_recommender_by_its_weight(loop: ClosedLoop) -> None:
    api, namespace = loop.api, loop.namespace
    # Horizontal alone: 2 replicas, 390m each against 200m wanted -> the HPA asks for 4. Without a VPA the vertical
    # weight of 50 counts as 0 for scaling out, so 4 are set; for scaling in it counts.
    api.create(objects.deployment("out", namespace))
    api.create(
        objects.hvpa(
            "out", namespace, hpa=objects.horizontal(), weightBasedScalingIntervals=[{"vpaWeight": 50}]
        )
    )
    # Vertical alone: requests and limits follow the VPA, the limit in proportion (2 to 1).
    limits = {"cpu": "400m", "memory": "256Mi"}
    api.create(objects.deployment("size", namespace, limits=limits))
    api.create(objects.hvpa("size", namespace, vpa=objects.vertical()))
    # Both at once, at weight 40. A VPA asks for next to nothing before it has measured: a rollout for that could be
    # under way, with old pods beside new ones, when the HPA measures. So this one may not ask for less.
    api.create(objects.deployment("both", namespace))
    api.create(
        objects.hvpa(
            "both",
            namespace,
            hpa=objects.horizontal(),
            vpa=objects.vertical(template=vpa_template(minAllowed=FIXED)),
            weightBasedScalingIntervals=[{"vpaWeight": 40, "startReplicaCount": 1, "lastReplicaCount": 10}],
        )
    )
    # Nothing wants to change here: the HPA is content, the VPA may only recommend what is set.
    api.create(objects.deployment("rest", namespace))
    template = vpa_template(minAllowed=FIXED, maxAllowed=FIXED)
    api.create(
        objects.hvpa("rest", namespace, hpa=objects.horizontal(), vpa=objects.vertical(template=template))
    )
    with ExitStack() as stack:
        out = loop.load(stack, "out", cpu=780)
        size = loop.load(stack, "size", cpu=1000, memory=300 * MEBI, base_memory=50 * MEBI)
        both = loop.load(stack, "both", cpu=780, memory=300 * MEBI)
        loop.load(stack, "rest", cpu=400)

        wait_for(lambda: objects.replicas(api, "out", namespace) > 2, TIMEOUT, "`out` is scaled out")
        first_step_is_part_of_the_way(loop, "out", 1)

        wait_for(lambda: objects.resources(api, "size", namespace)[0] > 550, TIMEOUT, "`size` gets larger")
        cpu, memory, cpu_limit, memory_limit = objects.resources(api, "size", namespace)
        assert 550 < cpu <= 640  # 500m and VPA's margin of 15 percent, up to the end of a bucket
        assert memory > 200 * MEBI
        assert (cpu_limit, abs(memory_limit - 2 * memory) <= 1000) == (2 * cpu, True)
        assert objects.replicas(api, "size", namespace) == 2

        wait_for(lambda: objects.replicas(api, "both", namespace) > 2, TIMEOUT, "`both` is scaled out")
        wait_for(lambda: objects.resources(api, "both", namespace)[0] > 210, TIMEOUT, "and gets larger")
        first_step_is_part_of_the_way(loop, "both", 0.6)
        blended_by_weight(loop, "both", 40)

        # And back again, while the fourth, which has come to rest by now, stays there.
        resting = begin_to_rest(loop, "rest")
        out.cpu = both.cpu = size.cpu = 100
        size.memory = 0
        wait_for(lambda: objects.replicas(api, "out", namespace) == 1, TIMEOUT, "`out` is scaled in")
        wait_for(lambda: objects.replicas(api, "both", namespace) < 4, TIMEOUT, "`both` is scaled in")
        wait_for(lambda: objects.resources(api, "size", namespace)[0] < 200, TIMEOUT, "`size` gets smaller")
        cpu, memory, cpu_limit, memory_limit = objects.resources(api, "size", namespace)
        assert abs(cpu_limit - 2 * cpu) <= 1
        only_the_operator_scales(loop)
        at_rest_nothing_is_written(loop, "rest", resting)


FIXED = {"cpu": "200m", "memory": "128Mi"}


def vpa_template(**bounds: Json) -> Json:
    """`spec.vpa.template` with bounds of what a VPA may recommend."""
    return {
        "metadata": {"labels": {"role": "vpa"}},
        "spec": {"resourcePolicy": {"containerPolicies": [{"containerName": "*", **bounds}]}},
    }


def blended_by_weight(loop: ClosedLoop, name: str, weight: int) -> None:
    """Each request that the operator set stands between what was and what was recommended, at the weight."""
    spent = wait_for(
        lambda: objects.axes(loop.api, name, loop.namespace).get("vertical", {}).get("appliedFrom"),
        60,
        "a vertical step",
    )
    assert {step["weight"] for step in spent} <= {weight, 100}
    assert {step["container"] for step in spent} == {"app"}


def only_the_operator_scales(loop: ClosedLoop) -> None:
    """The audit log: replicas and pod templates of the Deployments were changed by the operator alone; the HPA wrote
    nothing but the Hvpas' scale replicas."""
    audit, namespace = loop.cluster.audit, loop.namespace
    for name in ("out", "size", "both"):
        assert audit.writers("deployments", name, namespace)[OPERATOR_USER] > 0
        assert audit.writers("deployments", name, namespace)[HPA_CONTROLLER] == 0
    by_hpa = [
        request
        for request in audit.requests(writes=True, namespace=namespace)
        if request.user == HPA_CONTROLLER and request.code < 300
    ]
    allowed = {("hvpas", "scale"), ("horizontalpodautoscalers", "status"), ("events", "")}
    assert {(request.resource, request.subresource) for request in by_hpa} <= allowed
    assert ("hvpas", "scale") in {(request.resource, request.subresource) for request in by_hpa}


class Rest(NamedTuple):
    """Since when an Hvpa is at rest: a place in the audit log, a time of `time.monotonic`; and its version then."""

    mark: Mark
    since: float
    version: str


def version(loop: ClosedLoop, name: str) -> str:
    return str(loop.api.get("Hvpa", name, loop.namespace)["metadata"]["resourceVersion"])


def begin_to_rest(loop: ClosedLoop, name: str) -> Rest:
    """Wait until both recommenders of an Hvpa recommend what is set, and nothing is written about it for some
    seconds."""

    def recommending() -> bool:
        conditions = objects.conditions(loop.api, name, loop.namespace)
        return {conditions[kind] for kind in ("HpaActive", "VpaActive")} == {("True", "Recommending")}

    def rests() -> Rest | None:
        rest = Rest(loop.cluster.audit.mark(), time.monotonic(), version(loop, name))
        time.sleep(3)
        return rest if version(loop, name) == rest.version else None

    wait_for(recommending, TIMEOUT, "both recommend")
    rest = wait_for(rests, TIMEOUT, "rest")
    assert rest is not None
    return rest


def at_rest_nothing_is_written(loop: ClosedLoop, name: str, rest: Rest) -> None:
    """Some time under constant load: the operator writes nothing that has to do with this Hvpa."""
    time.sleep(max(0.0, rest.since + 25 - time.monotonic()))
    asked = loop.cluster.audit.requests(rest.mark, user=OPERATOR, namespace=loop.namespace, name=name)
    assert asked == []
    assert version(loop, name) == rest.version


def test_replicas_do_not_fall_when_metrics_are_gone_at_peak_load(loop: ClosedLoop) -> None:
    api, namespace = loop.api, loop.namespace
    api.create(objects.deployment("peak", namespace))
    api.create(objects.hvpa("peak", namespace, hpa=objects.horizontal(most=6)))

    def hpa_active() -> str:
        return objects.conditions(api, "peak", namespace)["HpaActive"][0]

    with ExitStack() as stack:
        loop.load(stack, "peak", cpu=1150)
        wait_for(lambda: objects.replicas(api, "peak", namespace) == 6, TIMEOUT, "scaled out")
        with loop.cluster.stopped("metrics-server"):
            wait_for(lambda: hpa_active() == "False", TIMEOUT, "the Hvpa reports that the HPA has no metrics")
            time.sleep(6)  # the HPA looks three times
            assert hpa_active() == "False"
            assert objects.replicas(api, "peak", namespace) == 6
        wait_for(lambda: hpa_active() == "True", TIMEOUT, "the HPA has metrics again")
        assert objects.replicas(api, "peak", namespace) == 6


def test_deleting_an_hvpa_removes_its_recommenders_and_leaves_the_workload(loop: ClosedLoop) -> None:
    api, namespace = loop.api, loop.namespace

    def recommenders() -> list[str]:
        kinds = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler")
        return [kind for kind in kinds if api.find(kind, "leave", namespace) is not None]

    api.create(objects.deployment("leave", namespace))
    api.create(objects.hvpa("leave", namespace, hpa=objects.horizontal(), vpa=objects.vertical()))
    wait_for(lambda: len(recommenders()) == 2, 60, "both recommenders")
    before = api.get("Deployment", "leave", namespace)["spec"]
    api.delete("Hvpa", "leave", namespace)
    wait_for(lambda: recommenders() == [], TIMEOUT, "none of them")
    assert api.get("Deployment", "leave", namespace)["spec"] == before
