"""Compares the policies of a scenario, in figures and in words: their costs, the differences from a baseline, and which
policies beat which.

A policy beats another if it costs no more and leaves no more demand unmet, and is better in cost or unmet demand. Cost
alone is a poor measure: a workload that is too small is always cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.api.values.duration import DAY
from hvpa.api.values.prices import Prices, money
from hvpa.api.values.quantity import CPU
from hvpa_lab.simulate.model import PolicyKind, PolicyResult, Scenario, SimulationResult
from hvpa_lab.simulate.report.text import amount, listed, percent, plain

BASELINES: Final[tuple[PolicyKind, ...]] = ("HPA+VPA", "HPA", "VPA", "Fixed", "Hvpa")
"""The default baseline is the first policy of the first of these kinds that the scenario has."""
ALIKE_COST: Final = 3
"""Decimals of a cost's share of the highest cost: smaller differences than a thousandth do not count."""
ALIKE_UNMET: Final = 4
"""Decimals of unmet demand's share of the demand: smaller differences than 0.01 % do not count."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A policy's result compared with the others."""

    policy: PolicyResult
    cost: float
    """Cost of the requests, at the comparison's prices."""
    difference: float | None
    """Difference from the baseline's cost, as a share of it: -0.12 is 12 % less. It is None for the baseline, and if
    the baseline costs nothing."""
    alike_cost: float
    """Cost as a share of the highest cost, rounded to `ALIKE_COST` decimals."""
    unmet: float
    """Unmet demand as a share of the demand, rounded to `ALIKE_UNMET` decimals."""
    beaten_by: tuple[int, ...]
    """Indices of the policies that beat this policy."""

    @property
    def name(self) -> str:
        """The policy's name, safe to print."""
        return plain(self.policy.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario's policies compared at given prices."""

    result: SimulationResult
    prices: Prices
    baseline: int | None
    """Index of the policy that the others are compared with; None if there are no others."""
    standings: tuple[Standing, ...]

    @property
    def unbeaten(self) -> list[int]:
        """Indices of the policies that no other policy beats."""
        return [at for at, one in enumerate(self.standings) if not one.beaten_by]


def compare(result: SimulationResult, prices: Prices, baseline: str | None = None) -> Comparison:
    """The comparison of a result's policies at these prices. `baseline` is the name of the policy to compare with; if
    no policy has this name, `BASELINES` decides."""
    policies = result.policies
    costs = [prices.cost(one.totals.core_hours_requested, one.totals.gib_hours_requested) for one in policies]
    dearest = max(costs, default=0.0) or 1.0
    points = [
        (round(cost / dearest, ALIKE_COST), round(one.totals.unmet_demand_share, ALIKE_UNMET))
        for cost, one in zip(costs, policies, strict=True)
    ]
    base = _baseline(policies, baseline)
    standings = tuple(
        Standing(
            policy,
            cost,
            None if base is None or base == at or not costs[base] else cost / costs[base] - 1,
            *points[at],
            beaten_by=tuple(
                other
                for other, point in enumerate(points)
                if point != points[at] and point[0] <= points[at][0] and point[1] <= points[at][1]
            ),
        )
        for at, (policy, cost) in enumerate(zip(policies, costs, strict=True))
    )
    return Comparison(result, prices, base, standings)


def _baseline(policies: Sequence[PolicyResult], name: str | None) -> int | None:
    if len(policies) < 2:
        return None
    named = [at for at, one in enumerate(policies) if one.name == name]
    return (named or sorted(range(len(policies)), key=lambda at: BASELINES.index(policies[at].kind)))[0]


# --- in words ---------------------------------------------------------------------------------------------------
def caveats(scenario: Scenario) -> tuple[str, ...]:
    """A note if CPU requests that are too small have no cost in this scenario: pods may use any free CPU of a node."""
    if scenario.nodes.headroom is not None:
        return ()
    limited = all(CPU in one.limits for one in scenario.workload.containers)
    return (
        "nodes.headroom is not set: pods use CPU beyond their requests for free, "
        f"{'up to their limits' if limited else 'as much as their node has'}. "
        "A policy whose requests are too small looks better here than it is.",
    )


def conclusion(comparison: Comparison) -> list[str]:
    """A sentence for each policy other than the baseline, then a sentence with the unbeaten policies. A single policy
    has only a sentence with its figures."""
    standings, baseline = comparison.standings, comparison.baseline
    if baseline is None:
        return [f"{one.name} costs {money(one.cost)} and leaves {_unmet(one)}." for one in standings]
    base = standings[baseline]
    days = (comparison.result.duration - comparison.result.warm_up) / DAY
    best = [
        f"{one.name} ({money(one.cost)}, {_unmet_share(one)} unmet)" for one in standings if not one.beaten_by
    ]
    these = "this one" if len(best) == 1 else "these"
    return [
        *(_against(one, base, days) for one in standings if one is not base),
        f"No policy beats {these} on cost and unmet demand together: {'; '.join(best)}.",
    ]


def _against(one: Standing, base: Standing, days: float) -> str:
    """The sentence that compares a policy with the baseline: cost, unmet demand, and restarts if they differ. It has
    "but" if the cost is lower and more demand is unmet, or the reverse."""
    is_alike = one.alike_cost == base.alike_cost
    if one.difference is None or is_alike:
        cost = "costs as much as"
    elif one.difference >= 1:
        cost = f"costs {amount(one.difference + 1, 1)} times as much as"
    else:
        cost = f"costs {_share(abs(one.difference))} {'less' if one.difference < 0 else 'more'} than"
    if one.unmet == base.unmet:
        unmet = f"at equal unmet demand ({_unmet_share(one)})"
    else:
        is_dearer = not is_alike and one.cost > base.cost
        link = "but" if (one.unmet > base.unmet) != is_dearer else "and"
        unmet = f"{link} leaves {_unmet(one)} instead of {_unmet_share(base)}"
    return f"{one.name} {cost} {base.name} {unmet}{_restarts(one, base, days)}{_beaten(one)}."


def _restarts(one: Standing, base: Standing, days: float) -> str:
    own, others = one.policy.totals.restarts, base.policy.totals.restarts
    if own == others:
        return ""
    if days < 1:
        return f", with {own:,} restarts instead of {others:,}"
    return f", with {amount(own / days, 1)} restarts a day instead of {amount(others / days, 1)}"


def _beaten(one: Standing) -> str:
    numbers = [str(at + 1) for at in one.beaten_by]
    return f"; {listed(numbers)} beat{'s' * (len(numbers) == 1)} it" if numbers else ""


def _unmet(one: Standing) -> str:
    return f"{_unmet_share(one)} of the demand unmet" if one.unmet else "no demand unmet"


def _unmet_share(one: Standing) -> str:
    return _share(one.policy.totals.unmet_demand_share) if one.unmet else "none"


def _share(share: float) -> str:
    return f"{percent(share, 0 if share >= 0.1 else 1 if share >= 0.01 else 2)} %"
