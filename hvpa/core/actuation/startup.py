"""More CPU for the start of a pod (`spec.startupBoost`).

A boost is neither demand nor capacity: `status.desired` and all decisions about sizes and replicas are those without
it. Only new pods' entries (`config/size-at-creation`) and the resizes of pods that start contain it. A boost never
keeps a pod from running: it is left out, with a reason, if the pod would not be created, scheduled or resized with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import or_
from typing import Final, NamedTuple

from hvpa.api.hvpa.actuation import StartupBoost
from hvpa.api.objects.read_models import Container, Pod, condition, policies_by_name
from hvpa.api.values.quantity import CPU, readable_resource
from hvpa.core.actuation.desired import NOTHING, ContainerSizes, by_section, differing, sizes_of
from hvpa.core.actuation.kubelet import RESTART
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.workload.containers import policies, present_resources
from hvpa.core.workload.rollout import REPLICA_FAILURE, last_change_is_past
from hvpa.core.workload.stuck import UNSCHEDULABLE


class Boost(NamedTuple):
    """The CPU of a container with and without a boost: requests and limits."""

    container: str
    usual: ResourceRequirements
    boosted: ResourceRequirements

    def is_on(self, sizes: ContainerSizes) -> bool:
        """Whether a pod with these sizes has the boost."""
        return differing(sizes.get(self.container, NOTHING), self.boosted) == NOTHING


class Boosts(NamedTuple):
    """The boosts of a workload's containers."""

    entries: Mapping[str, StartupBoost] = {}
    """By container."""
    by_container: Mapping[str, Boost] = {}
    earlier: tuple[Boost, ...] = ()
    """Boosts that pods may still have, although the spec or the size has changed since."""
    left_out: tuple[str, ...] = ()
    """Why containers get no boost, in words."""

    @classmethod
    def of(cls, observation: ObservedState, sizes: ContainerSizes) -> Boosts:
        """Returns the boosts of containers with these decided sizes (the others have the template's)."""
        spec, workload, before = observation.spec, observation.workload, observation.status.actuation
        known = {} if before is None else sizes_of(before.boosts)
        if spec is None or workload is None or not (spec.startup_boost or known):
            return _NO_BOOSTS
        template = {container.name: container for container in workload.spec.template.spec.containers}
        present = {
            name: by_section(or_, size, sizes.get(name, NOTHING))
            for name, size in present_resources(workload.spec.template.spec.containers).items()
        }
        policy = policies_by_name(
            () if observation.vpa.object is None else policies(spec, observation.vpa.object)
        )
        entries, boosts, left_out = {}, dict[str, Boost](), list[str]()
        for entry in spec.startup_boost:
            name = entry.container
            if name not in template:
                left_out.append(f"the pod template has no container {name}")
                continue
            scales_limit = policy(name).controlled_values != "RequestsOnly"
            boost = _boost(entry, present[name], template[name], scales_limit=scales_limit)
            if isinstance(boost, str):
                left_out.append(f"container {name}: {boost}")
            else:
                entries[name], boosts[name] = entry, boost
        earlier = tuple(
            [
                Boost(name, _usual(present[name]), boosted)
                for name, boosted in known.items()
                if name in present and boosts.get(name, _NO_BOOST).boosted != boosted
            ]
        )
        return cls(entries, boosts, earlier, tuple(left_out))

    def starting(self, pod: Pod, clock: Clock) -> dict[str, Boost]:
        """Returns the boosts of the containers of a pod that starts."""
        return {
            name: self.by_container[name]
            for name, entry in self.entries.items()
            if _starts(entry, pod, clock)
        }

    def on(self, sizes: ContainerSizes) -> dict[str, Boost]:
        """Returns the boosts that a pod with these sizes has."""
        known = (*self.earlier, *self.by_container.values())
        return {boost.container: boost for boost in known if boost.is_on(sizes)}

    def at_creation(self, sizes: ContainerSizes) -> ContainerSizes:
        """Returns these sizes of new pods with the boosts."""
        return with_cpu(sizes, {name: boost.boosted for name, boost in self.by_container.items()})

    @property
    def known(self) -> ContainerSizes:
        """The CPU of the boosts that pods may have, by container."""
        return {boost.container: boost.boosted for boost in (*self.earlier, *self.by_container.values())}

    def are_counted(self, pods: Iterable[Pod], clock: Clock) -> bool:
        """Whether a ready pod has a boost. The HPA divides usage by the requests of ready pods."""
        return any(
            self.starting(pod, clock).keys() & self.on(present_resources(pod.spec.containers)).keys()
            for pod in pods
            if (ready := condition(pod.status.conditions, "Ready")) is not None and ready.status == "True"
        )


_NO_BOOST: Final = Boost("", NOTHING, NOTHING)
_NO_BOOSTS: Final = Boosts()


def _starts(entry: StartupBoost, pod: Pod, clock: Clock) -> bool:
    """Whether the pod starts, so that the container has the boost.

    A pod that has been ready, or that no node has room for, does not start. Once a container has been restarted, the
    time counts from the pod's own start, because the containers' first start is no longer known.
    """
    status, ready = pod.status, condition(pod.status.conditions, "Ready")
    if _has_no_node(pod):
        return False
    if status.start_time is None:
        return True
    runs, containers = status.running_since, status.container_statuses
    is_first = runs is not None and not any(container.restart_count for container in containers)
    begun = runs if runs is not None and is_first else status.start_time
    ends = [after(begun, entry.at_most)]
    if entry.until == "Started":
        if any(container.started for container in containers if container.name == entry.container):
            ends.append(after(begun, entry.after))
    elif ready is not None and ready.last_transition_time is not None:
        if ready.status == "True":
            ends.append(after(ready.last_transition_time, entry.after))
        elif runs is not None and ready.last_transition_time > runs:
            return False
    return not clock.is_past(min(ends))


def with_cpu(sizes: ContainerSizes, cpu: ContainerSizes) -> ContainerSizes:
    """Returns the sizes with other CPU of some containers."""
    return {
        **sizes,
        **{name: by_section(or_, sizes.get(name, NOTHING), part) for name, part in cpu.items()},
    }


def creation_refused(observation: ObservedState, clock: Clock) -> bool:
    """Whether new pods are refused, such as by a quota: the workload reports it, or does not create missing pods
    although all others are ready."""
    workload = observation.target
    if workload is None or len(observation.resizable) >= workload.spec.replicas:
        return False
    if any(entry.type == REPLICA_FAILURE and entry.status == "True" for entry in workload.status.conditions):
        return True
    return observation.pods.ready == observation.pods.living and last_change_is_past(observation, clock)


def _boost(
    entry: StartupBoost, have: ResourceRequirements, container: Container, *, scales_limit: bool
) -> Boost | str:
    """Returns a container's boost, or why it gets none.

    Example: 500m with a limit of 1 core and factor 3 become 1500m with a limit of 3 cores. With `controlledValues:
    RequestsOnly` they become 999m, and the limit stays: with all requests equal to their limits, the pod's QoS class
    would change.
    """
    usual = _usual(have)
    request, limit = usual.requests[CPU], usual.limits.get(CPU)
    if not request:
        return "it requests no CPU"
    if any(
        policy.resource_name == CPU and policy.restart_policy == RESTART for policy in container.resize_policy
    ):
        return "a resize of its CPU restarts it"
    most = limit - 1 if limit is not None and not scales_limit else LARGEST
    boosted = min(entry.cpu.of(request), most)
    if boosted <= request:
        wanted, now = readable_resource(CPU, boosted), readable_resource(CPU, request)
        return f"a boost to {wanted} is not more than the {now} that it requests"
    then = limit
    if limit is not None and scales_limit:
        then = min(LARGEST, ceil_div(limit * boosted, request))
    return Boost(entry.container, usual, _cpu(boosted, then))


def _usual(size: ResourceRequirements) -> ResourceRequirements:
    """Returns the CPU of a size. A missing request equals the limit, as in Kubernetes."""
    limit = size.limits.get(CPU)
    return _cpu(size.requests.get(CPU, limit or 0), limit)


def _cpu(request: int, limit: int | None) -> ResourceRequirements:
    return ResourceRequirements({CPU: request}, {} if limit is None else {CPU: limit})


def _has_no_node(pod: Pod) -> bool:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == UNSCHEDULABLE
