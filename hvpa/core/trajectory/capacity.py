"""What the pods that there are serve, with the sizes that they have (DESIGN 5.4, sentences 5 and 9). Neither the
template nor what was decided counts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hvpa.core.model import PodShape
from hvpa.core.path.path import Sizes
from hvpa.core.recommenders.estimate import MICRO
from hvpa.core.trajectory.demand import MetricRequirement, Requests, serves
from hvpa.core.values.arithmetic import ceil_div


class Capacity(Struct, frozen=True):
    """The workload's pods by size. A pod that `refuses` its resize (the kubelet deferred it, or can't do it) keeps what
    it has. `stays_mixed`: the smaller pods are never replaced. A Service gives each pod the same load, so all serve
    as much as the smallest."""

    shapes: Sequence[PodShape] = ()
    stays_mixed: bool = False

    def needed(self, one: MetricRequirement, sizes: Sizes, requests: Requests, *, resized: bool) -> int:
        """How many pods serve a requirement: those that there are, and new ones of these sizes. `resized`: pods that
        don't refuse have these sizes in a moment; else they have what they have, however many of them there will be.

        Example: 4 pods of 1 core each and new ones of 2 serve 7 cores with 6 pods; 3 cores with 3."""
        if not one.keys:
            return ceil_div(one.pods, MICRO)
        new = max(1, serves(one, sizes, requests))
        there = self._smallest_first(one, sizes, requests, resized)
        if there and self.stays_mixed:
            return ceil_div(one.required, max(1, min(new, there[0][0])))
        counted = served = 0
        for each, count in there:
            if served + each * count >= one.required:
                return counted + ceil_div(one.required - served, max(1, each))
            counted, served = counted + count, served + each * count
        return counted + ceil_div(one.required - served, new)

    def _smallest_first(
        self, one: MetricRequirement, sizes: Sizes, requests: Requests, resized: bool
    ) -> list[tuple[int, int]]:
        """What pods serve of a requirement, the smallest first, and how many serve that: it is not ours to choose which
        pods go. One that is to become smaller counts as the smaller one."""
        found = []
        for shape in self.shapes:
            have = {key: shape.sizes.get(key.container, {}).get(key.resource, sizes[key]) for key in one.keys}
            if not shape.refuses:
                have = {key: sizes[key] if resized else min(size, sizes[key]) for key, size in have.items()}
            found.append((serves(one, have, requests), shape.count))
        return sorted(found)
