"""The largest Hvpas that the CRD accepts, with the largest workloads, one for each way to be large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from builders import build
from hvpa.api.hvpa.trajectory import MOST_INTERVALS
from hvpa.api.hvpa.windows import MOST_WINDOWS
from hvpa.api.objects.read_models import Hpa
from hvpa.api.schema.fields import LIST_LENGTH
from hvpa.core import Objects
from hvpa.core.observing import MOST_CONTAINERS

Json = dict[str, Any]
_LONG = "x" * 50
"""Makes names long: container names have at most 63 characters (a label)."""
PODS = 300
"""Pods of a crowd."""
_BY_WINDOW: Json = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
_ZONES = ("Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Beirut")


def names(count: int) -> list[str]:
    """Return names of containers."""
    return [f"c{number:03}-{_LONG}" for number in range(count)]


def schedules(text: str) -> Json:
    """Return a spec with the maximum number of windows and floors; `{}` in the text is a number from 0 to 59."""

    def entry(number: int) -> Json:
        zone = _ZONES[number % len(_ZONES)]
        return {"schedule": text.replace("{}", str(number % 60)), "duration": "1h", "timeZone": zone}

    floors = [{**entry(number), "minReplicas": 2} for number in range(MOST_WINDOWS)]
    axis = {"scaleUp": _BY_WINDOW, "scaleDown": _BY_WINDOW}
    return {
        "maintenanceWindows": [entry(number + 20) for number in range(MOST_WINDOWS)],
        "hpa": {"schedule": floors, **axis},
        "vpa": axis,
    }


def trajectory() -> Json:
    """Return a path with the maximum number of intervals."""
    intervals = [
        {
            "maxReplicas": 1 + n + n * n // 7,
            "maxResources": {"cpu": f"{100 + 37 * n}", "memory": f"{256 + 29 * n}Gi"},
        }
        for n in range(MOST_INTERVALS)
    ]
    return {
        "trajectory": {"intervals": intervals},
        "weightBasedScalingIntervals": None,
        "hpa": {"template": {"spec": {"maxReplicas": 5000}}},
    }


def weights() -> Json:
    """Return a path with the maximum number of weights."""
    intervals = [
        {"vpaWeight": 37 * n % 100, "startReplicaCount": 3 * n + 1, "lastReplicaCount": 3 * n + 3}
        for n in range(LIST_LENGTH)
    ]
    return {
        "blend": "Trajectory",
        "weightBasedScalingIntervals": intervals,
        "hpa": {"template": {"spec": {"maxReplicas": 3 * LIST_LENGTH}}},
    }


def metrics(count: int, containers: int) -> list[Json]:
    """Return metrics of this number of containers."""
    target = {"type": "Utilization", "averageUtilization": 50}
    every = names(containers)
    return [
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu" if n % 2 else "memory",
                "container": every[n % containers],
                "target": target,
            },
        }
        for n in range(count)
    ]


def policies(containers: int) -> list[Json]:
    """Return a policy for each container."""
    bounds = {"minAllowed": {"cpu": "10m", "memory": "10Mi"}, "maxAllowed": {"cpu": "100", "memory": "500Gi"}}
    return [{"containerName": name, **bounds} for name in names(containers)]


def full(spec: Mapping[str, Any], containers: int) -> Json:
    """Return the spec with the maximum number of metrics and container policies."""
    template = {"spec": {"metrics": metrics(LIST_LENGTH, containers)}}
    policy = {"spec": {"resourcePolicy": {"containerPolicies": policies(containers)}}}
    return build.merged(spec, {"hpa": {"template": template}, "vpa": {"template": policy}})


def document(spec: Mapping[str, Any]) -> Json:
    """Return the usual Hvpa's spec with this spec merged over it."""
    return build.merged(build.SPEC, spec)


def _hpa(spec: Mapping[str, Any], replicas: int) -> Hpa:
    asked = document(spec)["hpa"]["template"]["spec"]
    current = [_measured(metric, 60 + n % 40) for n, metric in enumerate(asked["metrics"])]
    change = {"spec": asked, "status": {"currentMetrics": current}}
    return build.hpa(2 * replicas, None, change, replicas=replicas)


def _measured(metric: Json, utilization: int) -> Json:
    part = next(key for key in metric if key != "type")
    value = {"averageUtilization": utilization, "averageValue": "120m"}
    kept = {key: text for key, text in metric[part].items() if key != "target"}
    return {"type": metric["type"], part: {**kept, "current": value}}


def objects(spec: Mapping[str, Any], containers: int = 1, pods: int = 3, starving: bool = False) -> Objects:
    """Return the objects of an Hvpa with this spec: an HPA and a VPA that recommend more, and pods that all differ.
    `starving`: each container has run out of memory."""
    amounts = {"cpu": "100m", "memory": "128Mi"}, {"cpu": "200m", "memory": "256Mi"}
    template = [build.container(name, *amounts) for name in names(containers)]
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": build.stamp(build.at(minutes=-5))}}
    hvpa = build.hvpa(spec)
    assert hvpa.spec is not None, hvpa.problems
    listed = []
    for number in range(pods):
        own = [
            {**container, "resources": {"requests": {**amounts[0], "cpu": f"{100 + number}m"}}}
            for container in template
        ]
        statuses = [
            {"name": name, "restartCount": 3, **({"lastState": ended} if starving else {})}
            for name in names(containers)
        ]
        listed.append(
            build.pod(f"web-{number}", change={"status": {"containerStatuses": statuses}}, containers=own)
        )
    targets = {name: {"cpu": "150m", "memory": "200Mi"} for name in names(containers)}
    return build.objects(hvpa, build.workload(pods, template), _hpa(spec, pods), build.vpa(targets), listed)


@dataclass(frozen=True)
class Largest:
    """A way to be as large as the CRD and the operator allow."""

    spec: Json
    make: Callable[[Json], Objects]


def _in_place(spec: Mapping[str, Any]) -> Json:
    strategy = {"updateStrategy": {"type": "InPlaceOrRollout", "canary": {"pods": "50%"}}}
    return build.merged(spec, strategy)


def largest() -> dict[str, Largest]:
    """Return all ways by name."""
    many, pods = MOST_CONTAINERS, PODS
    ranges = ",".join(["0-59"] * 36) + " * * * *"

    def usual(spec: Json) -> Objects:
        return objects(spec)

    def wide(spec: Json) -> Objects:
        return objects(spec, many)

    def crowd(spec: Json) -> Objects:
        return objects(spec, many, pods, starving=True)

    return {
        "usual": Largest({}, usual),
        "windows: a day that never comes": Largest(schedules("{} 3 31 2,4,6,9,11 *"), usual),
        "windows: 29 February": Largest(schedules("{} 3 29 2 *"), usual),
        "windows: the fifth Monday on the 31st": Largest(schedules("{} 3 31 * mon#5"), usual),
        "windows: long texts": Largest(schedules(ranges), usual),
        "containers, metrics and policies": Largest(full({}, many), wide),
        "the same, Trajectory": Largest(full(trajectory(), many), wide),
        "the same, Trajectory by weights": Largest(full(weights(), many), wide),
        "the same, in place": Largest(_in_place(full(trajectory(), many)), wide),
        "containers of pods": Largest({}, crowd),
        "containers of pods, in place": Largest(_in_place({}), crowd),
        "containers of pods, Trajectory": Largest(_in_place(trajectory()), crowd),
        "all of it": Largest(
            build.merged(_in_place(full(trajectory(), many)), schedules("{} 3 29 2 *")), crowd
        ),
    }


def encoded(spec: Mapping[str, Any]) -> bytes:
    """Encode the spec as the API server does."""
    return msgspec.json.encode(document(spec))
