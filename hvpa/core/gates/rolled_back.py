"""Sizes that failed on the pods that they were tried on: until when they are not tried again (DESIGN 11.5)."""

from __future__ import annotations

import datetime as dt
from typing import Final

from hvpa.api.hvpa.status import RolledBack
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock, after

FIRST_WAIT: Final = dt.timedelta(days=1)
LONGEST_WAIT: Final = 16 * FIRST_WAIT


def rolled_back_until(
    record: RolledBack | None, clock: Clock, wanted: int, key: ResourceKey
) -> dt.datetime | None:
    """When a request of this size is tried again; None where it is not one that failed, or worse than that.

    Example: 600m failed after 1 core. Up to 640m wait (a tenth of the way back), 650m do not.
    """
    if record is None:
        return None
    for one in record.changes:
        way, back = one.failed - one.previous, wanted - one.previous
        if (
            (one.container, one.resource) == key
            and (way > 0) == (back > 0)
            and abs(back) * 10 >= abs(way) * 9
        ):
            return clock.held_until(record.time, wait_of(record.count))
    return None


def count_after(record: RolledBack | None, clock: Clock) -> int:
    """How often in a row a size has failed, with one that fails now. One that fails later than twice the wait is the
    first again."""
    if record is None or clock.is_past(after(record.time, 2 * wait_of(record.count))):
        return 1
    return record.count + 1


def wait_of(count: int) -> dt.timedelta:
    """How long a size is not tried again that has failed so often: a day, doubling, 16 days at most."""
    return min(LONGEST_WAIT, FIRST_WAIT * (1 << min(max(count - 1, 0), 10)))
