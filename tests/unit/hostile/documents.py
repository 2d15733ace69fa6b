"""The documents of one Hvpa as the API server holds them, both ways to blend, with a record of earlier steps; and how
any part of them is replaced by something else."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import yaml

from builders import build
from builders.build import LONG_AGO, SPEC, UID, at, merged, stamp
from hvpa.api.objects.read_models import Hpa, Pod, Vpa, Workload

Json = dict[str, Any]
Place = tuple[str | int, ...]

NAME = "web"
NAMESPACE = "default"
KINDS = ("Hvpa", "Deployment", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "Pod")
RECORD = "hvpa.autoscaling.k8s.io/last-applied"
"""The annotation in which a workload carries the record of the last step."""

_LATELY = stamp(at(minutes=-3))
_AXES: Json = yaml.safe_load(
    """\
horizontal:
  lastScaleTime: LATELY
  appliedFrom: {replicas: 3, desired: 5, weight: 50, goal: 4}
  setBack: {count: 1, time: LATELY}
  correction: {hpaStatus: 5/4, count: 1}
vertical:
  lastScaleTime: LATELY
  appliedFrom: [{container: app, resource: cpu, target: "2", weight: 50, request: "1"}]
  pending: [{container: app, resource: memory, direction: up, since: LATELY}]
  overrides: [{container: app, time: LATELY, memory: 4Gi}]
  setBack: {count: 2, time: LATELY}
  base: {app: {cpu: 500m, memory: 512Mi}}
  usualReplicas: {mean: 2.5, weight: 9000, time: LATELY, replicas: 3}
  usualDemand: [{container: app, resource: cpu, mean: 2500, weight: 9000, time: LATELY, present: 3000}]
""".replace("LATELY", f'"{_LATELY}"')
)
_SPEC = merged(
    SPEC,
    yaml.safe_load("""\
hpa:
  scaleUp: {stabilizationDuration: 1m, maxStep: {factor: 1.5, minimum: 2}}
  scaleDown: {minChange: {replicas: {value: 1, percentage: 10}}}
  schedule: [{schedule: 30 9 * * *, duration: 1h, timeZone: Europe/Berlin, minReplicas: 2}]
vpa:
  scaleUp:
    updatePolicy: {updateMode: MaintenanceWindow}
    stabilizationDuration: 3m
    minChange: &least {cpu: {value: 10m, percentage: 1}, memory: {value: 1M}}
    minChangeTimeout: 1h
  scaleDown:
    updatePolicy: {updateMode: MaintenanceWindow}
    stabilizationDuration: 3m
    minChange: *least
    minHistory: 2h
  limitsRequestsGapScaleParams: {cpu: {value: "1", percentage: 40}}
  template:
    spec:
      resourcePolicy:
        containerPolicies:
          - containerName: "*"
            minAllowed: {cpu: 100m, memory: 64Mi}
            maxAllowed: {cpu: "8", memory: 16Gi}
            controlledResources: [cpu, memory]
            controlledValues: RequestsAndLimits
maintenanceTimeWindow: {begin: 090000+0000, end: 110000+0000}
maintenanceWindows: [{schedule: 30 3 * * 1, duration: 2h, timeZone: Europe/Berlin}]
"""),
)
_WRITTEN_PATH: Json = yaml.safe_load("""\
blend: Trajectory
weightBasedScalingIntervals: null
trajectory:
  overlap: {cpu: {value: 100m, percentage: 20}, memory: {percentage: 5}}
  baseResourcesPerReplica: {cpu: {value: 50m}, memory: {value: 32Mi, percentage: 3}}
  intervals:
    - {maxReplicas: 3, maxResources: {cpu: "2", memory: 2Gi}}
    - {maxReplicas: 10, maxResources: {cpu: "4", memory: 4Gi}, extrapolation: horizontalOnly}
""")
_DRAWN_PATH: Json = {"blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 40}]}
BLENDS: dict[str, Json] = {"Additive": {}, "drawn": _DRAWN_PATH, "written": _WRITTEN_PATH}
"""Changes of the spec: the ways to blend."""


_CONTAINER = build.container(limits={"cpu": "2", "memory": "2Gi"})
_AMOUNTS = {"cpu": "2500m", "memory": "3Gi"}


def _queue(**value: Any) -> Json:
    return {"type": "External", "external": {"metric": {"name": "queue"}, **value}}


def _hvpa(blend: str) -> Json:
    condition = {"type": "Ready", "status": "True", "reason": "Reconciled", "lastTransitionTime": LONG_AGO}
    status = {
        "replicas": 3,
        "hpaWeight": 50,
        "axes": _AXES,
        "conditions": [condition],
        "lastScaling": {"lastScaleTime": _LATELY, "hpaStatus": {"currentReplicas": 2, "desiredReplicas": 3}},
        "lastError": {"description": "none", "lastUpdateTime": _LATELY, "lastOperation": "Decide"},
    }
    metadata = {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 1}
    return {"metadata": metadata, "spec": merged(_SPEC, BLENDS[blend]), "status": status}


def _workload() -> Workload:
    set_by: Json = {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}}
    managed = {"manager": "kubectl", "time": LONG_AGO, "fieldsV1": set_by}
    tier = {"key": "tier", "operator": "NotIn", "values": ["db"]}
    change = {
        "metadata": {"annotations": {RECORD: json.dumps(_AXES)}, "managedFields": [managed]},
        "spec": {"selector": {"matchExpressions": [tier]}},
    }
    return build.workload(3, [_CONTAINER], change)


def _hpa() -> Hpa:
    measured = {"averageUtilization": 80, "averageValue": "800m"}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "current": measured}},
        _queue(current={"averageValue": "45"}),
    ]
    conditions = [
        {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
        {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"},
    ]
    queue = _queue(target={"type": "AverageValue", "averageValue": "30"})
    spec = {
        "metrics": [*build.HPA_TEMPLATE["spec"]["metrics"], queue],
        "behavior": {"scaleUp": {"tolerance": "0.05"}},
    }
    change = {"spec": spec, "status": {"currentMetrics": metrics, "conditions": conditions}}
    return build.hpa(5, change=change)


def _vpa() -> Vpa:
    kinds = ("target", "lowerBound", "upperBound", "uncappedTarget")
    recommended = {"containerName": "app", **dict.fromkeys(kinds, _AMOUNTS)}
    return build.vpa(change={"status": {"recommendation": {"containerRecommendations": [recommended]}}})


def _pods() -> list[Pod]:
    starving = build.oom_killed(at(minutes=-1), f"{NAME}-0", containers=[_CONTAINER])
    return [starving, *(build.pod(f"{NAME}-{index}", containers=[_CONTAINER]) for index in (1, 2))]


def documents(blend: str) -> list[Json]:
    """All that belongs to one Hvpa: itself, its Deployment, HPA, VPA and a starving pod among three."""
    made = (_hvpa(blend), _workload(), _hpa(), _vpa(), *_pods())
    kinds = (*KINDS, "Pod", "Pod")
    return [
        merged(json.loads(msgspec.json.encode(model)), {"kind": kind, "metadata": {"resourceVersion": "7"}})
        for kind, model in zip(kinds, made, strict=True)
    ]


def places(value: object, at_path: Place = ()) -> list[Place]:
    """The paths of all values below a document."""
    paths = [at_path] if at_path else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return paths + [below for key, entry in entries for below in places(entry, (*at_path, key))]


def put(document: Json, place: Place, value: object) -> None:
    """Replace what stands at a place. Where an earlier replacement took the way there away, nothing happens."""
    where: Any = document
    for part in place[:-1]:
        try:
            where = where[part]
        except (KeyError, IndexError, TypeError):
            return
    last: Any = place[-1]
    if isinstance(where, dict) or (isinstance(where, list) and isinstance(last, int) and last < len(where)):
        where[last] = value


def put_in_record(document: Json, place: Place, value: object) -> None:
    """Replace what stands at a place of the record that a workload carries in its annotation."""
    axes = copy.deepcopy(_AXES)
    put(axes, place, value)
    put(document, ("metadata", "annotations", RECORD), json.dumps(axes))


PLACES: list[tuple[int, Place]] = [
    (number, place) for number, document in enumerate(documents("written")[:5]) for place in places(document)
]
"""Every value of an Hvpa's documents: which document, and where in it."""
RECORD_PLACES = places(_AXES)
"""Every value of the record."""


def encoded(document: object) -> bytes:
    """The document as it comes from the API server, also with what JSON has no way to say."""
    try:
        return msgspec.json.encode(document)
    except (ValueError, TypeError):
        return json.dumps(document).encode("utf-8", "surrogatepass")
