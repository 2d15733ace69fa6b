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
from hvpa_lab.simulate.report.text import grouped_number, listed, percent_of_share, plain_text

BASELINES: Final[tuple[PolicyKind, ...]] = ("HPA+VPA", "HPA", "VPA", "Fixed", "Hvpa")
"""The default baseline is the first policy of the first of these kinds that the scenario has."""
ALIKE_COST: Final = 3
"""Decimals of a cost's share of the highest cost: smaller differences than a thousandth do not count."""
ALIKE_UNMET: Final = 4
"""Decimals of unmet demand's share of the demand: smaller differences than 0.01 % do not count."""


@dataclass(frozen=True, slots=True)
class PolicyRank:
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
        return plain_text(self.policy.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario's policies compared at given prices."""

    result: SimulationResult
    prices: Prices
    baseline: int | None
    """Index of the policy that the others are compared with; None if there are no others."""
    standings: tuple[PolicyRank, ...]

    @property
    def unbeaten(self) -> list[int]:
        """Indices of the policies that no other policy beats."""
        return [at for at, standing in enumerate(self.standings) if not standing.beaten_by]


def compare(result: SimulationResult, prices: Prices, baseline: str | None = None) -> Comparison:
    """The comparison of a result's policies at these prices. `baseline` is the name of the policy to compare with; if
    no policy has this name, `BASELINES` decides."""
    policies = result.policies
    costs = [
        prices.cost(policy.totals.core_hours_requested, policy.totals.gib_hours_requested)
        for policy in policies
    ]
    dearest = max(costs, default=0.0) or 1.0
    points = [
        (round(cost / dearest, ALIKE_COST), round(policy.totals.unmet_demand_share, ALIKE_UNMET))
        for cost, policy in zip(costs, policies, strict=True)
    ]
    base = _baseline(policies, baseline)
    standings = tuple(
        PolicyRank(
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
    named = [at for at, policy in enumerate(policies) if policy.name == name]
    return (named or sorted(range(len(policies)), key=lambda at: BASELINES.index(policies[at].kind)))[0]


# --- in words ---------------------------------------------------------------------------------------------------
def caveats(scenario: Scenario) -> tuple[str, ...]:
    """A note if CPU requests that are too small have no cost in this scenario: pods may use any free CPU of a node."""
    if scenario.nodes.headroom is not None:
        return ()
    limited = all(CPU in container.limits for container in scenario.workload.containers)
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
        return [
            f"{standing.name} costs {money(standing.cost)} and leaves {_unmet(standing)}."
            for standing in standings
        ]
    base = standings[baseline]
    days = (comparison.result.duration - comparison.result.warm_up) / DAY
    best = [
        f"{standing.name} ({money(standing.cost)}, {_unmet_share(standing)} unmet)"
        for standing in standings
        if not standing.beaten_by
    ]
    these = "this one" if len(best) == 1 else "these"
    return [
        *(_against(standing, base, days) for standing in standings if standing is not base),
        f"No policy beats {these} on cost and unmet demand together: {'; '.join(best)}.",
    ]


def _against(standing: PolicyRank, base: PolicyRank, days: float) -> str:
    """The sentence that compares a policy with the baseline: cost, unmet demand, and restarts if they differ. It has
    "but" if the cost is lower and more demand is unmet, or the reverse."""
    is_alike = standing.alike_cost == base.alike_cost
    if standing.difference is None or is_alike:
        cost = "costs as much as"
    elif standing.difference >= 1:
        cost = f"costs {grouped_number(standing.difference + 1, 1)} times as much as"
    else:
        cost = (
            f"costs {_share(abs(standing.difference))} {'less' if standing.difference < 0 else 'more'} than"
        )
    if standing.unmet == base.unmet:
        unmet = f"at equal unmet demand ({_unmet_share(standing)})"
    else:
        is_dearer = not is_alike and standing.cost > base.cost
        link = "but" if (standing.unmet > base.unmet) != is_dearer else "and"
        unmet = f"{link} leaves {_unmet(standing)} instead of {_unmet_share(base)}"
    return f"{standing.name} {cost} {base.name} {unmet}{_restarts(standing, base, days)}{_beaten(standing)}."


def _restarts(standing: PolicyRank, base: PolicyRank, days: float) -> str:
    restarts, base_restarts = standing.policy.totals.restarts, base.policy.totals.restarts
    if restarts == base_restarts:
        return ""
    if days < 1:
        return f", with {restarts:,} restarts instead of {base_restarts:,}"
    often, base_often = grouped_number(restarts / days, 1), grouped_number(base_restarts / days, 1)
    return f", with {often} restarts a day instead of {base_often}"


def _beaten(standing: PolicyRank) -> str:
    numbers = [str(at + 1) for at in standing.beaten_by]
    return f"; {listed(numbers)} beat{'s' * (len(numbers) == 1)} it" if numbers else ""


def _unmet(standing: PolicyRank) -> str:
    return f"{_unmet_share(standing)} of the demand unmet" if standing.unmet else "no demand unmet"


def _unmet_share(standing: PolicyRank) -> str:
    return _share(standing.policy.totals.unmet_demand_share) if standing.unmet else "none"


def _share(share: float) -> str:
    return f"{percent_of_share(share, 0 if share >= 0.1 else 1 if share >= 0.01 else 2)} %"
