"""The instant of a decision. The instant is private: a decision asks the clock questions, and the clock registers when
time alone would change each answer.

This gives two guarantees. A decision's `recheck_after` is the first instant at which the same objects could lead to
another decision. A cached result (`hvpa.core.values.memo`) is used up to that instant and no longer.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from hvpa.core.values.memo import Memo

T = TypeVar("T")

CLOCK_SKEW: Final = dt.timedelta(minutes=1)
"""A recorded time further ahead than this comes from a wrong clock and holds nothing back."""
LAST_INSTANT: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


class Clock:
    """The instant `now` (aware, UTC). Its answers are the same at any instant from `now` to before `changes_at`."""

    __slots__ = ("_changes_at", "_now", "is_recorded", "memo")

    def __init__(
        self, now: dt.datetime, changes_at: dt.datetime | None = None, memo: Memo | None = None
    ) -> None:
        """`changes_at`: when an answer that was already given at this instant changes (None: never)."""
        self._now = now
        self._changes_at = changes_at or LAST_INSTANT
        self.memo = memo
        """Earlier results about the same Hvpa, which are valid while time changes nothing."""
        self.is_recorded = False
        """The instant itself was written down, so a result made with it is valid for this instant only."""

    @property
    def changes_at(self) -> dt.datetime | None:
        """The first instant at which an answer given so far changes; None if time changes none."""
        return None if self._changes_at == LAST_INSTANT else self._changes_at

    def fresh(self) -> Clock:
        """Returns a clock at the same instant without registered answers."""
        return Clock(self._now, memo=self.memo)

    def is_within(self, since: dt.datetime, until: dt.datetime) -> bool:
        """Whether the instant is between `since` (included) and `until` (excluded). For cached results only."""
        return since <= self._now < until

    def is_past(self, instant: dt.datetime) -> bool:
        """Whether the instant has come."""
        if instant <= self._now:
            return True
        self._changes_at = min(self._changes_at, instant)
        return False

    def is_ahead(self, recorded: dt.datetime) -> bool:
        """Whether a recorded time comes from a wrong clock."""
        return recorded - self._now > CLOCK_SKEW and not self.is_past(recorded - CLOCK_SKEW)

    def held_until(self, last: dt.datetime | None, duration: dt.timedelta) -> dt.datetime | None:
        """Returns until when a step at `last` holds the next step back; None if it does not."""
        if last is None or self.is_ahead(last):
            return None
        until = after(last, duration)
        return None if self.is_past(until) else until

    def count_past(self, instants: Sequence[dt.datetime]) -> int:
        """Returns how many of these instants, in order, have come."""
        count = bisect_right(instants, self._now)
        if count < len(instants):
            self.is_past(instants[count])
        return count

    def answer(self, asked: Callable[[dt.datetime], tuple[T, dt.datetime | None]]) -> T:
        """Returns the answer of a function of the instant. The function also returns when its answer changes (None:
        never)."""
        answer, changes_at = asked(self._now)
        self.is_past(changes_at or LAST_INSTANT)
        return answer

    def stamp(self) -> dt.datetime:
        """Returns the instant, to write it down. For comparisons use `is_past` and the other methods."""
        self.is_recorded = True
        return self._now


def after(when: dt.datetime, duration: dt.timedelta) -> dt.datetime:
    """Returns `when` plus `duration`, or the last possible instant if that is later (a duration may be 292 years)."""
    try:
        return when + duration
    except OverflowError:
        return LAST_INSTANT


def doubled(first: dt.timedelta, times: int, longest: dt.timedelta) -> dt.timedelta:
    """Returns `first`, doubled `times` times, up to `longest`. Example: 5 minutes, 3 times, up to an hour: 40
    minutes."""
    if not dt.timedelta() < first < longest:
        return first
    enough = (longest // first).bit_length()
    return min(longest, first * (1 << min(max(times, 0), enough)))
