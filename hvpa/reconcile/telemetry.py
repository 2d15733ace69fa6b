"""What the operator reports about itself. The implementation with Prometheus metrics is `hvpa.kube.server.metrics`."""

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
    "ResizePods",
    "PatchStatus",
    "WriteScaleReplicas",
    "ChangeOwned",
]
"""What was being done when something failed; `status.lastError.lastOperation` holds it (but for PatchStatus)."""


class Telemetry:
    """Receives what happens, as it happens, and does nothing with it. Those that do must not raise."""

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """A decision was made; `workload` is the target as it was then."""

    checks_invariants = False
    """Whether decisions are checked, which takes about a tenth of the time of making them."""

    def violated(self, key: Key, violation: Violation) -> None:
        """A decision breaks an invariant: a defect of HVPA."""

    def applied(self, key: Key, axis: Axis, direction: Direction) -> None:
        """The workload was changed on `axis` in `direction`."""

    def blocked(self, key: Key, blocked: Blocked) -> None:
        """A wanted change has begun to be held back (reported once, not at every decision)."""

    def write_failed(self, key: Key, operation: Operation, kind: Outcome) -> None:
        """A write was refused or did not get through."""

    def started(self, key: Key, waited: float) -> None:
        """A reconcile begins; the key had been due for `waited` seconds."""

    def postponed(self, key: Key, seconds: float) -> None:
        """A reconcile begins, and was postponed because the namespace was over budget; the key had been due for
        `seconds`."""

    def finished(self, key: Key, outcome: Outcome, seconds: float) -> None:
        """A reconcile ended, after `seconds` of wall time."""

    def forgotten(self, key: Key) -> None:
        """The Hvpa is gone."""

    def request(self, verb: str, code: str) -> None:
        """A request to the API server was answered with `code`, or "error"."""

    def watch_restarted(self, plural: str, reason: str) -> None:
        """A watch ended and is started again: reason "ended", "expired" or "error"."""

    def bad_object(self, plural: str) -> None:
        """An object could not be decoded and counts as absent."""

    def throttled(self) -> None:
        """The API server asked the operator to wait."""

    def task_failed(self, task: str) -> None:
        """A task that runs for as long as the process does ended in an exception, and begins again."""

    def permit_waited(self, seconds: float) -> None:
        """A permit could not be had at once, but after `seconds`."""


Silent = Telemetry
"""For the simulator and `explain`."""
