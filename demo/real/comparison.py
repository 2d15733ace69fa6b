"""Compares two runs under the same load. Pure: measurements in, text out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from demo.outcome import Row, compared, lines
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
            row("P99", lambda run: milliseconds(run.slow), lambda run: run.slow or 0),
            Row("restarts", str(own.restarts), str(other.restarts) if other else "not run"),
            row("CPU requested", lambda run: f"{run.cpu:.0f} core-s", lambda run: run.cpu),
            row("memory requested", lambda run: f"{run.memory:.0f} GiB-s", lambda run: run.memory),
        ]
    )
    if theirs:
        yield f"  {_service(mine, theirs)}"
    yield "A run of minutes is mostly the way up and down. Weeks of other loads: the picture at the top of README.md."


def back(run: Run) -> float | None:
    """The second from which on pods request at most a tenth more CPU than at first; None if that was not observed."""
    within: float | None = None
    for sample in run.samples:
        if sample.cpu * 10 > run.samples[0].cpu * 11:
            within = None
        elif within is None:
            within = sample.elapsed
    return within


_MEANING = {
    "calm": "before anything happens",
    "rise": "how soon there is more",
    "peak": "how much there is of it",
    "fall": "how soon it is given back",
    "after": "how long it is kept, and a day has few such minutes",
}
_EQUAL_SECONDS: Final = 5
"""Seconds above the goal by which the services of two runs may differ: when a metric shows a rise is chance."""
_HEAD = (
    f"{'':<13}{'above goal':>11}{'failed':>17}{'P50':>10}{'P99':>10}{'CPU requested':>16}"
    f"{'memory requested':>19}{'restarts':>10}{'back at':>9}"
)


def table(own: Run, other: Run, phases: Sequence[Phase], end: float) -> Iterable[str]:
    """A table of both runs until a second, in total and by phases, and their differences."""
    yield f"Until {clock(end)}, and when the requests were back at the first ones. Above the goal: seconds with a P99"
    yield f"above {GOAL:.0f} ms. No answer within 2 s counts as failed."
    yield _HEAD
    for run in (own, other):
        total = figures(run, 0, end)
        yield (
            f"{run.name:<13}{total.above:>9} s{f'{total.failed} of {total.sent}':>17}{milliseconds(total.median):>10}"
            f"{milliseconds(total.slow):>10}{total.cpu:>9.0f} core-s{total.memory:>13.0f} GiB-s{run.restarts:>10}"
            f"{clock(at) if (at := back(run)) is not None else f'>{clock(end)}':>9}"
        )
    yield ""
    stretches = [(phase.name, phase.start, end if phase is phases[-1] else phase.end) for phase in phases]
    yield f"{'by phase':<28}" + "".join(f"{name:>10}" for name, _, _ in stretches)
    for run in (own, other):
        parts = [figures(run, *stretch) for _, *stretch in stretches]
        yield f"{run.name:<13}above goal, s  " + "".join(f"{part.above:>10}" for part in parts)
        yield f"{'':<13}CPU, core-s    " + "".join(f"{part.cpu:>10.1f}" for part in parts)
    yield ""
    yield from _differences(own, other, stretches, end)
    yield "One run of each: the metrics are 10 to 25 s old, so when a rise is seen is chance, and some seconds with it."


def _differences(
    own: Run, other: Run, stretches: Sequence[tuple[str, float, float]], end: float
) -> Iterable[str]:
    """Sentences about the better and worse results, and the phase that causes most of the worse results."""
    yield f"{own.name} beside {other.name}:"
    mine, theirs = figures(own, 0, end), figures(other, 0, end)
    yield f"  {_service(mine, theirs)}"
    rows = (
        ("seconds above the goal", mine.above, theirs.above, "above"),
        ("failed requests", mine.failed, theirs.failed, "failed"),
        ("core-seconds of CPU requested", mine.cpu, theirs.cpu, "cpu"),
        ("GiB-seconds of memory requested", mine.memory, theirs.memory, "memory"),
    )
    for name, amount, another, field in rows:
        difference = round(amount - another)
        if difference <= 0:
            yield f"  {f'{-difference} fewer' if difference else 'as many'} {name}"
            continue
        by_phase = {
            phase: getattr(figures(own, begin, until), field) - getattr(figures(other, begin, until), field)
            for phase, begin, until in stretches
        }
        worst = max(by_phase, key=lambda phase: by_phase[phase])
        yield (
            f"  {difference} more {name}, most in the phase `{worst}` ({by_phase[worst]:.0f}: {_MEANING[worst]})"
        )


def _service(mine: Figures, theirs: Figures) -> str:
    """Whether the requests of both runs were answered equally well: only then do resources alone compare."""
    above, failed = mine.above - theirs.above, mine.failed - theirs.failed
    if abs(above) <= _EQUAL_SECONDS and abs(failed) * 100 <= mine.sent:
        return "about the same service, so the resources compare"
    if above <= _EQUAL_SECONDS and failed * 100 <= mine.sent:
        return "a better service, so fewer resources would have given the same"
    return "a worse service, so the resources do not compare: the same would have taken more"
