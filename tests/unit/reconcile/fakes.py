"""Hand-written fakes of the ports."""

from __future__ import annotations

import datetime as dt
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from builders import build
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.status import HvpaStatus, to_wire
from hvpa.api.objects.read_models import Meta, Pod
from hvpa.core import Objects, Settings
from hvpa.core.gates.verdict import metric_name
from hvpa.core.invariants import Violation
from hvpa.core.model import (
    Axis,
    Blocked,
    Direction,
    Event,
    FastUsage,
    MetricValue,
    OwnedChange,
    PodCost,
    PodResize,
    WorkloadPatch,
)
from hvpa.reconcile.ports import Key, ResizeFailures, SizeChanges, WriteError
from hvpa.reconcile.reconciler import Reconciler, ReconcileResult
from hvpa.reconcile.telemetry import Operation, Outcome, Telemetry

T = TypeVar("T")
KEY = Key("default", "web")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("the coroutine waited for something")


def patched(old: object, patch: Mapping[str, object]) -> dict[str, object]:
    """`old` after a JSON merge patch (RFC 7386, section 2)."""
    result: dict[str, object] = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value) if isinstance(value, Mapping) else value
    return result


@dataclass
class FakeClock:
    """A clock that stands still until a test sets it."""

    time: dt.datetime = build.NOW

    def now(self) -> dt.datetime:
        return self.time


@dataclass
class FakeCluster:
    """Holds the objects of one Hvpa; a status that is written is the Hvpa's from then on. `failures` maps a write's
    name to the error that it raises."""

    one: Objects | None
    failures: dict[str, Exception] = field(default_factory=dict)
    writes: list[tuple[str, Any]] = field(default_factory=list)
    has_adopted: bool = False
    memory: Mapping[tuple[str, str], int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    reported: FastUsage | None = None
    values: tuple[MetricValue, ...] | None = None
    judged: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)
    polled: list[tuple[str, ...]] = field(default_factory=list)
    """The names of the pods that were to be polled, each time."""

    def objects(self, key: Key) -> Objects | None:
        if "objects" in self.failures:
            raise self.failures["objects"]
        return self.one

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        self._note("workload", patch)

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        if "check" in self.failures:
            raise self.failures["check"]

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        self.writes.append(("resizes", resizes))
        failure = self.failures.get("resizes")
        return [(resizes[0], failure)] if isinstance(failure, WriteError) else []

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        self.writes.append(("costs", costs))
        failure = self.failures.get("costs")
        return [failure] if isinstance(failure, WriteError) else []

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        self.asked.append(selector)
        return self.memory

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        self.judged.append((tuple(metric_name(metric) for metric in metrics), often))
        return self.values

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        self.polled.append(tuple(pod.metadata.name for pod in pods))
        return self.reported

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        if changes is not None or "creation_sizes" in self.failures:
            self._note("creation_sizes", changes)

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        assert self.one is not None
        assert patched(to_wire(self.one.hvpa.status), patch) == to_wire(status)
        self._note("status", patch)
        self.status_is(status)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        self._note("scale_replicas", replicas)

    async def give_back(self, hvpa: Meta) -> None:
        if self.has_adopted:
            self._note("give_back", hvpa.name)

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        self._note("owned", change)

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        self.writes.append(("event", event))

    def status_is(self, status: HvpaStatus) -> None:
        assert self.one is not None
        self.one = replace(self.one, hvpa=build.with_status(self.one.hvpa, status))

    def _note(self, name: str, what: object) -> None:
        if name in self.failures:
            raise self.failures[name]
        self.writes.append((name, what))


@dataclass
class FakeTelemetry(Telemetry):
    """Remembers the reports."""

    reports: list[tuple[Any, ...]] = field(default_factory=list)
    checks_invariants: bool = False

    def violated(self, key: Key, violation: Violation) -> None:
        self.reports.append(("violated", violation.invariant))

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        self.reports.append(("applied", axis, direction))

    def blocked(self, key: Key, blocked: Blocked) -> None:
        self.reports.append(("blocked", blocked.axis, blocked.direction, blocked.reason))

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        self.reports.append(("write failed", operation, kind))

    def forgotten(self, key: Key) -> None:
        self.reports.append(("forgotten", key))


class Harness:
    """A reconciler around fakes."""

    def __init__(self, one: Objects | None, *, cluster: Any = FakeCluster, **failures: Exception) -> None:
        self.cluster = cluster(one, dict(failures))
        self.clock, self.telemetry = FakeClock(), FakeTelemetry()
        self.start()

    def start(self) -> None:
        """Another process of the operator."""
        self.reconciler = Reconciler(self.cluster, self.clock, Settings(), self.telemetry)

    def reconcile(self, **later: float) -> ReconcileResult:
        """One reconcile, so much later; only what it writes is kept."""
        self.clock.time += dt.timedelta(**later)
        self.cluster.writes.clear()
        return drive(self.reconciler.reconcile(KEY))

    def names(self, *left_out: str) -> list[str]:
        """The writes, by their names."""
        return [name for name, _ in self.cluster.writes if name not in left_out]

    def written(self, name: str) -> list[Any]:
        return [what for kind, what in self.cluster.writes if kind == name]

    def events(self) -> list[str]:
        return [event.reason for event in self.written("event")]

    @property
    def one(self) -> Objects:
        """The objects as they are now."""
        objects: Objects | None = self.cluster.one
        assert objects is not None
        return objects

    def change(self, **change: Any) -> None:
        """Change some of the objects."""
        self.cluster.one = replace(self.one, **change)

    @property
    def status(self) -> HvpaStatus:
        return self.one.hvpa.status

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition."""
        return {condition.type: (condition.status, condition.reason) for condition in self.status.conditions}


def scaling_out() -> Objects:
    """The HPA wants 6 of 3 replicas."""
    return build.objects(horizontal=build.hpa(desired=6, utilization=100), vertical=build.vpa())
