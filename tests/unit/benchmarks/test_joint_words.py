"""The sentences of the evidence say what the results say, whatever that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from msgspec import structs

from benchmarks.joint import words
from benchmarks.joint.jumps import SHOWN
from benchmarks.joint.kept import Felt, Jumps, Kept, Line, Phases, Place
from benchmarks.joint.policies import BASELINE, POLICY
from benchmarks.joint.report import GOALS, NEGLIGIBLE

SEEDS = 5
ORACLE = 60


def line(policy: str, target: int, cost: float, unmet: float, ooms: int = 0, restarts: int = 0) -> Line:
    """The same with each seed."""
    return Line(
        policy,
        target,
        (cost,) * SEEDS,
        (unmet - NEGLIGIBLE,) * SEEDS,
        (ooms,) * SEEDS,
        (restarts,) * SEEDS,
        (cost / 2,) * SEEDS,
    )


BASE = (line(BASELINE, 800, 100, 1000, 2, 2), line(BASELINE, 900, 90, 2000, 2, 2))
OWN = line(POLICY, 800, 60, 1000)


def results(**own: Line) -> Kept:
    """One load; joint scaling in a kind of workload and resizes is this (`cpu_InPlace`), else `OWN`."""
    places = [
        Place(
            "wave",
            workload,
            resize,
            (ORACLE,) * SEEDS,
            (*BASE, own.get(f"{workload.replace('-', '_')}_{resize}", OWN)),
        )
        for workload, resize in GOALS
    ]
    return Kept("how", "abc", "2026-01-01", 2, SEEDS, places=tuple(places))


def flat(text: str) -> str:
    """The paragraph as one line."""
    return " ".join(text.split())


def one_point() -> Kept:
    """HPA and VPA with 900m cost less and serve more."""
    base_results = results()
    first = base_results.places[0]
    lines = (BASE[0], line(BASELINE, 900, 90, 900), OWN)
    return structs.replace(
        base_results, places=(structs.replace(first, lines=lines), *base_results.places[1:])
    )


SAID: Final[Mapping[str, tuple[Callable[[Kept], str], Kept, str]]] = {
    "seeds, days and runs": (
        words.provenance,
        results(),
        "seeds 0 to 4, 2 days each (the first day is not counted), 120 runs.",
    ),
    "how long it took": (
        words.provenance,
        structs.replace(results(), first_seed=5, wall=600, processes=2),
        "2 days each (the first day is not counted), 120 runs, in 10.0 minutes with 2 processes.",
    ),
    "all goals are met": (
        words.goals,
        results(),
        "Of 8 goals for the cost, it misses none with the same line for all seeds.",
    ),
    "all goals are met by the mean of seeds": (
        words.goals,
        results(),
        "It meets 8 by the mean of seeds that each have their own line.",
    ),
    "one goal is missed": (
        words.goals,
        results(cpu_InPlace=line(POLICY, 800, 79.4, 1000)),
        "Of 8 goals for the cost, it misses 1 (bound by CPU, resized in place: 0.794 (goal 0.79)) with the same line",
    ),
    "the way": (
        words.goals,
        results(cpu_InPlace=line(POLICY, 800, 80, 1000)),
        "goes 50 to 100 percent of the way to the oracle if pods are resized in place",
    ),
    "seeds beyond their line": (
        words.goals,
        results(cpu_InPlace=line(POLICY, 800, 60, 900)),
        "in 0 to 5 of 5 cases",
    ),
    "restarts": (
        words.restarts,
        results(
            cpu_Recreate=line(POLICY, 800, 60, 1000, 0, 3),
            memory_Recreate=line(POLICY, 800, 60, 1000, 0, 5),
            memory_InPlace=line(POLICY, 800, 60, 1000, 1, 2),
        ),
        "has 10 restarts in place and 40 with pods replaced: 75.0 percent fewer (goal: 90). 5 of the 10 are containers"
        " that ran out of memory. By kind, in percent: bound by CPU 100; bound by memory 60.",
    ),
    "nothing loses": (
        words.losses,
        results(),
        "- Pods resized in place, 4 cells of the table: more expensive over all seeds: none; more expensive in a single"
        " seed: none, 0.60 at worst (wave, bound by CPU); more unmet than with any headroom: none.",
    ),
    "no OOMs and restarts more": (
        words.losses,
        results(),
        "- More OOMs: none. More restarts: none.",
    ),
    "a seed loses": (
        words.losses,
        results(cpu_InPlace=structs.replace(OWN, cost=(60, 60, 60, 60, 110))),
        "over all seeds: none; more expensive in a single seed: 1, 1.10 at worst (wave, bound by CPU);",
    ),
    "a load loses": (
        words.losses,
        results(cpu_InPlace=line(POLICY, 800, 120, 1000)),
        "over all seeds: 1 (wave, bound by CPU: 1.20);",
    ),
    "less is served": (
        words.losses,
        results(cpu_InPlace=line(POLICY, 800, 60, 9000)),
        "with any headroom: 1 (wave, bound by CPU). - Pods replaced",
    ),
    "more OOMs and restarts": (
        words.losses,
        results(cpu_Recreate=line(POLICY, 800, 60, 1000, 3, 4)),
        "- More OOMs: 1 (bound by CPU, replaced: 15 (10)). More restarts: 1 (bound by CPU, replaced: 20 (10)).",
    ),
    "lines": (words.single_points, results(), "than the others: none."),
    "a line that is a point": (
        words.single_points,
        one_point(),
        "than the others: wave, bound by CPU, resized in place.",
    ),
}


@pytest.mark.parametrize(("part", "kept", "said"), SAID.values(), ids=SAID.keys())
def test_a_sentence_says_what_the_results_say(part: Callable[[Kept], str], kept: Kept, said: str) -> None:
    assert said in flat(part(kept))


def test_slow_pods_stand_beside_usual_ones_under_the_same_seeds() -> None:
    kept = structs.replace(results(cpu_InPlace=line(POLICY, 800, 70, 1000, 1, 2)), seeds=1)
    usual = results(cpu_InPlace=structs.replace(OWN, cost=(50, 90, 90, 90, 90)))
    text = words.slow(kept, usual)
    assert text.splitlines()[2] == "| bound by CPU, resized in place | 0.70 | 0.50 | 1 (2) | 2 (2) |"
    assert "seed 0, 2 days" in flat(text)


def test_headrooms_are_held_against_the_default_one() -> None:
    lines = [
        line(name, at, cost, 1000)
        for name, base in ((BASELINE, 100), (POLICY, 80))
        for at, cost in ((700, base + 5), (800, base), (900, base - 5))
    ]
    place = Place("wave", "cpu", "InPlace", (ORACLE,) * SEEDS, tuple(lines))
    text = words.headrooms(structs.replace(results(), places=(place,)))
    assert text.splitlines()[2:5] == [
        "| 31 % | 761m | 1.05 / 1.00 | 0.85 / 1.00 |",
        "| 15 % | 870m | 1.00 / 1.00 | 0.80 / 1.00 |",
        "| 2 % | 978m | 0.95 / 1.00 | 0.75 / 1.00 |",
    ]
    assert "Pods bound by CPU, resized in place. 2026-01-01" in text


def felt(policy: str, times: int, cover: float) -> Felt:
    return Felt(policy, times, (Phases(cover, 25, 5, 0, 30), Phases(cover, None, None, None, None)))


@pytest.mark.parametrize(
    ("covers", "said"),
    [
        (
            {2: 40, 5: 10},
            "takes 0.80 and 0.20 of the HPA's time. The goal, half of it, is met at × 5.",
        ),
        ({2: 40}, "takes 0.80 of the HPA's time. The goal, half of it, is met at no jump."),
        (
            {2: 20},
            "25 seconds pass until the jump is measured, 5 until the HPA reads the measurement, and 5 for the resize:"
            " 35 of the HPA's 50 seconds, or 0.70.",
        ),
    ],
    ids=["one is met", "none is met", "what it waits for"],
)
def test_jumps_are_held_against_the_hpa(covers: dict[int, float], said: str) -> None:
    jumps = [
        jump
        for times, cover in covers.items()
        for jump in (felt(SHOWN[0], times, 50), felt(SHOWN[-1], times, cover))
    ]
    assert said in flat(words.jumps(Jumps("how", "abc", "2026-01-01", "code", tuple(jumps))))
