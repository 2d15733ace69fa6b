"""The output of the demo: the table line by line, a sentence at each phase of the load and at each scaling, and the
summary. `demo_cluster.py` is its environment, `verdict.py` judges it."""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
import time
from abc import ABC, abstractmethod
from typing import Any, NoReturn, TextIO

from demo.demo_cluster import NAME, NAMESPACE, DemoCluster
from demo.scenario import Phase, State
from demo.simulated import SimulatedDemo
from demo.snapshot import IN_PLACE, ROLLOUT, Columns, LoadState, Snapshot, clock, cpu, header, line
from demo.verdict import Step, Verdict, changes, judge, missing, state_of
from localcluster.client.api import ApiError

_PERIOD_SECONDS = 1.0
_LINE_EVERY_SECONDS = 5.0
_HEADER_EVERY_LINES = 24
# Seconds of quiet to show at the end, once the initial state is reached.
_QUIET_SECONDS = 15.0
# Maximum seconds after the load's end until the initial state is reached: two holds of a minute after the last step.
_GRACE_SECONDS = 180.0
_ERASE_LINE = "\r\x1b[K"
_ROLLOUT = ("  HPA, VPA target what the recommenders ask for: replicas; CPU and memory requests",)
_IN_PLACE = (
    "  sizes, resized  what each pod is to request, and how many pods have it; restarts for that: none",
    "  asked, HPA+VPA  CPU that all pods request now, and what an HPA beside a VPA would (simulated)",
)


class Screen:
    """Lines on a terminal or in a file. On a terminal the last line shows the present state and is redrawn each second;
    a file gets a line every few seconds and at each change."""

    def __init__(self, out: TextIO) -> None:
        self.columns = ROLLOUT
        self._out = out
        self._redraws = out.isatty()
        self._lines = 0
        self._printed = float("-inf")

    def begin_table(self, columns: Columns) -> None:
        """A new table."""
        self.columns = columns
        self._lines, self._printed = 0, float("-inf")

    def report(self, text: str) -> None:
        """Print a separate line."""
        self._write(f"{text}\n")

    def row(self, text: str, at: float, *, changed: bool) -> None:
        """A line of the table, for second `at`: kept when a value changed or enough time has passed."""
        if changed or at - self._printed >= _LINE_EVERY_SECONDS:
            if self._lines % _HEADER_EVERY_LINES == 0:
                self._write(f"{header(self.columns)}\n")
            self._write(f"{text}\n")
            self._lines += 1
            self._printed = at
        elif self._redraws:
            # A wrapped line could not be redrawn.
            self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        self._out.write((_ERASE_LINE if self._redraws else "") + text)
        self._out.flush()


class Show(ABC):
    """A run of the load, watched until its outcome is certain."""

    def __init__(self, demo_cluster: DemoCluster[Any], screen: Screen) -> None:
        self.cluster = demo_cluster
        self.screen = screen
        self._scenario = demo_cluster.scenario
        self._phase: Phase | None = None
        self._seen: list[Snapshot] = []
        self._steps: list[Step] = []
        self._course: list[tuple[float, State]] = []

    def remark(self, elapsed: float) -> None:  # noqa: B027, most have nothing to add
        """Report other changes since the last look."""

    @abstractmethod
    def row(self, snapshot: Snapshot, elapsed: float) -> str:
        """A line of the table."""

    def run(self) -> Verdict:
        """Watch until all four directions were observed and the workload is back in its initial state, or can't get
        there any more."""
        self.watch()
        return judge(self.cluster.evidence(self._seen, self._course))

    def watch(self) -> None:
        """The same, without a verdict."""
        self.cluster.begin()
        last: Snapshot | None = None
        while not self.is_over():
            elapsed = self.cluster.elapsed
            self._report_phase(elapsed)
            try:
                snapshot = self.cluster.look()
            except (ApiError, OSError) as error:
                self.screen.report(f"   {clock(elapsed)} the API server did not answer: {error}")
                time.sleep(_PERIOD_SECONDS)
                continue
            self._show(snapshot, last, elapsed)
            self._seen.append(snapshot)
            last = snapshot
            time.sleep(_PERIOD_SECONDS)

    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        elapsed, scenario = self.cluster.elapsed, self._scenario
        rise, fall, after = (scenario.phase(name) for name in ("rise", "fall", "after"))
        lacks = missing(self._steps, rise.start, fall.start)
        if elapsed >= fall.start and ("out" in lacks or "up" in lacks):
            return True
        if lacks:
            return elapsed >= scenario.seconds + _GRACE_SECONDS
        quiet = elapsed >= max(after.start, self._steps[-1].seconds) + _QUIET_SECONDS
        back = state_of(self._seen[-1]).is_as(state_of(self._seen[0]))
        return (back and quiet) or elapsed >= scenario.seconds + _GRACE_SECONDS

    def _report_phase(self, elapsed: float) -> None:
        phase = self._scenario.phase_at(elapsed)
        if phase != self._phase:
            self._phase = phase
            self.screen.report(f"-- {clock(elapsed)} {phase.name}: {phase.story}")

    def _show(self, snapshot: Snapshot, last: Snapshot | None, elapsed: float) -> None:
        steps = [] if last is None else changes(state_of(last), state_of(snapshot), elapsed)
        for step in steps:
            self.screen.report(f">> {clock(elapsed)} scaled {step.direction}: {step.what}")
        self._steps += steps
        if steps or not self._course:
            self._course.append((elapsed, state_of(snapshot)))
        self.remark(elapsed)
        self.screen.row(self.row(snapshot, elapsed), elapsed, changed=bool(steps))


class SimulatedShow(Show):
    """On simulated nodes, which get the load as usage."""

    def __init__(self, demo_cluster: SimulatedDemo, screen: Screen) -> None:
        super().__init__(demo_cluster, screen)
        self._simulated = demo_cluster
        if demo_cluster.in_place:
            screen.begin_table(IN_PLACE)

    def row(self, snapshot: Snapshot, elapsed: float) -> str:
        """A line of the table."""
        usage = self._simulated.load.usage
        load_state = LoadState(
            elapsed, dt.datetime.now(dt.UTC), usage.total_cpu, usage.cpu, self._simulated.rival
        )
        return line(self.screen.columns, load_state, snapshot)


def introduce(demo_cluster: SimulatedDemo, screen: Screen) -> None:
    """Introduce the demo, and explain the table."""
    scenario = demo_cluster.scenario
    course = f"a load of {cpu(scenario.low_cpu)} rises to {cpu(scenario.high_cpu)} and falls back"
    for text in (
        "",
        f"Over the next {clock(scenario.seconds)} minutes or more {course}, shared by all ready pods.",
        "HPA and VPA only recommend; the Hvpa (blend: Trajectory) solves both together, and it alone scales.",
        "  load, each      CPU that arrives in total, and what one pod uses",
        "  pods            ready / wanted by the Deployment's spec.replicas",
        *(_IN_PLACE if demo_cluster.in_place else _ROLLOUT),
        "  held back       what the Hvpa does not do (yet), for how long, and why",
        "",
    ):
        screen.report(text)


def conclude(verdict: Verdict, screen: Screen) -> None:
    """Print the summary, the missing parts, and the last screen."""
    screen.report("")
    screen.report("Summary")
    for text in verdict.summary:
        screen.report(f"  {text}")
    screen.report("")
    if not verdict.faults:
        screen.report("Good: scaled out, up, in and down, and back where it began, by the operator alone.")
    for fault in verdict.faults:
        screen.report(f"FAILED: {fault}")
    if verdict.outcome:
        screen.report("")
    for text in verdict.outcome:
        screen.report(text)


def describe_use(demo_cluster: SimulatedDemo, screen: Screen) -> None:
    """Explain how to use the running control plane, and how to stop it."""
    kubectl = f"{demo_cluster.plane.programs['kubectl']} -n {NAMESPACE}"
    for text in (
        "",
        "Left running (KEEP=1); the load goes on rising and falling. To look at it:",
        f"  export KUBECONFIG={demo_cluster.plane.kubeconfig}",
        f"  {kubectl} get hvpa,hpa,vpa,deployment,pod",
        f"  {kubectl} describe hvpa {NAME}",
        f"  {kubectl} get events --watch",
        f"  tail -f {demo_cluster.operator.log}",
        f"All logs: {demo_cluster.plane.logs}",
        "To stop everything: make cluster-down",
    ):
        screen.report(text)


def go_on(demo_cluster: SimulatedDemo) -> NoReturn:
    """Let the load rise and fall again and again, until a signal ends it. If a process ends in that time (a user may
    stop the operator on purpose), leave it as it is."""
    while True:
        if demo_cluster.elapsed >= demo_cluster.scenario.seconds:
            demo_cluster.begin()
        with contextlib.suppress(ApiError, OSError):
            demo_cluster.see()
        time.sleep(_PERIOD_SECONDS)
