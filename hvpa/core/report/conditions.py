"""The conditions of an Hvpa: whether it is ready, which recommenders count, which changes are held back, and whether
another client interferes.

`Ready` is True only if the workload follows the recommendations within the user's limits (docs/decisions/0024). Its
message names everything that prevents that, and the first of these gives the reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Final

from hvpa.api.hvpa.status import Refusal, StatusCondition
from hvpa.api.objects.read_models import Workload, WorkloadCondition
from hvpa.api.values import text
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.actuation.undo import NOTHING_UNDONE, undo_of, undo_problem
from hvpa.core.gates.approval import approved
from hvpa.core.gates.gates import CONTESTED, REFUSED, ROLLED_BACK
from hvpa.core.model import Axis, Finding, ObservedState, ScalableState, StuckPods, UnscalableState
from hvpa.core.report import fast
from hvpa.core.report.bounds import bounds_reached, out_of_memory
from hvpa.core.report.parts import DecisionParts
from hvpa.core.report.pod_sizes import PAUSED, not_replaced, on_the_way
from hvpa.core.report.summary import blocked_text, rollout_text
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import recommendations
from hvpa.core.workload.governed import cut_short, kept_for_heaps, limits_of_memory
from hvpa.core.workload.managers import manager_of
from hvpa.core.workload.nodes import never_resized
from hvpa.core.workload.rollout import (
    PROGRESSING,
    REPLICA_FAILURE,
    is_overdue,
    last_change_is_past,
    rollout_gaps,
)
from hvpa.core.workload.runtimes import contradiction, heap_fixed
from hvpa.core.workload.stuck import UNSCHEDULABLE

ConditionValue = tuple[bool, Finding]
"""Whether a condition holds, and why."""

RECONCILED: Final = "Reconciled"
"""The workload follows the recommendations, or its pods are about to."""
HELD_BACK: Final = "HeldBack"
"""A gate that the user configured, or that opens within minutes, holds back a recommended change."""
SATURATED: Final = "Saturated"
"""Demand exceeds the user's bounds."""
HPA_INACTIVE: Final = "HpaInactive"
"""An HPA is configured, but its recommendation is not used."""
VPA_INACTIVE: Final = "VpaInactive"
"""A VPA is configured, but its recommendation is not used."""
NOT_RESIZED: Final = "PodsNotResized"
"""Pods can't have the desired size, or did not get it in time (spec.updateStrategy)."""
NODE_FORBIDS: Final = "NodeForbidsResize"
"""A setting of the node forbids to resize CPU or memory of such pods: a static CPU or memory manager, or swap."""
NOT_PERMITTED: Final = "NotPermitted"
"""The operator has no right to patch the workload, as in `config/in-place`."""
_NO_RIGHT: Final = "cannot patch resource"
"""Part of the API server's message if a right is missing (`forbiddenMessage` in apiserver/pkg/endpoints/handlers)."""
POSTPONED: Final = "DecisionPostponed"
"""The namespace's Hvpas need more computing time than the operator gives to a namespace."""
DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
"""The reason of a Deployment's `Progressing=False` (pkg/controller/deployment/util)."""
NOT_STARTING: Final = "PodsNotStarting"
"""Containers of pods can't start, or keep terminating."""
OUT_OF_MEMORY: Final = "OutOfMemory"
"""The same for lack of memory, if a bound allows no more memory."""
_REVERTED: Mapping[Axis, str] = {
    "horizontal": "replicas: remove spec.replicas from its manifest",
    "vertical": "requests: remove the containers' resources from its manifest",
}
"""The reverted change, and its remedy."""
_LATE = (
    "this decision is late: the Hvpas of this namespace need more computing time than the operator allots to one"
    " namespace"
)
_FIRST = 1024
"""Maximum length of `Ready`'s message in characters, so that warnings fit after it."""
_NOT_READY = False, Finding("NotReady", "see condition Ready")
_NO_RECOMMENDER = Finding("NoRecommender", "neither spec.hpa nor spec.vpa deploys or names an object")
_PAUSED: Final = "spec.mode is Paused: "
_NOT_PAUSED = Finding("NotPaused", "spec.mode is not Paused")


def conditions(
    observation: ObservedState, clock: Clock, decided: DecisionParts
) -> tuple[StatusCondition, ...]:
    """Return all conditions, always in the same order; `FastSignal` only with a fast signal."""
    hpa, vpa, contested = (
        _hpa_active(observation, decided),
        _vpa_active(observation, decided),
        _contested(observation, decided),
    )
    is_ready, why = _ready(observation, clock, decided, hpa, vpa, contested)
    if isinstance(observation, ScalableState) and observation.spec.warnings:
        warned = text.joined((text.one_line(why.message, _FIRST), *observation.spec.warnings))
        why = Finding(why.reason, warned)
    if observation.postponed:
        late = text.joined((_LATE, text.one_line(why.message, _FIRST)))
        is_ready, why = False, Finding(POSTPONED, late) if is_ready else Finding(why.reason, late)
    verdicts: dict[str, ConditionValue] = {
        "Ready": (is_ready, why),
        "HpaActive": hpa,
        "VpaActive": vpa,
        "ScalingBlocked": _scaling_blocked(observation, decided),
        "Paused": _paused(observation),
        "Contested": contested,
    }
    if (signal := _fast_signal(observation, clock)) is not None:
        verdicts[fast.CONDITION] = signal
    return tuple([_condition(observation, clock, kind, *verdict) for kind, verdict in verdicts.items()])


def _paused(observation: ObservedState) -> ConditionValue:
    """Return whether the Hvpa is paused. HVPA then changes nothing, except that pods return to earlier sizes."""
    if observation.spec is None or observation.spec.mode != "Paused":
        return False, _NOT_PAUSED
    undo, problem = undo_of(observation), undo_problem(observation)
    if undo is not None:
        return True, Finding("Paused", f"{_PAUSED}pods get {undo.text()}, and HVPA changes nothing else")
    what = f"{_PAUSED}the workload is not changed"
    return True, Finding("Paused", f"{what}; {NOTHING_UNDONE}{problem}" if problem else what)


def _condition(
    observation: ObservedState, clock: Clock, kind: str, holds: bool, why: Finding
) -> StatusCondition:
    """Return a condition; its time stays as long as its status does."""
    old = next((condition for condition in observation.status.conditions if condition.type == kind), None)
    status, message = "True" if holds else "False", text.one_line(why.message)
    generation = max(0, observation.metadata.generation)  # no API server sets a negative generation

    what = (status, why.reason, message, generation)
    if old is not None and (old.status, old.reason, old.message, old.observed_generation) == what:
        return old
    since = old.last_transition_time if old is not None and old.status == status else None
    return StatusCondition(
        type=kind,
        status=status,
        reason=why.reason,
        message=message,
        last_transition_time=since or clock.stamp().replace(microsecond=0),
        observed_generation=generation,
    )


def _fast_signal(observation: ObservedState, clock: Clock) -> ConditionValue | None:
    if observation.spec is None or observation.spec.fast_signal.mode == "Off":
        return None
    if isinstance(observation, UnscalableState):
        return _NOT_READY
    return fast.fast_condition(observation, clock)


# --- the recommenders ------------------------------------------------------------------------------------------------
def _hpa_active(observation: ObservedState, decided: DecisionParts) -> ConditionValue:
    if isinstance(observation, UnscalableState):
        return _NOT_READY
    if not observation.hpa.configured:
        return False, Finding("NotConfigured", "spec.hpa neither deploys nor names a HorizontalPodAutoscaler")
    problem = observation.hpa.problem or decided.axes.desired.problem
    if decided.axes.desired.replicas is not None:
        used = observation.hpa.read_as_is or Finding("Recommending", "using the HPA's recommendation")
        return True, problem or used
    if decided.axes.scaled_to_zero and problem is None:
        return False, Finding("NoPods", "the target has 0 replicas")
    return False, problem or Finding("NoMetrics", "the HPA has no recommendation")


def _vpa_active(observation: ObservedState, decided: DecisionParts) -> ConditionValue:
    if isinstance(observation, UnscalableState):
        return _NOT_READY
    if not observation.vpa.configured:
        return False, Finding("NotConfigured", "spec.vpa neither deploys nor names a VerticalPodAutoscaler")
    if observation.vpa.problem is not None or observation.vpa.object is None:
        return False, observation.vpa.problem or Finding("NoRecommendation", "no VPA was found")
    if decided.axes.lost_until:
        return True, _lost_history(decided.axes.lost_until)
    names = {container.name for container in observation.workload.spec.template.spec.containers}
    unknown = sorted(recommendations(observation.vpa.object).keys() - names)
    if unknown:
        ignored = "HVPA ignores recommendations for containers that the workload does not have"
        return True, Finding("UnknownContainer", f"{ignored}: {text.names(unknown)}")
    if decided.axes.without_request:
        missing = f"no request in the pod template for {', '.join(decided.axes.without_request)}"
        return True, Finding("MissingRequest", f"{missing}: HVPA uses the limit, or 0 without a limit")
    if (finding := _of_bounds(observation) or _of_runtimes(observation)) is not None:
        return True, finding
    if decided.axes.young_until is not None:
        until = f"until {readable_timestamp(decided.axes.young_until)} (vpa.scaleDown.minHistory)"
        return True, Finding("YoungHistory", f"HVPA only raises requests {until}")
    return True, observation.vpa.read_as_is or Finding("Recommending", "using the VPA's recommendation")


def _of_bounds(observation: ScalableState) -> Finding | None:
    """Return why requests stay below the recommendation: the pod's own resources, or the largest node."""
    node = observation.largest_node
    if node is not None and node.problem and not node.is_awaited:
        why = f"{node.problem}, so no node bounds the requests (vpa.maxAllowed)"
        return Finding("NodesUnknown", why)
    return cut_short(observation)


def _of_runtimes(observation: ScalableState) -> Finding | None:
    """Return a contradiction between pod template and `spec.runtimes`, a heap that more memory does not enlarge, or one
    that needs more than the recommendation."""
    runtimes = observation.spec.runtimes
    if not runtimes:
        return None
    template = observation.workload.spec.template.spec.containers
    return (
        contradiction(runtimes, template)
        or heap_fixed(runtimes, template, limits_of_memory(observation))
        or kept_for_heaps(observation)
    )


def _lost_history(until: Mapping[str, dt.datetime]) -> Finding:
    """Return the message about containers whose recommendations have lost their history."""
    times = [f"{name} until {readable_timestamp(when)}" for name, when in sorted(until.items())]
    why = "the VPA's upper bounds show that its recommender has lost its history (vpa.scaleDown.minHistory)"
    return Finding("LostHistory", f"{why}, so HVPA only raises requests: {text.joined(times)}")


# --- what holds back -------------------------------------------------------------------------------------------------
def _scaling_blocked(observation: ObservedState, decided: DecisionParts) -> ConditionValue:
    why = observation.problem or (None if _has_recommender(observation) else _NO_RECOMMENDER)
    if why is not None:
        return True, Finding(why.reason, f"HVPA scales nothing: {why.message}")
    parts = [(blocked.reason, blocked_text(blocked)) for blocked in decided.blocked]
    parts += [(REFUSED, _refusal_text(axis, record)) for axis, record in refusals(observation, decided)]
    parts += [(ROLLED_BACK, why) for why in _rolled_back_texts(observation, decided)]
    if (held := decided.rollout.held) is not None:
        parts.append((held.reason, rollout_text(held)))
    if not parts:
        return False, Finding("NotBlocked", "no change is held back")
    reasons, texts = zip(*parts, strict=True)
    return True, Finding(reasons[0], text.joined(texts))


def _contested(observation: ObservedState, decided: DecisionParts) -> ConditionValue:
    held = [entry for entry in decided.blocked if entry.reason == CONTESTED]
    if not held or observation.workload is None:
        return False, Finding("NotContested", "no other client is reverting changes")
    axes: list[Axis] = sorted({entry.axis for entry in held})
    parts = [f"{manager_of(observation.workload, axis)} keeps reverting {_REVERTED[axis]}" for axis in axes]
    until = min((entry.until for entry in held if entry.until is not None), default=None)
    retry = "" if until is None else f"; retrying at {readable_timestamp(until)}"
    return True, Finding("SetBack", "; ".join(parts) + retry)


def refusals(observation: ObservedState, decided: DecisionParts) -> tuple[tuple[Axis, Refusal], ...]:
    """Return the axes on which a change is held back because the API server refused it, and its message."""
    held = {entry.axis for entry in decided.blocked if entry.reason == REFUSED}
    records: tuple[tuple[Axis, Refusal | None], ...] = (
        ("horizontal", observation.horizontal.refused),
        ("vertical", observation.vertical.refused),
    )
    return tuple([(axis, record) for axis, record in records if axis in held and record is not None])


def _rolled_back_texts(observation: ObservedState, decided: DecisionParts) -> list[str]:
    """Return why sizes that are held back were rolled back, for example because of a node, a quota or a LimitRange."""
    record = decided.rolled_back or observation.status.rolled_back
    if record is None or not any(entry.reason == ROLLED_BACK for entry in decided.blocked):
        return []
    return [f"sizes rolled back: {record.message}"]


def _refusal_text(axis: Axis, record: Refusal) -> str:
    what = "replicas" if axis == "horizontal" else "requests"
    return f"the API server refused to change {what}: {record.message}"


# --- Ready -----------------------------------------------------------------------------------------------------------
def _ready(
    observation: ObservedState,
    clock: Clock,
    decided: DecisionParts,
    hpa: ConditionValue,
    vpa: ConditionValue,
    contested: ConditionValue,
) -> ConditionValue:
    """Return whether the workload is as it should be, given the conditions `HpaActive`, `VpaActive` and `Contested`."""
    if isinstance(observation, UnscalableState):
        return False, observation.problem
    if not _has_recommender(observation):
        return False, _NO_RECOMMENDER
    if decided.axes.scaled_to_zero and decided.axes.desired.switched == 0:
        return True, Finding(RECONCILED, "the HPA or KEDA has scaled the target to 0 replicas")
    if decided.axes.scaled_to_zero:
        return True, Finding("ScaledToZero", "the target has 0 replicas, so HVPA does not scale it")
    applies = observation.spec.applies
    problems = list(_obstacles(observation, clock, decided, contested)) if applies else []
    problems += _not_resized(decided) if applies or undo_of(observation) is not None else ()
    for name, reason, configured, (holds, why) in (
        ("HPA", HPA_INACTIVE, observation.hpa.configured, hpa),
        ("VPA", VPA_INACTIVE, observation.vpa.configured, vpa),
    ):
        if configured and not holds:
            unused = f"the {name}'s recommendation is not used, {why.reason}: {why.message}"
            problems.append(Finding(reason, unused))
    if problems:
        return False, Finding(problems[0].reason, text.joined(problem.message for problem in problems))
    held = [blocked_text(entry) for entry in decided.blocked]
    if not applies:
        return True, Finding(observation.spec.mode, _only_recommended(observation, decided, "; ".join(held)))
    return True, _within_limits(observation, decided, held)


def _within_limits(observation: ScalableState, decided: DecisionParts, held: list[str]) -> Finding:
    """Return how far bounds and gates limit the recommendations (`held`: the changes that gates hold back), and whether
    the pods have their size."""
    if decided.rollout.held is not None:
        held.append(rollout_text(decided.rollout.held))
    held += _rolled_back_texts(observation, decided)
    limits, way = list(bounds_reached(observation, decided)), on_the_way(observation, decided)
    reason = SATURATED if limits else HELD_BACK if held else RECONCILED
    texts = [*limits, *held, *filter(None, [way])]
    return Finding(reason, "; ".join(texts) or "the workload follows its recommendations")


def _has_recommender(observation: ObservedState) -> bool:
    return observation.hpa.configured or observation.vpa.configured


def _only_recommended(observation: ScalableState, decided: DecisionParts, held: str) -> str:
    """Return the message of a mode that changes nothing: the meaning of status.recommended, and which part of it gates
    would hold back. In mode Paused the mode itself is the gate."""
    mode = observation.spec.mode
    if (undo := undo_of(observation)) is not None:
        way = on_the_way(observation, decided) or "all pods have them"
        return f"mode {mode}: pods get {undo.text()}; {way}"
    what = f"mode {mode}: the workload is not changed; status.recommended has the recommendation before gates"
    if mode == "Paused":
        return what
    return f"{what}; in mode Apply: {held}" if held else f"{what}; in mode Apply, no gate would hold it back"


def _obstacles(
    observation: ScalableState, clock: Clock, decided: DecisionParts, contested: ConditionValue
) -> Iterator[Finding]:
    """Yield the obstacles from other clients, the API server and the workload itself."""
    if contested[0]:
        yield Finding(CONTESTED, contested[1].message)
    if refused := refusals(observation, decided):
        parts = [_refusal_text(axis, record) for axis, record in refused]
        times = {
            entry.until for entry in decided.blocked if entry.reason == REFUSED and entry.until is not None
        }
        parts += [f"retrying at {readable_timestamp(when)}" for when in sorted(times)]
        lacks_right = all(_NO_RIGHT in record.message for _, record in refused)
        yield Finding(NOT_PERMITTED if lacks_right else REFUSED, text.joined(parts))
    failures = list(_failures(observation, clock, decided))
    if any(failure.reason == NOT_STARTING for failure in failures) and (
        bounds := tuple(out_of_memory(observation))
    ):
        yield Finding(OUT_OF_MEMORY, text.joined(bounds))
    yield from failures
    if observation.spec.mode == "Review" and (invalid := approved(observation.metadata.annotations).problem):
        yield invalid


def _not_resized(decided: DecisionParts) -> Iterator[Finding]:
    """Yield why pods can't have their size, or did not get it in time."""
    if decided.resizing is not None and decided.resizing.stuck:
        stuck = decided.resizing.stuck
        yield Finding(NODE_FORBIDS if never_resized(stuck) else NOT_RESIZED, stuck)


# --- the workload's own failures -------------------------------------------------------------------------------------
def _failures(observation: ScalableState, clock: Clock, decided: DecisionParts) -> Iterator[Finding]:
    """Yield why the workload does not run the pods of its spec, the most important failure first."""
    workload = observation.workload
    assert workload is not None
    if workload.spec.replicas == 0:
        return
    name = f"{workload.kind} {workload.metadata.name}"
    failed = _of_workload(workload, REPLICA_FAILURE)
    if failed is not None and failed.status == "True":
        why = text.reason(failed.reason, "FailedCreate")
        yield Finding(REPLICA_FAILURE, f"{name} can't create pods, {why}: {failed.message}")
    if _is_missing_pods(workload, observation, clock):
        why = f"{name} has {workload.status.replicas} of {workload.spec.replicas} pods and does not create the rest"
        hint = "its Events report the reason, such as a quota or a webhook"
        yield Finding("PodsNotCreated", f"{why}: {hint}")
    yield from [finding for stuck in observation.pods.stuck if (finding := _stuck(stuck, clock)) is not None]
    if (kept := not_replaced(observation, clock, decided)) is not None:
        yield kept
    is_held = (
        observation.rollout is not None and observation.rollout.held
    )  # by the operator, as ScalingBlocked reports

    gaps = "" if is_held else "; ".join(rollout_gaps(workload))
    if not gaps:
        return
    if workload.spec.paused and kept is None:
        yield Finding(PAUSED, f"{name} is paused (spec.paused): its pods are not replaced")
    progressing = _of_workload(workload, PROGRESSING)
    if progressing is not None and progressing.reason == DEADLINE_EXCEEDED:
        yield Finding(DEADLINE_EXCEEDED, progressing.message or f"{name}: {gaps}")
    elif is_overdue(observation, clock):
        yield Finding(DEADLINE_EXCEEDED, f"the rollout of {name} is not progressing: {gaps}")


def _stuck(stuck: StuckPods, clock: Clock) -> Finding | None:
    """Return why pods can't run, during the time in which this is reported."""
    if stuck.since is not None and not clock.is_past(stuck.since):
        return None
    if stuck.until is not None and clock.is_past(stuck.until):
        return None
    reason = "PodsUnschedulable" if stuck.reason == UNSCHEDULABLE else NOT_STARTING
    pods = f"pod {stuck.pod}" if stuck.count == 1 else f"{stuck.count} pods, such as {stuck.pod}"
    why = "can't be scheduled" if stuck.reason == UNSCHEDULABLE else f"can't start, {stuck.reason}"
    return Finding(reason, f"{pods} {why}: {stuck.message}" if stuck.message else f"{pods} {why}")


def _is_missing_pods(workload: Workload, observation: ObservedState, clock: Clock) -> bool:
    """Return whether a StatefulSet has not created pods for no visible reason. Its status has no condition for that,
    and HVPA does not read Events."""
    status, pods = workload.status, observation.pods
    if workload.kind != "StatefulSet" or status.replicas >= workload.spec.replicas:
        return False
    if pods.unready or pods.terminating or status.observed_generation < workload.metadata.generation:
        return False
    return last_change_is_past(observation, clock)


def _of_workload(workload: Workload, kind: str) -> WorkloadCondition | None:
    return next((condition for condition in workload.status.conditions if condition.type == kind), None)
