"""How much the present pods serve with their present sizes (DESIGN 5.4, sentences 5 and 9). Neither the template nor
the decided size counts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hvpa.core.model import PodShape
from hvpa.core.path.path import Sizes
from hvpa.core.recommenders.estimate import MICRO
from hvpa.core.trajectory.demand import MetricRequirement, Requests, serves
from hvpa.core.values.arithmetic import ceil_div


class Capacity(Struct, frozen=True):
    """The workload's pods by size. A pod that `refuses` its resize (the kubelet deferred it, or can't do it) keeps its
    size."""

    shapes: Sequence[PodShape] = ()
    stays_mixed: bool = False
    """Whether the smaller pods are never replaced. A Service gives each pod the same load, so every pod then counts as
    the smallest."""

    def needed(
        self, requirement: MetricRequirement, sizes: Sizes, requests: Requests, *, resized: bool
    ) -> int:
        """Return how many pods serve a requirement: present pods first, then new pods of these sizes.

        `resized`: pods that don't refuse will soon have these sizes; otherwise each pod counts with its present size,
        however many pods the result has.

        Example: 4 pods of 1 core each, and new pods of 2 cores: 7 cores need 4 + 2 = 6 pods, and 3 cores need 3.
        """
        if not requirement.keys:
            return ceil_div(requirement.pods, MICRO)
        new = max(1, serves(requirement, sizes, requests))
        serving = self._smallest_first(requirement, sizes, requests, resized)
        if serving and self.stays_mixed:
            return ceil_div(requirement.required, max(1, min(new, serving[0][0])))
        counted = served = 0
        for each, count in serving:
            if served + each * count >= requirement.required:
                return counted + ceil_div(requirement.required - served, max(1, each))
            counted, served = counted + count, served + each * count
        return counted + ceil_div(requirement.required - served, new)

    def _smallest_first(
        self, requirement: MetricRequirement, sizes: Sizes, requests: Requests, resized: bool
    ) -> list[tuple[int, int]]:
        """Return how much pods serve of a requirement, and how many pods serve that much, smallest first: HVPA does not
        choose which pods are removed. A pod that will become smaller counts with the smaller size."""
        counts = []
        for shape in self.shapes:
            have = {
                key: shape.sizes.get(key.container, {}).get(key.resource, sizes[key])
                for key in requirement.keys
            }
            if not shape.refuses:
                have = {key: sizes[key] if resized else min(size, sizes[key]) for key, size in have.items()}
            counts.append((serves(requirement, have, requests), shape.count))
        return sorted(counts)
