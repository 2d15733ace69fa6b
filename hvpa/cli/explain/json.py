"""A decision as JSON: a stable contract, whose types and words are in `docs/explain.schema.json`. All keys are always
there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hvpa.api.hvpa.status import StatusCondition, to_wire
from hvpa.api.values.quantity import Resource, format_resource
from hvpa.api.values.text import printable_json
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.explain.pods import PodRow, pod_rows
from hvpa.cli.explain.reported import differing
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.model import Blocked, Decision, JointResource, JointView, Observation, ResourceRequirements
from hvpa.core.path.path import Point, ResourceKey
from hvpa.core.values.weight import FULL, percent

Json = dict[str, Any]
_MEAN_DIGITS = 2


def to_json(seen: Observation, decision: Decision, applied: Decision | None = None) -> str:
    """The decision as indented JSON, without a line break at the end; `applied` is the one that mode Apply would make,
    in another mode."""
    view, weight, wait = decision.replicas, decision.weight_ppm, decision.recheck_after
    return indented(
        {
            "replicas": None
            if view is None
            else {"current": view.current, "hpa": view.hpa, "target": view.target},
            "weights": None if weight is None else {"hpa": percent(FULL - weight), "vpa": percent(weight)},
            "containers": containers(decision.containers),
            "recommended": {
                "replicas": None if view is None else view.recommended,
                "containers": containers(decision.recommended),
            },
            "changes": decision.workload_patch is not None,
            "blocked": [_blocked(one) for one in decision.blocked],
            "conditions": [_condition(one) for one in decision.status.conditions],
            "recheckAfterSeconds": None if wait is None else wait.total_seconds(),
            "path": None if decision.joint is None else _path(decision.joint),
            "patch": patch_body(decision),
            "nextStatus": to_wire(decision.status),
            "scaleReplicas": decision.scale_replicas,
            "reported": _reported(seen),
            "differences": [
                {
                    "type": one.decided.type,
                    "reported": f"{one.reported.status} {one.reported.reason}",
                    "decided": f"{one.decided.status} {one.decided.reason}",
                    "why": one.why,
                }
                for one in differing(seen, decision)
            ],
            "inModeApply": None if applied is None else _in_mode_apply(applied),
            "resizes": resizes(decision),
            "actuation": _actuation(seen, decision),
        }
    )


def indented(content: Json) -> str:
    """An object as JSON for people and programs; what others wrote in it can't move a terminal's cursor."""
    return printable_json(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def containers(resources: Mapping[str, ResourceRequirements]) -> Json:
    """Requests and limits as quantities, by container."""
    return {
        name: {"requests": _quantities(one.requests), "limits": _quantities(one.limits)}
        for name, one in resources.items()
    }


def pod(row: PodRow) -> Json:
    """A pod: what it has, what it is to have, and where it stands."""
    return {
        "name": row.name,
        "ready": row.ready,
        "restarts": row.restarts,
        "present": containers(row.present),
        "desired": containers(row.desired),
        "state": row.state,
        "since": _time(row.since),
        "sinceIsExact": row.exact,
        "why": row.why,
    }


def patch_body(decision: Decision) -> Json | None:
    """The body of the workload's patch; None where there is none. A workload of a file may have no resource version:
    an empty one is left out, since the API server would store it."""
    if decision.workload_patch is None:
        return None
    body: Json = msgspec.to_builtins(decision.workload_patch.body)
    if not body.get("metadata", {}).get("resourceVersion", "-"):
        del body["metadata"]["resourceVersion"]
    return body


def _quantities(amounts: Mapping[Resource, int]) -> Json:
    return {resource: format_resource(resource, amount) for resource, amount in amounts.items()}


def _quantity(resource: Resource | None, amount: int | None) -> str | int | None:
    return amount if resource is None or amount is None else format_resource(resource, amount)


def _time(instant: dt.datetime | None) -> str | None:
    return None if instant is None else format_timestamp(instant)


def _blocked(entry: Blocked) -> Json:
    return {
        "axis": entry.axis,
        "direction": entry.direction,
        "reason": entry.reason,
        "container": entry.container,
        "resource": entry.resource,
        "current": _quantity(entry.resource, entry.current),
        "wanted": _quantity(entry.resource, entry.wanted),
        "until": _time(entry.until),
    }


def _condition(one: StatusCondition) -> Json:
    status = one.status if one.status in ("True", "False") else "Unknown"
    return {"type": one.type, "status": status, "reason": one.reason, "message": one.message}


def _in_mode_apply(decision: Decision) -> Json:
    return {
        "replicas": None if decision.replicas is None else decision.replicas.target,
        "containers": containers(decision.containers),
        "changes": decision.workload_patch is not None,
        "blocked": [_blocked(one) for one in decision.blocked],
        "ready": next((_condition(one) for one in decision.status.conditions if one.type == "Ready"), None),
        "resizes": resizes(decision),
    }


def resizes(decision: Decision) -> list[Json]:
    """The pods that are resized now, and what their containers are to have."""
    return [
        {
            "pod": one.pod,
            "containers": {
                container["name"]: {"requests": {}, "limits": {}, **container["resources"]}
                for container in msgspec.to_builtins(one.body)["spec"]["containers"]
            },
        }
        for one in decision.resizes
    ]


def _actuation(seen: Observation, decision: Decision) -> Json | None:
    """How far the pods have got; None where they are replaced by rollouts."""
    spec, size, counts = seen.spec, decision.status.desired, decision.status.actuation
    if spec is None or not spec.update_strategy.in_place:
        return None
    return {
        "type": spec.update_strategy.type,
        "desired": None
        if size is None
        else {
            "replicas": size.replicas,
            "containers": containers(sizes_of(size.containers)),
            "since": format_timestamp(size.since),
        },
        "counts": None
        if counts is None
        else {
            "pods": counts.pods,
            "resized": counts.pods
            - (counts.in_progress + counts.deferred + counts.infeasible + counts.waiting),
            "inProgress": counts.in_progress,
            "deferred": counts.deferred,
            "infeasible": counts.infeasible,
            "waiting": counts.waiting,
        },
        "pods": [pod(one) for one in pod_rows(seen, seen.resizable, size)],
    }


def _reported(seen: Observation) -> Json:
    """What the operator last wrote into the status."""
    error = seen.status.last_error
    return {
        "conditions": [
            {**_condition(one), "since": _time(one.last_transition_time)} for one in seen.status.conditions
        ],
        "lastError": None
        if error is None
        else {
            "operation": error.last_operation,
            "time": _time(error.last_update_time),
            "description": error.description,
        },
        "refused": [
            {"axis": axis, "time": _time(one.time), "count": one.count, "message": one.message}
            for axis, one in (("horizontal", seen.horizontal.refused), ("vertical", seen.vertical.refused))
            if one is not None
        ],
    }


def _path(view: JointView) -> Json:
    """How `blend: Trajectory` solved both axes together."""
    return {
        "usualReplicas": round(view.mean_replicas, _MEAN_DIGITS) if view.items else None,
        "counts": {"min": view.path.counts.lower, "max": view.path.counts.upper},
        "containers": _by_container((item.key, _path_resource(item)) for item in view.items),
        "usual": None if view.usual is None else _point(view.usual),
        "wanted": _point(view.wanted),
        "because": view.because,
    }


def _path_resource(item: JointResource) -> Json:
    resource = item.key.resource
    return {
        "base": _quantity(resource, item.base),
        "current": _quantity(resource, item.current),
        "wanted": _quantity(resource, item.size),
        "usual": _quantity(resource, item.usual),
        "usualFrom": item.usual_from or None,
        "usualReplicas": item.usual_replicas,
        "present": _quantity(resource, item.present),
        "presentFrom": item.present_from or None,
        "presentReplicas": item.present_replicas,
    }


def _point(point: Point) -> Json:
    sizes = ((key, format_resource(key.resource, size)) for key, size in point.sizes.items())
    return {
        "replicas": point.replicas,
        "requests": _by_container(sizes),
        "binding": None if point.binding is None else _name(point.binding),
        "saturated": [_name(key) for key in point.saturated],
    }


def _by_container(values: Iterable[tuple[ResourceKey, Any]]) -> Json:
    found: dict[str, Json] = {}
    for key, value in values:
        found.setdefault(key.container, {})[key.resource] = value
    return found


def _name(key: ResourceKey) -> Json:
    return {"container": key.container, "resource": key.resource}
