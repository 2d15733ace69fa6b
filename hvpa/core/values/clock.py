"""The instant of a decision. The instant itself is private: a decision can only ask it questions, and each answer is
registered with the instant at which time alone would change it.

So two things hold without anybody having to remember them: `recheck_after` of a decision is the first instant at which
another decision could follow from the same objects, and a result that was kept (`hvpa.core.values.memo`) is used up
to that instant and no longer.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

CLOCK_SKEW: Final = dt.timedelta(minutes=1)
"""A recorded time further ahead than this is from a clock that was wrong, and holds nothing back."""
LAST_INSTANT: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


class Clock:
    """The instant `now` (aware, UTC). All its answers are the same at any instant from `now` to before `changes_at`."""

    __slots__ = ("_changes_at", "_now", "is_recorded")

    def __init__(self, now: dt.datetime, changes_at: dt.datetime | None = None) -> None:
        """`changes_at`: when what was already found out at this instant changes (None: never)."""
        self._now = now
        self._changes_at = changes_at or LAST_INSTANT
        self.is_recorded = False
        """Whether the instant itself was written down, so that what was made with it holds for this instant alone."""

    @property
    def changes_at(self) -> dt.datetime | None:
        """The first instant at which one of the answers given so far changes; None where time changes none."""
        return None if self._changes_at == LAST_INSTANT else self._changes_at

    def fresh(self) -> Clock:
        """The same instant, without what it was asked so far."""
        return Clock(self._now)

    def is_within(self, since: dt.datetime, until: dt.datetime) -> bool:
        """Whether this is an instant from `since` to before `until`. For results that are kept only."""
        return since <= self._now < until

    def is_past(self, instant: dt.datetime) -> bool:
        """Whether the instant has come."""
        if instant <= self._now:
            return True
        self._changes_at = min(self._changes_at, instant)
        return False

    def is_ahead(self, recorded: dt.datetime) -> bool:
        """Whether a recorded time is from a clock that was wrong."""
        return recorded - self._now > CLOCK_SKEW and not self.is_past(recorded - CLOCK_SKEW)

    def held_until(self, last: dt.datetime | None, duration: dt.timedelta) -> dt.datetime | None:
        """Until when a step at `last` holds the next one back; None when it does not (any more)."""
        if last is None or self.is_ahead(last):
            return None
        until = after(last, duration)
        return None if self.is_past(until) else until

    def count_past(self, instants: Sequence[dt.datetime]) -> int:
        """How many of these instants, in order, have come."""
        count = bisect_right(instants, self._now)
        if count < len(instants):
            self.is_past(instants[count])
        return count

    def answer(self, asked: Callable[[dt.datetime], tuple[T, dt.datetime | None]]) -> T:
        """What a function of the instant returns, which also returns when its answer changes (None: never)."""
        found, changes_at = asked(self._now)
        self.is_past(changes_at or LAST_INSTANT)
        return found

    def stamp(self) -> dt.datetime:
        """The instant itself, to be written down. Not to be compared with: `is_past` and its like are for that."""
        self.is_recorded = True
        return self._now


def after(when: dt.datetime, duration: dt.timedelta) -> dt.datetime:
    """`when` plus `duration`, or the last instant there is where that is later (a duration may be 292 years)."""
    try:
        return when + duration
    except OverflowError:
        return LAST_INSTANT


def doubled(first: dt.timedelta, times: int, longest: dt.timedelta) -> dt.timedelta:
    """`first`, doubled so many `times`, but not beyond `longest`. 5 minutes, 3 times, an hour: 40 minutes."""
    if not dt.timedelta() < first < longest:
        return first
    enough = (longest // first).bit_length()
    return min(longest, first * (1 << min(max(times, 0), enough)))
