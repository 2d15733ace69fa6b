"""A decision as text for people: demand, blend, gates and their times, and what is written.

What belongs here: words and layout. Everything that is told was decided in `hvpa.core`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

import yaml

from hvpa.api.duration import format_duration
from hvpa.api.hvpa import ScaleType
from hvpa.api.objects import Hpa, MetricSource, MetricValue, ResourceList, Vpa, condition
from hvpa.api.quantity import Resource, format_resource
from hvpa.api.text import printable
from hvpa.api.timestamp import format_timestamp
from hvpa.cli.contract import patch_body
from hvpa.cli.render_joint import path_lines
from hvpa.cli.words import held, refused, when
from hvpa.core.estimate import estimate_replicas
from hvpa.core.model import Decision, Observation, Recommender
from hvpa.core.rollout import rollout_complete
from hvpa.core.slots import amount as quantity_of
from hvpa.core.state import held_until
from hvpa.core.vertical import DEFAULT_MIN_CHANGE
from hvpa.core.weights import FULL, percent
from hvpa.core.windows import window_state

RESOURCES: tuple[Resource, ...] = ("cpu", "memory")
NOTHING = "(nothing)"


def to_text(seen: Observation, decision: Decision, notes: Sequence[str] = ()) -> str:
    """The whole explanation, without a line break at the end. What others wrote can't break a line of it, nor move
    the terminal's cursor."""
    sections = [
        ("", [_title(seen), *(f"Note: {note}" for note in notes)]),
        ("Demand", _demand(seen, decision)),
        _solution(seen, decision),
        ("Gates", _gates(seen)),
        ("Held back", [held(entry, seen.now) for entry in decision.blocked]),
        ("Result", _result(seen, decision)),
        ("Patch of the workload", _patch(decision)),
        ("Other writes", _other_writes(decision)),
        (
            "Conditions",
            [f"{one.type} {one.status} {one.reason}: {one.message}" for one in decision.status.conditions],
        ),
        ("Looks again", [_next_look(seen, decision)]),
    ]
    blocks = []
    for heading, lines in sections:
        body = [printable(line) for line in lines]
        if heading:
            body = [heading, *(f"  {line}" for line in body or [NOTHING])]
        blocks.append("\n".join(body))
    return "\n\n".join(blocks)


def _title(seen: Observation) -> str:
    meta = seen.metadata
    target = (
        f", target {seen.spec.target_ref.kind} {seen.spec.target_ref.name}" if seen.spec is not None else ""
    )
    mode = f", mode {seen.spec.mode}" if seen.spec is not None else ""
    return f"Hvpa {meta.namespace}/{meta.name}{target}{mode}, at {format_timestamp(seen.now)}"


# --- demand and blend ---------------------------------------------------------------------------------------
def _demand(seen: Observation, decision: Decision) -> Iterable[str]:
    if seen.metadata.deletion_timestamp is not None:
        yield "the Hvpa is being deleted: its workload is left as it is"
        return
    if seen.problem is not None or seen.workload is None:
        yield seen.problem.message if seen.problem is not None else "there is no workload"
        return
    yield f"{seen.workload.kind} {seen.workload.metadata.name}: {seen.workload.spec.replicas} replicas"
    for one in seen.workload.spec.template.spec.containers:
        resources = one.resources
        yield f"container {one.name}: requests {_told(resources.requests)}; limits {_told(resources.limits)}"
    yield from _hpa(seen, decision)
    yield from _vpa(seen.vpa)
    starving = seen.pods.starving
    for name in sorted(starving):
        when = format_timestamp(starving[name])
        yield f"container {name} ran out of memory at {when}: scaling up does not wait"
    if seen.legacy_override:
        yield "status.overrideScaleUpStabilization is set: scaling up does not wait"


def _hpa(seen: Observation, decision: Decision) -> Iterable[str]:
    found = seen.hpa
    if not found.configured:
        yield "HPA: none is configured"
        return
    active = next((one for one in decision.status.conditions if one.type == "HpaActive"), None)
    if active is not None and active.status != "True":
        yield f"HPA: not used, {active.reason}: {active.message}"
    if found.object is None or seen.workload is None or not found.object.status.desired_replicas:
        return
    hpa = found.object
    yield f"HPA {hpa.metadata.name}: wants {hpa.status.desired_replicas} replicas"
    for line in _metrics(hpa):
        yield f"  {line}"
    estimate = estimate_replicas(seen, hpa)
    trusted = decision.replicas.hpa if decision.replicas is not None else None
    measured = "these metrics tell nothing" if estimate is None else f"these metrics call for {estimate}"
    wish = "no wish is trusted" if trusted is None else f"the trusted wish is {trusted}"
    yield f"  {measured}; {wish}"


def _metrics(hpa: Hpa) -> Iterable[str]:
    asked = [other for one in reversed(hpa.spec.metrics) if (other := one.source())]
    targets = {_named(one): one.target for one in asked}
    for metric in hpa.status.current_metrics or ():
        source = metric.source()
        if source is None:
            continue
        wanted = targets.get(_named(source))
        name = source.name or source.metric.name or metric.type
        container = f" of container {source.container}" if source.container else ""
        target = f", target {_value(wanted)}" if wanted is not None else ""
        yield f"{metric.type} {name}{container}: {_value(source.current)}{target}"


def _named(one: MetricSource) -> tuple[str, str, str]:
    return one.name, one.container, one.metric.name


def _value(value: MetricValue) -> str:
    if value.average_utilization is not None:
        return f"{value.average_utilization} %"
    if value.average_value is not None:
        return f"{value.average_value} per pod"
    return "no value" if value.value is None else str(value.value)


def _vpa(found: Recommender[Vpa]) -> Iterable[str]:
    if not found.configured:
        yield "VPA: none is configured"
        return
    if found.problem is not None:
        yield f"VPA: not used, {found.problem.reason}: {found.problem.message}"
    if found.object is None:
        return
    provided = condition(found.object.status.conditions, "RecommendationProvided")
    since = provided.last_transition_time if provided is not None else None
    told = f" since {format_timestamp(since)}" if since is not None else ""
    yield f"VPA {found.object.metadata.name}: recommends{told}"
    recommendation = found.object.status.recommendation
    for one in (recommendation.container_recommendations or ()) if recommendation is not None else ():
        yield f"  container {one.container_name}: {_told(one.target)}"


def _solution(seen: Observation, decision: Decision) -> tuple[str, Iterable[str]]:
    """How demand became replicas and requests: heading and lines."""
    if decision.joint is None:
        return "Blend", _blend(decision)
    return "Path", path_lines(seen, decision, decision.joint)


def _blend(decision: Decision) -> Iterable[str]:
    if decision.weight_ppm is not None:
        vertical, horizontal = percent(decision.weight_ppm), percent(FULL - decision.weight_ppm)
        yield f"weights: horizontal {horizontal} percent, vertical {vertical} percent"
    yield from decision.steps


# --- gates --------------------------------------------------------------------------------------------------
def _gates(seen: Observation) -> Iterable[str]:
    spec = seen.spec
    if spec is None or seen.workload is None:
        return
    hpa, vpa = spec.hpa, spec.vpa
    horizontal, vertical = seen.horizontal.last_scale_time, seen.vertical.last_scale_time
    timeout = f", minChangeTimeout {format_duration(vpa.scale_up.min_change_timeout)}"
    yield "hpa.scaleUp: " + _gate(seen, hpa.scale_up, horizontal) + _least_replicas(hpa.scale_up)
    yield "hpa.scaleDown: " + _gate(seen, hpa.scale_down, horizontal) + _least_replicas(hpa.scale_down)
    yield "vpa.scaleUp: " + _gate(seen, vpa.scale_up, vertical) + _least_resources(vpa.scale_up) + timeout
    yield "vpa.scaleDown: " + _gate(seen, vpa.scale_down, vertical) + _least_resources(vpa.scale_down)
    yield f"last rollout: {'complete' if rollout_complete(seen.workload) else 'not complete'}"
    for record in (seen.horizontal.refused, seen.vertical.refused):
        if record is not None:
            yield refused(record)


def _gate(seen: Observation, policy: ScaleType, last: dt.datetime | None) -> str:
    mode, duration = policy.update_policy.update_mode, policy.stabilization_duration
    parts: list[str] = [mode]
    if mode == "MaintenanceWindow" and seen.spec is not None:
        window = window_state(seen.spec, seen.now)
        opens = "never opens" if window.opens_at is None else f"opens at {when(window.opens_at, seen.now)}"
        parts = [f"{mode} ({'open' if window.open else opens})"]
    parts.append("last step " + ("unknown" if last is None else format_timestamp(last)))
    if duration:
        until = held_until(last, duration, seen.now)
        over = "over" if until is None else f"until {when(until, seen.now)}"
        parts.append(f"stabilization {format_duration(duration)} ({over})")
    return ", ".join(parts)


def _least_replicas(policy: ScaleType) -> str:
    params = policy.min_change.replicas
    return f", minChange {_least(None if params.value is None else str(params.value), params.percentage)}"


def _least_resources(policy: ScaleType) -> str:
    told = []
    for resource, params in (("cpu", policy.min_change.cpu), ("memory", policy.min_change.memory)):
        kind: Resource = "cpu" if resource == "cpu" else "memory"
        neither = params.value is None and params.percentage is None
        value = DEFAULT_MIN_CHANGE[kind] if neither else params.value
        told.append(
            f"{kind} {_least(None if value is None else format_resource(kind, value), params.percentage)}"
        )
    return f", minChange {' and '.join(told)}"


def _least(value: str | None, percentage: int | None) -> str:
    parts = [] if value is None else [value]
    parts += [] if percentage is None else [f"{percentage} %"]
    return " or ".join(parts) or "none"


# --- what is written ----------------------------------------------------------------------------------------
def _result(seen: Observation, decision: Decision) -> Iterable[str]:
    view = decision.replicas
    if view is None or seen.workload is None:
        return
    yield _change("replicas", str(view.current), str(view.target), str(view.recommended))
    for one in seen.workload.spec.template.spec.containers:
        after, best, before = (
            decision.containers.get(one.name),
            decision.recommended.get(one.name),
            one.resources,
        )
        if after is None or best is None:
            continue
        for resource in RESOURCES:
            what = f"{one.name} requests {resource}"
            yield from _entry(what, resource, before.requests, after.requests, best.requests)
            what = f"{one.name} limits {resource}"
            yield from _entry(what, resource, before.limits, after.limits, best.limits)


def _entry(
    what: str,
    resource: Resource,
    before: ResourceList,
    after: Mapping[Resource, int],
    best: Mapping[Resource, int],
) -> Iterable[str]:
    """The line of one request or limit; none where there is none and never was."""
    old = quantity_of(before, resource)
    told = [
        "none" if amount is None else format_resource(resource, amount)
        for amount in (old, after.get(resource), best.get(resource))
    ]
    if set(told) != {"none"}:
        yield _change(what, *told)


def _change(what: str, old: str, new: str, unblocked: str) -> str:
    text = f"{what}: {old} (no change)" if old == new else f"{what}: {old} -> {new}"
    return text if unblocked == new else f"{text}, {unblocked} if nothing were held back"


def _patch(decision: Decision) -> Sequence[str]:
    patch = decision.workload_patch
    if patch is None:
        return ["no change"]
    text: str = yaml.safe_dump(patch_body(decision), sort_keys=False, width=1_000_000)
    return [f"# strategic merge patch of {patch.kind} {patch.name}", *text.splitlines()]


def _other_writes(decision: Decision) -> Iterable[str]:
    if decision.mailbox is not None:
        yield f"mailbox: spec.replicas of the Hvpa is set to {decision.mailbox}"
    for change in decision.owned:
        yield f"{change.action} {change.kind} {change.name}"
    for event in decision.events:
        yield f"event {event.type} {event.reason}: {event.message}"


def _next_look(seen: Observation, decision: Decision) -> str:
    wait = decision.recheck_after
    if wait is None:
        return "when something changes"
    return f"at {when(seen.now + wait, seen.now)}, or when something changes"


def _told(amounts: ResourceList) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in RESOURCES if name in amounts) or "none"
