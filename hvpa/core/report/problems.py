"""What of an Hvpa's status a person should be alerted to, where it lasts: what the metric `hvpa_problem` shows, and so
what the alerts of `config/monitoring` are about."""

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
"""Which problems there are; `WriteFailed` is reported by the reconciler, since a status that can't be written doesn't
say so."""
_ELSEWHERE: Final = frozenset({CONTESTED, HPA_INACTIVE, VPA_INACTIVE})
"""Reasons of `Ready=False` that another problem stands for."""
SHORT: Final = Fraction(6, 5)
"""How much more CPU or replicas must be wanted to count as a shortage: twice the HPA's tolerance of a tenth."""
NO_FAULT: Final = frozenset({"NotConfigured", "NotReady", "NoPods"})
"""Reasons of HpaActive and VpaActive that are no fault of the recommender."""


def problems(status: HvpaStatus) -> frozenset[tuple[Problem, str]]:
    """The problems of an Hvpa, each with its reason: `("Starving", "UpdatePolicy")`. A workload of 0 replicas has none,
    and what mode Recommend holds back is none: the workload is scaled by others."""
    ready = next((one.reason for one in status.conditions if one.type == "Ready"), "")
    if ready == "ScaledToZero":
        return frozenset()
    found = {one for condition in status.conditions for one in _of_condition(condition)}
    if ready != "Recommend":
        found = found.union(*(_of_blocked(status, one) for one in status.last_blocked_scaling))
    return frozenset(found)


def _of_condition(one: StatusCondition) -> Iterator[tuple[Problem, str]]:
    if one.type == "Ready":
        if one.reason == SATURATED:
            yield "Saturated", one.reason
        if one.status == "False" and one.reason not in _ELSEWHERE:
            yield "NotReady", one.reason
    elif one.type in ("HpaActive", "VpaActive"):
        if one.status == "False" and one.reason not in NO_FAULT:
            yield "RecommenderSilent", one.reason
    elif one.type == "Contested" and one.status == "True":
        yield "Contested", one.reason


def _of_blocked(status: HvpaStatus, one: BlockedScaling) -> Iterator[tuple[Problem, str]]:
    """A size that was taken back; more memory that is held back while a container has too little, by a gate that
    the raise for it doesn't pass; and much more CPU or many more replicas while the Hvpa is paused."""
    if one.reason == ROLLED_BACK:
        yield "RolledBack", one.reason
    is_raise = (one.axis, one.direction, one.resource) == ("vertical", "up", "memory")
    if is_raise and one.reason not in OVERRIDDEN and status.override_scale_up_stabilization:
        yield "Starving", one.reason
    if one.reason == PAUSED and one.direction == "up" and _is_short_of_cpu(one):
        yield "ShortOfCpu", one.reason


def _is_short_of_cpu(one: BlockedScaling) -> bool:
    """Whether at least a fifth more CPU or replicas is wanted. Example: 500m -> 600m is, 500m -> 590m is not."""
    if one.axis == "vertical" and one.resource != "cpu":
        return False
    try:
        current, wanted = parse_quantity(one.current or "0"), parse_quantity(one.wanted or "0")
    except QuantityError:
        return False
    return wanted > 0 and wanted >= current * SHORT
