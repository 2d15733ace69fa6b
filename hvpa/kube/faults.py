"""Death at named points, for tests of what survives it. Does nothing unless HVPA_FAULT_POINT is set.

`HVPA_FAULT_POINT=before-workload-patch` kills the process (SIGKILL) right before its first patch of a workload;
`after-workload-patch:3` right after its third one. Points: `before-` or `after-` one of STEPS.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from hvpa.api.objects import Meta
from hvpa.api.status import HvpaStatus
from hvpa.core.model import Event, Objects, OwnedChange, WorkloadPatch
from hvpa.reconcile.ports import Cluster, Key

VARIABLE = "HVPA_FAULT_POINT"
STEPS = ("workload-patch", "status", "mailbox", "owned", "event")
POINTS = tuple(f"{when}-{step}" for step in STEPS for when in ("before", "after"))


@dataclass(slots=True)
class FaultyCluster:
    """A cluster port that dies at `point`, the `left`-th time that it comes by."""

    cluster: Cluster
    point: str
    left: int = 1

    def objects(self, key: Key) -> Objects | None:
        """See the port."""
        return self.cluster.objects(key)

    async def patch_workload(self, namespace: str, patch: WorkloadPatch) -> None:
        """See the port."""
        await self._around("workload-patch", self.cluster.patch_workload(namespace, patch))

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        """See the port."""
        await self._around("status", self.cluster.patch_status(hvpa, patch, status))

    async def write_mailbox(self, hvpa: Meta, replicas: int) -> None:
        """See the port."""
        await self._around("mailbox", self.cluster.write_mailbox(hvpa, replicas))

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """See the port."""
        await self._around("owned", self.cluster.change_owned(hvpa, change))

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """See the port."""
        await self._around("event", self.cluster.record_event(hvpa, event))

    async def _around(self, step: str, write: Awaitable[None]) -> None:
        self._pass(f"before-{step}")
        await write
        self._pass(f"after-{step}")

    def _pass(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class FaultPointError(ValueError):
    """HVPA_FAULT_POINT names no point."""


def parse_point(setting: str | None) -> tuple[str, int] | None:
    """Point and count of `POINT` or `POINT:N`; None when nothing is set. Raises FaultPointError."""
    if not setting:
        return None
    point, _, count = setting.partition(":")
    if point not in POINTS or not re.fullmatch("[0-9]*", count):
        raise FaultPointError(f"{VARIABLE}={setting}: must be one of {', '.join(POINTS)}, with or without :N")
    return point, int(count or "1")


def with_faults(cluster: Cluster, setting: str | None) -> Cluster:
    """`cluster`, dying where `setting` says; itself when that is empty. Raises FaultPointError."""
    parsed = parse_point(setting)
    return cluster if parsed is None else FaultyCluster(cluster, *parsed)
