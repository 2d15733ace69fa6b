"""Pods that can't run: unschedulable pods, and pods with a container that can't start."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from msgspec import structs

from hvpa.api.objects.read_models import ContainerStatus, Pod, condition
from hvpa.api.values import text
from hvpa.core.model import StuckPods
from hvpa.core.values.clock import after

UNSCHEDULABLE: Final = "Unschedulable"
"""The scheduler's reason of `PodScheduled=False` if no node fits (`PodReasonUnschedulable` in core/v1)."""
CRASH_LOOP: Final = "CrashLoopBackOff"
IMAGE: Final = "ImagePullBackOff"
_SAME: Final = {"ErrImagePull": IMAGE}
"""The kubelet alternates between these two during its attempts (pkg/kubelet/images/types.go)."""
STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""The kubelet's reasons of a container that is about to start (pkg/kubelet/kubelet_pods.go)."""
MOST_REASONS: Final = 5
"""Maximum number of reasons to keep; a reason may be any text."""
FEW_RESTARTS: Final = 3
"""A container that ended less often may not end again."""
STUCK_AFTER: Final = dt.timedelta(seconds=30)
"""Shorter waits may be for a new node or for the registry's next response. A pod that has been ready for less may be
between two restarts of a container that is ready as soon as it runs."""
CALM_AFTER: Final = dt.timedelta(minutes=10)
"""A container that ran for this long is no longer in a crash loop: the kubelet resets its back-off then (twice
`MaxContainerBackOff`, 5 minutes, in pkg/kubelet/kubelet.go)."""
LONGEST: Final = 512
"""Maximum length of the scheduler's or the kubelet's message."""


def stuck_pods(pods: Iterable[Pod]) -> tuple[StuckPods, ...]:
    """Returns the pods that can't run, by reason. The result does not depend on the order of `pods`."""
    by_reason: dict[str, StuckPods] = {}
    for stuck in filter(None, map(_stuck_pod, pods)):
        known = by_reason.get(stuck.reason)
        by_reason[stuck.reason] = stuck if known is None else _merged(known, stuck)
    return tuple([by_reason[reason] for reason in sorted(by_reason)[:MOST_REASONS]])


def is_starting(reason: str) -> bool:
    """Whether a waiting container's reason is normal during a start."""
    return reason in STARTING


def _merged(known: StuckPods, other: StuckPods) -> StuckPods:
    first = min(known, other, key=lambda stuck: stuck.pod)
    since = min((stuck.since for stuck in (known, other) if stuck.since is not None), default=None)
    until = max((stuck.until for stuck in (known, other) if stuck.until is not None), default=None)
    return structs.replace(first, count=known.count + other.count, since=since, until=until)


def _stuck_pod(pod: Pod) -> StuckPods | None:
    """Returns why this pod can't run; None if it can, or has ended."""
    status = pod.status
    if pod.metadata.deletion_timestamp is not None or status.phase in ("Failed", "Succeeded"):
        return None
    scheduled = condition(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        since = _later(scheduled.last_transition_time or pod.metadata.creation_timestamp)
        reason, message = (
            text.reason(scheduled.reason, UNSCHEDULABLE),
            text.one_line(scheduled.message, LONGEST),
        )
        return StuckPods(reason, pod.metadata.name, message, since=since)
    containers = (*status.init_container_statuses, *status.container_statuses)
    return next(
        (
            problem
            for container in containers
            if (problem := _waiting_container(pod, container) or _crashing_container(pod, container))
        ),
        None,
    )


def _later(since: dt.datetime | None) -> dt.datetime | None:
    return None if since is None else after(since, STUCK_AFTER)


def _waiting_container(pod: Pod, container: ContainerStatus) -> StuckPods | None:
    """Returns a container that can't start."""
    waiting = container.state.waiting
    if waiting is None or is_starting(waiting.reason) or waiting.reason == CRASH_LOOP:
        return None
    reason = _SAME.get(waiting.reason, text.reason(waiting.reason, "Waiting"))
    message = "" if reason == IMAGE else text.one_line(waiting.message, LONGEST)
    what = f"container {container.name}: {message}" if message else f"container {container.name}"
    return StuckPods(reason, pod.metadata.name, what, since=_later(pod.metadata.creation_timestamp))


def _crashing_container(pod: Pod, container: ContainerStatus) -> StuckPods | None:
    """Returns a container that ends again and again. It also counts while it runs between two ends; otherwise the state
    would alternate."""
    ended = container.last_state.terminated or container.state.terminated
    if container.restart_count < FEW_RESTARTS or ended is None:
        return None
    waiting = container.state.waiting
    is_waiting = waiting is not None and waiting.reason == CRASH_LOOP
    if ended.finished_at is None and not is_waiting:
        return None
    until = None if ended.finished_at is None or is_waiting else _calm_at(pod, ended.finished_at)
    why = f" ended with {text.reason(ended.reason, 'Error')}" if ended.reason else ""
    return StuckPods(CRASH_LOOP, pod.metadata.name, f"container {container.name}{why}", until=until)


def _calm_at(pod: Pod, ended: dt.datetime) -> dt.datetime:
    """Returns when a container that ended at this time and runs again leaves its crash loop: once its pod has been
    ready for STUCK_AFTER, at the latest after CALM_AFTER. Example: it ended at 10:00:00 and the pod has been ready
    since 10:00:20: 10:00:50."""
    ready = condition(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return after(ended, CALM_AFTER)
    return after(max(ended, ready.last_transition_time or ended), STUCK_AFTER)
