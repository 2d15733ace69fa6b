"""A decision as text for people: demand, blend, gates and their times, and what is written.

What belongs here: words and layout. Everything that is shown was decided in `hvpa.core`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

import yaml

from hvpa.api.hvpa.scaling import ScaleType
from hvpa.api.objects.read_models import ResourceList
from hvpa.api.values.duration import format_duration
from hvpa.api.values.quantity import Resource, format_resource, readable_resource
from hvpa.api.values.text import printable
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.json import patch_body
from hvpa.cli.explain.reported import conditions, differences, reported
from hvpa.cli.explain.text.demand import demand
from hvpa.cli.explain.text.joint import path_lines
from hvpa.cli.explain.text.resizes import due, resizing
from hvpa.cli.explain.text.waits import applied_from, had_their_step, measurement, rollout
from hvpa.cli.explain.words import held, when
from hvpa.core.axes.requests import DEFAULT_MIN_CHANGE
from hvpa.core.gates.windows import window_state
from hvpa.core.model import Decision, Observation
from hvpa.core.report.remedies import needs_action
from hvpa.core.state import held_until
from hvpa.core.values.weight import FULL, percent
from hvpa.core.workload.containers import RESOURCES
from hvpa.core.workload.containers import amount as quantity_of

NOTHING = "(nothing)"
_DIFFERENCES = "Where the operator's report differs"
_RESIZES = "Resizes"
_OPTIONAL = (_DIFFERENCES, _RESIZES)
"""The sections that are not shown where they have no line."""


def to_text(
    seen: Observation, decision: Decision, notes: Sequence[str] = (), applied: Decision | None = None
) -> str:
    """The whole explanation, without a line break at the end. What others wrote can't break a line of it, nor move
    the terminal's cursor. `applied` is the decision that mode Apply would make, for an Hvpa in another mode."""
    sections = [
        ("", [_title(seen), *(f"Note: {note}" for note in notes)]),
        ("Reported by the operator", reported(seen)),
        ("Demand", demand(seen, decision)),
        _solution(seen, decision),
        ("Gates", _gates(seen, decision)),
        ("Applied from", applied_from(seen)),
        ("Held back", [held(entry, seen.now) for entry in decision.blocked]),
        *_results(seen, decision, applied),
        (_RESIZES, resizing(seen, decision)),
        ("Other writes", _other_writes(decision)),
        ("Conditions", conditions(decision)),
        (_DIFFERENCES, differences(seen, decision)),
        ("Looks again", [_next_look(seen, decision)]),
    ]
    blocks = []
    for heading, lines in sections:
        body = [printable(line) for line in lines]
        if heading in _OPTIONAL and not body:
            continue
        if heading:
            body = [heading, *(f"  {line}" for line in body or [NOTHING])]
        blocks.append("\n".join(body))
    return "\n\n".join(blocks)


def _title(seen: Observation) -> str:
    meta, spec = seen.metadata, seen.spec
    about = (
        "" if spec is None else f", target {spec.target_ref.kind} {spec.target_ref.name}, mode {spec.mode}"
    )
    return f"Hvpa {meta.namespace}/{meta.name}{about}, at {readable_timestamp(seen.now)}"


# --- blend --------------------------------------------------------------------------------------------------
def _solution(seen: Observation, decision: Decision) -> tuple[str, Iterable[str]]:
    """How demand became replicas and requests: heading and lines."""
    if decision.joint is None:
        return "Blend", _blend(seen, decision)
    return "Path", path_lines(seen, decision, decision.joint)


def _blend(seen: Observation, decision: Decision) -> Iterable[str]:
    if decision.weight_ppm is not None:
        vertical, horizontal = percent(decision.weight_ppm), percent(FULL - decision.weight_ppm)
        yield f"weights: horizontal {horizontal} percent, vertical {vertical} percent"
    yield from decision.steps
    yield from had_their_step(seen, decision)


# --- gates --------------------------------------------------------------------------------------------------
def _gates(seen: Observation, decision: Decision) -> Iterable[str]:
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
    yield from rollout(seen, decision)
    yield from measurement(seen, decision)


def _gate(seen: Observation, policy: ScaleType, last: dt.datetime | None) -> str:
    mode, duration = policy.update_policy.update_mode, policy.stabilization_duration
    parts: list[str] = [mode]
    if mode == "MaintenanceWindow" and seen.spec is not None:
        window = window_state(seen.spec, seen.now)
        opens = "never opens" if window.opens_at is None else f"opens at {when(window.opens_at, seen.now)}"
        parts = [f"{mode} ({'open' if window.open else opens})"]
    parts.append("last step " + ("never" if last is None else readable_timestamp(last)))
    if duration:
        until = held_until(last, duration, seen.now)
        over = "over" if until is None else f"until {when(until, seen.now)}"
        parts.append(f"stabilization {format_duration(duration)} ({over})")
    return ", ".join(parts)


def _least_replicas(policy: ScaleType) -> str:
    params = policy.min_change.replicas
    return f", minChange {_least(None if params.value is None else str(params.value), params.percentage)}"


def _least_resources(policy: ScaleType) -> str:
    parts = []
    for resource in RESOURCES:
        params = policy.min_change.cpu if resource == "cpu" else policy.min_change.memory
        neither = params.value is None and params.percentage is None
        value = DEFAULT_MIN_CHANGE[resource] if neither else params.value
        text = None if value is None else format_resource(resource, value)
        parts.append(f"{resource} {_least(text, params.percentage)}")
    return f", minChange {' and '.join(parts)}"


def _least(value: str | None, percentage: int | None) -> str:
    parts = [] if value is None else [value]
    parts += [] if percentage is None else [f"{percentage} %"]
    return " or ".join(parts) or "none"


# --- what is written ----------------------------------------------------------------------------------------
def _results(
    seen: Observation, decision: Decision, applied: Decision | None
) -> Iterable[tuple[str, Iterable[str]]]:
    """What is set, and in another mode than Apply what that would set."""
    if applied is None:
        return (("Result", _result(seen, decision)), ("Patch of the workload", _patch(decision)))
    assert seen.spec is not None
    left = f"mode {seen.spec.mode}: the workload is left as it is"
    lines = [f"{one.reason}: {one.message}" for one in applied.status.conditions if needs_action(one)]
    lines += _result(seen, applied)
    lines += due(applied)
    lines += [f"held back: {held(entry, seen.now)}" for entry in applied.blocked]
    return (
        ("Result", [left]),
        ("What mode Apply would do now", lines),
        ("Patch of the workload", _patch(decision)),
    )


def _result(seen: Observation, decision: Decision) -> Iterable[str]:
    view = decision.replicas
    if view is None or seen.workload is None:
        return
    yield _change("replicas", str(view.current), str(view.target), str(view.recommended))
    for one in seen.workload.spec.template.spec.containers:
        after, best = decision.containers.get(one.name), decision.recommended.get(one.name)
        if after is None or best is None:
            continue
        for resource in RESOURCES:
            for part in ("requests", "limits"):
                amounts = (getattr(of, part) for of in (one.resources, after, best))
                yield from _entry(f"{one.name} {part} {resource}", resource, *amounts)


def _entry(
    what: str,
    resource: Resource,
    before: ResourceList,
    after: Mapping[Resource, int],
    best: Mapping[Resource, int],
) -> Iterable[str]:
    """The line of one request or limit; none where there is none and never was."""
    amounts = quantity_of(before, resource), after.get(resource), best.get(resource)
    texts = ["none" if one is None else readable_resource(resource, one) for one in amounts]
    if len(set(texts)) < len(set(amounts)):
        texts = ["none" if one is None else format_resource(resource, one) for one in amounts]
    if set(texts) != {"none"}:
        yield _change(what, *texts)


def _change(what: str, old: str, new: str, recommended: str) -> str:
    text = f"{what}: {old} (no change)" if old == new else f"{what}: {old} -> {new}"
    return text if recommended == new else f"{text}; recommended before gates: {recommended}"


def _patch(decision: Decision) -> Sequence[str]:
    patch = decision.workload_patch
    if patch is None:
        return ["no change"]
    text: str = yaml.safe_dump(patch_body(decision), sort_keys=False, width=1_000_000)
    what = "merge patch of the scale of" if patch.is_scale else "strategic merge patch of"
    return [f"# {what} {patch.kind} {patch.name}", *text.splitlines()]


def _other_writes(decision: Decision) -> Iterable[str]:
    if decision.scale_replicas is not None:
        yield f"spec.replicas of the Hvpa, which the HPA reads, is set to {decision.scale_replicas}"
    for change in decision.owned:
        yield f"{change.action} {change.kind} {change.name}"
    for event in decision.events:
        on = "" if event.involved is None else f" on {event.involved.kind} {event.involved.name}"
        yield f"event {event.type} {event.reason}{on}: {event.message}"


def _next_look(seen: Observation, decision: Decision) -> str:
    wait = decision.recheck_after
    if wait is None:
        return "when something changes"
    return f"at {when(seen.now + wait, seen.now)}, or when something changes"
