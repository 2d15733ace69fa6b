"""Recent demand of metrics, minute by minute. If pods are resized in place, the largest of the last minutes counts
(docs/decision.md, sentences 7 and 10). It is kept in the operator's memory and not in the status, so nothing is written
at constant load. After a restart HVPA scales nothing down until it has measured a full window."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import msgspec

from hvpa.core.values.clock import Clock, after
from hvpa.core.values.tuning import JUMP_PERCENT

MINUTE: Final = dt.timedelta(minutes=1)
"""Measurements within this time are averaged: four of a metric, which halves their noise."""
Demands = Mapping[str, int]
"""Demand by metric name: millicores, bytes or millionths of pods."""


class Minute(msgspec.Struct, frozen=True, gc=False):
    """The measurements of a minute: end, sum, and number."""

    end: dt.datetime
    total: int
    count: int = 1

    @property
    def mean(self) -> int:
        """The mean of the measurements."""
        return self.total // self.count

    def joined(self, amount: int) -> Minute:
        """Returns the minute with one more measurement."""
        return Minute(self.end, self.total + amount, self.count + 1)


class Lately(msgspec.Struct, frozen=True):
    """The demand of the metrics since a time."""

    since: dt.datetime
    """When the record starts."""
    now: Demands = {}
    """Current demand, by metric."""
    before: Mapping[str, tuple[Minute, ...]] = {}
    """Earlier minutes, by metric, in order."""
    changed: dt.datetime | None = None
    """When the current demand started."""

    def then(self, called_for: Demands, when: dt.datetime, window: dt.timedelta) -> Lately:
        """Returns the record with the demand from `when` on, without minutes older than the `window`. A new metric sets
        `since` to `when`, because its earlier demand is unknown."""
        if called_for == self.now:
            return self
        before = {
            label: tuple(
                [minute for minute in self._minutes(label, when) if after(minute.end, window) > when]
            )
            for label in called_for
        }
        since = self.since if called_for.keys() <= self.now.keys() else when
        return Lately(since, called_for, before, when)

    def _minutes(self, label: str, when: dt.datetime) -> list[Minute]:
        """Returns the minutes before `when`. A demand that was constant for a minute is a minute of its own."""
        if label not in self.now or when < self._stands:
            return self._known(label)
        return [*self.before.get(label, ()), Minute(when, self.now[label])]

    def counted(self, label: str, amount: int, clock: Clock, window: dt.timedelta) -> int:
        """Returns the demand that counts for a metric whose demand is `amount` now: the largest minute within the
        `window`, or `amount` itself if it is far larger.

        Example: 1000, 1080, 1020 and 1100 within a minute give 1050. A jump to 1300 gives 1300. After an hour of 1000,
        a drop to 500 gives 1000 until the window has passed.
        """
        stood = self.now.get(label)
        minutes = [
            minute for minute in self._known(label) if clock.held_until(minute.end, window) is not None
        ]
        means = [minute.mean for minute in minutes]
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
        """The instant from which the current demand is a minute of its own."""
        return after(self.changed or self.since, MINUTE)

    def _known(self, label: str) -> list[Minute]:
        """Returns the minutes, including the current demand; the last minute may still be incomplete."""
        minutes = list(self.before.get(label, ()))
        if label not in self.now:
            return minutes
        amount, end = self.now[label], self._stands
        if minutes and after(minutes[-1].end, MINUTE) > end:
            return [*minutes[:-1], minutes[-1].joined(amount)]
        return [*minutes, Minute(end, amount)]

    def is_short(self, clock: Clock, window: dt.timedelta) -> dt.datetime | None:
        """Returns until when less than the `window` is known; None if all of it is."""
        return clock.held_until(self.since, window)
