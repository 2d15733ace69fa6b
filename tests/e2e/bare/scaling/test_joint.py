"""`blend: Trajectory` on a real API server: both axes are solved together, by weights and by `trajectory.intervals`
(DESIGN 5.4, 5.5). The recommenders and the workload's controller are played."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import ApiError, Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, request, steps, trajectory, weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play

GIBI = 2**30
BY_WEIGHTS = merged(trajectory(least={"cpu": "1"}), weight(50))
"""A path that begins at one replica of one core; at equal factors it grows in both."""
TABLE = steps((1, "500m", "2Gi"), (2, "1", "4Gi"), (3, "2", "8Gi"), (4, "4", "16Gi"), (5, "8", "32Gi"))
"""The example of DESIGN 5.5."""


def joint(play: Play, changes: Json, *, replicas: int = 1, cpu: str = "1", memory: str = "500M") -> Stage:
    """A stage of so many replicas that request this."""
    stage = play(create=False, replicas=replicas, changes=changes)
    request(stage.workload, cpu=cpu, memory=memory)
    return stage.create()


def patches(plane: ControlPlane, stage: Stage) -> list[Any]:
    """The spec of each of the operator's writes to the workload that went through."""
    done = plane.audit.requests(user=USER, resource="deployments", namespace=stage.namespace, code=200)
    return [one.body["spec"] for one in done if one.is_write and one.name == stage.name]


@contextlib.contextmanager
def killed(operator: Operator) -> Iterator[None]:
    """The operator is killed by SIGKILL, and runs again after this block."""
    operator.kill()
    try:
        yield
    finally:
        operator.start()


ONE_PATCH: dict[str, tuple[Json, dict[str, str], tuple[int, int], int, dict[str, str]]] = {
    "by weights": (BY_WEIGHTS, {"cpu": "1", "memory": "500M"}, (5000, 0), 3, {"cpu": "1667m"}),
    "by intervals": (
        merged(trajectory(metrics=("cpu", "memory")), TABLE),
        {"cpu": "500m", "memory": "2Gi"},
        (4000, 26 * GIBI),
        4,  # three would do for CPU
        {"cpu": "1", "memory": "6979322k"},
    ),
}


@pytest.mark.parametrize("path", ONE_PATCH)
def test_replicas_and_sizes_go_in_one_patch(
    plane: ControlPlane, play: Play, operator: Operator, path: str
) -> None:
    changes, begin, load, replicas, requests = ONE_PATCH[path]
    stage = joint(play, {**changes, "mode": "Paused"}, cpu=begin["cpu"], memory=begin["memory"])
    stage.under(*load)
    stage.soon(
        lambda: (
            stage.status["recommended"]["replicas"] == replicas
            and requests.items() <= stage.status["recommended"]["containers"][0]["requests"].items()
        ),
        "a recommendation for both axes",
    )
    assert patches(plane, stage) == []
    stage.later(days=2)  # the VPA's targets are of one pod, and so they stay for a while
    stage.change({"mode": "Apply"})
    stage.await_replicas(replicas)
    resources = {"name": "app", "resources": {"requests": requests}}
    patch = {"replicas": replicas, "template": {"spec": {"containers": [resources]}}}
    assert patches(plane, stage) == [patch]
    stage.minutes_under(*load)
    stage.await_unblocked()
    assert patches(plane, stage) == [patch]


TALLER: dict[str, tuple[Json, int, str]] = {
    "by weights": (BY_WEIGHTS, 5, "1667m"),
    "by intervals": (merged(trajectory(), steps((2, "2", "4Gi"), (4, "4", "8Gi"))), 6, "2"),
}


@pytest.mark.parametrize("path", TALLER)
def test_requests_go_up_before_replicas_go_down(
    plane: ControlPlane, play: Play, operator: Operator, path: str
) -> None:
    """Five or six small pods become four large ones. While old and new pods are there, as many of the smaller ones as
    there are replicas serve the load at every version of the Deployment."""
    changes, replicas, cpu = TALLER[path]
    load = replicas * 1000
    stage = joint(play, changes, replicas=replicas)
    stage.replace_pods()
    stage.under(load)
    stage.await_requests(cpu=cpu)
    stage.rollout(complete=False)
    stage.await_blocked("PodReplacement", "horizontal", "down")
    for _ in range(3):
        stage.hpa_measures(load)
        stage.later(minutes=2)
    assert stage.replicas == replicas
    stage.arrives(4, parse_cpu(cpu), load)
    stage.await_unblocked()
    assert [set(one) for one in patches(plane, stage)] == [{"template"}, {"replicas"}]
    seen = stage.versions(plane.audit)
    for before, after in pairwise(seen):
        assert after.replicas * min(before.cpu, after.cpu) >= load


def memory_of(stage: Stage) -> Json:
    """What the operator remembers of the path and of usual demand."""
    axis: Json = stage.status["axes"]["vertical"]
    return {key: axis[key] for key in ("base", "usualDemand")}


def test_after_a_sigkill_the_same_decisions_follow_from_what_the_status_remembers(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = joint(play, BY_WEIGHTS, replicas=5)
    stage.replace_pods()
    stage.under(5000)
    stage.await_requests(cpu="1667m")
    stage.rollout(complete=False)
    stage.await_blocked("PodReplacement", "horizontal", "down")
    before = memory_of(stage)
    assert before["base"] == {"app": {"cpu": "1", "memory": "500M"}}
    assert before["usualDemand"][0]["mean"] == 5000
    with killed(operator):
        pass
    stage.settled()
    assert memory_of(stage) == before
    with killed(operator):  # between the two patches of one step
        stage.replace_pods()
        stage.rollout_completes()
        stage.hpa_measures(5000)
    stage.arrives(4, 1667, 5000)
    assert len(patches(plane, stage)) == 2

    # It still knows which demand is usual: a peak is served by replicas of the size that there is.
    with killed(operator):
        stage.hpa_measures(10_000)
        stage.later(minutes=2)
    stage.arrives(6, 1667, 10_000)
    # And where its path begins: at 1 core. From 1667m on, three replicas would do.
    stage.days_under(10_000)
    with killed(operator):
        stage.later(hours=1)
    stage.arrives(5, 2500, 10_000)
    stage.await_unblocked()


@pytest.mark.parametrize("path", TALLER)
def test_at_rest_nothing_is_written_though_measurements_vary(
    plane: ControlPlane, play: Play, operator: Operator, path: str
) -> None:
    changes, replicas, cpu = TALLER[path]
    load = replicas * 1000
    stage = joint(play, changes, replicas=replicas)
    stage.under(load)
    stage.arrives(4, parse_cpu(cpu), load)
    stage.await_unblocked()
    stage.settled()
    stage.soon(lambda: stage.status["replicas"] == 4, "the count in the status")
    version = stage.hvpa["metadata"]["resourceVersion"]
    mark = plane.audit.mark()
    for number in range(30):
        stage.hpa_measures(load - (number % 5) * load // 100)
        stage.vpa_sees(load + number * 5)
    before = operator.metric("hvpa_queue_depth")
    stage.soon(lambda: operator.metric("hvpa_queue_depth") == 0, f"an empty queue, not {before}")
    requests = plane.audit.requests(mark, user=USER, namespace=stage.namespace)
    assert [str(one) for one in requests] == []
    assert stage.hvpa["metadata"]["resourceVersion"] == version


CPU_ONLY = {"maxReplicas": 2, "maxResources": {"cpu": "1"}}
REFUSED: dict[str, tuple[Json, str]] = {
    "a trajectory beside Additive": ({"blend": "Additive", "trajectory": {}}, "spec.blend"),
    "intervals beside weights": (
        {"trajectory": {"intervals": [CPU_ONLY]}, **weight(50)},
        "spec.trajectory.intervals",
    ),
    "an interval that falls": (
        {"trajectory": {"intervals": [CPU_ONLY, {"maxReplicas": 3, "maxResources": {"cpu": "900m"}}]}},
        "spec.trajectory.intervals",
    ),
    "an interval without resources": (
        {"trajectory": {"intervals": [{"maxReplicas": 2, "maxResources": {}}]}},
        "spec.trajectory.intervals[0].maxResources",
    ),
    "an overlap that is never cleared": (
        {"trajectory": {"overlap": {"memory": {"percentage": 91}}}},
        "spec.trajectory.overlap.memory.percentage",
    ),
    "base usage of a whole pod": (
        {"trajectory": {"baseResourcesPerReplica": {"cpu": {"percentage": 95}}}},
        "spec.trajectory.baseResourcesPerReplica.cpu.percentage",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_trajectory_with_a_fault_is_refused_by_its_field(
    plane: ControlPlane, play: Play, fault: str
) -> None:
    changes, field = REFUSED[fault]
    stage = play(create=False, changes=changes)
    with pytest.raises(ApiError) as refused:
        plane.api.create(stage.manifest)
    assert refused.value.status == 422
    assert f"{field}: " in str(refused.value)
    assert plane.api.find("Hvpa", stage.name, stage.namespace) is None


def test_the_blend_may_be_switched_from_additive_to_trajectory_and_back(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    """The nine cores that Additive makes of five become five, and stay so when Additive is back."""
    least = {"minChange": {"cpu": {"value": "100m"}}}
    changes = merged(BY_WEIGHTS, {"vpa": {"scaleUp": least, "scaleDown": least}})
    stage = joint(play, {**changes, "blend": "Additive", "mode": "Paused"})
    stage.under(5000)
    stage.soon(lambda: stage.status["recommended"]["replicas"] == 3, "a recommendation")
    stage.change({"mode": "Apply"})
    stage.await_requests(cpu="3")
    assert stage.replicas == 3
    stage.change({"blend": "Trajectory", "mode": "Paused"})
    stage.settled()
    stage.rollout_completes()
    stage.under(5000)
    stage.later(days=2)
    stage.arrives(3, 1667, 5000)
    assert memory_of(stage)["base"]["app"]["cpu"] == "3"
    steps_so_far = len(patches(plane, stage))

    stage.change({"blend": "Additive"})
    stage.settled()
    stage.under(5000)
    stage.later(minutes=2)
    stage.settled()
    assert len(patches(plane, stage)) == steps_so_far
    stage.hpa_measures(8000)
    stage.await_replicas(4)  # half the way from 3 to 5
    stage.change({"blend": "Trajectory"})
    stage.arrives(5, 1667, 8000)
    stage.await_ready()
