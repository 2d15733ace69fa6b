"""The VPA recommender's state of containers: an aggregate of all containers of a name, and the current memory window of
each container (vertical-pod-autoscaler 1.8.1, `pkg/recommender/model/{aggregate_container_state,container,types}.go`).

Amounts are whole millicores and bytes. Times are float seconds since the Unix epoch.
"""

from __future__ import annotations

import math
from typing import Final

from hvpa_lab.recommend.vpa.histogram import BucketScheme, DecayingHistogram
from hvpa_lab.recommend.vpa.settings import VpaSettings

MAX_AMOUNT: Final = 10**14
"""The largest amount of a resource, in millicores or bytes."""
CPU_SAMPLE_WEIGHT: Final = 0.1
"""Weight of a CPU sample before ageing (`minSampleWeight`). Since 1.7 it does not depend on the request."""
MEMORY_SAMPLE_WEIGHT: Final = 1.0
"""Weight of a memory peak before ageing."""
BUCKET_GROWTH: Final = 0.05
"""Each bucket is wider than the previous bucket by this fraction."""
EPSILON: Final = 0.001 * CPU_SAMPLE_WEIGHT
"""Smaller weights count as 0."""
NANOCORES: Final = 1e9
NANOCORES_PER_MILLICORE: Final = 1_000_000
MOST_CORES: Final = 1e11
"""`MAX_AMOUNT` in cores."""
CPU_BUCKETS: Final = BucketScheme(maximum=1000.0, first=0.01, ratio=1.0 + BUCKET_GROWTH, epsilon=EPSILON)
"""Buckets of CPU histograms, in cores: the first ends at 0.01 cores, the last starts at 1000 cores or above."""
MEMORY_BUCKETS: Final = BucketScheme(maximum=1e12, first=1e7, ratio=1.0 + BUCKET_GROWTH, epsilon=EPSILON)
"""Buckets of memory histograms, in bytes: the first ends at 10 MB, the last starts at 1 TB or above."""


def whole_amount(amount: float) -> int:
    """Returns an amount as the recommender stores it: truncated to an integer from 0 to `MAX_AMOUNT`; 0 for NaN."""
    if amount > MAX_AMOUNT:
        return MAX_AMOUNT
    return int(amount) if amount > 0 else 0


def millicores(cores: float) -> int:
    """Converts measured cores to millicores, rounded up. Metrics are in whole nanocores."""
    return -(-round(min(cores, MOST_CORES) * NANOCORES) // NANOCORES_PER_MILLICORE)


class Aggregate:
    """Data for all containers of a name: CPU usage, memory peaks, and length and number of the CPU samples."""

    __slots__ = ("cpu", "created", "dropped", "first_sample", "last_sample", "memory", "samples")

    def __init__(self, settings: VpaSettings, created: float = 0.0) -> None:
        self.cpu = DecayingHistogram(CPU_BUCKETS, settings.cpu_half_life)
        self.memory = DecayingHistogram(MEMORY_BUCKETS, settings.memory_half_life)
        self.first_sample: float | None = None
        self.last_sample: float | None = None
        self.samples = 0
        self.created = created
        self.dropped = False
        """Whether it was deleted because of its age. Later measurements go into a new aggregate."""

    def add_cpu(self, amount: int, at: float) -> None:
        """Adds a CPU sample in millicores."""
        self.cpu.add(amount / 1000.0, CPU_SAMPLE_WEIGHT, at)
        if self.last_sample is None or at > self.last_sample:
            self.last_sample = at
        if self.first_sample is None or at < self.first_sample:
            self.first_sample = at
        self.samples += 1

    def confidence(self, interval: float) -> float:
        """Returns the confidence in the history, in intervals (seconds): its length, or its number of samples at one a
        minute if that is less. Example: 720 samples over 12 hours, with an interval of a day, give 0.5."""
        if self.first_sample is None or self.last_sample is None:
            return 0.0
        return min((self.last_sample - self.first_sample) / interval, self.samples / (interval / 60.0))


class ContainerHistory:
    """A container of a pod: the times of its latest samples, and its memory peak in the current aggregation
    interval."""

    __slots__ = ("_last_cpu", "_last_memory", "_oom_peak", "_peak", "_settings", "_window_end", "aggregate")

    def __init__(self, aggregate: Aggregate, settings: VpaSettings) -> None:
        self.aggregate = aggregate
        self._settings = settings
        self._last_cpu = -math.inf
        self._last_memory = -math.inf
        self._peak = 0
        self._oom_peak = 0
        self._window_end: float | None = None

    def add_cpu(self, cores: float, at: float) -> None:
        """Adds a CPU measurement in cores. Discards negative values and values that are not newer than the last."""
        if cores >= 0.0 and at > self._last_cpu:
            self.aggregate.add_cpu(millicores(cores), at)
            self._last_cpu = at

    def add_memory(self, used: float, at: float) -> None:
        """Adds a memory measurement in bytes. Discards negative values and values older than the last."""
        if used >= 0.0 and at >= self._last_memory:
            self._add_peak(math.ceil(min(used, MAX_AMOUNT)), at, is_oom=False)

    def record_oom(self, memory: float, at: float) -> None:
        """Records an OOM as a memory peak above both `memory` (requested or used, in bytes) and the window's peak.
        Discards negative amounts, and OOMs older than the latest measurement by more than a window (before 1.8: older
        than the current window)."""
        if at < self._last_memory - self._settings.memory_aggregation_interval:
            return
        if not memory >= 0.0:
            return
        used = max(math.ceil(min(memory, MAX_AMOUNT)), self._peak)
        needed = max(
            used + whole_amount(self._settings.oom_min_bump_up),
            whole_amount(used * self._settings.oom_bump_up_ratio),
        )
        self._add_peak(needed, at, is_oom=True)

    def _add_peak(self, used: int, at: float, is_oom: bool) -> None:
        """Adds a memory peak at the window's end. Only the largest peak of a window counts: a larger peak replaces the
        previous peak."""
        self._last_memory = at
        if self._window_end is None:
            self._window_end = at
        memory = self.aggregate.memory
        if at < self._window_end:
            old = max(self._peak, self._oom_peak)
            if old == 0 or used <= old:
                return
            memory.subtract(float(old), MEMORY_SAMPLE_WEIGHT, self._window_end)
        else:
            interval = self._settings.memory_aggregation_interval
            self._window_end += (at - self._window_end) // interval * interval + interval
            self._peak = self._oom_peak = 0
        memory.add(float(used), MEMORY_SAMPLE_WEIGHT, self._window_end)
        if is_oom:
            self._oom_peak = used
        else:
            self._peak = used
