"""Lasting problems in an Hvpa's status that need a person's attention. The metric `hvpa_problem` shows them, and the
alerts of `config/monitoring` use it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, Literal

from hvpa.api.hvpa.status import BlockedScaling, HvpaStatus, StatusCondition
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.core.gates.gates import CONTESTED, OVERRIDDEN, PAUSED, ROLLED_BACK
from hvpa.core.report.conditions import HPA_INACTIVE, SATURATED, VPA_INACTIVE

Problem = Literal[
    "NotReady",
    "Saturated",
    "RecommenderSilent",
    "Contested",
    "Starving",
    "ShortOfCpu",
    "RolledBack",
    "WriteFailed",
]
"""The problems. The reconciler reports `WriteFailed`, since a status that can't be written can't report it."""
_ELSEWHERE: Final = frozenset({CONTESTED, HPA_INACTIVE, VPA_INACTIVE})
"""Reasons of `Ready=False` that another problem covers."""
SHORT: Final = Fraction(6, 5)
"""From this ratio of wanted to present CPU or replicas on there is a shortage: twice the HPA's tolerance of a tenth."""
NO_FAULT: Final = frozenset({"NotConfigured", "NotReady", "NoPods"})
"""Reasons of HpaActive and VpaActive that are not a fault of the recommender."""


def problems(status: HvpaStatus) -> frozenset[tuple[Problem, str]]:
    """Return the problems of an Hvpa, each with its reason: `("Starving", "UpdatePolicy")`. A workload with 0 replicas
    has no problems, and changes that mode Recommend holds back don't count: the workload is scaled by others."""
    ready = next((condition.reason for condition in status.conditions if condition.type == "Ready"), "")
    if ready == "ScaledToZero":
        return frozenset()
    reported = {problem for condition in status.conditions for problem in _of_condition(condition)}
    if ready != "Recommend":
        reported = reported.union(*(_of_blocked(status, blocked) for blocked in status.last_blocked_scaling))
    return frozenset(reported)


def _of_condition(condition: StatusCondition) -> Iterator[tuple[Problem, str]]:
    if condition.type == "Ready":
        if condition.reason == SATURATED:
            yield "Saturated", condition.reason
        if condition.status == "False" and condition.reason not in _ELSEWHERE:
            yield "NotReady", condition.reason
    elif condition.type in ("HpaActive", "VpaActive"):
        if condition.status == "False" and condition.reason not in NO_FAULT:
            yield "RecommenderSilent", condition.reason
    elif condition.type == "Contested" and condition.status == "True":
        yield "Contested", condition.reason


def _of_blocked(status: HvpaStatus, blocked: BlockedScaling) -> Iterator[tuple[Problem, str]]:
    """Yield the problem of a blocked change: a size that was rolled back; a memory raise that a gate still holds back
    after a container ran out of memory; or much more CPU or many more replicas while the Hvpa is paused."""
    if blocked.reason == ROLLED_BACK:
        yield "RolledBack", blocked.reason
    is_raise = (blocked.axis, blocked.direction, blocked.resource) == ("vertical", "up", "memory")
    if is_raise and blocked.reason not in OVERRIDDEN and status.override_scale_up_stabilization:
        yield "Starving", blocked.reason
    if blocked.reason == PAUSED and blocked.direction == "up" and _is_short_of_cpu(blocked):
        yield "ShortOfCpu", blocked.reason


def _is_short_of_cpu(blocked: BlockedScaling) -> bool:
    """Return whether at least a fifth more CPU or replicas are wanted. Example: true for 500m -> 600m, false for 500m
    -> 590m."""
    if blocked.axis == "vertical" and blocked.resource != "cpu":
        return False
    try:
        current, wanted = parse_quantity(blocked.current or "0"), parse_quantity(blocked.wanted or "0")
    except QuantityError:
        return False
    return wanted > 0 and wanted >= current * SHORT
