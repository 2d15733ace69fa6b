"""The workload as it runs: its controller, the scheduler and the kubelets in one, moved through virtual time.

What happens by itself inside a step (a pod becomes ready, a container starts again or runs out of memory, a node can be
used) happens at its exact time, whatever the step's length; the load is the same throughout a step. What is requested
from outside (`scale`, `set_template`, `evict`) happens at once: controller, scheduler and container start have no delay
of their own, so that a pod that fits on a node runs from the instant at which it was created. A deleted pod serves
nothing from that instant, and keeps its requests on its node until its grace is over.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable

from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.own_rollout import NEVER_REPLACING
from hvpa.simulate.cluster.nodes import Nodes
from hvpa.simulate.cluster.resizes import Resizes
from hvpa.simulate.cluster.rollout import roll_deployment, roll_stateful_set
from hvpa.simulate.cluster.state import (
    INSTANT,
    NOTHING,
    SimContainer,
    SimPod,
    Template,
    with_default_requests,
)
from hvpa.simulate.cluster.usage import Arrangement
from hvpa.simulate.model import NodeModel, SimulationEvent, Tick, WorkloadModel

LONG_AGO = -3600.0
"""When the pods that a simulation begins with were created, seconds."""
LEAST_PART = 0.1
"""The least part of the load that a pod has, beside others of 1."""


class Workload:
    """A workload with all that makes it run.

    At time 0 all pods for which there is room have long been ready, and a leak begins at 0.

    `replicas` and `template` are what was set last; change them by `scale` and `set_template`. `revision` counts
    templates. `admission` changes the resources of new pods as a webhook does (None: they get the template's). `pods`
    are those that exist, oldest first. `changes` grows whenever a pod comes or goes, gets a node, becomes ready or
    not ready, or has a container killed or started again. `on_oom` is called with each container that is
    OOMKilled, and when. `events` is for the caller to drain. `node_seconds` is the time of all nodes together, from
    when they were added (nothing where nodes have no size). `in_place`: running pods can be
    resized.
    """

    def __init__(self, model: WorkloadModel, nodes: NodeModel) -> None:
        self.model = model
        self.in_place = model.resize == "InPlace"
        self.replicas = model.replicas
        self.template: Template = {
            one.name: ResourceRequirements(dict(one.requests), dict(one.limits)) for one in model.containers
        }
        self.revision = 1
        self.admission: Callable[[Template], Template] | None = None
        self.pods: list[SimPod] = []
        self._terminating: list[tuple[float, SimPod]] = []
        """Deleted pods that are still on their nodes, and until when."""
        self.changes = 0
        self.events: list[SimulationEvent] = []
        self.on_oom: Callable[[SimPod, SimContainer, float], None] | None = None
        self.node_seconds = 0.0
        self._node_model = nodes
        self._nodes = Nodes(nodes)
        self._resizes = Resizes(self._nodes, model, self.events)
        self._models = {one.name: one for one in model.containers}
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

    # --- what others do to it ---

    def scale(self, replicas: int, now: float) -> None:
        """Set the number of replicas (`/scale`); the controller acts at once."""
        if replicas != self.replicas:
            self.replicas = replicas
            self._react(now)

    def hold(self, *, paused: bool, partition: int, now: float) -> None:
        """Set `spec.paused` of a Deployment and the partition of a StatefulSet; the controller acts at once. A kind
        that never replaces pods stays as if it were paused."""
        paused = paused or self._never_replaces
        if (paused, partition) != (self.paused, self.partition):
            self.paused, self.partition = paused, partition
            self._react(now)

    def set_template(self, template: Template, now: float) -> None:
        """Set the resources of new pods; a rollout begins where they differ. Pods that were made from an equal template
        (a rollout that is taken back) count as updated."""
        if template == self.template:
            return
        self.template = template
        self.revision += 1
        for pod in self.pods:
            if pod.template == template:
                pod.revision = self.revision
        self._react(now)

    def resize(self, pod: SimPod, resources: Template, now: float) -> None:
        """Request other resources of this one pod (`/resize`); it has them as soon as its node allows it."""
        self.resize_all([(pod, resources)], now)

    def resize_all(self, wanted: Iterable[tuple[SimPod, Template]], now: float) -> None:
        """The same for several pods at once."""
        for pod, resources in wanted:
            self._resizes.request(pod, resources, now)
        self._react(now)

    def refusal(self, pod: SimPod, resources: Template) -> str:
        """Why the API server refuses to resize the pod so; empty if it does not."""
        return self._resizes.refusal(pod, resources)

    def evict(self, pod: SimPod, now: float) -> None:
        """Delete the pod (the eviction API); the controller replaces it at once. Nothing, if it is gone already."""
        if pod.deleted is None:
            self.remove(pod, now, replaced=True)
            self._react(now)

    # --- what it is like ---

    @property
    def node_count(self) -> int:
        """Nodes, those that start included; 0 where nodes have no size."""
        return self._nodes.count

    @property
    def pod_resources(self) -> Template:
        """Resources of a new pod, before any webhook: the template's, with the requests that it leaves out."""
        return with_default_requests(self.template)

    @property
    def updated_replicas(self) -> int:
        """Pods of the present template."""
        return sum(pod.revision == self.revision for pod in self.pods)

    @property
    def ready_replicas(self) -> int:
        """Pods that are ready, and with it available: minReadySeconds is 0."""
        return sum(pod.ready for pod in self.pods)

    # --- what its controller does ---

    def create(self, now: float, ordinal: int | None = None) -> None:
        """A new pod from the present template, not scheduled yet; with its ordinal in a StatefulSet."""
        self._serial += 1
        resources = self.pod_resources if self.admission is None else self.admission(self.pod_resources)
        if list(resources) != list(self._models):  # containers in their order
            resources = {name: resources.get(name, NOTHING) for name in self._models}
        name = f"{self.model.name}-{self._serial if ordinal is None else ordinal}"
        pod = SimPod(name, self._serial, self.template, resources, now)
        pod.revision = self.revision
        pod.start_up = self.model.start_up
        if self.model.spread:
            drawn = random.Random(f"part {self.model.seed} {self._serial}").gauss(1, self.model.spread)
            pod.part = max(LEAST_PART, drawn)
        if ordinal is not None:
            pod.ordinal = ordinal
        self.pods.append(pod)

    def remove(self, pod: SimPod, now: float, replaced: bool = False) -> None:
        """Delete the pod; `replaced` pods count as restarts."""
        self.pods.remove(pod)
        pod.deleted = now
        self._restarts += replaced
        if pod.node is not None:
            pod.ready = False
            self._terminating.append((now + self.model.termination_grace, pod))
            self._release(now)

    def _release(self, now: float) -> None:
        """Deleted pods whose grace is over leave their nodes."""
        over = [one for one in self._terminating if one[0] <= now + INSTANT]
        self._terminating = [one for one in self._terminating if one[0] > now + INSTANT]
        for _, pod in over:
            self._nodes.release(pod, now)

    @property
    def _placed(self) -> list[SimPod]:
        """The pods that have a node, deleted ones included."""
        pods = [pod for pod in self.pods if pod.node is not None]
        return pods + [pod for _, pod in self._terminating]

    # --- time ---

    def advance(self, now: float, step: float, load: float) -> Tick:
        """Let `step` seconds (more than 0) go by from `now` (where the last step ended), with this load."""
        end = now + step
        arrangement = self._arrangement
        if arrangement is None or self._next <= end + INSTANT or self._resizes.blocked:
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
        """A step in which something happens: from one event to the next. What happens at its end belongs to it, what
        the load does at its beginning too (memory above a limit is found there)."""
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
        """Measure from now until the next event, or the end; not later than now where memory does not suffice."""
        arrangement = self._measure(at, load)
        overflow = arrangement.first_overflow(at)
        if overflow <= at + INSTANT:
            return at, arrangement
        until = min(end, self._next, overflow)
        if arrangement.leaks:
            arrangement.measure(load, until)
        return until, arrangement

    def _measure(self, at: float, load: float) -> Arrangement:
        """What the pods use now."""
        if self._arrangement is None:
            self._arrangement = Arrangement(self._placed, self._models, self._node_model)
        self._tick = None
        self._arrangement.measure(load, at)
        return self._arrangement

    def _unblock(self, at: float, load: float) -> bool:
        """Resizes that waited for memory to become free are done where it has; whether any was."""
        self._measure(at, load)
        if unblocked := self._resizes.is_unblocked(self.pods):
            self._react(at)
        return unblocked

    def _kill(self, arrangement: Arrangement, now: float) -> None:
        """Containers with too much memory are OOMKilled."""
        for pod, container, memory in arrangement.victims(now):
            pod.kill(container, now)
            if self.on_oom is not None:
                self.on_oom(pod, container, now)
            self._ooms += 1
            text = f"Container {container.name} of {pod.name} had {math.ceil(memory)} bytes of memory"
            self.events.append(SimulationEvent(now, "OOM", "OOMKilled", text))
        self._react(now)

    def _catch_up(self, now: float) -> None:
        """What is due by now happens, and what follows from it."""
        while self._next <= now + INSTANT:
            self._release(now)
            self._nodes.expire(now)
            self._restarts += sum(pod.catch_up(now) for pod in self.pods)
            self._blip(now)
            self._react(now)

    def _blip(self, now: float) -> None:
        """One of the ready pods is not ready for a moment, where that is due."""
        while self._blips and self._next_blip <= now + INSTANT:
            _, place = self._blips.popleft()
            ready = [pod for pod in self.pods if pod.ready]
            if ready:
                ready[int(place * len(ready))].blip(now, self.model.blip_length)

    @property
    def _next_blip(self) -> float:
        return self._blips[0][0] if self._blips else math.inf

    def _react(self, now: float) -> None:
        """Something changed: the controller acts, then the kubelets (on resizes), then the scheduler."""
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
        """Pods get nodes, and start there."""
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
        """All pods, ready for long."""
        for ordinal in range(self.replicas):
            self.create(LONG_AGO, ordinal if self.model.has_ordinals else None)
        self._schedule(LONG_AGO, at_once=True)
        for pod in self.pods:
            if pod.node is not None:
                pod.settle(min(0.0, LONG_AGO + self.model.start_up))
        self._next = min(self._nodes.next_event(0.0), self._next_blip)
