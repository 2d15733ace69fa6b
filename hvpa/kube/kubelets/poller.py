"""Polls the kubelets of some nodes for the usage of some pods: every 2 s while a container on the node may need more
soon, otherwise every 10 s. A kubelet that does not answer delays no other node, and is asked less and less often."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from hvpa.core.fast.counters import CpuCounter, Rate, Sample, newest
from hvpa.kube.kubelets.answer import PodName, Usage, read_answer
from hvpa.kube.kubelets.client import KubeletError
from hvpa.reconcile.supervision import Supervisor

SOON, LATER = 2.0, 10.0
"""Seconds between two polls of a node. Polling more often brings nothing: by default, a kubelet has a new sample of a
container every 10 to 20 s."""
RETRY, LONGEST_RETRY = 10.0, 300.0
"""Seconds after the first failure in a row, and at most. Each further failure doubles the wait."""


class Node(NamedTuple):
    """A kubelet's address on the network."""

    address: str
    port: int


class Kubelets(Protocol):
    """Reads the answers of kubelets."""

    async def read(self, address: str, port: int) -> bytes:
        """Returns a kubelet's answer. Raises `KubeletError`."""


class ContainerUsage(NamedTuple):
    """What a container uses, by the last samples of its kubelet."""

    cpu: Rate | None = None
    memory: Sample | None = None
    memory_before: float | None = None
    """Bytes of the sample before."""


class _Counters:
    """The samples of a pod."""

    __slots__ = ("cpu", "memory")

    def __init__(self) -> None:
        self.cpu: dict[str, CpuCounter] = {}
        self.memory: dict[str, tuple[Sample, float | None]] = {}

    def add(self, container: str, usage: Usage) -> bool:
        """Adds the samples of an answer; returns whether one is new."""
        is_new = False
        if usage.cpu is not None:
            is_new = self.cpu.setdefault(container, CpuCounter()).add(usage.cpu)
        if usage.memory is not None and container:
            before = self.memory.get(container)
            if before is None or usage.memory.time != before[0].time:
                self.memory[container] = usage.memory, None if before is None else before[0].value
                is_new = True
        return is_new

    def usage(self) -> dict[str, ContainerUsage]:
        """The usage of each container. Of a pod with one container, the pod's own counter counts as well."""
        names = {name for name in (*self.cpu, *self.memory) if name}
        whole = self.cpu.get("") if len(names) == 1 else None
        found = {}
        for name in names:
            counters = [counter for counter in (self.cpu.get(name), whole) if counter is not None]
            memory, before = self.memory.get(name, (None, None))
            found[name] = ContainerUsage(newest(*[counter.rate() for counter in counters]), memory, before)
        return found


OnNews = Callable[[Node, Mapping[PodName, Mapping[str, ContainerUsage]]], bool]
"""Receives the usage of the pods that have new samples, by container. Returns whether a container of the node may need
more soon, so that the node is polled again after 2 s."""


async def about(seconds: float) -> None:
    """Sleeps for about this time, so that nodes that are watched at once do not answer at once for ever."""
    await asyncio.sleep(seconds * random.uniform(0.9, 1.0))


class Poller:
    """Polls nodes until it is stopped. All methods are called in one event loop."""

    def __init__(
        self,
        kubelets: Kubelets,
        on_news: OnNews,
        supervisor: Supervisor,
        pause: Callable[[float], Awaitable[None]] = about,
    ) -> None:
        self._kubelets = kubelets
        self._on_news = on_news
        self._supervisor = supervisor
        self._pause = pause
        self._tasks: dict[Node, asyncio.Task[None]] = {}
        self._wanted: dict[Node, frozenset[PodName]] = {}
        self._counters: dict[Node, dict[PodName, _Counters]] = {}
        self.problems: dict[Node, str] = {}
        """Why a kubelet gave no usable answer to the last poll."""

    def watch(self, wanted: Mapping[Node, Iterable[PodName]]) -> None:
        """Polls exactly these nodes from now on, for these pods. Nodes without pods are not polled."""
        self._wanted = {node: names for node, pods in wanted.items() if (names := frozenset(pods))}
        for node in self._tasks.keys() - self._wanted.keys():
            self._tasks.pop(node).cancel()
            self._counters.pop(node, None)
            self.problems.pop(node, None)
        for node in self._wanted.keys() - self._tasks.keys():
            polling = self._supervisor.keep("kubelets", partial(self._poll, node))
            self._tasks[node] = asyncio.create_task(polling, name=f"kubelet {node.address}")

    def stop(self) -> None:
        """Polls no more."""
        self.watch({})

    async def _poll(self, node: Node) -> None:
        await self._pause(random.uniform(0, SOON))
        failures = 0
        while True:
            try:
                is_soon = await self._asked(node)
            except KubeletError as error:
                self.problems[node] = str(error)
                failures += 1
                wait = min(LONGEST_RETRY, RETRY * 2.0 ** min(failures - 1, 10))
            else:
                self.problems.pop(node, None)
                failures = 0
                wait = SOON if is_soon else LATER
            await self._pause(wait)

    async def _asked(self, node: Node) -> bool:
        """Asks a kubelet; returns whether to ask it again soon. Nothing keeps the answer's text during the pause.
        Raises `KubeletError`."""
        return self._took(node, await self._kubelets.read(*node))

    def _took(self, node: Node, text: bytes) -> bool:
        """Adds an answer's samples; returns whether to poll again soon."""
        wanted = self._wanted[node]
        counters = self._counters.setdefault(node, {})
        for gone in counters.keys() - wanted:
            del counters[gone]
        news = set()
        for (pod, container), usage in read_answer(text, wanted).items():
            if counters.setdefault(pod, _Counters()).add(container, usage):
                news.add(pod)
        return self._on_news(node, {pod: counters[pod].usage() for pod in sorted(news)})
