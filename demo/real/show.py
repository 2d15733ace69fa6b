"""The output of the demo on real nodes: the latency of requests, and the resources that the kernel grants the
containers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence

from demo.real.cluster import RealCluster, RunningContainer
from demo.real.comparison import GOAL
from demo.scenario import Scenario
from demo.show import Screen, Show
from demo.snapshot import Columns, Snapshot, clock, cpu, held, join, memory
from localcluster.node.cgroups import Granted
from localcluster.workloads.traffic import REQUEST_CPU, Answers, milliseconds, together

COLUMNS: Columns = (
    ("time", 5),
    ("sent/s", 6),
    ("failed", 6),
    ("P50", 7),
    ("P99", 7),
    ("pods", 4),
    ("asked", 6),
    ("CPU max", 8),
    ("mem max", 9),
    ("restarts", 8),
)
_SHOWN_SECONDS = 5
"""Number of seconds whose requests form a line."""
_MICROSECONDS = 100
"""CPU microseconds in the kernel's period of 100 ms: a millicore."""


class RealShow(Show):
    """A run under the load, and the resources that the kernel grants during it."""

    def __init__(self, real: RealCluster, screen: Screen) -> None:
        super().__init__(real, screen)
        self._real = real
        self._before: dict[str, Granted] = {}
        self._first: dict[str, Granted] = {}
        self.grown: set[str] = set()
        """The pods whose containers got more CPU while they ran, without a restart."""
        screen.begin_table(COLUMNS)

    def remark(self, elapsed: float) -> None:
        """Report a change of the kernel's grants to containers that keep running."""
        now = self._real.containers
        if text := resized(self._before, now):
            self.screen.report(f"   {clock(elapsed)} {text}")
        for container in now:
            first = self._first.setdefault(container.pod, container.granted)
            if first.quota < container.granted.quota and not container.restarts:
                self.grown.add(container.pod)
        self._before = {container.pod: container.granted for container in now}

    def row(self, snapshot: Snapshot, elapsed: float) -> str:
        """A line of the table."""
        return row(self._real.answers(), self._real.containers, snapshot, elapsed, dt.datetime.now(dt.UTC))


class RivalShow(RealShow):
    """The run for the comparison, for some seconds."""

    def __init__(self, real: RealCluster, screen: Screen, seconds: float) -> None:
        super().__init__(real, screen)
        self._seconds = seconds

    def is_over(self) -> bool:
        """Whether the run has lasted that long."""
        return self.cluster.elapsed >= self._seconds


def row(
    answers: Mapping[int, Answers],
    containers: Sequence[RunningContainer],
    snapshot: Snapshot,
    elapsed: float,
    now: dt.datetime,
) -> str:
    """A line of the table. Its requests are those of the last seconds whose requests have all ended."""
    shown = [answers[second] for second in sorted(answers)[-_SHOWN_SECONDS:]]
    recent = together(shown)
    granted = [container.granted for container in containers]
    cells = {
        "time": clock(elapsed),
        "sent/s": f"{recent.sent / len(shown):.0f}" if shown else "-",
        "failed": str(recent.failed),
        "P50": milliseconds(recent.percentile(50)),
        "P99": milliseconds(recent.percentile(99)),
        "pods": f"{snapshot.ready}/{snapshot.replicas}",
        "asked": cpu(snapshot.asked),
        "CPU max": _range((grant.quota / _MICROSECONDS for grant in granted), cpu),
        "mem max": _range((grant.limit for grant in granted), memory),
        "restarts": str(snapshot.restarts),
    }
    return join([*(cells[name].rjust(width) for name, width in COLUMNS), held(snapshot.held, now)])


def resized(before: Mapping[str, Granted], now: Sequence[RunningContainer]) -> str:
    """The cgroup files of running containers with values that differ from before, as text; empty if none differs."""
    pairs = [
        (before[container.pod], container.granted)
        for container in now
        if container.pod in before and _limits(before[container.pod]) != _limits(container.granted)
    ]
    if not pairs:
        return ""
    files: tuple[tuple[str, Callable[[Granted], float], Callable[[float], str]], ...] = (
        ("cpu.cfs_quota_us", lambda grant: grant.quota, "{:.0f}".format),
        ("cpu.shares", lambda grant: grant.shares, "{:.0f}".format),
        ("memory.limit_in_bytes", lambda grant: grant.limit, memory),
    )
    texts = []
    for name, value, show in files:
        changed = [(value(old), value(new)) for old, new in pairs if value(old) != value(new)]
        if changed:
            olds, news = zip(*changed, strict=True)
            texts.append(f"{name} {_range(olds, show)} to {_range(news, show)}")
    count = "1 container" if len(pairs) == 1 else f"{len(pairs)} containers"
    return f"cgroups of {count}, running: {', '.join(texts)}"


def _limits(granted: Granted) -> tuple[int, int, int]:
    return granted.shares, granted.quota, granted.limit


def _range(values: Iterable[float], show: Callable[[float], str]) -> str:
    """`200m`, or `200-410m` if they differ."""
    known = sorted(values)
    if not known:
        return "-"
    least, most = show(known[0]), show(known[-1])
    return most if least == most else f"{least.rstrip('mMi')}-{most}"


def introduce(scenario: Scenario, screen: Screen) -> None:
    """Introduce the run, and explain the table."""
    low, high = (round(load / REQUEST_CPU) for load in (scenario.low_cpu, scenario.high_cpu))
    for text in (
        "",
        f"In {clock(scenario.seconds)} minutes or more, {low} requests a second become {high}, and {low} again.",
        f"Each uses {REQUEST_CPU:.0f} ms of CPU. They are spread over the pods that are ready, as a Service does.",
        "HPA and VPA only recommend; the Hvpa (blend: Trajectory) solves both together, and it alone scales.",
        f"  sent/s … P99    of the last {_SHOWN_SECONDS} seconds whose requests have ended; goal: a P99 of {GOAL:.0f}",
        "  pods, asked     ready / wanted, and CPU that all pods request",
        "  CPU, mem max    what the kernel grants a container at most: cpu.cfs_quota_us, memory.limit_in_bytes",
        "  held back       what the Hvpa does not do (yet), for how long, and why",
        "",
    ):
        screen.report(text)
