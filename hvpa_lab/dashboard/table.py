"""All Hvpas of a cluster or a namespace at a glance: a row for each, updated by a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hvpa.api.hvpa.progress import RecommendedContainer
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import BlockedScaling, HvpaStatus, StatusCondition
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.input.live import NO_CRD
from hvpa.cli.input.operator import DEFAULT_LEASE, operator_state
from hvpa.cli.output import Json, timestamp
from hvpa.core.gates.gates import ROLLED_BACK
from hvpa.core.report.problems import problems
from hvpa.core.report.remedies import needs_action, remedy
from hvpa.kube.cache.reflector import Reflector
from hvpa.kube.cache.store import Store
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.objects.stored_hvpa import StoredHvpa
from hvpa.reconcile.ports import Key
from hvpa.reconcile.telemetry import Silent
from hvpa_lab.dashboard.board import Board

LOOK_EVERY: Final = 1.0
"""Seconds between checks whether the watch fails."""
OPERATOR_EVERY: Final = 10.0
"""Seconds between checks whether the operator is alive."""
PROBLEM: Final = ""
"""The part of the board that reports why the rows may be out of date."""
_UNREPORTED: Final = StatusCondition(
    type="Ready",
    reason="NotReported",
    message="the operator has reported nothing yet: is it running, and does it watch this namespace?",
)


class HvpaTable:
    """The rows, on a board by `NAMESPACE/NAME`. `on_change` is called with the key of each changed Hvpa."""

    def __init__(
        self,
        transport: Transport,
        scope: str,
        on_change: Callable[[Key], None],
        lease: Key = DEFAULT_LEASE,
    ) -> None:
        """`scope` is a namespace, or ALL_NAMESPACES; `lease` is the operator's Lease."""
        self._transport = transport
        self._lease = lease
        self._silence = ""
        self.board = Board()
        self._on_change = on_change
        store: Store[StoredHvpa] = Store((scope,), self._changed)
        self._reflector = Reflector(transport, HVPAS, scope, store, Silent())

    def has(self, key: Key) -> bool | None:
        """Whether an Hvpa exists; None while unknown, because Hvpas are not listed yet or not watched."""
        if self._reflector.state != "synced" or self._reflector.freshness.problem is not None:
            return None
        return self.board.get(str(key)) is not None

    async def run(self) -> None:
        """List and watch forever."""
        await asyncio.gather(self._reflector.run(), self._look(), self._look_at_operator())

    def _changed(self, old: StoredHvpa | None, new: StoredHvpa | None, own: bool) -> None:
        if new is not None:
            new.succeed(old)
        stored = new or old
        assert stored is not None
        meta = stored.metadata
        key = Key(meta.namespace, meta.name)
        self.board.put(str(key), None if new is None else row(new.read()))
        self._on_change(key)

    async def _look(self) -> None:
        """Show whether the watch fails; forever, because the reflector does not report recovery."""
        reflector = self._reflector
        while True:
            failed = reflector.freshness.problem
            if reflector.state == "not served":
                failed = NO_CRD
            elif failed is not None:
                failed = f"Hvpas can't be watched, so this may be out of date: {failed}"
            self.board.put(PROBLEM, failed or self._silence or None)
            await asyncio.sleep(LOOK_EVERY)

    async def _look_at_operator(self) -> None:
        """Check forever whether the operator is alive."""
        while True:
            state = await operator_state(self._transport, self._lease)
            self._silence = state.text(SystemClock().now()) if state.state == "silent" else ""
            await asyncio.sleep(OPERATOR_EVERY)


def row(hvpa: HvpaObject) -> Json:
    """The row of an Hvpa, from the operator's last report."""
    spec, status = hvpa.spec, hvpa.status
    state, why = _state(status)
    desired = status.desired or status.recommended
    return {
        "namespace": hvpa.metadata.namespace,
        "name": hvpa.metadata.name,
        "target": None if spec is None else f"{spec.target_ref.kind} {spec.target_ref.name}",
        "mode": None if spec is None else spec.mode,
        "blend": None if spec is None else "Trajectory" if spec.joint else "Additive",
        "updateStrategy": None if spec is None else status.update_strategy or spec.strategy.type,
        "state": state,
        "reason": why.reason,
        "message": why.message,
        "since": timestamp(why.last_transition_time),
        "remedy": remedy(why.reason, hvpa.metadata, spec) if state == "attention" else None,
        "replicas": status.replicas,
        "desired": None if desired is None else desired.replicas,
        "size": None if desired is None else _size(desired.containers),
        "held": _held(status),
        "resized": None if status.actuation is None else status.actuation.resized or None,
    }


def _size(containers: Sequence[RecommendedContainer]) -> str | None:
    """The requests of the containers that HVPA sizes: `cpu 432m, memory 240Mi`; with names if there are several."""
    texts = [
        f"{f'{container.name}: ' if len(containers) > 1 else ''}"
        + ", ".join(f"{resource} {amount}" for resource, amount in container.requests.items())
        for container in containers
        if container.requests
    ]
    return "; ".join(texts) or None


def _state(status: HvpaStatus) -> tuple[str, StatusCondition]:
    """`ready`, `attention`, `paused`, `starting` or `unknown`, and the condition that explains it."""
    conditions = status.conditions
    by_type = {condition.type: condition for condition in conditions}
    ready = by_type.get("Ready")
    if ready is None:
        return "unknown", _UNREPORTED
    bad = {condition.type: condition for condition in conditions if needs_action(condition)}
    paused = bad.pop("Paused", None)
    if bad:
        return "attention", next(iter(bad.values()))
    reasons = dict(sorted(problems(status)))
    for problem, cause in _CAUSES.items():
        if problem in reasons:
            message = cause(status) or f"held back by {reasons[problem]}"
            return "attention", StatusCondition(type=problem, reason=problem, message=message)
    if paused is not None:
        return "paused", paused
    return ("ready" if ready.status == "True" else "starting"), ready


def _of_starving(status: HvpaStatus) -> str:
    return f"out of memory: {_raises_held(status, 'memory')}"


def _of_cpu(status: HvpaStatus) -> str:
    held = _raises_held(status, "cpu")
    return held and f"short of CPU: {held}"


def _raises_held(status: HvpaStatus, resource: str) -> str:
    """The increases of a resource that are held back, by which gate and until when."""
    held = [
        f"{blocked.container} {_change(blocked)} is held back by {blocked.reason}{_until(blocked)}"
        for blocked in status.last_blocked_scaling
        if (blocked.axis, blocked.direction, blocked.resource) == ("vertical", "up", resource)
    ]
    return "; ".join(held)


def _of_rollback(status: HvpaStatus) -> str:
    """Why a size was rolled back, and when it is tried again."""
    record = status.rolled_back
    held = [blocked for blocked in status.last_blocked_scaling if blocked.reason == ROLLED_BACK]
    why = "a size failed" if record is None else record.message or "a size failed"
    sizes = [
        f"{blocked.container} {blocked.resource} {_change(blocked)}{_until(blocked)}" for blocked in held
    ]
    return f"rolled back: {why}; not tried again: {'; '.join(sizes)}"


def _change(blocked: BlockedScaling) -> str:
    return f"{blocked.current or '?'} -> {blocked.wanted or '?'}"


def _until(blocked: BlockedScaling) -> str:
    return "" if blocked.until is None else f" until {readable_timestamp(blocked.until)}"


def _held(status: HvpaStatus) -> list[str]:
    """The reasons of the changes that are held back, without duplicates."""
    return list(dict.fromkeys(blocked.reason for blocked in status.last_blocked_scaling))


_CAUSES: Final[Mapping[str, Callable[[HvpaStatus], str]]] = {
    "Starving": _of_starving,
    "ShortOfCpu": _of_cpu,
    "RolledBack": _of_rollback,
}
"""Problems that no condition reports, the most urgent first, with their causes from the status (empty: unknown)."""
