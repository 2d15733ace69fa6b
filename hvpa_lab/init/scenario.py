"""The scenario as YAML: the history's load, the workload with the fitted usage, today's configuration, and the Hvpas
that are tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hvpa.api.objects.kinds import DEFAULT_API_VERSION
from hvpa.api.values.duration import DAY
from hvpa.api.values.quantity import CPU, MEMORY, format_resource
from hvpa.cli.input.files import value_at
from hvpa_lab.init.draft import Draft, at_target, today_target
from hvpa_lab.init.lines import Lines
from hvpa_lab.init.source.present import IN_PLACE_SINCE, START_UP, Present
from hvpa_lab.simulate.history.fit import Fit
from hvpa_lab.simulate.history.pattern import quantile
from hvpa_lab.simulate.history.record import History
from hvpa_lab.simulate.load.series import readable_length

SCENARIO: Final = "scenario.yaml"
LOAD: Final = "load.csv"
MANIFEST: Final = "hvpa.yaml"
STEP: Final = 10
"""Seconds of a step: finer than the periods of metrics-server and the HPA."""
_LEAST_HEADROOM: Final = 20
"""Minimum usage beyond a pod's CPU request, in percent: the value of the measurements in docs/joint-scaling.md."""
_SHORT: Final = 3 * DAY
"""Below this length, a quarter of the history is the warm-up; else a day."""


class Span(NamedTuple):
    """The simulated end of the history."""

    seconds: float
    """Its length in seconds."""
    warm_up: float
    """Seconds at its start that do not count."""


def span_of(recent: History) -> Span:
    """All of these rows, in whole steps."""
    seconds = recent.length // STEP * STEP
    return Span(seconds, DAY if seconds >= _SHORT else seconds // 4 // STEP * STEP)


def load_csv(recent: History, fit: Fit) -> str:
    """The load of these last rows of the history, in the format of `hvpa simulate`."""
    load = fit.load[len(fit.load) - len(recent.times) :]
    rows = zip(recent.times, load, strict=True)
    return "timestamp,value\n" + "".join(f"{time:.15g},{value:.9g}\n" for time, value in rows)


def headroom(present: Present, history: History) -> int:
    """CPU that a pod may use beyond its request, in percent: the history's 99th percentile, at least 20."""
    requested = sum(container.requests.get(CPU, 0) for container in present.containers.values()) / 1000
    if not requested:
        return _LEAST_HEADROOM
    shares = [
        used / count / requested - 1
        for used, count in zip(history.total("cpu"), history.replicas, strict=True)
        if count >= 1
    ]
    beyond = quantile(shares, 0.99) if shares else 0.0
    return max(_LEAST_HEADROOM, math.ceil(beyond * 20 - 1e-9) * 5)


def scenario(present: Present, recent: History, fit: Fit, hvpas: Sequence[tuple[Draft, str]]) -> str:
    """The scenario of these last rows of the history; `hvpas` are the Hvpas and their files."""
    span = span_of(recent)
    lines = Lines(
        f"{present.title} today, and as an Hvpa would scale it: hvpa simulate {SCENARIO}",
        f"Written by hvpa init from {recent.source}.",
    )
    lines.field(0, "name", f"{present.namespace}/{present.name}")
    lines.field(0, "description", f"The load of {present.title}, from {recent.source}.")
    lines.field(
        0,
        "duration",
        f"{readable_length(span.seconds)}",
        f"{span.seconds / DAY:.3g} days of the history, the last",
    )
    lines.field(
        0,
        "warmUp",
        f"{readable_length(span.warm_up)}",
        "the VPA's first day, with unreliable recommendations",
    )
    lines.field(0, "step", f"{STEP}s", "shorter than the periods of metrics-server and the HPA")
    unit = "cores that all pods used together" if fit.is_cpu else "as it was recorded"
    lines.field(0, "load", {"csv": {"file": LOAD}}, f"in the unit of the history: {unit}")
    _workload(lines, present, recent, fit)
    beyond = headroom(present, recent)
    lines.field(
        0,
        "nodes",
        {"headroom": f"{beyond}%"},
        "CPU that pods may use beyond their requests (neighbours use the rest of the node): "
        + (
            "the value of the measurements in docs/joint-scaling.md"
            if beyond == _LEAST_HEADROOM
            else "their usage in 99 percent of the history"
        ),
    )
    if present.load_metrics:
        lines.field(0, "metrics", {"load": present.load_metrics[0]}, "the HPA's metric is the load")
    lines.add(0, "policies:", f"today: {present.scaled_by}")
    lines.block(1, [today(present)])
    for target in rivals(present, [draft for draft, _ in hvpas]):
        lines.block(1, [today(present, target)])
    for draft, file in hvpas:
        lines.block(1, [{"name": draft.name, "hvpa": file}])
    return lines.text


def rivals(present: Present, drafts: Sequence[Draft]) -> list[int]:
    """The Hvpas' targets that differ from the target of today's HPA.

    They show how much of a saving comes from the headroom alone.
    """
    current_target = today_target(present)
    return [
        draft.target
        for draft in drafts
        if current_target is not None and draft.target not in (None, current_target)
    ]


def today(present: Present, target: int | None = None) -> dict[str, Any]:
    """The policy for today's configuration, with another target for its HPA if given."""
    policy: dict[str, Any] = {"name": "today"}
    if present.hpa is not None:
        spec = {**present.hpa.spec}
        spec.pop("scaleTargetRef", None)
        if target is not None:
            policy["name"] += f", at {target} percent"
            spec["metrics"] = at_target(present, target)
        policy["hpa"] = spec
    if present.vpa is not None and present.vpa_mode != "Off":
        updates = {"updateMode": present.vpa_mode} | _min_replicas(present.vpa.spec)
        policy["vpa"] = {"updatePolicy": updates}
        if value_at(present.vpa.spec, "resourcePolicy"):
            policy["vpa"]["resourcePolicy"] = present.vpa.spec["resourcePolicy"]
    if len(policy) == 1:
        policy["fixed"] = {}
    return policy


def since(present: Present) -> str:
    """The version of Kubernetes, or the first version that resizes pods in place."""
    return f"from 1.{IN_PLACE_SINCE} on" if present.minor is None else f"1.{present.minor}"


def _min_replicas(spec: Mapping[str, Any]) -> dict[str, Any]:
    least = value_at(spec, "updatePolicy", "minReplicas")
    return {} if least is None else {"minReplicas": least}


def _workload(lines: Lines, present: Present, recent: History, fit: Fit) -> None:
    lines.add(0, "workload:")
    if present.workload.api_version != DEFAULT_API_VERSION:
        lines.field(1, "apiVersion", present.workload.api_version)
    for field, value in (("kind", present.workload.kind), ("name", present.name)):
        lines.field(1, field, value)
    lines.field(1, "namespace", present.namespace)
    first = max(1, round(recent.replicas[0]))
    lines.field(1, "replicas", first, "the history's value when the simulated days begin")
    if present.start_up is None:
        lines.field(1, "startUp", f"{START_UP:g}s", "an assumption: no pod has a measured start-up time")
    else:
        lines.field(1, "startUp", f"{present.start_up:g}s", "start-up time of today's pods")
    if present.in_place:
        lines.field(1, "resize", "InPlace", f"Kubernetes {since(present)} resizes pods in place")
    if present.workload.kind == "Deployment":
        for field, value in _rolling(present.raw):
            lines.field(1, field, value)
    lines.add(1, "containers:")
    for name in present.containers:
        lines.block(2, [_container(present, fit, name)])


def _rolling(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The limits of a Deployment's rolling update."""
    for field in ("maxSurge", "maxUnavailable"):
        value = value_at(raw, "spec", "strategy", "rollingUpdate", field)
        if value is not None:
            yield field, value


def _container(present: Present, fit: Fit, name: str) -> dict[str, Any]:
    usage, container = fit.containers[name], present.containers[name]
    resources = {
        field: {resource: format_resource(resource, amount) for resource, amount in amounts.items()}
        for field, amounts in (("requests", container.requests), ("limits", container.limits))
        if amounts
    }
    return {
        "name": name,
        **resources,
        CPU: {"base": _fine(usage.cpu.per_replica), "perUnit": _fine(usage.cpu.per_unit)},
        MEMORY: {
            "base": f"{usage.memory.per_replica + usage.memory_above:.3f}",
            "perUnit": f"{usage.memory.per_unit:.3f}",
        },
    }


def _fine(cores: float) -> str:
    """An amount of CPU, to the nanocore."""
    return f"{cores * 1e9:.3f}n"
