"""The conditions of an Hvpa: is it ready, which recommender counts, what is held back, does somebody else interfere."""

from __future__ import annotations

from hvpa.api import text
from hvpa.api.status import Refusal, StatusCondition
from hvpa.api.timestamp import format_timestamp
from hvpa.core.contest import manager_of
from hvpa.core.gates import CONTESTED, REFUSED
from hvpa.core.judgement import Judgement, blocked_text, saturation
from hvpa.core.model import Axis, Finding, Scene
from hvpa.core.pod_level import cut_short
from hvpa.core.present import Present
from hvpa.core.slots import recommendations
from hvpa.core.vertical import governed, recommended

_FIRST = 1024
"""Characters of `Ready`'s message that leave room for warnings after it."""


def conditions(seen: Scene, present: Present, judged: Judgement) -> tuple[StatusCondition, ...]:
    """All conditions, always in the same order."""
    before = {entry.type: entry for entry in seen.status.conditions}
    findings = (
        ("Ready", *_ready(seen, judged)),
        ("HpaActive", *_hpa_active(seen, judged)),
        ("VpaActive", *_vpa_active(seen, judged)),
        ("ScalingBlocked", *_scaling_blocked(seen, judged)),
        ("Paused", *_paused(seen)),
        ("Contested", *_contested(seen, judged)),
    )
    return tuple(
        [_condition(seen, present, before.get(kind), kind, holds, why) for kind, holds, why in findings]
    )


def _condition(
    seen: Scene, present: Present, old: StatusCondition | None, kind: str, holds: bool, why: Finding
) -> StatusCondition:
    """One condition; its time stays while its status does."""
    message = text.told(why.message)
    generation = max(0, seen.metadata.generation)  # no API server gives one below
    told = ("True" if holds else "False", why.reason, message, generation)
    if old is not None and (old.status, old.reason, old.message, old.observed_generation) == told:
        return old
    since = old.last_transition_time if old is not None and old.status == told[0] else None
    return StatusCondition(
        type=kind,
        status=told[0],
        reason=why.reason,
        message=message,
        last_transition_time=since or present.stamp().replace(microsecond=0),
        observed_generation=generation,
    )


def _ready(seen: Scene, judged: Judgement) -> tuple[bool, Finding]:
    if seen.problem is not None or seen.spec is None:
        return False, seen.problem or Finding("InvalidSpec", "the spec can't be read")
    holds, reason, why = True, "Reconciled", "the workload follows its recommendations"
    if not seen.hpa.configured and not seen.vpa.configured:
        holds, reason = False, "NoRecommender"
        why = "neither spec.hpa nor spec.vpa is to be deployed or names an object"
    elif judged.scaled_to_zero:
        reason, why = "ScaledToZero", "the target has 0 replicas and is left alone"
    elif seen.spec.mode != "Apply":
        reason = seen.spec.mode
        why = f"mode {reason}: nothing is changed; status.recommended has what mode Apply would set"
    elif refused := refusals(seen, judged):
        holds, reason, why = False, REFUSED, _refused_text(refused, judged)
    elif judged.joint is not None and (saturated := saturation(judged.joint)):
        reason, why = "Saturated", "; ".join(saturated)
    return holds, Finding(reason, "; ".join((text.told(why, _FIRST), *seen.spec.warnings)))


def _hpa_active(seen: Scene, judged: Judgement) -> tuple[bool, Finding]:
    if seen.problem is not None or seen.workload is None:
        return False, Finding("NotReady", "see condition Ready")
    if not seen.hpa.configured:
        return False, Finding("NotConfigured", "spec.hpa deploys no HorizontalPodAutoscaler and names none")
    problem = seen.hpa.problem or judged.wish.problem
    if judged.wish.replicas is None:
        if judged.scaled_to_zero and problem is None:
            return False, Finding("NoPods", "the target has 0 replicas")
        return False, problem or Finding("NoMetrics", "the HPA has no recommendation")
    return True, problem or seen.hpa.read_as_is or Finding("Recommending", "the HPA's recommendation counts")


def _vpa_active(seen: Scene, judged: Judgement) -> tuple[bool, Finding]:
    if seen.problem is not None or seen.workload is None:
        return False, Finding("NotReady", "see condition Ready")
    if not seen.vpa.configured:
        return False, Finding("NotConfigured", "spec.vpa deploys no VerticalPodAutoscaler and names none")
    if seen.vpa.problem is not None or seen.vpa.object is None:
        return False, seen.vpa.problem or Finding("NoRecommendation", "there is no VPA to read")
    names = {one.name for one in seen.workload.spec.template.spec.containers}
    unknown = sorted(recommendations(seen.vpa.object).keys() - names)
    if unknown:
        ignored = "recommendations for containers that the workload does not have are ignored"
        return True, Finding("UnknownContainer", f"{ignored}: {text.names(unknown)}")
    if judged.without_request:
        missing = "no request in the pod template, which counts as the limit, or 0 without one: "
        return True, Finding("MissingRequest", missing + ", ".join(judged.without_request))
    pod = seen.workload.spec.template.spec
    if pod.resources is not None and (short := cut_short(recommended(seen), governed(seen))):
        why = "the pod template's own resources (spec.template.spec.resources) leave less: "
        return True, Finding("PodLevelResources", why + ", ".join(short))
    if judged.young_until is not None:
        until = f"until {format_timestamp(judged.young_until)} (vpa.scaleDown.minHistory)"
        return True, Finding("YoungHistory", f"requests are only raised {until}")
    return True, seen.vpa.read_as_is or Finding("Recommending", "the VPA's recommendation counts")


def _scaling_blocked(seen: Scene, judged: Judgement) -> tuple[bool, Finding]:
    if not judged.blocked:
        return False, Finding("NotBlocked", "nothing is held back")
    told = [blocked_text(entry) for entry in judged.blocked]
    told += [_refusal_text(axis, record) for axis, record in refusals(seen, judged)]
    return True, Finding(judged.blocked[0].reason, "; ".join(told))


def refusals(seen: Scene, judged: Judgement) -> tuple[tuple[Axis, Refusal], ...]:
    """The axes on which a change is held back because the API server refused it, and what it said."""
    held = {entry.axis for entry in judged.blocked if entry.reason == REFUSED}
    records: tuple[tuple[Axis, Refusal | None], ...] = (
        ("horizontal", seen.horizontal.refused),
        ("vertical", seen.vertical.refused),
    )
    return tuple([(axis, record) for axis, record in records if axis in held and record is not None])


def _refused_text(refused: tuple[tuple[Axis, Refusal], ...], judged: Judgement) -> str:
    told = [_refusal_text(axis, record) for axis, record in refused]
    retries = [entry.until for entry in judged.blocked if entry.reason == REFUSED and entry.until is not None]
    return "; ".join([*told, *(f"tried again at {format_timestamp(when)}" for when in sorted({*retries}))])


def _refusal_text(axis: Axis, record: Refusal) -> str:
    what = "replicas" if axis == "horizontal" else "requests"
    return f"the API server refused to change {what}: {record.message}"


def _paused(seen: Scene) -> tuple[bool, Finding]:
    if seen.spec is not None and seen.spec.mode == "Paused":
        return True, Finding("Paused", "spec.mode is Paused: the workload is not changed")
    return False, Finding("NotPaused", "spec.mode is not Paused")


def _contested(seen: Scene, judged: Judgement) -> tuple[bool, Finding]:
    held = [entry for entry in judged.blocked if entry.reason == CONTESTED]
    if not held or seen.workload is None:
        return False, Finding("NotContested", "nobody else keeps changing what this Hvpa sets")
    axes: list[Axis] = sorted({entry.axis for entry in held})
    told = [
        f"{'replicas' if axis == 'horizontal' else 'resources'} keep being set back by "
        f"{manager_of(seen.workload, axis)}"
        for axis in axes
    ]
    until = max((entry.until for entry in held if entry.until is not None), default=None)
    retry = "" if until is None else f"; tried again at {format_timestamp(until)}"
    return True, Finding("SetBack", "; ".join(told) + retry)
