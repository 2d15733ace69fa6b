"""The ports that reconciling uses: the cluster and the clock. `hvpa.kube` has the real implementations, and
`hvpa_lab.simulate` the simulated ones. Tests use hand-written fakes of these protocols."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta, Pod
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


class Key(NamedTuple):
    """Namespace and name of an Hvpa."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WriteError(Exception):
    """The cluster refused a write, or the write did not get through. HVPA reports the text in the Hvpa's status."""


class Conflict(WriteError):
    """The object has changed since it was read (HTTP 409), or is gone. Read and decide again."""


class Refused(WriteError):
    """The cluster refused the content of a write (HTTP 400, 403, 422 and similar). A policy, a webhook, a quota or a
    rule of the API server forbids it, and would forbid the same write again."""


class NodeTooSmall(Refused):
    """The pod's node is smaller than the pod's new requests. The API server returns this error instead of
    `Infeasible`."""


class NotServed(Refused):
    """The API server does not serve the resource or subresource, so it refuses any write to it."""


class Unavailable(WriteError):
    """The API server gave no response, or failed itself (HTTP 5xx). A retry may soon succeed."""


class Overloaded(WriteError):
    """The API server requires a wait of `retry_after` (HTTP 429, or 503 with Retry-After)."""

    def __init__(self, message: str, retry_after: dt.timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


ResizeFailures = Sequence[tuple[PodResize, WriteError]]


SizeChanges = Mapping[str, str | None]
"""Entries of the namespace's HvpaSizes by the pods' owner, such as `Deployment.apps/web`. None removes an entry."""


class TimeSource(Protocol):
    """The only source of the current time."""

    def now(self) -> dt.datetime:
        """Returns the current time, timezone-aware, in UTC."""


class Cluster(Protocol):
    """Reads come from caches and never wait. Writes raise `WriteError` or a subclass, and the next read sees their
    changes (read your own writes)."""

    def objects(self, key: Key) -> Objects | None:
        """Returns all objects that belong to the Hvpa of this key; None if there is no such Hvpa."""

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """Patches the workload of `hvpa`, or its scale, conditional on the workload's resource version."""

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """Raises the error that `patch_workload` would raise now, without a write."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """Resizes pods of the workload of `hvpa` in parallel. Returns the failed resizes with their errors. A pod that
        is gone is not a failure."""

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        """Writes deletion costs of pods in parallel. Returns the errors. A pod that has changed meanwhile, or is gone,
        is no error."""

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """Returns the last measured memory usage of the containers of the pods that the label selector matches, in
        bytes by pod and container. Unknown values are left out. Never raises."""

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        """Returns the last values of metrics that judge canaries, in their order, and has them read from now on: every
        15 seconds if `often`, else once a minute. Without metrics: reads them no longer. None: nothing has been read
        yet."""

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        """Returns what the kubelets of these pods last reported, and has them polled from now on: often while a
        container uses more than `above` percent of its CPU request or memory limit. Without pods: polls them no longer.
        None: this cluster polls no kubelets."""

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """Writes the sizes of new pods, by owner, and removes entries that are None. Without `changes`: removes all
        entries of `hvpa`, which is gone."""

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        """Applies a JSON merge patch to the Hvpa's `status`, conditional on the resource version of `hvpa`. `status` is
        the result of the patch, for clusters that need not read it back."""

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        """Sets the Hvpa's `spec.replicas`, conditional on its newest resource version in the cache."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """Creates, updates, deletes, releases or returns an HPA or VPA."""

    async def give_back(self, hvpa: Meta) -> None:
        """Makes the HPAs and VPAs that `hvpa`, which is gone, had adopted as they were before."""

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """Records an Event on the Hvpa. Never raises: a failed Event must not fail the reconcile."""
