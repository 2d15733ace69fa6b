"""Prometheus metrics, all named `hvpa_...`.

No label has values that users can make up without limit, except in the series of `--per-object-metrics` and in
`hvpa_problem`, which has no series without a problem.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Workload
from hvpa.api.policy.resource import PolicyKey
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.values.quantity import QuantityError, Resource, parse_resource
from hvpa.core.invariants import INVARIANTS, Violation
from hvpa.core.model import Axis, Blocked, Decision, Direction
from hvpa.core.report.problems import Problem, problems
from hvpa.core.report.saved import Saved, saved
from hvpa.kube.objects.resources import ON_DEMAND, WATCHED
from hvpa.kube.server.policy_metrics import PolicyMetrics
from hvpa.reconcile.ports import Key
from hvpa.reconcile.telemetry import Operation, Outcome, Telemetry

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG = (30.0, 60.0, 120.0)
"""Further buckets for durations under overload."""
FRESH = 1.0
"""Seconds for which a page is reused; Prometheus scrapes at most once a second."""
SHARE = 10
"""A page is reused for at least this multiple of its rendering time.

So at most a tenth of the operator's time is spent on scrapes, the same share as for any single Hvpa. Example: a page
that took 0.5 s is reused for 5 s.
"""
SLICE = 200
"""Hvpas whose series are rendered in a step: less than a millisecond's work per gauge."""
_UNIT: dict[Resource, float] = {"cpu": 1000.0, "memory": 1.0}
"""Divisors from millicores and bytes to Prometheus' base units, cores and bytes."""


class Metrics(Telemetry):
    """All counters of the operator, in a single registry."""

    def __init__(
        self, registry: CollectorRegistry, per_object: bool = False, checks_invariants: bool = False
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # `_created` series would double the number
        self.registry = registry
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._decisions = counter("hvpa_decisions", "Decisions made.")
        broken = "Decisions that broke an invariant (with `--check-invariants`)."
        self.checks_invariants = checks_invariants
        self._violations = counter("hvpa_invariant_violations", broken, ["invariant"])
        for invariant in INVARIANTS if checks_invariants else ():
            self._violations.labels(invariant)
        axes = ["axis", "direction"]
        self._applied = counter("hvpa_scalings_applied", "Changes of workloads.", axes)
        fast = "Changes of workloads that the fast signal called for."
        self._fast_raises = counter("hvpa_fast_raises", fast)
        held = "Changes that a gate started to hold back."
        self._blocked = counter("hvpa_scalings_blocked", held, [*axes, "reason"])
        failed = "Writes that were refused or failed."
        self._write_failures = counter("hvpa_write_failures", failed, ["operation", "outcome"])
        took = "Time from taking an Hvpa from the queue to the end of its writes."
        self._reconciles = histogram("hvpa_reconcile_duration_seconds", took, ["outcome"], buckets=SECONDS)
        waited = "Time from when an Hvpa was due until a worker took it."
        self._queue_wait = histogram("hvpa_queue_wait_seconds", waited, buckets=SECONDS + LONG)
        postponed = "Decisions delayed because their namespace was over its budget of computing time."
        self._postponed = counter("hvpa_postponed_decisions", postponed)
        self._requests = counter("hvpa_api_requests", "Requests to the API server.", ["verb", "code"])
        restarted = "Watch restarts."
        self._restarts = counter("hvpa_watch_restarts", restarted, ["resource", "reason"])
        undecodable = "Objects that could not be decoded. They count as absent."
        self._bad_objects = counter("hvpa_undecodable_objects", undecodable, ["resource"])
        for resource in (*WATCHED, *ON_DEMAND):  # start at 0: the first undecodable object is an increase
            self._bad_objects.labels(resource.plural)
        failed_tasks = "Exceptions in long-running tasks. Each task starts again."
        self._task_failures = counter("hvpa_task_failures", failed_tasks, ["task"])
        throttled = "Responses in which the API server told the operator to wait."
        self._throttled = counter("hvpa_throttled", throttled)
        permit = (
            "Time that a worker or the writer of Events waited for permission to write, if it had to wait."
        )
        self._permit_wait = histogram("hvpa_permit_wait_seconds", permit, buckets=SECONDS + LONG)
        self._objects = _PerObject() if per_object else None
        self._saved = _Saved(per_object)
        registry.register(self._saved)
        self._states = _States()
        registry.register(self._states)

    def pieces(self) -> Iterator[bytes]:
        """All metrics in Prometheus' text format, in pieces; each takes some milliseconds."""
        yield generate_latest(self.registry)
        yield from self._states.pieces()
        if self._objects is not None:
            yield from self._objects.pieces()
            yield from self._saved.pieces()

    def _show(self, name: str, documentation: str, value: Callable[[], float]) -> None:
        """Add a gauge whose value is read at each scrape."""
        Gauge(name, documentation, registry=self.registry).set_function(value)

    def watch_queue(
        self, depth: Callable[[], float], oldest_age: Callable[[], float], over_budget: Callable[[], float]
    ) -> None:
        """Add gauges for the queue's depth, the age of its head, and the Hvpas that wait for a namespace's budget."""
        postponed = (
            "Hvpas that are due and wait because their namespace is over its budget of computing time."
        )
        self._show("hvpa_postponed", postponed, over_budget)
        self._show("hvpa_queue_depth", "Hvpas that wait for a worker.", depth)
        self._show(
            "hvpa_queue_oldest_age_seconds", "Time that the first Hvpa in the queue has waited.", oldest_age
        )

    def watch_caches(self, last_success: Callable[[], Mapping[str, float]]) -> None:
        """Add the time at which each resource's list or watch last succeeded, read at each scrape."""
        self.registry.register(_Caches(last_success))

    def watch_limits(self, in_flight: Callable[[], float], limit: Callable[[], float]) -> None:
        """Add gauges for the writes in flight and their limit."""
        self._show("hvpa_writes_in_flight", "Writes that are under way.", in_flight)
        less = "less than --max-in-flight after the API server asked to wait"
        self._show("hvpa_writes_in_flight_limit", f"Writes that may be under way; {less}.", limit)

    def watch_shards(self, held: Callable[[], int], all_of_them: int) -> None:
        """Add gauges for the number of shards (1 if the work is not divided) and for those that this process works
        on."""
        documentation = "Whether this process works: holds a lease, or needs none."
        self._show("hvpa_leader", documentation, lambda: float(held() > 0))
        self._show("hvpa_shards_held", "Shards that this process works on.", held)
        self._show("hvpa_shards", "Shards that the work is divided into.", lambda: all_of_them)

    def watch_kubelets(self, polled: Callable[[], float], silent: Callable[[], float]) -> None:
        """Add gauges for the kubelets that are polled, and for those of them that report no usage."""
        self._show("hvpa_kubelets_polled", "Kubelets that are polled (spec.fastSignal).", polled)
        silent_text = "Polled kubelets whose last answer was not usable, or that did not answer."
        self._show("hvpa_kubelets_silent", silent_text, silent)

    def watch_policies(self, statuses: Callable[[], Mapping[PolicyKey, PolicyStatus]]) -> None:
        """Add the metrics of policies, whose statuses are read at each scrape."""
        self.registry.register(PolicyMetrics(statuses))

    # --- Telemetry ----------------------------------------------------------------------------------------------------
    def request(self, verb: str, code: str) -> None:
        self._requests.labels(verb, code).inc()

    def watch_restarted(self, plural: str, reason: str) -> None:
        self._restarts.labels(plural, reason).inc()

    def bad_object(self, plural: str) -> None:
        self._bad_objects.labels(plural).inc()

    def task_failed(self, task: str) -> None:
        self._task_failures.labels(task).inc()

    def throttled(self) -> None:
        self._throttled.inc()

    def permit_waited(self, seconds: float) -> None:
        self._permit_wait.observe(seconds)

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        self._decisions.inc()
        self._states.put(key, decision.status)
        self._saved.put(key, decision, workload)
        if self._objects is not None:
            self._objects.put(key, decision, workload)

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        self._applied.labels(axis, direction).inc()

    def raised_fast(self, key: Key) -> None:
        self._fast_raises.inc()

    def blocked(self, key: Key, blocked: Blocked) -> None:
        self._blocked.labels(blocked.axis, blocked.direction, blocked.reason).inc()

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        self._write_failures.labels(operation, kind).inc()
        if kind in ("failed", "crashed"):
            self._states.fails(key, operation)

    def started(self, key: Key, waited: float) -> None:
        self._queue_wait.observe(waited)

    def violated(self, key: Key, violation: Violation) -> None:
        self._violations.labels(violation.invariant).inc()

    def postponed(self, key: Key, seconds: float) -> None:
        self._postponed.inc()

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        self._reconciles.labels(outcome).observe(seconds)
        if outcome in ("done", "gone"):
            self._states.fails(key, None)

    def forgotten(self, key: Key) -> None:
        self._states.drop(key)
        self._saved.drop(key)
        if self._objects is not None:
            self._objects.drop(key)


class _Caches(Collector):
    """The freshness of the caches; an optional resource that the cluster does not serve has no series."""

    def __init__(self, last_success: Callable[[], Mapping[str, float]]) -> None:
        self._last_success = last_success

    def collect(self) -> list[GaugeMetricFamily]:
        """A series per resource."""
        family = GaugeMetricFamily(
            "hvpa_watch_last_success_timestamp_seconds",
            "Time of the last successful list or watch of a resource; bookmarks count, about one per minute.",
            labels=["resource"],
        )
        for plural, seconds in self._last_success().items():
            family.add_metric([plural], seconds)
        return [family]


class _States(Collector):
    """The state that the last decision reported for each Hvpa: counts by state, and problems by Hvpa.

    All is counted when it changes, since there may be thousands of Hvpas at a scrape.
    """

    def __init__(self) -> None:
        self._status: dict[Key, HvpaStatus] = {}
        self._failing: dict[Key, Operation] = {}
        self._problems: dict[Key, list[Row]] = {}
        self._histories: dict[Key, list[Row]] = {}
        self._ready: Count[tuple[str, ...]] = Count()
        self._held: Count[tuple[str, ...]] = Count()

    def put(self, key: Key, status: HvpaStatus) -> None:
        """Store the status of a decision."""
        before = self._status.get(key)
        if before is status:
            return
        self._status[key] = status
        self._count(before, -1)
        self._count(status, 1)
        self._name_problems(key)
        self._name_histories(key, status)

    def fails(self, key: Key, operation: Operation | None) -> None:
        """Note that a write of an Hvpa failed; None: all succeeded."""
        if self._failing.get(key) == operation:
            return
        if operation is None:
            del self._failing[key]
        else:
            self._failing[key] = operation
        self._name_problems(key)

    def drop(self, key: Key) -> None:
        """Drop an Hvpa."""
        self._count(self._status.pop(key, None), -1)
        self._failing.pop(key, None)
        self._problems.pop(key, None)
        self._histories.pop(key, None)

    def _count(self, status: HvpaStatus | None, by: int) -> None:
        for condition in () if status is None else status.conditions:
            if condition.type == "Ready":
                self._ready[condition.status, condition.reason] += by
        for block in () if status is None else status.last_blocked_scaling:
            self._held[block.axis, block.direction, block.reason] += by

    def _name_problems(self, key: Key) -> None:
        status, operation = self._status.get(key), self._failing.get(key)
        reasons: list[tuple[Problem, str]] = [] if status is None else sorted(problems(status))
        if operation is not None:
            reasons.append(("WriteFailed", operation))
        labels = _labels(key)
        rows: list[Row] = [
            (f'{labels},problem="{problem}",reason="{_escaped(why)}"', 1, 1) for problem, why in reasons
        ]
        self._problems.pop(key, None)
        if rows:
            self._problems[key] = rows

    def _name_histories(self, key: Key, status: HvpaStatus) -> None:
        """Set the start of each recommendation's history that is too short to lower requests."""
        self._histories.pop(key, None)
        vertical = None if status.axes is None else status.axes.vertical
        labels = _labels(key)
        rows: list[Row] = [
            (f'{labels},container="{_escaped(entry.container)}"', since, since)
            for entry in (() if vertical is None else vertical.history)
            if entry.short_since is not None and (since := entry.short_since.timestamp())
        ]
        if rows:
            self._histories[key] = rows

    def collect(self) -> list[GaugeMetricFamily]:
        """The number of Hvpas, and of changes that are held back."""
        ready, held = ["ready", "reason"], ["axis", "direction", "reason"]
        return [
            _counted("hvpa_hvpas", "Number of Hvpas, by their condition Ready.", ready, self._ready),
            _counted("hvpa_held_back", "Changes that gates currently hold back.", held, self._held),
        ]

    def pieces(self) -> Iterator[bytes]:
        """Yield the problems, and the histories that are too short, as text."""
        yield from _gauge("hvpa_problem", "1 for each problem of an Hvpa.", self._problems, 1)
        what = "Start of a recommendation's history (Unix time), while it is too short to lower requests."
        yield from _gauge("hvpa_short_history_start_timestamp_seconds", what, self._histories, 1)


def _counted(
    name: str, documentation: str, labels: list[str], counts: Count[tuple[str, ...]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, count in sorted(counts.items()):
        if count:
            family.add_metric(values, count)
    return family


Row = tuple[str, float | None, float | None]
"""Labels as text; the current value and the recommended value."""


class _PerObject:
    """Series per Hvpa, rendered from the last decision.

    The series of a deleted Hvpa, or of a removed container, disappear at the next scrape. The text is rendered here
    in slices: prometheus_client renders a whole registry at once, and takes several times as long.
    """

    def __init__(self) -> None:
        self._replicas: dict[Key, list[Row]] = {}
        self._requests: dict[Key, list[Row]] = {}

    def put(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Store the values of a decision; `workload` is its state before the decision."""
        labels = _labels(key)
        self._replicas.pop(key, None)
        if (replicas := decision.replicas) is not None:
            # In place, the decision may not be written yet: the workload's own count is the current count.
            present = replicas.current if workload is None else workload.spec.replicas
            self._replicas[key] = [(labels, present, replicas.recommended)]
        rows: list[Row] = []
        for container in workload.spec.template.spec.containers if workload is not None else ():
            wanted = decision.recommended.get(container.name)
            for resource in _UNIT:
                current = _present(container.resources.requests.get(resource), resource)
                amount = wanted.requests.get(resource) if wanted is not None else None
                recommended = None if amount is None else amount / _UNIT[resource]
                more = f'{labels},container="{_escaped(container.name)}",resource="{resource}"'
                rows.append((more, current, recommended))
        self._requests[key] = rows

    def drop(self, key: Key) -> None:
        """Drop an Hvpa."""
        self._replicas.pop(key, None)
        self._requests.pop(key, None)

    def pieces(self) -> Iterator[bytes]:
        """Yield all series as text, SLICE Hvpas at a time."""
        replicas, requests = self._replicas, self._requests
        yield from _gauge("hvpa_replicas", "The workload's replicas.", replicas, 1)
        yield from _gauge("hvpa_recommended_replicas", "Recommended replicas, before gates.", replicas, 2)
        yield from _gauge("hvpa_request", "Requests, in cores or bytes.", requests, 1)
        yield from _gauge(
            "hvpa_recommended_request", "Recommended requests, before gates, in cores or bytes.", requests, 2
        )


class _Saved(Collector):
    """The requests that workloads no longer have since HVPA first changed them: of all Hvpas together, counted when
    they change, and with `per_object` also of each."""

    def __init__(self, per_object: bool) -> None:
        self._per_object = per_object
        self._known: dict[Key, dict[Resource, Saved]] = {}
        self._sum: Count[tuple[Resource, str]] = Count()
        self._rows: dict[Key, list[Row]] = {}
        self._since: dict[Key, list[Row]] = {}

    def put(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Store the savings after a decision."""
        now, before = saved(decision, workload), self._known.get(key, {})
        if now == before:
            return
        self.drop(key)
        original = decision.status.original_size
        if not now or original is None:
            return
        self._known[key] = now
        self._count(now, 1)
        if self._per_object:
            labels = _labels(key)
            since = original.since.timestamp()
            self._since[key] = [(labels, since, since)]
            amounts = [
                (f'{labels},resource="{resource}",part="{part}"', amount / _UNIT[resource])
                for resource, parts in now.items()
                for part, amount in parts._asdict().items()
            ]
            self._rows[key] = [(text, amount, amount) for text, amount in amounts]

    def drop(self, key: Key) -> None:
        """Drop an Hvpa."""
        self._count(self._known.pop(key, {}), -1)
        self._rows.pop(key, None)
        self._since.pop(key, None)

    def _count(self, amounts: Mapping[Resource, Saved], by: int) -> None:
        for resource, parts in amounts.items():
            for part, amount in parts._asdict().items():
                self._sum[resource, part] += by * amount

    def collect(self) -> list[GaugeMetricFamily]:
        """The sums of all Hvpas, from 0 on, and the number of Hvpas in them."""
        about = "saved since HVPA first changed each workload; negative if they request more."
        known = "Hvpas in the sums of hvpa_saved_*: those that have changed their workload."
        count = GaugeMetricFamily("hvpa_saved_hvpas", known, value=len(self._known))
        names: dict[Resource, str] = {"cpu": "hvpa_saved_cpu_cores", "memory": "hvpa_saved_memory_bytes"}
        families = [count]
        for resource, name in names.items():
            what = "CPU requests in cores" if resource == "cpu" else "Memory requests in bytes"
            family = GaugeMetricFamily(name, f"{what}, {about}", labels=["part"])
            for part in Saved._fields:
                family.add_metric([part], self._sum[resource, part] / _UNIT[resource])
            families.append(family)
        return families

    def pieces(self) -> Iterator[bytes]:
        """Yield the savings of each Hvpa, as text."""
        what = "Requests saved since HVPA first changed the workload, in cores or bytes."
        yield from _gauge("hvpa_saved_request", what, self._rows, 1)
        since = "Time of HVPA's first change of the workload (Unix time)."
        yield from _gauge("hvpa_saved_since_timestamp_seconds", since, self._since, 1)


def _labels(key: Key) -> str:
    """The labels of an Hvpa."""
    return f'namespace="{_escaped(key.namespace)}",name="{_escaped(key.name)}"'


def _gauge(name: str, documentation: str, known: Mapping[Key, list[Row]], column: int) -> Iterator[bytes]:
    """The series of a gauge, with the values in this column of the rows."""
    yield f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()
    entries = list(known.values())  # Hvpas may be added or removed between slices
    for start in range(0, len(entries), SLICE):
        rows = [row for entry in entries[start : start + SLICE] for row in entry]
        lines = [f"{name}{{{row[0]}}} {row[column]!r}\n" for row in rows if row[column] is not None]
        yield "".join(lines).encode()


def _escaped(value: str) -> str:
    """A label's value, escaped for the text format (names of Kubernetes need no escaping)."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _present(raw: str | int | float | None, resource: Resource) -> float | None:
    with suppress(QuantityError):
        return None if raw is None else parse_resource(resource, raw) / _UNIT[resource]
    return None


class MetricsPage:
    """The content of /metrics, rendered once for all scrapes within a second or more, in pieces.

    So neither many scrapes nor many series delay the operator's other work. `pieces` renders it, a few milliseconds
    of work per step.
    """

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces
        self._content = b""
        self._until = 0.0
        self._rendering: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """The page, at least as new as the last rendering that was due."""
        loop = asyncio.get_running_loop()
        if self._rendering is None and loop.time() >= self._until:
            self._rendering = loop.create_task(self._render())
        if self._rendering is not None:
            # Shielded: the rendering continues for the other clients if a client disconnects.
            await asyncio.shield(self._rendering)
        return self._content

    async def _render(self) -> None:
        loop = asyncio.get_running_loop()
        pieces, spent, began = [], 0.0, loop.time()
        try:
            for piece in self._pieces():
                pieces.append(piece)
                spent += loop.time() - began
                await asyncio.sleep(0)
                began = loop.time()
            self._content = b"".join(pieces)
            self._until = loop.time() + max(FRESH, SHARE * spent)
        finally:
            self._rendering = None
