"""Gates hold a wanted change back. They are small functions in order; HVPA reports the first gate that blocks (DESIGN
6.2).

A gate is a reason and an entry of `GATES`; the comment above `GATES` explains how to add a gate. Two reasons have no
entry, because a part of their change passes: `MAX_STEP` (`core/axes/replicas.py`) and `POD_REPLACEMENT`
(`core/trajectory/step.py`). A rollout that has started waits in `core/actuation/rollouts.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

import msgspec

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.windows import WindowState, window_state
from hvpa.core.model import Axis, Direction
from hvpa.core.rules import GateFigures, Rules, rules_of
from hvpa.core.values.clock import LAST_INSTANT, Clock

PAUSED = "Paused"  # `spec.mode` is Paused
CONTESTED = "Contested"  # another client keeps setting the field back
WEIGHT = "Weight"  # the interval gives this axis no weight
UPDATE_POLICY = "UpdatePolicy"  # the direction's update mode is Off
REFUSED = "Refused"  # the API server refused this change; it is tried again later
CANARY = "Canary"  # another size is being tried on some pods (`spec.updateStrategy.canary`)
ROLLED_BACK = "RolledBack"  # this size failed on some pods, or no node takes it; it is tried again later
MIN_HISTORY = "MinHistory"  # the VPA's history is too young to lower a request
OUT_OF_MEMORY = "OutOfMemory"  # the container ran out of memory recently: its memory is not lowered
RECENT_RAISE = "RecentRaise"  # it ran out of memory again, and was raised less than ten minutes ago
APPROVAL = "Approval"  # `spec.mode` is Review, and this size is not approved
STABILIZATION_WINDOW = "StabilizationWindow"  # the axis was scaled less than stabilizationDuration ago
MAINTENANCE_WINDOW = "MaintenanceWindow"  # the direction needs a maintenance window, and none is open
ROLLOUT = "Rollout"  # the workload's last rollout is not complete
POD_REPLACEMENT = (
    "PodReplacement"  # replicas are removed after all pods have their larger size (`Trajectory`)
)
SUSTAINED_DEMAND = "SustainedDemand"  # demand must last before pods are replaced for it (`Trajectory`)
MEASUREMENT = "Measurement"  # the HPA has not measured the effect of the last step yet
MIN_CHANGE = "MinChange"  # the change is smaller than the direction's threshold
MAX_STEP = "MaxStep"  # `hpa.scaleUp.maxStep` divides the change into steps, and the next step is due later

NO_CLOCK: Final = LAST_INSTANT
"""The end of a wait that no time ends."""


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Why a change waits."""

    reason: str
    until: dt.datetime | None = None
    """Earliest end of the wait; None: something other than time must change."""
    figures: GateFigures | None = None
    """Figures of the gate."""

    def text(self) -> str:
        """Describes the hold in words."""
        return self.reason if self.until is None else f"{self.reason} until {readable_timestamp(self.until)}"


class GateContext(msgspec.Struct, frozen=True, dict=True):
    """State that all gates of a decision share. Maintenance windows are evaluated once, and only if a direction needs
    them."""

    clock: Clock
    spec: HvpaSpec
    is_settled: bool
    """No rollout is in progress, or the last one is past its progress deadline."""
    settles_at: dt.datetime | None = None
    """The progress deadline, past or future; None if the rollout is complete or has no deadline."""
    rollout_gaps: tuple[str, ...] = ()
    """What the rollout lacks, in words."""

    @property
    def applies(self) -> bool:
        """Whether this decision may change the workload."""
        return self.spec.applies

    @cached_property
    def window(self) -> WindowState:
        """State of the maintenance windows now."""
        return self.clock.answer(self._window)

    @cached_property
    def rules(self) -> Mapping[tuple[Axis, Direction], Rules]:
        """Rules of each direction."""
        return rules_of(self.spec)

    def _window(self, now: dt.datetime) -> tuple[WindowState, dt.datetime | None]:
        state = window_state(self.spec, now)
        return state, state.closes_at if state.open else state.opens_at


class Change(msgspec.Struct, frozen=True, gc=False):
    """A wanted change in the form that gates check.

    Each instant holds the change until then (None: not at all; NO_CLOCK: until something other than time changes).
    """

    rules: Rules
    """Rules of the change's direction."""
    last_scale_time: dt.datetime | None
    """Time of the axis's last step."""
    disruptive: bool = False
    """The change replaces pods."""
    weightless: bool = False
    """The interval gives the change no weight."""
    contested_until: dt.datetime | None = None
    refused_until: dt.datetime | None = None
    canary_until: dt.datetime | None = None
    rolled_back_until: dt.datetime | None = None
    young_until: dt.datetime | None = None
    kept_until: dt.datetime | None = None
    raised_until: dt.datetime | None = None
    worth_at: dt.datetime | None = None
    measured_at: dt.datetime | None = None
    unapproved_until: dt.datetime | None = None
    small_until: dt.datetime | None = None
    """Set if the change is smaller than `least`."""
    least: GateFigures | None = None
    """The smallest allowed change."""


class GateVerdict(msgspec.Struct, frozen=True, gc=False):
    """A gate holds the change until then (NO_CLOCK: no time ends the wait), because of these figures."""

    until: dt.datetime
    figures: GateFigures | None = None


Gate = Callable[[Change, GateContext], GateVerdict | None]
"""Returns None if the change need not wait."""


def _until(instant: dt.datetime | None, figures: GateFigures | None = None) -> GateVerdict | None:
    return None if instant is None else GateVerdict(instant, figures)


def _no_clock(waits: bool) -> GateVerdict | None:
    return GateVerdict(NO_CLOCK) if waits else None


def _stabilization(change: Change, context: GateContext) -> GateVerdict | None:
    wait = change.rules.stabilization
    until = context.clock.held_until(change.last_scale_time, wait.duration)
    return _until(until, wait.figures)


def _maintenance(change: Change, context: GateContext) -> GateVerdict | None:
    if change.rules.policy.update_policy.update_mode != "MaintenanceWindow" or context.window.open:
        return None
    return GateVerdict(context.window.opens_at or NO_CLOCK)


def _rollout(change: Change, context: GateContext) -> GateVerdict | None:
    waits = change.disruptive and not context.is_settled
    return GateVerdict(context.settles_at or NO_CLOCK) if waits else None


def _sustained(change: Change, context: GateContext) -> GateVerdict | None:
    wait = change.rules.sustained
    return _until(change.worth_at, None if wait is None else wait.figures)


def _approval(change: Change, context: GateContext) -> GateVerdict | None:
    """A change that is too small or has not lasted yet needs no approval: it may never be made."""
    if any(
        until is not None and not context.clock.is_past(until)
        for until in (change.worth_at, change.small_until)
    ):
        return None
    return _until(change.unapproved_until)


# To add a gate, add its reason and its entry in order. If it needs an instant, add a field of `Change`. Fill the field
# in `core/axes/replicas.py` (`_change`) for replicas. For requests, fill it in `core/axes/requests.py`: `_change` also
# covers the raise of a starving container, `step_to` does not. If only `Trajectory` has it, use
# `core/trajectory/requests.py` (`_usual_step`). Then decide which changes pass it: the sets below, and `passes=` of
# those functions. Status, Events and `explain` print the reason as it is. Describe it in docs/decision.md (a test names
# the pages that lack it).
GATES: Final[Mapping[str, Gate]] = {
    PAUSED: lambda change, context: _no_clock(context.spec.mode == "Paused"),
    CONTESTED: lambda change, context: _until(change.contested_until),
    WEIGHT: lambda change, context: _no_clock(change.weightless),
    UPDATE_POLICY: lambda change, context: _no_clock(change.rules.policy.update_policy.update_mode == "Off"),
    REFUSED: lambda change, context: _until(change.refused_until),
    CANARY: lambda change, context: _until(change.canary_until),
    ROLLED_BACK: lambda change, context: _until(change.rolled_back_until),
    MIN_HISTORY: lambda change, context: _until(change.young_until),
    OUT_OF_MEMORY: lambda change, context: _until(change.kept_until),
    RECENT_RAISE: lambda change, context: _until(change.raised_until),
    APPROVAL: _approval,
    STABILIZATION_WINDOW: _stabilization,
    MAINTENANCE_WINDOW: _maintenance,
    ROLLOUT: _rollout,
    SUSTAINED_DEMAND: _sustained,
    MEASUREMENT: lambda change, context: _until(change.measured_at),
    MIN_CHANGE: lambda change, context: _until(change.small_until, change.least),
}
"""Evaluated in this order."""

OVERRIDDEN = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MIN_CHANGE})
"""Gates that do not hold a raise of a starving container's memory (DESIGN 6.4)."""
RELIEVED = frozenset({STABILIZATION_WINDOW, MIN_CHANGE})
"""Gates that do not hold a raise of its CPU or of other containers, and a raise by the fast signal."""
OUTSIDE_BOUNDS = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MEASUREMENT, MIN_CHANGE})
"""Gates that do not hold a count on its way back inside minReplicas..maxReplicas (DESIGN 6.5)."""


def first_hold(change: Change, context: GateContext, passes: frozenset[str] = frozenset()) -> Hold | None:
    """Returns the first gate that blocks the change, ignoring the gates in `passes`."""
    for name, gate in GATES.items():
        verdict = None if name in passes else gate(change, context)
        if verdict is not None and not context.clock.is_past(verdict.until):
            return Hold(name, None if verdict.until == NO_CLOCK else verdict.until, verdict.figures)
    return None
