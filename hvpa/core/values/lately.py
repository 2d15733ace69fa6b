"""What metrics called for of late, minute by minute: where pods are resized in place, the largest of the last minutes
counts (DESIGN 5.4, sentence 10). It is kept in the operator's memory and in no status: at rest, nothing is written.
After a restart it is not known for as long as it looks back, and nothing shrinks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import msgspec

from hvpa.core.values.clock import Clock, after
from hvpa.core.values.tuning import JUMP_PERCENT

MINUTE: Final = dt.timedelta(minutes=1)
"""Measurements of a minute are taken together: four of a metric, whose noise is halved by that."""
Demands = Mapping[str, int]
"""What metrics call for, by their names: millicores, bytes or millionths of pods."""


class Minute(msgspec.Struct, frozen=True, gc=False):
    """The measurements of a minute: their end, their sum, and how many there were."""

    end: dt.datetime
    total: int
    count: int = 1

    @property
    def mean(self) -> int:
        """Their mean."""
        return self.total // self.count

    def joined(self, amount: int) -> Minute:
        """The same with one measurement more."""
        return Minute(self.end, self.total + amount, self.count + 1)


class Lately(msgspec.Struct, frozen=True):
    """What the metrics have called for `since` a time: what they call for `now`, ever since it `changed`, and the
    minutes before by name, in order."""

    since: dt.datetime
    now: Demands = {}
    before: Mapping[str, tuple[Minute, ...]] = {}
    changed: dt.datetime | None = None

    def then(self, called_for: Demands, when: dt.datetime, window: dt.timedelta) -> Lately:
        """The same with what is called for from `when` on; what is older than the `window` is dropped. With a metric
        that was not among them, all begins anew: of that one, nothing is known."""
        if called_for == self.now:
            return self
        before = {
            label: tuple([one for one in self._minutes(label, when) if after(one.end, window) > when])
            for label in called_for
        }
        since = self.since if called_for.keys() <= self.now.keys() else when
        return Lately(since, called_for, before, when)

    def _minutes(self, label: str, when: dt.datetime) -> list[Minute]:
        """The minutes before `when`. What had stood for a minute is one of its own."""
        if label not in self.now or when < self._stands:
            return self._known(label)
        return [*self.before.get(label, ()), Minute(when, self.now[label])]

    def counted(self, label: str, amount: int, clock: Clock, window: dt.timedelta) -> int:
        """What counts of a metric that calls for an `amount` now: the largest minute within the `window`; or the amount
        itself where that is far more.

        Example: 1000, 1080, 1020 and 1100 within a minute: 1050. 1300 at once is 1300. 500 after an hour of 1000: 1000
        counts for as long as the window."""
        stood = self.now.get(label)
        minutes = [one for one in self._known(label) if clock.held_until(one.end, window) is not None]
        means = [one.mean for one in minutes]
        if stood is not None and clock.is_past(self._stands):
            means = [stood, *means]
        if amount * 100 > max(means, default=0) * JUMP_PERCENT:
            return amount
        if amount != stood and minutes and not clock.is_past(minutes[-1].end):
            means[-1] = minutes[-1].joined(amount).mean
        elif amount != stood:
            means.append(amount)
        return max(means, default=amount)

    @property
    def _stands(self) -> dt.datetime:
        """From when on what is called for now is a minute of its own."""
        return after(self.changed or self.since, MINUTE)

    def _known(self, label: str) -> list[Minute]:
        """The minutes, of which the last one may go on, with what is called for now."""
        minutes = list(self.before.get(label, ()))
        if label not in self.now:
            return minutes
        amount, end = self.now[label], self._stands
        if minutes and after(minutes[-1].end, MINUTE) > end:
            return [*minutes[:-1], minutes[-1].joined(amount)]
        return [*minutes, Minute(end, amount)]

    def is_short(self, clock: Clock, window: dt.timedelta) -> dt.datetime | None:
        """Until when less than the `window` is known; None where all of it is."""
        return clock.held_until(self.since, window)
