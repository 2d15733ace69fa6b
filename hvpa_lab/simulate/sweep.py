"""The cost of headroom: policies with several HPA targets, and the cheapest policy with acceptable unmet demand.

An HPA's target is the share of a request that should be in use, so a lower target means more headroom: higher cost, and
less unmet demand when the load jumps. A sweep shows the workload's owner the cost of each choice.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final

from hvpa.api.values.prices import money
from hvpa.api.values.quantity import Resource, format_resource, parse_resource
from hvpa_lab.simulate.model import Policy, Scenario
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.report.compare import Comparison, PolicyRank
from hvpa_lab.simulate.report.text import percent_of_share

FACTORS: Final = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""Targets to try, as multiples of the given targets. No utilization exceeds 100 percent, or the given target if that is
larger."""
_SOURCES: Final = ("resource", "containerResource")


def swept(scenario: Scenario) -> Scenario:
    """Returns the scenario with its policies that have an HPA of CPU or memory, once for each target, without the other
    policies. Raises SimulationError if there is no such policy."""
    policies = tuple(variant for policy in scenario.policies for variant in variants(policy))
    if not policies:
        raise SimulationError(f"{scenario.name}: no policy has an HPA with a CPU or memory target")
    return replace(scenario, policies=policies)


def variants(policy: Policy) -> list[Policy]:
    """Returns the policy with other targets for its HPA's CPU and memory metrics, named after the targets. Example: 80
    percent gives six policies from 56 to 96 percent. Empty without such a metric."""
    policies = []
    for factor in FACTORS:
        variant = copy.deepcopy(policy)
        labels = [_scaled(source["name"], source["target"], factor) for source in _sources(variant)]
        if labels and None not in labels:
            policies.append(replace(variant, name=f"{', '.join(filter(None, labels))}: {policy.name}"))
    return policies


def _sources(policy: Policy) -> list[dict[str, Any]]:
    """Returns the CPU and memory metrics of the policy's HPA, with `name` and `target`."""
    spec: Any = policy.hpa or {}
    if policy.hvpa is not None:
        manifest: Any = policy.hvpa
        spec = manifest["spec"].get("hpa", {}).get("template", {}).get("spec", {})
    return [metric[kind] for metric in spec.get("metrics", ()) for kind in _SOURCES if kind in metric]


def _scaled(resource: Resource, target: dict[str, Any], factor: float) -> str | None:
    """Multiplies the target and returns its new text; None if the utilization is too high to try."""
    used = target.get("averageUtilization")
    if used is None:
        amount = max(1, round(parse_resource(resource, target["averageValue"]) * factor))
        target["averageValue"] = format_resource(resource, amount)
        return f"{resource} {target['averageValue']}"
    target["averageUtilization"] = wanted = max(1, round(used * factor))
    return None if wanted > max(100, used) else f"{resource} {wanted} %"


def reading(comparison: Comparison, most: float) -> str:
    """Returns a sentence that names the cheapest policy with at most this share of unmet demand."""
    enough = [
        standing for standing in comparison.standings if standing.policy.totals.unmet_demand_share <= most
    ]
    if enough:
        best = min(enough, key=lambda standing: standing.cost)
        return (
            f"The cheapest with at most {_share(most)} unmet demand is {best.name} (cost {money(best.cost)}, "
            f"{_unmet(best)})."
        )
    least = min(comparison.standings, key=lambda standing: standing.policy.totals.unmet_demand_share)
    return (
        f"No policy leaves at most {_share(most)} of the demand unmet; the closest is {least.name} "
        f"({_unmet(least)})."
    )


def _unmet(standing: PolicyRank) -> str:
    return f"{_share(standing.policy.totals.unmet_demand_share)} unmet"


def _share(share: float) -> str:
    return f"{percent_of_share(share, 2)} %"
