"""What a decision waits for, in words: the rollout and its pods, the HPA's next measurement; and the recommendations
that the last steps were applied from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from hvpa.api.values.quantity import Resource, readable_resource
from hvpa.api.values.text import names
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.words import readable, when
from hvpa.core.gates.gates import MEASUREMENT
from hvpa.core.model import Decision, Observation
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.report.summary import rollout_text
from hvpa.core.state import held_until
from hvpa.core.workload.containers import amount, present_resources, recommendations
from hvpa.core.workload.rollout import progress_deadline, rollout_gaps


def rollout(seen: Observation, decision: Decision) -> Iterable[str]:
    """The last rollout: what holds it, what it lacks, which pods are not ready, and until when it is waited for."""
    assert seen.workload is not None
    if decision.status.rollout is not None:
        yield f"last {rollout_text(decision.status.rollout)}"
        return
    gaps = rollout_gaps(seen.workload)
    if not gaps:
        yield "last rollout: complete"
        return
    yield f"last rollout: not complete: {'; '.join(gaps)}"
    if seen.pods.unready:
        yield f"  not ready: {names(list(seen.pods.unready))}"
    deadline = progress_deadline(seen)
    if deadline is None:
        yield "  waited for until it is complete"
    elif deadline > seen.now:
        yield f"  waited for until its progress deadline {when(deadline, seen.now)}"
    else:
        yield f"  no longer waited for: its progress deadline was {readable_timestamp(deadline)}"


def measurement(seen: Observation, decision: Decision) -> Iterable[str]:
    """Why the HPA has yet to measure the workload as it is, where something waits for that."""
    if all(entry.reason != MEASUREMENT for entry in decision.blocked):
        return
    deadline = progress_deadline(seen) if seen.workload is not None and rollout_gaps(seen.workload) else None
    causes: tuple[tuple[str, dt.datetime | None], ...] = (
        ("replicas were changed", seen.horizontal.last_scale_time),
        ("requests were changed", seen.vertical.last_scale_time),
        ("a pod became ready", seen.pods.last_ready_at),
        ("the rollout passed its progress deadline", deadline if deadline and deadline <= seen.now else None),
    )
    found = [
        f"{what} at {readable_timestamp(at)}"
        for what, at in causes
        if at is not None and held_until(at, SETTLING, seen.now) is not None
    ]
    seconds = int(SETTLING.total_seconds())
    since = f": {', '.join(found)}" if found else ""
    yield f"next measurement: counts {seconds} seconds after the last change, with the rollout complete{since}"


def applied_from(seen: Observation) -> Iterable[str]:
    """What the last steps were made from: a recommendation that had its step has no second one."""
    replicas, is_path = seen.horizontal.applied_from, seen.spec is not None and seen.spec.joint
    if replicas is not None:
        rest = "" if replicas.goal is None else f", on the way to {replicas.goal}"
        yield (
            f"replicas: {replicas.replicas} applied when the HPA asked for {replicas.desired}"
            f"{'' if is_path else f', at weight {replicas.weight:g}'}{_at(seen.horizontal.last_scale_time)}{rest}"
        )
    for one in seen.vertical.applied_from:
        small = "" if not one.small_steps else f", small step {one.small_steps} in a row"
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        request, target = readable(resource, one.request), readable(resource, one.target)
        yield (
            f"{one.container} {one.resource}: {request} applied, the size on the path{small}"
            if is_path
            else f"{one.container} {one.resource}: {request} applied from target {target} at weight "
            f"{one.weight:g}{small}"
        )


def had_their_step(seen: Observation, decision: Decision) -> Iterable[str]:
    """Requests whose recommendation has had its step, so that they stay although they differ from it (`Additive`)."""
    if seen.workload is None or seen.vpa.object is None or seen.vpa.problem is not None:
        return
    moving = {(one.container, one.resource) for one in decision.blocked}
    present = present_resources(seen.workload.spec.template.spec.containers)
    targets = recommendations(seen.vpa.object)
    for one in seen.vertical.applied_from:
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        now = present[one.container].requests.get(resource) if one.container in present else None
        after = decision.containers.get(one.container)
        target = amount(targets[one.container].target, resource) if one.container in targets else None
        stays = after is not None and after.requests.get(resource) == now
        if now is None or target in (None, now) or not stays or (one.container, resource) in moving:
            continue
        yield (
            f"{one.container} {resource}: {readable_resource(resource, now)} now, "
            f"{readable_resource(resource, target)} recommended; this recommendation had its step at weight "
            f"{one.weight:g}{_at(seen.vertical.last_scale_time)}, the next one is due when it moves by minChange"
        )


def _at(instant: dt.datetime | None) -> str:
    return "" if instant is None else f", {readable_timestamp(instant)}"
