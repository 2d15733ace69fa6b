"""The Hvpa as YAML, with a comment next to each number that gives its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hvpa.api.values.quantity import CPU, Resource, format_resource
from hvpa.cli.input.files import value_at
from hvpa.core.model import API_VERSION
from hvpa_lab.init.draft import LOW, MARGIN, ROOM, WEIGHT, Draft
from hvpa_lab.init.lines import Lines, shown
from hvpa_lab.init.source.present import Present
from hvpa_lab.simulate.history.fit import Fit, FittedUsage

_OWN: Final = ("containerName", "minAllowed", "maxAllowed")


def manifest(present: Present, fit: Fit, draft: Draft, heading: str, why_target: str) -> str:
    """The manifest; `heading` names its source, `why_target` gives the reason for the target."""
    lines = Lines(heading, f"Today {present.title} is scaled by {present.scaled_by}.")
    lines.field(0, "apiVersion", API_VERSION)
    lines.field(0, "kind", "Hvpa")
    lines.add(0, "metadata:")
    lines.field(1, "name", present.name)
    lines.field(1, "namespace", present.namespace)
    lines.add(0, "spec:")
    workload = present.workload
    reference = {"apiVersion": workload.api_version, "kind": workload.kind, "name": present.name}
    lines.field(1, "targetRef", reference)
    lines.field(1, "blend", "Trajectory", "a fixed combination of replicas and size for each level of demand")
    lines.field(1, "updateStrategy", {"type": _strategy(present)}, _why_strategy(present))
    _boosts(lines, draft)
    _runtimes(lines, draft)
    if draft.target is not None:
        _hpa(lines, present, draft, why_target)
    _vpa(lines, present, fit, draft)
    _weights(lines, draft)
    _base(lines, fit, draft)
    return lines.text


def _strategy(present: Present) -> str:
    if present.is_custom:
        return "InPlace"
    return "InPlaceOrRollout" if present.in_place else "Rollout"


def _why_strategy(present: Present) -> str:
    if present.is_custom:
        return (
            f"an Hvpa does not change the pod template of a {present.workload.kind}: it resizes running pods"
        )
    if present.minor is None:
        return (
            "the Kubernetes version is unknown, so HVPA replaces pods; from 1.33 on (--kubernetes 1.33) it "
            "resizes them in place"
        )
    if present.in_place:
        return f"Kubernetes 1.{present.minor} resizes pods in place"
    return f"Kubernetes 1.{present.minor} replaces pods for another size; from 1.33 on it resizes them"


def _boosts(lines: Lines, draft: Draft) -> None:
    if draft.boosts:
        lines.add(1, "startupBoost:")
    for boost in draft.boosts:
        lines.item(2, "container", boost["container"])
        share = draft.starts[boost["container"]].share
        why = f"its starts were throttled in {share:.0%} of their CPU periods (docs/startup-boost.md)"
        lines.field(3, "cpu", boost["cpu"], why)


def _runtimes(lines: Lines, draft: Draft) -> None:
    if draft.runtimes:
        lines.add(1, "runtimes:")
    for entry, (_, heap) in zip(draft.runtimes, draft.shown.values(), strict=True):
        why = (
            "its command or environment shows it" if heap is None else f"the pod template sets {heap.option}"
        )
        lines.item(2, "container", entry["container"])
        lines.field(3, "kind", entry["kind"], f"{why}: it sizes its heap when it starts (docs/runtimes.md)")
        if "heapPercent" in entry:
            lines.field(3, "heapPercent", entry["heapPercent"])


def _hpa(lines: Lines, present: Present, draft: Draft, why_target: str) -> None:
    today = (
        f"as {present.scaled_by} has it today" if present.hpa is not None else "as set on the command line"
    )
    lines.add(1, "hpa:")
    lines.field(2, "deploy", True)
    lines.add(2, "template:")
    lines.add(3, "spec:")
    lines.field(4, "minReplicas", draft.min_replicas, today)
    lines.field(4, "maxReplicas", draft.max_replicas, today)
    lines.add(4, "metrics:", why_target)
    for metric in draft.metrics:
        lines.item(5, "type", metric["type"])
        for name, source in metric.items():
            if name != "type":
                lines.field(6, name, source, _why_metric(source, draft))
    if draft.behavior is not None:
        lines.add(4, "behavior:", today)
        lines.block(5, draft.behavior)
    lines.field(
        2,
        "scaleDown",
        {"stabilizationDuration": f"{draft.stabilization}s"},
        "the window of today's HPA"
        if value_at(draft.behavior, "scaleDown")
        else "an HPA's default: 5 minutes",
    )


def _why_metric(source: Mapping[str, Any], draft: Draft) -> str:
    if source.get("name") == "memory" and draft.with_memory:
        return "a large part of the memory follows the load"
    return ""


def _vpa(lines: Lines, present: Present, fit: Fit, draft: Draft) -> None:
    lines.add(1, "vpa:")
    lines.field(2, "deploy", True)
    if present.vpa is not None and present.vpa_mode == "Off":
        lines.why(
            2,
            f"VPA {present.vpa.name} changes nothing today. To keep requests as they are:"
            " scaleUp and scaleDown with {updatePolicy: {updateMode: 'Off'}}",
        )
    lines.add(2, "template:")
    lines.add(3, "spec:")
    lines.add(4, "resourcePolicy:")
    lines.add(5, "containerPolicies:")
    for name in present.containers:
        lines.item(6, "containerName", name)
        policy = draft.policies[name]
        rest = {field: value for field, value in policy.items() if field not in _OWN}
        for field, value in rest.items():
            lines.field(7, field, value, f"as VPA {present.vpa.name if present.vpa else ''} has it today")
        if name in draft.bounds:
            _bounds(lines, present, fit, draft, name)


def _bounds(lines: Lines, present: Present, fit: Fit, draft: Draft, name: str) -> None:
    bounds, policy, usage = draft.bounds[name], draft.policies[name], fit.containers[name]
    for field, amounts in (("minAllowed", bounds.least), ("maxAllowed", bounds.most)):
        given = policy.get(field, {})
        fitted = [resource for resource in amounts if resource not in given]
        if given:
            lines.why(7, f"{', '.join(given)}: as VPA {present.vpa.name if present.vpa else ''} has it today")
        if fitted and field == "minAllowed":
            uses = ", ".join(_use(resource, usage) for resource in fitted)
            lines.why(
                7,
                f"{', '.join(fitted)}: minimum pod size: the usage of each of {draft.min_replicas} pods at the "
                f"load that is exceeded {1 - LOW:.0%} of the time ({uses}; {_headroom(draft, fitted)})",
            )
        elif fitted:
            lines.why(
                7,
                f"{', '.join(fitted)}: {ROOM:g} times the largest pod on the path at peak load, or today's "
                "request if that is more; lower it if a node can't hold such a pod",
            )
        lines.field(
            7, field, {resource: format_resource(resource, amount) for resource, amount in amounts.items()}
        )


def _use(resource: Resource, usage: FittedUsage) -> str:
    line = usage.cpu if resource == CPU else usage.memory
    return f"{resource} {shown(resource, line.per_replica)} and {shown(resource, line.per_unit)} per unit of load"


def _headroom(draft: Draft, resources: list[Resource]) -> str:
    parts = []
    if CPU in resources and draft.target is not None:
        parts.append(f"CPU / {draft.target} %")
    if "memory" in resources:
        parts.append(f"memory / {draft.target} %" if draft.with_memory else f"memory * {MARGIN:g}")
    return ", ".join(parts) or "as it is"


def _weights(lines: Lines, draft: Draft) -> None:
    if draft.min_replicas == draft.max_replicas:
        return
    lines.add(
        1,
        "weightBasedScalingIntervals:",
        "half of each relative increase of the load by more pods, half by larger ones: the measured weight "
        "(docs/joint-scaling.md)",
    )
    lines.add(2, f"- vpaWeight: {WEIGHT}")


def _base(lines: Lines, fit: Fit, draft: Draft) -> None:
    known = {name: amount for name, amount in draft.base.items() if amount > 0}
    if not known:
        return
    lines.add(1, "trajectory:")
    lines.add(2, "baseResourcesPerReplica:", "base usage of a pod without load, from the fit")
    for resource, amount in known.items():
        line_of = [getattr(usage, resource) for usage in fit.containers.values()]
        explained = min(line.explained for line in line_of)
        lines.field(
            3,
            resource,
            {"value": format_resource(resource, amount)},
            f"replicas and load explain {max(0.0, explained):.0%} of the {resource}",
        )
