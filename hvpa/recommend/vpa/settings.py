"""The VPA recommender's flags, with the defaults of version 1.8.1 (`pkg/recommender/config`, `model.Default…`)."""

from __future__ import annotations

from dataclasses import dataclass

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.duration import DAY
from hvpa.api.values.quantity import MIB


@dataclass(frozen=True, slots=True)
class VpaSettings:
    """What the recommender is started with. Times in seconds, percentiles and margins as fractions, CPU in millicores,
    memory in bytes; each field is named after its flag. All values must be positive.

    Not there: `--humanize-memory` (deprecated), `--cpu-integer-post-processor-enabled` (experimental) and the feature
    gate PerVPAConfig (alpha); all three are off by default.
    """

    safety_margin: float = 0.15
    """`--recommendation-margin-fraction`: added to what percentiles say."""
    target_cpu_percentile: float = 0.9
    lower_bound_cpu_percentile: float = 0.5
    upper_bound_cpu_percentile: float = 0.95
    target_memory_percentile: float = 0.9
    lower_bound_memory_percentile: float = 0.5
    upper_bound_memory_percentile: float = 0.95
    confidence_interval_cpu: float = DAY
    confidence_interval_memory: float = DAY
    """With a history of so many seconds the upper bound is twice its percentile; with a longer one, less."""
    pod_min_cpu_millicores: float = 25.0
    pod_min_memory_mb: float = 250.0
    """The least that is recommended for a whole pod, shared equally by its containers; memory in MiB, as the flag."""
    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    """Recommendations are rounded up to multiples of these."""
    max_allowed_cpu: Quantity | None = None
    max_allowed_memory: Quantity | None = None
    """`--container-recommendation-max-allowed-…`: used where a container's policy has no `maxAllowed` of its own."""
    memory_aggregation_interval: float = DAY
    """Each container counts with one memory peak per interval."""
    memory_aggregation_interval_count: int = 8
    """After so many intervals without a CPU sample a container's history is thrown away."""
    cpu_half_life: float = DAY
    memory_half_life: float = DAY
    """After this time a sample has half its weight."""
    oom_bump_up_ratio: float = 1.2
    oom_min_bump_up: float = 100.0 * MIB
    """An OOM counts as usage of the larger of ratio × and bytes + what was used or requested."""
