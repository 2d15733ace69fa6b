"""Usage of a container from the counters of its kubelet (`/metrics/resource`).

A kubelet repeats an old sample until it has the next one, 10 to 20 s later by default. Each sample has the time at
which the kubelet took it. Only these times count, not the times of the polls: an answer with the same time is no news.
A counter that falls belongs to a container that has restarted; a time that goes back, to a node whose clock was set.
Both begin a new series, and there is no usage until it has two samples.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

WINDOW: Final = 5.0
"""Seconds of CPU usage that count, if the kubelet samples that often: real usage is noisy within a second."""
LONGEST: Final = 60.0
"""Seconds between two samples after which their mean says nothing about the present."""
WHOLE_SECONDS: Final = 10.0
"""The least number of seconds between two samples of a counter that has whole seconds only: closer ones would be off by
more than a tenth of a core."""
SHORTEST: Final = 1.0
"""Seconds between two samples below which no usage is calculated: no kubelet samples that often, so the node's clock
was set."""
MINUTE: Final = 60.0
"""Least seconds between the two samples of a lasting usage."""
APART: Final = 20.0
"""Least seconds between two samples that are only kept for the usage over a minute."""
GROWS: Final = 1.01
"""Memory grows if a sample is more than this multiple of the one before."""
MOST_CORES: Final = 1024
"""More than any node has: a counter that shows more is wrong."""
MOST_BYTES: Final = 2**50
"""More than any node has."""


class Sample(NamedTuple):
    """A value, and when the kubelet measured it (seconds since 1970, by the node's clock)."""

    time: float
    value: float


class Rate(NamedTuple):
    """CPU usage between two samples."""

    millicores: int
    time: float
    """When the newer sample was taken, by the node's clock."""
    seconds: float
    """Seconds between the samples."""


class CpuCounter:
    """The samples of a counter of CPU seconds."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[Sample] = []

    def add(self, sample: Sample) -> bool:
        """Adds a sample of an answer; returns whether it is a new one."""
        if not _is_possible(sample):
            return False
        samples = self._samples
        if samples:
            last = samples[-1]
            if sample.time == last.time:
                return False
            if sample.time < last.time or sample.value < last.value or sample.time - last.time > LONGEST:
                samples.clear()
        samples.append(sample)
        # One sample from before each window stays: `rate` and `lasting` need it.
        while len(samples) > 2 and samples[1].time <= sample.time - MINUTE:
            del samples[0]
        oldest = sum(known.time <= sample.time - WHOLE_SECONDS for known in samples) - 2
        if oldest > 0 and samples[oldest].time - samples[oldest - 1].time < APART:
            del samples[oldest]
        return True

    def lasting(self) -> Rate | None:
        """Returns the usage over at least the last minute; None if it is not known for so long."""
        if not self._samples or self._samples[0].time > self._samples[-1].time - MINUTE:
            return None
        return _rate(self._samples[0], self._samples[-1])

    def rate(self) -> Rate | None:
        """Returns the usage between the newest sample and the one before its window; None if there is none yet, or if
        it can't be true."""
        if len(self._samples) < 2:
            return None
        newest = self._samples[-1]
        is_whole = all(sample.value == int(sample.value) for sample in self._samples)
        window = WHOLE_SECONDS if is_whole else WINDOW
        older = [sample for sample in self._samples if sample.time <= newest.time - window]
        before = older[-1] if older else self._samples[0]
        seconds = newest.time - before.time
        used = newest.value - before.value
        if seconds < SHORTEST or (is_whole and seconds < window and used > 0):
            return None
        # Whole seconds show up to one too many, and the signal only raises.
        return _rate(before, newest, too_many=min(used, 1.0) if is_whole else 0.0)


class Memory:
    """The last samples of a container's memory."""

    __slots__ = ("grows", "last")

    def __init__(self) -> None:
        self.last: Sample | None = None
        self.grows = False
        """The last sample is larger than the one before, of the same series."""

    def add(self, sample: Sample) -> bool:
        """Adds a sample of an answer; returns whether it is a new one."""
        if not _is_possible(sample) or sample.value > MOST_BYTES:
            return False
        last = self.last
        if last is not None and sample.time == last.time:
            return False
        follows = last is not None and 0 < sample.time - last.time <= LONGEST
        self.grows = last is not None and follows and sample.value > GROWS * last.value
        self.last = sample
        return True


def _is_possible(sample: Sample) -> bool:
    return math.isfinite(sample.time) and math.isfinite(sample.value) and sample.value >= 0


def _rate(before: Sample, after: Sample, too_many: float = 0.0) -> Rate | None:
    """Returns the usage between two samples; None if it is more than any node has."""
    seconds = after.time - before.time
    millicores = (after.value - before.value - too_many) / seconds * 1000
    return Rate(round(millicores), after.time, seconds) if millicores <= MOST_CORES * 1000 else None


def newest(*rates: Rate | None) -> Rate | None:
    """Returns the rate with the newest sample. The kubelet samples a pod and its container at different times, so for
    a pod with one container the newer one of both shows a change earlier."""
    return max((rate for rate in rates if rate is not None), key=lambda rate: rate.time, default=None)
