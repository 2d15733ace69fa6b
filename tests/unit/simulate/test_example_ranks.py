"""Where `Trajectory`, the first policy of the examples, stands among the others: what their comments say is so. Where
fewer days or longer steps show the same, they are used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from hvpa.simulate.engine import simulate
from hvpa.simulate.model import PolicyResult
from hvpa.simulate.scenario.read import load_scenario

pytestmark = pytest.mark.untraced
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
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


def results(example: str, **changes: Any) -> list[PolicyResult]:
    scenario = replace(load_scenario(EXAMPLES / example / "scenario.yaml", seed=0), **changes)
    return [simulate(scenario, policy) for policy in scenario.policies]


def cost(result: PolicyResult) -> float:
    return result.totals.core_hours_requested + result.totals.gib_hours_requested / GIB_PER_CORE


def unmet(result: PolicyResult) -> float:
    return result.totals.unmet_core_seconds


def rank(found: list[PolicyResult]) -> Rank:
    first = found[0]
    (rival,) = (one for one in found if one.name == RIVAL)
    return Rank(
        cost=1 + sum(cost(one) < cost(first) for one in found),
        unmet=1 + sum(unmet(one) < unmet(first) for one in found),
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
    found = results("large-base", duration=2 * 86400.0, step=60.0)
    assert rank(found) == Rank(cost=1, unmet=1, beside=90)
    assert unmet(found[0]) == 0


def test_in_a_flash_crowd_only_what_is_large_already_leaves_less_unmet() -> None:
    assert rank(results("flash-crowd")) == Rank(cost=6, unmet=2, beside=115)


def test_a_leak_costs_no_oom_and_no_unmet_demand() -> None:
    found = results("memory-leak", duration=1.5 * 86400.0)
    assert rank(found) == Rank(cost=5, unmet=1, beside=101)
    assert (found[0].totals.ooms, unmet(found[0])) == (0, 0)
    assert all(one.totals.ooms > 0 for one in found[1:])


def test_beside_noisy_neighbours_replicas_alone_are_cheaper() -> None:
    found = results("noisy-neighbour")
    assert rank(found) == Rank(cost=6, unmet=3, beside=108)
    (alone,) = (one for one in found if one.name == "HPA alone")
    assert cost(alone) < cost(found[0])
    assert unmet(alone) < unmet(found[0])


def test_a_calm_wave_of_pods_with_little_base_use_is_cheaper_with_an_hpa_and_a_vpa() -> None:
    assert rank(results("day-and-night", duration=3 * 86400.0, step=60.0)) == Rank(
        cost=3, unmet=1, beside=106
    )


def test_the_first_days_of_slow_growth_are_cheaper_with_an_hpa_and_a_vpa() -> None:
    assert rank(results("growth", duration=2 * 86400.0)) == Rank(cost=4, unmet=1, beside=113)
