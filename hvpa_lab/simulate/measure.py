"""Records a policy during its simulation, and calculates its totals."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence
from typing import Final

from hvpa.api.objects.read_models import Hpa
from hvpa.api.values.duration import HOUR
from hvpa.api.values.quantity import GIB, RESOURCES, Resource
from hvpa.core.model import Axis, Direction
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import pod_shape
from hvpa_lab.simulate.model import (
    Policy,
    PolicyResult,
    Reaction,
    Scenario,
    Series,
    SimulationEvent,
    Tick,
    Totals,
)
from hvpa_lab.simulate.reactions import Reactions, cpu_target, find_rises

MOST_EVENTS: Final = 5_000
"""Maximum number of events to keep per policy; further events are only counted."""
MILLI: Final = 1000.0
NEGLIGIBLE: Final = 1e-6
"""Unmet demand, in millicores, that counts as a rounding error."""
AMOUNTS: Final = Tick._fields[:7]
"""Recorded amounts of a step, each in the series of the same name."""


class Recorder:
    """Records each step and each change; `result` adds them up. `now` is the time in seconds."""

    def __init__(self, scenario: Scenario, state: SimWorkload, load: array[float]) -> None:
        self._scenario = scenario
        self._state = state
        requests = {(name, resource): array("d") for name in state.template for resource in RESOURCES}
        self._series = series = Series(scenario.step, load, requests)
        self._columns = [*(getattr(series, name) for name in AMOUNTS), *requests.values()]
        self._means: list[float] = []
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
        """Records an event that happens now."""
        self.take([SimulationEvent(self.now, kind, reason, message)])

    def take(self, events: list[SimulationEvent]) -> None:
        """Records these events and empties the list."""
        room = MOST_EVENTS - len(self._events)
        self._events += events[:room]
        self._dropped += max(0, len(events) - room)
        events.clear()

    def scaled(self, axis: Axis, *directions: Direction) -> None:
        """Records a change of the replicas, or of the requests."""
        if self.now >= self._scenario.warm_up:
            self._changes[axis] += 1
        if "up" in directions:
            self.reactions.grew(self.now)

    def step(self, tick: Tick, length: float, hpa: Hpa | None) -> None:
        """Records a step that began `now` and took `length` seconds (only the last step may be shorter). `hpa` is the
        HPA that scales the workload."""
        state, reactions = self._state, self.reactions
        self._last = length
        is_short = tick.unmet > NEGLIGIBLE
        if state.changes != self._seen_changes:
            self._seen_changes = state.changes
            self._means = [self._mean_request(*key) for key in self._series.requests]
        amounts = (tick.demand, tick.unmet if is_short else 0.0, *tick[2 : len(AMOUNTS)])
        for column, value in zip(self._columns, (*amounts, *self._means), strict=True):
            column.append(value)
        self._series.replicas.append(state.replicas)
        self._series.ready.append(tick.ready)
        reactions.step(self.now, length, is_short)
        if reactions.open and tick.ready:
            reactions.used(self.now, tick.used_cpu / tick.ready, cpu_target(hpa, state))
            if tick.ready >= state.replicas and state.updated_replicas >= state.replicas:
                reactions.settled(self.now + length)
        if self.now >= self._scenario.warm_up:
            self._ooms += tick.ooms
            self._restarts += tick.restarts
        else:
            self._warm_node_seconds = state.node_seconds

    def _mean_request(self, container: str, resource: Resource) -> float:
        """Returns the mean request of the pods; without pods, the request of a new pod."""
        owners = [pod.resources for pod in self._state.pods] or [self._state.pod_resources]
        if container == POD:
            index = RESOURCES.index(resource)
            return sum(pod_shape(resources)[index] for resources in owners) / len(owners)
        return sum(resources[container].requests.get(resource, 0) for resources in owners) / len(owners)

    def result(self, policy: Policy) -> PolicyResult:
        """Returns the whole record. Call it once, at the end."""
        self.reactions.finish()
        reactions = tuple(
            reaction for reaction in self.reactions.completed if reaction.start >= self._scenario.warm_up
        )
        return PolicyResult(
            name=policy.name,
            kind=policy.kind,
            totals=self._totals(reactions),
            series=self._series,
            events=tuple(self._events),
            reactions=reactions,
            dropped_events=self._dropped,
        )

    def _totals(self, reactions: tuple[Reaction, ...]) -> Totals:
        series, step = self._series, self._scenario.step
        first = math.ceil(self._scenario.warm_up / step)

        def total(column: Sequence[float]) -> float:
            """Returns the sum over time, in unit-seconds."""
            return math.fsum(column[first:]) * step + column[-1] * (self._last - step)

        cpu_requested, cpu_used = total(series.requested_cpu), total(series.used_cpu)
        memory_requested, memory_used = total(series.requested_memory), total(series.used_memory)
        unmet, demand = total(series.unmet) / MILLI, total(series.demand) / MILLI
        short = [float(amount > 0) for amount in series.unmet]
        times = [reaction.total for reaction in reactions if reaction.total is not None]
        covers = [reaction.cover_seconds for reaction in reactions]
        return Totals(
            core_hours_requested=cpu_requested / HOUR / MILLI,
            core_hours_used=cpu_used / HOUR / MILLI,
            gib_hours_requested=memory_requested / HOUR / GIB,
            gib_hours_used=memory_used / HOUR / GIB,
            slack_cpu=1 - cpu_used / cpu_requested if cpu_requested else 0.0,
            slack_memory=1 - memory_used / memory_requested if memory_requested else 0.0,
            unmet_core_seconds=unmet,
            unmet_share=total(short) / total([1.0] * len(short)),
            ooms=self._ooms,
            restarts=self._restarts,
            replica_changes=self._changes["horizontal"],
            request_changes=self._changes["vertical"],
            node_hours=(self._state.node_seconds - self._warm_node_seconds) / HOUR,
            reaction_median_seconds=statistics.median(times) if times else None,
            reaction_max_seconds=max(times, default=None),
            demand_core_seconds=demand,
            unmet_demand_share=unmet / demand if demand else 0.0,
            cover_median_seconds=statistics.median(covers) if covers else None,
            cover_max_seconds=max(covers, default=None),
        )
