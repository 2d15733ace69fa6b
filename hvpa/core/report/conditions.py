"""The conditions of an Hvpa: is it ready, which recommender counts, what is held back, does somebody else interfere."""

from __future__ import annotations

from collections.abc import Mapping

from hvpa.api.hvpa.status import StatusCondition
from hvpa.api.values import text
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.gates import CONTESTED
from hvpa.core.model import Axis, Finding, ObservedState
from hvpa.core.report.readiness import ready, refusal_text, refusals, unscaled
from hvpa.core.report.summary import DecisionParts, blocked_text, rollout_text
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import recommendations
from hvpa.core.workload.governed import cut_short
from hvpa.core.workload.managers import manager_of

_REVERTED: Mapping[Axis, str] = {
    "horizontal": "replicas: remove spec.replicas from what it applies",
    "vertical": "requests: remove the containers' resources from what it applies",
}
"""What is reverted, and what helps."""
_FIRST = 1024
"""Characters of `Ready`'s message that leave room for warnings after it."""


def conditions(seen: ObservedState, clock: Clock, decided: DecisionParts) -> tuple[StatusCondition, ...]:
    """All conditions, always in the same order."""
    before = {entry.type: entry for entry in seen.status.conditions}
    hpa, vpa, contested = _hpa_active(seen, decided), _vpa_active(seen, decided), _contested(seen, decided)
    is_ready, why = ready(seen, clock, decided, hpa, vpa, contested)
    findings = (
        ("Ready", is_ready, _with_warnings(seen, why)),
        ("HpaActive", *hpa),
        ("VpaActive", *vpa),
        ("ScalingBlocked", *_scaling_blocked(seen, decided)),
        ("Paused", *_paused(seen)),
        ("Contested", *contested),
    )
    return tuple(
        [_condition(seen, clock, before.get(kind), kind, holds, why) for kind, holds, why in findings]
    )


def _condition(
    seen: ObservedState, clock: Clock, old: StatusCondition | None, kind: str, holds: bool, why: Finding
) -> StatusCondition:
    """One condition; its time stays while its status does."""
    message = text.one_line(why.message)
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
        last_transition_time=since or clock.stamp().replace(microsecond=0),
        observed_generation=generation,
    )


def _with_warnings(seen: ObservedState, finding: Finding) -> Finding:
    """The finding with the warnings about the spec after it."""
    if seen.problem is not None or seen.spec is None or not seen.spec.warnings:
        return finding
    return Finding(finding.reason, text.joined((text.one_line(finding.message, _FIRST), *seen.spec.warnings)))


_NOT_READY = False, Finding("NotReady", "see condition Ready")


def _hpa_active(seen: ObservedState, decided: DecisionParts) -> tuple[bool, Finding]:
    if seen.problem is not None or seen.workload is None:
        return _NOT_READY
    if not seen.hpa.configured:
        return False, Finding("NotConfigured", "spec.hpa deploys no HorizontalPodAutoscaler and names none")
    problem = seen.hpa.problem or decided.desired.problem
    if decided.desired.replicas is not None:
        return True, problem or seen.hpa.read_as_is or Finding(
            "Recommending", "using the HPA's recommendation"
        )
    if decided.scaled_to_zero and problem is None:
        return False, Finding("NoPods", "the target has 0 replicas")
    return False, problem or Finding("NoMetrics", "the HPA has no recommendation")


def _vpa_active(seen: ObservedState, decided: DecisionParts) -> tuple[bool, Finding]:
    if seen.problem is not None or seen.workload is None:
        return _NOT_READY
    if not seen.vpa.configured:
        return False, Finding("NotConfigured", "spec.vpa deploys no VerticalPodAutoscaler and names none")
    if seen.vpa.problem is not None or seen.vpa.object is None:
        return False, seen.vpa.problem or Finding("NoRecommendation", "there is no VPA to read")
    names = {one.name for one in seen.workload.spec.template.spec.containers}
    unknown = sorted(recommendations(seen.vpa.object).keys() - names)
    if unknown:
        ignored = "recommendations for containers that the workload does not have are ignored"
        return True, Finding("UnknownContainer", f"{ignored}: {text.names(unknown)}")
    if decided.without_request:
        missing = "no request in the pod template, which counts as the limit, or 0 without one: "
        return True, Finding("MissingRequest", missing + ", ".join(decided.without_request))
    if short := cut_short(seen):
        return True, Finding("PodLevelResources", short)
    if decided.young_until is not None:
        until = f"until {readable_timestamp(decided.young_until)} (vpa.scaleDown.minHistory)"
        return True, Finding("YoungHistory", f"requests are only raised {until}")
    return True, seen.vpa.read_as_is or Finding("Recommending", "using the VPA's recommendation")


def _scaling_blocked(seen: ObservedState, decided: DecisionParts) -> tuple[bool, Finding]:
    if (why := unscaled(seen)) is not None:
        return True, Finding(why.reason, f"nothing is scaled: {why.message}")
    held = decided.rollout.held
    reasons = [*(one.reason for one in decided.blocked), *([] if held is None else [held.reason])]
    if not reasons:
        return False, Finding("NotBlocked", "nothing is held back")
    told = [blocked_text(entry) for entry in decided.blocked]
    told += [refusal_text(axis, record) for axis, record in refusals(seen, decided)]
    told += [] if held is None else [rollout_text(held)]
    return True, Finding(reasons[0], text.joined(told))


def _paused(seen: ObservedState) -> tuple[bool, Finding]:
    if seen.spec is not None and seen.spec.mode == "Paused":
        return True, Finding("Paused", "spec.mode is Paused: the workload is not changed")
    return False, Finding("NotPaused", "spec.mode is not Paused")


def _contested(seen: ObservedState, decided: DecisionParts) -> tuple[bool, Finding]:
    held = [entry for entry in decided.blocked if entry.reason == CONTESTED]
    if not held or seen.workload is None:
        return False, Finding("NotContested", "no other client is reverting changes")
    axes: list[Axis] = sorted({entry.axis for entry in held})
    parts = [f"{manager_of(seen.workload, axis)} keeps reverting {_REVERTED[axis]}" for axis in axes]
    until = min((entry.until for entry in held if entry.until is not None), default=None)
    retry = "" if until is None else f"; retrying at {readable_timestamp(until)}"
    return True, Finding("SetBack", "; ".join(parts) + retry)
