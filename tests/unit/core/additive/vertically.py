"""Builders of decisions of `Additive` on requests: an Hvpa whose VPA has a target and whose HPA is content."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from builders import build
from builders.build import NOW, at, stamp
from hvpa.core import Decision, Objects
from hvpa.core.model import Blocked

OFF = {"updatePolicy": {"updateMode": "Off"}}
CLOSED = {"maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
IN_WINDOW = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}


def app(
    cpu: str | None = "1", memory: str | None = "1Gi", limits: Mapping[str, str] | None = None
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return build.container(requests={name: value for name, value in requests.items() if value}, limits=limits)


def seen(
    targets: Mapping[str, str] | Mapping[str, Mapping[str, str]],
    containers: Sequence[Mapping[str, Any]] | None = None,
    weight: float = 50,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """An Hvpa whose VPA targets `targets` of container `app` (or of each container), and whose HPA is content."""
    by_name = targets if all(isinstance(target, Mapping) for target in targets.values()) else {"app": targets}
    whole = build.merged({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, spec or {})
    change = rest.pop("workload", None)
    workload = rest.pop("target", None) or build.workload(3, containers or [app()], change)
    vpa = build.vpa(by_name, rest.pop("vpa", None))  # type: ignore[arg-type]
    hpa = rest.pop("horizontal", build.hpa(workload.spec.replicas, replicas=workload.spec.replicas))
    return build.objects(build.hvpa(whole, status), workload, hpa, vpa, **rest)


def recommending(after: Objects, targets: Mapping[str, str]) -> Objects:
    """The same with other targets of the VPA, and ready pods."""
    return build.objects(after.hvpa, after.workload, after.hpas[0], build.vpa({"app": targets}))


def applied(before: Objects, now: dt.datetime = NOW) -> Objects:
    """The objects once they were decided on."""
    return build.apply(before, build.decided(before, now))


def requests(decision: Decision, container: str = "app") -> dict[str, int]:
    return {name: value for name, value in decision.containers[container].requests.items()}


def limits(decision: Decision, container: str = "app") -> dict[str, int]:
    return {name: value for name, value in decision.containers[container].limits.items()}


def only(decision: Decision) -> Blocked:
    (entry,) = decision.blocked
    return entry


def policy(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [fields]}}}}}


def up(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"scaleUp": fields}}


def down(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"scaleDown": fields}}


def axis(last: dt.datetime | None = None, **more: Any) -> dict[str, Any]:
    return {"axes": {"vertical": {**({"lastScaleTime": stamp(last)} if last else {}), **more}}}


def least(**fields: str) -> dict[str, Any]:
    """A `minChange` of CPU or memory."""
    return {"minChange": {name: {"value": value} for name, value in fields.items()}}


def blended(target: str, weight: float = 100, request: str = "1", **more: Any) -> dict[str, Any]:
    """The record of a step of the app's CPU long ago."""
    entry = {"container": "app", "resource": "cpu", "target": target, "weight": weight, "request": request}
    return axis(at(days=-9), appliedFrom=[{**entry, **more}])
