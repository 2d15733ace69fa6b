"""The numbers of the Hvpa: the ends of the path, a pod's base usage, and the headrooms that are tried.

Each number comes from the history or from today's configuration; `manifest` writes the source next to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hvpa.api.hvpa.actuation import Runtime
from hvpa.api.objects.read_models import Container
from hvpa.api.values.quantity import CPU, MEMORY, MIB, Resource, parse_cpu, parse_resource
from hvpa.cli.input.files import value_at
from hvpa.core.workload.runtimes import Heap, shown_by
from hvpa_lab.init.source.present import Present
from hvpa_lab.simulate.history.fit import Fit
from hvpa_lab.simulate.history.pattern import quantile
from hvpa_lab.simulate.history.regression import FittedLine

TARGETS: Final = (70, 80)
"""Target utilization in percent of a request: headrooms that are tried besides today's."""
_RANGE: Final = range(40, 96)
"""Targets that are tried. Below the range, a request is mostly idle; above, usage may exceed it within the HPA's
tolerance of 10 percent."""
LOW: Final = 0.05
"""Share of the time in which the load is below the load at the start of the path."""
MARGIN: Final = 1.15
"""The VPA recommender's safety margin, for memory without a target of the HPA."""
ROOM: Final = 2.0
"""Maximum pod size, as a multiple of the path's size at the highest load."""
FOLLOWS: Final = 0.2
"""Minimum share of the memory at the highest load that must follow the load, for the HPA to scale by memory too."""
WEIGHT: Final = 50
"""The weight of all measurements in docs/joint-scaling.md: larger pods serve half of each relative increase."""
_DIGITS: Final = 2
BOOST: Final = 3
"""Multiple of the CPU request during a start: the example of docs/startup-boost.md."""
_THROTTLED: Final = 0.5
"""Minimum share of the CPU periods in which starts are throttled, for a boost (issue 41)."""


class ThrottledStart(NamedTuple):
    """A container whose starts are throttled."""

    share: float
    """The median share of the CPU periods."""
    obstacle: str
    """Why it gets no boost, in words; empty if it gets a boost."""


@dataclass(frozen=True, slots=True)
class DraftBounds:
    """The smallest and the largest request of a container, in millicores and bytes."""

    least: Mapping[Resource, int]
    most: Mapping[Resource, int]


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of the Hvpa."""

    target: int | None
    """The HPA's target utilization in percent; None: no HPA, the replicas stay."""
    min_replicas: int
    max_replicas: int
    metrics: Sequence[Mapping[str, Any]]
    """The HPA's metrics, which contain `target`."""
    behavior: Mapping[str, Any] | None
    bounds: Mapping[str, DraftBounds]
    """The bounds of each container that the VPA may size."""
    policies: Mapping[str, Mapping[str, Any]]
    """Today's VPA policy of each container."""
    base: Mapping[Resource, int]
    with_memory: bool
    stabilization: int
    """Seconds before replicas are removed."""
    starts: Mapping[str, ThrottledStart]
    """The containers whose starts are throttled."""
    shown: Mapping[str, tuple[Runtime, Heap | None]]
    """The containers that size their heap when they start."""

    @property
    def runtimes(self) -> list[dict[str, Any]]:
        """`spec.runtimes`."""
        return [
            runtime.model_dump(mode="json", by_alias=True, exclude_none=True)
            for runtime, _ in self.shown.values()
        ]

    @property
    def boosts(self) -> list[dict[str, Any]]:
        """`spec.startupBoost`."""
        return [
            {"container": name, "cpu": {"factor": BOOST}}
            for name, start in self.starts.items()
            if not start.obstacle
        ]

    @property
    def name(self) -> str:
        """The name in tables."""
        return "Hvpa" if self.target is None else f"Hvpa, {self.target} percent"


def drafts(
    present: Present,
    fit: Fit,
    replicas: tuple[int | None, int | None],
    throttled: Mapping[str, float] = {},
) -> list[Draft]:
    """The Hvpas to try, by their targets; `replicas` are the minimum and maximum from the user, if given, and
    `throttled` are the history's throttled starts."""
    least, most = _replicas(present, replicas)
    starts = _starts(present, throttled)
    if most is None:
        return [_draft(present, fit, None, (least, least), starts)]
    return [_draft(present, fit, target, (least, most), starts) for target in _targets(present)]


def _replicas(present: Present, given: tuple[int | None, int | None]) -> tuple[int, int | None]:
    """Minimum and maximum replicas; the maximum is None if nothing may change the count."""
    least, most = given
    hpa = {} if present.hpa is None else present.hpa.spec
    if present.hpa is not None:
        most = most or int(hpa.get("maxReplicas", 1))
    if least is None:
        least = max(1, int(hpa.get("minReplicas") or 1)) if present.hpa else present.workload.spec.replicas
    return max(1, least), most


def _targets(present: Present) -> list[int]:
    """Today's target if it is in range, then others."""
    today = today_target(present)
    targets = list(TARGETS) if today is None or today not in _RANGE else [today, *TARGETS]
    return list(dict.fromkeys(targets))


def today_target(present: Present) -> int | None:
    """Today's CPU utilization target in percent; an average value is converted by today's request."""
    requested = sum(container.requests.get(CPU, 0) for container in present.containers.values())
    for metric in _metrics(present):
        for source in _sources(metric):
            target = source["target"] if source["name"] == CPU else {}
            if target.get("averageUtilization"):
                return int(target["averageUtilization"])
            if target.get("averageValue") and requested:
                return round(100 * parse_cpu(target["averageValue"]) / requested)
    return 80 if present.hpa is not None and not _metrics(present) else None


def _metrics(present: Present) -> list[Mapping[str, Any]]:
    return [] if present.hpa is None else list(present.hpa.spec.get("metrics") or ())


def _draft(
    present: Present,
    fit: Fit,
    target: int | None,
    replicas: tuple[int, int],
    starts: Mapping[str, ThrottledStart],
) -> Draft:
    least, most = replicas
    low, high = quantile(fit.load, LOW), max(fit.load)
    with_memory = target is not None and _memory_follows(fit, high)
    at_peak = _at_peak(fit, low, high, replicas)
    used_part = (100 if target is None else target) / 100
    parts: dict[Resource, float] = {CPU: used_part, MEMORY: used_part if with_memory else 1 / MARGIN}
    policies = _policies(present)
    bounds = {
        name: _bounds(present, fit, name, parts, (low / least, high / at_peak), policies[name])
        for name in fit.containers
        if policies[name].get("mode") != "Off"
    }
    behavior = None if present.hpa is None else present.hpa.spec.get("behavior")
    window = value_at(behavior, "scaleDown", "stabilizationWindowSeconds")
    return Draft(
        target=target,
        min_replicas=least,
        max_replicas=most,
        metrics=[] if target is None else _draft_metrics(present, target, with_memory),
        behavior=behavior,
        bounds=bounds,
        policies=policies,
        base={
            CPU: round(sum(fit.containers[name].cpu.per_replica for name in bounds) * 1000),
            MEMORY: _rounded_down(sum(fit.containers[name].memory.per_replica for name in bounds)),
        },
        with_memory=with_memory,
        stabilization=300 if window is None else int(window),
        starts=starts,
        shown=shown_by(present.workload.spec.template.spec.containers),
    )


def _starts(present: Present, throttled: Mapping[str, float]) -> dict[str, ThrottledStart]:
    """The containers with a CPU request and limit whose starts are throttled."""
    policies, starts = _policies(present), {}
    for container in present.workload.spec.template.spec.containers:
        name, size = container.name, present.containers[container.name]
        limit, share = size.limits.get(CPU), throttled.get(name, 0.0)
        if share >= _THROTTLED and limit and size.requests.get(CPU, limit):
            starts[name] = ThrottledStart(share, _obstacle(present, container, policies[name]))
    return starts


def _obstacle(present: Present, container: Container, policy: Mapping[str, Any]) -> str:
    if not present.in_place:
        return "the Hvpa does not resize pods in place"
    if policy.get("controlledValues") == "RequestsOnly":
        return "controlledValues is RequestsOnly: its limit would stay"
    if container.restarts_for(CPU):
        return "a resize of its CPU restarts it"
    return ""


def _memory_follows(fit: Fit, high: float) -> bool:
    """Whether a good part of the memory follows the load."""
    moving = sum(usage.memory.per_unit for usage in fit.containers.values()) * high
    at_least = fit.memory_base  # of one replica
    return moving > FOLLOWS * (moving + at_least)


def _at_peak(fit: Fit, low: float, high: float, replicas: tuple[int, int]) -> int:
    """The approximate replica count of the path at the highest load.

    With weight 50, demand grows with the square of the count. Example: 4 times the load at 3 replicas needs 6
    replicas.
    """
    least, most = replicas
    times = high / low if low > 0 else math.inf
    return most if math.isinf(times) else min(most, math.ceil(least * math.sqrt(times)))


def _bounds(
    present: Present,
    fit: Fit,
    name: str,
    parts: Mapping[Resource, float],
    per_pod: tuple[float, float],
    policy: Mapping[str, Any],
) -> DraftBounds:
    """Smallest and largest requests of a container.

    They are those of today's VPA, else its usage per pod at the lowest and the highest load. `parts` is the target
    utilization of a request, as a fraction.
    """
    usage, container = fit.containers[name], present.containers[name]
    least: dict[Resource, int] = {}
    most: dict[Resource, int] = {}
    lines: dict[Resource, tuple[FittedLine, float, float]] = {
        CPU: (usage.cpu, 0.0, 1000.0),
        MEMORY: (usage.memory, usage.memory_above, 1.0),
    }
    for resource, (line, above, unit) in lines.items():
        if resource not in policy.get("controlledResources", (CPU, MEMORY)):
            continue
        smallest, largest = (
            _rounded_up(resource, (line.at(1, load) + above) * unit / parts[resource]) for load in per_pod
        )
        given_least, given_most = (
            value_at(policy, field, resource) for field in ("minAllowed", "maxAllowed")
        )
        if given_least is not None:
            smallest = parse_resource(resource, given_least)
        largest = _rounded_up(resource, max(ROOM * largest, container.requests.get(resource, 0), smallest))
        most[resource] = largest if given_most is None else parse_resource(resource, given_most)
        least[resource] = min(smallest, most[resource])
    return DraftBounds(least, most)


def _rounded_up(resource: Resource, amount: float) -> int:
    """Millicores or Mi, rounded up to two digits and at least 10."""
    unit = 1.0 if resource == CPU else MIB
    count = max(10, math.ceil(amount / unit - 1e-9))
    step = 10 ** max(0, len(str(count)) - _DIGITS)
    return int(-(-count // step) * step * unit)


def _rounded_down(amount: float) -> int:
    """The amount in bytes, rounded down to whole Mi."""
    return int(amount // MIB * MIB)


def _policies(present: Present) -> dict[str, Mapping[str, Any]]:
    """Today's VPA policy of each container."""
    policies = (
        [] if present.vpa is None else value_at(present.vpa.spec, "resourcePolicy", "containerPolicies")
    )
    by_name = {policy.get("containerName"): policy for policy in policies or ()}
    return {name: by_name.get(name, by_name.get("*", {})) for name in present.containers}


def _draft_metrics(present: Present, target: int, with_memory: bool) -> list[Mapping[str, Any]]:
    """Today's metrics with this target for CPU.

    A CPU metric is added if there is none, and a memory metric with `with_memory`. KEDA's metrics are omitted,
    because they disappear with its ScaledObject.
    """
    kept = [
        metric for metric in _metrics(present) if present.scaled_object is None or "external" not in metric
    ]
    metrics = [_retargeted(metric, target) for metric in kept]
    named = {source.get("name") for metric in metrics for source in _sources(metric)}
    wanted: list[Resource] = [CPU, *((MEMORY,) if with_memory else ())]
    return metrics + [_utilization(name, target) for name in wanted if name not in named]


def _sources(metric: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sources of the metric, if it is a CPU or memory metric."""
    return [metric[kind] for kind in ("resource", "containerResource") if kind in metric]


def at_target(present: Present, target: int) -> list[Mapping[str, Any]]:
    """The metrics of today's HPA, with this target for CPU."""
    return [_retargeted(metric, target) for metric in _metrics(present)] or [_utilization(CPU, target)]


def _retargeted(metric: Mapping[str, Any], target: int) -> Mapping[str, Any]:
    for kind in ("resource", "containerResource"):
        if value_at(metric, kind, "name") == CPU:
            return {
                **metric,
                kind: {**metric[kind], "target": _utilization(CPU, target)["resource"]["target"]},
            }
    return metric


def _utilization(resource: Resource, target: int) -> dict[str, Any]:
    return {
        "type": "Resource",
        "resource": {"name": resource, "target": {"type": "Utilization", "averageUtilization": target}},
    }
