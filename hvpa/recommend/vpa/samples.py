"""What the VPA recommender remembers of containers: one aggregate of all containers of a name, and the current memory
window of each (vertical-pod-autoscaler 1.8.1, `pkg/recommender/model/{aggregate_container_state,container,types}.go`).

Amounts are whole millicores and bytes, times float seconds since the Unix epoch.
"""

from __future__ import annotations

import math
from typing import Final

from hvpa.recommend.vpa.histogram import BucketScheme, DecayingHistogram
from hvpa.recommend.vpa.settings import VpaSettings

MAX_AMOUNT: Final = 10**14
"""The largest amount of a resource, in millicores or bytes."""
CPU_SAMPLE_WEIGHT: Final = 0.1
"""Weight of every CPU sample before its age counts (`minSampleWeight`); since 1.7 it does not depend on the request."""
MEMORY_SAMPLE_WEIGHT: Final = 1.0
"""Weight of every memory peak before its age counts."""
BUCKET_GROWTH: Final = 0.05
"""Each bucket is wider than the one before by this fraction."""
EPSILON: Final = 0.001 * CPU_SAMPLE_WEIGHT
"""Less weight than this is none."""
NANOCORES: Final = 1e9
NANOCORES_PER_MILLICORE: Final = 1_000_000
MOST_CORES: Final = 1e11
"""What `MAX_AMOUNT` is in cores."""
CPU_BUCKETS: Final = BucketScheme(maximum=1000.0, first=0.01, ratio=1.0 + BUCKET_GROWTH, epsilon=EPSILON)
"""Buckets of CPU histograms, in cores: the first of 0.01 cores, up to 1000 cores."""
MEMORY_BUCKETS: Final = BucketScheme(maximum=1e12, first=1e7, ratio=1.0 + BUCKET_GROWTH, epsilon=EPSILON)
"""Buckets of memory histograms, in bytes: the first of 10 MB, up to 1 TB."""


def whole_amount(amount: float) -> int:
    """An amount as the recommender keeps it: cut off to a whole number from 0 to `MAX_AMOUNT`; 0 for a NaN."""
    if amount > MAX_AMOUNT:
        return MAX_AMOUNT
    return int(amount) if amount > 0 else 0


def millicores(cores: float) -> int:
    """Measured cores as millicores. Metrics come in whole nanocores, of which a started millicore counts whole."""
    return -(-round(min(cores, MOST_CORES) * NANOCORES) // NANOCORES_PER_MILLICORE)


class Aggregate:
    """What is known of all containers of one name: CPU usage, memory peaks, and how long and how often CPU was seen."""

    __slots__ = ("cpu", "created", "dropped", "first_sample", "last_sample", "memory", "samples")

    def __init__(self, settings: VpaSettings, created: float = 0.0) -> None:
        self.cpu = DecayingHistogram(CPU_BUCKETS, settings.cpu_half_life)
        self.memory = DecayingHistogram(MEMORY_BUCKETS, settings.memory_half_life)
        self.first_sample: float | None = None
        self.last_sample: float | None = None
        self.samples = 0
        self.created = created
        self.dropped = False
        """Whether it was thrown away as too old; what is measured from then on goes into another one."""

    def add_cpu(self, amount: int, at: float) -> None:
        """Add a CPU sample in millicores."""
        self.cpu.add(amount / 1000.0, CPU_SAMPLE_WEIGHT, at)
        if self.last_sample is None or at > self.last_sample:
            self.last_sample = at
        if self.first_sample is None or at < self.first_sample:
            self.first_sample = at
        self.samples += 1

    def confidence(self, interval: float) -> float:
        """How far the history can be trusted: its length, or its samples at one a minute if that is less, in intervals
        of so many seconds."""
        if self.first_sample is None or self.last_sample is None:
            return 0.0
        return min((self.last_sample - self.first_sample) / interval, self.samples / (interval / 60.0))


class ContainerHistory:
    """One container of one pod: its latest samples and the largest memory of the current aggregation interval."""

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
        """Add a CPU measurement in cores. A negative one, or one not after the last one, is discarded."""
        if cores >= 0.0 and at > self._last_cpu:
            self.aggregate.add_cpu(millicores(cores), at)
            self._last_cpu = at

    def add_memory(self, used: float, at: float) -> None:
        """Add a memory measurement in bytes. A negative one, or one older than the last one, is discarded."""
        if used >= 0.0 and at >= self._last_memory:
            self._add_peak(math.ceil(min(used, MAX_AMOUNT)), at, is_oom=False)

    def record_oom(self, memory: float, at: float) -> None:
        """Count an OOM as a memory peak above both what was requested or used then (bytes) and the window's peak. One
        older than the latest measurement by more than a window is discarded (before 1.8: one older than the current
        window), and so is a negative amount."""
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
        """One peak per window counts, at the window's end: a larger one takes the place of the one before."""
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
