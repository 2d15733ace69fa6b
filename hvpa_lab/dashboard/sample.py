"""Numbers for the charts of an Hvpa: demand, capacity, replicas and sizes over time.

CPU is in millicores, memory in bytes, over all ready pods. Capacity is the sum of these pods' requests. Demand is the
sum of requests at which the HPA's targets would be met: 4 pods that use 450m each at a target of 50 percent have a
demand of 3600m.
"""

from __future__ import annotations

from collections.abc import Collection

from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.cli.output import Json
from hvpa.cli.status import HvpaView
from hvpa.core.model import Decision, JointResource, JointView, Observation, ScalableObservation
from hvpa.core.recommenders.estimate import metric_demands, readings_of
from hvpa.core.values.clock import Clock
from hvpa.kube.objects.usage import Usage


def sample(view: HvpaView, decision: Decision, usage: Usage) -> Json:
    """The values of the charts at this time; None for unknown values. `used` is by container."""
    current, ready = view.counts
    replicas = decision.replicas
    counts = {
        "current": current,
        "ready": ready,
        "desired": view.replicas,
        "wanted": None if replicas is None else replicas.recommended,
    }
    return {
        "time": view.observation.now.timestamp(),
        "replicas": counts,
        **{resource: _totals(view, decision, usage, resource) for resource in RESOURCES},
        "sizes": _sizes(view),
        "used": _used(view, usage),
    }


def _totals(view: HvpaView, decision: Decision, usage: Usage, resource: Resource) -> Json:
    """Demand, capacity and usage of a resource."""
    scaled = _scaled(decision, resource)
    ready = [pod for pod in view.pods if pod.ready]
    names = {
        (pod.name, container)
        for pod in ready
        for container in pod.present
        if scaled is None or container in scaled
    }
    requests = [pod.present[container].requests.get(resource, 0) for pod in ready for container in pod.present
                if (pod.name, container) in names]  # fmt: skip
    used = [amounts[resource] for key, amounts in usage.items() if key in names and resource in amounts]
    return {
        "demand": _demand(view.observation, decision, resource, len(ready)),
        "capacity": sum(requests) if ready else None,
        "used": sum(used) if used else None,
    }


def _scaled(decision: Decision, resource: Resource) -> Collection[str] | None:
    """The containers whose demand is measured; None: all."""
    if decision.joint is None:
        return None
    return {item.key.container for item in _on_path(decision.joint, resource)} or None


def _demand(observation: Observation, decision: Decision, resource: Resource, ready: int) -> int | None:
    """The demand for a resource that the HPA measures."""
    view = decision.joint
    if view is not None:
        items = _on_path(view, resource)
        present = [item.present for item in items if item.present is not None]
        base = sum(
            item.current - view.path.curves[item.key].size_bounds.reserve.work(item.current) for item in items
        )
        return sum(present) + ready * base if items and len(present) == len(items) else None
    if not isinstance(observation, ScalableObservation) or observation.hpa.object is None:
        return None
    clock = Clock(observation.now)
    demands, _ = metric_demands(observation, readings_of(observation, observation.hpa.object, clock), clock)
    return max(
        (demand.requested for demand in demands if demand.resource == resource and demand.requested),
        default=None,
    )


def _on_path(view: JointView, resource: Resource) -> list[JointResource]:
    """The items of a resource that a metric measures."""
    return [item for item in view.items if item.key.resource == resource and item.key in view.path.curves]


def _sizes(view: HvpaView) -> Json:
    """The mean requests of a ready pod, by container and resource."""
    pods = [pod.present for pod in view.pods if pod.ready]
    return {
        name: {
            resource: round(
                sum(pod[name].requests.get(resource, 0) for pod in pods if name in pod) / len(pods)
            )
            for resource in RESOURCES
        }
        for name in dict.fromkeys(name for pod in pods for name in pod)
    }


def _used(view: HvpaView, usage: Usage) -> Json:
    """The total usage of the ready pods, by container and resource."""
    ready, totals = {pod.name for pod in view.pods if pod.ready}, dict[str, dict[str, int]]()
    for (pod, container), amounts in usage.items():
        if pod in ready:
            own = totals.setdefault(container, {})
            for resource, amount in amounts.items():
                own[resource] = own.get(resource, 0) + amount
    return totals
