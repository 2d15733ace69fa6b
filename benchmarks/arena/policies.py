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
from hvpa_lab.simulate.model import KubeletKind

STEP: Final = 15
HVPA: Final = "Hvpa"
BOTH: Final = "HPA+VPA"
AGAIN: Final = "HPA+VPA again"
"""An HPA and a VPA under the same load with other noise: how often chance alone makes a workload worse."""
HPA: Final = "HPA"
VPA: Final = "VPA"
SHARE: Final = 0.92
"""(1 + a VPA's margin) times the share of requests that an HPA lets pods use: 1.15 × 0.8."""


def rival(workload: Drawn) -> str:
    """Return the rival of this workload's Hvpa. With a weight of 0 or 100, the owner uses a single axis."""
    return {0: HPA, 100: VPA}.get(-1 if workload.weight is None else workload.weight, BOTH)


def policies(workload: Drawn) -> list[str]:
    """Return the policies of this workload."""
    again = [AGAIN] if rival(workload) == BOTH else []
    return list(dict.fromkeys((HVPA, rival(workload), BOTH, HPA, *again)))


def scenario_of(workload: Drawn, *names: str, kubelets: KubeletKind | None = None) -> Fields:
    """Return the scenario with these policies, in the form of its YAML. With `kubelets`, Hvpas that resize pods in
    place have the fast signal of kubelets with these settings."""
    fields = _scenario(workload, *names)
    if kubelets is not None and workload.in_place:
        fields["metrics"]["kubelets"] = kubelets
        for policy in fields["policies"]:
            if "hvpa" in policy:
                policy["hvpa"]["spec"]["fastSignal"] = {"mode": "Raise"}
    return fields


def _scenario(workload: Drawn, *names: str) -> Fields:
    return {
        "name": f"Arena {workload.number}",
        "description": workload.text,
        "duration": f"{HOURS}h",
        "warmUp": "24h",
        "step": f"{STEP}s",
        "load": workload.load,
        "workload": workload_field(workload),
        "nodes": workload.nodes,
        "metrics": {"share": "share", "queue": "queue"},
        "controllers": {"vpa": {"safetyMargin": round(max(0.0, SHARE / workload.target - 1), 4)}},
        "policies": [{"name": name, **_policy(workload, name)} for name in names],
    }


def _policy(workload: Drawn, name: str) -> Fields:
    if name == HVPA:
        return {"hvpa": _hvpa(workload)}
    fields: Fields = {}
    if name != VPA:
        fields["hpa"] = _hpa(workload, 1.0, utilization=name == HPA)
    if name != HPA:
        mode = "InPlaceOrRecreate" if workload.in_place else "Recreate"
        updates = {"updateMode": mode, "minReplicas": 1}
        fields["vpa"] = {"updatePolicy": updates, "resourcePolicy": _resource_policy(workload)}
    return fields


def _hvpa(workload: Drawn) -> Fields:
    shares = workload.weight != 0 and (workload.blend == "Trajectory" or workload.weight is None)
    hpa = _hpa(workload, 1 / SHARE if shares else 1.0, workload.utilization)
    spec: Fields = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "blend": workload.blend,
        "updateStrategy": {"type": workload.strategy},
        "hpa": {"deploy": True, "template": {"spec": hpa}, "scaleDown": {"stabilizationDuration": "5m"}},
        "vpa": {"deploy": True, "template": {"spec": {"resourcePolicy": _resource_policy(workload)}}},
    }
    if workload.weight is not None:
        spec["weightBasedScalingIntervals"] = [{"vpaWeight": workload.weight}]
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def _resource_policy(workload: Drawn) -> Fields:
    container_policies = []
    for container in workload.containers:
        policy: Fields = {"containerName": container.name}
        if container.mode == "Off":
            policy["mode"] = "Off"
        else:
            policy["maxAllowed"] = _amounts(container.requests, workload.most)
            if workload.least:
                policy["minAllowed"] = _amounts(container.requests, workload.least)
        container_policies.append(policy)
    return {"containerPolicies": container_policies}


def _amounts(requests: tuple[int, int], factor: float) -> Fields:
    return {"cpu": f"{round(requests[0] * factor)}m", "memory": f"{round(requests[1] * factor)}Mi"}


def _hpa(workload: Drawn, factor: float, utilization: bool) -> Fields:
    """Return an HPA with its shares of requests multiplied by `factor`."""
    least, _, most = workload.replicas
    return {"minReplicas": least, "maxReplicas": most, "metrics": _metrics(workload, factor, utilization)}


def _metrics(workload: Drawn, factor: float, utilization: bool) -> list[Fields]:
    if workload.metric == "queue":
        return [
            _external("queue", {"type": "AverageValue", "averageValue": f"{workload.per_pod * 1000:.0f}m"})
        ]
    if workload.metric == "Value":
        return [_external("share", {"type": "Value", "value": f"{workload.per_pod * 1000:.0f}m"})]
    share, of_app = min(1.0, workload.target * factor), workload.metric == "container CPU"
    metrics = []
    for at, (resource, unit) in enumerate((("cpu", "m"), ("memory", "Mi"))):
        if resource not in workload.metric.lower():
            continue
        request = sum(container.requests[at] for container in workload.containers[: 1 if of_app else None])
        target: Fields = {"type": "AverageValue", "averageValue": f"{round(request * share)}{unit}"}
        if utilization:
            target = {"type": "Utilization", "averageUtilization": round(share * 100)}
        source: Fields = {"name": resource, "target": target}
        if of_app:
            metrics.append({"type": "ContainerResource", "containerResource": {**source, "container": "app"}})
        else:
            metrics.append({"type": "Resource", "resource": source})
    return metrics


def _external(name: str, target: Fields) -> Fields:
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}
