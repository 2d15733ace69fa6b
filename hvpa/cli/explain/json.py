"""A decision as JSON: a stable contract with its types and words in `docs/explain.schema.json`. All keys are always
present."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from hvpa.api.hvpa.status import StatusCondition, to_wire
from hvpa.api.values.quantity import Resource, format_resource
from hvpa.cli.explain.pods import pod_rows
from hvpa.cli.explain.words import kind
from hvpa.cli.output import Json, containers, indented, timestamp
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.actuation.removal import MARKS
from hvpa.core.gates.floors import FloorState, floor_state, next_floor
from hvpa.core.gates.gates import REFUSED
from hvpa.core.model import Blocked, Decision, JointResource, JointView, Observation
from hvpa.core.path.path import Point, ResourceKey
from hvpa.core.rules import Rules, Wait
from hvpa.core.state import held_until
from hvpa.core.values.tuning import RESIZES_AGAIN
from hvpa.core.values.weight import FULL, percent
from hvpa.core.workload.pod_level import POD

_WRITES = (
    "a write of the operator failed; explain writes nothing, so only the operator's next attempt shows if it "
    "still fails"
)
_UNSEEN = "the operator has not processed the latest spec yet"
_DUE = "the operator has not made the writes above yet"
_CHANGED = (
    "something changed after the operator's last reconcile; if this persists, the operator is not running"
)


def to_json(
    observation: Observation,
    decision: Decision,
    applied: Decision | None = None,
    operator: Json | None = None,
) -> str:
    """The decision as indented JSON, without a final line break."""
    return indented(as_json(observation, decision, applied, operator))


def as_json(
    observation: Observation,
    decision: Decision,
    applied: Decision | None = None,
    operator: Json | None = None,
) -> Json:
    """The decision as JSON.

    `applied` is the decision that mode Apply would make, if the Hvpa has another mode. `operator` is the state of the
    operator, if known.
    """
    view, weight, wait = decision.replicas, decision.weight_ppm, decision.recheck_after
    replicas = None if view is None else {"current": view.current, "hpa": view.hpa, "target": view.target}
    recommended = {
        "replicas": None if view is None else view.recommended,
        "containers": containers(decision.recommended),
    }
    return {
        "replicas": replicas,
        "weights": None if weight is None else {"hpa": percent(FULL - weight), "vpa": percent(weight)},
        "containers": containers(decision.containers),
        "recommended": recommended,
        "changes": decision.workload_patch is not None,
        "blocked": [_blocked(entry) for entry in decision.blocked],
        "conditions": [_condition(condition) for condition in decision.status.conditions],
        "recheckAfterSeconds": None if wait is None else wait.total_seconds(),
        "path": None if decision.joint is None else _path(decision.joint),
        "patch": patch_body(decision),
        "nextStatus": to_wire(decision.status),
        "scaleReplicas": decision.scale_replicas,
        "reported": _reported(observation),
        "differences": [
            {
                "type": difference.decided.type,
                "reported": f"{difference.reported.status} {difference.reported.reason}",
                "decided": f"{difference.decided.status} {difference.decided.reason}",
                "why": difference.why,
            }
            for difference in differing_conditions(observation, decision)
        ],
        "inModeApply": None if applied is None else _in_mode_apply(applied),
        "resizes": resizes(decision),
        "deletionCosts": deletion_costs(decision),
        "actuation": _actuation(observation, decision),
        "replacing": _replacing(observation),
        "schedule": _schedule(observation),
        "forecast": _forecast(decision),
        "fastSignal": _fast_signal(decision),
        "operator": operator,
        "gates": [_rules(observation, rules) for rules in decision.rules],
    }


def patch_body(decision: Decision) -> Json | None:
    """The body of the workload's patch; None without a patch.

    A workload from a file may have no resource version. An empty version is omitted, since the API server would store
    it.
    """
    if decision.workload_patch is None:
        return None
    body: Json = msgspec.to_builtins(decision.workload_patch.body)
    if not body.get("metadata", {}).get("resourceVersion", "-"):
        del body["metadata"]["resourceVersion"]
    return body


def resizes(decision: Decision) -> list[Json]:
    """The pods that are resized now, and the new resources of their containers and of the pod itself."""
    return [
        {
            "pod": resize.pod,
            "containers": {
                name: {"requests": {}, "limits": {}, **resources}
                for name, resources in _resized(msgspec.to_builtins(resize.body)["spec"])
            },
        }
        for resize in decision.resizes
    ]


def _resized(spec: Json) -> Iterator[tuple[str, Json]]:
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        yield container["name"], container["resources"]
    if "resources" in spec:
        yield POD, spec["resources"]


def deletion_costs(decision: Decision) -> list[Json]:
    """The pods whose deletion cost is written now."""
    return [
        {"pod": write.pod, "cost": write.cost, "why": MARKS.get(write.cost or "", "has its size again")}
        for write in decision.costs
    ]


def _quantity(resource: Resource | None, amount: int | None) -> str | int | None:
    return amount if resource is None or amount is None else format_resource(resource, amount)


def _blocked(entry: Blocked) -> Json:
    return {
        "axis": entry.axis,
        "direction": entry.direction,
        "reason": entry.reason,
        "container": entry.container,
        "resource": entry.resource,
        "current": _quantity(entry.resource, entry.current),
        "wanted": _quantity(entry.resource, entry.wanted),
        "until": timestamp(entry.until),
        **_figures(entry),
    }


def _figures(entry: Blocked) -> Json:
    """The values by which a gate holds a change back."""
    figures = entry.figures
    if figures is None:
        return {"waitSeconds": None, "least": None, "source": None}
    wait = None if figures.wait is None else figures.wait.total_seconds()
    return {"waitSeconds": wait, "least": _quantity(entry.resource, figures.least), "source": figures.source}


def _rules(observation: Observation, rules: Rules) -> Json:
    """The waits and thresholds of a direction, each with the field that sets it, or `default`."""
    axis = observation.horizontal if rules.axis == "horizontal" else observation.vertical
    least = {
        name: {
            "value": min_change.value if name == "replicas" else _quantity(kind(name), min_change.value),
            "percentage": min_change.percentage,
            "source": min_change.source,
        }
        for name, min_change in rules.min_change.items()
    }
    return {
        "name": rules.name,
        "updateMode": rules.policy.update_policy.update_mode,
        "lastStep": timestamp(axis.last_scale_time),
        "stabilization": _wait(rules.stabilization),
        "sustained": _wait(rules.sustained),
        "highestDemand": _wait(rules.highest),
        "minChange": least,
        "minChangeTimeout": _wait(rules.timeout),
    }


def _wait(wait: Wait | None) -> Json | None:
    return None if wait is None else {"seconds": wait.duration.total_seconds(), "source": wait.source}


def _condition(condition: StatusCondition) -> Json:
    status = condition.status if condition.status in ("True", "False") else "Unknown"
    return {
        "type": condition.type,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
    }


def _in_mode_apply(decision: Decision) -> Json:
    return {
        "replicas": None if decision.replicas is None else decision.replicas.target,
        "containers": containers(decision.containers),
        "changes": decision.workload_patch is not None,
        "blocked": [_blocked(entry) for entry in decision.blocked],
        "ready": next(
            (_condition(condition) for condition in decision.status.conditions if condition.type == "Ready"),
            None,
        ),
        "resizes": resizes(decision),
        "deletionCosts": deletion_costs(decision),
    }


def _schedule(observation: Observation) -> Json | None:
    """The current and the next scheduled floor; None without a schedule."""
    spec = observation.spec
    if spec is None or observation.workload is None or not spec.hpa.schedule:
        return None
    floor = floor_state(spec, observation.now)
    following = next_floor(spec, floor)
    return {"now": _floor(floor), "next": None if following is None else _floor(following[1], following[0])}


def _forecast(decision: Decision) -> Json | None:
    """The floor of the forecast, and whether it is used; None without a forecast."""
    forecast = decision.status.forecast
    if forecast is None:
        return None
    return {"minReplicas": forecast.replicas, "offPercent": forecast.off_percent, "message": forecast.message}


def _fast_signal(decision: Decision) -> Json | None:
    """The source and the age of the fast signal, as the operator reported them; None without one."""
    signal = decision.status.fast_signal
    if signal is None:
        return None
    return {
        "source": signal.source,
        "nodes": signal.nodes,
        "silent": signal.silent,
        "samplingSeconds": signal.sampling_seconds,
        "lastSampleTime": timestamp(signal.last_sample_time),
    }


def _floor(floor: FloorState, begin: dt.datetime | None = None) -> Json | None:
    """A scheduled floor, with its `begin` if it is in the future; None without a floor."""
    if not floor.replicas:
        return None
    times = {"from": timestamp(begin), "until": timestamp(floor.until)}
    return {"minReplicas": floor.replicas, "entry": floor.entry, **times}


def _actuation(observation: Observation, decision: Decision) -> Json | None:
    """The progress of the pods' resizes; None if rollouts replace the pods."""
    spec, size, actuation = observation.spec, decision.status.desired, decision.status.actuation
    if spec is None or not spec.strategy.in_place:
        return None
    desired = counts = None
    if size is not None:
        sizes = containers(sizes_of(size.containers))
        desired = {"replicas": size.replicas, "containers": sizes, "since": timestamp(size.since)}
    if actuation is not None:
        left = {
            "inProgress": actuation.in_progress,
            "deferred": actuation.deferred,
            "infeasible": actuation.infeasible,
            "waiting": actuation.waiting,
        }
        counts = {"pods": actuation.pods, "resized": actuation.pods - sum(left.values()), **left}
    pods = [row.to_json() for row in pod_rows(observation, observation.resizable, size)]
    return {"type": spec.strategy.type, "desired": desired, "counts": counts, "pods": pods}


def replacing(observation: Observation) -> tuple[dt.datetime, str] | None:
    """Until when InPlaceOrRollout replaces pods, and why they could not be resized; None if it resizes them."""
    spec, fallback = observation.spec, observation.status.replacing
    if spec is None or fallback is None or spec.strategy.type != "Rollout":
        return None
    until = held_until(fallback.since, RESIZES_AGAIN, observation.now)
    return None if until is None else (until, fallback.message)


def _replacing(observation: Observation) -> Json | None:
    if (fallback := replacing(observation)) is None:
        return None
    until, message = fallback
    return {"until": timestamp(until), "message": message}


# --- reported conditions --------------------------------------------------------------------------------------------
class Difference(NamedTuple):
    """A condition that the operator reported differently from the current decision, and a possible cause."""

    reported: StatusCondition
    decided: StatusCondition
    why: str


def differing_conditions(observation: Observation, decision: Decision) -> Iterator[Difference]:
    """The conditions whose status or reason differ between the operator's report and this decision."""
    decided = {condition.type: condition for condition in decision.status.conditions}
    for reported in observation.status.conditions:
        current = decided.get(reported.type)
        if current is not None and (current.status, current.reason) != (reported.status, reported.reason):
            yield Difference(reported, current, _why(observation, decision, reported))


def _why(observation: Observation, decision: Decision, reported: StatusCondition) -> str:
    if reported.type == "Ready" and reported.reason in ("WriteFailed", REFUSED):
        return _WRITES
    if (
        reported.observed_generation is not None
        and reported.observed_generation < observation.metadata.generation
    ):
        return _UNSEEN
    writes = (decision.workload_patch, decision.scale_replicas)
    is_due = any(write is not None for write in writes) or bool(decision.owned or decision.resizes)
    return _DUE if is_due else _CHANGED


def _reported(observation: Observation) -> Json:
    """The operator's last status."""
    conditions = [
        {**_condition(condition), "since": timestamp(condition.last_transition_time)}
        for condition in observation.status.conditions
    ]
    last_error = None
    if (error := observation.status.last_error) is not None:
        last_error = {
            "operation": error.last_operation,
            "time": timestamp(error.last_update_time),
            "description": error.description,
        }
    refused = [
        {"axis": axis, "time": timestamp(refusal.time), "count": refusal.count, "message": refusal.message}
        for axis, refusal in (
            ("horizontal", observation.horizontal.refused),
            ("vertical", observation.vertical.refused),
        )
        if refusal is not None
    ]
    return {"conditions": conditions, "lastError": last_error, "refused": refused}


# --- blend: Trajectory ----------------------------------------------------------------------------------------------
def _path(view: JointView) -> Json:
    """The joint solution of both axes."""
    return {
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
        "binding": None if point.binding is None else point.binding._asdict(),
        "saturated": [key._asdict() for key in point.saturated],
    }


def _by_container(values: Iterable[tuple[ResourceKey, Any]]) -> Json:
    by_container: dict[str, Json] = {}
    for key, value in values:
        by_container.setdefault(key.container, {})[key.resource] = value
    return by_container
