"""Retries with growing waits: changes that another client undid (DESIGN 8), changes that the API server refused (DESIGN
8), and sizes that failed on the pods that tried them (DESIGN 11.5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Set
from fractions import Fraction

import msgspec

from hvpa.api.hvpa.status import FailedChange, Refusal, RefusedChange, RolledBack, SetBack
from hvpa.core.path.path import ResourceKey
from hvpa.core.state import INSTANT
from hvpa.core.values.clock import Clock, after, doubled
from hvpa.core.values.tuning import (
    ALIKE,
    CONTESTED_WITHIN,
    LONGEST_ROLLBACK_WAIT,
    LOWERED_AGAIN_AFTER,
    RAISED_AGAIN_AFTER,
    REFUSAL_WAIT,
    ROLLBACK_WAIT,
)
from hvpa.core.workload.nodes import never_resized, rules_named


# --- changes that another client undid: the first time, HVPA repeats them at once -----------------------------------
class Contest(msgspec.Struct, frozen=True, gc=False):
    """The contest of an axis with another client that sets its fields."""

    undone: bool = False
    """The last change is undone now."""
    since: dt.datetime | None = None
    """When the wait began; None without a wait."""
    record: SetBack | None = None
    """The record to store in the status."""
    count: int = 0
    """How often the change has been undone, this time included."""

    def until(self, *, up: bool) -> dt.datetime | None:
        """Returns when a change in this direction is made again; None if it need not wait. The time may have passed."""
        return None if self.since is None else self.since + contest_wait(self.count, up=up)

    def after_step(self, when: dt.datetime) -> SetBack | None:
        """Returns the record after a step with this recorded time."""
        return SetBack(count=self.count, time=when) if self.undone else self.record


def judge_contest(
    undone: bool, record: SetBack | None, last_scale_time: dt.datetime | None, clock: Clock
) -> Contest:
    """Judges an axis by whether its field is `undone` and by the record of earlier times.

    If the record's time equals the axis's last scale time, HVPA made the change again then. If it is later, HVPA found
    the change undone then, and the wait began. The record is in the status and, if written with a step, in the
    workload's annotation.
    """
    if record is not None and clock.is_ahead(record.time):
        record = None
    if not undone:
        return Contest(record=record)
    if record is None or last_scale_time is None or clock.is_ahead(last_scale_time):
        return Contest(undone=True, count=1)
    if record.time > last_scale_time:
        return Contest(True, record.time, record, record.count)
    if clock.is_past(record.time + CONTESTED_WITHIN):
        return Contest(undone=True, count=1)
    set_back = SetBack(count=record.count + 1, time=max(clock.stamp(), last_scale_time + INSTANT))
    return Contest(True, set_back.time, set_back, set_back.count)


def contest_wait(count: int, *, up: bool) -> dt.timedelta:
    """Returns how long the axis waits after its change was undone for the `count`-th time (from the second on): 5
    minutes for a reduction and a minute for a raise, doubled each time, up to an hour. Example: the third time 10
    minutes and 2."""
    return doubled(RAISED_AGAIN_AFTER if up else LOWERED_AGAIN_AFTER, count - 2, CONTESTED_WITHIN)


# --- changes that the API server refused: the other axis continues ---------------------------------------------------
def refused_until(
    record: Refusal | None, clock: Clock, current: int, wanted: int, key: ResourceKey | None = None
) -> dt.datetime | None:
    """Returns when a change of the replicas (or of the container resource `key`) is tried again; None if it was not
    refused. Example: a change from 1 core to 3 cores was refused. 3.1 cores wait as well, 2 cores do not."""
    if record is None or not any(
        refused_key(change) == key
        and change.current == current
        and _covered_share(current, change.wanted, wanted) > ALIKE
        for change in record.changes
    ):
        return None
    return clock.held_until(record.time, refusal_wait(record.count))


def refusal_wait(count: int) -> dt.timedelta:
    """Returns how long the axis waits after the `count`-th consecutive refusal: a minute (the VPA recommender's
    interval), doubled each time, up to an hour."""
    return doubled(REFUSAL_WAIT, count - 1, CONTESTED_WITHIN)


def _covered_share(old: int, failed: int, wanted: int) -> Fraction:
    """Returns the share of a failed change that the wanted change covers; negative in the other direction."""
    return Fraction(wanted - old, failed - old or 1)


def refused_key(change: RefusedChange) -> ResourceKey | None:
    """Returns the container resource of a refused change; None for the replicas."""
    if change.container is None:
        return None
    return ResourceKey(change.container, "cpu" if change.resource == "cpu" else "memory")


def without_written(record: Refusal | None, written: Set[ResourceKey]) -> Refusal | None:
    """Returns the record after these requests were written; None if nothing is left."""
    kept = (
        ()
        if record is None
        else tuple(change for change in record.changes if refused_key(change) not in written)
    )
    return record.model_copy(update={"changes": kept}) if record is not None and kept else None


# --- sizes that failed in a trial ------------------------------------------------------------------------------------
def rolled_back_until(
    record: RolledBack | None, clock: Clock, wanted: int, key: ResourceKey, *, only_in_place: bool
) -> dt.datetime | None:
    """Returns when a request of this size is tried again; None unless it covers at least 90 percent of a failed change.
    If the nodes resize this resource of no pod, all sizes wait while pods are resized `only_in_place`, and none
    otherwise.

    Example: a change from 1 core to 600m failed. Requests up to 640m (a tenth of the way back) wait, 650m does not.
    """
    if record is None:
        return None
    is_never = key.resource in never_resized(record.message)
    if not any(
        (change.container, change.resource) == key
        and (only_in_place if is_never else _covered_share(change.previous, change.failed, wanted) >= ALIKE)
        for change in record.changes
    ):
        return None
    return clock.held_until(record.time, rollback_wait(record.count))


def rollbacks_after(record: RolledBack | None, clock: Clock) -> int:
    """Returns the number of consecutive failures, including the current one. A failure while another size still waits
    has the same cause and does not count again. A failure later than twice the wait counts as the first."""
    if record is None or clock.is_past(after(record.time, 2 * rollback_wait(record.count))):
        return 1
    return record.count + _is_second_try(record, clock)


def _is_second_try(record: RolledBack, clock: Clock) -> bool:
    return clock.is_past(after(record.time, rollback_wait(record.count)))


def with_waiting(
    changes: tuple[FailedChange, ...], record: RolledBack | None, clock: Clock
) -> tuple[FailedChange, ...]:
    """Returns the changes that failed now, together with earlier failures of other container resources that still
    wait."""
    if record is None or _is_second_try(record, clock):
        return changes
    failed = {(change.container, change.resource) for change in changes}
    return changes + tuple(
        change for change in record.changes if (change.container, change.resource) not in failed
    )


def with_rules(message: str, record: RolledBack | None, clock: Clock) -> str:
    """Returns the message of a failure, with the rules of nodes that the earlier failures named, while those wait.
    Otherwise HVPA would forget that a node resizes no CPU as soon as a memory size fails."""
    if record is None or _is_second_try(record, clock):
        return message
    earlier = rules_named(record.message).keys() - rules_named(message).keys()
    return "; earlier: ".join([message, *sorted(earlier)])


def rollback_wait(count: int) -> dt.timedelta:
    """Returns how long a size waits after `count` failures: a day, doubled each time, up to 16 days."""
    return doubled(ROLLBACK_WAIT, count - 1, LONGEST_ROLLBACK_WAIT)
