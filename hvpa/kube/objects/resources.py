"""The watched resources: their paths, and the conversion of their bytes into compact objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.kinds import KINDS, Kind, kind_key
from hvpa.api.objects.read_models import Hpa, HvpaSizes, Meta, Namespace, Node, Pod, RawHvpa, Vpa, Workload
from hvpa.kube.client.paths import api_path, escaped_path
from hvpa.kube.objects import workloads
from hvpa.kube.objects.policies import StoredPolicy, stored_policy
from hvpa.kube.objects.salvage import LARGE, cut_down
from hvpa.kube.objects.slim import (
    slim_checkpoint,
    slim_hpa,
    slim_namespace,
    slim_node,
    slim_pod,
    slim_vpa,
    slim_workload,
)
from hvpa.kube.objects.stored_hvpa import StoredHvpa, stored


class ObjectLike(Protocol):
    """Any object with metadata."""

    @property
    def metadata(self) -> Meta:
        """The object's metadata."""
        ...


T = TypeVar("T", bound=ObjectLike)


@dataclass(frozen=True, slots=True)
class ApiResource(Generic[T]):
    """A kind of object at an API server."""

    kind: str
    api: str
    """Path prefix, escaped: `/api/v1` or `/apis/GROUP/VERSION`."""
    plural: str
    read: Callable[[bytes | msgspec.Raw], Any]
    """Converts an object's JSON to a read-model. Raises msgspec.MsgspecError."""
    slim: Callable[[Any], T]
    """Reduces the read-model, in place, to the part that the local copy holds. Raises msgspec.MsgspecError."""

    def decode(self, raw: bytes | msgspec.Raw) -> T:
        """An object as the local copy holds it, without a reference to its JSON. Raises msgspec.MsgspecError."""
        decoded = self.read(raw)
        if len(raw) > LARGE and not isinstance(decoded, RawHvpa):  # kept as bytes, and read with a limit
            cut_down(decoded)
        return self.slim(decoded)

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of a collection, an object or its subresource. Raises PathError for an invalid name."""
        parts = () if namespace is None else ("namespaces", namespace)
        below = [part for part in (name, subresource) if part is not None]
        return self.api + escaped_path(*parts, self.plural, *below)


def _workload(kind: Kind) -> ApiResource[Workload]:
    read = workloads.READERS.get(kind.name) or partial(workloads.plain, kind.name)
    return ApiResource(kind.name, api_path(kind.api_version), f"{kind.name.lower()}s", read, slim_workload)


def custom_resource(api_version: str, kind: str, plural: str) -> ApiResource[Workload]:
    """A custom kind, read by its `scale` subresource. Raises PathError."""
    read = partial(workloads.from_scale, api_version, kind)
    return ApiResource(kind_key(api_version, kind), api_path(api_version), plural, read, _as_it_is)


def _as_it_is(obj: T) -> T:
    return obj


HVPAS: ApiResource[StoredHvpa] = ApiResource(
    "Hvpa", "/apis/autoscaling.k8s.io/v1alpha1", "hvpas", msgspec.json.Decoder(RawHvpa).decode, stored
)
WORKLOADS: Mapping[str, ApiResource[Workload]] = {kind.name: _workload(kind) for kind in KINDS.values()}
"""By kind."""
DEPLOYMENTS, STATEFULSETS = WORKLOADS["Deployment"], WORKLOADS["StatefulSet"]
PODS: ApiResource[Pod] = ApiResource("Pod", "/api/v1", "pods", msgspec.json.Decoder(Pod).decode, slim_pod)
HPAS: ApiResource[Hpa] = ApiResource(
    "HorizontalPodAutoscaler",
    "/apis/autoscaling/v2",
    "horizontalpodautoscalers",
    msgspec.json.Decoder(Hpa).decode,
    slim_hpa,
)
VPAS: ApiResource[Vpa] = ApiResource(
    "VerticalPodAutoscaler",
    "/apis/autoscaling.k8s.io/v1",
    "verticalpodautoscalers",
    msgspec.json.Decoder(Vpa).decode,
    slim_vpa,
)
CHECKPOINTS: ApiResource[VpaCheckpoint] = ApiResource(
    "VerticalPodAutoscalerCheckpoint",
    VPAS.api,
    "verticalpodautoscalercheckpoints",
    msgspec.json.Decoder(VpaCheckpoint).decode,
    slim_checkpoint,
)
HVPA_SIZES: ApiResource[HvpaSizes] = ApiResource(
    "HvpaSizes", HVPAS.api, "hvpasizes", msgspec.json.Decoder(HvpaSizes).decode, _as_it_is
)
NODES: ApiResource[Node] = ApiResource(
    "Node", "/api/v1", "nodes", msgspec.json.Decoder(Node).decode, slim_node
)
"""Watched in the whole cluster once an Hvpa needs them."""
NAMESPACES: ApiResource[Namespace] = ApiResource(
    "Namespace", "/api/v1", "namespaces", msgspec.json.Decoder(Namespace).decode, slim_namespace
)
"""Watched once there is a ClusterHvpaPolicy."""
HVPA_POLICIES: ApiResource[StoredPolicy] = ApiResource(
    "HvpaPolicy", HVPAS.api, "hvpapolicies", HVPAS.read, partial(stored_policy, "HvpaPolicy")
)
CLUSTER_POLICIES: ApiResource[StoredPolicy] = ApiResource(
    "ClusterHvpaPolicy",
    HVPAS.api,
    "clusterhvpapolicies",
    HVPAS.read,
    partial(stored_policy, "ClusterHvpaPolicy"),
)
FOR_POLICIES: tuple[ApiResource[Any], ...] = (HVPA_POLICIES, CLUSTER_POLICIES, NAMESPACES)
"""Watched with `--policies` only."""
CLUSTER_WIDE: tuple[ApiResource[Any], ...] = (NODES, NAMESPACES, CLUSTER_POLICIES)
"""Resources without namespaces."""
WATCHED: tuple[ApiResource[Any], ...] = (
    HVPAS,
    DEPLOYMENTS,
    STATEFULSETS,
    HPAS,
    VPAS,
    PODS,
    HVPA_SIZES,
    CHECKPOINTS,
)
OPTIONAL: tuple[ApiResource[Any], ...] = (VPAS, HVPA_SIZES, CHECKPOINTS, NODES)
"""Resources that a cluster need not serve."""
NOT_REQUIRED: tuple[ApiResource[Any], ...] = (CHECKPOINTS, NODES, *FOR_POLICIES)
"""Resources that count as not served if the operator has no permission to read them."""
ON_DEMAND: tuple[ApiResource[Workload], ...] = tuple(
    WORKLOADS[kind.name] for kind in KINDS.values() if not kind.is_common
)
"""Workloads that are watched once an Hvpa names their kind."""
