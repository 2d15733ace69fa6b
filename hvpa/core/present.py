"""The present time of a decision, and until when an answer that was given to it stays the same.

Whatever a decision makes of the time goes through here. So it is known of each of its parts up to which instant time
alone changes nothing, and what was made of the same objects can be used again until then (`hvpa.core.memo`).
"""

from __future__ import annotations

import datetime as dt
from typing import Final

CLOCK_SKEW: Final = dt.timedelta(minutes=1)
"""A recorded time further ahead than this is from a clock that was wrong, and holds nothing back."""
LAST_INSTANT: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


class Present:
    """The instant `now` (aware, UTC). All answers that it gave are the same at any instant from `now` to before
    `until`."""

    __slots__ = ("now", "until")

    def __init__(self, now: dt.datetime) -> None:
        self.now = now
        self.until = LAST_INSTANT

    def is_past(self, instant: dt.datetime) -> bool:
        """Whether the instant has come."""
        if instant <= self.now:
            return True
        if instant < self.until:
            self.until = instant
        return False

    def is_ahead(self, recorded: dt.datetime) -> bool:
        """Whether a recorded time is from a clock that was wrong."""
        return recorded - self.now > CLOCK_SKEW and not self.is_past(recorded - CLOCK_SKEW)

    def held_until(self, last: dt.datetime | None, duration: dt.timedelta) -> dt.datetime | None:
        """Until when a step at `last` holds the next one back; None when it does not (any more)."""
        if last is None or self.is_ahead(last):
            return None
        until = after(last, duration)
        return None if self.is_past(until) else until

    def stamp(self) -> dt.datetime:
        """The instant itself, for a record: what is made with it holds for this instant alone."""
        self.until = self.now
        return self.now


def after(when: dt.datetime, duration: dt.timedelta) -> dt.datetime:
    """`when` plus `duration`, or the last instant there is where that is later (a duration may be 292 years)."""
    try:
        return when + duration
    except OverflowError:
        return LAST_INSTANT
