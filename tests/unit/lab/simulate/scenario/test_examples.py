"""The examples: what their comments say happens, happens, to the second where they show one thing; and where
`Trajectory`, the first policy of each, stands among the others. Where fewer days or longer steps show the same, they
are used."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import PolicyResult
from hvpa_lab.simulate.scenario.read import load_scenario

pytestmark = pytest.mark.long
EXAMPLES = Path(__file__).resolve().parents[5] / "examples"


def run(example: str, policy: str) -> PolicyResult:
    scenario = load_scenario(EXAMPLES / example, seed=0)
    (named_policy,) = [candidate for candidate in scenario.policies if candidate.name == policy]
    return simulate(scenario, named_policy)


def counts(result: PolicyResult) -> list[tuple[float, int]]:
    """When the number of replicas changed (seconds, from the beginning of a step on), and to what."""
    series = result.series
    changes = [(0.0, series.replicas[0])]
    for index, count in enumerate(series.replicas):
        if count != changes[-1][1]:
            changes.append((index * series.step, count))
    return changes


def test_an_hpa_answers_eleven_seconds_of_load_in_three_steps() -> None:
    # 13:10:00 is 300 s after the start: 4 at 13:10:26, 8 at :41, 10 at :56; and down again minutes later.
    result = run("hpa-delay/scenario.yaml", "HPA alone")
    assert counts(result)[:4] == [(0, 2), (326, 4), (341, 8), (356, 10)]
    assert counts(result)[-1][1] == 2


def test_the_delay_of_that_hpa_is_reported_phase_by_phase() -> None:
    (rise,) = run("hpa-delay/scenario.yaml", "HPA alone").reactions
    assert (rise.start, rise.tolerance, rise.metric_age, rise.hpa_period, rise.gates) == (300, 0, 25, 1, 0)
    assert (rise.start_up, rise.total) == (2, 26)


def test_a_faster_behavior_takes_one_step() -> None:
    assert counts(run("hpa-delay/scenario.yaml", "HPA, in one step"))[:2] == [(0, 2), (326, 10)]


def test_an_hvpa_makes_the_first_step_and_not_those_that_nothing_calls_for() -> None:
    assert [count for _, count in counts(run("hpa-delay/scenario.yaml", "Hvpa, horizontal only"))] == [
        2,
        4,
        2,
    ]


def test_two_pods_with_values_above_the_target_become_three() -> None:
    steps = counts(run("hpa-two-pods/both-measured.yaml", "HPA alone"))
    assert [count for _, count in steps] == [2, 3]


def test_a_pod_without_a_value_keeps_the_count_at_two_until_it_has_one() -> None:
    # The load falls at 118 s. It is measured at 120 s, when the new pod is too young; at 180 s both are.
    assert counts(run("hpa-two-pods/one-missing.yaml", "HPA alone")) == [(0, 1), (115, 2), (235, 1)]


def test_a_pod_that_is_pinned_at_its_nodes_headroom_escalates_within_min_change_timeout() -> None:
    result = run("noisy-neighbour/scenario.yaml", "Hvpa, larger only")
    requests = result.series.requests["app", "cpu"]
    steps = [  # of the first of both pods
        i * result.series.step
        for i in range(1, len(requests))
        if requests[i] != requests[i - 1] and requests[i - 1] in (1000, 1737, 2677, 3666)
    ]
    hour, timeout, recommender = 3600, 15 * 60, 10 * 60
    assert hour + timeout < steps[0] < hour + timeout + recommender
    waits = [after - before for before, after in pairwise(steps)]
    # Each small step doubles the timeout; the last one is large enough not to wait.
    assert all(wait < 2**index * timeout + 2 * recommender for index, wait in enumerate(waits, 1))
    assert requests[-1] > 4000
    unmet = result.series.unmet
    assert max(unmet[-100:]) == 0 < max(unmet)


FIRST = "Hvpa, Trajectory"
RIVAL = "HPA (AverageValue) + VPA"
GIB_PER_CORE = 8
"""So many GiB cost what a core costs (docs/joint-scaling.md)."""


class Rank(NamedTuple):
    """1 is the best; who is as good as another has the same rank. `beside` is the cost in percent of what the
    HPA beside a VPA costs, rounded."""

    cost: int
    unmet: int
    beside: int


def results(example: str, seed: int = 0, file: str = "scenario.yaml", **changes: Any) -> list[PolicyResult]:
    scenario = replace(load_scenario(EXAMPLES / example / file, seed=seed), **changes)
    return [simulate(scenario, policy) for policy in scenario.policies]


def cost(result: PolicyResult) -> float:
    return result.totals.core_hours_requested + result.totals.gib_hours_requested / GIB_PER_CORE


def unmet(result: PolicyResult) -> float:
    return result.totals.unmet_core_seconds


def rank(policies: list[PolicyResult]) -> Rank:
    first = policies[0]
    (rival,) = (policy for policy in policies if policy.name == RIVAL)
    return Rank(
        cost=1 + sum(cost(policy) < cost(first) for policy in policies),
        unmet=1 + sum(unmet(policy) < unmet(first) for policy in policies),
        beside=round(100 * cost(first) / cost(rival)),
    )


@pytest.mark.parametrize(
    "example",
    ["day-and-night", "flash-crowd", "growth", "hpa-delay", "large-base", "memory-leak", "noisy-neighbour"],
)
def test_the_first_policy_is_a_trajectory(example: str) -> None:
    folder = EXAMPLES / example
    assert load_scenario(folder / "scenario.yaml", seed=0).policies[0].name == FIRST
    assert yaml.safe_load((folder / "trajectory.yaml").read_text())["spec"]["blend"] == "Trajectory"


def test_a_large_base_is_served_cheapest_and_nothing_beats_it() -> None:
    policies = results("large-base", duration=2 * 86400.0, step=240.0)
    assert rank(policies) == Rank(cost=1, unmet=1, beside=85)
    assert unmet(policies[0]) == 0


def test_in_a_flash_crowd_only_what_is_large_already_leaves_less_unmet() -> None:
    """Controllers look at times of their own, which is luck in a single crowd: `make evidence` has five seeds."""
    policies = results("flash-crowd", seed=1)
    assert [policy.name for policy in sorted(policies, key=unmet)[:2]] == ["Fixed, for the crowds", FIRST]
    assert rank(policies).beside == 103


def test_a_forecast_has_replicas_there_before_load_that_jumps_each_day() -> None:
    scenario = replace(load_scenario(EXAMPLES / "busy-hours" / "scenario.yaml", seed=0), step=120.0)
    forecast, without = [
        simulate(scenario, policy) for policy in scenario.policies if policy.name.startswith("HPA")
    ]
    assert unmet(forecast) == 0 < unmet(without)
    assert 1 < cost(forecast) / cost(without) < 1.05


def test_a_leak_costs_no_oom_and_no_unmet_demand_where_pods_become_larger() -> None:
    policies = results("memory-leak", duration=0.6 * 86400.0, step=15.0)
    assert rank(policies) == Rank(cost=4, unmet=1, beside=124)
    assert (policies[0].totals.ooms, unmet(policies[0])) == (0, 0)
    ooms = {policy.name: policy.totals.ooms for policy in policies[1:]}
    assert all(count for name, count in ooms.items() if name not in ("VPA alone", "Fixed, with room"))
    assert ooms["HPA alone"] > 1.5 * ooms["Hvpa, weight 50"], "nothing makes its pods larger"


def test_only_the_declared_runtime_has_its_heap_grow_before_it_is_full() -> None:
    """With the default maxUnavailable, the pods that remain during the rollout fill their heaps."""
    policies = {policy.name: policy.totals for policy in results("java-heap", step=60.0)}
    declared, undeclared = policies["Hvpa, runtime declared"], policies["Hvpa, runtime not declared"]
    assert (declared.ooms, declared.restarts, declared.unmet_demand_share) == (0, 24, 0)
    assert (undeclared.ooms, undeclared.restarts) == (24, 24)
    assert undeclared.unmet_demand_share > 0.0005
    assert policies[RIVAL].ooms >= 16


def test_pods_with_resources_of_their_own_are_resized_in_place_and_share_what_containers_would_not() -> None:
    """With `apart`, the same containers have requests and limits of their own."""
    shared, apart = (
        {policy.name: policy.totals for policy in results("pod-resources", file=file, step=60.0)}
        for file in ("scenario.yaml", "apart.yaml")
    )
    for totals in (shared, apart):
        own = totals[FIRST]
        assert (own.ooms, own.restarts, own.unmet_core_seconds) == (0, 0, 0)
    assert (shared["HPA alone"].ooms, apart["HPA alone"].ooms) == (8, 16)
    assert 0.96 < shared[FIRST].gib_hours_requested / apart[FIRST].gib_hours_requested < 0.99


def test_beside_noisy_neighbours_replicas_alone_are_cheaper() -> None:
    policies = results("noisy-neighbour")
    assert rank(policies) == Rank(cost=7, unmet=2, beside=118)
    (alone,) = (policy for policy in policies if policy.name == "HPA alone")
    assert cost(alone) < cost(policies[0])
    assert 0.7 < unmet(policies[0]) / unmet(alone) < 0.75


def test_a_calm_wave_of_pods_with_little_base_use_costs_as_much_as_with_an_hpa_and_a_vpa() -> None:
    policies = results("day-and-night", duration=2 * 86400.0, step=240.0)
    assert rank(policies) == Rank(cost=3, unmet=1, beside=100)


def test_the_first_days_of_slow_growth_are_served_cheapest() -> None:
    policies = results("growth", duration=1.5 * 86400.0, step=120.0)
    assert rank(policies) == Rank(cost=1, unmet=1, beside=96)
