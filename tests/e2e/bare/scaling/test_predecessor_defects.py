"""Why HVPA was given up by those who made it (DESIGN 7): what was wrong with it, each as a test that forbids it.

The recommenders are played: the HPA controller by its algorithm and without stabilization, so that nothing damps, and
the VPA recommender by what each pod uses. Where days must go by, all that the operator remembers is made that much
older. The same with the real recommenders is in `full/test_joint_live.py`, and over virtual days in the simulator's
tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, closed_window, merged, request, trajectory, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario

CORE: Json = {"cpu": "1"}
SPEAKERS: dict[str, tuple[Callable[[Scenario, int], None], ...]] = {
    "the HPA speaks first": (Scenario.hpa_measures, Scenario.vpa_sees),
    "the VPA speaks first": (Scenario.vpa_sees, Scenario.hpa_measures),
}


def joint(
    new_scenario: NewScenario,
    *,
    percent: int = 50,
    replicas: int = 1,
    cpu: str = "1",
    base: Json | None = None,
    **more: Any,
) -> Scenario:
    """A scenario of so many replicas with this request, on the path of this weight that begins at `base`; `more` is of
    the Hvpa's spec."""
    changes = merged(trajectory(least=base or CORE), weight(percent))
    scenario = new_scenario(create=False, replicas=replicas, changes={**changes, **more})
    request(scenario.workload, cpu=cpu, memory="500M")
    return scenario.create()


@pytest.mark.parametrize("speaker", SPEAKERS)
def test_five_cores_are_never_allocated_as_nine(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, speaker: str
) -> None:
    """Case 1. At weight 50 Additive makes 3 x 3 cores of five, since each axis takes half of its own wish (see
    `test_joint.py`)."""
    scenario = joint(new_scenario)
    scenario.days_under(1000)
    for speaks in SPEAKERS[speaker]:
        speaks(scenario, 5000)
    scenario.arrives(5, 1000, 5000)
    scenario.days_under(5000)
    scenario.arrives(4, 1667, 5000)
    scenario.await_unblocked()
    # Until all pods are replaced there are as many as before: five of the new size are asked for, but never there.
    # Three serve exactly, so that the overlap keeps the fourth where there were more.
    seen = [(one.replicas, round(one.cpu / 100)) for one in scenario.versions(plane.audit)]
    assert seen == [(1, 10), (5, 10), (5, 17), (4, 17)]


def test_the_hpa_does_not_take_all_growth_by_speaking_first(
    new_scenario: NewScenario, operator: Operator
) -> None:
    """Case 2: .7, 1.5 and 2.1 cores. Each time the HPA has served the rise with replicas before the VPA sees it. At
    weight 50 replicas and size are to grow by the same factor: n replicas of n x 100m; and one more, which the overlap
    keeps since there were more before. A size is left alone while it is off by less than twice the overlap, as the last
    one is. By the HPA alone there were 21 replicas of 100m."""
    scenario = joint(new_scenario, cpu="100m", base={"cpu": "100m"})
    scenario.days_under(100)
    for load, shape in {700: (4, 234), 1500: (5, 375), 2100: (6, 375)}.items():
        cpu = scenario.request("cpu")
        scenario.arrives(-(-load // cpu), cpu, load)
        scenario.days_under(load)
        scenario.arrives(*shape, load)


def test_a_load_that_goes_and_comes_back_leaves_no_few_large_idle_pods(
    new_scenario: NewScenario, operator: Operator
) -> None:
    """Case 3: within hours only the number of pods goes along, over days the size does too; either way it ends where
    it began."""
    scenario = joint(new_scenario)
    scenario.arrives(2, 1000, 1800)
    scenario.days_under(1800)
    begun = scenario.target["spec"]
    scenario.arrives(6, 1000, 5400)
    scenario.arrives(2, 1000, 1800)
    assert scenario.target["spec"] == begun

    scenario.arrives(6, 1000, 5400)
    scenario.days_under(5400)
    scenario.arrives(4, 1800, 5400)
    scenario.arrives(2, scenario.request("cpu"), 1800)
    scenario.days_under(1800)
    scenario.arrives(2, 1000, 1800)
    assert scenario.target["spec"] == begun


def test_usage_pinned_by_its_node_is_not_held_below_min_change_for_ever(
    new_scenario: NewScenario, operator: Operator
) -> None:
    """Case 4: no pod can use more than 500m beyond its request, and less than a core is no reason to change it. Each
    raise goes through after `minChangeTimeout` (15 minutes, doubled each time), and so to where there is enough."""
    least = {"scaleUp": {"minChange": {"cpu": {"value": "1"}}}}
    scenario = joint(new_scenario, hpa=None, vpa=least)
    for minutes, size, seen in ((15, "1", "1500m"), (30, "1500m", "2"), (60, "2", "2500m")):
        with scenario.held(operator, "MinChange", "vertical"):
            scenario.vpa_recommends(cpu=seen)
        scenario.later(minutes=minutes - 1)
        scenario.await_blocked("MinChange", "vertical")
        assert scenario.requests["cpu"] == size
        scenario.later(minutes=2)
        scenario.await_requests(cpu=seen)
        scenario.rollout_completes()
    scenario.await_unblocked()


@pytest.mark.parametrize(("replicas", "cpu", "settled"), [(1, "3", 6), (10, "300m", 7), (3, "1", 6)])
def test_an_hpa_on_utilization_and_a_vpa_on_the_same_cpu_do_not_chase_each_other(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, replicas: int, cpu: str, settled: int
) -> None:
    """Case 5: what the VPA gives to each pod lowers the utilization, so that the HPA takes pods away, so that each uses
    more. At a constant load of 3 cores it settles in two changes; then a dozen measurements, each a little off, change
    nothing (an hour and days are seen in the simulator)."""
    scenario = joint(new_scenario, replicas=replicas, cpu=cpu, base={"cpu": "100m"})
    scenario.hpa_measures(3000)
    scenario.vpa_sees(3000)
    scenario.await_requests(cpu="500m")
    scenario.arrives(settled, 500, 3000)
    scenario.await_unblocked()
    before = scenario.target["spec"]
    assert len(scenario.versions(plane.audit)) <= 1 + 2
    for number in range(12):
        scenario.minutes_under(3000 + (-1) ** number * (number % 4) * 60)
        scenario.vpa_sees(3000 + number)
    scenario.settled()
    assert scenario.target["spec"] == before
    assert len(scenario.versions(plane.audit)) <= 1 + 2


def test_one_oom_does_not_restart_every_replica_at_once(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    """Case 6: of four pods one runs out of memory. The template is changed, once, and the workload's own controller
    replaces the pods within its limits: the operator touches none, and starts no other rollout before the end."""
    scenario = joint(new_scenario, replicas=4, cpu="2", base={"cpu": "500m", "memory": "200M"})
    names = [scenario.pod(str(number)) for number in range(3)]
    scenario.under(8000, 4 * 450_000_000)
    scenario.await_condition("VpaActive", "True", "Recommending")
    ended = {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(minutes=5), "finishedAt": ago()}
    names.append(scenario.pod("oom", container_status={"state": {}, "lastState": {"terminated": ended}}))
    scenario.await_requests(memory="604858k", cpu="2")  # 500M and 100Mi
    scenario.rollout(complete=False)
    scenario.vpa_sees(8000, 4 * 1_200_000_000)
    scenario.await_blocked("Rollout", "vertical")
    writes = plane.audit.requests(user=USER, writes=True, namespace=scenario.namespace)
    assert [one for one in writes if one.resource in ("pods", "replicasets")] == []
    changes = [one.body["spec"] for one in writes if one.resource == "deployments" and one.code == 200]
    assert [set(one) for one in changes] == [{"template"}]
    assert {one["metadata"]["name"] for one in scenario.api.list("Pod", scenario.namespace)} == set(names)


LOCKED: dict[str, tuple[int, Json, str]] = {
    "a weight of 100": (100, {}, ""),
    "mode Off": (50, {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}, "UpdatePolicy"),
    "a closed window": (
        50,
        merged(closed_window(), {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}),
        "MaintenanceWindow",
    ),
}


@pytest.mark.parametrize("lock", LOCKED)
def test_the_hpa_never_reaches_the_workload_past_weight_mode_and_window(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, lock: str
) -> None:
    """Case 7: the HPA writes its wish to the Hvpa and nowhere else. Where the replicas are held, larger pods serve."""
    percent, more, reason = LOCKED[lock]
    scenario = joint(new_scenario, percent=percent)
    scenario.change(more)
    scenario.settled()
    scenario.vpa_sees(1000)
    scenario.await_condition("VpaActive", "True", "Recommending")
    scenario.hpa_measures(4000)
    if reason:
        scenario.await_event("ScalingBlocked", f"held by {reason}")
    scenario.await_requests(cpu="4")
    for _ in range(3):
        scenario.minutes_under(4000)
        scenario.vpa_sees(4000)
    scenario.settled()
    assert scenario.requests["cpu"] == "4"
    assert {one.replicas for one in scenario.versions(plane.audit)} == {1}
    assert set(scenario.hpa["spec"]["scaleTargetRef"].values()) >= {"Hvpa", scenario.name}
