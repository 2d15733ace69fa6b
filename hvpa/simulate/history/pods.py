"""What pods that run now show of the past."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

from hvpa.api.objects.read_models import Pod, condition

_LONGEST_START: Final = 900.0
"""Seconds: a pod that became ready later after its start than that was not starting all the time."""


def start_up(pods: Iterable[Pod]) -> float | None:
    """The median of the seconds from a pod's start until it was ready, of pods that never restarted; None where no pod
    shows it."""
    found = []
    for pod in pods:
        ready = condition(pod.status.conditions, "Ready")
        restarts = sum(status.restart_count for status in pod.status.container_statuses)
        if pod.status.start_time is None or ready is None or ready.status != "True" or restarts:
            continue
        if ready.last_transition_time is not None:
            took = (ready.last_transition_time - pod.status.start_time).total_seconds()
            found += [took] if 0 <= took <= _LONGEST_START else []
    return statistics.median(found) if found else None
