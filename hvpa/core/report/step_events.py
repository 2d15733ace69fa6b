"""The events of a step: what changed, and why, on the Hvpa and on its workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hvpa.api.values import text
from hvpa.api.values.quantity import Resource, readable_change, readable_resource
from hvpa.core.model import (
    Axis,
    Blocked,
    Decision,
    Direction,
    Event,
    Involved,
    JointView,
    Observation,
    ReplicaView,
)
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.estimate import estimate_replicas, leading_metric
from hvpa.core.values.weight import Bounds, percent
from hvpa.core.workload.containers import RESOURCES, amount, present_resources, recommendations

SCALED = "Scaled"
"""The reason of a step in more than one direction: on both axes, or up and down."""
_STEP_REASON: Mapping[tuple[Axis, Direction], str] = {
    ("horizontal", "up"): "ScaledOut",
    ("horizontal", "down"): "ScaledIn",
    ("vertical", "up"): "ScaledUp",
    ("vertical", "down"): "ScaledDown",
}
Changed = tuple[str, Resource, int | None, int]
"""Container, resource, and the request before (None: none) and after."""


def step_events(seen: Observation, decision: Decision, bounds: Bounds) -> tuple[Event, ...]:
    """The events of a decision that makes a step: on the Hvpa, and on its workload."""
    assert seen.workload is not None
    reason = _STEP_REASON[decision.applied[0]] if len(decision.applied) == 1 else SCALED
    message = text.one_line("; ".join((changes_text(seen, decision), *_causes(seen, decision, bounds))))
    workload = seen.workload
    involved = Involved(
        workload.api_version,
        workload.kind,
        workload.metadata.name,
        workload.metadata.uid,
        workload.metadata.resource_version,
    )
    return (
        Event("Normal", reason, message),
        Event("Normal", reason, text.one_line(f"Hvpa {seen.metadata.name}: {message}"), involved),
    )


def changes_text(seen: Observation, decision: Decision) -> str:
    """What a decision changes: `replicas 3 -> 5, cpu 200m -> 300m of app`."""
    view, parts = decision.replicas, []
    if view is not None and view.current != view.target:
        parts.append(f"replicas {view.current} -> {view.target}")
    by_container: dict[str, list[str]] = {}
    for container, resource, before, after in changed_requests(seen, decision):
        old, new = "none", readable_resource(resource, after)
        if before is not None:
            old, new = readable_change(resource, before, after)
        by_container.setdefault(container, []).append(f"{resource} {old} -> {new}")
    parts += [f"{' and '.join(found)} of {container}" for container, found in by_container.items()]
    return ", ".join(parts)


def changed_requests(seen: Observation, decision: Decision) -> Iterator[Changed]:
    """The requests that a decision changes."""
    assert seen.workload is not None
    for container, now in present_resources(seen.workload.spec.template.spec.containers).items():
        after = decision.containers[container].requests if container in decision.containers else {}
        for resource in RESOURCES:
            if resource in after and after[resource] != now.requests.get(resource):
                yield container, resource, now.requests.get(resource), after[resource]


def _causes(seen: Observation, decision: Decision, bounds: Bounds) -> Iterable[str]:
    axes = {axis for axis, _ in decision.applied}
    if "horizontal" in axes:
        yield from _of_replicas(seen, decision, bounds)
    if "vertical" in axes:
        yield from _of_requests(seen, decision)
    if decision.joint is None and decision.weight_ppm is not None:
        yield f"vpaWeight {percent(decision.weight_ppm)}"


def _of_replicas(seen: Observation, decision: Decision, bounds: Bounds) -> Iterable[str]:
    view, hpa = decision.replicas, seen.hpa.object
    assert view is not None
    if not bounds.contains(view.current):
        last = "" if bounds.upper is None else f" and maxReplicas {bounds.upper}"
        yield f"{view.current} is outside of minReplicas {bounds.lower}{last}"
    if hpa is not None and view.hpa is not None and estimate_replicas(seen, hpa) is not None:
        metric, value = leading_metric(seen, hpa)
        used = "" if decision.joint is not None else f", using {view.hpa}"
        yield f"HPA: {metric} at {value} % of its target{used}"
    if decision.joint is not None:
        yield from _of_path(view, decision.joint, decision.blocked)


def _of_path(view: ReplicaView, joint: JointView, blocked: Iterable[Blocked]) -> Iterable[str]:
    """What decided the replicas of a joint step. Example: 6 larger pods would do, but larger requests are held by
    MinChange, so 9 pods serve the same: `cpu asks for 6 replicas; 9 of the size that pods have, as larger requests are
    held by MinChange`."""
    wanted = joint.wanted.replicas
    yield joint.because
    if view.target > wanted:
        held = sorted({one.reason for one in blocked if (one.axis, one.direction) == ("vertical", "up")})
        why = (
            f"as larger requests are held by {text.names(held)}"
            if held
            else "until all pods have the new size"
        )
        yield f"{view.target} of the size that pods have, {why}"
    elif view.target < wanted:
        yield f"{wanted} are reached in several steps"


def _of_requests(seen: Observation, decision: Decision) -> Iterable[str]:
    changed = list(changed_requests(seen, decision))
    starving = sorted(
        {name for name, resource, *_ in changed if resource == "memory"} & set(seen.pods.starving)
    )
    if starving:
        yield f"out of memory: {text.names(starving)}"
    if decision.joint is not None:
        usual = {item.key: item.usual for item in decision.joint.items}
        needs = [
            f"{resource} {readable_resource(resource, need)} of {name}"
            for name, resource, *_ in changed
            if (need := usual.get(ResourceKey(name, resource))) is not None
        ]
        yield f"usual demand of all pods: {', '.join(needs)}"
        return
    found = recommendations(seen.vpa.object) if seen.vpa.object is not None else {}
    targets = [
        f"{resource} {readable_resource(resource, target)} of {name}"
        for name, resource, *_ in changed
        if name in found and (target := amount(found[name].target, resource)) is not None
    ]
    yield f"VPA: {', '.join(targets)}"
