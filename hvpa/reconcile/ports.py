"""The ports that reconciling needs of the outside: the cluster and the clock. The real ones are in `hvpa.kube`, the
simulated ones in `hvpa.simulate`; fakes for tests are written by hand against these protocols."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta
from hvpa.core.model import Event, Objects, OwnedChange, PodResize, WorkloadPatch


class Key(NamedTuple):
    """Namespace and name of an Hvpa."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WriteError(Exception):
    """A write that the cluster refused or that did not get through; its text is reported in the Hvpa's status."""


class Conflict(WriteError):
    """The object changed since it was read (HTTP 409, or gone): read again, decide again."""


class Refused(WriteError):
    """The cluster refused what the write says (HTTP 400, 403, 422 and the like): a policy, a webhook, a quota or a rule
    of the API server forbids it, and would forbid the same write again."""


class NodeTooSmall(Refused):
    """The pod's node is smaller than what the pod would request: the API server's answer in place of `Infeasible`."""


class NotServed(Refused):
    """The API server does not know what is written to, whatever is written."""


class Unavailable(WriteError):
    """No response, or one that says that the API server itself has failed (HTTP 5xx). It may heal within moments."""


class Overloaded(WriteError):
    """The API server asked to wait (HTTP 429 or 503 with Retry-After), `retry_after` long."""

    def __init__(self, message: str, retry_after: dt.timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


ResizeFailures = Sequence[tuple[PodResize, WriteError]]


SizeChanges = Mapping[str, str | None]
"""Entries of the namespace's HvpaSizes by the pods' owner, such as `Deployment.apps/web`; None for one that goes."""


class Clock(Protocol):
    """The only source of the current time."""

    def now(self) -> dt.datetime:
        """The current time, timezone-aware, UTC."""


class Cluster(Protocol):
    """Reads come from caches and never wait; writes raise `WriteError` or one of its kinds, and what they changed is
    seen by the next read (read your own writes)."""

    def objects(self, key: Key) -> Objects | None:
        """All that belongs to the Hvpa of this key; None when there is no such Hvpa."""

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """Patch of the workload of `hvpa`, or of its scale, conditional on the workload's resource version."""

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """Raise what `patch_workload` would raise if it were called now; writes nothing."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """Resize pods of the workload of `hvpa`, several at a time; returns what failed, and how. A pod that is gone is
        no failure."""

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """What containers of the pods that a label selector matches used of memory when they were last measured, in
        bytes by pod and container. What is not known is left out; never raises."""

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """Write the sizes that new pods get, by owner, and remove those that are None. Without `changes`: remove all
        that were written for `hvpa`, which is gone."""

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        """JSON merge patch of the Hvpa's `status`, conditional on the resource version of `hvpa`. `status` is what the
        patch makes of it, for a cluster that need not read it back."""

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        """Set the Hvpa's `spec.replicas`. Conditional on its newest resource version in the cache."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """Create, update, delete or release an HPA or VPA."""

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """Record an Event on the Hvpa; never raises (an Event is not worth a failed reconcile)."""
