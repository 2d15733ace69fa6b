"""The start-up time of pods that run now."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

from hvpa.api.objects.read_models import Pod, condition

_LONGEST_START: Final = 900.0
"""Maximum start-up in seconds: a pod that became ready later had other reasons not to be ready."""


def start_up(pods: Iterable[Pod]) -> float | None:
    """The median time in seconds from a pod's start until it was ready, over pods that never restarted; None if there
    is no such pod."""
    durations = []
    for pod in pods:
        ready = condition(pod.status.conditions, "Ready")
        restarts = sum(status.restart_count for status in pod.status.container_statuses)
        if pod.status.start_time is None or ready is None or ready.status != "True" or restarts:
            continue
        if ready.last_transition_time is not None:
            took = (ready.last_transition_time - pod.status.start_time).total_seconds()
            durations += [took] if 0 <= took <= _LONGEST_START else []
    return statistics.median(durations) if durations else None
