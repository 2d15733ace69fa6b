"""What holds a wanted change back: an ordered list of small functions, the first that blocks is reported (DESIGN 6.2).

Each gate takes a `Change` and answers None, or a `Hold` with the instant at which it can open (None: no
clock opens it).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import cached_property

import msgspec

from hvpa.api.hvpa.scaling import ScaleType
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.windows import WindowState, window_state
from hvpa.core.values.clock import Clock

PAUSED = "Paused"
"""`spec.mode` is Paused."""
CONTESTED = "Contested"
"""Somebody else keeps setting the field back."""
WEIGHT = "Weight"
"""The interval gives this axis no weight."""
UPDATE_POLICY = "UpdatePolicy"
"""The direction's update mode is Off."""
REFUSED = "Refused"
"""The API server refused this change; it is tried again later."""
CANARY = "Canary"
"""Another size is being tried on some pods (`spec.updateStrategy.canary`)."""
ROLLED_BACK = "RolledBack"
"""This size failed on the pods that it was tried on, or no node takes it; it is tried again later."""
MIN_HISTORY = "MinHistory"
"""The VPA's history is too young to lower a request."""
OUT_OF_MEMORY = "OutOfMemory"
"""The container ran out of memory not long ago: its memory is not lowered."""
RECENT_RAISE = "RecentRaise"
"""The container ran out of memory again, and its memory was raised for that less than ten minutes ago."""
STABILIZATION_WINDOW = "StabilizationWindow"
"""The axis was scaled less than the direction's stabilization duration ago."""
MAINTENANCE_WINDOW = "MaintenanceWindow"
"""The direction's update mode is MaintenanceWindow and no window is open."""
ROLLOUT = "Rollout"
"""The workload's last rollout is not complete."""
POD_REPLACEMENT = "PodReplacement"
"""Fewer replicas follow once pods of the new, larger size have replaced all others (`Trajectory`): no clock ends it."""
SUSTAINED_DEMAND = "SustainedDemand"
"""Demand has to last for some minutes before pods are replaced for it (`Trajectory`)."""
MEASUREMENT = "Measurement"
"""The HPA has yet to measure what the last step made of the workload."""
MIN_CHANGE = "MinChange"
"""The change is smaller than the direction's threshold."""
MAX_STEP = "MaxStep"
"""`hpa.scaleUp.maxStep` divides the way into steps, and the next one is due at a later time."""


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Why a change waits, and until when at the earliest (None: until something other than time changes)."""

    reason: str
    until: dt.datetime | None = None

    def told(self) -> str:
        """The hold in words."""
        return self.reason if self.until is None else f"{self.reason} until {readable_timestamp(self.until)}"


class GateContext(msgspec.Struct, frozen=True, dict=True):
    """What all gates of one decision share. Windows are looked at once, and only where a direction asks for them.

    `is_settled`: no rollout is under way, or the last one is past its progress deadline. `settles_at` is that deadline,
    past or to come (None: the rollout is complete, or no clock ends it).
    """

    clock: Clock
    spec: HvpaSpec
    is_settled: bool
    settles_at: dt.datetime | None = None

    @property
    def applies(self) -> bool:
        """Whether this decision may change the workload."""
        return self.spec.mode == "Apply"

    @cached_property
    def window(self) -> WindowState:
        """The state of the maintenance windows now."""
        return self.clock.answer(self._window)

    def _window(self, now: dt.datetime) -> tuple[WindowState, dt.datetime | None]:
        state = window_state(self.spec, now)
        return state, state.closes_at if state.open else state.opens_at


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change that is wanted, as its gates see it.

    `last_scale_time` is the axis's clock, `contested_until` the end of its back-off, `refused_until` when a change that
    the API server refused is tried again, `weightless` whether the interval gives it no weight, `disruptive` whether it
    restarts pods, `too_small` whether it is below the threshold and `small_until` when that stops to matter,
    `unmeasured` whether it has to wait for a new measurement and `measured_at` until when at the latest. `wait` is the
    stabilization duration where it is not the policy's, `worth_at` from when on pods are replaced for it. `kept_until`
    is when a container that ran out of memory may have less of it (`is_kept` alone: no clock ends that), `young_until`
    when the VPA's history is old enough, `raised_until` when the memory of a container that ran out of it again may be
    raised again. `is_after_canary` tells that another size is being tried, until `canary_until` (None: no clock ends
    that), `rolled_back_until` is when a size that failed is tried again.
    """

    policy: ScaleType
    last_scale_time: dt.datetime | None
    contested_until: dt.datetime | None = None
    refused_until: dt.datetime | None = None
    weightless: bool = False
    disruptive: bool = False
    too_small: bool = False
    small_until: dt.datetime | None = None
    unmeasured: bool = False
    measured_at: dt.datetime | None = None
    wait: dt.timedelta | None = None
    worth_at: dt.datetime | None = None
    is_kept: bool = False
    kept_until: dt.datetime | None = None
    young_until: dt.datetime | None = None
    raised_until: dt.datetime | None = None
    is_after_canary: bool = False
    canary_until: dt.datetime | None = None
    rolled_back_until: dt.datetime | None = None


def _paused(change: Change, context: GateContext) -> Hold | None:
    return Hold(PAUSED) if context.spec.mode == "Paused" else None


def _contested(change: Change, context: GateContext) -> Hold | None:
    until = change.contested_until
    return None if until is None or context.clock.is_past(until) else Hold(CONTESTED, until)


def _weight(change: Change, context: GateContext) -> Hold | None:
    return Hold(WEIGHT) if change.weightless else None


def _update_policy(change: Change, context: GateContext) -> Hold | None:
    return Hold(UPDATE_POLICY) if change.policy.update_policy.update_mode == "Off" else None


def _refused(change: Change, context: GateContext) -> Hold | None:
    until = change.refused_until
    return None if until is None or context.clock.is_past(until) else Hold(REFUSED, until)


def _canary(change: Change, context: GateContext) -> Hold | None:
    until = change.canary_until
    if not change.is_after_canary or (until is not None and context.clock.is_past(until)):
        return None
    return Hold(CANARY, until)


def _rolled_back(change: Change, context: GateContext) -> Hold | None:
    until = change.rolled_back_until
    return None if until is None or context.clock.is_past(until) else Hold(ROLLED_BACK, until)


def _min_history(change: Change, context: GateContext) -> Hold | None:
    until = change.young_until
    return None if until is None or context.clock.is_past(until) else Hold(MIN_HISTORY, until)


def _out_of_memory(change: Change, context: GateContext) -> Hold | None:
    if not change.is_kept:
        return None
    until = change.kept_until
    return None if until is not None and context.clock.is_past(until) else Hold(OUT_OF_MEMORY, until)


def _recent_raise(change: Change, context: GateContext) -> Hold | None:
    until = change.raised_until
    return None if until is None or context.clock.is_past(until) else Hold(RECENT_RAISE, until)


def _stabilization(change: Change, context: GateContext) -> Hold | None:
    wait = change.policy.stabilization_duration if change.wait is None else change.wait
    until = context.clock.held_until(change.last_scale_time, wait)
    return None if until is None else Hold(STABILIZATION_WINDOW, until)


def _maintenance(change: Change, context: GateContext) -> Hold | None:
    if change.policy.update_policy.update_mode != "MaintenanceWindow":
        return None
    window = context.window
    return None if window.open else Hold(MAINTENANCE_WINDOW, window.opens_at)


def _rollout(change: Change, context: GateContext) -> Hold | None:
    return Hold(ROLLOUT, context.settles_at) if change.disruptive and not context.is_settled else None


def _sustained_demand(change: Change, context: GateContext) -> Hold | None:
    until = change.worth_at
    return None if until is None or context.clock.is_past(until) else Hold(SUSTAINED_DEMAND, until)


def _measurement(change: Change, context: GateContext) -> Hold | None:
    if not change.unmeasured:
        return None
    until = change.measured_at
    return None if until is not None and context.clock.is_past(until) else Hold(MEASUREMENT, until)


def _min_change(change: Change, context: GateContext) -> Hold | None:
    if not change.too_small or (change.small_until is not None and context.clock.is_past(change.small_until)):
        return None
    return Hold(MIN_CHANGE, change.small_until)


Gate = Callable[[Change, GateContext], Hold | None]

GATES: tuple[tuple[str, Gate], ...] = (
    (PAUSED, _paused),
    (CONTESTED, _contested),
    (WEIGHT, _weight),
    (UPDATE_POLICY, _update_policy),
    (REFUSED, _refused),
    (CANARY, _canary),
    (ROLLED_BACK, _rolled_back),
    (MIN_HISTORY, _min_history),
    (OUT_OF_MEMORY, _out_of_memory),
    (RECENT_RAISE, _recent_raise),
    (STABILIZATION_WINDOW, _stabilization),
    (MAINTENANCE_WINDOW, _maintenance),
    (ROLLOUT, _rollout),
    (SUSTAINED_DEMAND, _sustained_demand),
    (MEASUREMENT, _measurement),
    (MIN_CHANGE, _min_change),
)

OVERRIDDEN = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MIN_CHANGE})
"""Gates that a starving container's memory passes on its way up (DESIGN 6.4)."""
RELIEVED = frozenset({STABILIZATION_WINDOW, MIN_CHANGE})
"""Gates that its CPU and the other containers pass on their way up."""
OUTSIDE_BOUNDS = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MEASUREMENT, MIN_CHANGE})
"""Gates that a count outside minReplicas..maxReplicas passes on its way inside (DESIGN 6.5)."""


def first_hold(change: Change, context: GateContext, passes: frozenset[str] = frozenset()) -> Hold | None:
    """The first gate that blocks the change, not counting those that it `passes`."""
    for name, gate in GATES:
        if name not in passes and (hold := gate(change, context)) is not None:
            return hold
    return None
