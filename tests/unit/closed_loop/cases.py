"""Workloads, Hvpas and loads that Hypothesis chooses from. What a workload needs stays within what it can have: at
maxReplicas, and in requests far below `minChange`'s defaults, other promises hold than those that are tested here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from tests.unit.closed_loop import hvpas
from tests.unit.closed_loop.loads import Load
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Fate, Shape, Use

BLENDS = ("Additive", "Trajectory")
TARGETS = ("Utilization", "AverageValue", "ContainerResource")


def examples(count: int) -> settings:
    """So many examples; thirty times as many where HYPOTHESIS_PROFILE says `search`. Each takes a tenth of a second, so
    that a counterexample is made smaller then only."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "search":
        return settings(max_examples=count * 30)
    return settings(max_examples=count, phases=(Phase.explicit, Phase.generate))


@dataclass(frozen=True)
class Case:
    """A workload under a load of `load` millicores, and how it is to be scaled."""

    shape: Shape
    blend: str
    weight: float
    target: str
    percent: int
    """What the HPA wants of the requests to be used, or of what they are at first."""
    load: int
    vpa: tuple[tuple[str, Any], ...] = ()
    hpa: tuple[tuple[str, Any], ...] = ()

    @property
    def metric(self) -> dict[str, Any]:
        first = self.shape.mine[0]
        if self.target == "ContainerResource":
            return hvpas.utilization(self.percent, first.name)
        if self.target == "Utilization":
            return hvpas.utilization(self.percent)
        requested = sum(use.cpu or 100 for use in self.shape.uses)
        idle = sum(use.base for use in self.shape.uses)
        return hvpas.average_value(max(requested * self.percent // 100, 2 * idle))

    def loop(self, load: Load, **changes: Any) -> Loop:
        """The loop over this case."""
        spec = hvpas.spec(
            self.shape, self.blend, self.weight, self.metric, dict(self.hpa), dict(self.vpa), **changes
        )
        return Loop(spec, self.shape, load)

    def loop_with(self, load: Load, fate: Fate) -> Loop:
        """The same, where not all pods become ready."""
        loop = self.loop(load)
        return Loop(loop.spec, self.shape, load, fate)


def plain(
    *uses: Use, blend: str, weight: float = 50, percent: int = 60, load: int = 2000, **rest: Any
) -> Case:
    """A case with CPU utilization as target; one container unless others are given."""
    shape = Shape(uses or (Use(),), **rest)
    return Case(shape, blend, weight, "Utilization", percent, load)


def main_containers() -> st.SearchStrategy[Use]:
    return st.builds(
        Use,
        name=st.just("app"),
        cpu=st.sampled_from([250, 500, 1000]),
        memory=st.sampled_from([256 * MIB, 1024 * MIB]),
        base=st.sampled_from([0, 0, 40]),
        memory_base=st.sampled_from([0, 150 * MIB]),
        memory_share=st.sampled_from([0, 200 * MIB, 1024 * MIB]),
    )


def other_containers(name: str, places: tuple[str, ...]) -> st.SearchStrategy[Use]:
    return st.builds(
        Use,
        name=st.just(name),
        cpu=st.sampled_from([None, 50, 100, 500]),
        memory=st.sampled_from([64 * MIB, 512 * MIB]),
        share=st.sampled_from([0.0, 0.1, 0.25]),
        base=st.sampled_from([5, 20]),
        memory_base=st.sampled_from([30 * MIB, 200 * MIB]),
        memory_share=st.just(0),
        place=st.sampled_from(places),
        governed=st.booleans(),
    )


BOTH = ("cpu", "memory")
WHOLE: tuple[dict[str, str] | None, ...] = (None, None, {"cpu": "3", "memory": "4Gi"})
"""Requests of pods as a whole, as large as those of the largest containers together."""


@st.composite
def shapes(draw: st.DrawFn, places: tuple[str, ...], controlled: tuple[str, ...]) -> Shape:
    uses = [draw(main_containers())]
    for name in ("proxy", "agent")[: draw(st.integers(0, 2))]:
        uses.append(draw(other_containers(name, places)))
    whole = draw(st.sampled_from(WHOLE)) if places != ("template",) else None
    return Shape(tuple(uses), draw(st.integers(1, 8)), whole, controlled)


ALL_PLACES = ("template", "native", "injected")


@st.composite
def cases(
    draw: st.DrawFn,
    blend: str,
    targets: tuple[str, ...] = TARGETS,
    places: tuple[str, ...] = ALL_PLACES,
    weights: tuple[int, ...] = (0, 30, 50, 80, 100),
    controlled: tuple[str, ...] = BOTH,
) -> Case:
    """A workload that needs two to eight replicas as it begins, or fewer where pods have requests as a whole."""
    shape = draw(shapes(places, controlled))
    percent = draw(st.sampled_from([50, 60, 80]))
    request = shape.mine[0].cpu or 100
    load = draw(st.integers(2, 8)) * (request * percent // 100 - 40) - 10
    return Case(shape, blend, draw(st.sampled_from(weights)), draw(st.sampled_from(targets)), percent, load)
