"""What a joint decision must remember (DESIGN 5.4, docs/decisions/0014): the requests with which the path began, and
what usual demand is reckoned from. It stands in the status, under the vertical axis, and is bounded in size.

Usual demand is the mean of what the HPA measured, where it measures; else the VPA's target times the mean of the
replica counts during which it was measured. A measured value stands until the next one differs by more than
`MOVED_PERCENT`, and for `SAMPLE_EVERY` at least, so that there are few writes, and none at rest. Where pods are resized
in place, the peak of memory is remembered as well: a steady load writes it some 30 times a day, as
less is left of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from hvpa.api.hvpa.status import UsualDemand, UsualReplicas, VerticalAxis
from hvpa.api.schema.fields import INT64_MAX
from hvpa.api.values.quantity import RESOURCES, Resource, format_resource
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.demand import Requests, Usual
from hvpa.core.trajectory.means import Mean, Peak, weight_since
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import ContainerResource, amount, recommendations, request_now

SAMPLE_EVERY: Final = dt.timedelta(minutes=5)
"""How long a measured demand stands for the present one, at least."""
MOVED_PERCENT: Final = 20
"""How far another demand must be from it to take its place."""
PEAK_MOVED_PERCENT: Final = 5
"""How far a measured demand must be above the peak that is left to be the next one."""
PEAKS_AFTER_OOM: Final = dt.timedelta(days=8)
"""For how long a container that ran out of memory has the peaks that the VPA knows, which forgets what is older
(`--memory-aggregation-interval-count`, 8 days): what happens once a day or a week ends it once."""
FIRST_WEIGHT: Final = 3600.0
"""What the first value weighs, in seconds, where the VPA has no history of its own: an hour."""


class Remembered(Struct, frozen=True):
    """What is known in a decision: `requests` as they are (a missing one counts as its limit, without one as what a
    LimitRange gave the pods, and as 0 without that), `first` as they were when the target was first seen, and the
    means."""

    requests: Mapping[ResourceKey, int]
    first: Mapping[ResourceKey, int]
    demands: tuple[UsualDemand, ...] = ()
    counts: UsualReplicas | None = None

    def kept(self, axis: VerticalAxis) -> VerticalAxis:
        """The axis with what is to be remembered; the very same one where it is there already."""
        base: dict[str, dict[str, str]] = {}
        for key, size in self.first.items():
            base.setdefault(key.container, {})[key.resource] = format_resource(key.resource, size)
        update = {"base": base, "usual_demand": self.demands, "usual_replicas": self.counts}
        if all(getattr(axis, name) == value for name, value in update.items()):
            return axis
        return axis.model_copy(update=update)


def first_seen(seen: ObservedState, resources: Mapping[str, ResourceRequirements]) -> Remembered:
    """The requests as they are, and as they were when each was first seen: where there was none, the VPA's target."""
    requests = {
        (key := ResourceKey(name, resource)): request_now(one, key, seen.pods)
        for name, one in resources.items()
        for resource in RESOURCES
    }
    targets = recommendations(seen.vpa.object) if seen.vpa.object is not None else {}
    first: dict[ResourceKey, int] = {}
    for key, request in requests.items():
        known = amount(seen.vertical.base.get(key.container, {}), key.resource)
        target = targets.get(key.container)
        size = known or request or (amount(target.target, key.resource) if target is not None else None)
        if size is not None:
            first[key] = size
    axis = seen.vertical
    return Remembered(requests, first, axis.usual_demand, axis.usual_replicas)


class Memory:
    """Brings what is remembered up to the present."""

    def __init__(
        self, seen: ObservedState, clock: Clock, items: Sequence[ContainerResource], requests: Requests
    ) -> None:
        assert seen.workload is not None and seen.spec is not None
        self.clock = clock
        self.with_peaks = seen.spec.update_strategy.in_place
        self.items = {one.key: one for one in items}
        self.requests = requests
        self.replicas = seen.workload.spec.replicas
        vpa = seen.vpa.object
        self.ran_out = {
            one.container
            for one in seen.vertical.overrides
            if clock.held_until(one.time, PEAKS_AFTER_OOM) is not None
        }
        self.since = vpa.metadata.creation_timestamp if vpa is not None else None

    def brought_up(
        self, known: Remembered, measured: Mapping[ResourceKey, int] | None, unmeasured: bool
    ) -> tuple[Remembered, Usual]:
        """What is to be remembered, and the means that usual demand is reckoned from, given what was `measured` now
        (None: nothing, and what was measured last still counts). Where a metric has no value (`unmeasured`), its last
        one still counts."""
        records = {ResourceKey(one.container, _resource(one)): one for one in known.demands}
        found = {key: one for key, one in records.items() if key in self.items}
        # What the VPA recommends nothing for, for a while, is not forgotten: its container is still there.
        idle = {key: one for key, one in records.items() if key not in self.items and key in known.requests}
        if measured is not None:
            new = {key: self._demand(key, size, found.get(key)) for key, size in measured.items()}
            found = found | new if unmeasured else new
        counts = self._counts(known.counts) if self.items else None
        means = {
            key: self._now(Mean(one.mean, one.weight, one.time, one.present)) for key, one in found.items()
        }
        peaks = {
            key: self.clock.answer(peak.in_steps)
            for key, one in found.items()
            if (peak := _peak_of(one)) is not None and key.container not in self.ran_out
        }
        usual = Usual(means, 0.0 if counts is None else self._now(_mean_of_counts(counts)), peaks)
        kept = found | idle
        return Remembered(
            known.requests, known.first, tuple(kept[key] for key in sorted(kept)), counts
        ), usual

    def _now(self, mean: Mean) -> float:
        return self.clock.answer(mean.in_steps)

    def _demand(self, key: ResourceKey, size: int, before: UsualDemand | None) -> UsualDemand:
        """The record with what is measured now."""
        found = self._with_mean(key, size, before)
        if key.resource != "memory" or not self.with_peaks:
            return found
        known = None if before is None else _peak_of(before)
        if known is None:
            peak = Peak(max(size, self._seen_by_vpa(key)), self.clock.stamp())
        elif size * 100 > self.clock.answer(known.in_steps) * (100 + PEAK_MOVED_PERCENT):
            peak = Peak(size, self.clock.stamp())
        else:
            peak = known
        if peak == _peak_of(found):
            return found
        return found.model_copy(update={"peak": min(peak.value, INT64_MAX), "peak_time": peak.time})

    def _seen_by_vpa(self, key: ResourceKey) -> int:
        """What the present pods need together by the VPA's target."""
        return self.replicas * self.requests.work(key, self.items[key].target)

    def _with_mean(self, key: ResourceKey, size: int, before: UsualDemand | None) -> UsualDemand:
        """The record with its mean. At first sight that is what the VPA has seen since it is there, at the present
        count, filled up with what is measured now.

        Example: the VPA is there for half an hour, 1787 s of weight, and its target calls for 800m; 1200m are measured.
        They fill the hour with 1813 s: (800m * 1787 + 1200m * 1813) / 3600 = 1001m (docs/decisions/0014, 4).
        """
        if before is None:
            now = self.clock.stamp()
            weight = weight_since(self.since, now)
            fill = max(0.0, FIRST_WEIGHT - weight)
            seen = self._seen_by_vpa(key)
            mean = Mean((seen * weight + size * fill) / (weight + fill), weight + fill, now, size)
        else:
            is_near = abs(size - before.present) * 100 <= before.present * MOVED_PERCENT
            if is_near or self.clock.held_until(before.time, SAMPLE_EVERY) is not None:
                return before
            mean = Mean(before.mean, before.weight, before.time, before.present).at(self.clock.stamp())
        return UsualDemand(
            container=key.container,
            resource=key.resource,
            mean=min(round(mean.mean), INT64_MAX),
            weight=round(mean.weight),
            time=mean.time,
            present=min(size, INT64_MAX),
            peak=None if before is None else before.peak,
            peak_time=None if before is None else before.peak_time,
        )

    def _counts(self, before: UsualReplicas | None) -> UsualReplicas:
        if before is None:
            now = self.clock.stamp()
            weight = self.replicas * max(FIRST_WEIGHT, weight_since(self.since, now))
            mean = Mean(self.replicas, weight, now, self.replicas)
        elif before.replicas == self.replicas:
            return before
        else:
            mean = _mean_of_counts(before).at(self.clock.stamp())
        return UsualReplicas(
            mean=round(mean.mean, 4), weight=round(mean.weight), time=mean.time, replicas=self.replicas
        )


def _resource(one: UsualDemand) -> Resource:
    return "cpu" if one.resource == "cpu" else "memory"


def _peak_of(one: UsualDemand) -> Peak | None:
    return None if one.peak is None or one.peak_time is None else Peak(one.peak, one.peak_time)


def _mean_of_counts(one: UsualReplicas) -> Mean:
    """The mean of replica counts, each of which weighs as many samples as it has pods."""
    return Mean(one.mean, one.weight, one.time, one.replicas, float(max(1, one.replicas)))
