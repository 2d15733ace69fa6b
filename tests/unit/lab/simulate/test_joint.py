"""Joint scaling over days with the recommenders' own dynamics: it comes to rest at one place, what comes and goes is a
matter of replicas, and what each predecessor was given up for does not happen (DESIGN 7)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

import pytest

from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate import build
from tests.unit.lab.simulate.joint_build import (
    DAY,
    GIB,
    HOUR,
    LEAST,
    Run,
    Shape,
    joint,
    metric,
    run,
    wave,
    workload,
)

pytestmark = pytest.mark.long

FIVE = build.constant(5.0)
STARTS = (Shape(1, 1000, GIB), Shape(10, 500, GIB), Shape(6, 700, GIB))
"""No larger than the least that pods may be: larger first requests begin another path."""
CALLED_FOR = 6.25
"""Cores that the HPA calls for: 5, of which pods are to use no more than 80 percent."""


@dataclass(frozen=True)
class End:
    """Where 5 cores of load end: on the path at `replicas` x `cpu`, or one replica more where it comes from above and
    the demand is inside the overlap."""

    replicas: int
    cpu: int

    def is_at(self, shape: Shape) -> bool:
        return shape.replicas - self.replicas in (0, 1) and abs(shape.cpu - self.cpu) <= shape.cpu // 10


ENDS = {30: End(4, 1563), 50: End(3, 2084), 80: End(2, 3125)}


@cache
def found() -> dict[tuple[int, Shape], Run]:
    return {
        (weight, start): run(joint(weight), FIVE, days=2.5, begin=start)
        for weight in ENDS
        for start in STARTS
    }


@pytest.mark.parametrize("weight", ENDS)
def test_a_constant_load_ends_at_one_place_from_wherever_it_began(weight: int) -> None:
    """6.25 cores are called for: 4 x 1.56 at weight 30, 3 x 2.08 at 50, 2 x 3.13 at 80."""
    for start in STARTS:
        end = found()[weight, start].end
        assert ENDS[weight].is_at(end), (start, end)
        assert CALLED_FOR / 1.1 <= end.cores <= CALLED_FOR / 0.9 + end.cpu / 1000


def test_after_it_has_settled_nothing_changes() -> None:
    """It settles in the first hours. What other pods used at first makes memory too large for those that there are: it
    is taken back once, six hours after the first rollout, or when the recommender has begun its second day or third,
    and with it goes a replica that the demand no longer takes."""
    for (weight, start), outcome in found().items():
        key = weight, start
        assert len(outcome.steps("Replicas")) <= 3, key
        assert len(outcome.steps("Requests")) <= 4, key
        assert outcome.steps("Requests", 2 * HOUR, 6 * HOUR) == [], key
        assert outcome.steps("Replicas", 2 * HOUR, 6 * HOUR) == [], key
        late = outcome.changes(6 * HOUR)
        assert len(late) <= 1, key
        assert outcome.steps("Requests", 6 * HOUR) == late, key
        assert outcome.changes(49 * HOUR) == [], key
        assert outcome.result.totals.unmet_core_seconds == 0, key
        assert outcome.result.totals.ooms == 0, key


def test_sizes_do_not_feed_on_themselves() -> None:
    """No pod is ever larger than its share of the demand takes, whatever the VPA makes of what was before."""
    for (weight, start), outcome in found().items():
        largest = max(shape.cpu for when, shape in [*outcome.shapes, (DAY, outcome.end)] if when > 2 * HOUR)
        assert largest <= ENDS[weight].cpu * 1.1, (weight, start)


def test_it_does_not_matter_how_the_hpas_target_is_written() -> None:
    outcome = run(joint(50, metric("800m")), FIVE, days=2)
    assert ENDS[50].is_at(outcome.end)
    assert outcome.steps("Replicas", 2 * HOUR) == []


def test_a_vertical_stretch_does_not_grow_on_what_the_hpa_has_yet_to_measure() -> None:
    """While pods are replaced the HPA has no metrics, or those of other pods: not a word of that is demand. Replicas
    that are kept for it must not be made up for by larger pods, which would be measured next."""
    for target in (80, "800m"):
        for start in (*STARTS, Shape(2, 4000, GIB)):
            outcome = run(joint(100, metric(target)), FIVE, days=0.2, begin=start)
            # With an absolute target, the pods that are found say what it is meant for.
            most = 25_000 if (target, start.cpu) == ("800m", 4000) else 10_001
            assert max(shape.cpu for _, shape in outcome.shapes) <= most, (target, start)


def test_a_step_of_load_settles_in_a_few_changes() -> None:
    """Replicas come at once, sizes within the days that the usual demand takes to follow: a rollout each time that they
    are too small by more than a tenth, from 2.08 to 3.13 cores three of them."""
    outcome = run(joint(50), build.step(5.0, DAY, 10.0), days=6, begin=Shape(7, 1000, GIB))
    assert outcome.steps("Replicas", DAY)[0] <= DAY + 120
    assert len(outcome.steps("Replicas", DAY)) <= 4
    assert len(outcome.steps("Requests", DAY)) == 3
    assert outcome.changes(5 * DAY) == []
    assert outcome.end.cpu > outcome.at(DAY).cpu
    assert outcome.end.replicas > outcome.at(DAY).replicas
    assert outcome.result.totals.unmet_core_seconds == 0


@pytest.mark.parametrize("weight", [30, 50, 80])
def test_a_load_that_comes_back_takes_the_workload_back(weight: int) -> None:
    """Two hours of twice the load are a matter of replicas, and raise the usual demand of the day before by 10.4
    percent: one rollout, since that is more than the overlap. Then it is where it was."""
    load = build.Shape(lambda at: 10.0 if DAY <= at < DAY + 2 * HOUR else 5.0)
    outcome = run(joint(weight), load, days=2, begin=Shape(7, 1000, GIB))
    before, peak = outcome.at(DAY - 60), outcome.at(DAY + HOUR)
    assert peak.replicas > before.replicas
    assert abs(peak.cpu - before.cpu) <= before.cpu * 12 // 100
    assert abs(outcome.end.replicas - before.replicas) <= 1
    assert abs(outcome.end.cpu - before.cpu) <= before.cpu * 12 // 100
    assert len(outcome.steps("Replicas", DAY)) <= 4
    assert len(outcome.steps("Requests", DAY)) <= 1


FIVE_PODS = Shape(5, 1000, GIB)


def test_a_daily_wave_moves_replicas_and_after_the_first_day_no_sizes() -> None:
    outcome = run(joint(50), wave(2.0, 8.0), days=2, begin=FIVE_PODS)
    assert outcome.steps("Requests", DAY) == []
    assert len(outcome.steps("Replicas", DAY)) >= 4
    assert outcome.result.totals.unmet_share < 0.001
    assert outcome.result.totals.ooms == 0


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_noise_replaces_no_pods(spread: float) -> None:
    """Each minute another load: within HPA's tolerance and the overlap nothing moves, beyond it replicas do."""
    source = random.Random(1)
    loads = [5.0 * (1 + spread * (2 * source.random() - 1)) for _ in range(24 * 60)]
    outcome = run(joint(80), build.Shape(lambda at: loads[int(at // 60)]), days=1, begin=FIVE_PODS)
    assert outcome.steps("Requests", DAY / 2) == []
    assert spread > 0.1 or outcome.steps("Replicas", DAY / 2) == []
    assert outcome.result.totals.unmet_core_seconds == 0


def test_a_random_walk_is_always_served() -> None:
    source, load, loads = random.Random(7), 5.0, []
    for _ in range(2 * 24 * 12):
        load = min(20.0, max(1.0, load * (1 + 0.1 * (2 * source.random() - 1))))
        loads.append(load)
    outcome = run(joint(50), build.Shape(lambda at: loads[int(at // 300)]), days=2, begin=FIVE_PODS)
    assert outcome.result.totals.unmet_share < 0.001
    assert len(outcome.steps("Requests", DAY / 2)) <= 4


def test_pods_that_are_resized_in_place_follow_the_wave_and_none_restarts() -> None:
    resized = joint(50, updateStrategy={"type": "InPlace"})
    outcome = run(resized, wave(2.0, 8.0), days=1.5, begin=FIVE_PODS, workload=workload(resize="InPlace"))
    sizes = {shape.cpu for when, shape in outcome.shapes if when >= DAY}
    assert max(sizes) >= 1.3 * min(sizes)
    assert outcome.result.totals.restarts == 0
    assert outcome.result.totals.unmet_share < 0.001


def test_in_place_cpu_falls_although_the_node_has_no_room_for_more_memory() -> None:
    """Two pods use 450m of 2 cores, and nearly all of their memory. A kubelet allocates a resize as a whole."""
    spec = joint(100, updateStrategy={"type": "InPlace"})
    full = NodeModel(cpu=4000, memory=2 * GIB + 100 * build.MIB)
    container = build.container(
        limits={},
        requests={"cpu": 2000, "memory": GIB},
        cpu_base=0.0,
        cpu_per_unit=1000.0,
        memory_base=1000.0 * build.MIB,
        memory_per_unit=0.0,
    )
    spec["spec"]["hpa"]["template"]["spec"]["minReplicas"] = 2
    outcome = run(
        spec,
        build.constant(0.9),
        days=0.5,
        begin=Shape(2, 2000, GIB),
        nodes=full,
        workload=build.workload(container),
    )
    assert outcome.end == Shape(2, 1000, GIB)
    reasons = {event.reason for event in outcome.result.events}
    assert "ResizeDeferred" in reasons
    assert "RolledBack" not in reasons


USED = 0.8
"""The share of what is called for that pods are to use."""


def test_five_cores_are_never_allocated_as_nine() -> None:
    """1 to 5 cores at weight 50: blending changes, each recommender's answer to all of it, gave 3 x 3 cores."""
    outcome = run(joint(50), build.step(1.0 * USED, HOUR, 5.0 * USED), days=5)
    most = max(shape.cores for _, shape in outcome.shapes)
    # For two minutes there is one pod more, as the larger ones are new.
    assert most <= 5 / 0.9 + 1.25 * max(shape.cpu for _, shape in outcome.shapes) / 1000
    assert most < 9
    assert outcome.end.cores >= 5 / 1.1
    assert abs(outcome.end.replicas - 3) <= 1
    assert outcome.end.cpu == pytest.approx(1667, rel=0.2)


def test_who_speaks_first_does_not_take_it_all() -> None:
    """7, 15, 21 cores, and each time the HPA is there before the VPA has seen anything. When it has, replicas and cores
    of each are about equal again at weight 50, and not 9 x 2.4 cores; what is near is left alone."""
    load = build.Shape(lambda at: USED * (7.0 if at < 2 * DAY else 15.0 if at < 4 * DAY else 21.0))
    outcome = run(joint(50), load, days=9, begin=Shape(7, 1000, GIB))
    assert outcome.steps("Replicas", 2 * DAY)[0] < outcome.steps("Requests", 2 * DAY)[0]
    assert outcome.end.cpu / 1000 == pytest.approx(21**0.5, rel=0.25)
    assert 0.5 <= outcome.end.replicas / (outcome.end.cpu / 1000) <= 2


def test_a_load_that_comes_back_leaves_no_few_large_idle_pods() -> None:
    """Three days of four times the load, so that sizes follow as well, and back, but for what is left alone: twice the
    overlap of the size that is there."""
    load = build.Shape(lambda at: 20.0 if DAY <= at < 4 * DAY else 5.0)
    outcome = run(joint(50), load, days=9, begin=Shape(7, 1000, GIB))
    before, peak = outcome.at(DAY - 60), outcome.at(4 * DAY - 60)
    assert peak.cpu > 1.4 * before.cpu
    assert abs(outcome.end.replicas - before.replicas) <= 1
    assert before.cpu * 0.9 <= outcome.end.cpu
    assert outcome.end.cpu - 2 * outcome.end.cpu // 10 <= before.cpu * 1.05  # the usual demand fades for ever
    assert outcome.end.cpu <= 0.7 * peak.cpu
    assert outcome.end.cores <= 6.25 / 0.9 + outcome.end.cpu / 1000


def test_a_pod_pinned_at_its_nodes_headroom_is_not_kept_there() -> None:
    """It can use 500m more than it requests, and a smaller change than a core is not made: it could never show a need
    that is large enough. `minChangeTimeout` is 15 minutes."""
    least = {"minChange": {"cpu": {"value": "1"}}}
    policy = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": LEAST}]}}
    vpa = {"deploy": True, "template": {"spec": policy}, "scaleUp": least}
    spec = joint(100, vpa=vpa, hpa={"deploy": False})
    outcome = run(spec, build.constant(4.0), days=0.5, nodes=NodeModel(headroom=500))
    assert outcome.steps("Requests")[0] <= 20 * 60
    assert outcome.end.replicas == 1
    assert outcome.end.cpu >= 4000


@pytest.mark.parametrize("weight", [30, 50, 80])
@pytest.mark.parametrize("load", [1.3, 4.7])
def test_utilization_and_the_same_cpus_vpa_do_not_chase_each_other(weight: int, load: float) -> None:
    """Larger requests lower the utilization, fewer pods raise what each of them uses: at a constant load both rest."""
    outcome = run(joint(weight), build.constant(load), days=1.5)
    assert len(outcome.changes()) <= 6
    assert [when for when in outcome.changes(2 * HOUR) if when < DAY] == []


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
    outcome = run(spec, build.constant(6.4), days=0.05, begin=Shape(8, 1000, GIB), workload=model, step=15.0)
    ooms = [event.time for event in outcome.result.events if event.kind == "OOM"]
    before = outcome.at(ooms[0] - 15)
    assert before.replicas >= 5
    assert outcome.end.memory > before.memory
    assert len(outcome.steps("Requests", ooms[0])) == 1
    ready = outcome.result.series.ready[int(ooms[0] / 15) :]
    assert min(ready) >= before.replicas - 1 - 2, "one is replaced, and one or two just ran out of memory"


def test_outside_its_window_the_hpa_does_not_reach_the_workload() -> None:
    """It writes into `spec.replicas`. What the window holds, larger pods make up for; at noon it opens, and the load
    of the afternoon takes replicas."""
    held = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    spec = joint(50, maintenanceTimeWindow={"begin": "120000+0000", "end": "130000+0000"})
    spec["spec"]["hpa"] |= {"scaleUp": held, "scaleDown": held}
    noon = 12 * HOUR
    load = build.Shape(lambda at: 1.6 if at < HOUR else 4.8 if at < noon else 8.0)
    outcome = run(spec, load, days=0.6, begin=Shape(2, 1000, GIB))
    assert outcome.steps("Replicas", 0, noon) == []
    assert outcome.steps("Replicas", noon, noon + 300) != []
    assert outcome.at(2 * HOUR).cores >= 6 / 1.1
    assert len(outcome.steps("Requests", 0, noon)) <= 2
    assert outcome.result.totals.unmet_share < 0.01


def test_without_a_horizontal_weight_the_hpa_does_not_reach_the_workload() -> None:
    outcome = run(joint(100), build.step(1.6, HOUR, 4.8), days=0.5, begin=Shape(1, 2000, GIB))
    assert outcome.steps("Replicas") == []
    assert outcome.end.cpu >= 6000 / 1.1
