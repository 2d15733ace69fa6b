"""Hypothesis strategies: everything one Hvpa can look like to a decision, as the cluster would send it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from builders import build
from builders.build import NOW, stamp
from hvpa.api.objects.read_models import Hpa, Pod, Vpa, Workload
from hvpa.core import Objects

WINDOWS: dict[str, dict[str, str] | None] = {
    "none": None,
    "open": {"begin": "090000+0000", "end": "110000+0000"},
    "closed": {"begin": "220000+0000", "end": "230000+0000"},
}
CONTAINERS = ("app", "sidecar")


@dataclass(frozen=True)
class Limits:
    """What a strategy may draw: narrowed by the properties that speak of special cases."""

    modes: tuple[str, ...] = ("Auto", "Auto", "Auto", "Auto", "Off", "MaintenanceWindow")
    hvpa_modes: tuple[str, ...] = ("Apply", "Apply", "Apply", "Recommend", "Paused")
    weights: tuple[float, ...] = (50, 20, 0, 100)
    windows: tuple[str, ...] = tuple(WINDOWS)


ANYTHING = Limits()


@cache
def cpus(least: int = 0) -> st.SearchStrategy[int]:
    """Millicores."""
    return st.integers(least, 8000)


@cache
def memories() -> st.SearchStrategy[int]:
    """Bytes: odd ones, and whole mebibytes."""
    return st.one_of(st.integers(1, 2**33), st.integers(1, 8192).map(_mebibytes))


def _mebibytes(count: int) -> int:
    return count * build.MIB


def amounts(cpu: int | None, memory: int | None) -> dict[str, str]:
    """A resource list."""
    quantities = {
        "cpu": None if cpu is None else f"{cpu}m",
        "memory": None if memory is None else str(memory),
    }
    return {name: value for name, value in quantities.items() if value is not None}


@cache
def mostly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What the strategy draws, or now and then None."""
    return st.integers(0, 4).flatmap(lambda number: strategy if number else st.none())


@cache
@st.composite
def containers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A container whose limits, where there are any, are not below its requests."""
    cpu, memory = draw(mostly(cpus(1))), draw(mostly(memories()))
    cpu_limit = draw(st.none() | cpus(cpu or 1))
    memory_limit = draw(st.none() | memories())
    if memory_limit is not None and memory is not None:
        memory_limit = max(memory, memory_limit)
    limits = amounts(cpu_limit, memory_limit)
    return build.container(name, amounts(cpu, memory), limits or None)


@cache
def scale_params(*resources: str) -> st.SearchStrategy[dict[str, Any]]:
    """`minChange` or gap parameters."""
    values = {
        "cpu": st.integers(0, 3000).map(lambda value: f"{value}m"),
        "memory": st.integers(0, 2**31).map(str),
        "replicas": st.integers(0, 5).map(str),
    }
    return st.fixed_dictionaries(
        {},
        optional={
            name: st.fixed_dictionaries(
                {}, optional={"value": values[name], "percentage": st.integers(0, 150)}
            )
            for name in resources
        },
    )


@cache
def directions(limits: Limits, *resources: str) -> st.SearchStrategy[dict[str, Any]]:
    """`scaleUp` or `scaleDown`."""
    return st.fixed_dictionaries(
        {
            "updatePolicy": st.fixed_dictionaries({"updateMode": st.sampled_from(limits.modes)}),
            "stabilizationDuration": st.sampled_from(["0s", "30s", "2h"]),
            "minChange": scale_params(*resources),
        }
    )


@cache
@st.composite
def intervals(draw: st.DrawFn, limits: Limits) -> list[dict[str, Any]] | None:
    """One interval for all counts; several in order, with gaps and shared boundaries; or none."""
    weights = st.sampled_from(limits.weights)
    kind = draw(st.integers(0, 5))
    if kind == 0 and 0 in limits.weights:
        return None
    if kind < 4:
        return [{"vpaWeight": draw(weights)}]
    drawn_intervals: list[dict[str, Any]] = []
    first = 1
    for _ in range(draw(st.integers(1, 3))):
        start = first + draw(st.integers(0, 1))
        last = start + draw(st.integers(0, 5))
        drawn_intervals.append(
            {"vpaWeight": draw(weights), "startReplicaCount": start, "lastReplicaCount": last}
        )
        first = last
    return drawn_intervals


@cache
@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """A container policy."""
    cpu, memory = draw(st.none() | cpus(1)), draw(st.none() | memories())
    upper_cpu = draw(st.none() | cpus(cpu or 1))
    upper_memory = draw(st.none() | memories())
    if upper_memory is not None and memory is not None:
        upper_memory = max(memory, upper_memory)
    policy: dict[str, Any] = {
        "containerName": draw(st.sampled_from(("*", *CONTAINERS))),
        "minAllowed": amounts(cpu, memory),
        "maxAllowed": amounts(upper_cpu, upper_memory),
        "mode": draw(st.sampled_from(["Auto"] * 7 + ["Off"])),
        "controlledValues": draw(st.sampled_from(("RequestsAndLimits", "RequestsOnly"))),
    }
    controlled = draw(st.sampled_from([None, None, ["cpu", "memory"], ["memory"], []]))
    if controlled is not None:
        policy["controlledResources"] = controlled
    return policy


_MAX_STEP = st.none() | st.fixed_dictionaries(
    {}, optional={"factor": st.sampled_from([1.1, 1.5, 2, 10]), "minimum": st.integers(1, 5)}
)


_FLOORS: st.SearchStrategy[list[dict[str, Any]]] = st.just([]) | st.lists(
    st.fixed_dictionaries(
        {
            "schedule": st.sampled_from(
                ["0 9 * * *", "0 10 * * *", "20 10 * * *", "*/30 * * * *", "@hourly"]
            ),
            "duration": st.sampled_from(["1m", "1h", "90m"]),
            "minReplicas": st.integers(1, 15),
        }
    ),
    max_size=3,
)
"""Some are open at NOW, some begin or end within an hour."""


@cache
@st.composite
def specs(draw: st.DrawFn, limits: Limits = ANYTHING) -> dict[str, Any]:
    """A change of the usual spec."""
    least = draw(st.integers(1, 4))
    most = least + draw(st.integers(0, 9))
    hpa = {
        "scaleUp": {**draw(directions(limits, "replicas")), "maxStep": draw(_MAX_STEP)},
        "scaleDown": draw(directions(limits, "replicas")),
        "schedule": draw(_FLOORS),
        "template": {"spec": {"minReplicas": least, "maxReplicas": most}},
    }
    vpa = {
        "scaleUp": {
            **draw(directions(limits, "cpu", "memory")),
            "minChangeTimeout": draw(st.sampled_from(["0s", "15m"])),
        },
        "scaleDown": {
            **draw(directions(limits, "cpu", "memory")),
            "minHistory": draw(st.sampled_from(["0s", "1h"])),
        },
        "limitsRequestsGapScaleParams": draw(scale_params("cpu", "memory")),
        "template": {
            "spec": {"resourcePolicy": {"containerPolicies": draw(st.lists(policies(), max_size=1))}}
        },
    }
    return {
        "replicas": draw(st.none() | st.integers(0, 15)),
        "forecast": draw(st.none() | st.just({"history": "1d"})),
        "mode": draw(st.sampled_from(limits.hvpa_modes)),
        "hpa": hpa,
        "vpa": vpa,
        "weightBasedScalingIntervals": draw(intervals(limits)),
        "maintenanceTimeWindow": WINDOWS[draw(st.sampled_from(limits.windows))],
    }


@cache
def times() -> st.SearchStrategy[str | None]:
    """A recorded time: none, some time ago, now, or ahead by a wrong clock."""
    offsets = st.sampled_from([-7200, -300, -61, -59, -20, 0, 30, 3600])
    return st.none() | offsets.map(lambda seconds: stamp(NOW + dt.timedelta(seconds=seconds)))


@st.composite
def statuses(draw: st.DrawFn, workload: Workload) -> dict[str, Any]:
    """What earlier decisions may have left behind; what they set may stand, or another client has set it back."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return {}
    if kind == 1:
        when = draw(times())
        flag = draw(st.booleans())
        legacy = {"lastScaling": {"lastScaleTime": when}} if when else {}
        return {**legacy, "overrideScaleUpStabilization": flag}
    names = [container.name for container in workload.spec.template.spec.containers]
    horizontal = {"lastScaleTime": draw(times()), "appliedFrom": draw(_SPENT), "setBack": draw(_SET_BACK)}
    if horizontal["appliedFrom"] and draw(_STANDS):
        horizontal["appliedFrom"] = {**horizontal["appliedFrom"], "replicas": workload.spec.replicas}
    vertical = {
        "lastScaleTime": draw(times()),
        "appliedFrom": [_spent_target(draw, workload) for _ in range(draw(_UP_TO_3))],
        "pending": [
            {"container": name, "resource": "cpu", "direction": "up", "since": draw(times()) or stamp(NOW)}
            for name in names[: draw(_UP_TO_3)]
        ],
        "overrides": [
            {"container": "app", "time": draw(times()) or stamp(NOW)} for _ in range(draw(_UP_TO_3) // 3)
        ],
        "setBack": draw(_SET_BACK),
    }
    return {"axes": {"horizontal": horizontal, "vertical": vertical}}


_WEIGHTS = st.sampled_from([0, 20, 50, 100])
_STANDS = st.sampled_from([True, True, True, False])
_UP_TO_3 = st.integers(0, 3)
_AMOUNT = st.integers(1, 8000)
_SPENT = st.none() | st.fixed_dictionaries(
    {"replicas": st.integers(1, 12), "desired": st.integers(1, 12), "weight": _WEIGHTS},
    optional={"goal": st.integers(1, 12)},
)
_SET_BACK = mostly(
    st.fixed_dictionaries({"count": st.integers(1, 9), "time": times().map(lambda time: time or stamp(NOW))})
)


def _spent_target(draw: st.DrawFn, workload: Workload) -> dict[str, Any]:
    """What a request was blended from; the request stands, or another client has set another."""
    container, resource = draw(st.sampled_from(CONTAINERS)), draw(st.sampled_from(["cpu", "memory"]))
    unit = "m" if resource == "cpu" else "Mi"
    request: Any = f"{draw(_AMOUNT)}{unit}"
    present = {
        pod_container.name: pod_container.resources.requests
        for pod_container in workload.spec.template.spec.containers
    }
    if draw(_STANDS):
        request = present.get(container, {}).get(resource, request)
    return {
        "container": container,
        "resource": resource,
        "target": f"{draw(_AMOUNT)}{unit}",
        "weight": draw(_WEIGHTS),
        "request": request,
    }


@cache
@st.composite
def hpas(draw: st.DrawFn, replicas: int) -> Hpa:
    """The owned HPA: content, wanting out or in, limited, without metrics or inactive."""
    limited = draw(st.booleans())
    active = draw(st.sampled_from(["True"] * 7 + ["False"]))
    conditions = [
        {"type": "ScalingActive", "status": active, "reason": "Some"},
        {"type": "ScalingLimited", "status": str(limited), "reason": "TooManyReplicas"},
    ]
    utilization = draw(mostly(st.integers(0, 250)))
    return build.hpa(
        draw(st.integers(0, 15)), utilization, {"status": {"conditions": conditions}}, replicas=replicas
    )


@cache
@st.composite
def vpas(draw: st.DrawFn) -> Vpa:
    """The owned VPA: with targets for some containers, an unknown one among them."""
    names = draw(st.sampled_from([("app",), CONTAINERS, ("app", "ghost"), ()]))
    targets = {name: amounts(draw(mostly(cpus(1))), draw(mostly(memories()))) for name in names}
    kind = draw(st.sampled_from(["True"] * 9 + ["False"]))
    since = draw(st.sampled_from([build.LONG_AGO, build.LONG_AGO, stamp(NOW - dt.timedelta(minutes=30))]))
    provided = {"type": "RecommendationProvided", "status": kind, "lastTransitionTime": since}
    return build.vpa(targets, {"status": {"conditions": [provided]}})


@st.composite
def pods(draw: st.DrawFn, workload: Workload) -> tuple[Pod, ...]:
    """Pods of the workload: ready or not, killed for memory or not."""
    drawn_pods = []
    templates = [_as_dict(container) for container in workload.spec.template.spec.containers]
    for index in range(draw(st.integers(0, min(workload.spec.replicas, 3)))):
        name = f"web-{index}"
        killed = draw(st.sampled_from([None, None, None, None, -30, -3600]))
        if killed is None:
            drawn_pods.append(build.pod(name, draw(st.booleans()), containers=templates))
        else:
            when = NOW + dt.timedelta(seconds=killed)
            drawn_pods.append(build.oom_killed(when, name, draw(st.sampled_from(CONTAINERS)), templates))
    return tuple(drawn_pods)


def _as_dict(container: Any) -> dict[str, Any]:
    limits = dict(container.resources.limits)
    return build.container(container.name, dict(container.resources.requests), limits or None)


@cache
@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A Deployment whose rollout is complete or not."""
    names = draw(st.sampled_from([CONTAINERS, CONTAINERS[:1]]))
    replicas = draw(st.sampled_from([*range(1, 15), 0]))
    unfinished = {"status": {"updatedReplicas": max(0, replicas - 1)}}
    change = draw(st.sampled_from([{}] * 5 + [unfinished]))
    return build.workload(replicas, [draw(containers(name)) for name in names], change)


@cache
@st.composite
def objects(draw: st.DrawFn, limits: Limits = ANYTHING) -> Objects:
    """Everything that belongs to one Hvpa."""
    workload = draw(workloads())
    hpa = draw(mostly(hpas(max(1, workload.spec.replicas))))
    inputs = build.objects(
        build.hvpa(draw(specs(limits)), draw(statuses(workload))), workload, hpa, draw(mostly(vpas())), ()
    )
    return replace(inputs, pods=draw(pods(workload)))
