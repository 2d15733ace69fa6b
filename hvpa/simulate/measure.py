"""What is recorded of a policy while it is simulated, and the figures that come of it."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence
from typing import Final

from hvpa.api.objects.read_models import Hpa
from hvpa.api.values.quantity import Resource
from hvpa.core.model import Axis, Direction
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.model import (
    Policy,
    PolicyResult,
    Reaction,
    Scenario,
    Series,
    SimulationEvent,
    Tick,
    Totals,
)
from hvpa.simulate.reactions import Reactions, cpu_target, find_rises

MOST_EVENTS: Final = 5_000
"""Events that are kept of one policy; further ones are counted."""
HOUR: Final = 3600.0
MILLI: Final = 1000.0
GIB: Final = 1024.0**3
NEGLIGIBLE: Final = 1e-6
"""Unmet demand in millicores that is taken for rounding."""
_RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory")


class Recorder:
    """Takes in each step and each change; `result` adds them up."""

    def __init__(self, scenario: Scenario, state: Workload, load: array[float]) -> None:
        self._scenario = scenario
        self._state = state
        self._load = load
        self._first = math.ceil(scenario.warm_up / scenario.step)
        self._columns = tuple(array("d") for _ in range(7))
        self._replicas, self._ready = array("q"), array("q")
        self._resized: list[tuple[int, list[float]]] = []
        self._seen_changes = -1
        self._events: list[SimulationEvent] = []
        self._dropped = 0
        self._changes: dict[Axis, int] = {"horizontal": 0, "vertical": 0}
        self._ooms = self._restarts = 0
        self._warm_node_seconds = 0.0
        self._last = scenario.step
        self.now = 0.0
        self.reactions = Reactions(find_rises(load, scenario.step), scenario.controllers.hpa.tolerance)

    def record(self, kind: str, reason: str, message: str) -> None:
        """Note something that happened now."""
        self.take([SimulationEvent(self.now, kind, reason, message)])

    def take(self, events: list[SimulationEvent]) -> None:
        """Note what happened, and empty the list."""
        room = MOST_EVENTS - len(self._events)
        self._events += events[:room]
        self._dropped += max(0, len(events) - room)
        events.clear()

    def scaled(self, axis: Axis, *directions: Direction) -> None:
        """Note a change of the replicas, or of the requests."""
        if self.now >= self._scenario.warm_up:
            self._changes[axis] += 1
        if "up" in directions:
            self.reactions.grew(self.now)

    def step(self, tick: Tick, length: float, hpa: Hpa | None) -> None:
        """Take in a step that began `now` and was so many seconds long (only the last one may be shorter than the
        others); `hpa` is the HPA that scales the workload."""
        state = self._state
        self._last = length
        starved = tick.unmet if tick.unmet > NEGLIGIBLE else 0.0
        values = (tick.demand, tick.capacity, starved, tick.used_cpu, tick.used_memory)
        for column, value in zip(
            self._columns, (*values, tick.requested_cpu, tick.requested_memory), strict=True
        ):
            column.append(value)
        self._replicas.append(state.replicas)
        self._ready.append(tick.ready)
        if state.changes != self._seen_changes:
            self._see_pods()
        reactions = self.reactions
        reactions.step(self.now, length, tick.unmet > NEGLIGIBLE)
        if reactions.open and tick.ready:
            reactions.used(self.now, tick.used_cpu / tick.ready, cpu_target(hpa, state))
            if tick.ready >= state.replicas and state.updated_replicas >= state.replicas:
                reactions.settled(self.now + length)
        if self.now >= self._scenario.warm_up:
            self._ooms += tick.ooms
            self._restarts += tick.restarts
        else:
            self._warm_node_seconds = state.node_seconds

    def _see_pods(self) -> None:
        """The mean requests per pod, which change only with the pods."""
        state = self._state
        self._seen_changes = state.changes
        means: list[float] = []
        for container, resource in self._governed():
            amounts = [pod.resources[container].requests.get(resource, 0) for pod in state.pods]
            own = state.pod_resources[container].requests.get(resource, 0)
            means.append(sum(amounts) / len(amounts) if amounts else own)
        if not self._resized or self._resized[-1][1] != means:
            self._resized.append((len(self._replicas) - 1, means))

    def _governed(self) -> list[tuple[str, Resource]]:
        containers = self._scenario.workload.containers
        return [(one.name, resource) for one in containers for resource in _RESOURCES]

    def _requests(self) -> dict[tuple[str, Resource], array[float]]:
        """The mean requests per pod at each step."""
        steps = len(self._replicas)
        ends = [begin for begin, _ in self._resized[1:]] + [steps]
        columns: dict[tuple[str, Resource], array[float]] = {}
        for at, name in enumerate(self._governed()):
            column = columns[name] = array("d")
            for (begin, means), end in zip(self._resized, ends, strict=True):
                column.extend(array("d", [means[at]]) * (end - begin))
        return columns

    def result(self, policy: Policy) -> PolicyResult:
        """All that was recorded. Call it once, at the end."""
        self.reactions.finish()
        demand, capacity, unmet, cpu, memory, cpu_requested, memory_requested = self._columns
        series = Series(
            step=self._scenario.step,
            load=self._load,
            demand=demand,
            capacity=capacity,
            unmet=unmet,
            used_cpu=cpu,
            used_memory=memory,
            requested_cpu=cpu_requested,
            requested_memory=memory_requested,
            replicas=self._replicas,
            ready=self._ready,
            requests=self._requests(),
        )
        reactions = tuple(one for one in self.reactions.found if one.start >= self._scenario.warm_up)
        return PolicyResult(
            name=policy.name,
            kind=policy.kind,
            totals=self._totals(series, reactions),
            series=series,
            events=tuple(self._events),
            reactions=reactions,
            dropped_events=self._dropped,
        )

    def _totals(self, series: Series, reactions: tuple[Reaction, ...]) -> Totals:
        step, shorter = self._scenario.step, self._last - self._scenario.step

        def total(column: Sequence[float]) -> float:
            """Over time, in unit-seconds."""
            return math.fsum(column[self._first :]) * step + column[-1] * shorter

        cpu_requested, cpu_used = total(series.requested_cpu), total(series.used_cpu)
        memory_requested, memory_used = total(series.requested_memory), total(series.used_memory)
        starved = [float(one > 0) for one in series.unmet]
        times = [one.total for one in reactions if one.total is not None]
        covers = [one.cover_seconds for one in reactions]
        longest = max(covers, default=None)
        return Totals(
            core_hours_requested=cpu_requested / HOUR / MILLI,
            core_hours_used=cpu_used / HOUR / MILLI,
            gib_hours_requested=memory_requested / HOUR / GIB,
            gib_hours_used=memory_used / HOUR / GIB,
            slack_cpu=1 - cpu_used / cpu_requested if cpu_requested else 0.0,
            slack_memory=1 - memory_used / memory_requested if memory_requested else 0.0,
            unmet_core_seconds=total(series.unmet) / MILLI,
            unmet_share=total(starved) / total([1.0] * len(starved)),
            ooms=self._ooms,
            restarts=self._restarts,
            replica_changes=self._changes["horizontal"],
            request_changes=self._changes["vertical"],
            node_hours=(self._state.node_seconds - self._warm_node_seconds) / HOUR,
            reaction_median=statistics.median(times) if times else None,
            reaction_max=max(times, default=None),
            demand_core_seconds=total(series.demand) / MILLI,
            cover_median=statistics.median(covers) if covers else None,
            cover_max=longest,
            covered=all(one.covered for one in reactions if one.cover_seconds == longest),
        )
