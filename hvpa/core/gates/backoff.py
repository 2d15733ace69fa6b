"""What did not last is tried again later, each time after a longer wait: what another client undid (DESIGN 8), what the
API server refused (DESIGN 8), and sizes that failed on the pods that they were tried on (DESIGN 11.5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Set
from fractions import Fraction
from typing import Final

import msgspec

from hvpa.api.hvpa.status import FailedChange, Refusal, RefusedChange, RolledBack, SetBack
from hvpa.core.path.path import ResourceKey
from hvpa.core.state import INSTANT
from hvpa.core.values.clock import Clock, after, doubled

HOUR: Final = dt.timedelta(hours=1)
"""What is undone again within this time is contested (DESIGN 8); and the longest wait for the other side."""
_ALIKE: Final = Fraction(9, 10)
"""A change that goes this part of the way of one that failed is the same again: recommendations move a little all the
time."""


# --- what another client undid: made again at once the first time ---------------------------------------------------
class Contest(msgspec.Struct, frozen=True, gc=False):
    """How one axis stands with another client who sets its fields.

    `since` is when the wait began (None: there is none), `record` what is to be remembered while it lasts,
    `count` how often the change has been undone, this time included.
    """

    undone: bool = False
    since: dt.datetime | None = None
    record: SetBack | None = None
    count: int = 0

    def until(self, *, up: bool) -> dt.datetime | None:
        """When a change in this direction is made again; None where it need not wait. The instant may have passed."""
        return None if self.since is None else self.since + contest_wait(self.count, up=up)

    def after_step(self, when: dt.datetime) -> SetBack | None:
        """The record once the axis has made a step, whose recorded time is `when`."""
        return SetBack(count=self.count, time=when) if self.undone else self.record


def judge_contest(
    undone: bool, record: SetBack | None, last_scale_time: dt.datetime | None, clock: Clock
) -> Contest:
    """Judge an axis whose field stands `undone` or not, by what is remembered of earlier times.

    A record whose time is the axis's last scale time: the change was made again then. A later time: the change was
    found undone then, and the wait began. The record stands in the status and, written with a step, in the workload's
    annotation."""
    if record is not None and clock.is_ahead(record.time):
        record = None
    if not undone:
        return Contest(record=record)
    if record is None or last_scale_time is None or clock.is_ahead(last_scale_time):
        return Contest(undone=True, count=1)
    if record.time > last_scale_time:
        return Contest(True, record.time, record, record.count)
    if clock.is_past(record.time + HOUR):
        return Contest(undone=True, count=1)
    found = SetBack(count=record.count + 1, time=max(clock.stamp(), last_scale_time + INSTANT))
    return Contest(True, found.time, found, found.count)


def contest_wait(count: int, *, up: bool) -> dt.timedelta:
    """How long the axis waits when its change was undone for the `count`-th time (from the second on): 5 minutes,
    doubling, an hour at most. More replicas and larger requests serve demand that is there, and two deploys within an
    hour that reset them are no rival controller (docs/decisions/0024): a minute. The third time: 10 and 2 minutes."""
    return doubled(dt.timedelta(minutes=1 if up else 5), count - 2, HOUR)


# --- what the API server refused: the other axis goes on -------------------------------------------------------------
def refused_until(
    record: Refusal | None, clock: Clock, current: int, wanted: int, key: ResourceKey | None = None
) -> dt.datetime | None:
    """When a change of the replicas, or of the container's resource `key`, is tried again; None where it is not one
    that was refused. From 1 core, 3 cores were refused: then 3.1 cores wait as well, and 2 cores go at once."""
    if record is None or not any(
        key_of(one) == key and one.current == current and _part(current, one.wanted, wanted) > _ALIKE
        for one in record.changes
    ):
        return None
    return clock.held_until(record.time, refusal_wait(record.count))


def refusal_wait(count: int) -> dt.timedelta:
    """How long the axis waits after the `count`-th refusal in a row: a minute (a VPA recommender writes as often),
    doubling, an hour at most."""
    return doubled(dt.timedelta(minutes=1), count - 1, HOUR)


def _part(old: int, failed: int, wanted: int) -> Fraction:
    """How much of a change that failed is made by another one; less than 0 in the other direction."""
    return Fraction(wanted - old, failed - old or 1)


def key_of(one: RefusedChange) -> ResourceKey | None:
    """The container resource of a refused change; None for the replicas."""
    if one.container is None:
        return None
    return ResourceKey(one.container, "cpu" if one.resource == "cpu" else "memory")


def without_written(record: Refusal | None, written: Set[ResourceKey]) -> Refusal | None:
    """The record once these requests were written; None where nothing is left of it."""
    kept = () if record is None else tuple(one for one in record.changes if key_of(one) not in written)
    return record.model_copy(update={"changes": kept}) if record is not None and kept else None


# --- sizes that failed on the pods that they were tried on -----------------------------------------------------------
def rolled_back_until(
    record: RolledBack | None, clock: Clock, wanted: int, key: ResourceKey
) -> dt.datetime | None:
    """When a request of this size is tried again; None where it is not one that failed, or worse than that.

    Example: 600m failed after 1 core. Up to 640m wait (a tenth of the way back), 650m do not.
    """
    if record is None or not any(
        (one.container, one.resource) == key and _part(one.previous, one.failed, wanted) >= _ALIKE
        for one in record.changes
    ):
        return None
    return clock.held_until(record.time, rollback_wait(record.count))


def rollbacks_after(record: RolledBack | None, clock: Clock) -> int:
    """How often in a row a size has failed, with one that fails now. One that fails while another one still waits is no
    second try: it fails for the same cause, and counts once. One that fails later than twice the wait is the first
    again."""
    if record is None or clock.is_past(after(record.time, 2 * rollback_wait(record.count))):
        return 1
    return record.count + _is_second_try(record, clock)


def _is_second_try(record: RolledBack, clock: Clock) -> bool:
    return clock.is_past(after(record.time, rollback_wait(record.count)))


def with_waiting(
    changes: tuple[FailedChange, ...], record: RolledBack | None, clock: Clock
) -> tuple[FailedChange, ...]:
    """What failed now, with what failed before and still waits: of other containers or resources."""
    if record is None or _is_second_try(record, clock):
        return changes
    failed = {(one.container, one.resource) for one in changes}
    return changes + tuple(one for one in record.changes if (one.container, one.resource) not in failed)


def rollback_wait(count: int) -> dt.timedelta:
    """How long a size is not tried again that has failed so often: a day, doubling, 16 days at most."""
    return doubled(dt.timedelta(days=1), count - 1, dt.timedelta(days=16))
