"""The raise by the fast signal (`spec.fastSignal`): if the kubelets report that pods use more than they have, their
containers get more at once, up to twice as much. A later decision from a measurement confirms that or takes it back;
memory is kept as after an OOM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hvpa.api.objects.read_models import Pod, condition
from hvpa.api.values.quantity import readable_resource
from hvpa.core.model import PodUsage, ScalableState
from hvpa.core.state import last_raise
from hvpa.core.values.arithmetic import after_oom, ceil_div
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import (
    FAST_AGAIN,
    FAST_COUNTS,
    FAST_FACTOR,
    FAST_KNOWN,
    FAST_LASTS,
    FAST_LEAST,
    FAST_PERCENT,
    OOM_CAP,
)
from hvpa.core.workload.containers import ContainerResource
from hvpa.core.workload.rollout import METRIC_WINDOW, is_living
from hvpa.core.workload.stuck import UNSCHEDULABLE


class Need(NamedTuple):
    """What pods need by the kubelets' report."""

    request: int
    usage: int
    """The usage that calls for it: the mean of the CPU, or the largest memory."""
    of: int
    """What it is compared with: the present request of CPU, or the present limit of memory."""
    text: str


class FastRaises:
    """The raises that the kubelets' newest samples call for."""

    def __init__(self, observation: ScalableState, clock: Clock) -> None:
        self._above = observation.spec.fast_signal.above
        self._raises = {
            (known.container, known.resource): known
            for known in observation.vertical.fast_raises
            if clock.held_until(known.time, FAST_AGAIN) is not None
        }
        self._clock = clock
        self._polls = observation.spec.polls_kubelets
        self._since: dt.datetime | None = None
        """Only samples that arrived later count for a raise; None: there is none now."""
        self._pods: list[Pod] = []
        self._of: Mapping[tuple[str, str], PodUsage] = {}
        self._are_silent = False
        """No kubelet of the pods has answered for ten minutes."""
        if not self._polls:
            return
        pods = [pod for pod in observation.resizable if is_living(pod)]
        self._pods = [
            pod for pod in pods if _is(pod, "Ready") and not self._has_just_started(pod, observation)
        ]
        if (usage := observation.usage) is None:
            return
        self._of = usage.of
        shown = observation.status.fast_signal
        times = (usage.time, None if shown is None else shown.last_sample_time)
        are_old = all(clock.held_until(time, FAST_AGAIN) is None for time in times)
        self._are_silent = are_old and len(usage.silent) == usage.nodes
        if usage.time is None or clock.held_until(usage.time, FAST_COUNTS) is None:
            return
        waits = any(stuck.reason == UNSCHEDULABLE for stuck in observation.pods.stuck)
        if not waits and not any(_is(pod, "PodResizePending") for pod in pods):  # the nodes have room
            # An earlier sample may be of pods before their last raise.
            begins = (usage.time - FAST_COUNTS, last_raise(observation.vertical))
            self._since = max(time for time in begins if time is not None and not clock.is_ahead(time))

    def _has_just_started(self, pod: Pod, observation: ScalableState) -> bool:
        """Whether samples of the pod may be from its start, and containers have more CPU for that."""
        ready, boosts = condition(pod.status.conditions, "Ready"), observation.spec.startup_boost
        if not boosts or ready is None:
            return False
        longest = max(boost.after for boost in boosts)
        return self._clock.held_until(ready.last_transition_time, longest + METRIC_WINDOW) is not None

    def need(self, item: ContainerResource, target: int) -> Need | None:
        """Returns what pods need now; None if they need no more than they have. `target` is the VPA's own.

        For ten minutes after a raise, a usage that its size serves calls for no other: the next decision may have taken
        that size back because the usage fits a smaller one.
        """
        if self._since is None or item.request is None or item.at_start or self._restarts(item):
            return None
        need = self._cpu(item) if item.resource == "cpu" else self._memory(item, target)
        if need is None or need.request <= item.current:
            return None
        known = self._raises.get((item.container, item.resource))
        served = need.of * (known.request if known is not None else 0)  # by that size, with its limit
        return need if need.usage * item.current * 100 > served * self._above else None

    def still_needed(self, item: ContainerResource, usual: int) -> Need | None:
        """Returns what is still needed of a CPU request that the fast signal has raised; None if the `usual` request
        serves the pods' usage.

        It is the usage of a whole minute after the raise that counts, so that a single low measurement ends nothing.
        What is needed is the size of which that usage is 70 percent; all of the raise, if that is less than a fifth
        smaller. If the usage of most pods is not known, the raise stays, unless the kubelets have been silent for ten
        minutes.
        """
        current, clock, raised = item.current, self._clock, self._raises.get(item.key)
        if not self._polls or usual >= current:
            return None
        used = [
            usage.lasting_cpu
            for usage in self._known(item.container)
            if usage.lasting_cpu is not None
            and usage.cpu_time is not None
            and clock.held_until(usage.cpu_time, FAST_KNOWN) is not None
        ]
        is_new = raised is not None and clock.held_until(raised.time, FAST_LASTS) is not None
        if is_new or not used or len(used) * 2 < len(self._pods):
            if self._are_silent and raised is None:
                return None
            return Need(item.bounds.clamp(current), 0, current, "its usage since then is not known yet")
        mean = ceil_div(sum(used), len(used))
        if mean * 100 <= usual * self._above:
            return None
        text = f"the kubelets report {readable_resource('cpu', mean)}"
        least = max(usual, min(current, ceil_div(mean * 100, FAST_PERCENT)))
        if least * 100 > current * FAST_LEAST:
            least = current
        return Need(item.bounds.clamp(least), mean, current, text)

    def _restarts(self, item: ContainerResource) -> bool:
        """Whether a resize of this resource would restart containers that are at their limit."""
        return any(
            container.restarts_for(item.resource)
            for pod in self._pods
            for container in pod.spec.containers
            if container.name == item.container
        )

    def _known(self, container: str) -> Iterator[PodUsage]:
        """Yields the usage of the container in each ready pod, as far as it is known."""
        for pod in self._pods:
            if (usage := self._of.get((pod.metadata.name, container))) is not None:
                yield usage

    def _counts(self, arrived: dt.datetime | None) -> bool:
        return arrived is not None and self._since is not None and arrived > self._since

    def _cpu(self, item: ContainerResource) -> Need | None:
        used = [
            usage.cpu
            for usage in self._known(item.container)
            if usage.cpu is not None and self._counts(usage.cpu_time)
        ]
        if not used or len(used) * 2 < len(self._pods):
            return None
        mean = ceil_div(sum(used), len(used))
        if mean * 100 <= item.current * self._above:
            return None
        wanted = min(item.current * FAST_FACTOR, ceil_div(mean * 100, FAST_PERCENT))
        text = f"the kubelets report {readable_resource('cpu', mean)}"
        return Need(item.bounds.clamp(wanted), mean, item.current, text)

    def _memory(self, item: ContainerResource, target: int) -> Need | None:
        """A container that grows towards its limit gets more before it runs out, as much as it would get after. A usage
        of more than twice the limit can't be true."""
        if not item.limit or not item.scales_limit:
            return None
        growing = [
            usage.memory
            for usage in self._known(item.container)
            if usage.memory is not None
            and self._counts(usage.memory_time)
            and usage.grows
            and usage.memory <= 2 * item.limit
        ]
        if not growing or max(growing) * 100 <= item.limit * self._above:
            return None
        more = after_oom(item.current)
        wanted = min(item.current * FAST_FACTOR, more)
        if item.bounds.upper is None:
            wanted = min(wanted, OOM_CAP * target)
        text = f"the kubelets report {readable_resource('memory', max(growing))} of a limit of "
        text += readable_resource("memory", item.limit)
        return Need(item.bounds.clamp(wanted), max(growing), item.limit, text)


def _is(pod: Pod, kind: str) -> bool:
    """Whether this condition of the pod is True."""
    found = condition(pod.status.conditions, kind)
    return found is not None and found.status == "True"
