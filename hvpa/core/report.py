"""Telling what was decided: the complete next status."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from hvpa.api.objects import Selector
from hvpa.api.status import (
    Axes,
    BlockedScaling,
    ContainerTarget,
    HpaScalingStatus,
    HvpaStatus,
    LastError,
    LastScaling,
    Recommended,
    RecommendedContainer,
    StatusCondition,
    StatusUpdatePolicy,
    VpaRecommendationStatus,
    VpaScalingStatus,
)
from hvpa.core.conditions import conditions
from hvpa.core.judgement import Judgement, amount, wire
from hvpa.core.model import Blocked, ContainerResources, Observation
from hvpa.core.weights import FULL, percent


def next_status(seen: Observation, judged: Judgement) -> HvpaStatus:
    """The status as it is once this decision's writes are done."""
    before, spec, workload = seen.status, seen.spec, seen.workload
    told = conditions(seen, judged)
    if spec is None or workload is None:
        return before.model_copy(update={"conditions": told, "last_blocked_scaling": (), "last_error": None})
    weight = judged.weight.vertical_ppm if judged.weight is not None else None
    return HvpaStatus(
        replicas=workload.status.replicas,
        target_selector=selector_text(workload.spec.selector),
        hpa_scale_up_update_policy=_policy(spec.hpa.scale_up.update_policy.update_mode),
        hpa_scale_down_update_policy=_policy(spec.hpa.scale_down.update_policy.update_mode),
        vpa_scale_up_update_policy=_policy(spec.vpa.scale_up.update_policy.update_mode),
        vpa_scale_down_update_policy=_policy(spec.vpa.scale_down.update_policy.update_mode),
        hpa_weight=before.hpa_weight if weight is None else percent(FULL - weight),
        vpa_weight=before.vpa_weight if weight is None else percent(weight),
        override_scale_up_stabilization=bool(seen.pods.starving) or seen.legacy_override,
        last_blocked_scaling=tuple(_blocked(entry) for entry in judged.blocked),
        last_scaling=_last_scaling(seen, judged) if judged.applied else before.last_scaling,
        last_error=None,
        conditions=told,
        recommended=_recommended(seen, judged),
        axes=Axes(horizontal=judged.horizontal or seen.horizontal, vertical=judged.vertical or seen.vertical),
    )


def failed_status(status: HvpaStatus, operation: str, error: str, now: dt.datetime) -> HvpaStatus:
    """The old status with the error of a write that failed, also as `Ready=False/WriteFailed`; the same error again
    keeps its first time."""
    last = status.last_error
    if last is not None and (last.description, last.last_operation) == (error, operation):
        return status
    when = now.replace(microsecond=0)
    old = next((one for one in status.conditions if one.type == "Ready"), None)
    ready = StatusCondition(
        type="Ready",
        status="False",
        reason="WriteFailed",
        message=f"{operation}: {error}",
        last_transition_time=old.last_transition_time if old is not None and old.status == "False" else when,
        observed_generation=old.observed_generation if old is not None else None,
    )
    return status.model_copy(
        update={
            "last_error": LastError(description=error, last_update_time=when, last_operation=operation),
            "conditions": (ready, *(one for one in status.conditions if one.type != "Ready")),
        }
    )


def still_failing(status: HvpaStatus, before: HvpaStatus) -> HvpaStatus:
    """The next status while writes are to come that failed before: the error and `Ready` stay as they were told."""
    ready = {one.type: one for one in before.conditions if one.type == "Ready"}
    told = tuple(ready.get(one.type, one) for one in status.conditions)
    return status.model_copy(update={"last_error": before.last_error, "conditions": told})


def _policy(mode: str) -> StatusUpdatePolicy:
    return StatusUpdatePolicy(update_mode=mode)


def selector_text(selector: Selector) -> str:
    """A label selector as text, as the scale subresource wants it (`labels.Selector.String()` in apimachinery)."""
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for entry in sorted(selector.match_expressions or [], key=lambda one: one.key):
        values = ",".join(sorted(entry.values or []))
        text = {
            "In": f"{entry.key} in ({values})",
            "NotIn": f"{entry.key} notin ({values})",
            "Exists": entry.key,
            "DoesNotExist": f"!{entry.key}",
        }
        parts.append(text.get(entry.operator, entry.key))
    return ",".join(parts)


def _blocked(entry: Blocked) -> BlockedScaling:
    horizontal = entry.axis == "horizontal"
    recommendation = None
    if not horizontal and entry.container is not None and entry.resource is not None:
        target = ContainerTarget(
            container_name=entry.container, target={entry.resource: amount(entry, entry.wanted)}
        )
        recommendation = VpaScalingStatus(
            recommendation=VpaRecommendationStatus(container_recommendations=(target,))
        )
    return BlockedScaling(
        reason=entry.reason,
        axis=entry.axis,
        direction=entry.direction,
        container=entry.container,
        resource=entry.resource,
        current=amount(entry, entry.current),
        wanted=amount(entry, entry.wanted),
        until=entry.until,
        hpa_status=HpaScalingStatus(current_replicas=entry.current, desired_replicas=entry.wanted)
        if horizontal
        else None,
        vpa_status=recommendation,
    )


def _last_scaling(seen: Observation, judged: Judgement) -> LastScaling:
    assert seen.workload is not None
    targets = tuple(
        ContainerTarget(container_name=name, target=wire(judged.containers[name].requests))
        for name in sorted(judged.changed)
    )
    return LastScaling(
        last_scale_time=seen.now.replace(microsecond=0),
        hpa_status=HpaScalingStatus(
            current_replicas=seen.workload.spec.replicas, desired_replicas=judged.target
        ),
        vpa_status=VpaScalingStatus(recommendation=VpaRecommendationStatus(container_recommendations=targets))
        if targets
        else None,
    )


def _recommended(seen: Observation, judged: Judgement) -> Recommended:
    assert seen.workload is not None
    current = seen.workload.spec.replicas
    containers: Iterable[tuple[str, ContainerResources]] = (
        judged.recommended.items() if seen.vpa.configured else ()
    )
    return Recommended(
        replicas=current if judged.recommended_replicas is None else judged.recommended_replicas,
        containers=tuple(
            RecommendedContainer(name=name, requests=wire(one.requests), limits=wire(one.limits))
            for name, one in containers
        ),
    )
