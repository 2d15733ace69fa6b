"""The running workload: controller, scheduler and kubelets together, moved through virtual time.

Events inside a step (a pod becomes ready, a container restarts or runs out of memory, a node can be used) happen at
their exact time, regardless of the step's length; the load is constant throughout a step. Requests from outside
(`scale`, `set_template`, `evict`) take effect at once. Controller, scheduler and container start have no delay, so a
pod that fits on a node runs from the instant of its creation. A deleted pod stops serving at once, and keeps its
requests on its node until its grace period ends.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable

from hvpa.api.values.quantity import CPU, MEMORY, Resource
from hvpa.core.workload.own_rollout import NEVER_REPLACING
from hvpa_lab.simulate.cluster.nodes import Nodes
from hvpa_lab.simulate.cluster.resizes import Resizes
from hvpa_lab.simulate.cluster.rollout import roll_deployment, roll_stateful_set
from hvpa_lab.simulate.cluster.state import (
    INSTANT,
    NOTHING,
    SimContainer,
    SimPod,
    Template,
    with_default_requests,
)
from hvpa_lab.simulate.cluster.usage import Arrangement
from hvpa_lab.simulate.model import NodeModel, SimulationEvent, Tick, WorkloadModel

LONG_AGO = -3600.0
"""Creation time of the initial pods, in seconds."""
LEAST_PART = 0.1
"""Smallest share of the load of a pod; the mean is 1."""


class SimWorkload:
    """A workload with its controller, scheduler and kubelets.

    At time 0 all pods that fit on nodes have long been ready, and leaks start.
    """

    def __init__(self, model: WorkloadModel, nodes: NodeModel) -> None:
        self.model = model
        self.in_place = model.resize == "InPlace"
        """Running pods can be resized."""
        self.replicas = model.replicas
        """The last set value; change it with `scale`."""
        self.template: Template = model.template
        """The last set template; change it with `set_template`."""
        self._names = list(self.template)
        self.revision = 1
        """Number of templates so far."""
        self.admission: Callable[[Template], Template] | None = None
        """Changes the resources of new pods as a webhook does; None: pods get the template's."""
        self.pods: list[SimPod] = []
        """Existing pods, oldest first."""
        self._terminating: list[tuple[float, SimPod]] = []
        """Deleted pods that are still on their nodes, and until when."""
        self.changes = 0
        """Grows whenever a pod is created, deleted or scheduled, becomes ready or unready, or has a container killed or
        restarted."""
        self.events: list[SimulationEvent] = []
        """Events for the caller to drain."""
        self.on_oom: Callable[[SimPod, SimContainer, float], None] | None = None
        """Called with each container that is OOMKilled, and the time."""
        self.node_seconds = 0.0
        """Time of all nodes together since they were added; 0 if nodes have no size."""
        self._node_model = nodes
        self._nodes = Nodes(nodes)
        self._resizes = Resizes(self._nodes, model, self.events)
        self._models = {container.name: container for container in model.containers}
        self._never_replaces = model.kind in NEVER_REPLACING
        self.paused, self.partition = self._never_replaces, 0
        self._serial = 0
        self._blips = deque(model.blips)
        self._ooms = self._restarts = 0
        self._arrangement: Arrangement | None = None
        self._next = math.inf
        self._load = math.nan
        self._tick: Tick | None = None
        self._settle()

    # --- requests from outside ---

    def scale(self, replicas: int, now: float) -> None:
        """Sets the number of replicas (`/scale`); the controller acts at once."""
        if replicas != self.replicas:
            self.replicas = replicas
            self._react(now)

    def hold(self, *, paused: bool, partition: int, now: float) -> None:
        """Sets `spec.paused` of a Deployment and the partition of a StatefulSet; the controller acts at once. A kind
        that never replaces pods always counts as paused."""
        paused = paused or self._never_replaces
        if (paused, partition) != (self.paused, self.partition):
            self.paused, self.partition = paused, partition
            self._react(now)

    def set_template(self, template: Template, now: float) -> None:
        """Sets the resources of new pods. If they differ, a rollout starts. Pods created from an equal template (after
        a rollback) count as updated."""
        if template == self.template:
            return
        self.template = template
        self.revision += 1
        for pod in self.pods:
            if pod.template == template:
                pod.revision = self.revision
        self._react(now)

    def resize(self, pod: SimPod, resources: Template, now: float) -> None:
        """Requests other resources of this pod (`/resize`). The pod has them as soon as its node allows it."""
        self.resize_all([(pod, resources)], now)

    def resize_all(self, wanted: Iterable[tuple[SimPod, Template]], now: float) -> None:
        """Same as `resize` for several pods at once."""
        for pod, resources in wanted:
            self._resizes.request(pod, resources, now)
        self._react(now)

    def refusal(self, pod: SimPod, resources: Template) -> str:
        """Returns why the API server refuses this resize of the pod; empty if it does not."""
        return self._resizes.refusal(pod, resources)

    def evict(self, pod: SimPod, now: float) -> None:
        """Deletes the pod (eviction API); the controller replaces it at once. Does nothing if the pod is already
        deleted."""
        if pod.deleted is None:
            self.remove(pod, now, replaced=True)
            self._react(now)

    # --- state ---

    @property
    def node_count(self) -> int:
        """Number of nodes, including starting nodes; 0 if nodes have no size."""
        return self._nodes.count

    @property
    def node_size(self) -> dict[Resource, int]:
        """Allocatable CPU and memory of a node; unlimited resources are missing."""
        sizes: dict[Resource, int | None] = {CPU: self._node_model.cpu, MEMORY: self._node_model.memory}
        return {resource: size for resource, size in sizes.items() if size is not None}

    @property
    def pod_resources(self) -> Template:
        """Resources of a new pod before any webhook: the template's, with missing requests filled in."""
        return with_default_requests(self.template)

    @property
    def updated_replicas(self) -> int:
        """Number of pods of the current template."""
        return sum(pod.revision == self.revision for pod in self.pods)

    @property
    def ready_replicas(self) -> int:
        """Number of ready pods. They are available too: minReadySeconds is 0."""
        return sum(pod.ready for pod in self.pods)

    # --- actions of the controller ---

    def create(self, now: float, ordinal: int | None = None) -> None:
        """Creates an unscheduled pod from the current template; in a StatefulSet, with its ordinal."""
        self._serial += 1
        resources = self.pod_resources if self.admission is None else self.admission(self.pod_resources)
        if list(resources) != self._names:  # containers in their order
            resources = {name: resources.get(name, NOTHING) for name in self._names}
        name = f"{self.model.name}-{self._serial if ordinal is None else ordinal}"
        pod = SimPod(name, self._serial, self.template, resources, now)
        pod.revision = self.revision
        pod.start_up = self.model.start_up
        pod.node_memory = self.node_size.get(MEMORY, math.inf)
        for container in pod.containers:
            container.runtime = self._models[container.name].runtime
        if self.model.spread:
            drawn = random.Random(f"part {self.model.seed} {self._serial}").gauss(1, self.model.spread)
            pod.part = max(LEAST_PART, drawn)
        if ordinal is not None:
            pod.ordinal = ordinal
        self.pods.append(pod)

    def remove(self, pod: SimPod, now: float, replaced: bool = False) -> None:
        """Deletes the pod; `replaced` pods count as restarts."""
        self.pods.remove(pod)
        pod.deleted = now
        self._restarts += replaced
        if pod.node is not None:
            pod.ready = False
            self._terminating.append((now + self.model.termination_grace, pod))
            self._release(now)

    def _release(self, now: float) -> None:
        """Removes deleted pods from their nodes once their grace period is over."""
        over = [entry for entry in self._terminating if entry[0] <= now + INSTANT]
        self._terminating = [entry for entry in self._terminating if entry[0] > now + INSTANT]
        for _, pod in over:
            self._nodes.release(pod, now)

    @property
    def _placed(self) -> list[SimPod]:
        """The pods that have a node, including deleted pods."""
        pods = [pod for pod in self.pods if pod.node is not None]
        return pods + [pod for _, pod in self._terminating]

    # --- time ---

    def advance(self, now: float, step: float, load: float) -> Tick:
        """Advances the time by `step` seconds (more than 0) from `now` (the end of the last step), with this load."""
        end = now + step
        arrangement = self._arrangement
        if arrangement is None or self._next <= end + INSTANT or self._resizes.blocked or arrangement.starts:
            return self._by_parts(now, step, load)
        if load != self._load or self._tick is None or arrangement.leaks:
            arrangement.measure(load, end)
            if arrangement.over:
                return self._by_parts(now, step, load)
            self._load = load
            requested = arrangement.requested_cpu, arrangement.requested_memory
            counts = len(self.pods), arrangement.ready, 0, 0
            self._tick = Tick(*arrangement.amounts, arrangement.memory, *requested, *counts)
        arrangement.pass_time(step)
        self.node_seconds += self._nodes.count * step
        return self._tick

    def _by_parts(self, now: float, step: float, load: float) -> Tick:
        """Advances through a step with events, from event to event. Events at the step's end belong to it, and so do
        effects of the load at its start (memory above a limit is found there)."""
        end, at = now + step, now
        parts = [0.0] * 4
        memory = 0.0
        while True:
            self._catch_up(at)
            if at >= end - INSTANT:
                break
            if self._resizes.blocked and self._unblock(at, load):
                continue
            until, arrangement = self._until(at, end, load)
            if until <= at:
                self._kill(arrangement, at)
                continue
            seconds = until - at
            arrangement.pass_time(seconds)
            self.node_seconds += self.node_count * seconds
            parts = [part + amount * seconds for part, amount in zip(parts, arrangement.amounts, strict=True)]
            memory = arrangement.memory
            at = until
        placed = self._placed
        requested = sum(pod.cpu_request for pod in placed), sum(pod.memory_request for pod in placed)
        counts = len(self.pods), self.ready_replicas, self._ooms, self._restarts
        self._ooms = self._restarts = 0
        demand, unmet, capacity, used = (part / step for part in parts)
        return Tick(demand, unmet, capacity, used, memory, *requested, *counts)

    def _until(self, at: float, end: float, load: float) -> tuple[float, Arrangement]:
        """Measures from now until the next event or the end; returns now if memory is already exhausted."""
        arrangement = self._measure(at, load)
        overflow = arrangement.first_overflow(at)
        if overflow <= at + INSTANT:
            return at, arrangement
        until = min(end, self._next, overflow)
        if arrangement.leaks:
            arrangement.measure(load, until)
        return until, arrangement

    def _measure(self, at: float, load: float) -> Arrangement:
        """Returns the current usage of the pods."""
        if self._arrangement is None:
            self._arrangement = Arrangement(self._placed, self._models, self._node_model)
        self._tick = None
        self._arrangement.measure(load, at)
        for pod, ready_at in self._arrangement.slow_starts(at):
            pod.ready_at = ready_at
            self._next = min(self._next, ready_at)
        return self._arrangement

    def _unblock(self, at: float, load: float) -> bool:
        """Completes resizes that waited for free memory, if there is enough now; returns whether it completed any."""
        self._measure(at, load)
        if unblocked := self._resizes.is_unblocked(self.pods):
            self._react(at)
        return unblocked

    def _kill(self, arrangement: Arrangement, now: float) -> None:
        """Ends containers with too much memory. A container with a full heap is not OOMKilled."""
        for pod, container, memory, of_heap in arrangement.victims(now):
            pod.end(container, now, of_heap=of_heap)
            if self.on_oom is not None and not of_heap:
                self.on_oom(pod, container, now)
            self._ooms += 1
            text = f"Container {container.name} of {pod.name} had {math.ceil(memory)} bytes of memory"
            if of_heap:
                text = f"{text}, and its heap of {math.ceil(container.heap)} was full"
            self.events.append(SimulationEvent(now, "OOM", "HeapFull" if of_heap else "OOMKilled", text))
        self._react(now)

    def _catch_up(self, now: float) -> None:
        """Executes all events that are due by now, and their consequences."""
        while self._next <= now + INSTANT:
            self._release(now)
            self._nodes.expire(now)
            self._restarts += sum(pod.catch_up(now) for pod in self.pods)
            self._blip(now)
            self._react(now)

    def _blip(self, now: float) -> None:
        """Makes a ready pod unready for a moment, if that is due."""
        while self._blips and self._next_blip <= now + INSTANT:
            _, place = self._blips.popleft()
            ready = [pod for pod in self.pods if pod.ready]
            if ready:
                ready[int(place * len(ready))].blip(now, self.model.blip_length)

    @property
    def _next_blip(self) -> float:
        return self._blips[0][0] if self._blips else math.inf

    def _react(self, now: float) -> None:
        """Reacts to a change: first the controller acts, then the kubelets (on resizes), then the scheduler."""
        self.changes += 1
        self._arrangement = None
        if self.model.has_ordinals:
            roll_stateful_set(self, now)
        else:
            roll_deployment(self, self.model.max_surge, self.model.max_unavailable, now)
        if self.in_place:
            self._resizes.settle(self.pods, now)
        self._schedule(now)

    def _schedule(self, now: float, at_once: bool = False) -> None:
        """Assigns nodes to pods and starts them."""
        pending = [pod for pod in self.pods if pod.node is None]
        bound, refused = self._nodes.schedule(pending, now, at_once)
        for pod in bound:
            pod.start(now)
        for pod, reason in refused:
            if not pod.refused:
                pod.refused = True
                self.events.append(SimulationEvent(max(0.0, now), "Unschedulable", "Unschedulable", reason))
        self._next = min((pod.next_event for pod in self.pods), default=math.inf)
        ends = [end for end, _ in self._terminating]
        self._next = min(self._next, self._nodes.next_event(now), self._next_blip, *ends)

    def _settle(self) -> None:
        """Creates the initial pods, which have long been ready."""
        for ordinal in range(self.replicas):
            self.create(LONG_AGO, ordinal if self.model.has_ordinals else None)
        self._schedule(LONG_AGO, at_once=True)
        for pod in self.pods:
            if pod.node is not None:
                pod.settle(min(0.0, LONG_AGO + self.model.start_up))
        self._next = min(self._nodes.next_event(0.0), self._next_blip)
