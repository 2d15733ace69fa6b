"""Usage of all pods together under a load, at an instant.

Pods that are alike (equal resources, state and neighbours on their node) are measured once. An `Arrangement` holds the
groups at an instant; it is valid until a pod or a container changes.

Ready pods share the load in proportion to their parts. By default the parts are equal, as behind a Service on average.
A running container in an unready pod uses only its base. CPU is bounded by the container's limit. With `headroom` it is
also bounded by the pod's request plus the headroom, and by the size of a node. Otherwise the pods of a node share its
CPU by their requests, as in the kernel. Containers of a pod share its CPU in the same way, also under the pod's own
limit; a container without a request counts as if it requested the pod's limit (`calculateLinuxResources`). With
`headroom` pods do not compete: it describes the CPU that neighbours leave. Demand above the available CPU is lost:
nothing queues.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa_lab.simulate.cluster.state import INSTANT, Meter, Shape, SimContainer, SimPod
from hvpa_lab.simulate.model import ContainerModel, NodeModel

GroupKind = tuple[
    tuple[Shape, ...], Shape, bool, bool, float, tuple[bool, ...], tuple[float, ...], tuple[float, ...]
]
"""Properties that make pods alike: bounds of containers and pod, readiness, whether they are starting, which containers
run, their heaps, and their retained memory (start of the leak, and the most that the load took)."""
Victim = tuple[SimPod, SimContainer, float, bool]
"""A container with too much memory: its pod, the container, its bytes, and whether its heap is full."""
LEAST_WEIGHT: Final = 2.0
"""CPU weight of a container without a request: the kernel's minimum `cpu.shares` (Kubernetes: `MinShares`)."""
ROUNDING: Final = 1e-9
"""Relative rounding error of floats: usage within it does not exceed a limit."""


def beyond(amount: float, bound: float) -> bool:
    """Whether the amount exceeds the bound by more than a rounding error."""
    return amount > bound * (1.0 + ROUNDING)


def crossing(memory: float, bound: float, leak: float, at: float) -> float:
    """Returns when memory that leaks at this rate exceeds the bound, in seconds; infinity: never."""
    if beyond(memory, bound):
        return at
    return at + max(0.0, bound - memory) / leak if leak else math.inf


def share_out(capacity: float, wants: Sequence[tuple[float, float, int]]) -> list[float]:
    """Divides CPU as the kernel's scheduler does: in proportion to weights, and unwanted CPU goes to the others.

    `wants` are (wanted amount, weight, number of this kind). It returns the amount for each of a kind. Example: 900 for
    two that want 500 each, with weights 1 and 2, gives 400 and 500.
    """
    grants = [0.0] * len(wants)
    left, waiting = capacity, list(range(len(wants)))
    while waiting:
        level = left / sum(wants[index][1] * wants[index][2] for index in waiting)
        content = [index for index in waiting if wants[index][0] <= level * wants[index][1]]
        for index in content or waiting:
            grants[index] = wants[index][0] if content else level * wants[index][1]
            left -= grants[index] * wants[index][2]
        waiting = [index for index in waiting if index not in content] if content else []
    return grants


@dataclass(slots=True, eq=False)
class Group:
    """Pods that are alike, on nodes that are alike."""

    pods: list[SimPod]
    each: int
    """Number of these pods on each node."""
    cap: float
    """CPU that a pod may use."""
    meters: list[Meter]
    starts: bool
    """Until they are ready, they use their own amount, which does not count as demand."""
    part: float = 1.0
    """Each pod's share of the load; the mean is 1."""
    memory_limit: float = math.inf
    """Memory limit of the pod itself."""
    want: float = 0.0
    """CPU that a pod uses."""
    held: float = 0.0
    """Memory that a pod uses."""
    capped: bool = False
    over: bool = False

    def measure(self, share: float, at: float) -> None:
        """Measures each pod's usage with this share of the load, and its memory at this time."""
        want = held = 0.0
        self.capped = self.over = False
        for meter in self.meters:
            demand = rate = meter.base + share * meter.per_unit
            if demand > meter.limit:
                self.capped = self.capped or beyond(demand, meter.limit)
                rate = meter.limit
            meter.work_memory = work_memory = share * meter.memory_per_unit
            if meter.kept:
                work_memory = max(work_memory, meter.kept * meter.peak)
            memory = meter.memory_base + work_memory
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
        self.over = self.over or beyond(held, self.memory_limit)
        if want > self.cap:
            self.capped = self.capped or beyond(want, self.cap)
            self.squeeze(self.cap)

    def squeeze(self, grant: float) -> None:
        """Limits each pod to this CPU, which its containers share."""
        grants = share_out(grant, [(meter.rate, meter.weight, 1) for meter in self.meters])
        for meter, rate in zip(self.meters, grants, strict=True):
            meter.rate = rate
        self.want = grant

    def overflow(self, at: float) -> float:
        """Returns when a pod exceeds its own memory limit, in seconds; infinity: never at this load."""
        if self.memory_limit == math.inf:
            return math.inf
        return crossing(self.held, self.memory_limit, sum(meter.leak for meter in self.meters), at)

    def victim(self, pod: SimPod) -> Victim:
        """Returns the container of this pod that the kernel kills: it exceeds its request most. (Further requests of
        the pod count equally for all its containers: `GetContainerOOMScoreAdjust`.)"""
        worst = max(self.meters, key=lambda meter: meter.memory - meter.request)
        return pod, pod.containers[worst.index], worst.memory, False

    @property
    def request(self) -> int:
        """The CPU request of a pod."""
        return self.pods[0].cpu_request

    @property
    def missing(self) -> float:
        """CPU that a pod needs and does not get."""
        return 0.0 if self.starts else sum(meter.demand - meter.rate for meter in self.meters)

    @property
    def most(self) -> float:
        """Maximum CPU that a pod could use within its own bounds."""
        return min(self.cap, sum(meter.limit for meter in self.meters))


@dataclass(slots=True, eq=False)
class Host:
    """Nodes that are alike."""

    nodes: list[int]
    groups: list[Group]
    cpu: float
    """CPU that the pods of a node share; infinity: unlimited."""
    memory: float
    """Memory that the pods of a node share; infinity: unlimited."""
    want: float = 0.0
    """CPU that the pods of a node use."""
    held: float = 0.0
    """Memory that the pods of a node use."""

    def share(self) -> None:
        """Shares the node's CPU among its pods by their requests, if it is insufficient."""
        wants = [(group.want, max(LEAST_WEIGHT, float(group.request)), group.each) for group in self.groups]
        for group, grant in zip(self.groups, share_out(self.cpu, wants), strict=True):
            group.squeeze(grant)
        self.want = self.cpu

    def overflow(self, at: float) -> float:
        """Returns when the node runs out of memory, in seconds; infinity: never at this load."""
        if self.memory == math.inf:
            return math.inf
        leak = sum(group.each * sum(meter.leak for meter in group.meters) for group in self.groups)
        return crossing(self.held, self.memory, leak, at)

    def victims(self) -> list[Victim]:
        """Returns the container to kill on each node: in the pod that exceeds its request most (the newest of
        equals), the container that exceeds its own most. Requests fit on the node, so there is always such a running
        container."""
        victims: list[Victim] = []
        for node in self.nodes:
            _, _, pod, group = max(
                (group.held - pod.memory_request, pod.serial, pod, group)
                for group in self.groups
                for pod in group.pods
                if pod.node == node
            )
            victims.append(group.victim(pod))
        return victims


class Arrangement:
    """Pods that have a node, in groups. `demand`, `unmet`, `used` and `capacity` (millicores) and `memory` (bytes) are
    totals over all pods after `measure`; `over`: some container or node has too much memory."""

    def __init__(self, placed: list[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel) -> None:
        self.hosts = _hosts(placed, models, nodes)
        self.groups = [(group, group.each * len(host.nodes)) for host in self.hosts for group in host.groups]
        self.meters = [meter for group, _ in self.groups for meter in group.meters]
        self.ready = sum(pod.ready for pod in placed)
        self._parts = sum(pod.part for pod in placed if pod.ready)
        self.requested_cpu = sum(pod.cpu_request for pod in placed)
        self.requested_memory = sum(pod.memory_request for pod in placed)
        self.leaks = any(meter.leak for meter in self.meters)
        self.starts = any(group.starts for group, _ in self.groups)
        self._base = sum(
            count * meter.base for group, count in self.groups if not group.starts for meter in group.meters
        )
        self._per_unit = sum(model.cpu_per_unit for model in models.values())
        self._capacity, self._boundless = self._bounds()
        self.demand = self.unmet = self.used = self.memory = self.capacity = 0.0
        self.over = False

    @property
    def amounts(self) -> tuple[float, float, float, float]:
        """CPU demand, unmet demand, capacity and usage, in the order of a `Tick`."""
        return self.demand, self.unmet, self.capacity, self.used

    def _bounds(self) -> tuple[float, list[tuple[Group, int]]]:
        """Returns the maximum usage of the bounded ready pods, and the unbounded ready pods."""
        total, boundless = 0.0, []
        for host in self.hosts:
            count = len(host.nodes)
            ready = [group for group in host.groups if group.pods[0].ready]
            most = min(host.cpu, sum(group.each * group.most for group in ready))
            if most < math.inf:
                total += most * count
                continue
            boundless += [(group, group.each * count) for group in ready if group.most == math.inf]
            total += sum(group.each * group.most for group in ready if group.most < math.inf) * count
        return total, boundless

    def slow_starts(self, at: float) -> Iterator[tuple[SimPod, float]]:
        """Yields pods whose start lacks CPU now, or lacked it before, and when they become ready at this rate. A start
        takes as much CPU as it would use in the workload's start-up time (`cpu.startUp`)."""
        for group, _ in self.groups:
            if not group.starts or len(group.meters) < len(group.pods[0].containers):
                continue
            for pod in group.pods:
                if not pod.starts_slowly and not any(
                    beyond(meter.demand, meter.rate) for meter in group.meters
                ):
                    continue
                pod.starts_slowly = True
                waits = [0.0]
                for meter in group.meters:
                    container = pod.containers[meter.index]
                    work = pod.start_up * meter.base - (container.cpu_total - container.cpu_at_start)
                    waits.append(max(0.0, work) / meter.rate if meter.rate > 0 else math.inf)
                yield pod, at + max(waits)

    def measure(self, load: float, at: float) -> None:
        """Measures the usage of the pods under this load, and their memory at this time."""
        ready = self.ready
        share = load / self._parts if ready else 0.0
        capped = over = False
        used = memory = 0.0
        for host in self.hosts:
            want = held = 0.0
            for group in host.groups:
                group.measure(share * group.part, at)
                want += group.each * group.want
                held += group.each * group.held
                capped = capped or group.capped
                over = over or group.over
            host.want = want
            host.held = held
            if want > host.cpu:
                capped = capped or beyond(want, host.cpu)
                host.share()
            over = over or beyond(held, host.memory)
            used += host.want * len(host.nodes)
            memory += held * len(host.nodes)
        self.demand = load * self._per_unit + self._base
        self.unmet = 0.0 if ready else load * self._per_unit
        if capped:
            self.unmet += sum(count * group.missing for group, count in self.groups)
        self.used, self.memory, self.over = used, memory, over
        self.capacity = self._capacity
        for group, count in self._boundless:
            self.capacity += count * max(group.want, group.request)

    def pass_time(self, seconds: float) -> None:
        """Advances the time with the measured usage."""
        for meter in self.meters:
            meter.total += meter.rate * seconds
            if meter.kept:
                meter.peak = max(meter.peak, meter.work_memory)

    def first_overflow(self, at: float) -> float:
        """Returns when the first container or node has too much memory at the measured load; infinity: never."""
        times = [crossing(meter.memory, meter.memory_limit, meter.leak, at) for meter in self.meters]
        times += [group.overflow(at) for group, _ in self.groups]
        return min((*times, *(host.overflow(at) for host in self.hosts)), default=math.inf)

    def victims(self, at: float) -> list[Victim]:
        """Returns the containers to end now: all that have reached their limit or filled their heap; without any, a
        container of each pod that has reached its own limit or, without any, on each node with too little memory. A
        container never has more than its limit."""
        victims = [
            (pod, pod.containers[meter.index], meter.memory_limit, meter.heap_is_least)
            for group, _ in self.groups
            for meter in group.meters
            if crossing(meter.memory, meter.memory_limit, meter.leak, at) <= at + INSTANT
            for pod in group.pods
        ]
        victims = victims or [
            group.victim(pod)
            for group, _ in self.groups
            if group.overflow(at) <= at + INSTANT
            for pod in group.pods
        ]
        if victims:
            return victims
        full = [host for host in self.hosts if host.overflow(at) <= at + INSTANT]
        return [victim for host in full for victim in host.victims()]


# --- groups of pods that are alike ------------------------------------------------------------------------------------
def _hosts(placed: list[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel) -> list[Host]:
    """Groups nodes with equal sets of pods; a single group if pods share nothing on a node."""
    cpu = math.inf if nodes.cpu is None or nodes.headroom is not None else float(nodes.cpu)
    memory = math.inf if nodes.memory is None else float(nodes.memory)
    shared = min(cpu, memory) < math.inf
    keeps = any(model.memory_leak or model.memory_kept for model in models.values())
    companies: dict[int, dict[GroupKind, list[SimPod]]] = {}
    for pod in placed:
        assert pod.node is not None
        company = companies.setdefault(pod.node if shared else 0, {})
        company.setdefault(_kind(pod, keeps), []).append(pod)
    alike: dict[frozenset[tuple[GroupKind, int]], list[int]] = {}
    for node, company in companies.items():
        alike.setdefault(frozenset((kind, len(pods)) for kind, pods in company.items()), []).append(node)
    hosts = []
    for members in alike.values():
        groups = [
            _group([pod for node in members for pod in companies[node][kind]], len(pods), models, nodes)
            for kind, pods in companies[members[0]].items()
        ]
        hosts.append(Host(members, groups, cpu, memory))
    return hosts


def _kind(pod: SimPod, keeps: bool) -> GroupKind:
    running = tuple(container.running for container in pod.containers)
    memory = (
        tuple(number for container in pod.containers for number in (container.grows_from, container.peak))
        if keeps
        else ()
    )
    heaps = tuple(container.heap for container in pod.containers)
    return pod.shapes, pod.shape, pod.ready, _may_start(pod), pod.part, running, heaps, memory


def _group(
    pods: list[SimPod], pods_per_node: int, models: Mapping[str, ContainerModel], nodes: NodeModel
) -> Group:
    """Groups these pods, whose containers are measured together from now on."""
    first = pods[0]
    cap = first.shape.cpu_limit
    if nodes.headroom is not None:
        most = math.inf if nodes.cpu is None else nodes.cpu
        cap = min(cap, first.cpu_request + nodes.beyond(first.cpu_request), most)
    meters = []
    for index, (container, shape) in enumerate(zip(first.containers, first.shapes, strict=True)):
        if container.running:
            meter = _meter(models[container.name], shape, first)
            meter.index, meter.since, meter.peak = index, container.grows_from, container.peak
            most = meter.memory_base + container.heap
            meter.heap_is_least = most < meter.memory_limit
            meter.memory_limit = min(most, meter.memory_limit)
            meters.append(meter)
            for pod in pods:
                pod.containers[index].attach(meter)
    return Group(
        pods,
        pods_per_node,
        cap,
        meters,
        any(_starts(models[container.name], first) for container in first.containers),
        first.part,
        first.shape.memory_limit,
    )


def _starts(model: ContainerModel, pod: SimPod) -> bool:
    return model.cpu_start_up is not None and not pod.ready and _may_start(pod)


def _may_start(pod: SimPod) -> bool:
    """Whether an unready pod may still be starting."""
    return pod.deleted is None and not pod.blipped


def _meter(model: ContainerModel, shape: Shape, pod: SimPod) -> Meter:
    base = model.cpu_base
    if model.cpu_start_up is not None and _starts(model, pod):
        base = model.cpu_start_up
    return Meter(
        base=base,
        per_unit=model.cpu_per_unit if pod.ready else 0.0,
        memory_base=model.memory_base,
        memory_per_unit=model.memory_per_unit if pod.ready else 0.0,
        kept=model.memory_kept,
        leak=model.memory_leak,
        limit=shape.cpu_limit,
        memory_limit=shape.memory_limit,
        weight=max(LEAST_WEIGHT, float(shape.cpu_request or pod.cpu_weight)),
        request=shape.memory_request,
    )
