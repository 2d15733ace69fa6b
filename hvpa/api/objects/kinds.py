"""The kinds of workloads that can be scaled. Of any kind that is not among KINDS, a custom one, only what its `scale`
subresource has is known: replicas and the selector of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final, Literal, NamedTuple

WorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"]


class Kind(NamedTuple):
    """A kind of workload. `has_replicas`: how many pods it has is for its spec to say; a DaemonSet has one for each
    node. `is_common`: nearly every cluster has many that are scaled, so all are watched from the start; of the others
    the watch begins with the first Hvpa that names one (a cluster has ten ReplicaSets for each Deployment)."""

    name: WorkloadKind
    api_version: str
    has_replicas: bool = True
    is_common: bool = False

    @property
    def group(self) -> str:
        """The API group; empty for the core's. Example: `apps`."""
        return self.api_version.rpartition("/")[0]


KINDS: Final[Mapping[str, Kind]] = {
    one.name: one
    for one in (
        Kind("Deployment", "apps/v1", is_common=True),
        Kind("StatefulSet", "apps/v1", is_common=True),
        Kind("DaemonSet", "apps/v1", has_replicas=False),
        Kind("ReplicaSet", "apps/v1"),
        Kind("ReplicationController", "v1"),
    )
}
DEFAULT_API_VERSION: Final = "apps/v1"
"""Of a targetRef without one, for a kind that is not among KINDS."""


def is_custom(api_version: str | None, kind: str) -> bool:
    """Whether a targetRef names a kind of which its `scale` subresource alone is read."""
    return kind not in KINDS and "/" in (api_version or "") and api_version != DEFAULT_API_VERSION


def kind_key(api_version: str | None, kind: str) -> str:
    """A kind's name among all kinds of a cluster: `Deployment`; `Rollout.argoproj.io` of `argoproj.io/v1alpha1`."""
    return f"{kind}.{(api_version or '').partition('/')[0]}" if is_custom(api_version, kind) else kind


def has_replicas(kind: str) -> bool:
    """Whether a kind's spec says how many pods it has; custom kinds do."""
    found = KINDS.get(kind)
    return found is None or found.has_replicas


def api_version_of(kind: str) -> str:
    """The API version of a kind. Example: `v1` of ReplicationController."""
    found = KINDS.get(kind)
    return DEFAULT_API_VERSION if found is None else found.api_version


def in_words() -> str:
    """All kinds by their versions. Example: `Deployment and DaemonSet of apps/v1, ReplicationController of v1`."""
    parts = []
    for version, kinds in groupby(KINDS.values(), key=lambda one: one.api_version):
        *first, last = (one.name for one in kinds)
        parts.append(f"{', '.join(first)} and {last} of {version}" if first else f"{last} of {version}")
    return ", ".join(parts)
