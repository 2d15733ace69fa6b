"""Builders of the objects that a decision reads, as the cluster would send them: JSON through the real decoders."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import msgspec

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.resource import HvpaObject, read_hvpa
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition, to_wire
from hvpa.api.objects.kinds import api_version_of
from hvpa.api.objects.read_models import Hpa, Pod, RawHvpa, Vpa, Workload
from hvpa.core import Decision, Objects, Settings, decide, observe
from hvpa.core.model import ReplicaView, ScalableObservation
from hvpa.core.values.memo import Memo

T = TypeVar("T")
A = TypeVar("A", Hpa, Vpa)
NOW = dt.datetime(2026, 11, 21, 10, 0, 0, tzinfo=dt.UTC)
LONG_AGO = "2026-11-01T00:00:00Z"
UID = "11111111-2222-3333-4444-555555555555"
GIB = 1024**3
MIB = 1024**2

COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
"""Counts of a workload's status, which are equal once its rollout is complete."""


def at(**offset: float) -> dt.datetime:
    """NOW plus an offset (`seconds=`, `minutes=`, …)."""
    return NOW + dt.timedelta(**offset)


def stamp(when: dt.datetime) -> str:
    """RFC 3339 text."""
    return when.isoformat().replace("+00:00", "Z")


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `change` merged in, mapping by mapping; None removes a key."""
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def decoded(model: type[T], document: Mapping[str, Any], change: Mapping[str, Any] | None = None) -> T:
    """Decode the document, with `change` merged in, as if it came from the API server."""
    return msgspec.json.decode(msgspec.json.encode(merged(document, change or {})), type=model)


REFERENCE: dict[str, Any] = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
OWNER: dict[str, Any] = {**REFERENCE, "uid": UID, "controller": True}
"""The default Hvpa as owner of its HPA and VPA."""

HPA_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"of": "web"}},
    "spec": {
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}
SPEC: dict[str, Any] = {
    "replicas": 3,
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "hpa": {"deploy": True, "selector": {"matchLabels": {"of": "web"}}, "template": HPA_TEMPLATE},
    "vpa": {
        "deploy": True,
        "selector": {"matchLabels": {"of": "web"}},
        "template": {"metadata": {"labels": {"of": "web"}}},
    },
    "weightBasedScalingIntervals": [{"vpaWeight": 50}],
    "updateStrategy": {"type": "Rollout"},
}
"""The spec of the default Hvpa. Its pods are replaced, with both blends."""


def hvpa(
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    base: Mapping[str, Any] = SPEC,
) -> HvpaObject:
    """An Hvpa `default/web` with `spec` merged over the default spec."""
    document = {
        "metadata": merged(
            {"name": "web", "namespace": "default", "uid": UID, "generation": 1}, metadata or {}
        ),
        "spec": merged(base, spec or {}),
        "status": dict(status or {}),
    }
    return read_hvpa(decoded(RawHvpa, document))


def with_status(obj: HvpaObject, status: HvpaStatus) -> HvpaObject:
    """The Hvpa with a status as the API server would return it."""
    raw = {"metadata": {"name": "x"}, "spec": {}, "status": to_wire(status)}
    return replace(obj, status=read_hvpa(decoded(RawHvpa, raw)).status)


def container(
    name: str = "app", requests: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A container of a pod template."""
    resources: dict[str, Any] = {
        "requests": dict(requests if requests is not None else {"cpu": "1", "memory": "1Gi"})
    }
    if limits is not None:
        resources["limits"] = dict(limits)
    return {"name": name, "image": "app:1", "resources": resources}


def workload(
    replicas: int = 3,
    containers: Sequence[Mapping[str, Any]] | None = None,
    change: Mapping[str, Any] | None = None,
    kind: str = "Deployment",
) -> Workload:
    """A Deployment `web` whose rollout is complete."""
    document: dict[str, Any] = {
        "apiVersion": api_version_of(kind),
        "kind": kind,
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "w",
            "resourceVersion": "7",
            "generation": 1,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "spec": {"containers": list(containers if containers is not None else [container()])}
            },
        },
        "status": {"observedGeneration": 1, **dict.fromkeys(COUNTS, replicas)},
    }
    return decoded(Workload, document, change)


def hpa(
    desired: int = 3, utilization: int | None = 50, change: Mapping[str, Any] | None = None, replicas: int = 3
) -> Hpa:
    """The HPA that the default Hvpa owns. It desires `desired` replicas at a measured CPU utilization (its target is
    50)."""
    metrics = []
    if utilization is not None:
        current = {"averageUtilization": utilization, "averageValue": f"{utilization * 10}m"}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    document: dict[str, Any] = {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "h",
            "resourceVersion": "100",
            "creationTimestamp": LONG_AGO,
            "labels": {"of": "web"},
            "ownerReferences": [OWNER],
        },
        "spec": {"scaleTargetRef": REFERENCE, **HPA_TEMPLATE["spec"]},
        "status": {
            "currentReplicas": replicas,
            "desiredReplicas": desired,
            "currentMetrics": metrics,
            "conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}],
        },
    }
    return decoded(Hpa, document, change)


def vpa(
    targets: Mapping[str, Mapping[str, Any]] | None = None,
    change: Mapping[str, Any] | None = None,
    since: str = LONG_AGO,
) -> Vpa:
    """The VPA that the default Hvpa owns. It recommends `targets` by container."""
    recommended = [
        {"containerName": name, "target": dict(target)} for name, target in (targets or {}).items()
    ]
    document: dict[str, Any] = {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "v",
            "creationTimestamp": LONG_AGO,
            "labels": {"of": "web"},
            "ownerReferences": [OWNER],
        },
        "spec": {"targetRef": SPEC["targetRef"], "updatePolicy": {"updateMode": "Off"}},
        "status": {
            "recommendation": {"containerRecommendations": recommended},
            "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": since}],
        },
    }
    return decoded(Vpa, document, change)


CONTROLLER: Final[Mapping[str, Any]] = {"kind": "Deployment", "name": "web", "uid": "w", "controller": True}
"""The default workload as the owner of its pods."""


def pod(
    name: str = "web-1",
    ready: bool = True,
    change: Mapping[str, Any] | None = None,
    containers: Sequence[Mapping[str, Any]] | None = None,
) -> Pod:
    """A pod of the default workload, which controls it."""
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": "web"},
            "ownerReferences": [CONTROLLER],
        },
        "spec": {"containers": list(containers if containers is not None else [container()])},
        "status": {
            "phase": "Running",
            "startTime": LONG_AGO,
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO}],
        },
    }
    return decoded(Pod, document, change)


def oom_killed(
    when: dt.datetime,
    name: str = "web-1",
    of: str = "app",
    containers: Sequence[Mapping[str, Any]] | None = None,
) -> Pod:
    """A pod with a container that was killed for memory."""
    terminated = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(when)}}
    return pod(
        name,
        change={"status": {"containerStatuses": [{"name": of, "lastState": terminated}]}},
        containers=containers,
    )


def objects(
    hvpa_object: HvpaObject | None = None,
    target: Workload | None = None,
    horizontal: Hpa | None = None,
    vertical: Vpa | None = None,
    pods: Sequence[Pod] | None = None,
    **rest: Any,
) -> Objects:
    """All objects of the default Hvpa, with as many ready pods as the workload has replicas."""
    target = target if target is not None else workload()
    if pods is None:
        pods = [pod(f"web-{index}") for index in range(target.spec.replicas)]
    return Objects(
        hvpa=hvpa_object if hvpa_object is not None else hvpa(),
        workload=target,
        hpas=(horizontal,) if horizontal is not None else (),
        vpas=(vertical,) if vertical is not None else (),
        pods=tuple(pods),
        **rest,
    )


def in_place(inputs: Objects) -> Objects:
    """The same, but pods are resized while they run."""
    obj = inputs.hvpa
    if obj.spec is None:
        return inputs
    strategy = UpdateStrategy(type="InPlace")
    return replace(inputs, hvpa=replace(obj, spec=obj.spec.model_copy(update={"update_strategy": strategy})))


def scalable(
    inputs: Objects, now: dt.datetime = NOW, settings: Settings | None = None
) -> ScalableObservation:
    """Observe an Hvpa that can be scaled."""
    observation = observe(inputs, now, settings or Settings())
    assert isinstance(observation, ScalableObservation), observation.problem
    return observation


def decided(
    inputs: Objects,
    now: dt.datetime = NOW,
    settings: Settings | None = None,
    *,
    resizes: bool = False,
    memo: Memo | None = None,
) -> Decision:
    """Observe and decide; `resizes`: pods are resized while they run."""
    return decide(observe(in_place(inputs) if resizes else inputs, now, settings or Settings(), memo), memo)


def condition(decision: Decision, kind: str) -> StatusCondition:
    """A condition of the decided status."""
    return next(reported for reported in decision.status.conditions if reported.type == kind)


def counts(decision: Decision) -> ReplicaView:
    """The replicas of a decision that has replicas."""
    assert decision.replicas is not None
    return decision.replicas


def apply(inputs: Objects, decision: Decision) -> Objects:
    """The objects after the decision's writes and the rollout are done."""
    changed = replace(inputs, hvpa=with_status(inputs.hvpa, decision.status))
    if decision.scale_replicas is not None:
        assert inputs.hvpa.spec is not None
        spec = inputs.hvpa.spec.model_copy(update={"replicas": decision.scale_replicas})
        changed = replace(changed, hvpa=replace(changed.hvpa, spec=spec))
    if decision.workload_patch is None or inputs.workload is None:
        return changed
    document = msgspec.to_builtins(inputs.workload)
    body = decision.workload_patch.body
    metadata: Any = body["metadata"]
    document["metadata"]["annotations"] = {
        **document["metadata"].get("annotations", {}),
        **metadata.get("annotations", {}),
    }
    patch: Any = body["spec"]
    if "replicas" in patch:
        count = patch["replicas"]
        document["spec"]["replicas"] = count
        document["status"] |= dict.fromkeys(COUNTS, count)
    pod_spec, changes = document["spec"]["template"]["spec"], patch.get("template", {}).get("spec", {})
    by_name = {container_doc["name"]: container_doc for container_doc in pod_spec["containers"]}
    entries = [(by_name[entry["name"]], entry["resources"]) for entry in changes.get("containers", [])]
    for owner, sections in [*entries, (pod_spec, changes.get("resources", {}))]:
        if sections:
            resources = owner["resources"] = dict(owner.get("resources") or {})
            for section, values in sections.items():
                resources[section] = {**resources.get(section, {}), **values}
    target = msgspec.convert(document, Workload)
    return replace(changed, workload=target)


def settled(inputs: Objects, now: dt.datetime = NOW) -> Objects:
    """The objects after a first decision, with the owned HPA and VPA as the operator applies them."""
    decision = decided(inputs, now)
    manifests: dict[tuple[str, str], Any] = {
        (owned.kind, owned.name): owned.manifest for owned in decision.owned
    }

    def applied(obj: A, kind: str) -> A:
        known = msgspec.json.decode(msgspec.json.encode(obj))
        return decoded(type(obj), known, manifests.get((kind, obj.metadata.name)))

    return replace(
        apply(inputs, decision),
        hpas=tuple(applied(hpa_object, "HorizontalPodAutoscaler") for hpa_object in inputs.hpas),
        vpas=tuple(applied(vpa_object, "VerticalPodAutoscaler") for vpa_object in inputs.vpas),
    )
