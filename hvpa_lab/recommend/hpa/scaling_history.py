"""The controller's state for an HPA: past recommendations (stabilization windows) and past changes of the count
(policies), and how they limit a new count.

Source: horizontal.go, from `stabilizeRecommendation` to the end of the limits. As in Go, new entries replace old
entries one by one, which limits the memory. Go reads the clock several times in a sync, this model once.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from hvpa.recommend.golang import MAX_INT32, MIN_INT32, ceil32, int32, trunc32
from hvpa_lab.recommend.hpa.plan import BehaviorPlan, DirectionPlan

Reason = tuple[str, str]
"""Reason and message of a condition."""

_IN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FAST_UP: Final = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_TOO_FAST_DOWN: Final = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
READY: Final = ("ReadyForNewScale", "recommended size matches current size")
_UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


class _Recommendation(NamedTuple):
    replicas: int
    time: dt.datetime


class _ScaleEvent(NamedTuple):
    change: int  # number of pods added or removed, not negative
    time: dt.datetime
    outdated: bool  # may be replaced by the next event


class ReplicaLimits(NamedTuple):
    """The current count and the spec's limits."""

    current: int
    minimum: int
    maximum: int


class ScalingHistory:
    """Recommendations and scale events of an HPA."""

    def __init__(self) -> None:
        self._recommendations: list[_Recommendation] = []
        self._events: dict[int, list[_ScaleEvent]] = {1: [], -1: []}
        """Scale-outs (1) and scale-ins (-1)."""

    def begin(self, current: int, now: dt.datetime) -> None:
        """Counts the initial number of replicas as a recommendation (`recordInitialRecommendation`)."""
        if not self._recommendations:
            self._recommendations.append(_Recommendation(current, now))

    def stabilize(self, desired: int, window: dt.timedelta, now: dt.datetime) -> tuple[int, Reason]:
        """Without a behaviour: returns the highest recommendation of the window (`stabilizeRecommendation`)."""
        cutoff = now - window
        highest = desired
        old = None
        for index, (replicas, time) in enumerate(self._recommendations):
            if time < cutoff:
                old = index
            elif replicas > highest:
                highest = replicas
        self._record(desired, now, old)
        return highest, READY if highest == desired else _DOWN_STABILIZED

    def stabilize_by_rules(
        self, desired: int, current: int, behavior: BehaviorPlan, now: dt.datetime
    ) -> tuple[int, Reason]:
        """With a behaviour: returns the current count, limited to the range from the lowest recommendation of the
        scale-up window to the highest of the scale-down window (`stabilizeRecommendationWithBehaviors`)."""
        up_cutoff = now - behavior.up.window
        down_cutoff = now - behavior.down.window
        lowest = highest = desired
        old = None
        for index, (replicas, time) in enumerate(self._recommendations):
            if replicas < lowest and time > up_cutoff:
                lowest = replicas
            if replicas > highest and time > down_cutoff:
                highest = replicas
            if time < up_cutoff and time < down_cutoff:
                old = index
        self._record(desired, now, old)
        stabilized = min(max(current, lowest), highest)
        if stabilized == desired:
            return stabilized, READY
        return stabilized, _UP_STABILIZED if desired >= current else _DOWN_STABILIZED

    def limit_by_rules(
        self, desired: int, limits: ReplicaLimits, behavior: BehaviorPlan, now: dt.datetime
    ) -> tuple[int, Reason]:
        """Limits the count by the policies and the spec (`convertDesiredReplicasWithBehaviorRate`)."""
        current, minimum, maximum = limits
        if desired > current:
            sign, rules, end, reasons = 1, behavior.up, maximum, (_TOO_FAST_UP, _TOO_MANY)
        else:
            sign, rules, end, reasons = -1, behavior.down, minimum, (_TOO_FAST_DOWN, _TOO_FEW)
        # Signed by direction: a larger amount means a larger change.
        limit = max(sign * self._limit(current, rules, sign, now), sign * current)
        allowed = min(sign * end, limit)
        if desired == current or sign * desired <= allowed:
            return desired, _IN_RANGE
        return sign * allowed, reasons[0] if sign * end > limit else reasons[1]

    def store(self, previous: int, replicas: int, behavior: BehaviorPlan, now: dt.datetime) -> None:
        """Records a change of the count (`storeScaleEvent`). Only HPAs with a behaviour need it."""
        sign, rules = (1, behavior.up) if replicas > previous else (-1, behavior.down)
        _store(self._events[sign], abs(replicas - previous), rules.longest, now)

    def _record(self, desired: int, now: dt.datetime, old: int | None) -> None:
        if old is None:
            self._recommendations.append(_Recommendation(desired, now))
        else:
            self._recommendations[old] = _Recommendation(desired, now)

    def _limit(self, current: int, rules: DirectionPlan, sign: int, now: dt.datetime) -> int:
        """Returns the count up to which the policies allow a change: up with `sign` 1
        (`calculateScaleUpLimitWithScalingRules`), down with -1 (`calculateScaleDownLimitWithBehaviors`). Example: 10
        percent of 80 pods is up to 88, or down to 72."""
        if rules.select == "Disabled":
            return current
        nearest = (rules.select == "Min") == (sign > 0)
        result = MAX_INT32 if nearest else MIN_INT32
        proposed = 0
        for policy in rules.policies:
            start = self._at_start(current, policy.period, now)
            if policy.type == "Pods":
                proposed = int32(start + sign * policy.value)
            elif policy.type == "Percent":
                exact = float(start) * (1 + sign * float(policy.value) / 100)
                proposed = ceil32(exact) if sign > 0 else trunc32(exact)
            result = min(result, proposed) if nearest else max(result, proposed)
        return result

    def _at_start(self, current: int, period: dt.timedelta, now: dt.datetime) -> int:
        """Returns the count at the start of the period, calculated from the changes since then
        (`getReplicasChangePerPeriod`)."""
        cutoff = now - period
        added, deleted = (
            sum([event.change for event in events if event.time > cutoff]) for events in self._events.values()
        )
        return int32(current - added + deleted)


def limit(desired: int, limits: ReplicaLimits) -> tuple[int, Reason]:
    """Limits the count without a behaviour: at most twice the current count, or 4
    (`convertDesiredReplicasWithRules`)."""
    fastest = trunc32(max(2.0 * limits.current, 4.0))
    if desired < limits.minimum:
        return limits.minimum, _TOO_FEW
    if desired > min(limits.maximum, fastest):
        return (fastest, _TOO_FAST_UP) if limits.maximum > fastest else (limits.maximum, _TOO_MANY)
    return desired, _IN_RANGE


def _store(events: list[_ScaleEvent], change: int, longest: dt.timedelta, now: dt.datetime) -> None:
    """Adds an event. It replaces the last outdated event, if there is one."""
    cutoff = now - longest
    old = None
    for index, event in enumerate(events):
        if event.outdated or event.time < cutoff:
            events[index] = event._replace(outdated=True)
            old = index
    if old is None:
        events.append(_ScaleEvent(change, now, False))
    else:
        events[old] = _ScaleEvent(change, now, False)
