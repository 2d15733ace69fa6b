"""Length of the history behind a VPA's recommendation (DESIGN 4). HVPA derives it from the recommendation itself,
because the condition `RecommendationProvided` does not change when the recommender loses its history.

The recommender multiplies the upper bound by 1 + 1 / days (`upper_factor` in hvpa_lab/recommend/vpa/estimate.py). Days
are the time from the first to the last sample, or the number of samples / 1440 if that is less. So upper bound /
uncapped target is at least 1 + 1 / days: 1441 for a minute of history, 25 for an hour, 1.125 for 8 days.

Sources of error, and how HVPA handles them: docs/decisions/0059.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final

from hvpa.api.hvpa.status import TrustedHistory
from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.read_models import ContainerRecommendation, Vpa, VpaContainerPolicy, policies_by_name
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.model import BoundRatio
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import remembered
from hvpa.core.workload.containers import amount

DAY: Final = dt.timedelta(days=1)
JUMP: Final = 10
"""If upper bound / target grows by this factor, the history was lost (DESIGN 4). From this ratio on, a capped bound
also proves nothing: without the cap it may be any number of times as large."""
FAR_APART: Final = 4
"""The ratios of a container's resources differ by less than this factor: the 95th percentile is rarely four times the
90th."""
LOST: Final = 3
"""A history shorter than `minHistory` was lost if there have been recommendations for at least this many times as
long."""
SAVED_WITHIN: Final = dt.timedelta(minutes=10)
"""A checkpoint that is older than the recommendation by more than this belongs to another history. The recommender
saves checkpoints in each of its rounds; with thousands of VPAs it saves some of them in each round."""
MINUTES: Final = 1440
"""Samples per day (`confidence` in `hvpa_lab.recommend.vpa.samples`)."""
NO_HISTORY: Final = 1e9
"""The ratio of a recommendation without history."""
STEPS: Final = 4
"""Ratios are rounded up to a quarter of a doubling, 19 percent. A bound changes all the time, and each new value would
cause another decision."""


@remembered
def bound_ratios(vpa: Vpa) -> tuple[BoundRatio, ...]:
    """Return the ratio of each container in a VPA's recommendation, except containers whose bounds give no
    information."""
    recommendation = vpa.status.recommendation
    entries = (recommendation.container_recommendations or ()) if recommendation is not None else ()
    bounds = vpa.spec.resource_policy
    policy = policies_by_name(bounds.container_policies if bounds is not None else ())
    ratios = [_ratio(policy(entry.container_name), entry) for entry in entries]
    return tuple([ratio for ratio in ratios if ratio is not None])


def _ratio(policy: VpaContainerPolicy, recommendation: ContainerRecommendation) -> BoundRatio | None:
    """Return the ratio of a container from those of CPU and memory, which share a history.

    Each uncapped ratio proves a minimum length of the history, so the smaller ratio counts; the larger belongs to a
    resource with higher peaks. If the two are far apart, the larger counts, because a flag of the recommender has cut
    the smaller. Example: 1.2 and 2.4 give 1.2; 16 and 1441 give 1441.
    """
    whole: list[float] = []
    capped: list[float] = []
    for resource in RESOURCES:
        upper = amount(recommendation.upper_bound, resource)
        target = amount(recommendation.uncapped_target, resource) or amount(recommendation.target, resource)
        least, most = amount(policy.min_allowed, resource), amount(policy.max_allowed, resource)
        if upper and target and (least is None or upper > least):
            (whole if most is None or upper < most else capped).append(_rounded_up(upper / target))
    if not whole:
        return BoundRatio(recommendation.container_name, max(capped), capped=True) if capped else None
    smallest, largest = min(whole), max(whole + capped)
    return BoundRatio(recommendation.container_name, smallest if largest < FAR_APART * smallest else largest)


def history_ratios(vpa: Vpa, checkpoints: Sequence[VpaCheckpoint]) -> tuple[BoundRatio, ...]:
    """Return the ratio of each container: from the recommender's checkpoint if it is readable and as new as the
    recommendation, otherwise from the bounds. Example: 60 samples from 10:00 to 11:00 give 25."""
    ratios = {ratio.container: ratio for ratio in bound_ratios(vpa)}
    written = vpa.metadata.written_at()
    for checkpoint in checkpoints:
        name, saved = checkpoint.spec.container_name, checkpoint.status
        first, last, updated = saved.first_sample_start, saved.last_sample_start, saved.last_update_time
        if (
            checkpoint.spec.vpa_object_name != vpa.metadata.name
            or first is None
            or last is None
            or updated is None
        ):
            continue
        if name in ratios and (written is None or updated > written - SAVED_WITHIN):
            days = min((last - first) / DAY, saved.total_samples_count / MINUTES)
            ratios[name] = BoundRatio(name, _rounded_up(1 + 1 / days) if days > 0 else NO_HISTORY)
    return tuple(ratios.values())


def _rounded_up(ratio: float) -> float:
    """Return a ratio, at least 1, rounded up to a quarter of a doubling. Example: 1.125 gives 1.19, 25 gives 26.9."""
    step = math.ceil(STEPS * math.log2(max(ratio, 1)) - 1e-9)
    return round(2 ** (step / STEPS), 3)


def view_history(
    records: Sequence[TrustedHistory],
    ratios: Sequence[BoundRatio],
    min_history: dt.timedelta,
    clock: Clock,
) -> tuple[tuple[TrustedHistory, ...], dict[str, dt.datetime]]:
    """Return the records of the containers with these ratios, and until when a container's recommendation must not
    lower anything, by name."""
    known = {record.container: record for record in records}
    kept = tuple([_next_record(known.get(ratio.container), ratio, min_history, clock) for ratio in ratios])
    held = {record.container: clock.held_until(record.short_since, min_history) for record in kept}
    return kept, {container: until for container, until in held.items() if until is not None}


def _next_record(
    record: TrustedHistory | None, ratio: BoundRatio, min_history: dt.timedelta, clock: Clock
) -> TrustedHistory:
    """Return the next record of a container."""
    limit = _limit(ratio, min_history)
    if record is None:
        return _record(ratio, _history_start(ratio, limit, clock) if ratio.ratio > limit else None)
    if record.short_since is None:
        if ratio.ratio >= JUMP * record.ratio or record.ratio <= limit < ratio.ratio / 2:
            return _record(ratio, _history_start(ratio, limit, clock), record.ratio)
        # A growing history lowers the ratio; it is recorded each time it has halved.
        return record if ratio.ratio * 2 > record.ratio else _record(ratio)
    is_back = not ratio.capped and ratio.ratio <= limit and ratio.ratio < JUMP * record.ratio
    if is_back or clock.held_until(record.short_since, min_history) is None:
        return _record(ratio)
    return record


def _limit(ratio: BoundRatio, min_history: dt.timedelta) -> float:
    """Return the largest ratio of a history that is long enough, rounded: 26.9 for an hour, at most 10 for a capped
    bound."""
    limit = _rounded_up(1 + DAY / min_history) if min_history else math.inf
    return min(limit, JUMP) if ratio.capped and min_history else limit


def _history_start(ratio: BoundRatio, limit: float, clock: Clock) -> dt.datetime:
    """Return when a short history began: from its ratio if possible, otherwise now."""
    now = clock.stamp()
    return now - DAY / (ratio.ratio - 1) if not ratio.capped and ratio.ratio > limit else now


def _record(
    bound_ratio: BoundRatio, short_since: dt.datetime | None = None, ratio: float | None = None
) -> TrustedHistory:
    return TrustedHistory(
        container=bound_ratio.container,
        ratio=bound_ratio.ratio if ratio is None else ratio,
        short_since=short_since,
    )
