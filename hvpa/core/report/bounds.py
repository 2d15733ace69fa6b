"""Bounds that are below the demand, in words, for both strategies.

This module covers bounds of the user (maxReplicas, maxAllowed, limits, the pod template's own resources) and of the
recommender. A refusal by others is a gate (`Refused`, `RolledBack`) or a failure of the workload, each with its own
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hvpa.api.values.text import counted
from hvpa.core.model import JointView, ScalableState
from hvpa.core.report.parts import DecisionParts
from hvpa.core.report.summary import with_unit
from hvpa.core.values.arithmetic import two_digits
from hvpa.core.values.tuning import OOM_CAP
from hvpa.core.workload.containers import ContainerResource
from hvpa.core.workload.governed import cut_short, governed, recommended

RECOMMENDER: Final = "the VPA's recommender recommends at most"
"""Effect of the recommender's flags `--container-recommendation-max-allowed-cpu` and `-memory`."""


def bounds_reached(observation: ScalableState, decided: DecisionParts) -> Iterator[str]:
    """Yield the bounds that replicas and requests have reached although demand is higher."""
    joint = decided.axes.joint
    if joint is not None:
        yield from saturation(joint)
    elif (
        decided.axes.desired.beyond_max
        and decided.axes.upper is not None
        and decided.axes.target >= decided.axes.upper
    ):
        yield f"the HPA recommends more replicas than maxReplicas, {decided.axes.upper}"
    if not observation.vpa.in_charge or observation.vpa.problem is not None:
        return
    yield from out_of_memory(observation)
    for item in recommended(observation):
        # A resource that no metric measures follows its target alone, as with `Additive`.
        is_alone = joint is None or item.key not in joint.path.curves
        if (is_alone and (text := _request_bound(item))) or (text := recommender_cap(item, joint)):
            yield text
    if (short := cut_short(observation, () if joint is None else joint.path.curves)) is not None:
        yield short.message


def saturation(view: JointView) -> tuple[str, ...]:
    """Return the demand that replicas and requests can't serve although both are at their maximum: the present demand,
    and the usual demand if no metric measures the resource. Amounts are rounded up to two digits, so that the text
    stays the same while demand moves a little."""
    usual = () if view.usual is None else view.usual.saturated
    if not view.wanted.saturated and not usual:
        return ()
    items, counts = {item.key: item for item in view.items}, view.path.counts
    unmeasured = [key for key in usual if items[key].present is None]
    short = dict.fromkeys((*view.wanted.saturated, *unmeasured))
    replicas = counts.upper or view.wanted.replicas
    most_of = "their current number" if counts.lower == counts.upper else "maxReplicas"
    messages = []
    for key in short:
        size_bounds, item = view.path.curves[key].size_bounds, items[key]
        size = size_bounds.upper or item.size
        most = replicas * size_bounds.reserve.work(size)
        needed = item.present if (item.present or 0) > most else item.usual
        amounts = (two_digits(max(needed or 0, most)), size, most)
        about, pod_size, together = [with_unit(key.resource, quantity) for quantity in amounts]
        messages.append(
            f"{key.container} {key.resource}: needs about {about}, but {counted(replicas)} ({most_of}) of {pod_size} "
            f"({item.bound}) serve{'s' if replicas == 1 else ''} {together}"
        )
    return tuple(messages)


def out_of_memory(observation: ScalableState) -> Iterator[str]:
    """Yield the containers that ran out of memory although they have all memory that a bound allows."""
    if not observation.pods.starving or not observation.vpa.in_charge or observation.vpa.problem is not None:
        return
    for item in governed(observation):
        if item.resource == "memory" and item.container in observation.pods.starving:
            bound = item.upper_bound
            most, name = (
                (OOM_CAP * item.target, f"{OOM_CAP} times the VPA's target") if bound is None else bound
            )
            if item.current >= most and item.blends_no_higher:
                have = with_unit("memory", item.current)
                yield f"{item.container} memory: ran out of {have}, and {name} allows no more"


def _request_bound(item: ContainerResource) -> str:
    """Return a message if a request has reached its bound and the VPA's target is not below it; otherwise empty. A
    target equal to maxAllowed may be cut there. The recommender does not consider limits."""
    bound, needed = item.upper_bound, item.beyond or item.target
    if bound is None or item.current < bound.size or needed < bound.size:
        return ""
    what, size = f"{item.container} {item.resource}", with_unit(item.resource, bound.size)
    if needed > bound.size:
        about = with_unit(item.resource, two_digits(needed))
        return f"{what}: needs about {about}, but {bound.name} is {size}"
    is_policy = bound.size == item.bounds.upper
    return f"{what}: the VPA's target reaches {bound.name}, {size}" if is_policy else ""


def recommender_cap(item: ContainerResource, joint: JointView | None) -> str:
    """Return a message if the recommender has cut a target and the request has reached it; otherwise empty. For a
    measured resource, replicas make up for it."""
    if item.beyond is None or item.current < item.target:
        return ""
    if joint is not None and any(
        measured.key == item.key and measured.present is not None for measured in joint.items
    ):
        return ""
    needed, most = with_unit(item.resource, item.beyond), with_unit(item.resource, item.target)
    return f"{item.container} {item.resource}: needs about {needed}, but {RECOMMENDER} {most}"
