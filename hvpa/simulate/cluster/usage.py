"""What pods use under a load: all of them together, at one time.

Pods that are alike (equal resources, equal state, equal company on their node) are measured once. An
`Arrangement` holds the groups at a time; it is valid until a pod or a container changes.

The load is shared equally by the ready pods, as a Service does on average. A container that runs in a pod that is not
ready uses its base only. CPU is bounded by the container's limit, then by the pod's request plus the nodes' `headroom`
where that is set (and by the size of one node), else by the node's CPU, which its pods share by their requests as the
kernel does; inside a pod its containers share likewise. With `headroom` pods do not compete: it says what neighbours
leave. CPU that can't be had is lost: nothing queues.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from hvpa.simulate.cluster.groups import Group, Host, Victim, beyond, crossing
from hvpa.simulate.cluster.state import INSTANT, Shape, SimPod
from hvpa.simulate.model import ContainerModel, NodeModel

Kind = tuple[tuple[Shape, ...], bool, tuple[bool, ...], tuple[float, ...]]
"""What makes pods alike: bounds, readiness, which containers run, and since when they leak."""


class Arrangement:
    """The pods that have a node, in groups. `demand`, `unmet`, `used` and `capacity` (millicores) and `memory` (bytes)
    are all pods' together after `measure`; `over` says that there is too much memory somewhere."""

    def __init__(
        self, pods: Iterable[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel
    ) -> None:
        placed = [pod for pod in pods if pod.node is not None]
        self.hosts = _hosts(placed, models, nodes)
        self.groups = [(group, group.each * host.count) for host in self.hosts for group in host.groups]
        self.meters = [meter for group, _ in self.groups for meter in group.meters]
        self.ready = sum(pod.ready for pod in placed)
        self.requested_cpu = sum(pod.cpu_request for pod in placed)
        self.requested_memory = sum(pod.memory_request for pod in placed)
        self.leaks = any(meter.leak for meter in self.meters)
        self._base = sum(count * meter.base for group, count in self.groups for meter in group.meters)
        self._per_unit = sum(model.cpu_per_unit for model in models.values())
        self._capacity, self._boundless = self._bounds()
        self.demand = self.unmet = self.used = self.memory = self.capacity = 0.0
        self.over = False

    def _bounds(self) -> tuple[float, list[tuple[Group, int]]]:
        """What the ready pods could use at most, and the ready pods that nothing bounds."""
        total, boundless = 0.0, []
        for host in self.hosts:
            ready = [group for group in host.groups if group.pods[0].ready]
            most = min(host.cpu, sum(group.each * group.most for group in ready))
            if most < math.inf:
                total += most * host.count
                continue
            boundless += [(group, group.each * host.count) for group in ready if group.most == math.inf]
            total += sum(group.each * group.most for group in ready if group.most < math.inf) * host.count
        return total, boundless

    def measure(self, load: float, at: float) -> None:
        """What the pods use under this load, and the memory that they have at this time."""
        ready = self.ready
        share = load / ready if ready else 0.0
        capped = over = False
        used = memory = 0.0
        for host in self.hosts:
            host.capped = False
            want = held = 0.0
            for group in host.groups:
                group.measure(share, at)
                want += group.each * group.want
                held += group.each * group.held
                capped = capped or group.capped
                over = over or group.over
            host.want = want
            host.held = held
            if want > host.cpu:
                host.share()
                capped = capped or host.capped
            over = over or beyond(held, host.memory)
            used += host.want * host.count
            memory += held * host.count
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

    def first_overflow(self, at: float) -> float:
        """When the first container or node has too much memory, if the load stays as it was measured at this time;
        infinity: never."""
        times = [crossing(meter.memory, meter.memory_limit, meter.leak, at) for meter in self.meters]
        return min((*times, *(host.overflow(at) for host in self.hosts)), default=math.inf)

    def victims(self, at: float) -> list[Victim]:
        """The containers to kill now: all that are at their limit; where there are none, one on each node that has
        too little memory. A container never has more than its limit."""
        found: list[Victim] = []
        for group, _ in self.groups:
            for meter in group.meters:
                if crossing(meter.memory, meter.memory_limit, meter.leak, at) <= at + INSTANT:
                    found += [(pod, pod.containers[meter.index], meter.memory_limit) for pod in group.pods]
        if not found:
            for host in self.hosts:
                if host.overflow(at) <= at + INSTANT:
                    found += host.victims()
        return found


def _hosts(placed: list[SimPod], models: Mapping[str, ContainerModel], nodes: NodeModel) -> list[Host]:
    """Nodes with equal sets of pods, together; one for all where a node has nothing that its pods share."""
    cpu = math.inf if nodes.cpu is None or nodes.headroom is not None else float(nodes.cpu)
    memory = math.inf if nodes.memory is None else float(nodes.memory)
    shared = min(cpu, memory) < math.inf
    leaks = any(model.memory_leak for model in models.values())
    companies: dict[int, dict[Kind, list[SimPod]]] = {}
    for pod in placed:
        assert pod.node is not None
        company = companies.setdefault(pod.node if shared else 0, {})
        company.setdefault(_kind(pod, leaks), []).append(pod)
    alike: dict[frozenset[tuple[Kind, int]], list[int]] = {}
    for node, company in companies.items():
        alike.setdefault(frozenset((kind, len(pods)) for kind, pods in company.items()), []).append(node)
    hosts = []
    for members in alike.values():
        groups = [
            Group([pod for node in members for pod in companies[node][kind]], len(pods), models, nodes)
            for kind, pods in companies[members[0]].items()
        ]
        hosts.append(Host(members, groups, cpu, memory))
    return hosts


def _kind(pod: SimPod, leaks: bool) -> Kind:
    running = tuple(container.running for container in pod.containers)
    since = tuple(container.grows_from for container in pod.containers) if leaks else ()
    return pod.shapes, pod.ready, running, since
