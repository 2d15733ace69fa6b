"""How far the history of a VPA's recommendation goes (DESIGN 4): judged by the recommendation itself, since the
condition `RecommendationProvided` stays as it is when the recommender loses its history.

The recommender multiplies the upper bound by 1 + 1 / days (`upper_factor` in `hvpa.recommend.vpa.estimate`), where the
history's days are those from the first to the last sample, or the samples at one a minute if that is less. So the
upper bound over the uncapped target is at least 1 + 1 / days. An hour of history: 25; a minute: 1441; 8 days: 1.125.

What blurs this, and what is done about it: docs/decisions/0059.
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
"""An upper bound that grows so many times in relation to its target: the history was lost (DESIGN 4). It is also the
ratio from which a capped bound proves nothing: uncapped, it may be any number of times as large."""
FAR_APART: Final = 4
"""The ratios of a container's resources differ by less: the 95th percentile is rarely four times the 90th."""
LOST: Final = 3
"""A history that is shorter than `minHistory` was lost if there have been recommendations for so many times as long."""
SAVED_WITHIN: Final = dt.timedelta(minutes=10)
"""A checkpoint that is older than the recommendation by more is of another history. The recommender saves with each of
its rounds; of thousands of VPAs it saves some in each."""
MINUTES: Final = 1440
"""Samples of a day (`confidence` in `hvpa.recommend.vpa.samples`)."""
NO_HISTORY: Final = 1e9
"""The ratio of a recommendation without history."""
STEPS: Final = 4
"""Ratios are rounded up to a quarter of a doubling, 19 percent: a bound moves all the time, and each of its values
would be a reason for another decision."""


@remembered
def bound_ratios(vpa: Vpa) -> tuple[BoundRatio, ...]:
    """The ratio of each container of a VPA's recommendation; without those whose bounds say nothing."""
    recommendation = vpa.status.recommendation
    entries = (recommendation.container_recommendations or ()) if recommendation is not None else ()
    bounds = vpa.spec.resource_policy
    policy = policies_by_name(bounds.container_policies if bounds is not None else ())
    found = [_ratio(policy(one.container_name), one) for one in entries]
    return tuple([one for one in found if one is not None])


def _ratio(policy: VpaContainerPolicy, one: ContainerRecommendation) -> BoundRatio | None:
    """The ratio of a container, of CPU and memory, which have one history.

    Each ratio that no bound has cut shows that the history is at least as long as it says, so the smaller one counts:
    the larger one is of a resource with higher peaks. But not if they are far apart: then a flag of the recommender has
    cut the smaller one. Example: 1.2 and 2.4 are 1.2; 16 and 1441 are 1441.
    """
    whole: list[float] = []
    capped: list[float] = []
    for resource in RESOURCES:
        upper = amount(one.upper_bound, resource)
        target = amount(one.uncapped_target, resource) or amount(one.target, resource)
        least, most = amount(policy.min_allowed, resource), amount(policy.max_allowed, resource)
        if upper and target and (least is None or upper > least):
            (whole if most is None or upper < most else capped).append(_rounded_up(upper / target))
    if not whole:
        return BoundRatio(one.container_name, max(capped), capped=True) if capped else None
    smallest, largest = min(whole), max(whole + capped)
    return BoundRatio(one.container_name, smallest if largest < FAR_APART * smallest else largest)


def history_ratios(vpa: Vpa, checkpoints: Sequence[VpaCheckpoint]) -> tuple[BoundRatio, ...]:
    """The ratio of each container: by what the recommender saved of its history where that can be read and is as new as
    the recommendation, else by the bounds. Example: saved from 10:00 to 11:00 with 60 samples: 25."""
    found = {one.container: one for one in bound_ratios(vpa)}
    written = vpa.metadata.written_at()
    for one in checkpoints:
        name, saved = one.spec.container_name, one.status
        first, last, updated = saved.first_sample_start, saved.last_sample_start, saved.last_update_time
        if one.spec.vpa_object_name != vpa.metadata.name or first is None or last is None or updated is None:
            continue
        if name in found and (written is None or updated > written - SAVED_WITHIN):
            days = min((last - first) / DAY, saved.total_samples_count / MINUTES)
            found[name] = BoundRatio(name, _rounded_up(1 + 1 / days) if days > 0 else NO_HISTORY)
    return tuple(found.values())


def _rounded_up(ratio: float) -> float:
    """A ratio rounded up to a quarter of a doubling; 1 at least. Example: 1.125 is 1.19, 25 is 26.9."""
    step = math.ceil(STEPS * math.log2(max(ratio, 1)) - 1e-9)
    return round(2 ** (step / STEPS), 3)


def view_history(
    records: Sequence[TrustedHistory],
    ratios: Sequence[BoundRatio],
    min_history: dt.timedelta,
    clock: Clock,
) -> tuple[tuple[TrustedHistory, ...], dict[str, dt.datetime]]:
    """What is remembered of the containers whose bounds have these ratios, and until when the recommendation of each
    of them is not trusted to lower anything, by name."""
    known = {one.container: one for one in records}
    kept = tuple([_judged(known.get(one.container), one, min_history, clock) for one in ratios])
    held = {one.container: clock.held_until(one.short_since, min_history) for one in kept}
    return kept, {container: until for container, until in held.items() if until is not None}


def _judged(
    record: TrustedHistory | None, seen: BoundRatio, min_history: dt.timedelta, clock: Clock
) -> TrustedHistory:
    """What is remembered of one container from now on."""
    limit = _limit(seen, min_history)
    if record is None:
        return _record(seen, _began(seen, limit, clock) if seen.ratio > limit else None)
    if record.short_since is None:
        if seen.ratio >= JUMP * record.ratio or record.ratio <= limit < seen.ratio / 2:
            return _record(seen, _began(seen, limit, clock), record.ratio)
        # A history that grows lowers the ratio: written down each time it has halved.
        return record if seen.ratio * 2 > record.ratio else _record(seen)
    is_back = not seen.capped and seen.ratio <= limit and seen.ratio < JUMP * record.ratio
    if is_back or clock.held_until(record.short_since, min_history) is None:
        return _record(seen)
    return record


def _limit(seen: BoundRatio, min_history: dt.timedelta) -> float:
    """The largest ratio of a history that is long enough, rounded: of an hour 26.9, of a capped bound 10 at most."""
    limit = _rounded_up(1 + DAY / min_history) if min_history else math.inf
    return min(limit, JUMP) if seen.capped and min_history else limit


def _began(seen: BoundRatio, limit: float, clock: Clock) -> dt.datetime:
    """When a short history began: by its ratio where that tells, else now."""
    now = clock.stamp()
    return now - DAY / (seen.ratio - 1) if not seen.capped and seen.ratio > limit else now


def _record(
    seen: BoundRatio, short_since: dt.datetime | None = None, ratio: float | None = None
) -> TrustedHistory:
    return TrustedHistory(
        container=seen.container,
        ratio=seen.ratio if ratio is None else ratio,
        short_since=short_since,
    )
