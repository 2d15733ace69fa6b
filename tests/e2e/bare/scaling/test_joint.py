"""`blend: Trajectory` on a real API server: both axes are solved together, by weights and by `trajectory.intervals`
(DESIGN 5.4, 5.5). The test acts as the recommenders and the workload's controller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise

import pytest

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, request, steps, trajectory, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario

GIBI = 2**30
BY_WEIGHTS = merged(trajectory(least={"cpu": "1"}), weight(50))
"""A path that begins at one replica of one core; at equal factors it grows in both."""
TABLE = steps((1, "500m", "2Gi"), (2, "1", "4Gi"), (3, "2", "8Gi"), (4, "4", "16Gi"), (5, "8", "32Gi"))
"""The example of DESIGN 5.5."""


def joint(
    new_scenario: NewScenario, changes: Json, *, replicas: int = 1, cpu: str = "1", memory: str = "500M"
) -> Scenario:
    """A scenario of so many replicas that request this."""
    scenario = new_scenario(create=False, replicas=replicas, changes=changes)
    request(scenario.workload, cpu=cpu, memory=memory)
    return scenario.create()


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
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, path: str
) -> None:
    changes, begin, load, replicas, requests = ONE_PATCH[path]
    scenario = joint(new_scenario, {**changes, "mode": "Paused"}, cpu=begin["cpu"], memory=begin["memory"])
    scenario.under(*load)
    scenario.soon(lambda: scenario.recommends(replicas, **requests), "a recommendation for both axes")
    assert scenario.patches(plane.audit, USER) == []
    scenario.later(days=2)  # the VPA's targets are of one pod, and so they stay for a while
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(replicas)
    resources = {"name": "app", "resources": {"requests": requests}}
    patch = {"replicas": replicas, "template": {"spec": {"containers": [resources]}}}
    assert scenario.patches(plane.audit, USER) == [patch]
    scenario.minutes_under(*load)
    scenario.await_unblocked()
    assert scenario.patches(plane.audit, USER) == [patch]


TALLER: dict[str, tuple[Json, int, str]] = {
    "by weights": (BY_WEIGHTS, 5, "1667m"),
    "by intervals": (merged(trajectory(), steps((2, "2", "4Gi"), (4, "4", "8Gi"))), 6, "2"),
}


@pytest.mark.parametrize("path", TALLER)
def test_requests_go_up_before_replicas_go_down(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, path: str
) -> None:
    """Five or six small pods become four large ones. While old and new pods are there, as many of the smaller ones as
    there are replicas serve the load at every version of the Deployment."""
    changes, replicas, cpu = TALLER[path]
    load = replicas * 1000
    scenario = joint(new_scenario, changes, replicas=replicas)
    scenario.replace_pods()
    scenario.under(load)
    scenario.await_requests(cpu=cpu)
    scenario.rollout(complete=False)
    scenario.await_blocked("PodReplacement", "horizontal", "down")
    for _ in range(3):
        scenario.hpa_measures(load)
        scenario.later(minutes=2)
    assert scenario.replicas == replicas
    scenario.arrives(4, parse_cpu(cpu), load)
    scenario.await_unblocked()
    assert [set(one) for one in scenario.patches(plane.audit, USER)] == [{"template"}, {"replicas"}]
    seen = scenario.versions(plane.audit)
    for before, after in pairwise(seen):
        assert after.replicas * min(before.cpu, after.cpu) >= load


def memory_of(scenario: Scenario) -> Json:
    """What the operator remembers of the path and of usual demand."""
    axis: Json = scenario.status["axes"]["vertical"]
    return {key: axis[key] for key in ("base", "usualDemand")}


def test_after_a_sigkill_the_same_decisions_follow_from_what_the_status_remembers(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = joint(new_scenario, BY_WEIGHTS, replicas=5)
    scenario.replace_pods()
    scenario.under(5000)
    scenario.await_requests(cpu="1667m")
    scenario.rollout(complete=False)
    scenario.await_blocked("PodReplacement", "horizontal", "down")
    before = memory_of(scenario)
    assert before["base"] == {"app": {"cpu": "1", "memory": "500M"}}
    assert before["usualDemand"][0]["mean"] == 5000
    with killed(operator):
        pass
    scenario.settled()
    assert memory_of(scenario) == before
    with killed(operator):  # between the two patches of one step
        scenario.replace_pods()
        scenario.rollout_completes()
        scenario.hpa_measures(5000)
    scenario.arrives(4, 1667, 5000)
    assert len(scenario.patches(plane.audit, USER)) == 2

    # It still knows which demand is usual: a peak is served by replicas of the size that there is.
    with killed(operator):
        scenario.hpa_measures(10_000)
        scenario.later(minutes=2)
    scenario.arrives(6, 1667, 10_000)
    # And where its path begins: at 1 core. From 1667m on, three replicas would do.
    scenario.days_under(10_000)
    with killed(operator):
        scenario.later(hours=1)
    scenario.arrives(5, 2500, 10_000)
    scenario.await_unblocked()


@pytest.mark.parametrize("path", TALLER)
def test_at_rest_nothing_is_written_though_measurements_vary(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, path: str
) -> None:
    changes, replicas, cpu = TALLER[path]
    load = replicas * 1000
    scenario = joint(new_scenario, changes, replicas=replicas)
    scenario.under(load)
    scenario.arrives(4, parse_cpu(cpu), load)
    scenario.await_unblocked()
    scenario.settled()
    scenario.soon(lambda: scenario.status["replicas"] == 4, "the count in the status")
    version = scenario.hvpa["metadata"]["resourceVersion"]
    mark = plane.audit.mark()
    for number in range(30):
        scenario.hpa_measures(load - (number % 5) * load // 100)
        scenario.vpa_sees(load + number * 5)
    before = operator.metric("hvpa_queue_depth")
    scenario.soon(lambda: operator.metric("hvpa_queue_depth") == 0, f"an empty queue, not {before}")
    requests = plane.audit.requests(mark, user=USER, namespace=scenario.namespace)
    assert [str(one) for one in requests] == []
    assert scenario.hvpa["metadata"]["resourceVersion"] == version


def test_the_blend_may_be_switched_from_additive_to_trajectory_and_back(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    """The nine cores that Additive makes of five become five, and stay so when Additive is back."""
    least = {"minChange": {"cpu": {"value": "100m"}}}
    changes = merged(BY_WEIGHTS, {"vpa": {"scaleUp": least, "scaleDown": least}})
    scenario = joint(new_scenario, {**changes, "blend": "Additive", "mode": "Paused"})
    scenario.under(5000)
    scenario.soon(lambda: scenario.status["recommended"]["replicas"] == 3, "a recommendation")
    scenario.change({"mode": "Apply"})
    scenario.await_requests(cpu="3")
    assert scenario.replicas == 3
    scenario.change({"blend": "Trajectory", "mode": "Paused"})
    scenario.settled()
    scenario.rollout_completes()
    scenario.under(5000)
    scenario.later(days=2)
    scenario.arrives(3, 1667, 5000)
    assert memory_of(scenario)["base"]["app"]["cpu"] == "3"
    steps_so_far = len(scenario.patches(plane.audit, USER))

    scenario.change({"blend": "Additive"})
    scenario.settled()
    scenario.under(5000)
    scenario.later(minutes=2)
    scenario.settled()
    assert len(scenario.patches(plane.audit, USER)) == steps_so_far
    scenario.hpa_measures(8000)
    scenario.await_replicas(4)  # half the way from 3 to 5
    scenario.change({"blend": "Trajectory"})
    scenario.arrives(5, 1667, 8000)
    scenario.await_ready()
