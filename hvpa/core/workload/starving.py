"""Containers that ran out of memory: OOMKilled, ended because their heap was full, or in a pod that was evicted because
its node was low on memory (DESIGN 6.4)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from operator import is_
from typing import Final

from msgspec import structs

from hvpa.api.hvpa.status import VerticalAxis
from hvpa.api.objects.read_models import Container, ContainerStatus, Pod, Quantity, Resources
from hvpa.api.values.quantity import MEMORY
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.memo import remembered
from hvpa.core.values.tuning import RAISED_WITHIN, STARVES_FOR
from hvpa.core.workload.containers import amount_of, reported

OOM_KILLED: Final = "OOMKilled"
EVICTED: Final = "Evicted"
_LOW_ON_MEMORY: Final = re.compile(r"low on resource: \[?memory", re.IGNORECASE)
"""The kubelet's eviction message (pkg/kubelet/eviction/helpers.go): `The node was low on resource: memory.`"""
_EVICTED_CONTAINER: Final = re.compile(r"Container (\S+) was using")
"""The message continues with the names of the containers above their request."""

_Memory = tuple[Quantity | None, Quantity | None]


def with_full_heaps(pods: tuple[Pod, ...], exits: Mapping[str, Set[int]]) -> tuple[Pod, ...]:
    """Returns pods in which a container counts as OOMKilled if it ended with one of its exit codes for a full heap
    (`full_heap_exits`): it needs more memory, as after an OOM. Without a limit, its heap is a share of the node's
    memory, which no request enlarges."""
    return tuple([_with_full_heaps(pod, exits) for pod in pods]) if exits else pods


@remembered
def _with_full_heaps(pod: Pod, exits: Mapping[str, Set[int]]) -> Pod:
    whole = {} if pod.spec.resources is None else pod.spec.resources.limits
    limited = {one.name for one in pod.spec.containers if MEMORY in one.resources.limits or MEMORY in whole}

    def counted(status: ContainerStatus) -> ContainerStatus:
        codes = exits.get(status.name, ()) if status.name in limited else ()
        for state, name in ((status.last_state, "last_state"), (status.state, "state")):
            end = state.terminated
            if end is not None and end.exit_code in codes:
                killed = structs.replace(state, terminated=structs.replace(end, reason=OOM_KILLED))
                status = structs.replace(status, **{name: killed})
        return status

    before = pod.status.container_statuses
    statuses = [counted(status) for status in before]
    if all(map(is_, statuses, before)):
        return pod  # results for the same pod are cached
    return structs.replace(pod, status=structs.replace(pod.status, container_statuses=statuses))


def starving_containers(
    clock: Clock, pods: Iterable[Pod], template: Sequence[Container], since: Mapping[str, dt.datetime]
) -> dict[str, dt.datetime]:
    """Returns the template's containers that ran out of memory within the last day in one of these pods, with the time
    of the last OOM or eviction. Only containers with at least the template's memory count, and only times after
    `since`, the container's last raise."""
    wanted = {container.name: _memory(container.resources) for container in template}
    suffices = cache(_suffices)  # many containers are equal
    times: dict[str, dt.datetime] = {}
    is_recent = cache(lambda when: clock.held_until(when, STARVES_FOR) is not None)
    for pod in pods:
        for name, when in _out_of_memory_times(pod, wanted, suffices):
            if (name not in since or when > since[name]) and is_recent(when):
                times[name] = max(when, times.get(name, when))
    return times


def raised_at(
    clock: Clock, axis: VerticalAxis, containers: Sequence[Container], *, in_place: bool
) -> dict[str, dt.datetime]:
    """Returns, by container, when a request was last raised, so that an earlier OOM does not count again. Times from a
    wrong clock are ignored: otherwise no container would count as starving until then."""
    up, times = axis.last_scale_up_time, dict[str, dt.datetime]()
    if up is not None and not clock.is_ahead(up):
        times = dict.fromkeys([container.name for container in containers], up)
    for raised in axis.fast_raises:
        if raised.resource == "memory" and not clock.is_ahead(raised.time):
            times[raised.container] = max(raised.time, times.get(raised.container, raised.time))
    for override in axis.overrides if in_place else ():
        if not clock.is_ahead(override.time):
            settled = after(override.time, RAISED_WITHIN)
            times[override.container] = max(settled, times.get(override.container, settled))
    return times


def _out_of_memory_times(
    pod: Pod, wanted: Mapping[str, _Memory], suffices: Callable[[_Memory, _Memory], bool]
) -> Iterable[tuple[str, dt.datetime]]:
    """Yields the containers of this pod that ran out of memory with at least the wanted memory, and when."""
    times: dict[str, dt.datetime | None] = {}
    started = pod.status.start_time or pod.metadata.creation_timestamp
    for container_status in pod.status.container_statuses:
        for end in (container_status.last_state.terminated, container_status.state.terminated):
            if end is not None and end.reason == OOM_KILLED:
                times[container_status.name] = end.finished_at or started
    status = pod.status
    is_evicted = status.phase == "Failed" and status.reason == EVICTED
    if is_evicted and _LOW_ON_MEMORY.search(status.message) is not None:
        named = [name for name in _EVICTED_CONTAINER.findall(status.message) if name in wanted]
        for name in named or wanted:
            times.setdefault(name, _ended_at(pod) or started)
    if not times:
        return
    have = reported(pod)
    for name, when in times.items():
        if (
            name in wanted
            and name in have
            and when is not None
            and suffices(_memory(have[name]), wanted[name])
        ):
            yield name, when


def _ended_at(pod: Pod) -> dt.datetime | None:
    """Returns when an evicted pod ended: its last condition change or container end."""
    changed = [entry.last_transition_time for entry in pod.status.conditions]
    ended = [status.state.terminated for status in pod.status.container_statuses]
    times = [*changed, *(end.finished_at for end in ended if end is not None)]
    return max((when for when in times if when is not None), default=None)


def _memory(resources: Resources) -> _Memory:
    """Returns request and limit of memory as text. A missing request equals the limit, as in Kubernetes."""
    limit = resources.limits.get(MEMORY)
    return resources.requests.get(MEMORY, limit), limit


def _suffices(have: _Memory, wanted: _Memory) -> bool:
    """Whether a container has at least the wanted memory; a missing limit exceeds any limit. Example: killed at 800M
    while its limit falls to 600M in steps."""
    request, limit, least, least_limit = (amount_of(MEMORY, quantity) for quantity in (*have, *wanted))
    return (least is None or (request is not None and request >= least)) and (
        least_limit is None or limit is None or limit >= least_limit
    )
