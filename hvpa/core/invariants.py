"""Invariants of joint decisions, checked by code that is independent of the decision (DESIGN 5.4). A decision that
breaks an invariant is a defect of HVPA, whatever its input.

The operator checks them with `--check-invariants`, the simulator always. Tests check the invariants that span several
decisions: no writes at constant load, no scale-in that is reverted, and the order of lists has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, cast

from hvpa.core.model import Decision, Observation, PodShape
from hvpa.core.path.path import Sizes
from hvpa.core.recommenders.desired_replicas import metered
from hvpa.core.trajectory.demand import MetricRequirement, serves
from hvpa.core.trajectory.solve import Joint
from hvpa.core.trajectory.view import SolutionView
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource

CAPACITY: Final = "capacity"
"""No decision removes capacity that the present demand needs."""
UNMEASURED: Final = "unmeasured"
"""No metric sizes a resource that it does not measure."""
UNEXPLAINED: Final = "unexplained"
"""The status gives a reason for each difference from the recommendation."""
INVARIANTS: Final = (CAPACITY, UNMEASURED, UNEXPLAINED)


class Violation(NamedTuple):
    """An invariant that a decision breaks, and how."""

    invariant: str
    what: str


def violations(observation: Observation, decision: Decision) -> tuple[Violation, ...]:
    """Return the invariants that a decision breaks; empty if it is not a joint decision."""
    if decision.joint is None or observation.workload is None:
        return ()
    joint = cast(SolutionView, decision.joint).joint
    broken = [Violation(CAPACITY, what) for what in _too_small(observation, decision, joint)]
    broken += [Violation(UNMEASURED, what) for what in _sized_by_others(observation, decision, joint)]
    broken += [Violation(UNEXPLAINED, what) for what in _without_reason(observation, decision)]
    return tuple(broken)


# --- capacity --------------------------------------------------------------------------------------------------------
def _too_small(observation: Observation, decision: Decision, joint: Joint) -> Iterator[str]:
    """Yield the metrics whose demand the pods no longer serve after the decision. It assumes that the largest pods are
    removed first."""
    view = decision.replicas
    if view is None or not joint.path.counts.contains(view.current):
        return  # HVPA brings a count above maxReplicas back inside the bounds
    now, then = joint.current, {item.key: _request(decision, item) for item in joint.items}
    lately = joint.recent or joint.required or ()  # in place, the mean of a minute counts
    for requirement, late in zip(joint.required or (), lately, strict=True):
        if not requirement.keys:
            continue
        before = _served(requirement, observation.pods.shapes, view.current, now, now, joint)
        after = _served(requirement, observation.pods.shapes, view.target, now, then, joint)
        least = min(before, requirement.tolerated().required, late.tolerated().required)
        if after < least:
            yield f"{requirement.label}: {after} of {least} served by {view.target} pods"


def _served(
    requirement: MetricRequirement,
    shapes: tuple[PodShape, ...],
    count: int,
    now: Sizes,
    then: Sizes,
    joint: Joint,
) -> int:
    """Return the part of a requirement that the `count` smallest pods serve, once their requests are at most `then` (in
    place: equal to `then`)."""
    served = []
    for shape in shapes:
        have = {
            key: shape.sizes.get(key.container, {}).get(key.resource, now[key]) for key in requirement.keys
        }
        if not shape.refuses:
            have = {key: then[key] if joint.in_place else min(size, then[key]) for key, size in have.items()}
        served += [serves(requirement, have, joint.requests)] * shape.count
    if not joint.in_place:  # a rollout replaces pods by pods that are ready
        served += [serves(requirement, then, joint.requests)] * max(0, count - len(served))
    return sum(sorted(served)[:count])


# --- sizes -----------------------------------------------------------------------------------------------------------
def _sized_by_others(observation: Observation, decision: Decision, joint: Joint) -> Iterator[str]:
    """Yield requests that no metric measures, without the VPA's target, an OOM or the fast signal as an explanation.
    The fast signal raises a request by what the kubelets measure of this resource."""
    if not observation.hpa.configured or observation.hpa.object is None:
        return
    measured, axes = metered(observation.hpa.object), decision.status.axes
    raises = () if axes is None or axes.vertical is None else axes.vertical.fast_raises
    fast = {(raised.container, raised.resource, raised.request) for raised in raises}
    for item in (*joint.items, *joint.apart):
        key, size = item.key, _request(decision, item)
        by_metric = any(
            key.resource == resource and name in ("", key.container) for resource, name in measured
        )
        if by_metric or size == item.current or (key.resource == "memory" and size > item.current):
            continue
        if (*key, size) in fast:
            continue
        target = item.blended(FULL)
        if not min(item.current, target) <= size <= max(item.current, target):
            yield f"{key.container} {key.resource}: {size}, and the VPA's target is {target}"


def _request(decision: Decision, item: ContainerResource) -> int:
    """Return the request after the decision."""
    resources = decision.containers.get(item.container)
    return item.current if resources is None else resources.requests.get(item.resource, item.current)


# --- reasons ---------------------------------------------------------------------------------------------------------
def _without_reason(observation: Observation, decision: Decision) -> Iterator[str]:
    """Yield differences from the recommendation that the status does not explain. Replicas above the recommendation
    make up for sizes that are held back or that the pods do not have yet."""
    view, record = decision.replicas, decision.status.rolled_back
    failed = () if record is None or record == observation.status.rolled_back else record.changes
    held: set[tuple[str, str | None, str | None]] = {
        *[(blocked.axis, blocked.container, blocked.resource) for blocked in decision.blocked],
        *[("vertical", change.container, change.resource) for change in failed],
    }
    smaller = bool(failed) or any(
        blocked.axis == "vertical" and blocked.direction == "up" for blocked in decision.blocked
    )
    stands_in = smaller or bool(observation.pods.unlike) or bool(decision.patched) or bool(decision.resizes)
    if (
        view is not None
        and view.recommended != view.target
        and not (view.recommended < view.target and stands_in)
        and not any(axis == "horizontal" for axis, *_ in held)
    ):
        yield f"replicas: {view.target}, recommended are {view.recommended}"
    for name, recommended in decision.recommended.items():
        for resource, size in recommended.requests.items():
            resources = decision.containers.get(name)
            has = None if resources is None else resources.requests.get(resource)
            if has != size and ("vertical", name, resource) not in held:
                yield f"{name} {resource}: {has}, recommended is {size}"
