"""The state of a pod on its way to the desired size, and the resize that is due. Memory limits are lowered last, in
requests that raise nothing, and in steps (`LIMIT_STEP_PERCENT`). Parts that a kubelet refuses are set back to the
container's actual resources, so that they block nothing else (`kubelet`).

KEP-1287 and docs/in-place.md (measured) describe the `resize` subresource. A resize changes requests and limits and
never removes them. A pod keeps its QoS class for life. A container restarts if its `resizePolicy` requires it. The
kubelet reports a waiting resize as `PodResizePending` (Deferred: the node has no room now; Infeasible: never possible)
and a running resize as `PodResizeInProgress`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from operator import or_
from typing import Final, Literal, NamedTuple

import msgspec

from hvpa.api.objects.read_models import (
    ContainerStatus,
    Pod,
    PodCondition,
    Resources,
    TemplateSpec,
    condition,
)
from hvpa.api.values.quantity import CPU, MEMORY, RESOURCES, Resource, readable_resource
from hvpa.core.actuation.desired import NOTHING, ContainerSizes, by_section, differing, had, moved
from hvpa.core.actuation.kubelet import (
    ALL,
    INFEASIBLE,
    RESIZE_IN_PROGRESS,
    RESIZE_PENDING,
    fresh,
    infeasible,
    lowered_limits,
    only,
    resize_error,
    resources_named,
    used_at_least,
)
from hvpa.core.actuation.startup import Boost, Boosts, sizes_of_spec, with_cpu
from hvpa.core.gates.backoff import refusal_wait
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MemoryUse, ObservedState, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.clock import after
from hvpa.core.values.tuning import LIMIT_STEP_PERCENT, USE_COUNTS, USE_PERCENT
from hvpa.core.workload.containers import SHARED, changes, read_all, reported
from hvpa.core.workload.pod_level import POD, of_init, with_pod
from hvpa.core.workload.rollout import is_living
from hvpa.core.workload.runtimes import read_at_start
from hvpa.core.workload.starving import OOM_KILLED
from hvpa.recommend.hpa.pods import lasting

RECENT: Final = dt.timedelta(minutes=10)
"""If a container ran out of memory within this time before a decision, the decision may have been made for it."""
MOST_REFUSALS: Final = 3
"""After this many refusals in a row (over three minutes) the size is too much: a LimitRange or a quota forbids it. A
resize that exceeds the pod's node counts as refused this often at once."""

ResizeProgress = Literal["resized", "in_progress", "deferred", "infeasible", "waiting"]
Qos = Literal["Guaranteed", "Burstable", "BestEffort"]


class PodState(msgspec.Struct, frozen=True, gc=False):
    """A pod, its state and the resize that is due."""

    pod: Pod
    state: ResizeProgress
    why: str = ""
    """Reason of the state."""
    resize: PodResize | None = None
    raises: frozenset[Resource] = frozenset()
    """Resources that the resize raises."""
    lowers: frozenset[Resource] = frozenset()
    """Resources that the resize lowers."""
    restarts: bool = False
    """The resize restarts a container."""
    is_stuck: bool = False
    """The pod will not get the size by a resize, or not in time."""
    is_too_much: bool = False
    """The kubelet or the API server will not accept this size."""
    is_near_use: bool = False
    """The pod uses too much memory for the new limit."""
    starts: bool = False
    """The pod has more CPU for its start, or gets it."""
    of_start: bool = False
    """The resize gives the pod more CPU for its start, or ends that. No window holds it."""
    no_boost: str = ""
    """Why its start has no boost."""
    replaced_for: frozenset[str] = frozenset()
    """Containers that read their memory when they start (`spec.runtimes`), and of which another pod in its place would
    have other memory."""
    rescues: frozenset[str] = frozenset()
    """Those of them whose memory the resize raises, because they ran out of it."""


class PodComparison(NamedTuple):
    """The size that pods are compared with."""

    context: GateContext
    template: TemplateSpec | None
    decided: ContainerSizes
    """Desired resources by container."""
    sizes: ContainerSizes
    """The same, with those of the pod itself in place of `SHARED`."""
    since: dt.datetime
    """When the size was decided."""
    use: MemoryUse | None
    refused: Mapping[str, Sequence[RefusedResize]]
    boosts: Boosts

    @classmethod
    def of(
        cls, context: GateContext, observation: ObservedState, sizes: ContainerSizes, since: dt.datetime
    ) -> PodComparison:
        """Returns the comparison for the observed state."""
        use, refused = observation.memory_use, by_pod(observation.refused_resizes)
        target = observation.target
        template = None if target is None else target.spec.template.spec
        of_pod, boosts = with_pod(template, sizes), Boosts.of(observation, sizes)
        return cls(context, template, sizes, of_pod, since, use, refused, boosts)

    def at(self, pod: Pod) -> PodState:
        """Returns the state of a pod. Memory that containers read when they start is not resized, unless they ran out
        of it and get more: they start again, and memory other than heap can grow at once."""
        at_start = read_at_start(self.context.spec.runtimes, pod.spec.containers) & self.sizes.keys()
        if not at_start:
            return self._at(pod)
        memory, present = {name: only(self.sizes[name], {MEMORY}) for name in at_start}, present_sizes(pod)
        rescued = {
            status.name
            for status in pod.status.container_statuses
            if status.name in at_start
            and OOM_KILLED in ends(status, self.since - RECENT)
            and MEMORY in moved(present, {status.name: memory[status.name]})[0]
        }
        kept = {name: only(self.sizes[name], ALL - {MEMORY}) for name in at_start - rescued}
        lacking = frozenset([name for name in kept if differing(present[name], memory[name]) != NOTHING])
        sizes = {**self.sizes, **kept}
        if lacking and POD in sizes:
            sizes[POD] = self._pod_with(pod, kept)
        state = self._replace(sizes=sizes)._at(pod)
        rescues = frozenset[str](rescued if state.resize is not None and MEMORY in state.raises else ())
        return msgspec.structs.replace(state, replaced_for=lacking, rescues=rescues)

    def _pod_with(self, pod: Pod, kept: ContainerSizes) -> ResourceRequirements:
        """Returns the size of the pod itself while these containers keep the memory that they have. Its memory limit
        stays meanwhile, unless other containers need more."""
        have = specified(pod)
        present = {name: by_section(or_, size, only(have[name], {MEMORY})) for name, size in kept.items()}
        own = with_pod(self.template, {**self.decided, **present})[POD]
        return ResourceRequirements(own.requests, {**own.limits, **only(have[POD], {MEMORY}).limits})

    def _at(self, pod: Pod) -> PodState:
        """Returns the state of a pod. The begin and the end of a boost are resizes of their own, of CPU only."""
        if not self.boosts.known:
            return self._at_size(pod)
        clock = self.context.clock
        starting, on = self.boosts.starting(pod, clock), self.boosts.on(pod, clock)
        ended = {name: usual for name, usual in on.items() if name not in starting}
        no_boost, refused = "", tuple[RefusedResize, ...]()
        if starting:
            have, present = map(self.boosts.as_in_template, (sizes_of_spec(pod.spec), sizes_reported(pod)))
            beside = {name: only(have[name], {CPU}) for name in ended}
            begin = self._with_cpu(pod, beside | {name: boost.boosted for name, boost in starting.items()})
            if begin.resize is not None:
                return msgspec.structs.replace(begin, state="waiting", starts=True)
            has_all = all(
                differing(present.get(name, NOTHING), boost.boosted) == NOTHING
                for name, boost in starting.items()
            )
            if begin.state in ("deferred", "infeasible") and not has_all:
                no_boost, refused = begin.why, self._refused_boosts(pod, starting, begin.why) if on else ()
                starting, ended = {}, on
        cpu = ended | {name: boost.boosted for name, boost in starting.items()}
        if ended:
            end = self._with_cpu(pod, cpu, refused)
            if end.resize is not None:
                return msgspec.structs.replace(end, no_boost=no_boost)
        if (under_way := self._end_under_way(pod, starting)) is not None:
            return msgspec.structs.replace(under_way, no_boost=no_boost)
        state = self._replace(sizes=with_cpu(self.sizes, self._in_pod(cpu)))._at_size(pod)
        if starting:
            state = msgspec.structs.replace(state, starts=True, is_stuck=False)
            if state.state == "resized":
                state = msgspec.structs.replace(state, state="waiting", why="it starts with more CPU")
        return msgspec.structs.replace(state, no_boost=no_boost)

    def end_of_boosts(self, pod: Pod) -> PodState | None:
        """Returns the state with the resize that ends all boosts of a pod; None if it has none."""
        on = self.boosts.on(pod, self.context.clock)
        return self._with_cpu(pod, on) if on else self._end_under_way(pod, ())

    def _end_under_way(self, pod: Pod, starting: Collection[str]) -> PodState | None:
        """Returns the state of a pod whose spec contains the end of a boost that the container still has; None if there
        is none. The kubelet allocates a resize as a whole. If another part of it waits, that part is set back first.
        """
        spec, present = specified(pod), actual(pod)
        gaps = self._gaps(pod, present, spec)
        on = self.boosts.boosted_in(self.boosts.as_in_template(sizes_reported(pod)))
        at = {name: POD if name == SHARED else name for name in on}
        ending = {
            name
            for name, part in at.items()
            if gaps.get(part, NOTHING).requests.get(CPU, LARGEST) < present[part].requests[CPU]
        }
        if not ending - set(starting):
            return None
        if (lowered := self._lowered_first(pod, {})) is not None:
            return _of_start(lowered)
        return self._state_under_way(pod, restarts=False)

    def _with_cpu(self, pod: Pod, cpu: ContainerSizes, refused: tuple[RefusedResize, ...] = ()) -> PodState:
        """Returns the state of a pod compared with this CPU alone; `refused` are further records of its resize."""
        return _of_start(self._replace(sizes=self._in_pod(cpu))._at_size(pod), refused)

    def _in_pod(self, cpu: ContainerSizes) -> ContainerSizes:
        """Returns this CPU of containers, and that of the pod itself with it in place of `SHARED`."""
        then = with_pod(self.template, self.boosts.applied(self.decided, cpu))
        if not cpu or POD not in then:
            return cpu
        return {name: size for name, size in cpu.items() if name != SHARED} | {POD: only(then[POD], {CPU})}

    def _refused_boosts(self, pod: Pod, boosts: Mapping[str, Boost], why: str) -> tuple[RefusedResize, ...]:
        """Returns the record of boosts that the kubelet has not allocated, so that they are not tried again soon."""
        usual = self._in_pod({name: boost.usual for name, boost in boosts.items()})
        then = self._in_pod({name: boost.boosted for name, boost in boosts.items()})
        parts = {name: differing(usual[name], size) for name, size in then.items()}
        body, now = _resize_body(pod, parts), self.context.clock.stamp()
        return (RefusedResize(pod.metadata.uid, body, why, now, MOST_REFUSALS, of_start=True),)

    def _at_size(self, pod: Pod) -> PodState:
        """Returns the state of a pod without regard to its start. A pod whose kubelet refused a memory limit is stuck
        after the strategy's timeout, even if HVPA put the limit back."""
        state = self._state_of(pod)
        was_refused = any(refusal.used for refusal in self.refused.get(pod.metadata.uid, ()))
        if state.state == "resized" or not was_refused or not self._is_late(pod, None):
            return state
        return msgspec.structs.replace(state, is_stuck=True)

    def _state_of(self, pod: Pod) -> PodState:
        spec, present = specified(pod), actual(pod)
        gaps = self._gaps(pod, present, spec)
        used = None if gaps else self._memory_used(pod)
        due = self._due_changes(pod, spec, used)
        if used is not None and moved(spec, due)[0]:
            due = self._due_changes(pod, spec, None)
        if not due and not gaps:
            return self._state_at_rest(pod, spec, used or {})
        if gaps and (state := self._put_back_refused(pod, spec, present, gaps, due)) is not None:
            return self._unless_refused(state)
        if infeasible(pod) is None and (lowered := self._lowered_first(pod, due)) is not None:
            return self._unless_refused(lowered)
        restarts = bool(_restarting_containers(pod, {**gaps, **due}))
        if due:
            state = self._unless_refused(_state_with_resize(pod, spec, due, restarts))
            if (partial := self._without_refused(pod, spec, gaps, due, state)) is not None:
                return partial
            if state.state != "infeasible" or not gaps or fresh(pod, RESIZE_PENDING) is not None:
                return state  # otherwise it is judged once it has the rest
        return self._state_under_way(pod, restarts)

    def _gaps(self, pod: Pod, present: ContainerSizes, wanted: ContainerSizes) -> ContainerSizes:
        """Returns, for each container, the part of the spec's size that it does not have yet. A container that has not
        started yet starts with the spec's size. Sidecars count only if HVPA resizes them for their start."""
        gaps = {
            name: differing(present[name], size) for name, size in wanted.items() if present[name] != size
        }
        others = {one.name for one in pod.spec.init_containers if one.name not in self.boosts.known}
        return {name: gap for name, gap in gaps.items() if gap != NOTHING and name not in others}

    def _state_at_rest(self, pod: Pod, spec: ContainerSizes, used: Mapping[str, int]) -> PodState:
        """Returns the state of a pod that has the resources of its spec. It is not resized further while it uses this
        much memory."""
        if used and (kept := sorted(self._due_changes(pod, spec, {}))):
            if self.use is not None:  # Look again when this usage no longer counts.
                self.context.clock.is_past(after(self.use.time, USE_COUNTS))
            amount = readable_resource("memory", used[kept[0]])
            why = f"container {kept[0]} uses {amount} of memory, too close to its new limit"
            return PodState(pod, "waiting", why, is_near_use=True)
        return PodState(pod, "resized")

    def _memory_used(self, pod: Pod) -> Mapping[str, int]:
        """Returns the known memory usage of a pod's containers. A kubelet's figure counts for as long as the refused
        resize waits."""
        refused = self.refused.get(pod.metadata.uid, ())
        if self.use is None and not refused:
            return {}
        measured = {} if self.use is None else self.use.of
        used = {
            container.name: measured.get((pod.metadata.name, container.name), 0)
            for container in pod.spec.containers
        }
        used[POD] = sum(used.values())
        for refusal in refused:
            if (
                refusal.used
                and self.context.clock.held_until(refusal.time, refusal_wait(refusal.count)) is not None
            ):
                used |= {name: max(used.get(name, 0), amount) for name, amount in refusal.used.items()}
        return used

    def _due_changes(self, pod: Pod, sizes: ContainerSizes, used: Mapping[str, int] | None) -> ContainerSizes:
        """Returns the changes that are due to containers with these `sizes` (from the pod's spec) and this memory
        usage. `used` None: no memory limit is lowered now. Identical containers share an object."""
        equal = (
            {POD if POD in sizes else name for name in sizes} if qos_class(pod, sizes) == "Guaranteed" else ()
        )
        known, due = dict[object, ResourceRequirements](), {}
        for name, have in sizes.items():
            if name not in self.sizes:
                continue
            wanted, of_memory = self.sizes[name], None if used is None else used.get(name, 0)
            key = (id(have), id(wanted), of_memory, name in equal)
            if key not in known:
                known[key] = _due_change(have, wanted, of_memory, is_guaranteed=name in equal)
            if known[key] != NOTHING:
                due[name] = known[key]
        if due and POD in sizes and POD in self.sizes:
            return _with_room(pod, sizes, due, is_guaranteed=POD in equal)
        return due

    def _put_back_refused(
        self,
        pod: Pod,
        spec: ContainerSizes,
        present: ContainerSizes,
        gaps: ContainerSizes,
        due: ContainerSizes,
    ) -> PodState | None:
        """Returns the resize that sets parts of the spec back to the containers' actual resources, together with the
        other changes that are due. The parts are a memory limit that the kubelet refuses, and parts that block a raise
        (a memory limit that is not lowered yet, an infeasible resource). None if there is no such part.

        Example: the spec has 500m and 320 MB, the container has 500m and 400 MB, and 800m are due. HVPA requests 800m
        and 400 MB.
        """
        error, rejection = resize_error(pod), infeasible(pod)
        refused = frozenset[Resource]() if rejection is None else resources_named(rejection.message)
        others = ALL - refused
        remaining = {name: only(size, others) for name, size in _changed_sizes(spec, due).items()}
        raises, limits = bool(moved(present, remaining)[0]), lowered_limits(present, gaps)
        if error is None:
            restarting = _restarting_containers(
                pod, {name: only(gap, {"memory"}) for name, gap in gaps.items()}
            )
            limits = {name: limit for name, limit in limits.items() if raises and name not in restarting}
        parts_to_reset = {
            name: only(gap, (refused if raises else set()) | ({"memory"} if name in limits else set()))
            for name, gap in gaps.items()
        }
        base = _changed_sizes(spec, had(present, parts_to_reset))
        if base == spec:
            return None
        still_due = {
            name: only(change, others) for name, change in self._due_changes(pod, base, None).items()
        }
        target = _changed_sizes(base, still_due)
        asked = {name: part for name in spec if (part := differing(spec[name], target[name])) != NOTHING}
        state = _state_with_resize(pod, spec, asked, bool(_restarting_containers(pod, {**gaps, **asked})))
        if state.resize is None:
            return None  # its QoS class would change
        raised, lowered = moved(base, still_due)
        records = self._refusals(pod, target, limits, refused if raises else frozenset())
        is_near_use = any(record.used for record in records)
        return msgspec.structs.replace(
            state,
            why="; ".join([record.message for record in records]),
            resize=msgspec.structs.replace(state.resize, refused=records),
            raises=raised,
            lowers=lowered,
            is_near_use=is_near_use,
            is_stuck=is_near_use and self._is_late(pod, error),
        )

    def _lowered_first(self, pod: Pod, due: ContainerSizes) -> PodState | None:
        """Returns the resize that sets raises without room back to the containers' actual resources, if the spec or
        `due` lowers anything: the kubelet allocates a resize as a whole. The raises are due again after that. None if
        the kubelet holds no resize back, nothing is lowered, or a raise would remain: a resize can't remove a request.

        Example: the spec has 500m and 649 MB, the container has 1000m and 570 MB, and the node has no more memory. HVPA
        requests 500m and 570 MB.
        """
        if fresh(pod, RESIZE_PENDING) is None:
            return None
        spec, present = specified(pod), actual(pod)
        gaps = self._gaps(pod, present, spec)
        lowered = {name: only(change, moved(spec, {name: change})[1]) for name, change in due.items()}
        raised = {name: only(gap, moved(present, {name: gap})[0]) for name, gap in gaps.items()}
        target = _changed_sizes(_changed_sizes(spec, lowered), had(present, raised))
        asked: ContainerSizes = {
            name: part for name in spec if (part := differing(spec[name], target[name])) != NOTHING
        }
        if POD in spec:
            asked = _with_room(pod, spec, asked, is_guaranteed=qos_class(pod, spec) == "Guaranteed")
        changed = self._gaps(pod, present, _changed_sizes(spec, asked))
        raises, lowers = moved(present, changed)
        if not asked or raises or not lowers:
            return None
        state = _state_with_resize(pod, spec, asked, bool(_restarting_containers(pod, changed)))
        return None if state.resize is None else state

    def _refusals(
        self, pod: Pod, sizes: ContainerSizes, limits: Mapping[str, int], resources: frozenset[Resource]
    ) -> tuple[RefusedResize, ...]:
        """Returns the records of resources that the kubelet refuses and that the pod still needs at these sizes: memory
        `limits` and infeasible `resources`."""
        error, rejection = resize_error(pod), infeasible(pod)
        uid, stamp, records = pod.metadata.uid, self.context.clock.stamp, list[RefusedResize]()
        wanted = lowered_limits(sizes, self._due_changes(pod, sizes, {})).keys()
        if error is not None and (known := {name: limits[name] for name in limits.keys() & wanted}):
            used = used_at_least(error.message, known)
            records.append(RefusedResize(uid, {}, error.message, stamp(), used=used))
        later = {
            name: only(change, resources) for name, change in self._due_changes(pod, sizes, None).items()
        }
        if rejection is not None and (
            still_due := {name: change for name, change in later.items() if change != NOTHING}
        ):
            records.append(
                RefusedResize(uid, _resize_body(pod, still_due), rejection.message, stamp(), MOST_REFUSALS)
            )
        return tuple(records)

    def _unless_refused(self, state: PodState) -> PodState:
        """Delays a resize that the API server refused or that the kubelet reported as infeasible: a minute, then two,
        up to an hour. The pod stays infeasible until the resize is accepted."""
        if state.resize is None:
            return state
        refusals = self.refused.get(state.pod.metadata.uid, ())
        refused = next((refusal for refusal in refusals if refusal.body == state.resize.body), None)
        if refused is None:
            return state
        stuck = msgspec.structs.replace(
            state,
            state="infeasible",
            why=refused.message,
            is_stuck=True,
            is_too_much=refused.count >= MOST_REFUSALS and not refused.of_any_size,
        )
        if self.context.clock.held_until(refused.time, refusal_wait(refused.count)) is None:
            return stuck
        return msgspec.structs.replace(stuck, resize=None, restarts=False)

    def _without_refused(
        self, pod: Pod, spec: ContainerSizes, gaps: ContainerSizes, due: ContainerSizes, refused: PodState
    ) -> PodState | None:
        """Returns the resize without the resource that its refusal names as too much, such as `allocatable resources:
        cpu, requested: 64000`. None if the resize may be accepted later, the refusal names no resource, or nothing else
        is due."""
        if not refused.is_too_much:
            return None
        others = ALL - resources_named(refused.why)
        remaining = {name: part for name, change in due.items() if (part := only(change, others)) != NOTHING}
        if not remaining or remaining == due:
            return None
        restarts = bool(_restarting_containers(pod, {**gaps, **remaining}))
        state = self._unless_refused(_state_with_resize(pod, spec, remaining, restarts))
        return state if state.state == "waiting" else None

    def _state_under_way(self, pod: Pod, restarts: bool) -> PodState:
        """Returns the state of a pod whose resize was requested and is not complete."""
        if (rejection := infeasible(pod)) is not None:
            return PodState(
                pod, "infeasible", rejection.message or INFEASIBLE, is_stuck=True, is_too_much=True
            )
        pending = fresh(pod, RESIZE_PENDING)
        answer = pending or fresh(pod, RESIZE_IN_PROGRESS)
        why = "the kubelet has not answered" if answer is None else answer.message
        state: ResizeProgress = "in_progress" if pending is None else "deferred"
        return PodState(pod, state, why, restarts=restarts, is_stuck=self._is_late(pod, answer))

    def _is_late(self, pod: Pod, pod_condition: PodCondition | None) -> bool:
        """Whether the timeout has passed since the latest of: the decision, the pod's start, and the condition's
        start."""
        times = [
            self.since,
            pod.status.start_time,
            None if pod_condition is None else pod_condition.last_transition_time,
        ]
        begun = max(when for when in times if when is not None)
        return self.context.clock.is_past(after(begun, self.context.spec.strategy.timeout))


def _state_with_resize(pod: Pod, have: ContainerSizes, due: ContainerSizes, restarts: bool) -> PodState:
    """Returns a pod that is due for a resize, or can't be resized. Identical containers are checked once."""
    kinds = {(id(size), id(due.get(name))): name for name, size in have.items()}.values()
    first = {name: due[name] for name in kinds if name in due}
    now = qos_class(pod, have)
    if now == "BestEffort":
        return PodState(pod, "infeasible", "a pod of QoS class BestEffort can't be resized", is_stuck=True)
    then = qos_class(pod, {name: by_section(or_, have[name], first.get(name, NOTHING)) for name in kinds})
    if then != now:
        why = f"its QoS class would change from {now} to {then}, which Kubernetes does not allow"
        return PodState(pod, "infeasible", why, is_stuck=True)
    raises, lowers = moved(have, first)
    limits = {name: ResourceRequirements({}, change.limits) for name, change in first.items()}
    lowers_limit = "memory" in moved(have, limits)[1]
    resize = PodResize(pod.metadata.name, pod.metadata.uid, _resize_body(pod, due), lowers_limit)
    return PodState(pod, "waiting", resize=resize, raises=raises, lowers=lowers, restarts=restarts)


def _of_start(state: PodState, refused: tuple[RefusedResize, ...] = ()) -> PodState:
    """Returns a pod's state with its resize as one of a boost; `refused` are further records of it."""
    if state.resize is None:
        return state
    own = [msgspec.structs.replace(record, of_start=not record.used) for record in state.resize.refused]
    resize = msgspec.structs.replace(state.resize, refused=(*own, *refused), of_start=True)
    return msgspec.structs.replace(state, resize=resize, of_start=True, is_stuck=False)


def _resize_body(pod: Pod, due: ContainerSizes) -> Mapping[str, object]:
    """Returns the body of a resize. Containers with the same resources share a text."""
    written = {id(change): changes(NOTHING, change) for change in due.values()}
    sidecars, spec = {container.name for container in pod.spec.init_containers}, dict[str, object]()
    for section, ours in (("containers", False), ("initContainers", True)):
        names = [name for name in sorted(due) if name != POD and (name in sidecars) == ours]
        if names:
            spec[section] = [{"name": name, "resources": written[id(due[name])]} for name in names]
    if POD in due:
        spec["resources"] = written[id(due[POD])]
    return {"metadata": {"uid": pod.metadata.uid}, "spec": spec}


def _due_change(
    have: ResourceRequirements,
    desired: ResourceRequirements,
    used: int | None,
    *,
    is_guaranteed: bool,
) -> ResourceRequirements:
    """Returns the changes of a container's requests and limits that are due now. `used` is its memory usage in bytes
    (0: unknown; None: its memory limit is not lowered now); `is_guaranteed` is true for a pod of QoS class Guaranteed.

    A memory limit falls by a fifth per step, and the next step waits until the container has the last one. Example:
    from 1000 MB to 500 MB in steps of 800, 640, 512 and 500 MB. With a usage of 500 MB the last step is 575 MB.
    """
    requests = dict(desired.requests) if is_guaranteed else {**have.requests, **desired.requests}
    limits = dict(desired.limits)
    for resource, limit in have.limits.items():
        wanted = limits.get(resource, limit)
        if resource == "memory" and wanted < limit:
            step, least = ceil_div(limit * LIMIT_STEP_PERCENT, 100), ceil_div((used or 0) * USE_PERCENT, 100)
            wanted = limit if used is None else min(limit, max(wanted, step, least))
        limits[resource] = max(wanted, requests.get(resource, 0))
        if is_guaranteed:
            requests[resource] = limits[resource]
    return differing(have, ResourceRequirements(requests, limits))


def _with_room(
    pod: Pod, sizes: ContainerSizes, due: ContainerSizes, *, is_guaranteed: bool
) -> ContainerSizes:
    """Returns changes that the API server accepts: the pod requests at least what its containers request, and no
    container has a larger limit than the pod (`validatePodResourceConsistency` in pkg/apis/core/validation). Containers
    that only the pod has count, and memory limits fall in steps."""
    then = dict(_changed_sizes(sizes, due))
    own = then.pop(POD)
    requests, limits = dict(own.requests), dict(own.limits)
    for resource in requests:
        own_requests = {name: size.requests.get(resource, 0) for name, size in then.items()}
        least = max(sum(own_requests.values()), of_init(pod.spec, resource, own_requests))
        requests[resource] = max(requests[resource], least)
    for resource in limits:
        least = requests.get(resource, 0)
        limits[resource] = max(
            limits[resource], least, *[size.limits.get(resource, 0) for size in then.values()]
        )
        if is_guaranteed:
            requests[resource] = limits[resource]
    own = differing(sizes[POD], ResourceRequirements(requests, limits))
    others = {name: change for name, change in due.items() if name != POD}
    return others if own == NOTHING else {**others, POD: own}


def qos_class(pod: Pod, sizes: ContainerSizes) -> Qos:
    """Returns the QoS class of a pod whose containers and native sidecars have these sizes (`ComputePodQOS` in
    pkg/apis/core/v1/helper/qos). If the pod has requests and limits of its own, only they count."""
    others = {
        container.name: container.resources
        for container in pod.spec.init_containers
        if container.restart_policy != "Always"
    }
    have = [sizes[POD]] if POD in sizes else [*sizes.values(), *read_all(others).values()]
    if not any(any(size.requests.values()) or any(size.limits.values()) for size in have):
        return "BestEffort"
    is_guaranteed = all(
        resource in size.limits
        and size.requests.get(resource, size.limits[resource]) == size.limits[resource]
        for size in have
        for resource in RESOURCES
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def specified(pod: Pod) -> ContainerSizes:
    """Returns the resources of each container and native sidecar, and of the pod itself if it has any, from the pod's
    spec."""
    sizes = {container.name: container.resources for container in lasting(pod.spec)}
    return read_all(_of_pod_and_containers(sizes, pod.spec.resources))


def actual(pod: Pod) -> ContainerSizes:
    """Returns the same as reported by the kubelet, otherwise from the pod's spec."""
    whole, have = pod.spec.resources, reported(pod, lasting(pod.spec))
    return read_all(_of_pod_and_containers(have, whole and (pod.status.resources or whole)))


def _of_pod_and_containers(
    containers: Mapping[str, Resources], whole: Resources | None
) -> Mapping[str, Resources]:
    """Returns the resources of the containers and, as the last one, of the pod itself, if it has any."""
    if whole is None:
        return containers
    return {**{name: size for name, size in containers.items() if name != SHARED}, POD: whole}


def awaited(pod: Pod) -> tuple[frozenset[Resource], frozenset[Resource]]:
    """Returns the resources whose requests in the pod's spec the kubelet has not raised yet, and those that it has not
    lowered yet."""
    sidecars = {container.name for container in pod.spec.init_containers}
    requests = {
        name: ResourceRequirements(size.requests, {})
        for name, size in specified(pod).items()
        if name not in sidecars
    }
    return moved(actual(pod), requests)


def present_sizes(pod: Pod) -> dict[str, ResourceRequirements]:
    """Returns the resources of each container: as reported by the kubelet, otherwise from the pod's spec."""
    return read_all(reported(pod))


def sizes_reported(pod: Pod) -> dict[str, ResourceRequirements]:
    """Returns the same of each container and native sidecar."""
    return read_all(reported(pod, lasting(pod.spec)))


def _changed_sizes(sizes: ContainerSizes, changed: ContainerSizes) -> ContainerSizes:
    """Returns the sizes with these changes."""
    return {name: by_section(or_, size, changed.get(name, NOTHING)) for name, size in sizes.items()}


def _restarting_containers(pod: Pod, changed: ContainerSizes) -> set[str]:
    """Returns the containers that restart when these resources change."""
    return {
        container.name
        for container in lasting(pod.spec)
        if (change := changed.get(container.name)) is not None
        and any(map(container.restarts_for, change.requests.keys() | change.limits.keys()))
    }


def reported_since(pod: Pod, state: str) -> dt.datetime | None:
    """Returns when the pod entered its state according to the kubelet; None if the kubelet does not report that."""
    kinds = {"in_progress": RESIZE_IN_PROGRESS, "deferred": RESIZE_PENDING, "infeasible": RESIZE_PENDING}
    pod_condition = fresh(pod, kinds[state]) if state in kinds else None
    return None if pod_condition is None else pod_condition.last_transition_time


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition `Ready` is True."""
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def own_pods(observation: ObservedState) -> list[Pod]:
    """Returns the workload's pods that run or will run."""
    return [pod for pod in observation.resizable if is_living(pod)]


def ends(status: ContainerStatus, since: dt.datetime) -> set[str]:
    """Returns the reasons for the container's ends since then."""
    terminations = (status.state.terminated, status.last_state.terminated)
    return {
        termination.reason
        for termination in terminations
        if termination is not None
        and termination.finished_at is not None
        and termination.finished_at >= since
    }


def by_pod(refused: Sequence[RefusedResize]) -> dict[str, list[RefusedResize]]:
    """Groups refused resizes by pod uid. A pod can have several: for its own size, and for a larger size that it should
    have had until other pods were ready."""
    refusals: dict[str, list[RefusedResize]] = {}
    for refusal in refused:
        refusals.setdefault(refusal.uid, []).append(refusal)
    return refusals


def ran_out_of_memory(pod: Pod, since: dt.datetime) -> bool:
    """Whether a container ran out of memory since the decision or shortly before it."""
    return any(OOM_KILLED in ends(status, since - RECENT) for status in pod.status.container_statuses)
