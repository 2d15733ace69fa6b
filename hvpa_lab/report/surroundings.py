"""What a report reads in addition to the objects of a decision: the usage of pods (`metrics.k8s.io`), and the labels
of namespaces.

A report does without either: a user may lack the right, and a cluster may have no metrics server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hvpa.api.objects.read_models import Meta, Pod, Workload
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.cli.errors import CommandError, report_skipped
from hvpa.cli.input.files import Document
from hvpa.cli.input.live import Reader
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import ListPage, read_list
from hvpa.kube.objects.resources import ApiResource
from hvpa.kube.objects.usage import PodMetrics
from hvpa.reconcile.ports import Key
from hvpa_lab.prometheus.past import Past, PastUsage

T = TypeVar("T")
_METRICS: Final = "metrics.k8s.io"
"""The API group that metrics-server serves."""
ContainerUsage = Mapping[str, Mapping[Resource, int]]
"""Millicores and bytes by container."""


class Namespace(msgspec.Struct):
    """A namespace."""

    metadata: Meta


def _as_it_is(obj: T) -> T:
    return obj


POD_METRICS: Final[ApiResource[Any]] = ApiResource(
    "PodMetrics",
    f"/apis/{_METRICS}/v1beta1",
    "pods",
    msgspec.json.Decoder(PodMetrics).decode,
    _as_it_is,
)
NAMESPACES: Final[ApiResource[Any]] = ApiResource(
    "Namespace", "/api/v1", "namespaces", msgspec.json.Decoder(Namespace).decode, _as_it_is
)


class Surroundings(NamedTuple):
    """Usage of pods, labels of namespaces, and notes on what could not be read."""

    usage: Mapping[Key, ContainerUsage] = MappingProxyType({})
    labels: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Labels by namespace."""
    notes: Sequence[str] = ()
    past: Past | None = None
    """The past usage of workloads, from Prometheus."""

    def used(self, pods: Iterable[Pod]) -> list[ContainerUsage]:
        """The usage of those pods that have one."""
        usages = (self.usage.get(Key(pod.metadata.namespace, pod.metadata.name)) for pod in pods)
        return [usage for usage in usages if usage]

    def past_of(self, workload: Workload) -> PastUsage | None:
        """The past usage of a workload; None if unknown."""
        meta = workload.metadata
        known = {} if self.past is None else self.past.usage
        return known.get((meta.namespace, workload.kind, meta.name))


NOTHING: Final = Surroundings()


def in_documents(documents: Sequence[Document], namespace: str) -> Surroundings:
    """From files; `namespace` applies to documents without a namespace."""
    usage: dict[Key, ContainerUsage] = {}
    labels: dict[str, Mapping[str, str]] = {}
    for document in documents:
        if document.kind == POD_METRICS.kind and document.group == _METRICS:
            metrics = _decoded(document, POD_METRICS)
            if metrics is not None:
                meta = metrics.metadata
                usage[Key(meta.namespace or namespace, meta.name)] = metrics.used()
        elif document.kind == NAMESPACES.kind and not document.group:
            found = _decoded(document, NAMESPACES)
            if found is not None:
                labels[found.metadata.name] = found.metadata.labels
    return Surroundings(usage, labels)


def _decoded(document: Document, resource: ApiResource[Any]) -> Any:
    try:
        return resource.decode(msgspec.json.encode(document.content))
    except (msgspec.MsgspecError, OverflowError, RecursionError, UnicodeError) as error:
        report_skipped(CommandError(f"{document.label}: {error}"))
        return None


async def fetch_surroundings(reader: Reader, *, with_labels: bool) -> Surroundings:
    """From a cluster: one list of the usage of pods and, if wanted, one of namespaces. Raises Unreachable."""
    usage: dict[Key, ContainerUsage] = {}
    labels: dict[str, Mapping[str, str]] = {}

    def take_usage(metrics: PodMetrics) -> None:
        usage[Key(metrics.metadata.namespace, metrics.metadata.name)] = metrics.used()

    def take_labels(namespace: Namespace) -> None:
        labels[namespace.metadata.name] = namespace.metadata.labels

    notes = []
    why = await _listed(reader, POD_METRICS, POD_METRICS.path(reader.namespace), take_usage)
    if why is not None:
        notes.append(
            f"The usage of pods can't be read ({why}), so it is known only if an HPA measures it, and workloads "
            "without a VPA have no estimate."
        )
    if with_labels:
        why = await _listed(reader, NAMESPACES, NAMESPACES.path(None, reader.namespace), take_labels)
        if why is not None:
            notes.append(f"The labels of namespaces can't be read ({why}): only labels of workloads count.")
    return Surroundings(usage, labels, notes)


async def _listed(
    reader: Reader, resource: ApiResource[Any], path: str, take: Callable[[Any], None]
) -> str | None:
    """Give each object at `path`, a list or an object, to `take`; returns why it can't be read, if it can't."""

    def take_page(page: ListPage) -> None:
        for item in page.items or ():
            take(resource.decode(item))

    try:
        if resource is NAMESPACES and reader.namespace is not None:
            take(resource.decode(await reader.transport.request("GET", path)))
        else:
            await read_list(reader.transport, path, take_page)
    except (ApiError, msgspec.MsgspecError) as error:
        return str(error)
    return None


def total(usages: Iterable[ContainerUsage]) -> dict[Resource, int]:
    """The usage of all containers; a resource without any value is missing."""
    sums: dict[Resource, int] = {}
    for usage in usages:
        for used in usage.values():
            for resource in RESOURCES:
                if resource in used:
                    sums[resource] = sums.get(resource, 0) + used[resource]
    return sums
