"""What policies cost, which beats which, and what follows in words. Every figure here is reckoned by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hvpa.api.values.prices import Prices
from hvpa_lab.simulate.model import PolicyKind, PolicyResult
from hvpa_lab.simulate.report.compare import Comparison, caveats, compare, conclusion
from tests.unit.lab.simulate.report.results import policy, result
from tests.unit.lab.simulate.scenario.build import scenario

PRICES = Prices(cpu=0.03, memory=0.004)


def one(name: str, cores: float, unmet: float = 0.0, kind: PolicyKind = "Hvpa", **more: Any) -> PolicyResult:
    """A policy that requested so many core-hours, and left so many of 1,000 core-seconds unmet."""
    figures = {"gib_hours_requested": 0.0, "demand_core_seconds": 1000.0, "restarts": 0, **more}
    return policy(name, kind, core_hours_requested=cores, unmet_core_seconds=unmet, **figures)


def compared(*policies: PolicyResult, baseline: str | None = None, days: float = 2.0) -> Comparison:
    return compare(result(*policies, duration=86400 * (days + 1), warm_up=86400.0), PRICES, baseline)


def test_a_cost_is_what_was_requested_at_its_price() -> None:
    (standing,) = compared(one("a", 100.0, gib_hours_requested=250.0)).standings
    assert standing.cost == pytest.approx(100 * 0.03 + 250 * 0.004)
    assert (standing.difference, standing.beaten_by) == (None, ())


def test_a_difference_is_a_share_of_the_baselines_cost() -> None:
    comparison = compared(one("a", 88.0), one("b", 100.0, kind="HPA"))
    assert comparison.baseline == 1
    assert comparison.standings[0].difference == pytest.approx(-0.12)
    assert comparison.standings[1].difference is None


def test_what_costs_nothing_is_no_measure() -> None:
    comparison = compared(one("a", 88.0), one("b", 0.0, kind="HPA"))
    assert [standing.difference for standing in comparison.standings] == [None, None]
    assert compared(one("a", 0.0), one("b", 0.0)).unbeaten == [0, 1]


@pytest.mark.parametrize(
    ("kinds", "baseline"),
    [
        (("Hvpa", "HPA", "HPA+VPA", "HPA+VPA"), 2),
        (("Hvpa", "VPA", "HPA", "HPA"), 2),
        (("Fixed", "Hvpa", "VPA"), 2),
        (("Hvpa", "Fixed"), 1),
        (("Hvpa", "Hvpa"), 0),
        (("HPA",), None),
        ((), None),
    ],
)
def test_by_default_the_baseline_is_an_hpa_beside_a_vpa_else_an_hpa(
    kinds: tuple[PolicyKind, ...], baseline: int | None
) -> None:
    policies = tuple(one(str(at), 1.0, kind=kind) for at, kind in enumerate(kinds))
    assert compare(replace(result(), policies=policies), PRICES).baseline == baseline


def test_a_named_baseline_is_taken_and_where_there_is_none_of_its_name_the_usual_one() -> None:
    policies = (one("a", 1.0), one("b", 2.0, kind="HPA"))
    assert compared(*policies, baseline="a").baseline == 0
    assert compared(*policies, baseline="of another scenario").baseline == 1


def test_a_policy_is_beaten_by_what_is_as_good_in_both_and_better_in_one() -> None:
    comparison = compared(
        one("cheap and short", 10.0, 300.0),
        one("best", 50.0, 10.0),
        one("dearer", 60.0, 10.0),
        one("shorter of CPU", 50.0, 20.0),
        one("without a gap", 100.0, 0.0),
        one("the best again", 50.0, 10.0),
    )
    assert [standing.beaten_by for standing in comparison.standings] == [(), (), (1, 5), (1, 5), (), ()]
    assert comparison.unbeaten == [0, 1, 4, 5]


def test_what_hardly_differs_is_alike() -> None:
    # 100.04 of 100.04 and 100: less than a thousandth. 0.04 of 1,000 core-seconds: less than 0.01 %.
    comparison = compared(one("a", 100.04, 0.0), one("b", 100.0, 0.04))
    assert [standing.beaten_by for standing in comparison.standings] == [(), ()]
    assert [standing.unmet for standing in comparison.standings] == [0.0, 0.0]


def test_doing_nothing_is_cheap_and_is_not_called_good() -> None:
    idle, works = one("idle", 10.0, 330.0), one("works", 100.0, 10.0, kind="HPA")
    words = conclusion(compared(idle, works))
    assert words == [
        "idle costs 90 % less than works but leaves 33 % of the demand unmet instead of 1.0 %.",
        "No policy beats these on cost and unmet demand together: "
        "idle (0.3000, 33 % unmet); works (3.000, 1.0 % unmet).",
    ]


@pytest.mark.parametrize(
    ("mine", "sentence"),
    [
        (one("a", 88.0, 14.0), "a costs 12 % less than b at equal unmet demand (1.4 %)"),
        (
            one("a", 88.0, 2.0),
            "a costs 12 % less than b and leaves 0.20 % of the demand unmet instead of 1.4 %",
        ),
        (
            one("a", 88.0, 140.0),
            "a costs 12 % less than b but leaves 14 % of the demand unmet instead of 1.4 %",
        ),
        (one("a", 102.0, 0.0), "a costs 2.0 % more than b but leaves no demand unmet instead of 1.4 %"),
        (one("a", 270.0, 14.0), "a costs 2.7 times as much as b at equal unmet demand (1.4 %); 2 beats it"),
        (
            one("a", 102.0, 50.0),
            "a costs 2.0 % more than b and leaves 5.0 % of the demand unmet instead of 1.4 %; 2 beats it",
        ),
        (one("a", 100.0, 14.0), "a costs as much as b at equal unmet demand (1.4 %)"),
        (
            one("a", 100.0, 28.0),
            "a costs as much as b but leaves 2.8 % of the demand unmet instead of 1.4 %; 2 beats it",
        ),
        (one("a", 100.0, 0.0), "a costs as much as b and leaves no demand unmet instead of 1.4 %"),
        (
            one("a", 88.0, 14.0, restarts=6),
            "a costs 12 % less than b at equal unmet demand (1.4 %), with 3.0 restarts a day instead of 0",
        ),
    ],
)
def test_a_policy_stands_beside_the_baseline_in_a_sentence(mine: PolicyResult, sentence: str) -> None:
    assert conclusion(compared(mine, one("b", 100.0, 14.0, kind="HPA+VPA")))[0] == f"{sentence}."


def test_the_restarts_of_less_than_a_day_are_counted() -> None:
    mine, base = one("a", 88.0, restarts=3), one("b", 100.0, kind="HPA", restarts=1200)
    assert conclusion(compared(mine, base, days=0.5))[0] == (
        "a costs 12 % less than b at equal unmet demand (none), with 3 restarts instead of 1,200."
    )


def test_several_that_beat_one_are_listed() -> None:
    policies = [one(str(at), 100.0 + 10 * at, kind="HPA") for at in range(4)]
    assert conclusion(compared(*policies))[2].endswith("; 1, 2 and 3 beat it.")


def test_a_policy_alone_is_described() -> None:
    assert conclusion(compared(one("a", 100.0, 14.0))) == [
        "a costs 3.000 and leaves 1.4 % of the demand unmet."
    ]


def test_names_are_safe_to_print() -> None:
    assert conclusion(compared(one("a\x1b", 1.0)))[0].startswith("a\\x1b costs")


@pytest.mark.parametrize(
    ("nodes", "limits", "note"),
    [
        ("{cpu: 8}", "{}", "as much as their node has"),
        ("{cpu: 8}", "{cpu: 1}", "up to their limits"),
        ("{cpu: 8, headroom: 300m}", "{}", None),
        ("{headroom: 20%}", "{cpu: 1}", None),
    ],
)
def test_a_scenario_in_which_requests_do_not_bind_has_a_note(
    tmp_path: Path, nodes: str, limits: str, note: str | None
) -> None:
    text = f"""
name: small
duration: 1h
load: {{formula: 1}}
workload:
  name: web
  containers: [{{name: app, limits: {limits}, cpu: {{perUnit: 10m}}}}]
nodes: {nodes}
policies: [{{name: fixed, fixed: {{}}}}]
"""
    notes = caveats(scenario(tmp_path, text))
    if note is None:
        assert notes == ()
    else:
        (caveat,) = notes
        assert caveat.startswith("nodes.headroom is not set: pods use CPU beyond their requests for free, ")
        assert note in caveat
