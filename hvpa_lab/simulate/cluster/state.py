"""A pod and its containers: their state, its next change, and the kubelet's restarts.

Times are seconds of the simulation; CPU in millicores (totals in millicore-seconds), memory in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from hvpa.api.values.quantity import CPU, MEMORY, Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.model import RuntimeModel

ResizeState = Literal["", "Deferred", "Infeasible", "Error"]


INSTANT: Final = 1e-6
"""Seconds that count as the same instant: far more than rounding errors of times, far less than any event takes."""

Template = Mapping[str, ResourceRequirements]
"""Requests and limits by container name; `POD` has those of the pod itself, if it has any."""

NOTHING: Final = ResourceRequirements({}, {})
"""A container without requests and limits."""

FIRST_BACK_OFF: Final = 10.0
LONGEST_BACK_OFF: Final = 300.0
STABLE: Final = 600.0
"""In seconds: the kubelet's first and longest back-off between restarts, and how long a container must run to reset it
(`initialCrashLoopBackOff`, `MaxContainerBackOff`; an entry in client-go's `Backoff` expires after twice the latter)."""


class Shape(NamedTuple):
    """Bounds of a container or a pod: requests in whole units, limits in the same units (infinity: none)."""

    cpu_request: int
    memory_request: int
    cpu_limit: float
    memory_limit: float


def shape_of(resources: ResourceRequirements) -> Shape:
    """Returns the bounds of these resources. A missing request equals the limit, as the API server sets it."""
    requests, limits = resources.requests, resources.limits

    def request(resource: Resource) -> int:
        return requests.get(resource, limits.get(resource, 0))

    return Shape(request(CPU), request(MEMORY), limits.get(CPU, math.inf), limits.get(MEMORY, math.inf))


def container_shapes(template: Template) -> tuple[Shape, ...]:
    """Returns the bounds of each container."""
    return tuple([shape_of(requirements) for name, requirements in template.items() if name != POD])


def pod_shape(template: Template) -> Shape:
    """Returns the bounds of a pod. If it does not request a resource itself, it requests the total of its containers.

    Example: a pod requests 1 core and has no memory of its own, its two containers request 300m and 1 GiB each. The pod
    requests 1 core and 2 GiB, without limits.
    """
    shapes, own = container_shapes(template), template.get(POD, NOTHING)
    cpu, memory = sum(shape.cpu_request for shape in shapes), sum(shape.memory_request for shape in shapes)
    return Shape(
        own.requests.get(CPU, cpu),
        own.requests.get(MEMORY, memory),
        own.limits.get(CPU, math.inf),
        own.limits.get(MEMORY, math.inf),
    )


def with_default_requests(template: Template) -> Template:
    """Returns the resources of a new pod: a container's missing request equals its limit (`SetDefaults_Pod`). If the
    pod itself has limits, its missing request is the total of its containers, or its limit if no container requests the
    resource (`defaultPodRequests`)."""
    filled = {
        name: ResourceRequirements({**requirements.limits, **requirements.requests}, requirements.limits)
        for name, requirements in template.items()
        if name != POD
    }
    own = template.get(POD)
    if own is not None:
        totals: dict[Resource, int] = {}
        for requirements in filled.values() if own.limits else ():
            for resource, amount in requirements.requests.items():
                totals[resource] = totals.get(resource, 0) + amount
        filled[POD] = ResourceRequirements({**own.limits, **totals, **own.requests}, own.limits)
    return template if filled == template else filled


@dataclass(slots=True, eq=False)
class Meter:
    """Usage of a container in each pod of a group. CPU in millicores, memory in bytes."""

    base: float = 0.0
    """CPU without load."""
    per_unit: float = 0.0
    """CPU per unit of load."""
    memory_base: float = 0.0
    """Memory without load."""
    memory_per_unit: float = 0.0
    """Memory per unit of load."""
    leak: float = 0.0
    """Bytes per second since `since`."""
    since: float = 0.0
    limit: float = math.inf
    """CPU limit."""
    memory_limit: float = math.inf
    """The least of the container's limit and of its base with a full heap."""
    heap_is_least: bool = False
    """`memory_limit` is that of the heap."""
    weight: float = 0.0
    """CPU request, the weight when CPU is shared."""
    request: int = 0
    """Memory request."""
    kept: float = 0.0
    """Share of the load's memory that stays when the load falls."""
    peak: float = 0.0
    """Most memory that the load took."""
    work_memory: float = 0.0
    """Memory that the load takes, without the base."""
    index: int = 0
    """Position of the container in its pod."""
    demand: float = 0.0
    """CPU needed."""
    rate: float = 0.0
    """CPU used."""
    memory: float = 0.0
    """Memory used."""
    total: float = 0.0
    """Millicore-seconds since the meter's start."""


IDLE: Final = Meter()
"""The meter of containers that do not run; never modified."""


@dataclass(slots=True, eq=False)
class SimContainer:
    """A container of a pod."""

    name: str
    runtime: RuntimeModel | None = None
    heap: float = math.inf
    """Maximum heap of a runtime, in bytes, as calculated at the last start."""
    running: bool = False
    started: float | None = None
    """Last start; None: not started yet."""
    grows_from: float = 0.0
    """The time from which a leak counts."""
    restarts: int = 0
    restart_at: float | None = None
    """When it will be restarted; None: it runs, or has not started."""
    oom_at: float | None = None
    """Time of the last OOM, if the container has not failed since."""
    failed_at: float | None = None
    """When it last ended because its heap was full, if it was not OOMKilled since."""
    oom_started: float | None = None
    """Start of the run that the last OOM ended."""
    back_off: float = 0.0
    cpu_at_start: float = 0.0
    """`cpu_total` at the last start."""
    _stable_from: float = -math.inf
    _meter: Meter = IDLE
    _total: float = 0.0

    @property
    def cpu_total(self) -> float:
        """Millicore-seconds used since the pod's start, over all restarts."""
        return self._total + self._meter.total

    @property
    def memory(self) -> float:
        """Bytes used at the end of the last step; 0 while the container does not run."""
        return self._meter.memory

    @property
    def peak(self) -> float:
        """Most memory that the load took since the container's start, in bytes."""
        return self._meter.peak

    def attach(self, meter: Meter) -> None:
        """Measures usage with this meter from now on."""
        self._total = self.cpu_total
        self._meter = meter

    def start(self, now: float, memory_limit: float) -> None:
        """Starts the container, for the first time or again. A runtime sizes its heap by this memory limit."""
        if self.runtime is not None:
            self.heap = self.runtime.heap_at(memory_limit)
        if self.restart_at is not None:
            self.restarts += 1
            self.restart_at = None
        self.running = True
        self.started = self.grows_from = now
        self.cpu_at_start = self.cpu_total

    def end(self, now: float, *, of_heap: bool) -> None:
        """OOMKills the container, or ends it because its heap is full; the kubelet restarts it at `restart_at`.

        As in the kubelet (`doBackOff`), the first restart is immediate, then after 10 s, 20 s, up to 5 min. A container
        that has run for more than 10 minutes restarts immediately and resets the back-off.
        """
        self.attach(IDLE)
        self.running = False
        self.oom_at, self.failed_at = (None, now) if of_heap else (now, None)
        self.oom_started = self.started
        if self.back_off and now - self._stable_from <= STABLE:
            self.restart_at = now + self.back_off
            self.back_off = min(2 * self.back_off, LONGEST_BACK_OFF)
        else:
            self.restart_at = now
            self.back_off = FIRST_BACK_OFF
        self._stable_from = self.restart_at

    def resized(self, now: float) -> None:
        """Resets the container's back-off after a resize (resources are part of the key of the kubelet's entry,
        `GetBackoffKey` in pkg/kubelet/kuberuntime). A waiting container restarts now."""
        if self.restart_at is None:
            self.back_off = 0.0
        else:
            self.back_off, self.restart_at, self._stable_from = FIRST_BACK_OFF, now, now


class SimPod:
    """A pod of the workload. `resources` are its own; an admission webhook may have changed them."""

    def __init__(
        self, name: str, serial: int, template: Template, resources: Template, created: float
    ) -> None:
        self.name = name
        self.serial = self.ordinal = serial
        """Number of the pod among all pods that the workload ever had, which differs for pods of a StatefulSet with the
        same name; `ordinal` is a StatefulSet's."""
        self.template = template
        self.created = self.ready_changed = created
        """`ready_changed`: when `ready` last changed."""
        self.revision = 0
        """The workload's revision when the pod was created or last matched its template."""
        self.start_up = 0.0
        self.starts_slowly = False
        """Whether its start has lacked CPU."""
        self.node_memory = math.inf
        """Memory of its node in bytes, which a runtime without a memory limit reads."""
        self.part = 1.0
        """Share of the load; the mean is 1."""
        self.resize: Resize | None = None
        """A resize that is not complete."""
        self.take(resources)
        self.containers = [SimContainer(container) for container in resources if container != POD]
        self.node: int | None = None
        """Number of its node; None: unscheduled."""
        self.started: float | None = None
        """When it was scheduled and its containers first started."""
        self.ready = self.refused = self.blipped = False
        """`refused`: no node can be added for it; `blipped`: unready for a moment although its containers run."""
        self.ready_at: float | None = None
        """When it became or becomes ready; None: unknown."""
        self.deletion_cost: str | None = None
        """Value of the annotation `pod-deletion-cost`."""
        self.deleted: float | None = None
        """When it was deleted."""

    def take(self, resources: Template) -> None:
        """Sets the pod's resources, with containers in their order; running containers continue."""
        self.resources = resources
        self.shapes = container_shapes(resources)
        self.shape = pod_shape(resources)
        self.cpu_request, self.memory_request, *_ = self.shape

    @property
    def cpu_weight(self) -> float:
        """CPU weight of a container without a request: the pod's own limit, or 0 if it has none."""
        return 0.0 if self.shape.cpu_limit == math.inf else self.shape.cpu_limit

    @property
    def desired_resources(self) -> Template:
        """Resources in the pod's spec: its own, or those of a waiting resize."""
        return self.resources if self.resize is None else self.resize.resources

    @property
    def phase(self) -> Literal["Pending", "Running"]:
        """Pending until the containers have started, then Running."""
        return "Pending" if self.started is None else "Running"

    @property
    def most_restarts(self) -> int:
        """Largest number of restarts of a container."""
        return max((container.restarts for container in self.containers), default=0)

    @property
    def next_event(self) -> float:
        """Time in seconds of the next change without a request: a container restarts, the pod becomes ready, or the
        kubelet handles a resize."""
        times = [container.restart_at for container in self.containers if container.restart_at is not None]
        if self.ready_at is not None and not self.ready:
            times.append(self.ready_at)
        if self.resize is not None and self.resize.due is not None:
            times.append(self.resize.due)
        return min(times, default=math.inf)

    def start(self, now: float) -> None:
        """Starts the containers of a pod that was just scheduled."""
        self.started = now
        for container in self.containers:
            self._start(container, now)
        self.ready_at, self.starts_slowly = now + self.start_up, False

    def _start(self, container: SimContainer, now: float) -> None:
        shape = self.shapes[self.containers.index(container)]
        container.start(now, min(shape.memory_limit, self.shape.memory_limit, self.node_memory))

    def settle(self, ready_at: float) -> None:
        """Marks the pod as ready since then; its containers leak from the simulation's start."""
        self.ready = True
        self.ready_at = self.ready_changed = ready_at
        for container in self.containers:
            container.grows_from = 0.0

    def catch_up(self, now: float) -> int:
        """Executes all changes that are due by now; returns the number of restarted containers."""
        due = [
            container
            for container in self.containers
            if container.restart_at is not None and container.restart_at <= now + INSTANT
        ]
        for container in due:
            self._start(container, now)
        if due and all(container.running for container in self.containers):
            self.ready_at, self.starts_slowly = now + self.start_up, False
        if not self.ready and self.ready_at is not None and self.ready_at <= now + INSTANT:
            self.ready = True
            self.blipped = False
            self.ready_changed = now
        return len(due)

    def blip(self, now: float, length: float) -> None:
        """Makes a ready pod unready for this many seconds."""
        self.ready, self.blipped = False, True
        self.ready_changed, self.ready_at = now, now + length

    def end(self, container: SimContainer, now: float, *, of_heap: bool) -> None:
        """Ends a container that ran out of memory; the pod is unready until the container has restarted."""
        container.end(now, of_heap=of_heap)
        self.ready_at, self.starts_slowly = None, False
        self.blipped = False
        if self.ready:
            self.ready = False
            self.ready_changed = now


@dataclass(slots=True, eq=False)
class Resize:
    """New resources that a pod does not have yet."""

    pod: SimPod
    resources: Template
    since: float
    """Time of the request or of the last change of `state`, in seconds. A request that replaces a deferred request
    keeps its state and time."""
    state: ResizeState = ""
    """As in the pod's conditions: `Deferred` (no room on its node), `Infeasible` (more than its node has, or refused by
    the API server), `Error` (a memory limit would be below the usage), or empty before the kubelet handles it."""
    due: float | None = None
    """When the kubelet first handles it; None: it has, or never will."""
    held_cpu: int = 0
    """Millicores that its node reserves beyond the pod's request."""
    held_memory: int = 0
    """Bytes that its node reserves beyond the pod's request."""
    shape: Shape = field(init=False)
    """The bounds of the pod with the new resources."""
    cpu_request: int = field(init=False)
    memory_request: int = field(init=False)

    def __post_init__(self) -> None:
        self.shape = pod_shape(self.resources)
        self.cpu_request, self.memory_request, *_ = self.shape
