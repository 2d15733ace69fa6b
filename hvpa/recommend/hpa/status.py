"""The status that a sync leaves.

Source: `setConditionInList`, `removeCondition`, `setStatus` and `updateStatusIfNeeded` in horizontal.go.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from hvpa.api.objects.read_models import Condition, HpaStatusRead, Metric

Setting = tuple[str, str, str]
"""What a condition is set to: status, reason, message."""

SCALED_TO_ZERO: Final = "ScaledToZero"


class SyncReport:
    """What one sync gathers: conditions to set, by type; events; the metrics' entries, None where none was computed.

    Within a sync only the last setting of a condition counts: none of them changes its status twice.
    """

    __slots__ = ("conditions", "events", "metrics", "remove")

    def __init__(self) -> None:
        self.conditions: dict[str, Setting] = {}
        self.events: list[tuple[str, str, str]] = []
        self.metrics: list[Metric] | None = None
        self.remove = ""
        """A type of condition that goes away."""

    def warn(self, reason: str, message: str) -> None:
        """Add an event of type Warning."""
        self.events.append(("Warning", reason, message))

    def status(
        self, old: HpaStatusRead, current: int, desired: int, now: dt.datetime, rescaled: bool = False
    ) -> HpaStatusRead:
        """The next status; it is `old` itself where nothing differs, and then nothing is written."""
        now = now if now.microsecond == 0 else now.replace(microsecond=0)  # as times are written
        metrics = self.metrics
        if metrics == old.current_metrics or not (metrics or old.current_metrics):
            metrics = old.current_metrics
        conditions = self._conditions(old.conditions, now)
        if (
            not rescaled
            and conditions is old.conditions
            and metrics is old.current_metrics
            and current == old.current_replicas
            and desired == old.desired_replicas
        ):
            return old
        return HpaStatusRead(
            current_replicas=current,
            desired_replicas=desired,
            current_metrics=metrics,
            conditions=conditions,
            last_scale_time=now if rescaled else old.last_scale_time,
        )

    def _conditions(self, old: list[Condition] | None, now: dt.datetime) -> list[Condition] | None:
        """The conditions with what was set; new ones follow the old. A transition is a change of status alone."""
        settings = dict(self.conditions)
        result: list[Condition] = []
        changed = False
        for present in old or ():
            setting = settings.pop(present.type, None)
            if present.type == self.remove:
                changed = True
                continue
            if setting is not None and setting != (present.status, present.reason, present.message):
                since = present.last_transition_time if setting[0] == present.status else now
                present = Condition(present.type, *setting, last_transition_time=since)
                changed = True
            result.append(present)
        for kind, setting in settings.items():
            result.append(Condition(kind, *setting, last_transition_time=now))
            changed = True
        return result if changed else old
