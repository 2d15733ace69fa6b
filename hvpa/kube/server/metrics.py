"""Prometheus metrics. All names begin with `hvpa_`; none has a label whose values users can make up without end, but
those behind `--per-object-metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.quantity import QuantityError, Resource, parse_resource
from hvpa.core.model import Axis, Blocked, Decision, Direction, ResourceRequirements
from hvpa.reconcile.ports import Key
from hvpa.reconcile.telemetry import Operation, Outcome

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG = (30.0, 60.0, 120.0)
"""Further buckets for what overload makes long."""
SLICE = 200
"""Hvpas whose series are rendered at once: less than a millisecond's work for each gauge."""
_UNIT: dict[Resource, float] = {"cpu": 1000.0, "memory": 1.0}
"""What divides millicores and bytes to get Prometheus' base units, cores and bytes."""


class Metrics:
    """`hvpa.reconcile.telemetry.Telemetry` and all other counters of the operator, in one registry."""

    def __init__(self, registry: CollectorRegistry, per_object: bool = False) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # `_created` series would double the number
        self.registry = registry
        self._decisions = Counter("hvpa_decisions", "Decisions made.", registry=registry)
        self._applied = Counter(
            "hvpa_scalings_applied", "Changes of workloads.", ["axis", "direction"], registry=registry
        )
        self._blocked = Counter(
            "hvpa_scalings_blocked",
            "Wanted changes that began to be held back.",
            ["axis", "direction", "reason"],
            registry=registry,
        )
        self._write_failures = Counter(
            "hvpa_write_failures",
            "Writes that were refused or did not get through.",
            ["operation", "outcome"],
            registry=registry,
        )
        self._reconciles = Histogram(
            "hvpa_reconcile_duration_seconds",
            "Time from taking an Hvpa from the queue to having written all.",
            ["outcome"],
            buckets=SECONDS,
            registry=registry,
        )
        self._queue_wait = Histogram(
            "hvpa_queue_wait_seconds",
            "Time from when an Hvpa was due until a worker took it.",
            buckets=SECONDS + LONG,
            registry=registry,
        )
        self._requests = Counter(
            "hvpa_api_requests", "Requests to the API server.", ["verb", "code"], registry=registry
        )
        self._restarts = Counter(
            "hvpa_watch_restarts",
            "Watches that were started again.",
            ["resource", "reason"],
            registry=registry,
        )
        self._bad_objects = Counter(
            "hvpa_undecodable_objects",
            "Objects that could not be decoded and count as absent.",
            ["resource"],
            registry=registry,
        )
        self._throttled = Counter(
            "hvpa_throttled",
            "Responses by which the API server asked the operator to wait.",
            registry=registry,
        )
        self._permit_wait = Histogram(
            "hvpa_permit_wait_seconds",
            "Time for which a worker, or the writer of Events, had to wait for leave to write, if it had to.",
            buckets=SECONDS + LONG,
            registry=registry,
        )
        self._objects = _PerObject() if per_object else None

    def pieces(self) -> Iterator[bytes]:
        """All metrics in Prometheus' text format, piece by piece; each takes some milliseconds."""
        yield generate_latest(self.registry)
        if self._objects is not None:
            yield from self._objects.pieces()

    def watch_queue(self, depth: Callable[[], float], oldest_age: Callable[[], float]) -> None:
        """Show the queue's depth and the age of its head, asked for at each scrape."""
        Gauge("hvpa_queue_depth", "Hvpas that wait for a worker.", registry=self.registry).set_function(depth)
        Gauge(
            "hvpa_queue_oldest_age_seconds", "How long the first Hvpa has waited.", registry=self.registry
        ).set_function(oldest_age)

    def watch_caches(self, last_success: Callable[[], Mapping[str, float]]) -> None:
        """Show when each resource's list or watch last succeeded, asked for at each scrape."""
        self.registry.register(_Caches(last_success))

    def watch_limits(self, in_flight: Callable[[], float], limit: Callable[[], float]) -> None:
        """Show how many writes are under way, and how many may be, asked for at each scrape."""
        Gauge("hvpa_writes_in_flight", "Writes that are under way.", registry=self.registry).set_function(
            in_flight
        )
        Gauge(
            "hvpa_writes_in_flight_limit",
            "Writes that may be under way; less than --max-in-flight after the API server asked to wait.",
            registry=self.registry,
        ).set_function(limit)

    def watch_shards(self, held: Callable[[], int]) -> None:
        """Show how many shards this process works on (1 is all where the work is not divided), asked for at each
        scrape."""
        Gauge(
            "hvpa_leader", "Whether this process works: holds a lease, or needs none.", registry=self.registry
        ).set_function(lambda: float(held() > 0))
        Gauge("hvpa_shards_held", "Shards that this process works on.", registry=self.registry).set_function(
            held
        )

    def request(self, verb: str, code: str) -> None:
        """A request to the API server was answered with `code`, or "error"."""
        self._requests.labels(verb, code).inc()

    def watch_restarted(self, plural: str, reason: str) -> None:
        """See `hvpa.kube.cache.reflector.ReflectorTelemetry`."""
        self._restarts.labels(plural, reason).inc()

    def bad_object(self, plural: str) -> None:
        """See `hvpa.kube.cache.reflector.ReflectorTelemetry`."""
        self._bad_objects.labels(plural).inc()

    def throttled(self) -> None:
        """See `hvpa.kube.client.limits.LimitTelemetry`."""
        self._throttled.inc()

    def permit_waited(self, seconds: float) -> None:
        """See `hvpa.kube.client.limits.LimitTelemetry`."""
        self._permit_wait.observe(seconds)

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """See the protocol."""
        self._decisions.inc()
        if self._objects is not None:
            self._objects.put(key, decision, workload)

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        """See the protocol."""
        self._applied.labels(axis, direction).inc()

    def blocked(self, key: Key, blocked: Blocked) -> None:
        """See the protocol."""
        self._blocked.labels(blocked.axis, blocked.direction, blocked.reason).inc()

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        """See the protocol."""
        self._write_failures.labels(operation, kind).inc()

    def started(self, key: Key, waited: float) -> None:
        """See the protocol."""
        self._queue_wait.observe(waited)

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        """See the protocol."""
        self._reconciles.labels(outcome).observe(seconds)

    def forgotten(self, key: Key) -> None:
        """See the protocol."""
        if self._objects is not None:
            self._objects.drop(key)


class _Caches(Collector):
    """How fresh the caches are; a resource that the cluster need not serve, and doesn't, has no series."""

    def __init__(self, last_success: Callable[[], Mapping[str, float]]) -> None:
        self._last_success = last_success

    def collect(self) -> list[GaugeMetricFamily]:
        """One series for each resource."""
        family = GaugeMetricFamily(
            "hvpa_watch_last_success_timestamp_seconds",
            "When the list or watch of a resource last succeeded; bookmarks count, about one a minute.",
            labels=["resource"],
        )
        for plural, seconds in self._last_success().items():
            family.add_metric([plural], seconds)
        return [family]


Row = tuple[str, float | None, float | None]
"""Labels as text; the current value and the recommended one."""


class _PerObject:
    """Series per Hvpa, rendered from the last decision: those of a deleted Hvpa, or of a container that was removed,
    are gone at the next scrape. The text is made here, in slices: prometheus_client makes it of a whole registry at
    once, and takes several times as long."""

    def __init__(self) -> None:
        self._replicas: dict[Key, list[Row]] = {}
        self._requests: dict[Key, list[Row]] = {}

    def put(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Remember what a decision showed; `workload` as it was before it."""
        labels = f'namespace="{_escaped(key.namespace)}",name="{_escaped(key.name)}"'
        self._replicas.pop(key, None)
        if (seen := decision.replicas) is not None:
            self._replicas[key] = [(labels, seen.current, seen.recommended)]
        rows: list[Row] = []
        for container in workload.spec.template.spec.containers if workload is not None else ():
            wanted = decision.recommended.get(container.name)
            for resource in _UNIT:
                current = _present(container.resources.requests.get(resource), resource)
                more = f'{labels},container="{_escaped(container.name)}",resource="{resource}"'
                rows.append((more, current, _recommended(wanted, resource)))
        self._requests[key] = rows

    def drop(self, key: Key) -> None:
        """Forget an Hvpa."""
        self._replicas.pop(key, None)
        self._requests.pop(key, None)

    def pieces(self) -> Iterator[bytes]:
        """All series as text, SLICE Hvpas at a time."""
        replicas, requests = self._replicas, self._requests
        yield from _gauge("hvpa_replicas", "The workload's replicas.", replicas, 1)
        yield from _gauge("hvpa_recommended_replicas", "Replicas if nothing were blocked.", replicas, 2)
        yield from _gauge("hvpa_request", "Requests, in cores or bytes.", requests, 1)
        yield from _gauge(
            "hvpa_recommended_request", "Requests if nothing were blocked, in cores or bytes.", requests, 2
        )


def _gauge(name: str, documentation: str, known: Mapping[Key, list[Row]], column: int) -> Iterator[bytes]:
    """One gauge's series, whose values stand in this column of the rows."""
    yield f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()
    entries = list(known.values())  # Hvpas may come and go between slices
    for start in range(0, len(entries), SLICE):
        rows = [row for one in entries[start : start + SLICE] for row in one]
        lines = [f"{name}{{{row[0]}}} {row[column]!r}\n" for row in rows if row[column] is not None]
        yield "".join(lines).encode()


def _escaped(value: str) -> str:
    """A label's value as the text format has it (names of Kubernetes need none of it)."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _present(raw: str | int | float | None, resource: Resource) -> float | None:
    if raw is None:
        return None
    try:
        return parse_resource(resource, raw) / _UNIT[resource]
    except QuantityError:
        return None


def _recommended(wanted: ResourceRequirements | None, resource: Resource) -> float | None:
    value = wanted.requests.get(resource) if wanted is not None else None
    return None if value is None else value / _UNIT[resource]
