"""What pods use under a load: all of them together, at one time.

Pods that are alike (equal resources, equal state, equal company on their node) are measured once. An
`Arrangement` holds the groups at a time; it is valid until a pod or a container changes.

The load is shared by the ready pods in proportion to their parts: equally, as a Service does on average, where nothing
else is said. A container that runs in a pod that is not
ready uses its base only. CPU is bounded by the container's limit, then by the pod's request plus the nodes' `headroom`
where that is set (and by the size of one node), else by the node's CPU, which its pods share by their requests as the
kernel does; inside a pod its containers share likewise. With `headroom` pods do not compete: it says what neighbours
leave. CPU that can't be had is lost: nothing queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.simulate.cluster.state import INSTANT, Meter, Shape, SimContainer, SimPod
from hvpa.simulate.model import ContainerModel, NodeModel

Kind = tuple[tuple[Shape, ...], bool, bool, float, tuple[bool, ...], tuple[float, ...]]
"""What makes pods alike: bounds, readiness, whether they start while they are not ready, which containers run, and
what these keep of memory: since when they leak, and the most that the load took."""
Victim = tuple[SimPod, SimContainer, float]
"""A container that has too much memory: its pod, itself, and the bytes that it has."""
LEAST_WEIGHT: Final = 2.0
"""CPU weight of a container without a request: the kernel's least `cpu.shares` (Kubernetes: `MinShares`)."""
ROUNDING: Final = 1e-9
"""Relative difference that floats make up for: usage within it of a limit is not beyond the limit."""


def beyond(amount: float, bound: float) -> bool:
    """More than the bound, and not by rounding alone."""
    return amount > bound * (1.0 + ROUNDING)


def crossing(memory: float, bound: float, leak: float, at: float) -> float:
    """When memory that leaks at this rate goes beyond the bound, seconds; infinity: never."""
    if beyond(memory, bound):
        return at
    return at + max(0.0, bound - memory) / leak if leak else math.inf


def share_out(capacity: float, wants: Sequence[tuple[float, float, int]]) -> list[float]:
    """Divide CPU as the kernel's scheduler does: in proportion to weights, what one does not want going to the others.

    `wants` are (amount wanted, weight, how many there are of this kind); the result is what each one of a kind gets:
    900 for two that want 500 each, with weights 1 and 2, are 400 and 500.
    """
    grants = [0.0] * len(wants)
    left, waiting = capacity, list(range(len(wants)))
    while waiting:
        level = left / sum(wants[i][1] * wants[i][2] for i in waiting)
        content = [i for i in waiting if wants[i][0] <= level * wants[i][1]]
        for i in content or waiting:
            grants[i] = wants[i][0] if content else level * wants[i][1]
            left -= grants[i] * wants[i][2]
        waiting = [i for i in waiting if i not in content] if content else []
    return grants


@dataclass(slots=True, eq=False)
class Group:
    """Pods that are alike: `each` on each of the nodes that are alike. `cap` is what one pod may use of CPU; `want`
    and `held` are what one pod uses of CPU and memory. `starts`: until they are ready they use an amount of
    their own, which does not count as demand. `part` is that of each pod in the load."""

    pods: list[SimPod]
    each: int
    cap: float
    meters: list[Meter]
    starts: bool
    part: float = 1.0
    want: float = 0.0
    held: float = 0.0
    capped: bool = False
    over: bool = False

    def measure(self, share: float, at: float) -> None:
        """What each pod uses with this share of the load, and the memory that it has at this time."""
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
    def request(self) -> int:
        """The CPU request of one pod."""
        return self.pods[0].cpu_request

    @property
    def missing(self) -> float:
        """CPU that one pod was refused."""
        return 0.0 if self.starts else sum(meter.demand - meter.rate for meter in self.meters)

    @property
    def most(self) -> float:
        """CPU that one pod could use at most, as far as its own bounds say."""
        return min(self.cap, sum(meter.limit for meter in self.meters))


@dataclass(slots=True, eq=False)
class Host:
    """Nodes that are alike: `cpu` and `memory` are what the pods of one node share (infinity: without end), `want` and
    `held` what they use of both."""

    nodes: list[int]
    groups: list[Group]
    cpu: float
    memory: float
    want: float = 0.0
    held: float = 0.0

    def share(self) -> None:
        """The node's CPU does not suffice: its pods share it by their requests."""
        wants = [(one.want, max(LEAST_WEIGHT, float(one.request)), one.each) for one in self.groups]
        for group, grant in zip(self.groups, share_out(self.cpu, wants), strict=True):
            group.squeeze(grant)
        self.want = self.cpu

    def overflow(self, at: float) -> float:
        """When the node's memory no longer suffices, seconds; infinity: never as long as the load is the same."""
        if self.memory == math.inf:
            return math.inf
        leak = sum(group.each * sum(meter.leak for meter in group.meters) for group in self.groups)
        return crossing(self.held, self.memory, leak, at)

    def victims(self) -> list[Victim]:
        """On each of the nodes the container to kill: of the pod that has most beyond its request (of equals the
        newest), the container that has most beyond its own. As requests fit on a node, one that runs is found."""
        found: list[Victim] = []
        for node in self.nodes:
            _, _, pod, group = max(
                (group.held - pod.memory_request, pod.serial, pod, group)
                for group in self.groups
                for pod in group.pods
                if pod.node == node
            )
            worst = max(group.meters, key=lambda meter: meter.memory - meter.request)
            found.append((pod, pod.containers[worst.index], worst.memory))
        return found


class Arrangement:
    """Pods that have a node, in groups. `demand`, `unmet`, `used` and `capacity` (millicores) and `memory` (bytes)
    are all pods' together after `measure`; `over` says that there is too much memory somewhere."""

    def __init__(self, placed: list[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel) -> None:
        self.hosts = _hosts(placed, models, nodes)
        self.groups = [(group, group.each * len(host.nodes)) for host in self.hosts for group in host.groups]
        self.meters = [meter for group, _ in self.groups for meter in group.meters]
        self.ready = sum(pod.ready for pod in placed)
        self._parts = sum(pod.part for pod in placed if pod.ready)
        self.requested_cpu = sum(pod.cpu_request for pod in placed)
        self.requested_memory = sum(pod.memory_request for pod in placed)
        self.leaks = any(meter.leak for meter in self.meters)
        self._base = sum(
            count * meter.base for group, count in self.groups if not group.starts for meter in group.meters
        )
        self._per_unit = sum(model.cpu_per_unit for model in models.values())
        self._capacity, self._boundless = self._bounds()
        self.demand = self.unmet = self.used = self.memory = self.capacity = 0.0
        self.over = False

    @property
    def amounts(self) -> tuple[float, float, float, float]:
        """Demand, what is unmet of it, capacity and usage of CPU, in the order of a `Tick`."""
        return self.demand, self.unmet, self.capacity, self.used

    def _bounds(self) -> tuple[float, list[tuple[Group, int]]]:
        """What the ready pods could use at most, and the ready pods that nothing bounds."""
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

    def measure(self, load: float, at: float) -> None:
        """What the pods use under this load, and the memory that they have at this time."""
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
        """Time goes by with what was measured."""
        for meter in self.meters:
            meter.total += meter.rate * seconds
            if meter.kept:
                meter.peak = max(meter.peak, meter.work_memory)

    def first_overflow(self, at: float) -> float:
        """When the first container or node has too much memory, if the load stays as it was measured at this time;
        infinity: never."""
        times = [crossing(meter.memory, meter.memory_limit, meter.leak, at) for meter in self.meters]
        return min((*times, *(host.overflow(at) for host in self.hosts)), default=math.inf)

    def victims(self, at: float) -> list[Victim]:
        """The containers to kill now: all that are at their limit; where there are none, one on each node that has
        too little memory. A container never has more than its limit."""
        found = [
            (pod, pod.containers[meter.index], meter.memory_limit)
            for group, _ in self.groups
            for meter in group.meters
            if crossing(meter.memory, meter.memory_limit, meter.leak, at) <= at + INSTANT
            for pod in group.pods
        ]
        if found:
            return found
        full = [host for host in self.hosts if host.overflow(at) <= at + INSTANT]
        return [victim for host in full for victim in host.victims()]


# --- which pods are alike ---------------------------------------------------------------------------------------------
def _hosts(placed: list[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel) -> list[Host]:
    """Nodes with equal sets of pods, together; one for all where a node has nothing that its pods share."""
    cpu = math.inf if nodes.cpu is None or nodes.headroom is not None else float(nodes.cpu)
    memory = math.inf if nodes.memory is None else float(nodes.memory)
    shared = min(cpu, memory) < math.inf
    keeps = any(model.memory_leak or model.memory_kept for model in models.values())
    companies: dict[int, dict[Kind, list[SimPod]]] = {}
    for pod in placed:
        assert pod.node is not None
        company = companies.setdefault(pod.node if shared else 0, {})
        company.setdefault(_kind(pod, keeps), []).append(pod)
    alike: dict[frozenset[tuple[Kind, int]], list[int]] = {}
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


def _kind(pod: SimPod, keeps: bool) -> Kind:
    running = tuple(container.running for container in pod.containers)
    memory = tuple(number for one in pod.containers for number in (one.grows_from, one.peak)) if keeps else ()
    return pod.shapes, pod.ready, _may_start(pod), pod.part, running, memory


def _group(pods: list[SimPod], each: int, models: Mapping[str, ContainerModel], nodes: NodeModel) -> Group:
    """These pods, whose containers are measured together from now on."""
    first, cap = pods[0], math.inf
    if nodes.headroom is not None:
        cap = min(
            first.cpu_request + nodes.beyond(first.cpu_request), math.inf if nodes.cpu is None else nodes.cpu
        )
    meters = []
    for index, (container, shape) in enumerate(zip(first.containers, first.shapes, strict=True)):
        if container.running:
            meter = _meter(models[container.name], shape, first)
            meter.index, meter.since, meter.peak = index, container.grows_from, container.peak
            meters.append(meter)
            for pod in pods:
                pod.containers[index].attach(meter)
    return Group(
        pods, each, cap, meters, any(_starts(models[one.name], first) for one in first.containers), first.part
    )


def _starts(model: ContainerModel, pod: SimPod) -> bool:
    return model.cpu_start_up is not None and not pod.ready and _may_start(pod)


def _may_start(pod: SimPod) -> bool:
    """Whether a pod that is not ready is not so yet."""
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
        weight=max(LEAST_WEIGHT, float(shape.cpu_request)),
        request=shape.memory_request,
    )
