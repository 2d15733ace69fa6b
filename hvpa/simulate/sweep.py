"""What headroom costs: policies with several targets of their HPAs, and which of them is the cheapest that serves
enough.

An HPA's target is how much of a request should be in use, so a lower one means more headroom: dearer, and less unmet
demand when the load jumps. Between these two nobody but the owner can choose; this puts the choices beside each
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from hvpa.api.values.prices import money
from hvpa.api.values.quantity import Resource, format_resource, parse_resource
from hvpa.simulate.model import Policy, Scenario
from hvpa.simulate.policy.base import SimulationError
from hvpa.simulate.report.compare import Comparison, Standing
from hvpa.simulate.report.text import percent

FACTORS: Final = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""The targets that are tried, as multiples of those that are given; no utilization above 100 percent."""
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
    from 56 to 96."""
    found = []
    for factor in FACTORS:
        labels: list[str] = []
        if policy.hvpa is not None:
            manifest = _at(policy.hvpa, ("spec", "hpa", "template", "spec", "metrics"), factor, labels)
            variant = replace(policy, hvpa=manifest)
        else:
            variant = replace(policy, hpa=_at(policy.hpa or {}, ("metrics",), factor, labels))
        if labels and "" not in labels:
            found.append(replace(variant, name=f"{', '.join(labels)}: {policy.name}"))
    return found


def _at(
    fields: Mapping[str, object], path: Sequence[str], factor: float, labels: list[str]
) -> dict[str, object]:
    """The fields with the metrics at this path changed."""
    name, *rest = path
    value = fields.get(name)
    if not value:
        return dict(fields)
    if rest:
        return {**fields, name: _at(cast(Mapping[str, object], value), rest, factor, labels)}
    return {**fields, name: [_metric(one, factor, labels) for one in cast(Sequence[Any], value)]}


def _metric(metric: Mapping[str, Any], factor: float, labels: list[str]) -> Mapping[str, Any]:
    """The metric with another target, if it is one of CPU or memory. Its label is empty where the target can't be."""
    for source in _SOURCES:
        if source in metric:
            own = metric[source]
            target, label = _target(own["target"], own["name"], factor)
            labels.append(label and f"{own['name']} {label}")
            return {**metric, source: {**own, "target": target}}
    return metric


def _target(target: Mapping[str, Any], resource: Resource, factor: float) -> tuple[dict[str, Any], str]:
    used = target.get("averageUtilization")
    if used is not None:
        wanted = max(1, round(int(used) * factor))
        return {**target, "averageUtilization": wanted}, f"{wanted} %" if wanted <= 100 else ""
    amount = format_resource(
        resource, max(1, round(parse_resource(resource, target["averageValue"]) * factor))
    )
    return {**target, "averageValue": amount}, amount


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
