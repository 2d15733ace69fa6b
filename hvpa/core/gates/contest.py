"""When somebody else undoes a change: the first time it is made again at once, after that the axis waits, each time
longer (DESIGN 8).

The record (`SetBack`) stands in the status and, written with a step, in the workload's annotation. Its time tells what
it speaks of: equal to the axis's last scale time, the change was made again then; later, it was found undone then and
the wait began.
"""

from __future__ import annotations

import datetime as dt

import msgspec

from hvpa.api.hvpa.status import SetBack
from hvpa.core.state import INSTANT
from hvpa.core.values.clock import Clock

HOUR = dt.timedelta(hours=1)
"""What is undone again within this time is contested (DESIGN 8)."""
FIRST_WAIT = dt.timedelta(minutes=5)
FIRST_WAIT_UP = dt.timedelta(minutes=1)
"""For more replicas and larger requests: they serve demand that is there, and two deploys within an hour that reset
them are no rival controller (docs/decisions/0024)."""
LONGEST_WAIT = HOUR


class Contest(msgspec.Struct, frozen=True, gc=False):
    """How one axis stands with somebody else who sets its fields.

    `since` is when the wait began (None: there is none), `record` what is to be remembered while it lasts,
    `count` how often the change has been undone, this time included.
    """

    undone: bool = False
    since: dt.datetime | None = None
    record: SetBack | None = None
    count: int = 0

    def until(self, *, up: bool) -> dt.datetime | None:
        """When a change in this direction is made again; None where it need not wait. The instant may have passed."""
        return None if self.since is None else self.since + wait_of(self.count, up=up)

    def after_step(self, when: dt.datetime) -> SetBack | None:
        """The record once the axis has made a step, whose recorded time is `when`."""
        return SetBack(count=self.count, time=when) if self.undone else self.record


def judge_contest(
    undone: bool, record: SetBack | None, last_scale_time: dt.datetime | None, clock: Clock
) -> Contest:
    """Judge an axis whose field stands `undone` or not, by what is remembered of earlier times."""
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


def wait_of(count: int, *, up: bool) -> dt.timedelta:
    """How long the axis waits when its change was undone for the `count`-th time (from the second on): 1 minute on the
    way up and 5 minutes on the way down, doubling, an hour at most. Undone for the third time: 2 and 10 minutes."""
    first = FIRST_WAIT_UP if up else FIRST_WAIT
    return min(LONGEST_WAIT, first * (1 << min(max(count - 2, 0), 10)))
