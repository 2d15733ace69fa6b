"""How much memory a container gets that ran out of it (DESIGN 6.4)."""

from __future__ import annotations

import datetime as dt

from hvpa.core.values.arithmetic import KILOBYTE, ceil_div, round_up
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource

OVERRIDE_EVERY = dt.timedelta(minutes=10)
"""The memory of a container that ran out of it is raised at most this often. Such a raise passes the gates of
`hvpa.core.gates.gates.OVERRIDDEN`, and waits for the others."""
FACTOR_PERCENT = 120
"""The raise where the VPA does not ask for more yet: by 20 percent (as VPA's OOM bump does)."""
LEAST = 100 * 1024 * 1024
"""The same, at least by 100Mi."""
CAP = 4
"""Without maxAllowed, the raise ends at this multiple of the VPA target."""


def enough_memory(item: ContainerResource, *, known: bool) -> int:
    """The memory request that a starving container should have.

    The VPA's target where that is above the request. Else a fifth more than the request, at least 100Mi more, within
    `maxAllowed` or four times the target; but only where the pods show that this container starves (`known`), not where
    an older status merely says that some container does.
    """
    if item.target > item.current or not known:
        return item.blended(FULL)
    raised = max(ceil_div(item.current * FACTOR_PERCENT, 100), item.current + LEAST)
    raised = round_up(raised, KILOBYTE)
    if item.bounds.upper is None:
        raised = min(raised, CAP * item.target)
    return item.bounds.clamp(raised)
