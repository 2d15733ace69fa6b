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
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play

CORE: Json = {"cpu": "1"}
SPEAKERS: dict[str, tuple[Callable[[Stage, int], None], ...]] = {
    "the HPA speaks first": (Stage.hpa_measures, Stage.vpa_sees),
    "the VPA speaks first": (Stage.vpa_sees, Stage.hpa_measures),
}


def joint(
    play: Play, *, percent: int = 50, replicas: int = 1, cpu: str = "1", base: Json | None = None, **more: Any
) -> Stage:
    """A stage of so many replicas with this request, on the path of this weight that begins at `base`; `more` is of the
    Hvpa's spec."""
    changes = merged(trajectory(least=base or CORE), weight(percent))
    stage = play(create=False, replicas=replicas, changes={**changes, **more})
    request(stage.workload, cpu=cpu, memory="500M")
    return stage.create()


@pytest.mark.parametrize("speaker", SPEAKERS)
def test_five_cores_are_never_allocated_as_nine(
    plane: ControlPlane, play: Play, operator: Operator, speaker: str
) -> None:
    """Case 1. At weight 50 Additive makes 3 x 3 cores of five, since each axis takes half of its own wish (see
    `test_joint.py`)."""
    stage = joint(play)
    stage.days_under(1000)
    for speaks in SPEAKERS[speaker]:
        speaks(stage, 5000)
    stage.arrives(5, 1000, 5000)
    stage.days_under(5000)
    stage.arrives(4, 1667, 5000)
    stage.await_unblocked()
    # Until all pods are replaced there are as many as before: five of the new size are asked for, but never there.
    # Three serve exactly, so that the overlap keeps the fourth where there were more.
    seen = [(one.replicas, round(one.cpu / 100)) for one in stage.versions(plane.audit)]
    assert seen == [(1, 10), (5, 10), (5, 17), (4, 17)]


def test_the_hpa_does_not_take_all_growth_by_speaking_first(play: Play, operator: Operator) -> None:
    """Case 2: .7, 1.5 and 2.1 cores. Each time the HPA has served the rise with replicas before the VPA sees it. At
    weight 50 replicas and size are to grow by the same factor: n replicas of n x 100m; and one more, which the overlap
    keeps since there were more before. A size is left alone while it is off by less than twice the overlap, as the last
    one is. By the HPA alone there were 21 replicas of 100m."""
    stage = joint(play, cpu="100m", base={"cpu": "100m"})
    stage.days_under(100)
    for load, shape in {700: (4, 234), 1500: (5, 375), 2100: (6, 375)}.items():
        cpu = stage.request("cpu")
        stage.arrives(-(-load // cpu), cpu, load)
        stage.days_under(load)
        stage.arrives(*shape, load)


def test_a_load_that_goes_and_comes_back_leaves_no_few_large_idle_pods(
    play: Play, operator: Operator
) -> None:
    """Case 3: within hours only the number of pods goes along, over days the size does too; either way it ends where
    it began."""
    stage = joint(play)
    stage.arrives(2, 1000, 1800)
    stage.days_under(1800)
    begun = stage.target["spec"]
    stage.arrives(6, 1000, 5400)
    stage.arrives(2, 1000, 1800)
    assert stage.target["spec"] == begun

    stage.arrives(6, 1000, 5400)
    stage.days_under(5400)
    stage.arrives(4, 1800, 5400)
    stage.arrives(2, stage.request("cpu"), 1800)
    stage.days_under(1800)
    stage.arrives(2, 1000, 1800)
    assert stage.target["spec"] == begun


def test_usage_pinned_by_its_node_is_not_held_below_min_change_for_ever(
    play: Play, operator: Operator
) -> None:
    """Case 4: no pod can use more than 500m beyond its request, and less than a core is no reason to change it. Each
    raise goes through after `minChangeTimeout` (15 minutes, doubled each time), and so to where there is enough."""
    least = {"scaleUp": {"minChange": {"cpu": {"value": "1"}}}}
    stage = joint(play, hpa=None, vpa=least)
    for minutes, size, seen in ((15, "1", "1500m"), (30, "1500m", "2"), (60, "2", "2500m")):
        with stage.held(operator, "MinChange", "vertical"):
            stage.vpa_recommends(cpu=seen)
        stage.later(minutes=minutes - 1)
        stage.await_blocked("MinChange", "vertical")
        assert stage.requests["cpu"] == size
        stage.later(minutes=2)
        stage.await_requests(cpu=seen)
        stage.rollout_completes()
    stage.await_unblocked()


@pytest.mark.parametrize(("replicas", "cpu", "settled"), [(1, "3", 6), (10, "300m", 7), (3, "1", 6)])
def test_an_hpa_on_utilization_and_a_vpa_on_the_same_cpu_do_not_chase_each_other(
    plane: ControlPlane, play: Play, operator: Operator, replicas: int, cpu: str, settled: int
) -> None:
    """Case 5: what the VPA gives to each pod lowers the utilization, so that the HPA takes pods away, so that each uses
    more. At a constant load of 3 cores it settles in two changes; then a dozen measurements, each a little off, change
    nothing (an hour and days are seen in the simulator)."""
    stage = joint(play, replicas=replicas, cpu=cpu, base={"cpu": "100m"})
    stage.hpa_measures(3000)
    stage.vpa_sees(3000)
    stage.await_requests(cpu="500m")
    stage.arrives(settled, 500, 3000)
    stage.await_unblocked()
    before = stage.target["spec"]
    assert len(stage.versions(plane.audit)) <= 1 + 2
    for number in range(12):
        stage.minutes_under(3000 + (-1) ** number * (number % 4) * 60)
        stage.vpa_sees(3000 + number)
    stage.settled()
    assert stage.target["spec"] == before
    assert len(stage.versions(plane.audit)) <= 1 + 2


def test_one_oom_does_not_restart_every_replica_at_once(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    """Case 6: of four pods one runs out of memory. The template is changed, once, and the workload's own controller
    replaces the pods within its limits: the operator touches none, and starts no other rollout before the end."""
    stage = joint(play, replicas=4, cpu="2", base={"cpu": "500m", "memory": "200M"})
    names = [stage.pod(str(number)) for number in range(3)]
    stage.under(8000, 4 * 450_000_000)
    stage.await_condition("VpaActive", "True", "Recommending")
    ended = {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(minutes=5), "finishedAt": ago()}
    names.append(stage.pod("oom", container_status={"state": {}, "lastState": {"terminated": ended}}))
    stage.await_requests(memory="604858k", cpu="2")  # 500M and 100Mi
    stage.rollout(complete=False)
    stage.vpa_sees(8000, 4 * 1_200_000_000)
    stage.await_blocked("Rollout", "vertical")
    writes = plane.audit.requests(user=USER, writes=True, namespace=stage.namespace)
    assert [one for one in writes if one.resource in ("pods", "replicasets")] == []
    changes = [one.body["spec"] for one in writes if one.resource == "deployments" and one.code == 200]
    assert [set(one) for one in changes] == [{"template"}]
    assert {one["metadata"]["name"] for one in stage.api.list("Pod", stage.namespace)} == set(names)


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
    plane: ControlPlane, play: Play, operator: Operator, lock: str
) -> None:
    """Case 7: the HPA writes its wish to the Hvpa and nowhere else. Where the replicas are held, larger pods serve."""
    percent, more, reason = LOCKED[lock]
    stage = joint(play, percent=percent)
    stage.change(more)
    stage.settled()
    stage.vpa_sees(1000)
    stage.await_condition("VpaActive", "True", "Recommending")
    stage.hpa_measures(4000)
    if reason:
        stage.await_event("ScalingBlocked", f"held by {reason}")
    stage.await_requests(cpu="4")
    for _ in range(3):
        stage.minutes_under(4000)
        stage.vpa_sees(4000)
    stage.settled()
    assert stage.requests["cpu"] == "4"
    assert {one.replicas for one in stage.versions(plane.audit)} == {1}
    assert set(stage.hpa["spec"]["scaleTargetRef"].values()) >= {"Hvpa", stage.name}
