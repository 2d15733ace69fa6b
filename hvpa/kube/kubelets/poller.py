"""Polls the kubelets of some nodes for the usage of some pods: every 10 s, or every 2 s if the kubelet takes samples
that often; every 2 s also at first, and while a container on the node may need more. A kubelet that does not answer
delays no other node, and is asked less and less often."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol

from hvpa.core.fast.counters import LONGEST, CpuCounter, Memory, Rate, Sample, newest
from hvpa.kube.kubelets.answer import PodName, Usage, read_answer
from hvpa.kube.kubelets.client import KubeletError
from hvpa.reconcile.supervision import Supervisor

SOON, LATER = 2.0, 10.0
"""Seconds between two polls of a node, at least and at most. By default, a kubelet has a new sample of a container
every 10 to 20 s."""
FREQUENT: Final = 5
"""Number of polls that are 2 s apart at first, because they show how often the kubelet takes samples (while all
containers are young they don't, and are not counted), and after each that found a container that may need more, because
raised pods may need still more (docs/fast-signal.md has what that is worth)."""
OWN_PAUSE: Final = 1.2 * LATER
"""Seconds between two samples that polling every 10 s does not explain: they are the kubelet's own interval."""
GAPS, LEAST_GAPS = 16, 3
"""Number of intervals between samples of which a node's sampling interval is the median, at most and at least."""
YOUNG: Final = 30.0
"""Seconds after a container's start in which each poll gets a new sample, whatever the kubelet's interval is."""
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
    grows: bool = False
    """The memory has grown since the sample before."""
    lasting: Rate | None = None
    """Its CPU over at least a minute."""


Wanted = Mapping[PodName, frozenset[str]]
"""Pods, and the names of their containers."""


class _Counters:
    """The samples of a pod."""

    __slots__ = ("cpu", "memory")

    def __init__(self) -> None:
        self.cpu: dict[str, CpuCounter] = {}
        self.memory: dict[str, Memory] = {}

    def keep(self, names: Container[str]) -> None:
        """Drops the containers that an answer lacks: they do not run."""
        for counters in (self.cpu, self.memory):
            for gone in [name for name in counters if name not in names]:
                del counters[gone]

    def add(self, container: str, usage: Usage) -> bool:
        """Adds the samples of an answer; returns whether one is new."""
        is_new = False
        if usage.cpu is not None:
            is_new = self.cpu.setdefault(container, CpuCounter()).add(usage.cpu)
        if usage.memory is not None and container:
            is_new |= self.memory.setdefault(container, Memory()).add(usage.memory)
        return is_new

    def usage(self, is_single: bool) -> dict[str, ContainerUsage]:
        """The usage of each container. If the pod has a single one, the pod's own counter counts as well."""
        whole = self.cpu.get("") if is_single else None
        found = {}
        for name in {name for name in (*self.cpu, *self.memory) if name}:
            counters = [counter for counter in (self.cpu.get(name), whole) if counter is not None]
            memory = self.memory.get(name) or Memory()
            rate = newest(*[counter.rate() for counter in counters])
            lasting = newest(*[counter.lasting() for counter in counters])
            found[name] = ContainerUsage(rate, memory.last, memory.grows, lasting)
        return found


async def about(seconds: float) -> None:
    """Sleeps for about this time, so that nodes that are watched at once do not answer at once for ever."""
    await asyncio.sleep(seconds * random.uniform(0.9, 1.0))


class Listener(Protocol):
    """Receives what the polls find. The methods are called in the event loop."""

    def news(self, node: Node, usage: Mapping[PodName, Mapping[str, ContainerUsage]]) -> Collection[PodName]:
        """A kubelet has reported new samples of these pods: their usage by container. Returns the pods of which a
        container may need more; while there are any, the polls of the node are 2 s apart."""

    def answers_changed(self, node: Node) -> None:
        """A kubelet has begun or ceased to give usable answers, or gives none for another reason (`Poller.problem`)."""


class _Polled:
    """A node that is polled."""

    __slots__ = ("are_young", "counters", "frequent", "gaps", "hot", "problem", "task", "waited", "wanted")

    def __init__(self) -> None:
        self.wanted: Wanted = {}
        self.hot: set[PodName] = set()
        """The pods of which a container may need more, by their last samples."""
        self.task: asyncio.Task[None] | None = None
        self.counters: dict[PodName, _Counters] = {}
        self.frequent = FREQUENT
        """Number of the next polls that follow after 2 s."""
        self.waited = SOON
        """Seconds of the last pause."""
        self.gaps: deque[float] = deque(maxlen=GAPS)
        """Seconds between the samples of a container, the kubelet's own intervals only."""
        self.are_young = False
        """All containers of the last answer were young."""
        self.problem = ""
        """Why the kubelet gave no usable answer to the last poll."""

    def add(self, text: bytes) -> dict[PodName, Mapping[str, ContainerUsage]]:
        """Adds an answer's samples; returns the usage of the pods that have new ones."""
        answer = read_answer(text, self.wanted)
        for gone in self.counters.keys() - answer.keys():
            del self.counters[gone]
        self.hot &= answer.keys()
        ages = [
            usage.memory.time - usage.started
            for containers in answer.values()
            for usage in containers.values()
            if usage.memory is not None and usage.started is not None
        ]
        self.are_young = bool(ages) and max(ages) <= YOUNG
        news: dict[PodName, Mapping[str, ContainerUsage]] = {}
        for pod, containers in answer.items():
            counters = self.counters.setdefault(pod, _Counters())
            counters.keep(containers)
            if any([self._add(counters, name, usage) for name, usage in containers.items()]):
                news[pod] = counters.usage(is_single=len(self.wanted[pod]) == 1)
        return news

    def _add(self, counters: _Counters, container: str, usage: Usage) -> bool:
        """Adds the samples of a container, and notes the kubelet's interval; returns whether one is new."""
        memory = counters.memory.get(container)
        before = None if memory is None else memory.last
        is_old = before is not None and (usage.started is None or before.time - usage.started > YOUNG)
        if before is not None and usage.memory is not None and is_old:
            self._add_gap(usage.memory.time - before.time)
        return counters.add(container, usage)

    @property
    def sampling(self) -> float | None:
        """The seconds between two samples of a container, as measured; None: not known yet."""
        return statistics.median(self.gaps) if len(self.gaps) >= LEAST_GAPS else None

    def next_pause(self) -> float:
        """Returns the seconds until the next poll, after one that was answered."""
        if self.hot:
            self.frequent = FREQUENT
        if self.frequent:
            self.frequent -= not self.are_young
            return SOON
        return SOON if self.sampling is not None and self.sampling < LATER / 2 else LATER

    def _add_gap(self, seconds: float) -> None:
        if 0 < seconds <= LONGEST and (self.waited < LATER or seconds > OWN_PAUSE):
            self.gaps.append(seconds)


class Poller:
    """Polls nodes until it is stopped. All methods are called in one event loop."""

    def __init__(
        self,
        kubelets: Kubelets,
        listener: Listener,
        supervisor: Supervisor,
        pause: Callable[[float], Awaitable[None]] = about,
    ) -> None:
        self._kubelets = kubelets
        self._listener = listener
        self._supervisor = supervisor
        self._pause = pause
        self._nodes: dict[Node, _Polled] = {}

    def watch(self, wanted: Mapping[Node, Wanted]) -> None:
        """Polls exactly these nodes from now on, for these pods. Nodes without pods are not polled."""
        pods = {node: of_node for node, of_node in wanted.items() if of_node}
        for node in self._nodes.keys() - pods.keys():
            task = self._nodes.pop(node).task
            if task is not None:
                task.cancel()
        for node, of_node in pods.items():
            if (polled := self._nodes.get(node)) is None:
                polled = self._nodes[node] = _Polled()
                polling = self._supervisor.keep("kubelets", partial(self._poll, node, polled))
                polled.task = asyncio.create_task(polling, name=f"kubelet {node.address}")
            polled.wanted = of_node

    def stop(self) -> None:
        """Polls no more."""
        self.watch({})

    @property
    def nodes(self) -> int:
        """Number of nodes that are polled."""
        return len(self._nodes)

    @property
    def silent(self) -> int:
        """Number of nodes whose kubelet gave no usable answer to the last poll."""
        return sum(bool(polled.problem) for polled in self._nodes.values())

    def problem(self, node: Node) -> str:
        """Returns why the kubelet gave no usable answer to the last poll; empty if it did, or is not polled."""
        return "" if (polled := self._nodes.get(node)) is None else polled.problem

    def sampling(self, node: Node) -> float | None:
        """Returns the seconds between two samples of a container on this node, as measured; None: not known yet. A
        shorter time than the 2 s between two polls is not seen."""
        return None if (polled := self._nodes.get(node)) is None else polled.sampling

    async def _poll(self, node: Node, polled: _Polled) -> None:
        await self._pause(random.uniform(0, SOON))
        failures = 0
        while True:
            problem = ""
            try:
                await self._ask(node, polled)
            except KubeletError as error:
                problem = str(error)
                failures += 1
                polled.waited = min(LONGEST_RETRY, RETRY * 2.0 ** min(failures - 1, 10))
            else:
                failures = 0
                polled.waited = polled.next_pause()
            if problem != polled.problem:
                polled.problem = problem
                self._listener.answers_changed(node)
            await self._pause(polled.waited)

    async def _ask(self, node: Node, polled: _Polled) -> None:
        """Asks a kubelet. Nothing keeps the answer's text during the pause. Raises `KubeletError`."""
        if news := polled.add(await self._kubelets.read(*node)):
            polled.hot.difference_update(news)
            polled.hot.update(self._listener.news(node, news))
