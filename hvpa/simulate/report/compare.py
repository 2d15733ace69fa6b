"""How the policies of a scenario compare: what each costs, how that differs from a baseline, and which beats which.

A policy beats another one where it costs no more and leaves no more demand unmet, and is better in one of both. Cost
alone says little: nothing is cheaper than a workload that is too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.api.values.prices import Prices
from hvpa.simulate.model import PolicyKind, PolicyResult, SimulationResult

BASELINES: Final[tuple[PolicyKind, ...]] = ("HPA+VPA", "HPA", "VPA", "Fixed", "Hvpa")
"""What others are compared with by default: the first policy of the first of these kinds that the scenario has."""
ALIKE_COST: Final = 3
"""Costs are alike whose shares of the dearest policy's cost have these decimals in common: a thousandth of it."""
ALIKE_UNMET: Final = 4
"""Unmet demands are alike whose shares of the demand have these decimals in common: 0.01 %."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a policy stands among the others. `cost` is that of its requests, `difference` how much more than the
    baseline's that is, as a share of it: -0.12 is 12 % less. None for the baseline itself, and where it costs nothing.
    `alike_cost` and `unmet` (a share of the demand) are rounded to what counts as a difference; `beaten_by` are the
    places of the policies that beat this one."""

    policy: PolicyResult
    cost: float
    difference: float | None
    alike_cost: float
    unmet: float
    beaten_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario's result under prices. `baseline` is the place of the policy that the others are compared with, None
    without another one."""

    result: SimulationResult
    prices: Prices
    baseline: int | None
    standings: tuple[Standing, ...]

    @property
    def unbeaten(self) -> list[int]:
        """The places of the policies that nothing beats."""
        return [at for at, one in enumerate(self.standings) if not one.beaten_by]


def compare(result: SimulationResult, prices: Prices, baseline: str | None = None) -> Comparison:
    """Compare a result's policies, at these prices. `baseline` names the policy to compare with; where the scenario
    has none of this name, it is chosen by `BASELINES`."""
    policies = result.policies
    costs = [prices.cost(one.totals.core_hours_requested, one.totals.gib_hours_requested) for one in policies]
    dearest = max(costs, default=0.0) or 1.0
    points = [
        (round(cost / dearest, ALIKE_COST), round(one.totals.unmet_demand_share, ALIKE_UNMET))
        for cost, one in zip(costs, policies, strict=True)
    ]
    base = _baseline(policies, baseline)
    return Comparison(
        result,
        prices,
        base,
        tuple(
            Standing(
                policy=policy,
                cost=costs[at],
                difference=_difference(costs, base, at),
                alike_cost=points[at][0],
                unmet=points[at][1],
                beaten_by=tuple(other for other, point in enumerate(points) if _beats(point, points[at])),
            )
            for at, policy in enumerate(policies)
        ),
    )


def _difference(costs: Sequence[float], base: int | None, at: int) -> float | None:
    if base is None or base == at or not costs[base]:
        return None
    return costs[at] / costs[base] - 1


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _baseline(policies: Sequence[PolicyResult], name: str | None) -> int | None:
    if len(policies) < 2:
        return None
    named = [at for at, one in enumerate(policies) if one.name == name]
    return (named or sorted(range(len(policies)), key=lambda at: BASELINES.index(policies[at].kind)))[0]
