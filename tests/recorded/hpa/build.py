"""Building the scenarios of the HPA: specs, pods and readings in a line each. The form is what
`controlplane/core/hpa-replay/scenario.go` reads and `model.py` replays to our model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.recorded.replay import Json, timestamp

NAMESPACE = "shop"
SELECTOR = "app=web"
SETTINGS: Mapping[str, float] = {
    "syncPeriod": 15,
    "tolerance": 0.1,
    "downscaleStabilization": 300,
    "cpuInitializationPeriod": 300,
    "initialReadinessDelay": 30,
}
"""The defaults of kube-controller-manager."""
LONG_AGO = -7200
"""When pods started that are long ready."""


def scenario(
    name: str,
    metrics: Sequence[Json] | None,
    steps: Sequence[Json],
    *,
    syncs: int = 3,
    behavior: Json | None = None,
    least: int | None = 1,
    most: int = 10,
    settings: Mapping[str, float] = SETTINGS,
) -> Json:
    """An HPA `web` with these metrics (None: none are given); `settings` are those that differ from the defaults."""
    return {
        "name": name,
        "hpa": {
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": spec(metrics, behavior=behavior, least=least, most=most),
        },
        "settings": {**SETTINGS, **settings},
        "syncs": syncs,
        "steps": list(steps),
    }


def spec(
    metrics: Sequence[Json] | None, *, behavior: Json | None = None, least: int | None = 1, most: int = 10
) -> Json:
    """An HPA's spec."""
    made: Json = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": most,
    }
    if least is not None:
        made["minReplicas"] = least
    if metrics is not None:
        made["metrics"] = list(metrics)
    if behavior is not None:
        made["behavior"] = behavior
    return made


def step(
    at: float,
    *,
    replicas: int | None = None,
    current: int | None = None,
    selector: str | None = None,
    pods: Sequence[Json] | None = None,
    follow: bool | None = None,
    readings: Json | None = None,
    spec: Json | None = None,
) -> Json:
    """What changes before the sync at this second or the next one after it. `replicas` without `current` sets both."""
    scale: Json = {}
    if replicas is not None:
        scale["replicas"] = replicas
        scale["current"] = replicas if current is None else current
    elif current is not None:
        scale["current"] = current
    if selector is not None:
        scale["selector"] = selector
    made: Json = {"at": at, "scale": scale or None, "pods": pods, "follow": follow}
    made |= {"readings": readings, "spec": spec}
    return {key: value for key, value in made.items() if value is not None}


def begin(replicas: int, pods: Sequence[Json], readings: Json, **more: Any) -> Json:
    """The first step: the scale, its selector, pods and readings."""
    return step(
        0,
        replicas=replicas,
        selector=more.pop("selector", SELECTOR),
        pods=pods,
        readings=readings,
        **more,
    )


# --- pods ---


def pod(
    name: str,
    *,
    cpu: str | None = "100m",
    memory: str | None = "128Mi",
    phase: str = "Running",
    ready: bool | None = True,
    started: float | None = LONG_AGO,
    since: float | None = None,
    deleted: float | None = None,
    containers: Mapping[str, Mapping[str, str]] | None = None,
) -> Json:
    """A pod with the Ready condition `ready` (None: without it) `since` that second; by default since 10 s after it
    `started` (None: without start time). `containers` gives requests by container instead of one container's."""
    meta: Json = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}}
    if deleted is not None:
        meta["deletionTimestamp"] = timestamp(deleted)
    status: Json = {"phase": phase}
    if started is not None:
        status["startTime"] = timestamp(started)
    if ready is not None:
        changed = since if since is not None else (started if started is not None else LONG_AGO) + 10
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": timestamp(changed)}
        status["conditions"] = [{"type": "PodScheduled", "status": "True"}, condition]
    requests = {"cpu": cpu, "memory": memory}
    single = {"app": {resource: amount for resource, amount in requests.items() if amount is not None}}
    listed = single if containers is None else containers
    return {
        "metadata": meta,
        "spec": {"containers": [{"name": n, "resources": {"requests": dict(r)}} for n, r in listed.items()]},
        "status": status,
    }


def pods(count: int, **same: Any) -> list[Json]:
    """Pods `p0`, `p1`, … that are all alike."""
    return [pod(f"p{number}", **same) for number in range(count)]


def names(count: int, value: int = 0) -> dict[str, int]:
    """A value for each of `pods(count)`."""
    return {f"p{number}": value for number in range(count)}


# --- readings ---


def measured(
    name: str,
    values: Mapping[str, int],
    *,
    container: str = "",
    selector: str = "",
    age: float = 5,
    window: float = 15,
    share: int = 0,
) -> Json:
    """Values (milli-units) by pod, `age` seconds old, each the mean of `window` seconds; or a total that they share."""
    times = [int(age * 1000), int(window * 1000)]
    return {
        "name": name,
        "container": container,
        "selector": selector,
        "share": share,
        "values": {pod: [value, *times] for pod, value in values.items()},
    }


def failing(name: str, error: str, **more: str) -> Json:
    """A metric that cannot be had."""
    return {"name": name, "error": error, **more}


def readings(
    resource: Sequence[Json] = (),
    pods: Sequence[Json] = (),
    object: Sequence[Json] = (),
    external: Sequence[Json] = (),
) -> Json:
    """All that is measured; what is not listed cannot be had."""
    return {
        "resource": list(resource),
        "pods": list(pods),
        "object": list(object),
        "external": list(external),
    }


def cpu(values: Mapping[str, int], **more: Any) -> Json:
    """CPU readings only."""
    return readings(resource=[measured("cpu", values, **more)])


def shared_cpu(total: int, count: int) -> Json:
    """A CPU load (millicores) that the existing ones of `pods(count)` share."""
    return cpu(names(count), share=total)


# --- metrics of a spec ---


def resource(
    name: str = "cpu",
    *,
    utilization: int | None = None,
    average: str | None = None,
    container: str | None = None,
) -> Json:
    """A Resource metric, or, with a container, a ContainerResource one."""
    source: Json = {"name": name, "target": _target(utilization=utilization, average=average)}
    if container is None:
        return {"type": "Resource", "resource": source}
    return {"type": "ContainerResource", "containerResource": {"container": container, **source}}


def pods_metric(name: str, average: str, labels: Mapping[str, str] | None = None) -> Json:
    """A Pods metric."""
    return {"type": "Pods", "pods": {"metric": _metric(name, labels), "target": _target(average=average)}}


def object_metric(
    name: str,
    *,
    value: str | None = None,
    average: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """An Object metric of the Service `front`."""
    source = {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
        "metric": _metric(name, labels),
        "target": _target(value=value, average=average),
    }
    return {"type": "Object", "object": source}


def external(
    name: str,
    *,
    value: str | None = None,
    average: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """An External metric."""
    return {
        "type": "External",
        "external": {"metric": _metric(name, labels), "target": _target(value=value, average=average)},
    }


def _metric(name: str, labels: Mapping[str, str] | None) -> Json:
    return {"name": name} if labels is None else {"name": name, "selector": {"matchLabels": dict(labels)}}


def _target(*, utilization: int | None = None, average: str | None = None, value: str | None = None) -> Json:
    if utilization is not None:
        return {"type": "Utilization", "averageUtilization": utilization}
    if average is not None:
        return {"type": "AverageValue", "averageValue": average}
    return {"type": "Value", "value": value}


# --- behaviour ---


def rules(
    *policies: tuple[str, int, int],
    window: int | None = None,
    select: str | None = None,
    tolerance: str | None = None,
) -> Json:
    """Rules of one direction; each policy is type, value and period in seconds."""
    made: Json = {"stabilizationWindowSeconds": window, "selectPolicy": select, "tolerance": tolerance}
    if policies:
        made["policies"] = [{"type": kind, "value": v, "periodSeconds": p} for kind, v, p in policies]
    return {key: value for key, value in made.items() if value is not None}


def behavior(*, up: Json | None = None, down: Json | None = None) -> Json:
    """`spec.behavior`."""
    return {key: value for key, value in (("scaleUp", up), ("scaleDown", down)) if value is not None}
