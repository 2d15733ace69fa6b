"""Rollouts that the operator starts: paused at the end of a maintenance window, tried on the first pods, rolled back if
those fail (DESIGN 11.5).

The state of a rollout is an annotation of the workload (`RolloutRecord`), written in the same patch as the change.
`hvpa.core.workload.own_rollout` holds a workload's rollout.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hvpa.api.hvpa.progress import HeldRollout, RecommendedContainer
from hvpa.api.hvpa.status import ROLLOUT, RolledBack, RolloutRecord, to_wire
from hvpa.api.objects.read_models import Container, Pod, Resources, Workload
from hvpa.core.actuation.desired import had, moved, patch_of, recorded, sizes_of
from hvpa.core.actuation.pod import own_pods
from hvpa.core.actuation.pods import held_by
from hvpa.core.actuation.trial import failure, largest_of, taken_back
from hvpa.core.gates.gates import CANARY, MAINTENANCE_WINDOW, GateContext
from hvpa.core.gates.verdict import Verdict, judged
from hvpa.core.model import ObservedState, ScalableState, WorkloadPatch
from hvpa.core.values.clock import after
from hvpa.core.values.tuning import NO_NODE_FOR
from hvpa.core.workload.containers import present_resources, read_all
from hvpa.core.workload.own_rollout import (
    NEVER_REPLACING,
    can_be_held,
    partition_of,
    replaces_pods,
    rollout_controls,
)
from hvpa.core.workload.rollout import runs_template
from hvpa.core.workload.stuck import UNSCHEDULABLE


class RolloutStep(msgspec.Struct, frozen=True, gc=False):
    """The next step of the operator's rollout."""

    record: RolloutRecord | None = None
    """The record to write; None leaves it unchanged."""
    held: HeldRollout | None = None
    """Why the rollout is held."""
    previous: tuple[RecommendedContainer, ...] = ()
    """Sizes that HVPA rolls back to."""
    rolled_back: RolledBack | None = None
    """The record of the rollback, with its reason."""


def next_step(context: GateContext, observation: ScalableState) -> RolloutStep:
    """Returns the next step of the rollout that the operator started, if there is one."""
    target, record = observation.target, observation.rollout
    if (rollback := _rollback_without_node(context, observation, target)) is not None:
        return rollback
    if record is None:
        return RolloutStep()
    mode = context.spec.mode
    if not context.applies:
        message = f"{_replaced_pods(target)}; the others follow in mode Apply"
        return RolloutStep(None, HeldRollout(reason=mode, message=message) if record.held else None)
    tried, until = record.previous, None
    if tried:
        template, canary = target.spec.template.spec.containers, context.spec.strategy.canary
        pods = [pod for pod in own_pods(observation) if runs_template(pod, template)]
        known = observation.status.rolled_back
        if known is not None and known.time >= record.since and _is_of(template, known):
            return _rollback_step(context, observation, record, known.message)  # its write was refused
        since = _tried_since(context, target, pods)
        sizes = (sizes_of(tried), present_resources(template))
        verdict = Verdict(is_over=canary is None)
        if since is not None:
            verdict = judged(context, observation, since, sizes)
        until, is_over = verdict.until, verdict.is_over
        for pod in sorted(pods, key=lambda pod: pod.metadata.name):
            if canary and (why := failure(canary, pod, sizes, record.since, is_over=is_over)):
                return _rollback_step(context, observation, record, f"pod {pod.metadata.name}: {why}")
        if verdict.failure:
            return _rollback_step(context, observation, record, verdict.failure)
        tried = () if is_over else tried
    hold = _rollout_hold(context, target, record, tried, until)
    held = hold is not None and (record.held or (can_be_held(target) and replaces_pods(target)))
    same = held == record.held and tried == record.previous
    following = None if same else record.model_copy(update={"held": held, "previous": tried})
    return RolloutStep(following, hold if held else None)


def _rollback_without_node(
    context: GateContext, observation: ObservedState, target: Workload
) -> RolloutStep | None:
    """Rolls the template's sizes back if no node has room for them: pods of that size have been unschedulable for
    `NO_NODE_FOR`, and other pods run with a smaller size. HVPA adds replicas instead (DESIGN 5.4, sentence 13)."""
    waiting = next((stuck for stuck in observation.pods.stuck if stuck.reason == UNSCHEDULABLE), None)
    if not context.applies or context.spec.strategy.type == "InPlace" or waiting is None:
        return None
    template = target.spec.template.spec.containers
    if waiting.since is None or not context.clock.is_past(after(waiting.since, NO_NODE_FOR)):
        return None
    wanted = present_resources(template)
    others = [
        pod
        for pod in own_pods(observation)
        if pod.status.phase == "Running" and not runs_template(pod, template)
    ]
    previous = had(largest_of(observation, others), wanted)
    if not moved(wanted, previous)[1]:
        return None
    why = f"pod {waiting.pod}: {waiting.message}"
    return RolloutStep(
        previous=recorded(previous), rolled_back=taken_back(context, observation, wanted, previous, why)
    )


def _is_of(template: Sequence[Container], rollback: RolledBack) -> bool:
    """Returns whether the pod template still has the sizes that were rolled back."""
    present = {
        (name, resource, request)
        for name, size in present_resources(template).items()
        for resource, request in size.requests.items()
    }
    failed = {(change.container, change.resource, change.failed) for change in rollback.changes}
    return bool(failed) and failed <= present


def _tried_since(context: GateContext, target: Workload, pods: list[Pod]) -> dt.datetime | None:
    """Returns since when all canary pods have the new size; None while some are missing, or without a canary."""
    canary, created = context.spec.strategy.canary, [pod.metadata.creation_timestamp for pod in pods]
    times = [instant for instant in created if instant is not None]
    if canary is None or not times or len(times) < _canary_count(context, target):
        return None
    return max(times)


def _canary_count(context: GateContext, target: Workload) -> int:
    """Returns the number of pods that try a new size."""
    return min(context.spec.strategy.canary_pods(target.spec.replicas), target.spec.replicas)


def _rollback_step(
    context: GateContext, observation: ScalableState, record: RolloutRecord, why: str
) -> RolloutStep:
    """Rolls back to the previous sizes. If the rollback is already recorded, the operator was killed before it wrote
    the template."""
    known = observation.status.rolled_back
    if known is None or known.time < record.since:
        failed = present_resources(observation.target.spec.template.spec.containers)
        known = taken_back(context, observation, failed, sizes_of(record.previous), why)
    return RolloutStep(previous=record.previous, rolled_back=known)


def _rollout_hold(
    context: GateContext,
    target: Workload,
    record: RolloutRecord,
    tried: tuple[RecommendedContainer, ...],
    until: dt.datetime | None,
) -> HeldRollout | None:
    """Returns why the workload must not replace further pods."""
    replaced = _replaced_pods(target)
    if tried and (record.held or target.status.updated_replicas >= _canary_count(context, target)):
        message = f"{replaced}; HVPA tries the new size on them first"
        return HeldRollout(reason=CANARY, message=message, until=until)
    closed = _waits_for_windows(context, record) and not context.window.open
    if not closed and not (record.held and held_by(context, up=record.up, down=record.down)):
        return None
    message = f"{replaced}; the others follow in the next maintenance window"
    return HeldRollout(reason=MAINTENANCE_WINDOW, message=message, until=context.window.opens_at)


def _replaced_pods(target: Workload) -> str:
    return f"{target.status.updated_replicas} of {target.spec.replicas} pods are replaced"


def _waits_for_windows(context: GateContext, record: RolloutRecord) -> bool:
    """Whether a direction in which the rollout changes requests and limits requires a maintenance window."""
    up, down = context.spec.vpa.scale_up.update_policy, context.spec.vpa.scale_down.update_policy
    modes = {up.update_mode if record.up else "", down.update_mode if record.down else ""}
    return "MaintenanceWindow" in modes


def is_trial_after(observation: ScalableState, patch: WorkloadPatch | None, step: RolloutStep) -> bool:
    """Returns whether pods of a rollout try a size after this decision, whose write to the workload is `patch`."""
    if step.rolled_back is not None or observation.target.kind in NEVER_REPLACING:
        return False
    if patch is not None and "template" in patch.body["spec"]:  # type: ignore[operator]
        return observation.spec.strategy.canary is not None
    record = step.record or observation.rollout
    return record is not None and bool(record.previous)


# --- the write -------------------------------------------------------------------------------------------------------
def with_record(
    context: GateContext, observation: ObservedState, patch: WorkloadPatch | None, step: RolloutStep
) -> WorkloadPatch | None:
    """Adds the rollout's record to the patch. A change of the template starts a rollout; any other change of the
    workload keeps the record. If nothing else changes, the record is a patch of its own."""
    target = observation.target
    if target is None or target.kind in NEVER_REPLACING:
        return patch
    body: Mapping[str, Any] = {"metadata": {}, "spec": {}} if patch is None else patch.body
    metadata, spec = body["metadata"], dict(body["spec"])
    record = step.record or observation.rollout
    if "template" in spec:
        record = _new_record(context, target, observation.rollout, spec, step)
    elif step.record is None and record is not None:
        is_open = record.held or bool(record.previous) or replaces_pods(target)
        record = record if is_open and patch is not None else None
    if record is None:
        return patch
    number = _canary_count(context, target) if record.previous else target.status.updated_replicas
    spec |= rollout_controls(target, observation.rollout, record, number)
    record = record.model_copy(update={"generation": target.metadata.generation + bool(spec)})
    text = msgspec.json.encode(to_wire(record), order="sorted").decode()
    annotations = {**metadata.get("annotations", {}), ROLLOUT: text}
    return patch_of(target, spec, {**metadata, "annotations": annotations})


def _new_record(
    context: GateContext,
    target: Workload,
    before: RolloutRecord | None,
    spec: Mapping[str, Any],
    step: RolloutStep,
) -> RolloutRecord | None:
    """Returns the record for a change of the template; None if the rollout would never be held, tried or rolled
    back."""
    held_before = before if before is not None and before.held else None
    have = present_resources(target.spec.template.spec.containers)
    containers = spec["template"]["spec"]["containers"]
    changes = read_all({container["name"]: Resources(**container["resources"]) for container in containers})
    strategy, is_back = context.spec.strategy, step.rolled_back is not None
    raised, lowered = moved(have, {} if is_back else changes)
    is_tried = strategy.canary is not None and not is_back
    is_first = target.kind == "StatefulSet" and _canary_count(context, target) < target.spec.replicas
    record = RolloutRecord(
        generation=0,
        since=context.clock.stamp().replace(microsecond=0),
        up=bool(raised),
        down=bool(lowered),
        held=is_tried and is_first,
        partition=partition_of(target) if held_before is None else held_before.partition,
        previous=recorded(had(have, changes)) if is_tried else (),
        rolled_back=step.rolled_back,
    )
    matters = is_tried or is_back or held_before is not None or _waits_for_windows(context, record)
    return record if matters else None
