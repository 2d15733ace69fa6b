"""The VPA recommender's flags, with the defaults of version 1.8.1 (`pkg/recommender/config`, `model.Default…`)."""

from __future__ import annotations

from dataclasses import dataclass

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.duration import DAY
from hvpa.api.values.quantity import MIB


@dataclass(frozen=True, slots=True)
class VpaSettings:
    """The flags of the recommender. Times are in seconds, percentiles and margins are fractions, CPU is in millicores,
    memory in bytes. Each field has the name of its flag. All values must be positive.

    Not included: `--humanize-memory` (deprecated), `--cpu-integer-post-processor-enabled` (experimental) and the
    feature gate PerVPAConfig (alpha). All three are off by default.
    """

    safety_margin: float = 0.15
    """`--recommendation-margin-fraction`: added to the percentiles."""
    target_cpu_percentile: float = 0.9
    lower_bound_cpu_percentile: float = 0.5
    upper_bound_cpu_percentile: float = 0.95
    target_memory_percentile: float = 0.9
    lower_bound_memory_percentile: float = 0.5
    upper_bound_memory_percentile: float = 0.95
    confidence_interval_cpu: float = DAY
    confidence_interval_memory: float = DAY
    """With a history of this length, the upper bound is twice its percentile. With a longer history, it is less."""
    pod_min_cpu_millicores: float = 25.0
    pod_min_memory_mb: float = 250.0
    """Minimum recommendation for a whole pod, divided equally among its containers. Memory is in MiB, as in the
    flag."""
    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    """Recommendations are rounded up to multiples of these."""
    max_allowed_cpu: Quantity | None = None
    max_allowed_memory: Quantity | None = None
    """`--container-recommendation-max-allowed-…`: applies if a container's policy has no `maxAllowed`."""
    memory_aggregation_interval: float = DAY
    """Each container has one memory peak per interval."""
    memory_aggregation_interval_count: int = 8
    """Number of intervals without a CPU sample after which a container's history is deleted."""
    cpu_half_life: float = DAY
    memory_half_life: float = DAY
    """Time after which a sample has half its weight."""
    oom_bump_up_ratio: float = 1.2
    oom_min_bump_up: float = 100.0 * MIB
    """An OOM counts as memory usage of the larger of amount × ratio and amount + bytes. The amount is the used or
    requested memory."""
