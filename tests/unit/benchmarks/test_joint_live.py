"""Jumps on the local cluster: the arithmetic of what was seen, and the objects that are made."""

from __future__ import annotations

import pytest

from benchmarks.joint.jumps import LIVE
from benchmarks.joint.live import WorkloadObservation, is_met, objects, reaction, work
from benchmarks.joint.policies import POLICIES


def seen(at: float, **facts: bool) -> WorkloadObservation:
    nothing = dict.fromkeys(("unmet", "shown", "looked", "grown", "settled"), False)
    return WorkloadObservation(at, **{**nothing, **facts})


def test_the_phases_are_the_times_between_what_was_seen_first() -> None:
    outcome = reaction(
        [
            seen(0, unmet=True, settled=True),
            seen(20, unmet=True, shown=True, settled=True),
            seen(30, unmet=True, shown=True, looked=True, settled=True),
            seen(31, unmet=True, shown=True, looked=True, grown=True),
            seen(60, shown=True, looked=True, grown=True, settled=True),
            seen(61, looked=True, grown=True, settled=True),
        ]
    )
    assert (outcome.metric_age, outcome.hpa_period, outcome.gates, outcome.start_up) == (20, 10, 1, 29)
    assert (outcome.total, outcome.cover_seconds, outcome.unmet_seconds, outcome.covered) == (
        31,
        60,
        60,
        True,
    )


def test_cover_is_the_longest_time_without_a_break() -> None:
    outcome = reaction(
        [seen(0, unmet=True), seen(50), seen(60, unmet=True), seen(65, grown=True), seen(70, grown=True)]
    )
    assert (outcome.cover_seconds, outcome.unmet_seconds) == (50, 55)


def test_what_grew_before_the_hpa_looked_has_no_phases_before() -> None:
    """Memory that ran out, say: as in the simulator."""
    grown = [seen(5, unmet=True, grown=True), seen(30, unmet=True, shown=True, looked=True, grown=True)]
    outcome = reaction([seen(0, unmet=True), *grown, seen(40, grown=True, settled=True)])
    assert (outcome.metric_age, outcome.hpa_period, outcome.gates) == (None, None, None)
    assert (outcome.total, outcome.start_up, outcome.cover_seconds) == (5, 35, 40)


def test_demand_that_is_not_covered_in_the_end_is_reported() -> None:
    outcome = reaction([seen(0, unmet=True), seen(10, unmet=True)])
    assert (outcome.total, outcome.start_up, outcome.cover_seconds, outcome.covered) == (
        None,
        None,
        10,
        False,
    )


@pytest.mark.parametrize(
    ("applied", "met"),
    [
        ([1267, 1267], True),  # 1500 + 20 of 1520.4
        ([1266, 1266], False),
        ([1267, 1000], False),  # work is shared equally: the larger pod does not help the smaller one
        ([5000], True),
        ([], False),
    ],
)
def test_demand_is_met_when_each_ready_pod_can_burst_to_its_share(applied: list[int], met: bool) -> None:
    assert is_met(3000, 20, applied) is met


def test_a_jump_multiplies_cpu_and_memory() -> None:
    (cpu, memory), (more_cpu, more_memory) = work(1), work(10)
    assert (cpu, more_cpu) == (1500, 15000)
    assert more_memory == pytest.approx(10 * memory)
    assert memory == pytest.approx(62.5 * 2**20, rel=0.01)


def test_each_policy_is_its_deployment_with_what_scales_it() -> None:
    made = {policy.full_name: objects("web-1", policy) for policy in POLICIES if policy.full_name in LIVE}
    kinds = [[manifest["kind"] for manifest in made[name]] for name in LIVE]
    hpa, vpa = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
    assert kinds == [["Deployment", hpa], ["Deployment", hpa, vpa], ["Deployment", "Hvpa"]]
    assert {manifest["metadata"]["name"] for all_of in made.values() for manifest in all_of} == {"web-1"}
    spec = made[LIVE[-1]][1]["spec"]
    assert (spec["blend"], spec["targetRef"]["name"]) == ("Trajectory", "web-1")
    assert spec["vpa"]["scaleDown"] == {"minHistory": "1m"}
