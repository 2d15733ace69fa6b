"""The kubelets of a simulation, as the fast signal sees them: each samples a container every 10 to 20 s by itself, and
its pod at other times; the operator polls them (docs/real-node.md has the measurements). Other settings of the kubelet
are faster (`KubeletKind`)."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping
from typing import Final

from hvpa.core.fast.counters import CpuCounter, Memory, Sample, newest
from hvpa.core.model import FastUsage, PodUsage, ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.model import KubeletKind

HOUSEKEEPING: Final[Mapping[KubeletKind, float]] = {
    "Default": 10.0,
    "Housekeeping1s": 1.0,
    "StatsFromCRI": 0.0,
}
"""Seconds between two samples of a container; a random part of up to as much is added (cAdvisor). 0: each poll takes a
sample."""
SOON, LATER, FREQUENT = 2.0, 10.0, 5
"""Seconds between two polls, and the number of polls that are SOON, as in `hvpa.kube.kubelets.poller`."""


class _Sampled:
    """The samples of a container, or of a whole pod: those of the kubelet, and those that a poll has found."""

    __slots__ = ("counter", "due", "last", "memory", "time")

    def __init__(self, due: float) -> None:
        self.due = due
        self.counter = CpuCounter()
        self.memory = Memory()
        self.last: tuple[Sample, Sample] | None = None
        """The kubelet's last samples, of CPU and memory."""
        self.time: dt.datetime | None = None
        """When a poll found the newest."""


class SimulatedKubelets:
    """The kubelets of the workload's pods, and the operator's polls."""

    def __init__(self, state: SimWorkload, kind: KubeletKind = "Default", seed: int = 0) -> None:
        self._state = state
        self._housekeeping = HOUSEKEEPING[kind]
        self._draw = random.Random(f"kubelets {seed}")
        self._of: dict[tuple[int, str], _Sampled] = {}
        self._calm = SOON if self._housekeeping < LATER / 2 else LATER
        """Seconds between two polls while no container needs more."""
        self._next_poll = self._draw.uniform(0, SOON)
        self._frequent = FREQUENT
        self._usage = FastUsage(nodes=1)
        self.above = 100

    def advance(self, now: float, instant: dt.datetime) -> bool:
        """Takes the samples that are due, and polls if that is due. Returns whether a poll found that a container may
        need more."""
        for pod in self._state.pods:
            for container in pod.containers:
                if container.running:
                    self._sample(pod, container.name, now, container.cpu_total, container.memory)
            if len(pod.containers) == 1 and pod.containers[0].running:
                self._sample(pod, "", now, pod.containers[0].cpu_total, 0.0)
        if now < self._next_poll:
            return False
        if needs_more := self._poll(instant):
            self._frequent = FREQUENT
        pause = SOON if self._frequent else self._calm
        self._frequent = max(0, self._frequent - 1)
        self._next_poll = now + pause * self._draw.uniform(0.9, 1)
        return needs_more

    def usage(self) -> FastUsage:
        """Returns what the last polls have found."""
        return self._usage

    def _sample(self, pod: SimPod, name: str, now: float, cpu: float, memory: float) -> None:
        key = pod.serial, name
        if (sampled := self._of.get(key)) is None:
            sampled = self._of[key] = _Sampled(now + self._draw.uniform(0, self._housekeeping))
        if now >= sampled.due:
            sampled.due = now + self._housekeeping * (1 + self._draw.random())
            # Never a whole number of seconds.
            sampled.last = Sample(now, cpu / 1000 + 1e-4), Sample(now, memory)

    def _poll(self, instant: dt.datetime) -> bool:
        is_new = needs_more = False
        found: dict[tuple[str, str], PodUsage] = {}
        pods = {pod.serial: pod for pod in self._state.pods}
        self._of = {key: sampled for key, sampled in self._of.items() if key[0] in pods}
        for sampled in self._of.values():
            if sampled.last is not None and sampled.counter.add(sampled.last[0]):
                is_new, sampled.time = True, instant
                sampled.memory.add(sampled.last[1])
        for (serial, name), sampled in self._of.items():
            if not name:
                continue
            pod = pods[serial]
            usage = self._reported(serial, name, sampled)
            found[pod.name, name] = usage
            needs_more = needs_more or self._is_above(pod.resources[name], usage)
        for pod in pods.values():
            if POD in pod.resources:
                parts = [found.get((pod.name, one.name), PodUsage()) for one in pod.containers]
                needs_more = needs_more or self._is_above(pod.resources[POD], PodUsage.together(parts))
        if is_new:
            self._usage = FastUsage(instant, found, nodes=1, sampling=max(SOON, 1.5 * self._housekeeping))
        return needs_more

    def _reported(self, serial: int, name: str, sampled: _Sampled) -> PodUsage:
        whole = self._of.get((serial, ""))
        counters = [part.counter for part in (sampled, whole) if part is not None]
        times = [part.time for part in (sampled, whole) if part is not None and part.time is not None]
        rate, memory = newest(*[counter.rate() for counter in counters]), sampled.memory.last
        lasting = newest(*[counter.lasting() for counter in counters])
        return PodUsage(
            cpu=None if rate is None else rate.millicores,
            cpu_time=max(times, default=None),
            memory=None if memory is None else int(memory.value),
            memory_time=sampled.time,
            grows=sampled.memory.grows,
            lasting_cpu=None if lasting is None else lasting.millicores,
        )

    def _is_above(self, resources: ResourceRequirements, usage: PodUsage) -> bool:
        request, limit = resources.requests.get("cpu", 0), resources.limits.get("memory", 0)
        busy = usage.cpu is not None and usage.cpu * 100 > request * self.above
        full = bool(limit) and usage.memory is not None and usage.memory * 100 > limit * self.above
        return (request > 0 and busy) or (full and usage.grows)
