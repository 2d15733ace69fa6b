"""What headroom costs: policies with several targets of their HPAs, and which of them is the cheapest that serves
enough.

An HPA's target is how much of a request should be in use, so a lower one means more headroom: higher cost, and less
unmet demand when the load jumps. The owner of the workload chooses; a sweep shows what each choice costs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final

from hvpa.api.values.prices import money
from hvpa.api.values.quantity import Resource, format_resource, parse_resource
from hvpa.simulate.model import Policy, Scenario
from hvpa.simulate.policy.base import SimulationError
from hvpa.simulate.report.compare import Comparison, Standing
from hvpa.simulate.report.text import percent

FACTORS: Final = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""The targets that are tried, as multiples of those that are given. No utilization goes above 100 percent, or above the
one that is given where that is larger."""
_SOURCES: Final = ("resource", "containerResource")


def swept(scenario: Scenario) -> Scenario:
    """The scenario with each of its policies that has an HPA of CPU or memory, once for each target; the others are
    left out. Raises SimulationError where there is none."""
    policies = tuple(one for policy in scenario.policies for one in variants(policy))
    if not policies:
        raise SimulationError(f"{scenario.name}: no policy has an HPA whose target is one of CPU or memory")
    return replace(scenario, policies=policies)


def variants(policy: Policy) -> list[Policy]:
    """The policy with other targets of its HPA's metrics of CPU and memory, each named by them: with 80 percent, six
    from 56 to 96. Empty where there is no such metric."""
    found = []
    for factor in FACTORS:
        variant = copy.deepcopy(policy)
        labels = [_scaled(source["name"], source["target"], factor) for source in _sources(variant)]
        if labels and None not in labels:
            found.append(replace(variant, name=f"{', '.join(filter(None, labels))}: {policy.name}"))
    return found


def _sources(policy: Policy) -> list[dict[str, Any]]:
    """The metrics of CPU and memory of the policy's HPA: `name` and `target` of each."""
    spec: Any = policy.hpa or {}
    if policy.hvpa is not None:
        manifest: Any = policy.hvpa
        spec = manifest["spec"].get("hpa", {}).get("template", {}).get("spec", {})
    return [metric[kind] for metric in spec.get("metrics", ()) for kind in _SOURCES if kind in metric]


def _scaled(resource: Resource, target: dict[str, Any], factor: float) -> str | None:
    """Multiply the target, and say what it is now; None where it would be a utilization that is not tried."""
    used = target.get("averageUtilization")
    if used is None:
        amount = max(1, round(parse_resource(resource, target["averageValue"]) * factor))
        target["averageValue"] = format_resource(resource, amount)
        return f"{resource} {target['averageValue']}"
    target["averageUtilization"] = wanted = max(1, round(used * factor))
    return None if wanted > max(100, used) else f"{resource} {wanted} %"


def reading(comparison: Comparison, most: float) -> str:
    """Which of the policies is the cheapest that leaves at most this share of the demand unmet."""
    enough = [one for one in comparison.standings if one.policy.totals.unmet_demand_share <= most]
    if enough:
        best = min(enough, key=lambda one: one.cost)
        return f"For at most {_share(most)} unmet demand take {best.name} (cost {money(best.cost)}, {_unmet(best)})."
    least = min(comparison.standings, key=lambda one: one.policy.totals.unmet_demand_share)
    return f"None leaves at most {_share(most)} of the demand unmet; {least.name} comes nearest ({_unmet(least)})."


def _unmet(one: Standing) -> str:
    return f"{_share(one.policy.totals.unmet_demand_share)} unmet"


def _share(share: float) -> str:
    return f"{percent(share, 2)} %"
