"""Decaying means of replica counts and of demands, with a half-life of a day (DESIGN 5.4).

A value weighs as many seconds as it lasted (multiplied by the count for replicas: a VPA recommender takes a sample of
each pod), and half of that a half-life later. The status stores the mean at a time and the value since then, so the
mean follows a known curve. Nothing is written while nothing changes.

Source of the decay: the VPA recommender's `decaying_histogram.go`; the curve is its integral over a constant value.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Final, NamedTuple

from hvpa.core.values.clock import after
from hvpa.core.values.tuning import HALF_LIFE

GRAIN: Final = 1.01
"""A mean moves in steps of one percent, so that a decision stays the same for a while."""
_MEMORY: Final = HALF_LIFE.total_seconds() / math.log(2)
"""Weight, at rate 1, of a value that has always been there: the integral of the decay, in seconds."""
_LOG_GRAIN: Final = math.log(GRAIN)
_LEAST: Final = 1e-3
_CLOSE: Final = 1e-9


class Mean(NamedTuple):
    """A decaying mean. Its weight and rate are not negative."""

    mean: float
    """The mean at `time`."""
    weight: float
    """Its weight at `time`, in seconds × rate."""
    time: dt.datetime
    value: float
    """The value since `time`."""
    rate: float = 1.0
    """Weight that the value gains per second."""

    def at(self, now: dt.datetime) -> Mean:
        """Return the mean at `now`: the old mean and the value since then, each by its weight. A time in the future
        comes from a wrong clock and counts as now.

        Example: the value was always 1000, and has been 2000 for 24 hours. Half of the old weight is left, and the new
        value has gained the same weight: 1500. If 1000 had only a weight of 86,400 s (of 124,649), the mean would be
        1591.
        """
        kept = _kept(now - self.time)
        old, new = max(0.0, self.weight) * kept, self.rate * (1 - kept) * _MEMORY
        mean = (self.mean * old + self.value * new) / (old + new) if old + new > 0 else self.value
        return self._replace(mean=mean, weight=old + new, time=now)

    def in_steps(self, now: dt.datetime) -> tuple[float, dt.datetime | None]:
        """Return the mean at `now` in steps of `GRAIN`, and when the next step is due (None: the mean has arrived).

        Example: the value was always 1000, and has been 2000 for an hour. The mean is 1028.5, which is two steps:
        1020.1. The third step, 1030.3, is due in 3 min 56 s.
        """
        start, goal = max(self.mean, _LEAST), max(self.value, _LEAST)
        steps = math.ceil(abs(math.log(goal / start)) / _LOG_GRAIN - _CLOSE) - 1  # the goal is never reached
        if steps <= 0:
            return goal, None
        moved = abs(math.log(max(self.at(now).mean, _LEAST) / start)) / _LOG_GRAIN
        done = min(steps, math.floor(moved + _CLOSE))
        grain = GRAIN if goal > start else 1 / GRAIN
        mean = start * grain**done
        if done == steps:
            return mean, None
        next_at = after(self.time, self._until(start * grain ** (done + 1)))
        return mean, None if next_at <= now else next_at

    def _until(self, mean: float) -> dt.timedelta:
        """Return how long after `time` the mean reaches a given point on its way to the value: `at` solved for the
        time, in whole seconds.

        Example: from 1000, which was always there, to 1010 on the way to 2000: 0.99 of the old weight is left after 24
        h × -log2(0.99) = 20 min 53 s.
        """
        share = (mean - self.value) / (max(self.mean, _LEAST) - self.value)  # of the old mean in this one
        gained = share * self.rate * _MEMORY
        kept = gained / (self.weight * (1 - share) + gained)
        return dt.timedelta(seconds=math.ceil(-HALF_LIFE.total_seconds() * math.log2(kept)))


def weight_since(since: dt.datetime | None, now: dt.datetime) -> float:
    """Return the weight, in seconds at rate 1, of a value that has been there `since` then (None: always)."""
    return _MEMORY if since is None else (1 - _kept(now - since)) * _MEMORY


def _kept(time: dt.timedelta) -> float:
    """Return the fraction of a weight that is left after this time."""
    return float(2.0 ** (-max(0.0, time.total_seconds()) / HALF_LIFE.total_seconds()))
