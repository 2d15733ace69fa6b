"""Means that fade, of replica counts and of demands, over a day or so (DESIGN 5.4), and peaks that fade in hours.

A value weighs by how long it lasted (and a replica count by itself as well: a VPA recommender takes one sample of
each pod), and half of that a half-life later. Such a mean stands in the status as of a time; from then on one value
has held, and the mean moves towards it along a known curve. So nothing is written while nothing changes.

Source of the decay: the VPA recommender's `decaying_histogram.go`; the curve is its integral over a value that stands.
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
"""What a value weighs that has always been there, at rate 1: the integral of the decay, in seconds."""
_LOG_GRAIN: Final = math.log(GRAIN)
_LEAST: Final = 1e-3
_CLOSE: Final = 1e-9


class Mean(NamedTuple):
    """A mean that weighed so much at `time`, since when there has been one `value`, which gains `rate` of weight a
    second. Neither is negative."""

    mean: float
    weight: float
    time: dt.datetime
    value: float
    rate: float = 1.0

    def at(self, now: dt.datetime) -> Mean:
        """The same as of `now`: the old mean and the value since then, each by its weight. A time in the future is from
        a clock that was wrong, and counts as now.

        Example: 1000 had always been there, and 2000 is since 24 hours. Half of the old weight is left, and the value
        has gained as much: 1500. Had 1000 the weight of 86,400 s only (of 124,649), it would be 1591.
        """
        kept = _kept(now - self.time)
        old, new = max(0.0, self.weight) * kept, self.rate * (1 - kept) * _MEMORY
        mean = (self.mean * old + self.value * new) / (old + new) if old + new > 0 else self.value
        return self._replace(mean=mean, weight=old + new, time=now)

    def in_steps(self, now: dt.datetime) -> tuple[float, dt.datetime | None]:
        """The mean now, in steps of `GRAIN`, and when it takes the next one (None: it is where it goes).

        Example: 1000 had always been there, and 2000 is since an hour. The mean is 1028.5: two steps, 1020.1. The third
        one, 1030.3, is due after another 3 min 56 s.
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
        """How long the mean, on its way to the value, takes to be there: `at` solved for the time, in whole seconds.

        Example: from 1000, which had always been there, to 1010 on the way to 2000: 0.99 of the old weight is left
        after 24 h * -log2(0.99), 20 min 53 s.
        """
        share = (mean - self.value) / (max(self.mean, _LEAST) - self.value)  # of the old mean in this one
        gained = share * self.rate * _MEMORY
        kept = gained / (self.weight * (1 - share) + gained)
        return dt.timedelta(seconds=math.ceil(-HALF_LIFE.total_seconds() * math.log2(kept)))


def weight_since(since: dt.datetime | None, now: dt.datetime) -> float:
    """What a value weighs, at rate 1, that has been there `since` then (None: always), in seconds."""
    return _MEMORY if since is None else (1 - _kept(now - since)) * _MEMORY


def _kept(time: dt.timedelta) -> float:
    """The fraction of a weight that is left after this time."""
    return float(2.0 ** (-max(0.0, time.total_seconds()) / HALF_LIFE.total_seconds()))
