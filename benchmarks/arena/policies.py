"""The policies of the arena as a scenario's fields, and the rules that make them comparable.

- **Bounds** are the same for all: replicas, `minAllowed`, `maxAllowed`; all begin with the same pods.
- **Headroom** is the same for all, by the rule of `benchmarks/joint/policies.py`. An HPA lets pods use a share T of
  their requests. With a VPA its target is an `AverageValue`, T of the first request, because `Utilization` would follow
  the VPA's changes. The VPA's margin is such that pods request usage x 0.92 / T (15 percent more at T = 80 %). A
  `Trajectory` sizes pods by its HPA's target, so its target is T / 0.92 of the request. The same holds without weights,
  if all scaling is horizontal and a VPA sizes the rival. With weight 0 the target is T, because the rival is an HPA
  alone.
- **A queue and a Value** do not depend on requests: their targets are the same for all.
- **Scaling in and down** is delayed by five minutes for all.
- **The VPA's updater** acts from one replica on (`minReplicas: 1`), and in place if the Hvpa does.
"""

from __future__ import annotations

from typing import Final

from benchmarks.arena.draw import HOURS, Drawn, Fields, workload_field

STEP: Final = 15
HVPA: Final = "Hvpa"
BOTH: Final = "HPA+VPA"
HPA: Final = "HPA"
VPA: Final = "VPA"
SHARE: Final = 0.92
"""(1 + a VPA's margin) times the share of requests that an HPA lets pods use: 1.15 × 0.8."""


def rival(one: Drawn) -> str:
    """Return the rival of this workload's Hvpa. With a weight of 0 or 100, the owner uses a single axis."""
    return {0: HPA, 100: VPA}.get(-1 if one.weight is None else one.weight, BOTH)


def policies(one: Drawn) -> list[str]:
    """Return the policies of this workload."""
    return list(dict.fromkeys((HVPA, rival(one), BOTH, HPA)))


def scenario_of(one: Drawn, *names: str) -> Fields:
    """Return the scenario with these policies, in the form of its YAML."""
    return {
        "name": f"Arena {one.number}",
        "description": one.text,
        "duration": f"{HOURS}h",
        "warmUp": "24h",
        "step": f"{STEP}s",
        "load": one.load,
        "workload": workload_field(one),
        "nodes": one.nodes,
        "metrics": {"share": "share", "queue": "queue"},
        "controllers": {"vpa": {"safetyMargin": round(max(0.0, SHARE / one.target - 1), 4)}},
        "policies": [{"name": name, **_policy(one, name)} for name in names],
    }


def _policy(one: Drawn, name: str) -> Fields:
    if name == HVPA:
        return {"hvpa": _hvpa(one)}
    found: Fields = {}
    if name != VPA:
        found["hpa"] = _hpa(one, 1.0, utilization=name == HPA)
    if name != HPA:
        mode = "InPlaceOrRecreate" if one.in_place else "Recreate"
        updates = {"updateMode": mode, "minReplicas": 1}
        found["vpa"] = {"updatePolicy": updates, "resourcePolicy": _resource_policy(one)}
    return found


def _hvpa(one: Drawn) -> Fields:
    shares = one.weight != 0 and (one.blend == "Trajectory" or one.weight is None)
    hpa = _hpa(one, 1 / SHARE if shares else 1.0, one.utilization)
    spec: Fields = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "blend": one.blend,
        "updateStrategy": {"type": one.strategy},
        "hpa": {"deploy": True, "template": {"spec": hpa}, "scaleDown": {"stabilizationDuration": "5m"}},
        "vpa": {"deploy": True, "template": {"spec": {"resourcePolicy": _resource_policy(one)}}},
    }
    if one.weight is not None:
        spec["weightBasedScalingIntervals"] = [{"vpaWeight": one.weight}]
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def _resource_policy(one: Drawn) -> Fields:
    found = []
    for container in one.containers:
        own: Fields = {"containerName": container.name}
        if container.mode == "Off":
            own["mode"] = "Off"
        else:
            own["maxAllowed"] = _amounts(container.requests, one.most)
            if one.least:
                own["minAllowed"] = _amounts(container.requests, one.least)
        found.append(own)
    return {"containerPolicies": found}


def _amounts(requests: tuple[int, int], factor: float) -> Fields:
    return {"cpu": f"{round(requests[0] * factor)}m", "memory": f"{round(requests[1] * factor)}Mi"}


def _hpa(one: Drawn, factor: float, utilization: bool) -> Fields:
    """Return an HPA with its shares of requests multiplied by `factor`."""
    least, _, most = one.replicas
    return {"minReplicas": least, "maxReplicas": most, "metrics": _metrics(one, factor, utilization)}


def _metrics(one: Drawn, factor: float, utilization: bool) -> list[Fields]:
    if one.metric == "queue":
        return [_external("queue", {"type": "AverageValue", "averageValue": f"{one.per_pod * 1000:.0f}m"})]
    if one.metric == "Value":
        return [_external("share", {"type": "Value", "value": f"{one.per_pod * 1000:.0f}m"})]
    share, of_app = min(1.0, one.target * factor), one.metric == "container CPU"
    found = []
    for at, (resource, unit) in enumerate((("cpu", "m"), ("memory", "Mi"))):
        if resource not in one.metric.lower():
            continue
        request = sum(container.requests[at] for container in one.containers[: 1 if of_app else None])
        target: Fields = {"type": "AverageValue", "averageValue": f"{round(request * share)}{unit}"}
        if utilization:
            target = {"type": "Utilization", "averageUtilization": round(share * 100)}
        source: Fields = {"name": resource, "target": target}
        if of_app:
            found.append({"type": "ContainerResource", "containerResource": {**source, "container": "app"}})
        else:
            found.append({"type": "Resource", "resource": source})
    return found


def _external(name: str, target: Fields) -> Fields:
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}
