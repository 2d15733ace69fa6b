"""More CPU for the start of a pod (`spec.startupBoost`).

A boost is neither demand nor capacity: `status.desired` and all decisions about sizes and replicas are those without
it (`unboosted`). Only new pods' entries (`config/size-at-creation`) and the resizes of pods that start contain it. A
boost never keeps a pod from running: it is left out, with a reason, if the pod would not be created, scheduled or
resized with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from operator import or_
from typing import Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.actuation import StartupBoost
from hvpa.api.hvpa.progress import BoostedContainer
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import (
    Container,
    Pod,
    PodCondition,
    PodSpec,
    Vpa,
    Workload,
    condition,
    policies_by_name,
)
from hvpa.api.values.quantity import CPU, MEMORY, RESOURCES, readable_resource
from hvpa.core.actuation.desired import NOTHING, ContainerSizes, by_section, differing
from hvpa.core.actuation.kubelet import only
from hvpa.core.model import LargestNode, ObservedState, ResourceRequirements
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.tuning import FAILED_FOR, STARTED_WITHIN
from hvpa.core.workload.containers import (
    SHARED,
    amount,
    policies,
    present_resources,
    read_all,
    sharing,
    wire,
)
from hvpa.core.workload.pod_level import own_resources, requested, total
from hvpa.core.workload.rollout import REPLICA_FAILURE, is_living
from hvpa.core.workload.stuck import UNSCHEDULABLE
from hvpa.recommend.hpa.pods import lasting, sidecars

MOST_VARIANTS: Final = 40
"""Maximum number of boosts in the status."""


class Boost(NamedTuple):
    """The CPU of a container with and without its boost: requests and limits."""

    entry: StartupBoost
    usual: ResourceRequirements
    boosted: ResourceRequirements

    def starts(self, pod: Pod, clock: Clock) -> bool:
        """Whether the pod starts, so that the container has the boost.

        A pod that no node has room for does not start. A pod that has been ready keeps the boost for `after` at most.
        Once a container has been restarted, the time counts from the pod's own start, because the containers' first
        start is no longer known.
        """
        status, entry = pod.status, self.entry
        if _has_no_node(pod):
            return False
        if status.start_time is None:
            return True
        containers = status.container_statuses
        every = (*containers, *status.init_container_statuses)
        own = next((one for one in every if one.name == entry.container), None)
        begun = status.start_time
        if not any(one.restart_count for one in (*containers, own) if one is not None):
            runs = None if own is None or own.state.running is None else own.state.running.started_at
            begun = runs or status.running_since or begun
        if clock.is_ahead(begun):
            return False
        ends = [after(begun, entry.at_most)]
        ready_at = _ready_at(pod)
        if entry.until == "Started":
            if ready_at is not None or (own is not None and (own.started or own.restart_count)):
                ends.append(after(begun, entry.after))
        elif ready_at is not None:
            ends.append(after(ready_at, entry.after))
        return not clock.is_past(min(ends))


class Variant(NamedTuple):
    """CPU that pods may have for their start."""

    size: ResourceRequirements
    at_most: dt.timedelta
    """The longest time for which they may have it."""


class PodLimit(NamedTuple):
    """The CPU limit of a pod itself (`spec.resources`), which keeps its ratio to the pod's request."""

    usual: int
    """The limit without boosts."""
    fixed: Set[str]
    """Containers whose boosts do not raise it (`controlledValues: RequestsOnly`)."""
    template: PodSpec
    sizes: ContainerSizes
    """The decided sizes."""

    @property
    def request(self) -> int:
        """The request of the pod without boosts."""
        return total(self.template, self.sizes, CPU)

    def of(self, cpu: ContainerSizes) -> int:
        """Returns the limit with this CPU of some containers."""
        scaling = {name: cpu[name] for name in cpu.keys() - self.fixed}
        request = total(self.template, with_cpu(self.sizes, scaling), CPU)
        return min(LARGEST, ceil_div(self.usual * request, max(1, self.request)))


class Boosts(NamedTuple):
    """The boosts of a workload's containers. That of a container without a request under a pod with its own CPU raises
    what such containers share (`SHARED`)."""

    by_container: Mapping[str, Boost] = {}
    known: Mapping[str, Sequence[Variant]] = {}
    """CPU that pods may have for their start, by container: the present boost, and earlier ones. Sizes, factors and
    templates change while pods start."""
    usual: Mapping[str, ResourceRequirements] = {}
    """The usual CPU of these containers."""
    undecided: Set[str] = frozenset()
    """Those whose CPU HVPA has not decided, so that nothing else would take a boost back."""
    first: Mapping[str, ResourceRequirements] = {}
    """Limits of new pods' init containers. These boosts need no end: the init container ends. Requests stay, because
    Kubernetes counts those of an init container for as long as the pod lives."""
    left_out: tuple[str, ...] = ()
    """Why containers get no boost, in words."""
    pod_limit: PodLimit | None = None
    template: PodSpec | None = None
    """The pod template, if containers share the pod's CPU."""

    @classmethod
    def of(cls, observation: ObservedState, sizes: ContainerSizes) -> Boosts:
        """Returns the boosts of containers with these decided sizes (the others have the template's)."""
        spec, workload, vpa = observation.spec, observation.target, observation.vpa.object
        assert spec is not None
        assert workload is not None
        earlier, pods, node = observation.status.boosts, observation.resizable, observation.largest_node
        return boosts_of(BoostInputs(spec, workload, vpa, earlier, pods, node), sizes)

    def starting(self, pod: Pod, clock: Clock) -> dict[str, Boost]:
        """Returns the boosts of the containers of a pod that starts."""
        return {name: boost for name, boost in self.by_container.items() if boost.starts(pod, clock)}

    def on(self, pod: Pod, clock: Clock) -> dict[str, ResourceRequirements]:
        """Returns the containers that have a boost in a pod's spec, with their usual CPU. In an old pod, CPU that HVPA
        has decided is no boost: the equal amount is by chance."""
        is_young = self.is_young(pod, clock)
        return {
            name: self.usual[name]
            for name in self.boosted_in(self.as_in_template(sizes_of_spec(pod.spec)))
            if is_young or name in self.undecided
        }

    def as_in_template(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of a pod with what its containers share by the template, if that is a boost. Others, such
        as a LimitRange or a webhook, can have given requests to containers of the pod, which are a part of that.

        Example: a pod has 600m for its start, its app 300m, an injected proxy 50m. By the template, 300m are shared.
        """
        if self.template is None or SHARED not in sizes:
            return sizes
        own = requested(self.template, CPU)
        given = sum([_cpu_request(size) for name, size in sizes.items() if name not in own])
        if not given:
            return sizes
        rest, limit = sizes[SHARED].requests.get(CPU, 0) + given, sizes[SHARED].limits.get(CPU)
        if CPU not in own_resources(self.template).requests and own.keys() == {SHARED} and limit is not None:
            rest = limit
        then = with_cpu(sizes, {SHARED: _cpu(rest)})
        return then if SHARED in self.boosted_in(then) else sizes

    def unboosted_in(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of a pod with the usual CPU of the containers that have a boost in them."""
        then = self.as_in_template(sizes)
        usual = self.without_in(then)
        if then is sizes:
            return usual
        shared = [size[SHARED].requests[CPU] for size in (sizes, usual, then)]
        return with_cpu(usual, {SHARED: _cpu(max(0, shared[0] + shared[1] - shared[2]))})

    def boosted_in(self, sizes: ContainerSizes) -> list[str]:
        """Returns the containers that have the CPU of a boost in these sizes."""
        return [
            name
            for name, variants in self.known.items()
            if any(_has(sizes.get(name, NOTHING), variant.size) for variant in variants)
        ]

    def at_creation(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of new pods with the boosts."""
        boosted = {name: boost.boosted for name, boost in self.by_container.items()}
        return with_cpu(self.applied(sizes, boosted), self.first)

    def applied(self, sizes: ContainerSizes, cpu: ContainerSizes) -> ContainerSizes:
        """Returns the sizes with this CPU of some containers and, in `SHARED`, the pod's own limit that follows.

        Example: a pod has 400m and a limit of 800m, its app 300m. With 900m for the app, the pod needs 1 core, and its
        limit is 2 cores.
        """
        sized = with_cpu(sizes, cpu)
        if self.pod_limit is None or not cpu:
            return sized
        return with_cpu(sized, {SHARED: ResourceRequirements({}, {CPU: self.pod_limit.of(cpu)})})

    def without_in(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes with the usual CPU of the containers that have a boost in them."""
        return self.applied(sizes, {name: self.usual[name] for name in self.boosted_in(sizes)})

    def is_young(self, pod: Pod, clock: Clock) -> bool:
        """Whether the pod, or a container of it, is so young that its CPU may be a boost. Containers may run long
        after the pod's start: images are pulled, and init containers run first."""
        times = (pod.status.start_time or pod.metadata.creation_timestamp, pod.status.running_since)
        began = max([time for time in times if time is not None], default=None)
        longest = max(
            [one.at_most for variants in self.known.values() for one in variants], default=dt.timedelta(0)
        )
        return began is None or not clock.is_past(after(began, longest + FAILED_FOR))

    def without(self, pod: Pod, sizes: ContainerSizes, clock: Clock) -> ContainerSizes:
        """Returns these sizes of a pod without its boosts."""
        if not self.known or not self.is_young(pod, clock):
            return sizes
        return self.unboosted_in(sizes)

    def recorded(self, had: Sequence[ContainerSizes]) -> tuple[BoostedContainer, ...]:
        """Returns, for the status, the present boosts, and earlier ones in sizes that pods have or are created with."""
        kept = []
        for name, variants in self.known.items():
            boost = self.by_container.get(name)
            for size, at_most in variants:
                if any(_has(sizes.get(name, NOTHING), size) for sizes in had):
                    kept.append((name, size, at_most))
                elif boost is not None and boost.boosted == size:
                    kept.append((name, size, boost.entry.at_most))
        return tuple(
            [
                BoostedContainer(
                    name=name, requests=wire(size.requests), limits=wire(size.limits), at_most=at_most
                )
                for name, size, at_most in kept[:MOST_VARIANTS]
            ]
        )

    def not_at_creation(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of new pods without boosts. CPU that HVPA has not decided is then the template's."""
        boosted = self.boosted_in(sizes)
        undecided = {name: only(sizes[name], {MEMORY}) for name in boosted if name in self.undecided}
        return {**self.without_in(sizes), **undecided}


_NO_BOOSTS: Final = Boosts()
_NOT_READY: Final = PodCondition()


def with_cpu(sizes: ContainerSizes, cpu: ContainerSizes) -> ContainerSizes:
    """Returns the sizes with other CPU of some containers."""
    if not cpu:
        return sizes
    changed = {name: by_section(or_, sizes.get(name, NOTHING), part) for name, part in cpu.items()}
    return {**sizes, **changed}


class Counted(NamedTuple):
    """Pods as they count in decisions."""

    pods: tuple[Pod, ...]
    boosted: int = 0
    """How many of them have a boost."""
    of_all: Fraction = Fraction(1)
    """The CPU requests that all pods have, relative to the usual ones."""
    of_ready: Fraction = Fraction(1)
    """The same of ready pods."""


def unboosted(clock: Clock, pods: tuple[Pod, ...], boosts: Boosts) -> Counted:
    """Returns the pods without their boosts; the same objects where they have none."""
    if not boosts.known:
        return Counted(pods)
    usual = tuple([_unboosted(clock, pod, boosts) for pod in pods])
    changed = [counted is not pod for counted, pod in zip(usual, pods, strict=True)]
    if not any(changed):
        return Counted(pods)
    pairs = [pair for pair in zip(pods, usual, strict=True) if is_living(pair[0])]
    ready = [pair for pair in pairs if (_ready(pair[0]) or _NOT_READY).status == "True"]
    return Counted(usual, sum(changed), _ratio(pairs), _ratio(ready))


def _ratio(pairs: Sequence[tuple[Pod, Pod]]) -> Fraction:
    real, usual = [sum(map(_requested, pods)) for pods in zip(*pairs, strict=True)] if pairs else (1, 1)
    return Fraction(real, usual) if usual else Fraction(1)


def _requested(pod: Pod) -> int:
    """Returns the CPU that a pod requests, or its containers together, in millicores."""
    whole = own_resources(pod.spec).requests.get(CPU)
    if whole is not None:
        return whole
    sizes = sizes_of_spec(pod.spec).values()
    return sum(map(_cpu_request, sizes))


def _cpu_request(size: ResourceRequirements) -> int:
    """Returns a container's CPU request. A missing request equals the limit, as in Kubernetes."""
    return size.requests.get(CPU, size.limits.get(CPU, 0))


def sizes_of_spec(pod: PodSpec) -> Mapping[str, ResourceRequirements]:
    """Returns CPU and memory of all containers and native sidecars of a pod or pod template."""
    containers = present_resources(pod.containers)
    if not pod.init_containers:
        return containers
    return {**containers, **read_all({one.name: one.resources for one in sidecars(pod)})}


def _unboosted(clock: Clock, pod: Pod, boosts: Boosts) -> Pod:
    sizes = sizes_of_spec(pod.spec)
    usual = boosts.without(pod, sizes, clock)
    if usual is sizes:
        return pod

    def counted(container: Container) -> Container:
        size = usual.get(container.name)
        if size is None or size == sizes[container.name]:
            return container
        resources = structs.replace(
            container.resources,
            requests={**container.resources.requests, **wire(size.requests)},
            limits={**container.resources.limits, **wire(size.limits)},
        )
        return structs.replace(container, resources=resources)

    spec = structs.replace(
        pod.spec,
        containers=[counted(one) for one in pod.spec.containers],
        init_containers=[counted(one) for one in pod.spec.init_containers],
    )
    whole = spec.resources
    if whole is not None and CPU in whole.requests:
        request = wire({CPU: total(spec, {}, CPU)})
        spec = structs.replace(spec, resources=structs.replace(whole, requests={**whole.requests, **request}))
    return structs.replace(pod, spec=spec)


def creation_refused(workload: Workload) -> bool:
    """Whether the workload reports that new pods are refused, such as by a quota."""
    return any(
        entry.type == REPLICA_FAILURE and entry.status == "True" for entry in workload.status.conditions
    )


class BoostInputs(NamedTuple):
    """The inputs of `boosts_of`, except the decided sizes."""

    spec: HvpaSpec
    workload: Workload
    vpa: Vpa | None
    earlier: Sequence[BoostedContainer]
    """Boosts that pods may still have, from the status."""
    pods: Sequence[Pod]
    node: LargestNode | None


def boosts_of(inputs: BoostInputs, sizes: ContainerSizes) -> Boosts:
    """Returns the boosts of containers with these decided sizes, and earlier ones that pods may still have."""
    spec, workload, vpa, earlier, pods, node = inputs
    if not (spec.startup_boost or earlier):
        return _NO_BOOSTS
    pod = workload.spec.template.spec
    template = {container.name: container for container in lasting(pod)}
    present = {
        name: by_section(or_, size, sizes.get(name, NOTHING)) for name, size in sizes_of_spec(pod).items()
    }
    policy = policies_by_name(() if vpa is None else policies(spec, vpa))
    shared = sharing(present, CPU) if CPU in present.get(SHARED, NOTHING).requests else ()
    fixed = {name for name in template if policy(name).controlled_values == "RequestsOnly"}
    fixed |= {SHARED} if fixed.intersection(shared) else set()
    of_pod, rest = None, present.get(SHARED, NOTHING)
    if CPU in rest.limits:
        of_pod = PodLimit(rest.limits[CPU], fixed, pod, sizes)
        present[SHARED] = ResourceRequirements(rest.requests, {})
    limits, room = _limits_of_others(template, pods), _room(present, node)
    spare = LARGEST if of_pod is None else max(0, of_pod.usual - 1 - of_pod.request)
    ending = {
        container.name: container for container in pod.init_containers if container.name not in template
    }
    boosts, first, left_out = dict[str, Boost](), dict[str, ResourceRequirements](), list[str]()
    for entry in spec.startup_boost:
        name = entry.container
        if name in ending:
            limited = _limited(entry, ending[name], LARGEST if of_pod is None else of_pod.usual)
            if isinstance(limited, str):
                left_out.append(f"init container {name}: {limited}")
            else:
                first[name] = limited
            continue
        if name not in template:
            left_out.append(f"the pod template has no container {name}")
            continue
        key = SHARED if name in shared else name
        if key in boosts:
            left_out.append(f"container {name}: it shares the pod's CPU with {boosts[key].entry.container}")
            continue
        usual, scales_limit = _usual(present[key]), key not in fixed
        most = min(
            limits.get(key, LARGEST), usual.requests[CPU] + (room if scales_limit else min(room, spare))
        )
        boosted = _boosted(entry, usual, template[key], most, scales_limit=scales_limit)
        if isinstance(boosted, str):
            left_out.append(f"container {name}: {boosted}")
            continue
        raised = boosted.requests[CPU] - usual.requests[CPU]
        room -= raised
        spare -= 0 if scales_limit else raised
        if of_pod is not None:
            most = of_pod.of({key: boosted})
            boosted = _cpu(boosted.requests[CPU], *[min(limit, most) for limit in boosted.limits.values()])
        boosts[key] = Boost(entry, usual, boosted)
    known = _variants(boosts, [one for one in earlier if one.name in present])
    usual_cpu = {name: _usual(present[name]) for name in known if name in present}
    undecided = frozenset(name for name in known if CPU not in sizes.get(name, NOTHING).requests)
    sharing_pod = pod if SHARED in known else None
    return Boosts(boosts, known, usual_cpu, undecided, first, tuple(left_out), of_pod, sharing_pod)


def _variants(boosts: Mapping[str, Boost], earlier: Sequence[BoostedContainer]) -> dict[str, list[Variant]]:
    """Returns the CPU that pods may have for their start, by container."""
    known = {name: [Variant(boost.boosted, boost.entry.at_most)] for name, boost in boosts.items()}
    for one in earlier:
        size, variants = read_all({"": one})[""], known.setdefault(one.name, [])
        same = [variant.at_most for variant in variants if variant.size == size]
        variants[:] = [variant for variant in variants if variant.size != size]
        variants.append(Variant(size, max([one.at_most, *same])))
    return known


def _room(present: ContainerSizes, node: LargestNode | None) -> int:
    """Returns the CPU that the largest node has beside a pod's usual CPU, if it is known."""
    if node is None or CPU not in node.allocatable:
        return LARGEST
    return max(0, node.allocatable[CPU] - sum(_usual(size).requests[CPU] for size in present.values()))


def _has(have: ResourceRequirements, variant: ResourceRequirements) -> bool:
    return differing(have, variant) == NOTHING


def _limits_of_others(template: Mapping[str, Container], pods: Iterable[Pod]) -> dict[str, int]:
    """Returns the largest CPU below the limits that others, such as a LimitRange, have given to containers whose
    template has none."""
    limits: dict[str, int] = {}
    for pod in pods:
        for container in lasting(pod.spec) if is_living(pod) else ():
            own = template.get(container.name)
            limit = amount(container.resources.limits, CPU)
            if own is not None and limit is not None and CPU not in own.resources.limits:
                limits[container.name] = min(limit - 1, limits.get(container.name, limit))
    return limits


def _boosted(
    entry: StartupBoost,
    usual: ResourceRequirements,
    container: Container,
    most: int,
    *,
    scales_limit: bool,
) -> ResourceRequirements | str:
    """Returns a container's CPU during its start, or why it has no boost. `most`: below a limit that others have given,
    and within the largest node.

    Example: 500m with a limit of 1 core and factor 3 become 1500m with a limit of 3 cores. With `controlledValues:
    RequestsOnly` they become 999m, and the limit stays: with all requests equal to their limits, the pod's QoS class
    would change.
    """
    request, limit = usual.requests[CPU], usual.limits.get(CPU)
    if not request:
        return "it requests no CPU"
    if container.restarts_for(CPU):
        return "a resize of its CPU restarts it"
    if limit is not None and not scales_limit:
        most = min(most, limit - 1)
    boosted = min(entry.cpu.of(request), most)
    if boosted <= request:
        wanted, now = [readable_resource(CPU, cpu) for cpu in (boosted, request)]
        return f"a boost to {wanted} CPU is not more than its usual request, {now} CPU"
    if limit is not None and scales_limit:
        limit = min(LARGEST, ceil_div(limit * boosted, request))
    return _cpu(boosted, limit)


def _limited(entry: StartupBoost, container: Container, most: int) -> ResourceRequirements | str:
    """Returns the limit of an init container with its boost, at most the pod's, or why it has none. Example: 100m with
    a limit of 200m and factor 3 become 100m with a limit of 600m."""
    size = read_all({"": container.resources})[""]
    limits, limit = size.limits, size.limits.get(CPU)
    if limit is None:
        return "it has no CPU limit, so it may use all CPU that is left"
    if all(of in limits and size.requests.get(of, limits[of]) == limits[of] for of in RESOURCES):
        return "a larger limit would change the pod's QoS class"
    boosted = min(entry.cpu.of(limit), most)
    if boosted <= limit:
        wanted, now = [readable_resource(CPU, cpu) for cpu in (boosted, limit)]
        return f"a boost to {wanted} CPU is not more than its limit, {now} CPU"
    return ResourceRequirements({}, {CPU: boosted})


def _usual(size: ResourceRequirements) -> ResourceRequirements:
    """Returns the CPU of a size. A missing request equals the limit, as in Kubernetes."""
    limit = size.limits.get(CPU)
    return _cpu(size.requests.get(CPU, limit or 0), limit)


def _cpu(request: int, limit: int | None = None) -> ResourceRequirements:
    return ResourceRequirements({CPU: request}, {} if limit is None else {CPU: limit})


def _ready_at(pod: Pod) -> dt.datetime | None:
    """Returns when the pod became ready, or lost its readiness; None if it has never been ready.

    The kubelet reports a pod as not ready as soon as it has accepted it, and this time stays until the pod is ready.
    """
    ready = _ready(pod)
    if ready is None or ready.last_transition_time is None or pod.status.start_time is None:
        return None
    if ready.status == "True" or ready.last_transition_time > after(pod.status.start_time, STARTED_WITHIN):
        return ready.last_transition_time
    return None


def _ready(pod: Pod) -> PodCondition | None:
    return condition(pod.status.conditions, "Ready")


def _has_no_node(pod: Pod) -> bool:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == UNSCHEDULABLE
