"""The record that a joint decision keeps in the status, under the vertical axis (DESIGN 5.4): the requests at the start
of the path, and the usual demand. It is bounded in size.

Usual demand is the mean of the HPA's measurements. A measured value counts until another measurement differs by more
than `MOVED_PERCENT`, and for at least `SAMPLE_EVERY`, so writes are rare, and there are none at rest. If no HPA is
configured, usual demand is the VPA's target × the mean of the replica counts while it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from hvpa.api.hvpa.status import UsualDemand, UsualReplicas, VerticalAxis
from hvpa.api.schema.fields import INT64_MAX
from hvpa.api.values.quantity import Resource
from hvpa.core.axes.first_requests import as_base, first_requests, present_requests
from hvpa.core.model import ObservedState, ResourceRequirements, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.demand import Requests
from hvpa.core.trajectory.means import Mean, weight_since
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import FIRST_WEIGHT, MOVED_PERCENT, SAMPLE_EVERY
from hvpa.core.workload.containers import ContainerResource

_CLOSE: Final = 1e-6


class Remembered(Struct, frozen=True):
    """The record as a decision uses it."""

    requests: Mapping[ResourceKey, int]
    """The present requests."""
    first: Mapping[ResourceKey, int]
    """The requests when the target was first seen."""
    demands: tuple[UsualDemand, ...] = ()
    """The means of the demand."""
    counts: UsualReplicas | None = None
    """The mean of the replica counts."""

    def kept(self, axis: VerticalAxis) -> VerticalAxis:
        """Return the axis with this record; the same object if it already has it."""
        update = {"base": as_base(self.first), "usual_demand": self.demands, "usual_replicas": self.counts}
        if all(getattr(axis, name) == value for name, value in update.items()):
            return axis
        return axis.model_copy(update=update)


def first_seen(observation: ObservedState, resources: Mapping[str, ResourceRequirements]) -> Remembered:
    """Return the record in the status, with the present requests of these containers and the first ones."""
    requests = present_requests(observation, resources)
    first = first_requests(observation, requests)
    axis = observation.vertical
    return Remembered(requests, first, axis.usual_demand, axis.usual_replicas)


class DemandHistory:
    """Updates the record of these container resources with the current measurement."""

    def __init__(
        self, observation: ScalableState, clock: Clock, items: Sequence[ContainerResource], requests: Requests
    ) -> None:
        self.clock = clock
        self.items = {item.key: item for item in items}
        self.requests = requests
        self.replicas = observation.workload.spec.replicas
        vpa = observation.vpa.object
        self.since = vpa.metadata.creation_timestamp if vpa is not None else None

    def updated(
        self, known: Remembered, measured: Mapping[ResourceKey, int] | None, unmeasured: bool
    ) -> tuple[Remembered, dict[ResourceKey, int]]:
        """Return the updated record and the usual demand.

        If `measured` is None, the last measurement still counts. If a metric has no value (`unmeasured`), its own last
        value still counts.
        """
        records = {ResourceKey(record.container, _resource(record)): record for record in known.demands}
        active = {key: record for key, record in records.items() if key in self.items}
        # The record outlasts a gap in the VPA's recommendation, as long as the container exists.
        idle = {
            key: record for key, record in records.items() if key not in self.items and key in known.requests
        }
        if measured is not None:
            new = {key: self._demand(key, size, active.get(key)) for key, size in measured.items()}
            active = active | new if unmeasured else new
        means = {
            key: Mean(record.mean, record.weight, record.time, record.present).in_steps
            for key, record in active.items()
        }
        usual = {key: math.ceil(self.clock.answer(mean) - _CLOSE) for key, mean in means.items()}
        kept = active | idle
        return Remembered(known.requests, known.first, tuple(kept[key] for key in sorted(kept))), usual

    def by_targets(self, known: Remembered) -> tuple[Remembered, dict[ResourceKey, int]]:
        """Return the same if no HPA is configured: VPA targets × the mean count."""
        counts = self._counts(known.counts)
        mean = self.clock.answer(_mean_of_counts(counts).in_steps)
        usual = {
            key: math.ceil(self.requests.work(key, item.target) * mean - _CLOSE)
            for key, item in self.items.items()
        }
        return Remembered(known.requests, known.first, known.demands, counts), usual

    def _seen_by_vpa(self, key: ResourceKey) -> int:
        """Return the demand of all present pods by the VPA's target."""
        return self.replicas * self.requests.work(key, self.items[key].target)

    def _demand(self, key: ResourceKey, size: int, before: UsualDemand | None) -> UsualDemand:
        """Return the record with the current measurement.

        The first mean starts from the demand that the VPA has seen since its creation, at the present count. The
        current measurement fills it up to an hour of weight. Example: the VPA is half an hour old, a weight of 1787 s,
        and its target gives a demand of 800m; 1200m are measured. They get the remaining 1813 s: (800m × 1787 + 1200m ×
        1813) / 3600 = 1001m.
        """
        if before is None:
            now = self.clock.stamp()
            weight = weight_since(self.since, now)
            fill = max(0.0, FIRST_WEIGHT - weight)
            by_vpa = self._seen_by_vpa(key)
            mean = Mean((by_vpa * weight + size * fill) / (weight + fill), weight + fill, now, size)
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


def _resource(record: UsualDemand) -> Resource:
    return "cpu" if record.resource == "cpu" else "memory"


def _mean_of_counts(record: UsualReplicas) -> Mean:
    """Return the mean of the replica counts. Each count weighs as many samples as it has pods."""
    return Mean(record.mean, record.weight, record.time, record.replicas, float(max(1, record.replicas)))
