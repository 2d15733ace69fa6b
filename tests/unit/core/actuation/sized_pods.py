"""Pods of the usual Deployment on their way to a size that was decided, and what is decided about them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

from builders.build import at, condition, container, decided, hvpa, merged, objects, pod, stamp, vpa, workload
from hvpa.api.hvpa.progress import Actuation, CanaryRun, DesiredSize
from hvpa.api.hvpa.status import RolledBack
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision

REQUESTS: Final = {"cpu": "1", "memory": "1Gi"}
LARGER: Final = {"cpu": "2", "memory": "2Gi"}
RESTARTS: Final = [
    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    {"resourceName": "memory", "restartPolicy": "RestartContainer"},
]


def owned(kind: str = "Deployment", **metadata: Any) -> dict[str, Any]:
    """Metadata of a pod that the usual workload controls."""
    owner = {"kind": kind, "name": "web", "uid": "w", "controller": True}
    return {"metadata": {"ownerReferences": [owner], **metadata}}


def running(
    name: str = "web-1",
    requests: Mapping[str, str] = REQUESTS,
    has: Mapping[str, Any] | None = None,
    limits: Mapping[str, str] | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
    ready: bool = True,
    change: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Pod:
    """A pod of the usual Deployment that `has` these resources (by default what its spec names); `more` is
    merged into its container, and `status` into the container's status."""
    spec = merged(container(requests=requests, limits=limits), more or {})
    resources = spec["resources"] if has is None else has
    reported = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(at(hours=-1))}
    document = owned(generation=2) | {
        "status": {
            "containerStatuses": [{"name": "app", "resources": resources, **(status or {})}],
            "conditions": [reported, *conditions],
        }
    }
    return pod(name, containers=[spec], change=merged(document, change or {}))


def ended(when: dt.datetime, reason: str = "OOMKilled") -> dict[str, Any]:
    """A container status: it ended then."""
    return {"lastState": {"terminated": {"reason": reason, "finishedAt": stamp(when)}}}


def out_of_memory(name: str = "web-1", minutes: float = 2, **changes: Any) -> Pod:
    """A pod whose container ran out of memory, so many minutes ago."""
    return running(name, status=ended(at(minutes=-minutes)), **changes)


def resize_condition(kind: str, reason: str = "", generation: int = 2, **age: float) -> dict[str, Any]:
    """What the kubelet reports of a resize: Deferred and Infeasible are pending ones."""
    return {
        "type": f"PodResize{kind}",
        "status": "True",
        "reason": reason,
        "message": f"the kubelet says {reason or 'nothing'}",
        "lastTransitionTime": stamp(at(**{key: -value for key, value in age.items()})),
        "observedGeneration": generation,
    }


INFEASIBLE: Final = resize_condition("Pending", "Infeasible", minutes=1)


def infeasible(name: str = "web-1", requests: Mapping[str, str] = LARGER, **changes: Any) -> Pod:
    """A pod that was asked to have these resources, has others, and whose kubelet will not have it."""
    return running(name, requests, {"requests": REQUESTS}, conditions=[INFEASIBLE], **changes)


def size_status(
    replicas: int, containers: Mapping[str, Any], since: dt.datetime | None = None, **more: Any
) -> dict[str, Any]:
    """The status where a size was decided, a minute ago by default."""
    named = [{"name": name, **size} for name, size in containers.items()]
    when = stamp(since or at(minutes=-1))
    desired = {"replicas": replicas, "containers": named, "since": when, "generation": 1, **more}
    return {"desired": desired, "axes": {"vertical": {"lastScaleTime": when, "lastScaleUpTime": when}}}


def decision(
    pods: Sequence[Pod],
    size: Mapping[str, Any] | None = None,
    strategy: Mapping[str, Any] | None = None,
    since: dt.datetime | None = None,
    spec: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where `size` (requests and limits of `app`) was decided before, and the VPA wants no other."""
    wanted = size or {"requests": LARGER}
    usual = {"updateStrategy": {"type": "InPlace", **(strategy or {})}, "hpa": {"deploy": False}}
    sized_hvpa = hvpa(merged(usual, spec or {}), size_status(len(pods), {"app": wanted}, since))
    target = rest.pop("vertical", None) or vpa({"app": wanted["requests"]})
    return decided(objects(sized_hvpa, workload(len(pods)), None, target, pods, **rest))


def resized(decision: Decision) -> dict[str, Any]:
    """By pod what it is asked to have."""
    return {resize.pod: resize.body["spec"]["containers"][0]["resources"] for resize in decision.resizes}  # type: ignore[index]


def patches_template(decision: Decision) -> bool:
    """Whether the workload's pods are to be replaced, the only way in which a pod ends here."""
    return decision.workload_patch is not None and not decision.workload_patch.is_scale


def actuation(decision: Decision) -> Actuation:
    assert decision.status.actuation is not None
    return decision.status.actuation


def desired(decision: Decision) -> DesiredSize:
    assert decision.status.desired is not None
    return decision.status.desired


def canary(decision: Decision) -> CanaryRun:
    run = desired(decision).canary
    assert run is not None
    return run


def rolled_back(decision: Decision) -> RolledBack:
    assert decision.status.rolled_back is not None
    return decision.status.rolled_back


def ready_of(decision: Decision) -> tuple[str, str]:
    ready_condition = condition(decision, "Ready")
    return ready_condition.reason, ready_condition.message
