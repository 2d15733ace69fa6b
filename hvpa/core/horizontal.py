"""The horizontal axis of `Additive`: from the trusted wish to the count that is set (DESIGN 5.2, 6)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from hvpa.api.status import HorizontalAxis, SpentWish
from hvpa.core.blend import blend_replicas, threshold
from hvpa.core.contest import Contest, judge_contest
from hvpa.core.gates import CONTESTED, OUTSIDE_BOUNDS, STABILIZATION_WINDOW, Change, Hold, Moment, first_hold
from hvpa.core.model import Blocked, Direction, Observation
from hvpa.core.state import held_until, step_time
from hvpa.core.weights import Bounds, Weight
from hvpa.core.wish import Wish

SETTLING = dt.timedelta(seconds=60)
"""After a rollout is complete, the HPA has measured the new pods once this has passed: a metric window (30 s), a scrape
and an HPA period (15 s)."""


@dataclass(frozen=True, slots=True)
class HorizontalOutcome:
    """What becomes of the replica count: `target` is set now, `recommended` would be if nothing were blocked."""

    current: int
    target: int
    recommended: int
    axis: HorizontalAxis
    blocked: tuple[Blocked, ...] = ()
    look_again_at: dt.datetime | None = None
    steps: tuple[str, ...] = ()

    @property
    def direction(self) -> Direction:
        """Which way the count goes."""
        return _direction(self.current, self.target)


def scale_horizontally(
    seen: Observation, moment: Moment, wish: Wish, weight: Weight, bounds: Bounds, starving: bool
) -> HorizontalOutcome:
    """Decide on the replica count of a workload that has an HPA."""
    assert seen.workload is not None
    current = seen.workload.spec.replicas
    contest = _contest(seen, moment, current)
    wanted, settles_at = _wanted(seen, moment, wish, weight, current)
    full = bounds.clamp(wanted)
    note = f"replicas: {current} now, {'no say' if wish.replicas is None else wish.replicas} wished, {full} blended"
    nothing = HorizontalOutcome(current, current, full, seen.horizontal, (), settles_at, (note,))
    reported = full
    if weight.horizontal_ppm == 0 and wish.replicas is not None and full == current:
        reported = wish.replicas
    if reported == current:
        return nothing
    change = _change(seen, contest, current, reported, weightless=reported != full)
    passes = frozenset({STABILIZATION_WINDOW}) if starving and reported > current else frozenset[str]()
    hold = first_hold(change, moment, passes)
    if hold is None:
        axis = _stepped(seen, contest, weight, full, full if wish.replicas is None else wish.replicas)
        return replace(nothing, target=full, axis=axis)
    inside = bounds.clamp(current)
    if inside != current and first_hold(change, moment, OUTSIDE_BOUNDS) is None:
        axis = _stepped(seen, contest, weight, inside, inside)
        nothing = replace(
            nothing, target=inside, axis=axis, steps=(note, f"replicas: {inside}, inside bounds, at once")
        )
    elif hold.reason == CONTESTED:
        nothing = replace(nothing, axis=seen.horizontal.model_copy(update={"set_back": contest.record}))
    return nothing if nothing.target == reported else _held(nothing, reported, hold)


def _held(outcome: HorizontalOutcome, wanted: int, hold: Hold) -> HorizontalOutcome:
    direction = _direction(outcome.current, wanted)
    blocked = Blocked("horizontal", direction, hold.reason, outcome.current, wanted, until=hold.until)
    note = f"replicas: {wanted} held back by {hold.told()}"
    return replace(outcome, blocked=(blocked,), steps=(*outcome.steps, note))


def _direction(current: int, wanted: int) -> Direction:
    return "up" if wanted > current else "down"


def _contest(seen: Observation, moment: Moment, current: int) -> Contest:
    axis = seen.horizontal
    undone = moment.applies and axis.spent is not None and axis.spent.replicas != current
    return judge_contest(undone, axis.set_back, axis.last_scale_time, seen.now)


def _wanted(
    seen: Observation, moment: Moment, wish: Wish, weight: Weight, current: int
) -> tuple[int, dt.datetime | None]:
    """The blended count, and when a wish that has had its step counts anew.

    One step per wish, whatever the weight: only after the HPA has measured the settled workload does the same wish
    speak of the count that stands now (DESIGN 5.2).
    """
    if wish.replicas is None or wish.replicas == current:
        return current, None
    spent = seen.horizontal.spent
    if spent is not None and (spent.replicas, spent.wish) == (current, wish.replicas):
        if not moment.rollout_complete:
            return current, None
        changes = (seen.horizontal.last_scale_time, seen.vertical.last_scale_time, seen.pods.last_ready_at)
        measured = [until for when in changes if (until := held_until(when, SETTLING, seen.now)) is not None]
        if measured:
            return current, max(measured)
    return blend_replicas(current, wish.replicas, weight.horizontal_ppm), None


def _change(seen: Observation, contest: Contest, current: int, wanted: int, *, weightless: bool) -> Change:
    assert seen.spec is not None
    policy = seen.spec.hpa.scale_up if wanted > current else seen.spec.hpa.scale_down
    least = policy.min_change.replicas
    return Change(
        policy=policy,
        last_scale_time=seen.horizontal.last_scale_time,
        contested_until=contest.until,
        weightless=weightless,
        too_small=abs(wanted - current) < threshold(least.value, least.percentage, current),
    )


def _stepped(seen: Observation, contest: Contest, weight: Weight, target: int, wish: int) -> HorizontalAxis:
    when = step_time(seen.horizontal.last_scale_time, seen.now)
    return HorizontalAxis(
        last_scale_time=when,
        spent=SpentWish(replicas=target, wish=wish, weight=weight.percent),
        set_back=contest.after_step(when),
        mailbox=seen.horizontal.mailbox,
    )
