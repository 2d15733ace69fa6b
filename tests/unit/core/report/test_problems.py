"""The problems of an Hvpa, from its status: what each alert is about."""

from __future__ import annotations

import pytest

from hvpa.api.hvpa.status import Axis, BlockedScaling, Direction, HvpaStatus, StatusCondition
from hvpa.core.report.problems import problems


def condition(kind: str, status: str, reason: str) -> HvpaStatus:
    return HvpaStatus(conditions=(StatusCondition(type=kind, status=status, reason=reason),))


def blocked(
    reason: str, axis: Axis, direction: Direction, resource: str | None = None, *, starving: bool = True
) -> HvpaStatus:
    entry = BlockedScaling(reason=reason, axis=axis, direction=direction, resource=resource)
    return HvpaStatus(override_scale_up_stabilization=starving, last_blocked_scaling=(entry,))


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (HvpaStatus(), set()),
        (condition("Ready", "True", "Reconciled"), set()),
        (condition("Ready", "True", "HeldBack"), set()),
        (condition("Ready", "True", "Saturated"), {("Saturated", "Saturated")}),
        (condition("Ready", "False", "Refused"), {("NotReady", "Refused")}),
        (condition("Ready", "False", "Contested"), set()),
        (condition("Ready", "False", "HpaInactive"), set()),
        (condition("HpaActive", "False", "NoMetrics"), {("RecommenderSilent", "NoMetrics")}),
        (condition("HpaActive", "False", "NoPods"), set()),
        (condition("HpaActive", "True", "Recommending"), set()),
        (
            condition("VpaActive", "False", "RecommendationStale"),
            {("RecommenderSilent", "RecommendationStale")},
        ),
        (condition("VpaActive", "False", "NotConfigured"), set()),
        (condition("Contested", "True", "SetBack"), {("Contested", "SetBack")}),
        (condition("Contested", "False", "NotContested"), set()),
        (condition("Paused", "True", "Paused"), set()),
        (blocked("UpdatePolicy", "vertical", "up", "memory"), {("Starving", "UpdatePolicy")}),
        (blocked("UpdatePolicy", "vertical", "up", "memory", starving=False), set()),
        (blocked("UpdatePolicy", "vertical", "up", "cpu"), set()),
        (blocked("MinChange", "vertical", "up", "memory"), set()),
        (blocked("OutOfMemory", "vertical", "down", "memory"), set()),
        (blocked("MinChange", "horizontal", "up"), set()),
        (blocked("RolledBack", "vertical", "up", "cpu", starving=False), {("RolledBack", "RolledBack")}),
        (
            blocked("RolledBack", "vertical", "up", "memory"),
            {("RolledBack", "RolledBack"), ("Starving", "RolledBack")},
        ),
    ],
)
def test_the_problems_of_a_status(status: HvpaStatus, found: set[tuple[str, str]]) -> None:
    assert problems(status) == found


@pytest.mark.parametrize(
    ("reason", "axis", "resource", "current", "wanted", "is_short"),
    [
        ("Paused", "vertical", "cpu", "500m", "600m", True),
        ("Paused", "vertical", "cpu", "500m", "599m", False),
        ("Paused", "vertical", "cpu", None, "1", True),
        ("Paused", "vertical", "cpu", None, None, False),
        ("Paused", "vertical", "cpu", "much", "more", False),
        ("Paused", "vertical", "memory", "1Gi", "2Gi", False),
        ("Paused", "horizontal", None, "5", "6", True),
        ("Paused", "horizontal", None, "10", "11", False),
        ("MinChange", "horizontal", None, "5", "9", False),
    ],
)
def test_paused_that_holds_much_more_cpu_or_replicas_is_a_shortage(
    reason: str, axis: Axis, resource: str | None, current: str | None, wanted: str | None, is_short: bool
) -> None:
    entry = BlockedScaling(
        reason=reason, axis=axis, direction="up", resource=resource, current=current, wanted=wanted
    )
    shortages = problems(HvpaStatus(last_blocked_scaling=(entry,)))
    assert shortages == ({("ShortOfCpu", "Paused")} if is_short else set())
    down = entry.model_copy(update={"direction": "down"})
    assert problems(HvpaStatus(last_blocked_scaling=(down,))) == set()


def test_what_only_a_recommendation_holds_back_is_no_problem() -> None:
    held = blocked("RolledBack", "vertical", "up", "memory")
    ready = condition("Ready", "True", "Recommend").conditions
    assert problems(held.model_copy(update={"conditions": ready})) == set()


def test_a_workload_that_was_scaled_to_zero_has_no_problem() -> None:
    ready = condition("Ready", "True", "ScaledToZero").conditions
    silent = condition("HpaActive", "False", "ScalingDisabled").conditions
    assert problems(HvpaStatus(conditions=silent)) == {("RecommenderSilent", "ScalingDisabled")}
    assert problems(HvpaStatus(conditions=(*ready, *silent))) == set()
