"""What holds a wanted change back: small functions in order; the first one that blocks is reported (DESIGN 6.2).

A gate is a reason and an entry of `GATES`, at its place in the order; to add one, see the comment above `GATES`. Three
waits are no gates: `MAX_STEP` (`core/axes/replicas.py`) and `POD_REPLACEMENT` (`core/trajectory/step.py`) leave a part
of the change, and a rollout that has begun waits in `core/actuation/rollouts.py`."""

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
from hvpa.core.rules import Figures, Rules, rules_of
from hvpa.core.values.clock import LAST_INSTANT, Clock

PAUSED = "Paused"  # `spec.mode` is Paused
CONTESTED = "Contested"  # another client keeps setting the field back
WEIGHT = "Weight"  # the interval gives this axis no weight
UPDATE_POLICY = "UpdatePolicy"  # the direction's update mode is Off
REFUSED = "Refused"  # the API server refused this change; it is tried again later
CANARY = "Canary"  # another size is being tried on some pods (`spec.updateStrategy.canary`)
ROLLED_BACK = "RolledBack"  # this size failed on some pods, or no node takes it; it is tried again later
MIN_HISTORY = "MinHistory"  # the VPA's history is too young to lower a request
OUT_OF_MEMORY = "OutOfMemory"  # the container ran out of memory not long ago: its memory is not lowered
RECENT_RAISE = "RecentRaise"  # it ran out of memory again, and was raised for that less than ten minutes ago
STABILIZATION_WINDOW = "StabilizationWindow"  # the axis was scaled less than stabilizationDuration ago
MAINTENANCE_WINDOW = "MaintenanceWindow"  # the direction needs a maintenance window, and none is open
ROLLOUT = "Rollout"  # the workload's last rollout is not complete
POD_REPLACEMENT = (
    "PodReplacement"  # fewer replicas follow once all pods have their larger size (`Trajectory`)
)
SUSTAINED_DEMAND = "SustainedDemand"  # demand has to last before pods are replaced for it (`Trajectory`)
MEASUREMENT = "Measurement"  # the HPA has yet to measure what the last step made of the workload
MIN_CHANGE = "MinChange"  # the change is smaller than the direction's threshold
MAX_STEP = "MaxStep"  # `hpa.scaleUp.maxStep` divides the way into steps, and the next one is due later

NO_CLOCK: Final = LAST_INSTANT
"""Until when a change waits that something other than time lets go on."""


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Why a change waits, until when at the earliest (None: until something other than time changes), and by which
    figures."""

    reason: str
    until: dt.datetime | None = None
    figures: Figures | None = None

    def text(self) -> str:
        """The hold in words."""
        return self.reason if self.until is None else f"{self.reason} until {readable_timestamp(self.until)}"


class GateContext(msgspec.Struct, frozen=True, dict=True):
    """What all gates of one decision share. Windows are looked at once, and only where a direction asks for them.

    `is_settled`: no rollout is under way, or the last one is past its progress deadline. `settles_at` is that deadline,
    past or to come (None: the rollout is complete, or no clock ends it). `rollout_gaps` is what it lacks, in words.
    """

    clock: Clock
    spec: HvpaSpec
    is_settled: bool
    settles_at: dt.datetime | None = None
    rollout_gaps: tuple[str, ...] = ()

    @property
    def applies(self) -> bool:
        """Whether this decision may change the workload."""
        return self.spec.mode == "Apply"

    @cached_property
    def window(self) -> WindowState:
        """The state of the maintenance windows now."""
        return self.clock.answer(self._window)

    @cached_property
    def rules(self) -> Mapping[tuple[Axis, Direction], Rules]:
        """The rules of each direction."""
        return rules_of(self.spec)

    def _window(self, now: dt.datetime) -> tuple[WindowState, dt.datetime | None]:
        state = window_state(self.spec, now)
        return state, state.closes_at if state.open else state.opens_at


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change that is wanted, as its gates see it.

    `rules` are those of its direction, `last_scale_time` is the axis's clock. `disruptive`: it replaces pods;
    `weightless`: the interval gives it no weight. Each of the instants holds the change until then (None: not at all;
    NO_CLOCK: until something other than time changes). `least` is the smallest change, `small_until` is set if this one
    is smaller.
    """

    rules: Rules
    last_scale_time: dt.datetime | None
    disruptive: bool = False
    weightless: bool = False
    contested_until: dt.datetime | None = None
    refused_until: dt.datetime | None = None
    canary_until: dt.datetime | None = None
    rolled_back_until: dt.datetime | None = None
    young_until: dt.datetime | None = None
    kept_until: dt.datetime | None = None
    raised_until: dt.datetime | None = None
    worth_at: dt.datetime | None = None
    measured_at: dt.datetime | None = None
    small_until: dt.datetime | None = None
    least: Figures | None = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A gate's answer about a change that it holds until then (NO_CLOCK: no clock ends that), by these figures."""

    until: dt.datetime
    figures: Figures | None = None


Gate = Callable[[Change, GateContext], Verdict | None]
"""None if the change need not wait."""


def _until(instant: dt.datetime | None, figures: Figures | None = None) -> Verdict | None:
    return None if instant is None else Verdict(instant, figures)


def _no_clock(waits: bool) -> Verdict | None:
    return Verdict(NO_CLOCK) if waits else None


def _stabilization(change: Change, context: GateContext) -> Verdict | None:
    wait = change.rules.stabilization
    until = context.clock.held_until(change.last_scale_time, wait.duration)
    return _until(until, wait.figures)


def _maintenance(change: Change, context: GateContext) -> Verdict | None:
    if change.rules.policy.update_policy.update_mode != "MaintenanceWindow" or context.window.open:
        return None
    return Verdict(context.window.opens_at or NO_CLOCK)


def _rollout(change: Change, context: GateContext) -> Verdict | None:
    waits = change.disruptive and not context.is_settled
    return Verdict(context.settles_at or NO_CLOCK) if waits else None


def _sustained(change: Change, context: GateContext) -> Verdict | None:
    wait = change.rules.sustained
    return _until(change.worth_at, None if wait is None else wait.figures)


# To add a gate: its reason, and its entry at its place in the order. If it needs an instant: a field of `Change`,
# filled in `core/axes/replicas.py` (`_change`) for replicas, and for requests in `core/axes/requests.py` (`_change`,
# also for the raise of a starving container; `step_to`, not for that) or, where only `Trajectory` has it, in
# `core/trajectory/requests.py` (`_step`). Then who passes it: the sets below, and `passes=` of those functions. Status,
# Events and `explain` report the reason as it is.
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
    STABILIZATION_WINDOW: _stabilization,
    MAINTENANCE_WINDOW: _maintenance,
    ROLLOUT: _rollout,
    SUSTAINED_DEMAND: _sustained,
    MEASUREMENT: lambda change, context: _until(change.measured_at),
    MIN_CHANGE: lambda change, context: _until(change.small_until, change.least),
}
"""In the order in which they are asked."""

OVERRIDDEN = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MIN_CHANGE})
"""Gates that a starving container's memory passes on its way up (DESIGN 6.4)."""
RELIEVED = frozenset({STABILIZATION_WINDOW, MIN_CHANGE})
"""Gates that its CPU and the other containers pass on their way up."""
OUTSIDE_BOUNDS = frozenset({WEIGHT, STABILIZATION_WINDOW, ROLLOUT, MEASUREMENT, MIN_CHANGE})
"""Gates that a count outside minReplicas..maxReplicas passes on its way inside (DESIGN 6.5)."""


def first_hold(change: Change, context: GateContext, passes: frozenset[str] = frozenset()) -> Hold | None:
    """The first gate that blocks the change, not counting those that it `passes`."""
    for name, gate in GATES.items():
        verdict = None if name in passes else gate(change, context)
        if verdict is not None and not context.clock.is_past(verdict.until):
            return Hold(name, None if verdict.until == NO_CLOCK else verdict.until, verdict.figures)
    return None
