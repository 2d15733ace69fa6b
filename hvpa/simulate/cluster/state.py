"""One pod and its containers: what their state is, when it changes by itself, and how the kubelet restarts them.

Times are seconds of the simulation; CPU in millicores (totals in millicore-seconds), memory in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from hvpa.api.values.quantity import CPU, MEMORY, Resource
from hvpa.core.model import ResourceRequirements

ResizeState = Literal["", "Deferred", "Infeasible", "Error"]


INSTANT: Final = 1e-6
"""Seconds that count as the same instant: far more than the rounding of times, far less than anything that happens."""

Template = Mapping[str, ResourceRequirements]
"""Requests and limits by container name."""

NOTHING: Final = ResourceRequirements({}, {})
"""A container without requests and limits."""

FIRST_BACK_OFF: Final = 10.0
LONGEST_BACK_OFF: Final = 300.0
STABLE: Final = 600.0
"""Seconds: the kubelet's back-off between restarts, and how long a container must have run for it to begin anew
(`initialCrashLoopBackOff`, `MaxContainerBackOff`, twice of which makes an entry expire in client-go's `Backoff`)."""


class Shape(NamedTuple):
    """What bounds one container: requests in whole units, limits in the same (infinity: none)."""

    cpu_request: int
    memory_request: int
    cpu_limit: float
    memory_limit: float


def shape_of(resources: ResourceRequirements) -> Shape:
    """The bounds that these resources set. A request that is missing is the limit, as the API server sets it."""
    requests, limits = resources.requests, resources.limits

    def request(resource: Resource) -> int:
        return requests.get(resource, limits.get(resource, 0))

    return Shape(request(CPU), request(MEMORY), limits.get(CPU, math.inf), limits.get(MEMORY, math.inf))


def total_requests(shapes: Sequence[Shape]) -> tuple[int, int]:
    """What a pod with these containers requests of CPU and memory."""
    return sum(shape.cpu_request for shape in shapes), sum(shape.memory_request for shape in shapes)


def with_default_requests(template: Template) -> Template:
    """Resources of a new pod: a request that the template leaves out is the limit (`SetDefaults_Pod`)."""
    if all(one.limits.keys() <= one.requests.keys() for one in template.values()):
        return template
    return {
        name: ResourceRequirements({**one.limits, **one.requests}, one.limits)
        for name, one in template.items()
    }


@dataclass(slots=True, eq=False)
class Meter:
    """Usage of one container in each pod of a group.

    What it uses: `base` (millicores), `per_unit` of load, `memory_base` (bytes), `memory_per_unit`, `leak` (bytes per
    second since `since`). What bounds it: `limit` (millicores), `memory_limit` and its memory `request` (bytes),
    `weight` (its CPU request). `kept` is the share of the memory that the load took that stays, `peak` the most that
    it took, `work_memory` what it takes (bytes, without the base). What comes out: `demand` and `rate` (millicores
    needed and used), `memory` (bytes), and since the meter's start `total` (millicore-seconds). `index` is the
    container's place in its pod.
    """

    base: float = 0.0
    per_unit: float = 0.0
    memory_base: float = 0.0
    memory_per_unit: float = 0.0
    leak: float = 0.0
    since: float = 0.0
    limit: float = math.inf
    memory_limit: float = math.inf
    weight: float = 0.0
    request: int = 0
    kept: float = 0.0
    peak: float = 0.0
    work_memory: float = 0.0
    index: int = 0
    demand: float = 0.0
    rate: float = 0.0
    memory: float = 0.0
    total: float = 0.0


IDLE: Final = Meter()
"""The meter of containers that do not run; never written to."""


@dataclass(slots=True, eq=False)
class SimContainer:
    """A container of a pod.

    `started` is when it last started (None: not yet), `restarts` how often it was started again, `restart_at` when it
    will be (None: it runs, or has not started). `oom_at` and `oom_started` are of its last OOM: when it was, and when
    the run began that it ended. `grows_from` is the time from which a leak is counted, `cpu_at_start` what `cpu_total`
    was when it last started.
    """

    name: str
    running: bool = False
    started: float | None = None
    grows_from: float = 0.0
    restarts: int = 0
    restart_at: float | None = None
    oom_at: float | None = None
    oom_started: float | None = None
    back_off: float = 0.0
    cpu_at_start: float = 0.0
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
        """The most memory that the load took since the container started, in bytes."""
        return self._meter.peak

    def attach(self, meter: Meter) -> None:
        """Usage comes from this meter from now on."""
        self._total = self.cpu_total
        self._meter = meter

    def start(self, now: float) -> None:
        """The container starts, for the first time or again."""
        if self.restart_at is not None:
            self.restarts += 1
            self.restart_at = None
        self.running = True
        self.started = self.grows_from = now
        self.cpu_at_start = self.cpu_total

    def kill(self, now: float) -> None:
        """The container is OOMKilled; the kubelet starts it again at `restart_at`.

        As the kubelet does it (`doBackOff`): the first time at once, then after 10 s, 20 s, … 5 min; a container that
        had run for more than 10 minutes is started at once, and the back-off begins anew.
        """
        self.attach(IDLE)
        self.running = False
        self.oom_at = now
        self.oom_started = self.started
        if self.back_off and now - self._stable_from <= STABLE:
            self.restart_at = now + self.back_off
            self.back_off = min(2 * self.back_off, LONGEST_BACK_OFF)
        else:
            self.restart_at = now
            self.back_off = FIRST_BACK_OFF
        self._stable_from = self.restart_at

    def resized(self, now: float) -> None:
        """The container has other resources: its back-off begins anew (they are part of the key of the kubelet's entry,
        `GetBackoffKey` in pkg/kubelet/kuberuntime), and if it waits, it is started now."""
        if self.restart_at is None:
            self.back_off = 0.0
        else:
            self.back_off, self.restart_at, self._stable_from = FIRST_BACK_OFF, now, now


class SimPod:
    """A pod.

    `part` is the pod's part of the load, beside others of 1.
    `serial` counts all pods that the workload ever had (a StatefulSet's pods share names, never this), `ordinal` is a
    StatefulSet's. `revision` is the workload's when the pod was made or last agreed with its template. `resources` are
    the pod's own, which an admission webhook may have changed; `resize` is what waits to become of them. `node` is its
    node's number, None while unscheduled; `started` is when it got one, and its containers first started; `ready_at`
    when it became or becomes ready (None: not known), `ready_changed` when `ready` last changed; `blipped`: it is not
    ready for a moment, though its containers run; `deleted` when it was deleted.
    """

    def __init__(
        self, name: str, serial: int, template: Template, resources: Template, created: float
    ) -> None:
        self.name = name
        self.serial = self.ordinal = serial
        self.template = template
        self.created = self.ready_changed = created
        self.revision = 0
        self.start_up = 0.0
        self.part = 1.0
        self.resize: Resize | None = None
        self.take(resources)
        self.containers = [SimContainer(one) for one in resources]
        self.node: int | None = None
        self.started: float | None = None
        self.ready = self.refused = self.blipped = False
        self.ready_at: float | None = None
        self.deleted: float | None = None

    def take(self, resources: Template) -> None:
        """These are the pod's resources from now on; containers in their order, running ones go on."""
        self.resources = resources
        self.shapes = tuple(shape_of(one) for one in resources.values())
        self.cpu_request, self.memory_request = total_requests(self.shapes)

    @property
    def desired_resources(self) -> Template:
        """What the pod's spec says: its resources, or those of a resize that waits."""
        return self.resources if self.resize is None else self.resize.resources

    @property
    def phase(self) -> Literal["Pending", "Running"]:
        """Pending until the containers have started, Running from then on."""
        return "Pending" if self.started is None else "Running"

    @property
    def most_restarts(self) -> int:
        """The restarts of the container that has most."""
        return max((container.restarts for container in self.containers), default=0)

    @property
    def next_event(self) -> float:
        """The time in seconds of the next change without a request: a container starts again, the pod becomes ready, or
        the kubelet looks at a resize."""
        times = [one.restart_at for one in self.containers if one.restart_at is not None]
        if self.ready_at is not None and not self.ready:
            times.append(self.ready_at)
        if self.resize is not None and self.resize.due is not None:
            times.append(self.resize.due)
        return min(times, default=math.inf)

    def start(self, now: float) -> None:
        """The pod was scheduled: its containers start at once."""
        self.started = now
        for container in self.containers:
            container.start(now)
        self.ready_at = now + self.start_up

    def settle(self, ready_at: float) -> None:
        """The pod has been ready since then, and its containers leak from the simulation's start."""
        self.ready = True
        self.ready_at = self.ready_changed = ready_at
        for container in self.containers:
            container.grows_from = 0.0

    def catch_up(self, now: float) -> int:
        """Do what is due by now; how many containers were started again."""
        due = [
            one for one in self.containers if one.restart_at is not None and one.restart_at <= now + INSTANT
        ]
        for container in due:
            container.start(now)
        if due and all(container.running for container in self.containers):
            self.ready_at = now + self.start_up
        if not self.ready and self.ready_at is not None and self.ready_at <= now + INSTANT:
            self.ready = True
            self.blipped = False
            self.ready_changed = now
        return len(due)

    def blip(self, now: float, length: float) -> None:
        """The pod, which is ready, is not for so many seconds."""
        self.ready, self.blipped = False, True
        self.ready_changed, self.ready_at = now, now + length

    def kill(self, container: SimContainer, now: float) -> None:
        """One of the containers is OOMKilled; the pod is not ready until it has been started again."""
        container.kill(now)
        self.ready_at = None
        self.blipped = False
        if self.ready:
            self.ready = False
            self.ready_changed = now


@dataclass(slots=True, eq=False)
class Resize:
    """New resources that a pod does not have yet.

    `state` is as in the pod's conditions: `Deferred` (no room on its node), `Infeasible` (more than its node has, or
    refused by the API server), `Error` (a memory limit would be below what is used), empty before it was looked at.
    `since` is when it was requested, in seconds; one that replaces a deferred one has waited as long. `due` is when the
    kubelet first looks at it (None: it has, or never will). `held_cpu` and
    `held_memory` are what its node keeps for it beyond the pod's requests.
    """

    pod: SimPod
    resources: Template
    since: float
    state: ResizeState = ""
    due: float | None = None
    held_cpu: int = 0
    held_memory: int = 0
    cpu_request: int = field(init=False)
    memory_request: int = field(init=False)

    def __post_init__(self) -> None:
        self.cpu_request, self.memory_request = total_requests(
            [shape_of(one) for one in self.resources.values()]
        )
