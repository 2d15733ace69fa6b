"""Removal of Hvpas: how many a policy may remove within an hour."""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from hvpa.api.policy.resource import PolicyObject

WINDOW: Final = dt.timedelta(hours=1)
"""Time in which a policy may remove `rollout.maxRemovals` Hvpas of workloads that it no longer selects."""


class Window(NamedTuple):
    """The present hour in which removals are counted."""

    since: dt.datetime
    removed: int
    """Hvpas removed since then."""


def removal_window(policy: PolicyObject, uncounted: int, now: dt.datetime) -> Window:
    """Returns the hour of the policy's status if it is not over, else one that begins now. `uncounted` removals are
    those that the status does not have yet. An hour that begins later than now counts, unless it is far off: the clock
    of the operator before was ahead, or the clock was set back."""
    since, removed = policy.status.removed_since, policy.status.removed
    if since is None or abs(now - since) >= WINDOW:
        since, removed = now.replace(microsecond=0), 0
    return Window(since, removed + uncounted)
