"""More CPU for the start of a pod (`spec.startupBoost`).

A boost is neither demand nor capacity: `status.desired` and all decisions about sizes and replicas are those without
it (`unboosted`). Only new pods' entries (`config/size-at-creation`) and the resizes of pods that start contain it. A
boost never keeps a pod from running: it is left out, with a reason, if the pod would not be created, scheduled or
resized with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.actuation import StartupBoost, StartupCpu
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Container, Pod, Vpa, Workload, condition, policies_by_name
from hvpa.api.values.quantity import CPU, readable_resource
from hvpa.core.actuation.desired import NOTHING, ContainerSizes, by_section
from hvpa.core.actuation.kubelet import RESTART
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.tuning import FAILED_FOR, STARTED_WITHIN
from hvpa.core.workload.containers import amount, policies, present_resources, wire
from hvpa.core.workload.rollout import REPLICA_FAILURE, is_living
from hvpa.core.workload.stuck import UNSCHEDULABLE


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
        own = next((one for one in status.container_statuses if one.name == entry.container), None)
        begun = status.start_time
        if not any(container.restart_count for container in status.container_statuses):
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

    def is_on(self, sizes: ContainerSizes) -> bool:
        """Whether a pod with these sizes has more CPU for the container than usual."""
        have = sizes.get(self.entry.container, NOTHING)
        request, limit = have.requests.get(CPU, 0), have.limits.get(CPU, 0)
        return request > self.usual.requests[CPU] or limit > self.usual.limits.get(CPU, limit)


class Boosts(NamedTuple):
    """The boosts of a workload's containers."""

    by_container: Mapping[str, Boost] = {}
    left_out: tuple[str, ...] = ()
    """Why containers get no boost, in words."""

    @classmethod
    def of(cls, observation: ObservedState, sizes: ContainerSizes) -> Boosts:
        """Returns the boosts of containers with these decided sizes (the others have the template's)."""
        return _boosts(
            observation.spec,
            observation.target,
            observation.vpa.object,
            observation.status.boosted,
            observation.resizable,
            sizes,
        )

    def starting(self, pod: Pod, clock: Clock) -> dict[str, Boost]:
        """Returns the boosts of the containers of a pod that starts."""
        return {
            name: boost
            for name, boost in self.by_container.items()
            if boost.boosted != boost.usual and boost.starts(pod, clock)
        }

    def on(self, sizes: ContainerSizes) -> dict[str, Boost]:
        """Returns the boosts that a pod with these sizes has."""
        return {name: boost for name, boost in self.by_container.items() if boost.is_on(sizes)}

    def at_creation(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of new pods with the boosts."""
        boosted = {
            name: boost.boosted for name, boost in self.by_container.items() if boost.boosted != boost.usual
        }
        return with_cpu(sizes, boosted)

    def is_young(self, pod: Pod, clock: Clock) -> bool:
        """Whether the pod is so young that more CPU than usual is most likely a boost."""
        began = pod.status.start_time or pod.metadata.creation_timestamp
        longest = max([boost.entry.at_most for boost in self.by_container.values()], default=dt.timedelta(0))
        return began is None or not clock.is_past(after(began, longest + FAILED_FOR))

    def without(self, pod: Pod, sizes: ContainerSizes, clock: Clock) -> ContainerSizes:
        """Returns these sizes of a pod without its boosts."""
        on = self.on(sizes) if self.by_container and self.is_young(pod, clock) else {}
        return with_cpu(sizes, {name: boost.usual for name, boost in on.items()})


_NO_BOOSTS: Final = Boosts()


def with_cpu(sizes: ContainerSizes, cpu: ContainerSizes) -> ContainerSizes:
    """Returns the sizes with other CPU of some containers."""
    if not cpu:
        return sizes
    changed = {name: by_section(or_, sizes.get(name, NOTHING), part) for name, part in cpu.items()}
    return {**sizes, **changed}


def unboosted(
    clock: Clock,
    spec: HvpaSpec,
    workload: Workload,
    vpa: Vpa | None,
    boosted: Sequence[str],
    pods: tuple[Pod, ...],
) -> tuple[Pod, ...]:
    """Returns the pods without their boosts, as they count in decisions; the same objects where they have none.
    `workload` has the decided sizes."""
    boosts = _boosts(spec, workload, vpa, boosted, pods, {})
    if not boosts.by_container:
        return pods
    counted = tuple([_unboosted(clock, pod, boosts) for pod in pods])
    return pods if all(one is pod for one, pod in zip(counted, pods, strict=True)) else counted


def _unboosted(clock: Clock, pod: Pod, boosts: Boosts) -> Pod:
    on = boosts.on(present_resources(pod.spec.containers)) if boosts.is_young(pod, clock) else {}
    if not on:
        return pod

    def usual(container: Container) -> Container:
        boost = on.get(container.name)
        if boost is None:
            return container
        resources = structs.replace(
            container.resources,
            requests={**container.resources.requests, **wire(boost.usual.requests)},
            limits={**container.resources.limits, **wire(boost.usual.limits)},
        )
        return structs.replace(container, resources=resources)

    containers = [usual(container) for container in pod.spec.containers]
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))


def creation_refused(workload: Workload) -> bool:
    """Whether the workload reports that new pods are refused, such as by a quota."""
    return any(
        entry.type == REPLICA_FAILURE and entry.status == "True" for entry in workload.status.conditions
    )


def _boosts(
    spec: HvpaSpec | None,
    workload: Workload | None,
    vpa: Vpa | None,
    known: Sequence[str],
    pods: Iterable[Pod],
    sizes: ContainerSizes,
) -> Boosts:
    """Returns the boosts of the spec's entries, and for `known` containers without an entry the way back."""
    if spec is None or workload is None or not (spec.startup_boost or known):
        return _NO_BOOSTS
    pod = workload.spec.template.spec
    template = {container.name: container for container in pod.containers}
    present = {
        name: by_section(or_, size, sizes.get(name, NOTHING))
        for name, size in present_resources(pod.containers).items()
    }
    policy = policies_by_name(() if vpa is None else policies(spec, vpa))
    limits = _limits_of_others(template, pods)
    boosts, left_out = dict[str, Boost](), list[str]()
    for entry in spec.startup_boost:
        name = entry.container
        if name not in template:
            left_out.append(f"the pod template has no container {name}")
            continue
        usual = _usual(present[name])
        scales_limit = policy(name).controlled_values != "RequestsOnly"
        why = "the pod template has CPU of its own" if pod.resources is not None else ""
        boosted = why or _boosted(entry, usual, template[name], limits.get(name), scales_limit=scales_limit)
        if isinstance(boosted, str):
            left_out.append(f"container {name}: {boosted}")
        else:
            boosts[name] = Boost(entry, usual, boosted)
    for name in known:
        if name in present and name not in boosts:
            usual = _usual(present[name])
            boosts[name] = Boost(_removed(name), usual, usual)
    return Boosts(boosts, tuple(left_out))


def _removed(container: str) -> StartupBoost:
    """Returns an entry for a container whose entry was removed."""
    return StartupBoost(container=container, cpu=StartupCpu(factor=2), at_most=dt.timedelta(days=1))


def _limits_of_others(template: Mapping[str, Container], pods: Iterable[Pod]) -> dict[str, int]:
    """Returns the smallest CPU limits that others, such as a LimitRange, have given to containers whose template has
    none."""
    limits: dict[str, int] = {}
    for pod in pods:
        for container in pod.spec.containers if is_living(pod) else ():
            own = template.get(container.name)
            limit = amount(container.resources.limits, CPU)
            if own is not None and limit is not None and CPU not in own.resources.limits:
                limits[container.name] = min(limit, limits.get(container.name, limit))
    return limits


def _boosted(
    entry: StartupBoost,
    usual: ResourceRequirements,
    container: Container,
    limit_of_others: int | None,
    *,
    scales_limit: bool,
) -> ResourceRequirements | str:
    """Returns a container's CPU during its start, or why it has no boost.

    Example: 500m with a limit of 1 core and factor 3 become 1500m with a limit of 3 cores. With `controlledValues:
    RequestsOnly` they become 999m, and the limit stays: with all requests equal to their limits, the pod's QoS class
    would change.
    """
    request, limit = usual.requests[CPU], usual.limits.get(CPU)
    if not request:
        return "it requests no CPU"
    if any(
        policy.resource_name == CPU and policy.restart_policy == RESTART for policy in container.resize_policy
    ):
        return "a resize of its CPU restarts it"
    fixed = limit_of_others if limit is None else None if scales_limit else limit
    boosted = min(entry.cpu.of(request), LARGEST if fixed is None else fixed - 1)
    if boosted <= request:
        wanted, now = [readable_resource(CPU, cpu) for cpu in (boosted, request)]
        return f"a boost to {wanted} CPU is not more than its usual request, {now} CPU"
    if limit is not None and scales_limit:
        limit = min(LARGEST, ceil_div(limit * boosted, request))
    return _cpu(boosted, limit)


def _usual(size: ResourceRequirements) -> ResourceRequirements:
    """Returns the CPU of a size. A missing request equals the limit, as in Kubernetes."""
    limit = size.limits.get(CPU)
    return _cpu(size.requests.get(CPU, limit or 0), limit)


def _cpu(request: int, limit: int | None) -> ResourceRequirements:
    return ResourceRequirements({CPU: request}, {} if limit is None else {CPU: limit})


def _ready_at(pod: Pod) -> dt.datetime | None:
    """Returns when the pod became ready, or lost its readiness; None if it has never been ready.

    The kubelet reports a pod as not ready as soon as it has accepted it, and this time stays until the pod is ready.
    """
    ready = condition(pod.status.conditions, "Ready")
    if ready is None or ready.last_transition_time is None or pod.status.start_time is None:
        return None
    if ready.status == "True" or ready.last_transition_time > after(pod.status.start_time, STARTED_WITHIN):
        return ready.last_transition_time
    return None


def _has_no_node(pod: Pod) -> bool:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == UNSCHEDULABLE
