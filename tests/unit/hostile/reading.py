"""One Hvpa's documents through all that the operator does with them: decoding, the local copy, the decision, what is
written, logged and counted."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from builders.build import in_place
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition, read_status, to_wire
from hvpa.api.objects.read_models import Meta, Pod
from hvpa.cli.explain.json import to_json
from hvpa.cli.explain.text import to_text
from hvpa.core import Settings, decide, observe
from hvpa.core.model import (
    Event,
    FastUsage,
    MetricValue,
    Objects,
    OwnedChange,
    PodCost,
    PodResize,
    WorkloadPatch,
)
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.reflector import Reflector
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.errors import Unreachable
from hvpa.kube.objects.resources import WATCHED
from hvpa.kube.server.metrics import Metrics
from hvpa.reconcile.ports import Key, ResizeFailures, SizeChanges, WriteError
from hvpa.reconcile.reconciler import Reconciler
from tests.unit.hostile.documents import KINDS, NAME, NAMESPACE, encoded
from tests.unit.reconcile.fakes import FakeClock, drive

RESOURCES = {resource.kind: resource for resource in WATCHED}
KEY = Key(NAMESPACE, NAME)
MOST_STATUS = 512 * 1024
"""Bytes of a status: a third of what etcd takes in one request, since the spec is beside it."""
MOST_ANNOTATION = 128 * 1024
"""Bytes of our annotation on a workload: half of what the API server takes of all annotations together."""
MOST_TEXT = 8 * 1024
"""Characters of a condition's or Event's text."""
INT64 = 2**63


@dataclass
class Writes:
    """The cluster port over a local copy; keeps what would be written."""

    local: LocalCluster
    status: HvpaStatus | None = None
    patch: WorkloadPatch | None = None
    scale_replicas: int | None = None
    owned: list[OwnedChange] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    status_patch: Mapping[str, object] = field(default_factory=dict)

    def objects(self, key: Key) -> Objects | None:
        return self.local.objects(key)

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        self.patch = patch

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """No Hvpa here resizes pods in place."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """No Hvpa here resizes pods in place."""
        return ()

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        """No Hvpa here resizes pods in place."""
        return ()

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """No Hvpa here resizes pods in place."""
        return {}

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        """No Hvpa here has metrics that judge a canary."""
        return None

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        """No Hvpa here has a fast signal that reports."""
        return None

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """No Hvpa here resizes pods in place."""

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        self.status, self.status_patch = status, dict(patch)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        self.scale_replicas = replicas

    async def give_back(self, hvpa: Meta) -> None:
        """No Hvpa here is deleted."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        self.owned.append(change)

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        self.events.append(event)


class Watched:
    """The local copy as watches feed it, to begin with these documents; the transport is never used."""

    def __init__(self, documents: Iterable[object] = ()) -> None:
        self.woken: list[Key] = []
        self.metrics = Metrics(CollectorRegistry())
        self.local = LocalCluster((ALL_NAMESPACES,), self.woken.append)
        self._reflectors = {
            resource.kind: Reflector(None, resource, ALL_NAMESPACES, self.local.store(resource), self.metrics)  # type: ignore[arg-type]
            for resource in WATCHED
        }
        for document in documents:
            self.put(document)

    def deliver(self, kind: str, raw: bytes, event: bytes = b"ADDED") -> None:
        """A watch delivers these bytes. What is no JSON at all ends it: it is begun anew where it was."""
        with contextlib.suppress(Unreachable):
            self._reflectors[kind]._take(b'{"type":"%s","object":%s}' % (event, raw))

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """The object is gone."""
        self.local.store(RESOURCES[kind]).delete(Key(namespace, name))

    def objects(self, key: Key = KEY) -> Objects:
        """What is known of an Hvpa that is there."""
        objects = self.local.objects(key)
        assert objects is not None
        return objects

    def reconcile(self, key: Key = KEY) -> Writes:
        """What the operator writes about an Hvpa: it must not crash, and all of it must be bounded and be explained."""
        writes, clock = Writes(self.local), FakeClock()
        result = drive(Reconciler(writes, clock, Settings(), self.metrics).reconcile(key))
        assert result.outcome in ("done", "gone")
        is_bounded(writes)
        if (objects := self.local.objects(key)) is not None:
            is_explained(objects, clock)
        return writes

    def put(self, document: object, kind: str = "") -> None:
        """A watch delivers this document."""
        named = document.get("kind") if isinstance(document, dict) else None
        self.deliver(kind or str(named), encoded(document))


def condition(writes: Writes, kind: str) -> StatusCondition:
    """One condition of the status that is written."""
    assert writes.status is not None
    return next(condition for condition in writes.status.conditions if condition.type == kind)


def reconciled(documents: Sequence[object]) -> Writes:
    """What the operator writes about the documents' Hvpa; it must not crash, and all of it must be bounded."""
    watched = Watched()
    for document, kind in zip(documents, KINDS + ("Pod",) * len(documents), strict=False):
        watched.put(document, kind)
    writes = watched.reconcile()
    assert len(b"".join(watched.metrics.pieces())) < 20_000
    return writes


def is_explained(objects: Objects, clock: FakeClock) -> None:
    """`explain` describes it, with nothing that a terminal would obey."""
    observation = observe(in_place(objects), clock.now(), Settings())
    decision = decide(observation)
    for text in (to_text(observation, decision), to_json(observation, decision)):
        assert all(line.isprintable() for line in text.split("\n"))


def is_bounded(writes: Writes) -> None:
    """What is written can be read back, is of the schema's types, and is no larger than the API server takes."""
    reports: list[Event | StatusCondition] = list(writes.events)
    if writes.status is not None:
        raw = msgspec.json.encode(to_wire(writes.status))
        assert len(raw) < MOST_STATUS
        again, unreadable = read_status(raw)
        assert unreadable == ()
        assert to_wire(again) == to_wire(writes.status)
        _of_the_schema(json.loads(raw))
        reports += writes.status.conditions
    for report in reports:
        assert len(report.message) <= MOST_TEXT
        assert len(report.reason) <= 128
        assert (report.reason + report.message).isprintable()
    if writes.patch is not None:
        metadata: Any = writes.patch.body["metadata"]
        for text in metadata.get("annotations", {}).values():
            assert len(text) < MOST_ANNOTATION
            _of_the_schema(json.loads(text))
        _of_the_schema(json.loads(msgspec.json.encode(writes.patch.body)))
    if writes.scale_replicas is not None:
        assert 0 <= writes.scale_replicas < 2**31


def _of_the_schema(value: object) -> None:
    """Numbers are such as the API server reads."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in ("hpaWeight", "vpaWeight"):  # of any size: numbers of the schema
                _of_the_schema(entry)
    elif isinstance(value, list):
        for entry in value:
            _of_the_schema(entry)
    elif isinstance(value, int):
        assert -INT64 <= value < INT64
    else:
        assert not isinstance(value, float) or math.isfinite(value)
