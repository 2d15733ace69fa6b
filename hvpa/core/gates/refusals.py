"""What the API server refused: until when it is not sent again, so that the other axis need not wait for it (DESIGN 8).

The record (`Refusal`) stands in the status alone, not in the workload's annotation, which says only what was written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Set
from typing import Final

from msgspec import structs

from hvpa.api.hvpa.status import Refusal, RefusedChange
from hvpa.api.values import text
from hvpa.core.model import Axis, Decision, Observation
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import RESOURCES, present_resources, request_now

FIRST_WAIT: Final = dt.timedelta(minutes=1)
"""A VPA recommender speaks once a minute: before that, the same is wanted as was refused."""
LONGEST_WAIT: Final = dt.timedelta(hours=1)
"""As for what is contested."""
FORGOTTEN: Final = 2 * LONGEST_WAIT
"""What is refused later than this after the last time is refused for the first time again."""
MESSAGE_LENGTH: Final = 1024
"""Characters of the API server's message that are kept (webhooks can answer with whole pages)."""


def refused_until(
    record: Refusal | None, clock: Clock, current: int, wanted: int, key: ResourceKey | None = None
) -> dt.datetime | None:
    """When a change of the replicas, or of the container's resource `key`, is tried again; None where it is not one
    that was refused. From 1 core, 3 cores were refused: then 3.1 cores wait as well, and 2 cores go at once."""
    if record is None or not any(_is_like(one, current, wanted, key) for one in record.changes):
        return None
    return clock.held_until(record.time, wait_of(record.count))


def wait_of(count: int) -> dt.timedelta:
    """How long the axis waits after the `count`-th refusal in a row: a minute, doubling, an hour at most."""
    return min(LONGEST_WAIT, FIRST_WAIT * (1 << min(max(count - 1, 0), 10)))


def _is_like(refused: RefusedChange, current: int, wanted: int, key: ResourceKey | None) -> bool:
    """Whether a change is the refused one: from the same value, in the same direction, and no nearer to it than nine
    tenths. Recommendations move a little all the time, and that makes no other change of them."""
    if _key(refused) != key or refused.current != current:
        return False
    was, now = refused.wanted - current, wanted - current
    return (was > 0) == (now > 0) and abs(now) * 10 > abs(was) * 9


def _key(one: RefusedChange) -> ResourceKey | None:
    if one.container is None:
        return None
    return ResourceKey(one.container, "cpu" if one.resource == "cpu" else "memory")


def without_written(record: Refusal | None, written: Set[ResourceKey]) -> Refusal | None:
    """The record once these requests were written; None where nothing is left of it."""
    kept = () if record is None else tuple(one for one in record.changes if _key(one) not in written)
    return record.model_copy(update={"changes": kept}) if record is not None and kept else None


def with_refusal(seen: Observation, decision: Decision, axis: Axis, message: str) -> Observation:
    """The observation with the record of what the API server has just refused: what the patch of `decision` changes on
    this axis. Decided anew, that is held back, and whatever else is wanted goes on."""
    record = (seen.horizontal if axis == "horizontal" else seen.vertical).refused
    changes = _replicas(seen, decision) if axis == "horizontal" else _requests(seen, decision)
    count = 1
    if record is not None and seen.now - record.time < FORGOTTEN:
        count = record.count + 1
        keys = {_key(one) for one in changes}
        if seen.now < record.time + wait_of(record.count):
            changes += tuple(one for one in record.changes if _key(one) not in keys)
    found = Refusal(
        count=count, time=seen.now, message=text.one_line(message, MESSAGE_LENGTH), changes=changes
    )
    if axis == "horizontal":
        return structs.replace(seen, horizontal=seen.horizontal.model_copy(update={"refused": found}))
    return structs.replace(seen, vertical=seen.vertical.model_copy(update={"refused": found}))


def _replicas(seen: Observation, decision: Decision) -> tuple[RefusedChange, ...]:
    assert decision.replicas is not None
    return (RefusedChange(current=decision.replicas.current, wanted=decision.replicas.target),)


def _requests(seen: Observation, decision: Decision) -> tuple[RefusedChange, ...]:
    """The requests that the decision changes."""
    assert seen.workload is not None
    found = []
    for name, before in present_resources(seen.workload.spec.template.spec.containers).items():
        after = decision.containers[name].requests
        for resource in RESOURCES:
            current = request_now(before, ResourceKey(name, resource), seen.pods)
            wanted = after.get(resource, current)
            if wanted != current:
                one = RefusedChange(container=name, resource=resource, current=current, wanted=wanted)
                found.append(one)
    return tuple(found)
