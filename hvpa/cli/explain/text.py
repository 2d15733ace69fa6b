"""A decision as text for people: demand, blend, gates and their times, and writes.

Only words and layout belong here; all shown values are decided in `hvpa.core`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import yaml

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import ResourceList
from hvpa.api.values.duration import format_duration
from hvpa.api.values.quantity import (
    RESOURCES,
    Resource,
    format_resource,
    readable_resource,
)
from hvpa.api.values.text import counted, names, printable
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.demand import demand, path_lines
from hvpa.cli.explain.json import deletion_costs, differing_conditions, patch_body, replacing, resizes
from hvpa.cli.explain.pods import STATES, PodRow, differences_text, pod_rows
from hvpa.cli.explain.words import amount_text, at, by_default, held, kind, readable, refused, when
from hvpa.core.actuation.undo import undo_of
from hvpa.core.gates.floors import floor_state, next_floor
from hvpa.core.gates.gates import MEASUREMENT
from hvpa.core.gates.windows import window_state
from hvpa.core.model import Decision, Observation
from hvpa.core.report.remedies import needs_action, remedy
from hvpa.core.report.summary import rollout_text
from hvpa.core.rules import MinChange, Rules, Wait
from hvpa.core.state import held_until
from hvpa.core.values.tuning import SETTLING
from hvpa.core.values.weight import FULL, percent
from hvpa.core.workload.containers import amount as quantity_of
from hvpa.core.workload.containers import present_resources, recommendations

NOTHING = "(nothing)"
_DIFFERENCES = "Differences from the operator's report"
_RESIZES = "Resizes"
_OPTIONAL = (_DIFFERENCES, _RESIZES)
"""The sections that are omitted if they are empty."""
_NEVER = "nothing yet: is the operator running, and does it watch this namespace?"


def to_text(
    observation: Observation, decision: Decision, notes: Sequence[str] = (), applied: Decision | None = None
) -> str:
    """The whole explanation, without a final line break.

    Text from other clients can't break a line or move the terminal's cursor. `applied` is the decision that mode
    Apply would make, if the Hvpa has another mode.
    """
    solution = ("Blend", _blend(observation, decision))
    if decision.joint is not None:
        solution = ("Path", path_lines(observation, decision, decision.joint))
    sections = [
        ("", [_title(observation), *(f"Note: {note}" for note in notes)]),
        ("Reported by the operator", _reported(observation)),
        ("Demand", demand(observation, decision)),
        solution,
        ("Gates", _gates(observation, decision)),
        ("Applied from", _applied_from(observation)),
        ("Held back", [held(entry, observation.now) for entry in decision.blocked]),
        *_results(observation, decision, applied),
        (_RESIZES, _resizing(observation, decision)),
        ("Other writes", _other_writes(decision)),
        ("Conditions", _conditions(observation, decision)),
        (_DIFFERENCES, _differences(observation, decision)),
        ("Next reconcile", [_next_look(observation, decision)]),
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


def _title(observation: Observation) -> str:
    meta, spec = observation.metadata, observation.spec
    target = (
        "" if spec is None else f", target {spec.target_ref.kind} {spec.target_ref.name}, mode {spec.mode}"
    )
    return f"Hvpa {meta.namespace}/{meta.name}{target}, at {readable_timestamp(observation.now)}"


# --- reported and current conditions --------------------------------------------------------------------------------
def _reported(observation: Observation) -> Iterable[str]:
    """The reported status: conditions with their times, the last error, refused writes."""
    status = observation.status
    if not status.conditions:
        yield _NEVER
    for condition in status.conditions:
        yield (
            f"{condition.type} {condition.status}{at(condition.last_transition_time, ' since ')}, "
            f"{condition.reason}: {condition.message}"
        )
    if (signal := status.fast_signal) is not None:
        reporting = f"{signal.nodes - signal.silent} of {signal.nodes} nodes' kubelets"
        every = "" if signal.sampling_seconds is None else f", a new one every {signal.sampling_seconds} s"
        newest = at(signal.last_sample_time, "; the newest arrived at ") or "; none has arrived"
        yield f"fast signal: samples of {signal.source} from {reporting}{every}{newest}"
    if (error := status.last_error) is not None:
        begin = f"last error: {error.last_operation or 'a write'}"
        yield f"{begin}{at(error.last_update_time, ' at ')}: {error.description}"
    for record in (observation.horizontal.refused, observation.vertical.refused):
        if record is not None:
            yield refused(record)


def _conditions(observation: Observation, decision: Decision) -> Iterable[str]:
    """The conditions after this decision, with a remedy if they need action."""
    for condition in decision.status.conditions:
        yield f"{condition.type} {condition.status} {condition.reason}: {condition.message}"
        if (
            needs_action(condition)
            and (what := remedy(condition.reason, observation.metadata, observation.spec))
            not in condition.message
        ):
            yield f"  to do: {what}."


def _differences(observation: Observation, decision: Decision) -> Iterable[str]:
    """The conditions that differ between the operator's report and this decision, and possible causes."""
    for difference in differing_conditions(observation, decision):
        reported, decided = difference.reported, difference.decided
        yield (
            f"{reported.type} was reported {reported.status} {reported.reason} "
            f"and is now {decided.status} {decided.reason}: {difference.why}"
        )
        if needs_action(reported):
            yield f"  to do: {remedy(reported.reason, observation.metadata, observation.spec)}."


# --- blend ----------------------------------------------------------------------------------------------------------
def _blend(observation: Observation, decision: Decision) -> Iterable[str]:
    if decision.weight_ppm is not None:
        vertical, horizontal = percent(decision.weight_ppm), percent(FULL - decision.weight_ppm)
        yield f"weights: horizontal {horizontal} percent, vertical {vertical} percent"
    if (node := observation.largest_node) is not None:
        sizes = " and ".join(readable_resource(of, amount) for of, amount in node.allocatable.items())
        yield f"largest node that the pods may use: {node.problem or sizes}"
    yield from decision.steps
    yield from _finished_steps(observation, decision)


def _finished_steps(observation: Observation, decision: Decision) -> Iterable[str]:
    """Requests that differ from their recommendation, which has already had its step (`Additive`)."""
    if observation.workload is None or observation.vpa.object is None or observation.vpa.problem is not None:
        return
    moving = {(entry.container, entry.resource) for entry in decision.blocked}
    present = present_resources(observation.workload.spec.template.spec.containers)
    targets = recommendations(observation.vpa.object)
    for applied in observation.vertical.applied_from:
        resource = kind(applied.resource)
        current = present[applied.container].requests.get(resource) if applied.container in present else None
        after = decision.containers.get(applied.container)
        target = (
            quantity_of(targets[applied.container].target, resource) if applied.container in targets else None
        )
        stays = after is not None and after.requests.get(resource) == current
        if (
            current is None
            or target in (None, current)
            or not stays
            or (applied.container, resource) in moving
        ):
            continue
        yield (
            f"{applied.container} {resource}: {readable_resource(resource, current)} now, "
            f"{readable_resource(resource, target)} recommended; HVPA made the step for this recommendation at "
            f"weight {applied.weight:g}{at(observation.vertical.last_scale_time, ', ')}; the next step follows when "
            "the recommendation changes by minChange"
        )


def _applied_from(observation: Observation) -> Iterable[str]:
    """The recommendations of the last steps; each recommendation has only one step."""
    replicas, is_path = (
        observation.horizontal.applied_from,
        observation.spec is not None and observation.spec.joint,
    )
    if replicas is not None:
        weight = "" if is_path else f", at weight {replicas.weight:g}"
        rest = "" if replicas.goal is None else f", on the way to {replicas.goal}"
        step = f"replicas: {replicas.replicas} applied for the HPA's desired replicas of {replicas.desired}"
        yield f"{step}{weight}{at(observation.horizontal.last_scale_time, ', ')}{rest}"
    for applied in observation.vertical.applied_from:
        source = f" from target {readable(applied.resource, applied.target)} at weight {applied.weight:g}"
        small = f", small step {applied.small_steps} in a row" if applied.small_steps else ""
        yield (
            f"{applied.container} {applied.resource}: {readable(applied.resource, applied.request)} applied"
            f"{', the size on the path' if is_path else source}{small}"
        )


# --- gates ----------------------------------------------------------------------------------------------------------
def _gates(observation: Observation, decision: Decision) -> Iterable[str]:
    spec = observation.spec
    if spec is None or observation.workload is None:
        return
    for rules in decision.rules:
        yield f"{rules.name}: {', '.join(_rules(observation, spec, rules))}"
    yield from _schedule(observation, spec)
    yield from _forecast(decision)
    yield from _rollout(observation, decision) if decision.rules else ()
    yield from _measurement(observation, decision)


def _schedule(observation: Observation, spec: HvpaSpec) -> Iterable[str]:
    """The current and the next scheduled floor."""
    if not spec.hpa.schedule:
        return
    floor = floor_state(spec, observation.now)
    text = "no floor now"
    if floor.replicas:
        until = at(floor.until, " until ")
        text = f"at least {counted(floor.replicas)}{until} (entry {floor.entry})"
    if (following := next_floor(spec, floor)) is not None:
        begin, then = following
        text += f"; next: {then.replicas} from {readable_timestamp(begin)} (entry {then.entry})"
    yield f"schedule: {text}"


def _forecast(decision: Decision) -> Iterable[str]:
    """The floor of the forecast, and whether it is used."""
    forecast = decision.status.forecast
    if forecast is not None:
        floor = "" if forecast.replicas is None else f"at least {counted(forecast.replicas)} now; "
        yield f"forecast: {floor}{forecast.message}"


def _rules(observation: Observation, spec: HvpaSpec, rules: Rules) -> Iterable[str]:
    """The rules of a direction, as used in the decision; defaults are marked."""
    mode, wait = rules.policy.update_policy.update_mode, rules.stabilization.duration
    last = (observation.horizontal if rules.axis == "horizontal" else observation.vertical).last_scale_time
    if mode == "MaintenanceWindow":
        window = window_state(spec, observation.now)
        opens = (
            "never opens" if window.opens_at is None else f"opens at {when(window.opens_at, observation.now)}"
        )
        yield f"{mode} ({'open' if window.open else opens})"
    else:
        yield mode
    yield "last step " + ("never" if last is None else readable_timestamp(last))
    if wait:
        until = held_until(last, wait, observation.now)
        over = "over" if until is None else f"until {when(until, observation.now)}"
        yield f"stabilization {format_duration(wait)} ({over})"
    if rules.sustained is not None:
        change = "lower requests" if rules.direction == "down" else "more CPU for present demand alone"
        waits = f"{change} once wanted for {_wait(rules.sustained)}"
        if rules.highest is not None:
            waits += f"; requests with a metric: by the highest demand of the last {_wait(rules.highest)}"
        yield waits
    least = [
        (name if name != "replicas" else "", _min_change(name, min_change))
        for name, min_change in rules.min_change.items()
    ]
    yield "minChange " + " and ".join(f"{name} {text}".strip() for name, text in least)
    if rules.timeout is not None:
        yield f"minChangeTimeout {_wait(rules.timeout)}"


def _wait(wait: Wait) -> str:
    return f"{format_duration(wait.duration)}{by_default(wait.source)}"


def _min_change(resource: str, least: MinChange) -> str:
    """The smallest change that is made: a value, a percentage, or either."""
    parts = [amount_text(resource, least.value)] if least.value else []
    parts += [] if least.percentage is None else [f"{least.percentage} %"]
    return f"{' or '.join(parts)}{by_default(least.source)}" if parts else "none"


def _rollout(observation: Observation, decision: Decision) -> Iterable[str]:
    """The last rollout: its blocker, its gaps, the pods that are not ready, and its deadline."""
    gaps, deadline = decision.rollout_gaps, decision.settles_at
    if decision.status.rollout is not None:
        yield f"last {rollout_text(decision.status.rollout)}"
    elif not gaps:
        yield "last rollout: complete"
    else:
        yield f"last rollout: not complete: {'; '.join(gaps)}"
        if observation.pods.unready:
            yield f"  not ready: {names(list(observation.pods.unready))}"
        if deadline is None:
            yield "  HVPA waits until it is complete"
        elif deadline > observation.now:
            yield f"  HVPA waits until its progress deadline {when(deadline, observation.now)}"
        else:
            yield f"  HVPA no longer waits: its progress deadline was {readable_timestamp(deadline)}"


def _measurement(observation: Observation, decision: Decision) -> Iterable[str]:
    """The reasons why the HPA has yet to measure the current workload, if a change waits for this."""
    if all(entry.reason != MEASUREMENT for entry in decision.blocked):
        return
    deadline = decision.settles_at
    causes = (
        ("replicas were changed", observation.horizontal.last_scale_time),
        ("requests were changed", observation.vertical.last_scale_time),
        ("a pod became ready", observation.pods.last_ready_at),
        (
            "the rollout passed its progress deadline",
            deadline if deadline and deadline <= observation.now else None,
        ),
    )
    recent_causes = [
        f"{what}{at(instant, ' at ')}"
        for what, instant in causes
        if instant is not None and held_until(instant, SETTLING, observation.now) is not None
    ]
    since = f": {', '.join(recent_causes)}" if recent_causes else ""
    seconds = int(SETTLING.total_seconds())
    yield f"next measurement: used {seconds} seconds after the last change, once the rollout is complete{since}"


# --- writes ---------------------------------------------------------------------------------------------------------
def _results(
    observation: Observation, decision: Decision, applied: Decision | None
) -> Iterable[tuple[str, Iterable[str]]]:
    """The new values, and, unless the mode is Apply, the values that Apply would set."""
    if applied is None:
        yield "Result", _result(observation, decision)
    else:
        assert observation.spec is not None
        undo = undo_of(observation)
        what = "the workload is not changed" if undo is None else f"pods get {undo.text()}"
        yield "Result", [f"mode {observation.spec.mode}: {what}", *_due(decision)]
        lines = [
            f"{condition.reason}: {condition.message}"
            for condition in applied.status.conditions
            if needs_action(condition)
        ]
        lines += [*_result(observation, applied), *_due(applied)]
        lines += [f"held back: {held(entry, observation.now)}" for entry in applied.blocked]
        yield "Result in mode Apply", lines
    yield "Patch of the workload", _patch(decision)


def _result(observation: Observation, decision: Decision) -> Iterable[str]:
    view = decision.replicas
    if view is None or observation.workload is None:
        return
    yield _change("replicas", str(view.current), str(view.target), str(view.recommended))
    for container in observation.workload.spec.template.spec.containers:
        after, best = decision.containers.get(container.name), decision.recommended.get(container.name)
        if after is None or best is None:
            continue
        for resource in RESOURCES:
            for part in ("requests", "limits"):
                amounts = (getattr(requirements, part) for requirements in (container.resources, after, best))
                yield from _entry(f"{container.name} {part} {resource}", resource, *amounts)


def _entry(
    what: str,
    resource: Resource,
    before: ResourceList,
    after: Mapping[Resource, int],
    best: Mapping[Resource, int],
) -> Iterable[str]:
    """The line of a request or limit; none if it neither exists nor existed."""
    amounts = quantity_of(before, resource), after.get(resource), best.get(resource)
    texts = ["none" if amount is None else readable_resource(resource, amount) for amount in amounts]
    if len(set(texts)) < len(set(amounts)):
        texts = ["none" if amount is None else format_resource(resource, amount) for amount in amounts]
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
        yield f"set spec.replicas of the Hvpa, which the HPA reads, to {decision.scale_replicas}"
    for change in decision.owned:
        yield f"{change.action} {change.kind} {change.name}"
    for event in decision.events:
        on = "" if event.involved is None else f" on {event.involved.kind} {event.involved.name}"
        yield f"event {event.type} {event.reason}{on}: {event.message}"


def _next_look(observation: Observation, decision: Decision) -> str:
    wait = decision.recheck_after
    if wait is None:
        return "when something changes"
    return f"at {when(observation.now + wait, observation.now)}, or when something changes"


# --- resizes in place -----------------------------------------------------------------------------------------------
def _resizing(observation: Observation, decision: Decision) -> Iterable[str]:
    """The strategy, the desired size, and the pods that do not have it.

    Empty if rollouts replace the pods, except for the duration of a fallback to rollouts.
    """
    if (fallback := replacing(observation)) is not None:
        until, why = fallback
        yield f"pods could not be resized; InPlaceOrRollout uses rollouts until {when(until, observation.now)}: {why}"
    if observation.spec is None or not observation.spec.strategy.in_place:
        return
    strategy, size = observation.spec.strategy, decision.status.desired
    timeout = format_duration(strategy.timeout)
    yield f"{strategy.type}, timeout {timeout}, maxUnavailable {strategy.max_unavailable}"
    if size is None:
        yield "no size has been decided yet"
    else:
        sizes = [
            _container(container.name, container.requests, container.limits) for container in size.containers
        ]
        text = ", ".join([counted(size.replicas), *(sizes or ["the template's size"])])
        yield f"desired since {readable_timestamp(size.since)}: {text}"
    rows = pod_rows(observation, observation.resizable, size)
    left = [row for row in rows if row.state not in ("resized", "template")]
    yield f"{len(rows) - len(left)} of {len(rows)} pods have this size"
    yield from map(_pod, left)
    yield from _costs(decision)


def _due(decision: Decision) -> Iterable[str]:
    """The writes to pods of a decision, a line per pod."""
    for resize in resizes(decision):
        sizes = [
            _container(name, size["requests"], size["limits"]) for name, size in resize["containers"].items()
        ]
        yield f"pod {resize['pod']} is resized to {', '.join(sizes)}"
    yield from _costs(decision)


def _costs(decision: Decision) -> Iterable[str]:
    """The deletion costs of a decision, a line per pod."""
    for write in deletion_costs(decision):
        what = "no longer goes first" if write["cost"] is None else "goes first at this scale-in"
        yield f"pod {write['pod']} {what}: it {write['why']}"


def _pod(row: PodRow) -> str:
    differences = differences_text(row)
    why = row.why or STATES[row.state]
    return f"{row.name}: {row.state.replace('_', ' ')}: {why}{f' ({differences})' if differences else ''}"


def _container(name: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> str:
    parts = [name]
    for section, amounts in (("requests", requests), ("limits", limits)):
        known = [f"{what} {readable(what, amounts[what])}" for what in RESOURCES if what in amounts]
        parts += [section, *known] if amounts else []
    return " ".join(parts)
