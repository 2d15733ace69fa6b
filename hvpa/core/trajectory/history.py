"""What a joint decision must remember (DESIGN 5.4): the requests with which the path began, and the usual demand. It
stands in the status, under the vertical axis, and is bounded in size.

Usual demand is the mean of what the HPA measured. A measured value stands until the next one differs by more than
`MOVED_PERCENT`, and for `SAMPLE_EVERY` at least, so that there are few writes, and none at rest. Where no HPA is
configured, it is the VPA's target times the mean of the replica counts during which that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from hvpa.api.hvpa.status import UsualDemand, UsualReplicas, VerticalAxis
from hvpa.api.schema.fields import INT64_MAX
from hvpa.api.values.quantity import RESOURCES, Resource, format_resource
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.demand import Requests
from hvpa.core.trajectory.means import Mean, weight_since
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import FIRST_WEIGHT, MOVED_PERCENT, SAMPLE_EVERY
from hvpa.core.workload.containers import ContainerResource, amount, recommendations, request_now

_CLOSE: Final = 1e-6


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
    """Brings what is remembered up to the present, of these container resources."""

    def __init__(
        self, seen: ObservedState, clock: Clock, items: Sequence[ContainerResource], requests: Requests
    ) -> None:
        assert seen.workload is not None
        self.clock = clock
        self.items = {one.key: one for one in items}
        self.requests = requests
        self.replicas = seen.workload.spec.replicas
        vpa = seen.vpa.object
        self.since = vpa.metadata.creation_timestamp if vpa is not None else None

    def brought_up(
        self, known: Remembered, measured: Mapping[ResourceKey, int] | None, unmeasured: bool
    ) -> tuple[Remembered, dict[ResourceKey, int]]:
        """The record with the demand that is `measured` now (None: the last one still counts), and the usual demand. If
        a metric has no value (`unmeasured`), its last one still counts."""
        records = {ResourceKey(one.container, _resource(one)): one for one in known.demands}
        found = {key: one for key, one in records.items() if key in self.items}
        # What the VPA recommends nothing for, for a while, is not forgotten: its container is still there.
        idle = {key: one for key, one in records.items() if key not in self.items and key in known.requests}
        if measured is not None:
            new = {key: self._demand(key, size, found.get(key)) for key, size in measured.items()}
            found = found | new if unmeasured else new
        means = {
            key: Mean(one.mean, one.weight, one.time, one.present).in_steps for key, one in found.items()
        }
        usual = {key: math.ceil(self.clock.answer(mean) - _CLOSE) for key, mean in means.items()}
        kept = found | idle
        return Remembered(known.requests, known.first, tuple(kept[key] for key in sorted(kept))), usual

    def by_targets(self, known: Remembered) -> tuple[Remembered, dict[ResourceKey, int]]:
        """The same where no HPA is configured: VPA targets times the mean count."""
        counts = self._counts(known.counts)
        mean = self.clock.answer(_mean_of_counts(counts).in_steps)
        usual = {
            key: math.ceil(self.requests.work(key, one.target) * mean - _CLOSE)
            for key, one in self.items.items()
        }
        return Remembered(known.requests, known.first, known.demands, counts), usual

    def _seen_by_vpa(self, key: ResourceKey) -> int:
        """What the present pods need together by the VPA's target."""
        return self.replicas * self.requests.work(key, self.items[key].target)

    def _demand(self, key: ResourceKey, size: int, before: UsualDemand | None) -> UsualDemand:
        """The record with what is measured now. At first sight the mean is what the VPA has seen since it is there, at
        the present count, filled up with what is measured now.

        Example: the VPA is there for half an hour, 1787 s of weight, and its target calls for 800m; 1200m are measured.
        They fill the hour with 1813 s: (800m * 1787 + 1200m * 1813) / 3600 = 1001m.
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


def _mean_of_counts(one: UsualReplicas) -> Mean:
    """The mean of replica counts, each of which weighs as many samples as it has pods."""
    return Mean(one.mean, one.weight, one.time, one.replicas, float(max(1, one.replicas)))
