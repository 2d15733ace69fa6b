"""Pods that are alike, and nodes that are alike: what each of them uses, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hvpa.simulate.cluster.meters import LEAST_WEIGHT, ROUNDING, Meter, share_out
from hvpa.simulate.cluster.state import Shape, SimContainer, SimPod
from hvpa.simulate.model import ContainerModel, NodeModel

Victim = tuple[SimPod, SimContainer, float]
"""A container that has too much memory: its pod, itself, and the bytes that it has."""


def beyond(amount: float, bound: float) -> bool:
    """More than the bound, and not by rounding alone."""
    return amount > bound * (1.0 + ROUNDING)


def _meter(model: ContainerModel, shape: Shape, ready: bool, since: float) -> Meter:
    meter = Meter()
    meter.base, meter.memory_base = model.cpu_base, model.memory_base
    if ready:
        meter.per_unit, meter.memory_per_unit = model.cpu_per_unit, model.memory_per_unit
    meter.leak, meter.since = model.memory_leak, since
    meter.limit, meter.memory_limit = shape.cpu_limit, shape.memory_limit
    meter.weight = max(LEAST_WEIGHT, float(shape.cpu_request))
    meter.request = shape.memory_request
    return meter


class Group:
    """Pods that are alike: `each` on each of the nodes that are alike. `cap` is what one pod may use of CPU;
    `want` and `held` are what one pod uses of CPU and memory."""

    __slots__ = (
        "cap",
        "capped",
        "each",
        "held",
        "memory_request",
        "meters",
        "over",
        "pods",
        "request",
        "want",
        "weight",
    )

    def __init__(
        self, pods: list[SimPod], each: int, models: Mapping[str, ContainerModel], nodes: NodeModel
    ) -> None:
        self.pods = pods
        self.each = each
        first = pods[0]
        self.request = first.cpu_request
        self.memory_request = first.memory_request
        self.weight = max(LEAST_WEIGHT, float(first.cpu_request))
        self.cap = math.inf
        if nodes.headroom is not None:
            self.cap = min(
                self.request + nodes.beyond(self.request), math.inf if nodes.cpu is None else nodes.cpu
            )
        self.meters: list[Meter] = []
        for index, (container, shape) in enumerate(zip(first.containers, first.shapes, strict=True)):
            if not container.running:
                continue
            meter = _meter(models[container.name], shape, first.ready, container.grows_from)
            meter.index = index
            self.meters.append(meter)
            for pod in pods:
                pod.containers[index].attach(meter)
        self.want = self.held = 0.0
        self.capped = self.over = False

    def measure(self, share: float, at: float) -> None:
        """What each pod uses with this share of the load, and the memory that it has at this time."""
        want = held = 0.0
        self.capped = self.over = False
        for meter in self.meters:
            demand = rate = meter.base + share * meter.per_unit
            if demand > meter.limit:
                self.capped = self.capped or beyond(demand, meter.limit)
                rate = meter.limit
            memory = meter.memory_base + share * meter.memory_per_unit
            if meter.leak:
                memory += meter.leak * (at - meter.since)
            if memory > meter.memory_limit and beyond(memory, meter.memory_limit):
                self.over = True
            meter.demand = demand
            meter.rate = rate
            meter.memory = memory
            want += rate
            held += memory
        self.want = want
        self.held = held
        if want > self.cap:
            self.capped = self.capped or beyond(want, self.cap)
            self.squeeze(self.cap)

    def squeeze(self, grant: float) -> None:
        """Each pod gets no more CPU than this; its containers share it."""
        grants = share_out(grant, [(meter.rate, meter.weight, 1) for meter in self.meters])
        for meter, rate in zip(self.meters, grants, strict=True):
            meter.rate = rate
        self.want = grant

    @property
    def missing(self) -> float:
        """CPU that one pod was refused."""
        return sum(meter.demand - meter.rate for meter in self.meters)

    @property
    def most(self) -> float:
        """CPU that one pod could use at most, as far as its own bounds say."""
        return min(self.cap, sum(meter.limit for meter in self.meters))

    @property
    def leak(self) -> float:
        """Bytes per second that one pod leaks."""
        return sum(meter.leak for meter in self.meters)


class Host:
    """Nodes that are alike: `cpu` and `memory` are what the pods of one node share (infinity: without end)."""

    __slots__ = ("capped", "count", "cpu", "groups", "held", "memory", "nodes", "want")

    def __init__(self, nodes: list[int], groups: list[Group], cpu: float, memory: float) -> None:
        self.nodes = nodes
        self.count = len(nodes)
        self.groups = groups
        self.cpu = cpu
        self.memory = memory
        self.want = self.held = 0.0
        self.capped = False

    def share(self) -> None:
        """The node's CPU does not suffice: its pods share it by their requests."""
        self.capped = beyond(self.want, self.cpu)
        groups = self.groups
        grants = share_out(self.cpu, [(group.want, group.weight, group.each) for group in groups])
        for group, grant in zip(groups, grants, strict=True):
            group.squeeze(grant)
        self.want = self.cpu

    def overflow(self, at: float) -> float:
        """When the node's memory no longer suffices, seconds; infinity: never as long as the load is the same."""
        if self.memory == math.inf:
            return math.inf
        leak = sum(group.each * group.leak for group in self.groups)
        return crossing(self.held, self.memory, leak, at)

    def victims(self) -> list[Victim]:
        """On each of the nodes the container to kill: of the pod that has most beyond its request (of equals the
        newest), the container that has most beyond its own. As requests fit on a node, one that runs is found."""
        found: list[Victim] = []
        for node in self.nodes:
            _, _, pod, group = max(
                (group.held - group.memory_request, pod.serial, pod, group)
                for group in self.groups
                for pod in group.pods
                if pod.node == node
            )
            worst = max(group.meters, key=lambda meter: meter.memory - meter.request)
            found.append((pod, pod.containers[worst.index], worst.memory))
        return found


def crossing(memory: float, bound: float, leak: float, at: float) -> float:
    """When memory that leaks at this rate goes beyond the bound, seconds; infinity: never."""
    if beyond(memory, bound):
        return at
    return at + max(0.0, bound - memory) / leak if leak else math.inf
