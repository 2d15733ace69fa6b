"""The raise by the fast signal (`spec.fastSignal`): if the kubelets report that pods use more than they have, their
containers get more at once, up to twice as much. A later decision from a measurement confirms that or takes it back;
memory is kept as after an OOM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

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
from hvpa.core.workload.containers import SHARED, ContainerResource, present_resources, sharing
from hvpa.core.workload.pod_level import total
from hvpa.core.workload.rollout import METRIC_WINDOW, is_living
from hvpa.core.workload.stuck import UNSCHEDULABLE
from hvpa.recommend.hpa.pods import lasting

_UNKNOWN: Final = PodUsage()


class Need(NamedTuple):
    """What pods need by the kubelets' report."""

    request: int
    usage: int
    """The usage that calls for it: the mean of the CPU, or the largest memory."""
    of: int
    """What it is compared with: the present request of CPU, or the present limit of memory."""
    base: int
    """The present request: the container's or, for what containers share, the pod's."""
    text: str


class FastRaises:
    """The raises that the kubelets' newest samples call for."""

    def __init__(self, observation: ScalableState, clock: Clock) -> None:
        self._above = observation.spec.fast_signal.above
        self._template = observation.workload.spec.template.spec
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
        if known is None:
            return need
        served = need.of * (need.base + known.request - item.current)  # by that size, with its limit
        return need if need.usage * need.base * 100 > served * self._above else None

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
            (own.lasting_cpu, around.lasting_cpu)
            for own, around in self._known(item)
            if own.lasting_cpu is not None
            and around.lasting_cpu is not None
            and around.cpu_time is not None
            and clock.held_until(around.cpu_time, FAST_KNOWN) is not None
        ]
        is_new = raised is not None and clock.held_until(raised.time, FAST_LASTS) is not None
        base = self._base(item)
        if is_new or not used or len(used) * 2 < len(self._pods):
            if self._are_silent and raised is None:
                return None
            return Need(item.bounds.clamp(current), 0, current, base, "its usage since then is not known yet")
        mean, whole = _means(used)
        if mean * 100 <= usual * self._above or whole * 100 <= (base + usual - current) * self._above:
            return None
        text = f"the kubelets report {readable_resource('cpu', mean)}"
        wanted = min(_size_of(mean), current + _size_of(whole) - base)
        least = max(usual, min(current, wanted))
        if least * 100 > current * FAST_LEAST:
            least = current
        return Need(item.bounds.clamp(least), mean, current, base, text)

    def _base(self, item: ContainerResource) -> int:
        """Returns the request that is compared with the usage: for what containers share, that of the pod. Containers
        without a request may use what the others leave."""
        template = self._template
        return total(template, {}, item.resource) if item.container == SHARED else item.current

    def _restarts(self, item: ContainerResource) -> bool:
        """Whether a resize of this resource would restart containers that are at their limit."""
        return any(
            container.restarts_for(item.resource)
            for pod in self._pods
            for container in pod.spec.containers
            if container.name == item.container
        )

    def _known(self, item: ContainerResource) -> Iterator[tuple[PodUsage, PodUsage]]:
        """Yields, for each ready pod, the usage of the container, and that which is compared with `_base`, as far as
        they are known."""
        for pod in self._pods:
            if item.container != SHARED:
                if (usage := self._of.get((pod.metadata.name, item.container))) is not None:
                    yield usage, usage
                continue
            every = [one.name for one in lasting(pod.spec) if one.name != SHARED]
            names = sharing(present_resources(pod.spec.containers), item.resource)
            own, around = [
                PodUsage.together([self._of.get((pod.metadata.name, name), _UNKNOWN) for name in some])
                for some in (names, every)
            ]
            yield own, around

    def _counts(self, arrived: dt.datetime | None) -> bool:
        return arrived is not None and self._since is not None and arrived > self._since

    def _cpu(self, item: ContainerResource) -> Need | None:
        used = [
            (own.cpu, around.cpu)
            for own, around in self._known(item)
            if own.cpu is not None and around.cpu is not None and self._counts(around.cpu_time)
        ]
        if not used or len(used) * 2 < len(self._pods):
            return None
        (mean, whole), base = _means(used), self._base(item)
        if mean * 100 <= item.current * self._above or whole * 100 <= base * self._above:
            return None
        more = min(base * FAST_FACTOR, _size_of(whole)) - base
        text = f"the kubelets report {readable_resource('cpu', mean)}"
        return Need(item.bounds.clamp(min(_size_of(mean), item.current + more)), whole, base, base, text)

    def _memory(self, item: ContainerResource, target: int) -> Need | None:
        """A container that grows towards its limit gets more before it runs out, as much as it would get after. A usage
        of more than twice the limit can't be true."""
        if not item.limit or not item.scales_limit:
            return None
        growing = [
            usage.memory
            for _, usage in self._known(item)
            if usage.memory is not None
            and self._counts(usage.memory_time)
            and usage.grows
            and usage.memory <= 2 * item.limit
        ]
        if not growing or max(growing) * 100 <= item.limit * self._above:
            return None
        base = self._base(item)
        wanted = item.current + min(base * FAST_FACTOR, after_oom(base)) - base
        if item.bounds.upper is None:
            wanted = min(wanted, OOM_CAP * target)
        text = f"the kubelets report {readable_resource('memory', max(growing))} of a limit of "
        text += readable_resource("memory", item.limit)
        return Need(item.bounds.clamp(wanted), max(growing), item.limit, base, text)


def _means(used: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Returns the mean CPU of a container, and of the pod."""
    own, around = [ceil_div(sum(some), len(used)) for some in zip(*used, strict=True)]
    return own, around


def _size_of(usage: int) -> int:
    """Returns the request of which this usage is 70 percent."""
    return ceil_div(usage * 100, FAST_PERCENT)


def _is(pod: Pod, kind: str) -> bool:
    """Whether this condition of the pod is True."""
    found = condition(pod.status.conditions, kind)
    return found is not None and found.status == "True"
