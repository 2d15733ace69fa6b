"""What follows from a comparison, in words: a sentence per policy against the baseline, then which nothing beats."""

from __future__ import annotations

from typing import Final

from hvpa.api.values.prices import money
from hvpa.api.values.quantity import CPU
from hvpa.simulate.model import Scenario
from hvpa.simulate.report.compare import Comparison, Standing
from hvpa.simulate.report.text import amount, listed, percent, plain

DAY: Final = 86400.0
TWICE: Final = 2.0
"""From this multiple on, a cost is written as one."""


def caveats(scenario: Scenario) -> tuple[str, ...]:
    """A note where the scenario lets CPU requests that are too small cost nothing: pods may use what their node has."""
    if scenario.nodes.headroom is not None:
        return ()
    limited = all(CPU in one.limits for one in scenario.workload.containers)
    return (
        "nodes.headroom is not set: pods use CPU beyond their requests for free, "
        f"{'up to their limits' if limited else 'as much as their node has'}. "
        "A policy whose requests are too small looks better here than it is.",
    )


def conclusion(comparison: Comparison) -> list[str]:
    """The sentences, the most important ones first; one where there is a single policy, none without any."""
    standings, baseline = comparison.standings, comparison.baseline
    if baseline is None:
        return [_alone(one) for one in standings]
    base = standings[baseline]
    days = (comparison.result.duration - comparison.result.warm_up) / DAY
    return [
        *(_against(one, base, days) for at, one in enumerate(standings) if at != baseline),
        _unbeaten(comparison),
    ]


def _alone(one: Standing) -> str:
    return f"{_name(one)} costs {money(one.cost)} and leaves {_unmet(one)}."


def _against(one: Standing, base: Standing, days: float) -> str:
    """One policy beside the baseline: cost, unmet demand, and restarts where they differ."""
    rounded_alike = one.alike_cost == base.alike_cost
    if one.difference is None or rounded_alike:
        cost = "costs as much as"
    elif one.difference >= TWICE - 1:
        cost = f"costs {amount(one.difference + 1, 1)} times as much as"
    else:
        cost = f"costs {_share(abs(one.difference))} {'less' if one.difference < 0 else 'more'} than"
    dearer = not rounded_alike and one.cost > base.cost
    rest = _restarts(one, base, days) + _beaten(one)
    return f"{_name(one)} {cost} {_name(base)} {_beside(one, base, dearer=dearer)}{rest}."


def _beside(one: Standing, base: Standing, *, dearer: bool) -> str:
    """The unmet demand of both; "but" stands where cost and unmet demand go opposite ways."""
    if one.unmet == base.unmet:
        return f"at equal unmet demand ({_unmet_share(one)})"
    link = "but" if (one.unmet > base.unmet) != dearer else "and"
    return f"{link} leaves {_unmet(one)} instead of {_unmet_share(base)}"


def _restarts(one: Standing, base: Standing, days: float) -> str:
    mine, theirs = one.policy.totals.restarts, base.policy.totals.restarts
    if mine == theirs:
        return ""
    if days < 1:
        return f", with {mine:,} restarts instead of {theirs:,}"
    return f", with {amount(mine / days, 1)} restarts a day instead of {amount(theirs / days, 1)}"


def _beaten(one: Standing) -> str:
    if not one.beaten_by:
        return ""
    numbers = [str(at + 1) for at in one.beaten_by]
    return f"; {listed(numbers)} {'beats' if len(numbers) == 1 else 'beat'} it"


def _unbeaten(comparison: Comparison) -> str:
    best = [
        f"{_name(one)} ({money(one.cost)}, {_unmet_share(one)} unmet)"
        for one in (comparison.standings[at] for at in comparison.unbeaten)
    ]
    these = "this one" if len(best) == 1 else "these"
    return f"No policy beats {these} on cost and unmet demand together: {'; '.join(best)}."


def _unmet(one: Standing) -> str:
    return f"{_unmet_share(one)} of the demand unmet" if one.unmet else "no demand unmet"


def _unmet_share(one: Standing) -> str:
    return _share(one.policy.totals.unmet_demand_share) if one.unmet else "none"


def _share(share: float) -> str:
    return f"{percent(share, 0 if share >= 0.1 else 1 if share >= 0.01 else 2)} %"


def _name(one: Standing) -> str:
    return plain(one.policy.name)
