"""What a decision waits for, in words: the rollout and its pods, the HPA's next measurement; and the recommendations
that the last steps were applied from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from hvpa.api.text import names
from hvpa.api.timestamp import format_timestamp
from hvpa.cli.words import when
from hvpa.core.gates import MEASUREMENT
from hvpa.core.horizontal import SETTLING
from hvpa.core.model import Decision, Observation
from hvpa.core.rollout import progress_deadline, rollout_gaps
from hvpa.core.state import held_until


def rollout(seen: Observation) -> Iterable[str]:
    """The last rollout: what it lacks, which pods are not ready, and until when it is waited for."""
    assert seen.workload is not None
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
        yield f"  no longer waited for: its progress deadline was {format_timestamp(deadline)}"


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
        f"{what} at {format_timestamp(at)}"
        for what, at in causes
        if at is not None and held_until(at, SETTLING, seen.now) is not None
    ]
    seconds = int(SETTLING.total_seconds())
    since = f": {', '.join(found)}" if found else ""
    yield f"next measurement: counts {seconds} seconds after the last change, with the rollout complete{since}"


def applied_from(seen: Observation) -> Iterable[str]:
    """What the last steps were made from: a recommendation that had its step has no second one."""
    replicas = seen.horizontal.spent
    if replicas is not None:
        rest = "" if replicas.goal is None else f", on the way to {replicas.goal}"
        yield (
            f"replicas: {replicas.replicas} applied from {replicas.wish} desired at weight {replicas.weight:g}"
            f"{_at(seen.horizontal.last_scale_time)}{rest}"
        )
    for one in seen.vertical.spent:
        small = "" if not one.small_steps else f", small step {one.small_steps} in a row"
        yield (
            f"{one.container} {one.resource}: {one.request} applied from target {one.target} at weight "
            f"{one.weight:g}{small}"
        )


def _at(instant: dt.datetime | None) -> str:
    return "" if instant is None else f", {format_timestamp(instant)}"
