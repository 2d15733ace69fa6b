"""Rises of the load, and the phases of a policy's reaction to each."""

from __future__ import annotations

import math
import statistics
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Hpa
from hvpa.api.values.quantity import parse_cpu
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import NOTHING, Template
from hvpa_lab.simulate.model import Reaction

RISE: Final = 1.25
"""A rise goes from a low to at least this multiple of it …"""
SHARE: Final = 0.1
"""… and by at least this share of the largest load; a fall of the same size ends it."""
NOISE: Final = 10.0
"""A rise exceeds this many standard deviations of the noise between steps: over ten thousand steps, noise alone spans
more than eight."""
MOST_NOISE: Final = 3.0
"""A larger factor than this is not noise."""
_NORMAL: Final = 1.4826
"""Standard deviation of a normal distribution whose median absolute value is 1."""


class Rise(NamedTuple):
    """A rise in seconds: from the load's departure from its low to its peak."""

    start: float
    end: float


def find_rises(load: array[float], step: float) -> list[Rise]:
    """Returns all rises of a load, given a value per step. Changes smaller than `RISE`, `SHARE` and `NOISE` require do
    not count."""
    rises: list[Rise] = []
    noise, least = _noise(load), SHARE * max(load, default=0.0)
    factor = max(RISE, noise)
    low = start = high = 0
    rising = False
    for index, value in enumerate(load):
        if rising:
            if value >= load[high]:
                high = index
            elif value * factor <= load[high] and load[high] - value >= least:
                rises.append(Rise(start * step, high * step))
                rising, low = False, index
        elif value <= load[low]:
            low = index
        elif value >= load[low] * factor and value - load[low] >= least:
            rising, high = True, index
            start = _departure(load, low, index, load[low] * math.sqrt(noise))
    if rising:
        rises.append(Rise(start * step, high * step))
    return rises


def _departure(load: array[float], low: int, risen: int, quiet: float) -> int:
    """Returns the index at which the load finally left the noise around its low: the step after its last value up to
    `quiet`."""
    last = next((index for index in range(risen - 1, low, -1) if load[index] <= quiet), low)
    return last + 1


def _noise(load: array[float]) -> float:
    """Returns the largest factor that noise alone causes, calculated on a logarithmic scale: differences between steps
    are sqrt(2) times as wide as the noise. A recorded load that is constant between its values has no noise."""
    moves = [
        abs(math.log(after) - math.log(before)) for before, after in pairwise(load) if before > 0 < after
    ]
    deviation = _NORMAL * statistics.median(moves) / math.sqrt(2) if moves else 0.0
    return math.exp(min(NOISE * deviation, math.log(MOST_NOISE)))


def cpu_target(hpa: Hpa | None, state: SimWorkload) -> float | None:
    """Returns the CPU usage per pod, in millicores, at which the HPA's first CPU metric reaches its target. None
    without an HPA or a CPU metric, or if a required request is missing."""
    given = state.pod_resources
    for metric in () if hpa is None else hpa.spec.metrics:
        source = metric.resource or metric.container_resource
        if source is None or source.name != "cpu":
            continue
        if source.target.average_value is not None:
            return parse_cpu(source.target.average_value)
        names = [source.container] if metric.container_resource else _counted(given)
        requests = [given[name].requests.get("cpu") for name in names if name in given]
        if source.target.average_utilization and requests and None not in requests:
            return sum(request or 0 for request in requests) * source.target.average_utilization / 100
    return None


def _counted(given: Template) -> list[str]:
    """Returns the names whose CPU requests a pod's utilization is divided by: the pod itself if it has a request."""
    if "cpu" in given.get(POD, NOTHING).requests:
        return [POD]
    return [name for name in given if name != POD]


@dataclass(slots=True)
class _Progress:
    """The reaction to a rise so far: the end time of each phase, and the unmet demand in seconds."""

    beyond: float | None = None
    shown: float | None = None
    looked: float | None = None
    grown: float | None = None
    ready: float | None = None
    unmet: float = 0.0
    """Total time of unmet demand."""
    cover: float = 0.0
    """Longest continuous time of unmet demand."""
    short: float = 0.0
    """Current continuous time of unmet demand."""


class Reactions:
    """Follows the rises of a load during the simulation of a policy."""

    def __init__(self, rises: list[Rise], tolerance: float) -> None:
        self._rises = rises
        self._factor = 1 + tolerance
        self._begun = 0
        self._next_start = rises[0].start if rises else math.inf
        self._current: _Progress | None = None
        self.completed: list[Reaction] = []

    @property
    def open(self) -> bool:
        """Whether there is a rise whose reaction is not complete."""
        return self._current is not None and self._current.ready is None

    def step(self, now: float, step: float, unmet: bool) -> None:
        """Records a step of the simulation, and whether its demand is unmet."""
        if now >= self._next_start:
            self.finish()
            self._current = _Progress()
            self._begun += 1
            self._next_start = self._rises[self._begun].start if self._begun < len(self._rises) else math.inf
        if (current := self._current) is not None:
            current.short = current.short + step if unmet else 0.0
            current.unmet += step * unmet
            current.cover = max(current.cover, current.short)

    def used(self, now: float, per_pod: float, target: float | None) -> None:
        """Records the CPU usage per ready pod in the step that begins now, and the HPA's target."""
        current = self._current
        if current is not None and current.beyond is None and target and per_pod > target * self._factor:
            current.beyond = now

    def hpa_synced(self, now: float, published: float | None, *, wants_out: bool) -> None:
        """Records a sync of the HPA: whether it wants more replicas, from metrics published at that time."""
        current = self._current
        if current is not None and current.looked is None and current.grown is None and wants_out:
            current.looked, current.shown = now, published

    def grew(self, now: float) -> None:
        """Records a raise of replicas or requests."""
        if self._current is not None and self._current.grown is None:
            self._current.grown = now

    def settled(self, now: float) -> None:
        """Records that all desired pods are ready."""
        current = self._current
        if current is not None and current.grown is not None and current.ready is None:
            current.ready = now if now > current.grown else None

    def finish(self) -> None:
        """Completes the reaction to the current rise, at the next rise or the scenario's end."""
        current, self._current = self._current, None
        if current is None:
            return
        rise, shown, beyond = self._rises[self._begun - 1], current.shown, current.beyond
        if beyond is not None and shown is not None:
            beyond = min(beyond, shown)
        self.completed.append(
            Reaction(
                start=rise.start,
                end=rise.end,
                tolerance=_between(rise.start, beyond if shown is not None else None),
                metric_age=_between(beyond, shown),
                hpa_period=_between(shown, current.looked),
                gates=_between(current.looked, current.grown),
                start_up=_between(current.grown, current.ready),
                unmet_seconds=current.unmet,
                total=_between(rise.start, current.grown),
                cover_seconds=current.cover,
                covered=current.short == 0 or current.short < current.cover,
            )
        )


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)
