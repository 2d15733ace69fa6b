"""Compares two runs under the same load. Pure: measurements in, text out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from demo.outcome import Row, compared, lines, wrapped
from demo.scenario import Phase
from demo.snapshot import clock
from localcluster.workloads.traffic import Answers, is_slow, milliseconds, together

GOAL: Final = 250.0
"""Maximum milliseconds for 99 of 100 requests of a second. A request alone takes 5 to 10."""
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Sample:
    """The requests of all pods at an instant: millicores and bytes."""

    elapsed: float
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run: the HTTP requests by the second in which they began, the resource requests of pods, and the restarts of
    all containers."""

    name: str
    answers: Mapping[int, Answers]
    samples: Sequence[Sample]
    restarts: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a part of a run. `above`: seconds above the goal; `cpu` in core-seconds and `memory` in
    GiB-seconds, both of resource requests; percentiles in milliseconds, infinite if too many requests failed."""

    above: int
    sent: int
    failed: int
    median: float | None
    slow: float | None
    cpu: float
    memory: float


def figures(run: Run, begin: float, end: float) -> Figures:
    """The figures between two seconds."""
    seconds = [answers for second, answers in run.answers.items() if begin <= second < end]
    all_of_them = together(seconds)
    cpu = memory = 0.0
    for sample, after in itertools.pairwise(run.samples):
        lasted = max(0.0, min(after.elapsed, end) - max(sample.elapsed, begin))
        cpu += sample.cpu / 1000 * lasted
        memory += sample.memory / _GIB * lasted
    return Figures(
        above=sum(is_slow(answers, GOAL) for answers in seconds),
        sent=all_of_them.sent,
        failed=all_of_them.failed,
        median=all_of_them.percentile(50),
        slow=all_of_them.percentile(99),
        cpu=cpu,
        memory=memory,
    )


def outcome(own: Run, other: Run | None, end: float) -> Iterable[str]:
    """The last screen: both runs until a second; only the Hvpa's if HPA and VPA did not run."""
    mine, theirs = figures(own, 0, end), figures(other, 0, end) if other else None

    def row(name: str, text: Callable[[Figures], str], amount: Callable[[Figures], float]) -> Row:
        if theirs is None:
            return Row(name, text(mine), "not run")
        return Row(name, text(mine), text(theirs), compared(amount(mine), amount(theirs)))

    yield from lines(
        [
            row(
                f"seconds with a P99 above {GOAL:.0f} ms", lambda run: f"{run.above} s", lambda run: run.above
            ),
            row("failed requests", lambda run: f"{run.failed} of {run.sent}", lambda run: run.failed),
            row("P50", lambda run: milliseconds(run.median), lambda run: run.median or 0),
            row("P99", lambda run: milliseconds(run.slow), lambda run: run.slow or 0),
            Row("restarts", str(own.restarts), str(other.restarts) if other else "not run"),
            row("CPU requested", lambda run: f"{run.cpu:.0f} core-s", lambda run: run.cpu),
            row("memory requested", lambda run: f"{run.memory:.0f} GiB-s", lambda run: run.memory),
            Row(
                "first CPU request again at", _back_at(own, end), _back_at(other, end) if other else "not run"
            ),
        ]
    )
    if theirs:
        yield _service(mine, theirs)
    yield from wrapped(
        f"Both have {clock(end)} minutes of the same load. No answer within 2 s counts as failed."
        if theirs
        else "No answer within 2 s counts as failed."
    )
    yield from wrapped(
        "A run of minutes is mostly the way up and down. Weeks of other loads: the picture at the top of README.md."
    )


def back(run: Run) -> float | None:
    """The second from which on pods request at most a tenth more CPU than at first; None if that was not observed."""
    within: float | None = None
    for sample in run.samples:
        if sample.cpu * 10 > run.samples[0].cpu * 11:
            within = None
        elif within is None:
            within = sample.elapsed
    return within


def _back_at(run: Run, end: float) -> str:
    return f"not by {clock(end)}" if (at := back(run)) is None else clock(at)


_MEANING = {
    "calm": "before anything happens",
    "rise": "how soon there is more",
    "peak": "how much there is of it",
    "fall": "how soon it is given back",
    "after": "how long it is kept",
}
_EQUAL_SECONDS: Final = 5
"""Seconds above the goal by which the services of two runs may differ: when a metric shows a rise is chance."""


def table(own: Run, other: Run, phases: Sequence[Phase], end: float) -> Iterable[str]:
    """Both runs by phases until a second, and the larger totals of the first. `outcome` has all totals."""
    stretches = [(phase.name, phase.start, end if phase is phases[-1] else phase.end) for phase in phases]
    yield f"{'by phase':<28}" + "".join(f"{name:>10}" for name, _, _ in stretches)
    for run in (own, other):
        parts = [figures(run, *stretch) for _, *stretch in stretches]
        yield f"{run.name:<13}above goal, s  " + "".join(f"{part.above:>10}" for part in parts)
        yield f"{'':<13}CPU, core-s    " + "".join(f"{part.cpu:>10.1f}" for part in parts)
    yield from _worse(own, other, stretches, end)
    yield f"Above goal: seconds with a P99 above {GOAL:.0f} ms. One run of each:"
    yield "metrics are 10 to 25 s old, so when a rise is seen is chance, and some seconds"
    yield "with it."


def _worse(own: Run, other: Run, stretches: Sequence[tuple[str, float, float]], end: float) -> Iterable[str]:
    """A line about each total that is larger in the first run, with the phase that causes most of it."""
    mine, theirs = figures(own, 0, end), figures(other, 0, end)
    for name, field in (
        ("seconds above the goal", "above"),
        ("failed requests", "failed"),
        ("core-s of CPU", "cpu"),
        ("GiB-s of memory", "memory"),
    ):
        difference = round(getattr(mine, field) - getattr(theirs, field))
        if difference <= 0:
            continue
        by_phase = {
            phase: getattr(figures(own, begin, until), field) - getattr(figures(other, begin, until), field)
            for phase, begin, until in stretches
        }
        worst = max(by_phase, key=lambda phase: by_phase[phase])
        yield f"{difference} more {name}: {by_phase[worst]:.0f} in `{worst}` ({_MEANING[worst]})"


def _service(mine: Figures, theirs: Figures) -> str:
    """Whether the requests of both runs were answered equally well: only then do resources alone compare."""
    above, failed = mine.above - theirs.above, mine.failed - theirs.failed
    if abs(above) <= _EQUAL_SECONDS and abs(failed) * 100 <= mine.sent:
        return "about the same service, so the resources compare"
    if above <= _EQUAL_SECONDS and failed * 100 <= mine.sent:
        return "a better service, so fewer resources would have given the same"
    return "a worse service, so the resources do not compare: the same would have taken more"
