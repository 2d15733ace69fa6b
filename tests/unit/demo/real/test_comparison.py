"""What two runs came to, and how they differ."""

from __future__ import annotations

import pytest

from demo.real.comparison import GOAL, Run, Sample, back, figures, outcome, table
from demo.scenario import Scenario
from localcluster.workloads.traffic import Answers

GOOD = Answers(0, (5.0, 6.0))
SLOW = Answers(0, (5.0, GOAL + 1))
FAILED = Answers(2, (5.0,))
WIDTH = 80
"""Columns of the last screen."""
GIB = 2**30


def test_a_stretch_has_the_requests_of_its_seconds_and_what_was_requested_meanwhile() -> None:
    """200m for one second, then 400m for two; the stretch ends in the middle of the latter."""
    samples = (Sample(0, 200, GIB), Sample(1, 400, 2 * GIB), Sample(3, 400, 2 * GIB))
    run = Run("x", {0: GOOD, 1: SLOW, 2: FAILED}, samples, 0)
    stretch = figures(run, 0, 2)
    assert (stretch.above, stretch.sent, stretch.failed) == (1, 4, 0)
    assert (stretch.median, stretch.slow) == (5.0, GOAL + 1)
    assert (stretch.cpu, stretch.memory) == pytest.approx((0.2 + 0.4, 1 + 2))
    assert figures(run, 2, 3).failed == 2


def test_nothing_measured_is_nothing() -> None:
    stretch = figures(Run("x", {}, (), 0), 0, 10)
    assert (stretch.above, stretch.sent, stretch.median, stretch.cpu) == (0, 0, None, 0)


@pytest.mark.parametrize(
    ("cpu", "second"),
    [
        ((200, 200), 0),
        ((200, 800, 220, 200), 2),
        ((200, 800, 200, 230, 210), 4),
        ((200, 800), None),
        ((), None),
    ],
)
def test_requests_are_back_once_they_stay_within_a_tenth(cpu: tuple[int, ...], second: int | None) -> None:
    samples = [Sample(float(at), request, GIB) for at, request in enumerate(cpu)]
    assert back(Run("x", {}, samples, 0)) == second


def run(name: str, above: range, cpu: int) -> Run:
    """A run of 100 seconds."""
    answers = {second: SLOW if second in above else GOOD for second in range(100)}
    return Run(name, answers, [Sample(float(second), cpu, GIB) for second in range(101)], 0)


def test_the_table_has_both_by_phase_and_where_the_worse_comes_from() -> None:
    """The phases of 100 seconds: calm until 5, rise until 20, peak until 55, fall until 65."""
    own, other = run("this Hvpa", range(10, 30), 400), run("HPA and VPA", range(10, 18), 500)
    text = list(table(own, other, Scenario(seconds=100).phases, 100))
    assert text[1:-3] == [
        "this Hvpa    above goal, s           0        10        10         0         0",
        "             CPU, core-s           2.0       6.0      14.0       4.0      14.0",
        "HPA and VPA  above goal, s           0         8         0         0         0",
        "             CPU, core-s           2.5       7.5      17.5       5.0      17.5",
        "12 more seconds above the goal: 10 in `peak` (how much there is of it)",
    ]


def test_the_last_lines_fit_a_small_terminal() -> None:
    """Even if all requests fail, everything is worse, and numbers have five digits."""
    answers = {second: Answers(99, ()) for second in range(1000)}
    own = Run("this Hvpa", answers, [Sample(float(at), 99_000, 99 * GIB) for at in range(1001)], 999)
    other = Run(
        "HPA and VPA", dict.fromkeys(range(1000), GOOD), [Sample(0, 9000, 9 * GIB), Sample(1000, 9, 9)], 999
    )
    summary = [f"  {line}" for line in table(own, other, Scenario(seconds=1000).phases, 1000)]
    assert len(summary) == 5 + 4 + 3
    for lines in (summary, outcome(own, other, 1000), outcome(other, own, 1000), outcome(own, None, 1000)):
        assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        (range(10, 15), range(10, 20), "about the same service, so the resources compare"),
        (range(10, 15), range(10, 21), "a better service, so fewer resources would have given the same"),
        (range(10, 21), range(10, 15), "a worse service, so the resources do not compare"),
    ],
)
def test_the_service_is_judged_before_the_resources(own: range, other: range, words: str) -> None:
    runs = run("this Hvpa", own, 400), run("HPA and VPA", other, 500)
    assert any(line.startswith(words) for line in outcome(*runs, 100))


def test_the_last_screen_has_both_runs() -> None:
    own, other = run("this Hvpa", range(10, 15), 400), run("HPA and VPA", range(10, 20), 500)
    text = [" ".join(line.split()) for line in outcome(own, other, 100)]
    assert text[:-3] == [
        "What users felt, and what it cost this Hvpa HPA and VPA",
        "seconds with a P99 above 250 ms 5 s 10 s 50 % less",
        "failed requests 0 of 200 0 of 200",
        "P50 5 ms 5 ms the same",
        "P99 251 ms 251 ms the same",
        "restarts 0 0",
        "CPU requested 40 core-s 50 core-s 20 % less",
        "memory requested 100 GiB-s 100 GiB-s the same",
        "first CPU request again at 0:00 0:00",
        "about the same service, so the resources compare",
    ]


def test_the_last_screen_names_a_percentile_of_failed_requests_and_requests_that_are_not_back() -> None:
    answers = dict.fromkeys(range(100), FAILED)
    failed = Run("this Hvpa", answers, [Sample(0, 200, GIB), Sample(50, 400, GIB), Sample(100, 400, GIB)], 0)
    text = [" ".join(line.split()) for line in outcome(failed, run("HPA and VPA", range(0), 400), 100)]
    assert "P99 failed 6 ms" in text
    assert "first CPU request again at not by 1:40 0:00" in text
    assert "P99 failed failed" in [" ".join(line.split()) for line in outcome(failed, failed, 100)]


def test_the_last_screen_has_the_hvpa_alone_if_nothing_else_ran() -> None:
    text = [" ".join(line.split()) for line in outcome(run("this Hvpa", range(10, 15), 400), None, 100)]
    assert "seconds with a P99 above 250 ms 5 s not run" in text
    assert "restarts 0 not run" in text
    assert not any("service" in line for line in text)
