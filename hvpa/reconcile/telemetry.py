"""What reconciling reports about itself: the protocol, and an implementation that keeps silent.

The real one, with Prometheus metrics, is `hvpa.kube.server.metrics`.
"""

from __future__ import annotations

from typing import Literal, Protocol

from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Axis, Blocked, Decision, Direction
from hvpa.reconcile.ports import Key

Outcome = Literal["done", "gone", "conflict", "overloaded", "failed", "crashed"]
Operation = Literal["Decide", "PatchWorkload", "PatchStatus", "WriteScaleReplicas", "ChangeOwned"]
"""What was being done when something failed; `status.lastError.lastOperation` holds it (but for PatchStatus)."""


class Telemetry(Protocol):
    """Receives what happens, as it happens. Implementations must not raise."""

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """A decision was made; `workload` is the target as it was then."""
        ...

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        """The workload was changed on `axis` in `direction`."""
        ...

    def blocked(self, key: Key, blocked: Blocked) -> None:
        """A wanted change has begun to be held back (reported once, not at every decision)."""
        ...

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        """A write was refused or did not get through."""
        ...

    def started(self, key: Key, waited: float) -> None:
        """A reconcile begins; the key had been due for `waited` seconds."""
        ...

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        """A reconcile ended, after `seconds` of wall time."""
        ...

    def forgotten(self, key: Key) -> None:
        """The Hvpa is gone."""
        ...


class Silent:
    """Telemetry that goes nowhere: for the simulator and `explain`."""

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Nothing."""

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        """Nothing."""

    def blocked(self, key: Key, blocked: Blocked) -> None:
        """Nothing."""

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        """Nothing."""

    def started(self, key: Key, waited: float) -> None:
        """Nothing."""

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        """Nothing."""

    def forgotten(self, key: Key) -> None:
        """Nothing."""
