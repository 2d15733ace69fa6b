"""The operator's reports about itself. `hvpa.kube.server.metrics` implements them as Prometheus metrics."""

from __future__ import annotations

from typing import Literal

from hvpa.api.objects.read_models import Workload
from hvpa.core.invariants import Violation
from hvpa.core.model import Axis, Blocked, Decision, Direction
from hvpa.reconcile.ports import Key

Outcome = Literal["done", "gone", "conflict", "overloaded", "failed", "crashed"]
Operation = Literal[
    "Decide",
    "PatchWorkload",
    "WriteCreationSizes",
    "WritePodCosts",
    "ResizePods",
    "PatchStatus",
    "WriteScaleReplicas",
    "ChangeOwned",
]
"""Operation that failed. `status.lastError.lastOperation` contains it (except PatchStatus and
WritePodCosts)."""


class Telemetry:
    """Receives reports and ignores them. Subclasses must not raise."""

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """A decision was made. `workload` is the target at that time."""

    checks_invariants = False
    """Whether to check decisions against the invariants, which takes about a tenth of the time of a decision."""

    def violated(self, key: Key, violation: Violation) -> None:
        """A decision violates an invariant: a defect of HVPA."""

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        """HVPA changed the workload on `axis` in `direction`."""

    def raised_fast(self, key: Key) -> None:
        """The fast signal raised requests of the workload."""

    def blocked(self, key: Key, blocked: Blocked) -> None:
        """HVPA has begun to hold back a change (reported once, not for each decision)."""

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        """A write was refused or did not get through."""

    def started(self, key: Key, waited: float) -> None:
        """A reconcile begins. The key had been due for `waited` seconds."""

    def postponed(self, key: Key, seconds: float) -> None:
        """A reconcile begins after it was postponed because the namespace was over budget. The key had been due for
        `seconds`."""

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        """A reconcile ended, after `seconds` of wall time."""

    def forgotten(self, key: Key) -> None:
        """The Hvpa has been deleted."""

    def request(self, verb: str, code: str) -> None:
        """The API server answered a request with `code`; "error" if it did not answer."""

    def watch_restarted(self, plural: str, reason: str) -> None:
        """A watch ended and starts again. The reason is "ended", "expired" or "error"."""

    def bad_object(self, plural: str) -> None:
        """An object could not be decoded and counts as absent."""

    def throttled(self) -> None:
        """The API server required the operator to wait."""

    def task_failed(self, task: str) -> None:
        """A permanent task ended with an exception and starts again."""

    def permit_waited(self, seconds: float) -> None:
        """A permit was available only after `seconds`."""


Silent = Telemetry
"""For the simulator and `explain`."""
