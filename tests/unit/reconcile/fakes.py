"""Hand-written fakes of the ports."""

from __future__ import annotations

import datetime as dt
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, to_wire
from hvpa.api.objects.read_models import Meta
from hvpa.core.model import Axis, Blocked, Direction, Event, Objects, OwnedChange, PodResize, WorkloadPatch
from hvpa.reconcile.ports import Key, ResizeFailures, SizeChanges, WriteError
from hvpa.reconcile.telemetry import Operation, Outcome, Telemetry

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("the coroutine waited for something")


def patched(old: object, patch: Mapping[str, object]) -> dict[str, object]:
    """`old` after a JSON merge patch (RFC 7386)."""
    result: dict[str, object] = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value) if isinstance(value, Mapping) else value
    return result


@dataclass
class FakeClock:
    """A clock that stands still unless it is told otherwise."""

    time: dt.datetime = build.NOW

    def now(self) -> dt.datetime:
        return self.time


@dataclass
class FakeCluster:
    """Holds the objects of one Hvpa. `failures` maps a write's name to the error that it raises. `keeps`: a status
    that is written is the Hvpa's from then on."""

    one: Objects | None
    failures: dict[str, Exception] = field(default_factory=dict)
    writes: list[tuple[str, Any]] = field(default_factory=list)
    statuses: list[tuple[Meta, HvpaStatus]] = field(default_factory=list)
    keeps: bool = False
    memory: Mapping[tuple[str, str], int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def objects(self, key: Key) -> Objects | None:
        if "objects" in self.failures:
            raise self.failures["objects"]
        return self.one

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        self._note("workload", patch)

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        self.writes.append(("resizes", resizes))
        failure = self.failures.get("resizes")
        return [(resizes[0], failure)] if isinstance(failure, WriteError) else []

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        self.asked.append(selector)
        return self.memory

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        if changes is not None or "creation_sizes" in self.failures:
            self._note("creation_sizes", changes)

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        assert self.one is not None
        assert patched(to_wire(self.one.hvpa.status), patch) == to_wire(status)
        self.statuses.append((hvpa, status))
        self._note("status", patch)
        if self.keeps:
            self.status_is(status)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        self._note("scale_replicas", replicas)

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        self._note("owned", change)

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        self.writes.append(("event", event))

    def names(self) -> list[str]:
        return [name for name, _ in self.writes]

    def status_is(self, status: HvpaStatus) -> None:
        assert self.one is not None
        self.one = replace(self.one, hvpa=build.with_status(self.one.hvpa, status))

    def _note(self, name: str, what: object) -> None:
        if name in self.failures:
            raise self.failures[name]
        self.writes.append((name, what))


@dataclass
class FakeTelemetry(Telemetry):
    """Remembers all that it is told."""

    told: list[tuple[Any, ...]] = field(default_factory=list)

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        self.told.append(("applied", axis, direction))

    def blocked(self, key: Key, blocked: Blocked) -> None:
        self.told.append(("blocked", blocked.axis, blocked.direction, blocked.reason))

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        self.told.append(("write failed", operation, kind))

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        self.told.append(("finished", key, outcome))

    def forgotten(self, key: Key) -> None:
        self.told.append(("forgotten", key))
