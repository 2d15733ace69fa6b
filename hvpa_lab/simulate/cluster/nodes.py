"""The nodes that the pods run on: placement of pods, and addition and removal of nodes.

A single class is both scheduler and cluster autoscaler. A pod goes to the first node with room for its requests. If no
node has room, a node is added, up to the scenario's maximum; a node that stays empty is removed. Pods are not moved to
make room, and only the workload's pods run on the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa_lab.simulate.cluster.state import INSTANT, SimPod
from hvpa_lab.simulate.model import NodeModel

UNNEEDED: Final = 600.0
"""Seconds after which an empty node is removed: `--scale-down-unneeded-time` of the cluster autoscaler."""


@dataclass(slots=True, eq=False)
class Node:
    """A node of the cluster."""

    number: int
    free_cpu: float
    """Millicores not taken by pods' requests, as the scheduler sees them. Waiting resizes count as taken (`PodRequests`
    with `UseStatusResources`), so the value may be negative."""
    free_memory: float
    """Bytes not taken by pods' requests, in the same way."""
    ready_at: float
    """When the node can be used, in seconds."""
    empty_since: float | None
    """When it lost its last pod, in seconds; None: it has pods."""
    pods: int = 0

    def bind(self, pod: SimPod) -> None:
        """Places the pod on this node."""
        pod.node = self.number
        self.take(pod.cpu_request, pod.memory_request)
        self.pods += 1
        self.empty_since = None

    def take(self, cpu: int, memory: int) -> None:
        """Takes this much from the free resources; negative values free them."""
        self.free_cpu -= cpu
        self.free_memory -= memory

    def fits(self, cpu: int, memory: int) -> bool:
        """Whether this much is free. A request of 0 always fits, even if resizes have taken more than the node has."""
        return (cpu <= self.free_cpu or cpu <= 0) and (memory <= self.free_memory or memory <= 0)

    @property
    def unneeded_at(self) -> float:
        """When this node is removed, in seconds; infinity while it has pods."""
        return math.inf if self.empty_since is None else self.empty_since + UNNEEDED


class Placement(NamedTuple):
    """The result of a round of scheduling. Pods in neither list wait for a node that starts."""

    bound: list[SimPod]
    """Pods that have a node now."""
    refused: list[tuple[SimPod, str]]
    """Pods that will get no node, with the reason."""


class Nodes:
    """All nodes. If nodes have neither CPU nor memory size, there is a single unlimited node, numbered 0. It is not
    counted, because node-hours mean nothing then."""

    def __init__(self, model: NodeModel) -> None:
        self._model = model
        self._cpu = math.inf if model.cpu is None else float(model.cpu)
        self._memory = math.inf if model.memory is None else float(model.memory)
        self._sized = model.cpu is not None or model.memory is not None
        self._numbers = 0
        self.nodes: list[Node] = []

    @property
    def count(self) -> int:
        """Number of nodes, including starting nodes; 0 if nodes have no size."""
        return len(self.nodes)

    def schedule(self, pending: Iterable[SimPod], now: float, at_once: bool = False) -> Placement:
        """Finds nodes for the pods in this order, and adds nodes if necessary. A new node can be used after the
        scenario's `start_up`, or `at_once`; until then its pods have no node."""
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
        """Frees the room of a deleted pod on its node."""
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
        """Returns the pod's node; None if nodes have no size."""
        return next((node for node in self.nodes if node.number == pod.node), None)

    def exceeded(self, cpu: int, memory: int) -> list[Resource]:
        """Returns the resources for which this exceeds the size of a node."""
        too_much: dict[Resource, bool] = {"cpu": cpu > self._cpu, "memory": memory > self._memory}
        return [resource for resource, is_more in too_much.items() if is_more]

    def expire(self, now: float) -> None:
        """Removes the nodes that have been empty for long enough."""
        self.nodes = [node for node in self.nodes if node.unneeded_at > now + INSTANT]

    def next_event(self, now: float) -> float:
        """Returns when the next node can be used or is removed, in seconds; infinity if there is none."""
        times = [node.ready_at for node in self.nodes if node.ready_at > now + INSTANT]
        return min((*times, *(node.unneeded_at for node in self.nodes)), default=math.inf)

    def _refusal(self, pod: SimPod) -> str | None:
        """Returns why no node can be added for the pod; None if a node can be added."""
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
