"""What the evidence says: cost at the same unmet demand, spread over seeds, the way to the oracle."""

from __future__ import annotations

import math

import pytest

from benchmarks.joint.kept import Kept, Line, Place
from benchmarks.joint.policies import BASELINE, POLICY
from benchmarks.joint.report import NEGLIGIBLE, Point, beside, by_load, cost_at, others, parts, summary

LINE = [
    Point(100, math.log(1000)),
    Point(90, math.log(2000)),
    Point(95, math.log(3000)),
    Point(60, math.log(8000)),
]


@pytest.mark.parametrize(
    ("unmet", "cost", "outside"),
    [
        (1000, 100, 0),
        (1500, 100 - 10 * math.log(1.5, 2), 0),
        (4000, 75, 0),  # half of the way from 2000 to 8000; that of 3000 costs more and serves less
        (999, 100, -1),
        (8000, 60, 0),
        (8001, 60, 1),
    ],
)
def test_cost_at_the_same_unmet_demand(unmet: float, cost: float, outside: int) -> None:
    price, where = cost_at(LINE, math.log(unmet))
    assert price == pytest.approx(cost)
    assert where == outside


def line(policy: str, target: int, cost: float, unmet: float, *more: float) -> Line:
    """Two seeds with the same unmet demand; the second one costs the last number, or the same. 84 percent are used."""
    costs = (cost, *(more or (cost,)))
    return Line(
        policy,
        target,
        costs,
        (unmet - NEGLIGIBLE,) * 2,
        (1, 2),
        (3, 4),
        tuple(0.84 * seed_cost for seed_cost in costs),
    )


def place(load: str, *lines: Line, workload: str = "cpu", resize: str = "InPlace") -> Place:
    return Place(load, workload, resize, (60, 60), lines)


BASE = (line(BASELINE, 800, 100, 1000), line(BASELINE, 900, 90, 2000))


def test_the_example_of_the_module() -> None:
    comparison = beside([place("wave", *BASE, line(POLICY, 800, 75, 1500))])
    assert comparison.cost == pytest.approx(0.797, abs=0.001)
    assert comparison.oracle == pytest.approx(0.637, abs=0.001)
    assert comparison.way == pytest.approx(0.56, abs=0.001)
    assert (comparison.more, comparison.less) == (0, 0)
    assert (comparison.ooms, comparison.base_ooms, comparison.restarts, comparison.base_restarts) == (
        3,
        3,
        7,
        7,
    )


def test_loads_count_alike_and_seeds_have_a_spread() -> None:
    comparison = beside(
        [place("a", *BASE, line(POLICY, 800, 50, 1000, 70)), place("b", *BASE, line(POLICY, 800, 81, 2000))]
    )
    assert comparison.cost == pytest.approx(math.sqrt(0.6 * 0.9))
    assert comparison.by_seed == pytest.approx((0.45 * 0.63) ** 0.25)
    assert comparison.low == pytest.approx(math.sqrt(0.45))
    assert comparison.high == pytest.approx(math.sqrt(0.63))


def test_some_seeds_can_be_asked_for() -> None:
    comparison = beside([place("a", *BASE, line(POLICY, 800, 50, 1000, 70))], [1])
    assert comparison.cost == pytest.approx(0.7)
    assert comparison.low == pytest.approx(0.7)
    assert comparison.ooms == 2


def test_what_is_beyond_the_line_is_said() -> None:
    serves_more, serves_less = line(POLICY, 800, 80, 500), line(POLICY, 800, 72, 9000)
    comparison = beside([place("a", *BASE, serves_more), place("b", *BASE, serves_less)])
    assert comparison.cost == pytest.approx(0.8)
    assert (comparison.more, comparison.less) == (1, 1)


def test_a_policy_that_was_not_run_is_named() -> None:
    with pytest.raises(ValueError, match=f"wave, cpu, InPlace: {POLICY} was not run with 800m"):
        beside([place("wave", *BASE)])


def test_tables_have_each_kind_and_each_load() -> None:
    own = line(POLICY, 800, 80, 1000)
    places = [
        place("wave", *BASE, own),
        place("wave", *BASE, own, resize="Recreate"),
        place("wave", *BASE, workload="memory"),
        place("flash", *BASE, own, line("HPA", 800, 130, 250)),
    ]
    kept = Kept("how", "abc", "2026-01-01", 2, 2, places=tuple(places))
    lines = summary(kept).splitlines()
    assert [row.split(" | ")[0] for row in lines[2:]] == [
        "| bound by CPU, resized in place",
        "| bound by CPU, replaced",
    ]
    assert "| 0.80 | 0.80 | 0.80 to 0.80 | 0.79 | 0.60 | 50 % |" in lines[2]
    assert by_load(kept, "InPlace").splitlines()[2:] == [
        "| wave | 0.80 (0.80 to 0.80; 0.60) |  |  |  |",
        "| flash | 0.80 (0.80 to 0.80; 0.60) |  |  |  |",
    ]
    assert "| HPA, resized in place | 1.30 / 0.25 |  |  |  | 3 | 7 |" in others(kept)


def test_what_the_cost_is_for() -> None:
    own = [
        place("wave", *BASE, line(POLICY, 800, 80, 1000)),
        place("wave", *BASE, line(POLICY, 800, 90, 1000), resize="Recreate"),
    ]
    rows = parts(Kept("how", "abc", "2026-01-01", 2, 2, places=tuple(own))).splitlines()
    assert rows[0] == "| pods | oracle | more is used | 15 percent headroom | the rest | cost |"
    assert rows[2:] == ["| bound by CPU | 0.60 | 0.07 | 0.10 | 0.03 | 0.80 |"]
