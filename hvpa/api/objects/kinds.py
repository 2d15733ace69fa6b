"""The kinds of workloads that HVPA can scale. For kinds that are not in KINDS (custom kinds), HVPA uses only the
`scale` subresource: replicas and the selector of the pods."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final, Literal, NamedTuple

WorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"]


class Kind(NamedTuple):
    """A kind of workload."""

    name: WorkloadKind
    api_version: str
    has_replicas: bool = True
    """Whether the spec sets the number of pods. A DaemonSet has one pod for each node instead."""
    is_common: bool = False
    """Whether HVPA watches the kind from the start, because nearly every cluster scales many of them. HVPA watches
    other kinds from the first Hvpa that names them (a cluster has ten ReplicaSets for each Deployment)."""

    @property
    def group(self) -> str:
        """The API group; empty for the core group. Example: `apps`."""
        return self.api_version.rpartition("/")[0]


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("Deployment", "apps/v1", is_common=True),
        Kind("StatefulSet", "apps/v1", is_common=True),
        Kind("DaemonSet", "apps/v1", has_replicas=False),
        Kind("ReplicaSet", "apps/v1"),
        Kind("ReplicationController", "v1"),
    )
}
DEFAULT_API_VERSION: Final = "apps/v1"
"""API version of a targetRef that names none, for a kind that is not in KINDS."""


def is_custom(api_version: str | None, kind: str) -> bool:
    """Whether a targetRef names a kind for which HVPA reads only the `scale` subresource."""
    return kind not in KINDS and "/" in (api_version or "") and api_version != DEFAULT_API_VERSION


def kind_key(api_version: str | None, kind: str) -> str:
    """Returns a name that is unique among all kinds of a cluster: `Deployment`; `Rollout.argoproj.io` for
    `argoproj.io/v1alpha1`."""
    return f"{kind}.{(api_version or '').partition('/')[0]}" if is_custom(api_version, kind) else kind


def has_replicas(kind: str) -> bool:
    """Whether the spec of a kind sets the number of pods. Custom kinds count as such."""
    known_kind = KINDS.get(kind)
    return known_kind is None or known_kind.has_replicas


def api_version_of(kind: str) -> str:
    """Returns the API version of a kind. Example: `v1` for ReplicationController."""
    known_kind = KINDS.get(kind)
    return DEFAULT_API_VERSION if known_kind is None else known_kind.api_version


def in_words() -> str:
    """Returns all kinds by version. Example: `Deployment and DaemonSet of apps/v1, ReplicationController of v1`."""
    parts = []
    for version, kinds in groupby(KINDS.values(), key=lambda kind: kind.api_version):
        *first, last = (kind.name for kind in kinds)
        parts.append(f"{', '.join(first)} and {last} of {version}" if first else f"{last} of {version}")
    return ", ".join(parts)
