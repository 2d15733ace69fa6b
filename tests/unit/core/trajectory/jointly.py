"""Builders of joint decisions: an Hvpa with blend Trajectory, and recommenders that report what they measured."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from builders import build
from hvpa.api.objects.read_models import Hpa, Pod
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core import Decision, Objects
from hvpa.core.model import JointView
from hvpa.core.path.path import ResourceKey

Reading = tuple[dict[str, Any], dict[str, Any] | None, Fraction]
"""A metric of an HPA's spec, what its status reports of it, and measured over wanted."""
JOINT: dict[str, Any] = {"blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
"""What makes the usual Hvpa a joint one: weight 50 for all counts."""
EXACT: dict[str, Any] = {"overlap": {"cpu": {"value": "0"}, "memory": {"value": "0"}}}
"""No overlap: every boundary counts as it is."""


def value(resource: Resource, target: str, used: str | None, container: str = "") -> Reading:
    """A resource's AverageValue metric: `target` and `used` per pod; None where it has no value."""
    ratio = Fraction(0) if used is None else Fraction(parse_resource(resource, used))
    ratio /= parse_resource(resource, target)
    current = None if used is None else {"averageValue": used}
    return _reading(resource, container, {"type": "AverageValue", "averageValue": target}, current, ratio)


def utilization(
    resource: Resource, target: int, percent: int, used: str | None, container: str = ""
) -> Reading:
    """A resource's Utilization metric: `percent` of the request, which is `used` per pod."""
    current: dict[str, Any] = {"averageUtilization": percent}
    if used is not None:
        current["averageValue"] = used
    wanted = {"type": "Utilization", "averageUtilization": target}
    return _reading(resource, container, wanted, current, Fraction(percent, target))


def _reading(
    resource: Resource,
    container: str,
    target: dict[str, Any],
    current: dict[str, Any] | None,
    ratio: Fraction,
) -> Reading:
    kind, field = ("ContainerResource", "containerResource") if container else ("Resource", "resource")
    name = {"name": resource, **({"container": container} if container else {})}
    reported = None if current is None else {"type": kind, field: {**name, "current": current}}
    return {"type": kind, field: {**name, "target": target}}, reported, ratio


def external(target: str, have: str, kind: str = "AverageValue") -> Reading:
    """An External metric `queue`."""
    field = "averageValue" if kind == "AverageValue" else "value"
    metric = {"metric": {"name": "queue"}}
    return (
        {"type": "External", "external": {**metric, "target": {"type": kind, field: target}}},
        {"type": "External", "external": {**metric, "current": {field: have}}},
        Fraction(have) / Fraction(target),
    )


def hpa(
    replicas: int, *readings: Reading, desired: int | None = None, change: Mapping[str, Any] | None = None
) -> Hpa:
    """The HPA with these metrics. Its desired replicas is what they call for, within 1..10 and its tolerance, or
    `desired replicas`."""
    status = {
        "currentMetrics": [reported for _, reported, _ in readings if reported is not None],
        "desiredReplicas": as_desired(replicas, *readings) if desired is None else desired,
        "currentReplicas": replicas,
    }
    made = build.merged(
        {"spec": {"metrics": [spec for spec, _, _ in readings]}, "status": status}, change or {}
    )
    return build.hpa(change=made)


def as_desired(replicas: int, *readings: Reading) -> int:
    """What an HPA asks for."""
    desired_counts = [
        replicas if abs(ratio - 1) <= Fraction(1, 10) else math.ceil(ratio * replicas)
        for _, reported, ratio in readings
        if reported is not None
    ]
    return min(10, max([1, *desired_counts]))


def state(
    replicas: int,
    containers: Sequence[Mapping[str, Any]] | None = None,
    readings: Sequence[Reading] = (),
    targets: Mapping[str, Mapping[str, Any]] | None = None,
    spec: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """A joint Hvpa, its workload with ready pods of the template's size, its HPA (without readings: silent) and its
    VPA (without targets: none). `rest`: `status`, `desired replicas`, `hpa`, `vpa`, `workload` (changes), `pods`,
    `base`."""
    made = list(containers) if containers is not None else [build.container(requests={"cpu": "1"})]
    pods: Sequence[Pod] | None = rest.get("pods")
    if pods is None:
        pods = [build.pod(f"web-{index}", containers=made) for index in range(replicas)]
    desired = as_desired(replicas, *readings) if rest.get("desired") is None else rest["desired"]
    asked = {**JOINT, "replicas": desired, **(spec or {})}
    hvpa = build.hvpa(asked, rest.get("status"))
    return build.objects(
        hvpa,
        build.workload(replicas, made, rest.get("workload")),
        hpa(replicas, *readings, desired=desired, change=rest.get("hpa")),
        build.vpa(targets, rest.get("vpa")) if targets is not None else None,
        pods,
    )


def one_core(
    replicas: int,
    used: str | None,
    target: str,
    spec: Mapping[str, Any] | None = None,
    request: str = "1",
    **rest: Any,
) -> Objects:
    """Pods of one container that requests one core (or another `request`). Each uses `used` CPU, and the HPA's target
    is one core (None: the HPA has no metrics); the VPA's is `target`."""
    readings = [] if used is None else [value("cpu", "1", used)]
    return state(replicas, [app(request)], readings, {"app": {"cpu": target}}, spec, **rest)


def decide(*args: Any, now: dt.datetime = build.NOW, resizes: bool = False, **rest: Any) -> Decision:
    """A decision on such pods."""
    return build.decided(one_core(*args, **rest), now, resizes=resizes)


def usually(cpu: int) -> dict[str, Any]:
    """A status that has known so much usual demand of CPU for long (millicores); the path begins with one core."""
    known = {"container": "app", "resource": "cpu", "mean": cpu, "weight": 1e9, "present": cpu}
    demands = [{**known, "time": build.stamp(build.NOW)}]
    return {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}, "usualDemand": demands}}}


def wanted_down(hours: float, resource: Resource = "cpu") -> dict[str, Any]:
    """The status of a vertical axis that has wanted less for so long."""
    since = build.stamp(build.at(hours=-hours))
    return {"pending": [{"container": "app", "resource": resource, "direction": "down", "since": since}]}


def app(
    cpu: str | None = None, memory: str | None = None, name: str = "app", **limits: str
) -> dict[str, Any]:
    """A container with these requests."""
    requests = {key: amount for key, amount in (("cpu", cpu), ("memory", memory)) if amount is not None}
    return build.container(name, requests, limits or None)


def view(decision: Decision) -> JointView:
    """How it was solved."""
    assert decision.joint is not None
    return decision.joint


def wanted(decision: Decision) -> tuple[int, dict[ResourceKey, int]]:
    """The replicas and sizes that are wanted."""
    point = view(decision).wanted
    return point.replicas, dict(point.sizes)


def count(decision: Decision) -> int:
    """The replicas that are set."""
    assert decision.replicas is not None
    return decision.replicas.target


def requests(decision: Decision, name: str = "app") -> dict[str, int]:
    """The requests that are set."""
    return {str(key): amount for key, amount in decision.containers[name].requests.items()}


def held(decision: Decision) -> list[tuple[str, str, str]]:
    """What is held back: direction, what, and why."""
    return [(hold.direction, hold.resource or "replicas", hold.reason) for hold in decision.blocked]
