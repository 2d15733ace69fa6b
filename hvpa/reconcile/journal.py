"""The log of an Hvpa's conditions: a line when one begins to need somebody to act, and a line when that ends.

Both follow from the status that was and the one that is written, so that nothing is repeated, also not after a restart.
"""

from __future__ import annotations

import structlog

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.report.remedies import advised, entered, left

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def log_transitions(before: HvpaStatus, after: HvpaStatus) -> None:
    """Log what changes with the status `after`, once it is written in place of `before`."""
    if after.conditions is before.conditions:
        return
    for was, now in left(before, after):
        log.info(
            f"{was.reason} is over: {now.type} is {now.status}, {now.reason}",
            condition=now.type,
            was=was.reason,
        )
    for one in entered(before, after):
        log.warning(
            f"{one.reason}: {advised(one.reason, one.message)}", condition=one.type, reason=one.reason
        )
