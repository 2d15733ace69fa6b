"""Why HPA and VPA were not combined before: what each predecessor was given up for does not happen (DESIGN 7)."""

from __future__ import annotations

import pytest

from hvpa.simulate.model import NodeModel
from tests.unit.simulate import build
from tests.unit.simulate.joint_build import DAY, GIB, HOUR, LEAST, Shape, joint, run

pytestmark = pytest.mark.untraced

USED = 0.8
"""The share of what is called for that pods are to use."""


def test_five_cores_are_never_allocated_as_nine() -> None:
    """1 to 5 cores at weight 50: blending changes, each recommender's answer to all of it, gave 3 x 3 cores."""
    one = run(joint(50), build.step(1.0 * USED, HOUR, 5.0 * USED), days=5)
    most = max(shape.cores for _, shape in one.shapes)
    assert most <= 5 / 0.9 + max(shape.cpu for _, shape in one.shapes) / 1000
    assert most < 9
    assert one.end.cores >= 5 / 1.1
    assert abs(one.end.replicas - 3) <= 1
    assert one.end.cpu == pytest.approx(1667, rel=0.2)


def test_who_speaks_first_does_not_take_it_all() -> None:
    """7, 15, 21 cores, and each time the HPA is there before the VPA has seen anything. When it has, replicas and cores
    of each are about equal again at weight 50, and not 9 x 2.4 cores; what is near is left alone."""
    load = build.Shape(lambda at: USED * (7.0 if at < 2 * DAY else 15.0 if at < 4 * DAY else 21.0))
    one = run(joint(50), load, days=9, begin=Shape(3, 2400, GIB))
    assert one.steps("Replicas", 2 * DAY)[0] < one.steps("Requests", 2 * DAY)[0]
    assert one.end.cpu / 1000 == pytest.approx(21**0.5, rel=0.2)
    assert 0.5 <= one.end.replicas / (one.end.cpu / 1000) <= 2


def test_a_load_that_comes_back_leaves_no_few_large_idle_pods() -> None:
    """Three days of four times the load, so that sizes follow as well, and back, but for what is left alone: twice the
    overlap of the size that is there."""
    load = build.Shape(lambda at: 20.0 if DAY <= at < 4 * DAY else 5.0)
    one = run(joint(50), load, days=9, begin=Shape(3, 2084, GIB))
    before, peak = one.at(DAY - 60), one.at(4 * DAY - 60)
    assert peak.cpu > 1.4 * before.cpu
    assert abs(one.end.replicas - before.replicas) <= 1
    assert before.cpu * 0.9 <= one.end.cpu
    assert one.end.cpu - 2 * one.end.cpu // 10 <= before.cpu * 1.05  # the usual demand fades for ever
    assert one.end.cpu <= 0.7 * peak.cpu
    assert one.end.cores <= 6.25 / 0.9 + one.end.cpu / 1000


def test_a_pod_pinned_at_its_nodes_headroom_is_not_kept_there() -> None:
    """It can use 500m more than it requests, and a smaller change than a core is not made: it could never show a need
    that is large enough. `minChangeTimeout` is 15 minutes."""
    least = {"minChange": {"cpu": {"value": "1"}}}
    policy = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": LEAST}]}}
    vpa = {"deploy": True, "template": {"spec": policy}, "scaleUp": least}
    spec = joint(100, vpa=vpa, hpa={"deploy": False})
    one = run(spec, build.constant(4.0), days=0.5, nodes=NodeModel(headroom=500))
    assert one.steps("Requests")[0] <= 20 * 60
    assert one.end.replicas == 1
    assert one.end.cpu >= 4000


@pytest.mark.parametrize("weight", [30, 50, 80])
@pytest.mark.parametrize("load", [1.3, 4.7])
def test_utilization_and_the_same_cpus_vpa_do_not_chase_each_other(weight: int, load: float) -> None:
    """Larger requests lower the utilization, fewer pods raise what each of them uses: at a constant load both rest."""
    one = run(joint(weight), build.constant(load), days=1.5)
    assert len(one.changes()) <= 6
    assert [when for when in one.changes(2 * HOUR) if when < DAY] == []


def test_one_oom_does_not_restart_every_replica_at_once() -> None:
    """A leak: the pods, which a rollout has started one after the other, run out of memory one after the other (the VPA
    may do nothing about it before). What is done about the first one replaces them as slowly as the workload allows:
    one at a time."""
    leaking = build.container(
        requests={"cpu": 1000, "memory": GIB},
        limits={"memory": GIB},
        cpu_base=0.0,
        cpu_per_unit=1000.0,
        memory_base=700.0 * build.MIB,
        memory_leak=600 * build.MIB / 3600,
    )
    model = build.workload(leaking, start_up=60.0, max_surge=0, max_unavailable=1)
    slow = {"minChange": {"memory": {"value": "100Gi"}}, "minChangeTimeout": "48h"}
    spec = joint(20, vpa={"deploy": True, "template": {}, "scaleUp": slow})
    one = run(spec, build.constant(6.4), days=0.05, begin=Shape(8, 1000, GIB), workload=model, step=15.0)
    ooms = [event.time for event in one.result.events if event.kind == "OOM"]
    before = one.at(ooms[0] - 15)
    assert before.replicas >= 5
    assert one.end.memory > before.memory
    assert len(one.steps("Requests", ooms[0])) == 1
    ready = one.result.series.ready[int(ooms[0] / 15) :]
    assert min(ready) >= before.replicas - 1 - 2, "one is replaced, and one or two just ran out of memory"


def test_outside_its_window_the_hpa_does_not_reach_the_workload() -> None:
    """It writes into `spec.replicas`. What the window holds, larger pods make up for; at noon, it opens."""
    held = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    spec = joint(50, maintenanceTimeWindow={"begin": "120000+0000", "end": "130000+0000"})
    spec["spec"]["hpa"] |= {"scaleUp": held, "scaleDown": held}
    one = run(spec, build.step(1.6, HOUR, 4.8), days=0.6, begin=Shape(2, 1000, GIB))
    noon = 12 * HOUR
    assert one.steps("Replicas", 0, noon) == []
    assert one.steps("Replicas", noon, noon + 300) != []
    assert one.at(2 * HOUR).cores >= 6 / 1.1
    assert len(one.steps("Requests", 0, noon)) <= 2
    assert one.result.totals.unmet_share < 0.01


def test_without_a_horizontal_weight_the_hpa_does_not_reach_the_workload() -> None:
    one = run(joint(100), build.step(1.6, HOUR, 4.8), days=0.5, begin=Shape(1, 2000, GIB))
    assert one.steps("Replicas") == []
    assert one.end.cpu >= 6000 / 1.1
