"""The nodes that the pods run on: which pod goes where, and when nodes are added and taken away.

One class for the scheduler and the cluster autoscaler: a pod goes to the first node with room for its requests; where
none has, a node is added, as far as the scenario allows; a node that stays empty goes away. Pods are not moved to make
room, and nothing but the workload's pods is on the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa.simulate.cluster.state import INSTANT, SimPod
from hvpa.simulate.model import NodeModel

UNNEEDED: Final = 600.0
"""Seconds after which an empty node goes away: `--scale-down-unneeded-time` of the cluster autoscaler."""


@dataclass(slots=True, eq=False)
class Node:
    """A node: `ready_at` is when it can be used (seconds), `empty_since` when it lost its last pod (None: it has
    some); `free_cpu` and `free_memory` are what its pods' requests leave, in millicores and bytes, as the scheduler
    sees them: what resizes wait for counts as taken (`PodRequests` with `UseStatusResources`), so that less than
    nothing may be free."""

    number: int
    free_cpu: float
    free_memory: float
    ready_at: float
    empty_since: float | None
    pods: int = 0

    def bind(self, pod: SimPod) -> None:
        """Place the pod here."""
        pod.node = self.number
        self.take(pod.cpu_request, pod.memory_request)
        self.pods += 1
        self.empty_since = None

    def take(self, cpu: int, memory: int) -> None:
        """Less is free by this; more where it is negative."""
        self.free_cpu -= cpu
        self.free_memory -= memory

    def fits(self, cpu: int, memory: int) -> bool:
        """Whether so much is free. Nothing always fits, also on a node that resizes have promised away."""
        return (cpu <= self.free_cpu or cpu <= 0) and (memory <= self.free_memory or memory <= 0)

    @property
    def unneeded_at(self) -> float:
        """When this node goes away, in seconds; never while it has pods."""
        return math.inf if self.empty_since is None else self.empty_since + UNNEEDED


class Placement(NamedTuple):
    """What one round of scheduling did: pods that have a node now, and pods for which there will be none, with the
    reason. Pods in neither wait for a node that starts."""

    bound: list[SimPod]
    refused: list[tuple[SimPod, str]]


class Nodes:
    """All nodes. Without a size of a node (neither CPU nor memory) there is one without end, numbered 0, which is not
    counted: node-hours mean nothing there."""

    def __init__(self, model: NodeModel) -> None:
        self._model = model
        self._cpu = math.inf if model.cpu is None else float(model.cpu)
        self._memory = math.inf if model.memory is None else float(model.memory)
        self._sized = model.cpu is not None or model.memory is not None
        self._numbers = 0
        self.nodes: list[Node] = []

    @property
    def count(self) -> int:
        """How many nodes there are, those that start included; 0 where nodes have no size."""
        return len(self.nodes)

    def schedule(self, pending: Iterable[SimPod], now: float, at_once: bool = False) -> Placement:
        """Find nodes for the pods in this order, and add nodes where they are needed. A node that is added can be used
        after the scenario's `start_up`, or `at_once`; until then the pods that it is for have no node."""
        placement = Placement([], [])
        usable = now + INSTANT
        starting = [replace(node) for node in self.nodes if node.ready_at > usable]
        for pod in pending:
            cpu, memory = pod.cpu_request, pod.memory_request
            ready = [node for node in self.nodes if node.ready_at <= usable]
            fitting = (node for node in (*ready, *starting) if node.fits(cpu, memory))
            node = next(fitting, None) if self._sized else Node(0, math.inf, math.inf, now, now)
            if node is None:
                refusal = self._refusal(pod)
                if refusal is not None:
                    placement.refused.append((pod, refusal))
                    continue
                node = self._add(now if at_once else now + self._model.start_up)
                if node.ready_at > usable:
                    node = replace(node)
                    starting.append(node)
            if node in starting:
                node.take(cpu, memory)
            else:
                node.bind(pod)
                placement.bound.append(pod)
        return placement

    def release(self, pod: SimPod, now: float) -> None:
        """The pod is gone: its node has room again."""
        node = self.node_of(pod)
        if node is None:
            return
        node.take(-pod.cpu_request, -pod.memory_request)
        if pod.resize is not None:
            node.take(-pod.resize.held_cpu, -pod.resize.held_memory)
        node.pods -= 1
        if node.pods == 0:
            node.empty_since = now

    def node_of(self, pod: SimPod) -> Node | None:
        """The pod's node; None where nodes have no size."""
        return next((node for node in self.nodes if node.number == pod.node), None)

    def exceeded(self, cpu: int, memory: int) -> list[Resource]:
        """The resources of which this is more than a node has."""
        too_much: dict[Resource, bool] = {"cpu": cpu > self._cpu, "memory": memory > self._memory}
        return [resource for resource, is_more in too_much.items() if is_more]

    def expire(self, now: float) -> None:
        """Take the nodes away that have been empty for long enough."""
        self.nodes = [node for node in self.nodes if node.unneeded_at > now + INSTANT]

    def next_event(self, now: float) -> float:
        """When a node can be used or goes away next, in seconds; infinity where nothing is to come."""
        times = [node.ready_at for node in self.nodes if node.ready_at > now + INSTANT]
        return min((*times, *(node.unneeded_at for node in self.nodes)), default=math.inf)

    def _refusal(self, pod: SimPod) -> str | None:
        """Why no node can be added for the pod; None where one can."""
        if self.exceeded(pod.cpu_request, pod.memory_request):
            return f"Pod {pod.name} requests more than a node has"
        limit = self._model.count
        if limit is not None and len(self.nodes) >= limit:
            return f"No room for pod {pod.name} on {len(self.nodes)} nodes, and there may be no more"
        return None

    def _add(self, ready_at: float) -> Node:
        self._numbers += 1
        node = Node(self._numbers, self._cpu, self._memory, ready_at, empty_since=ready_at)
        self.nodes.append(node)
        return node
