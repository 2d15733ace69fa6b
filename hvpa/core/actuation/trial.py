"""A new size is tried on some pods first, and taken back where they fail (`spec.updateStrategy.canary`, DESIGN 11.5); a
size that no node takes is taken back as well (DESIGN 11.6).

While it is tried, the other pods keep the size before, changes of requests wait (gate `Canary`), and a size that failed
is not tried again for a day (gate `RolledBack`). Replicas go on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hvpa.api.hvpa.actuation import Canary
from hvpa.api.hvpa.status import CanaryRun, DesiredSize, FailedChange, RecommendedContainer, RolledBack
from hvpa.api.objects.read_models import ContainerStatus, Pod
from hvpa.api.values.quantity import Resource
from hvpa.core.actuation.desired import NOTHING, sizes_of
from hvpa.core.actuation.pod import Look, PodState, is_ready, own_pods, present_of, ran_out_of_memory
from hvpa.core.gates.gates import GateContext
from hvpa.core.gates.backoff import rollbacks_after
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.values.clock import after
from hvpa.core.workload.containers import present_resources, wire
from hvpa.core.workload.rollout import OOM_KILLED
from hvpa.core.workload.stuck import CRASH_LOOP


class Trial(msgspec.Struct, frozen=True, gc=False):
    """The desired size with what is tried of it, and what was taken back by this decision."""

    desired: DesiredSize
    rolled_back: RolledBack | None = None


def tried(context: GateContext, seen: ObservedState, size: DesiredSize) -> Trial:
    """The desired size where a changed one is tried first: a trial begins, goes on, or ends. A size that fails is taken
    back, whatever else was decided, and so is one that a pod can't have where nothing else is left to try (`InPlace`):
    replicas serve in its place."""
    before, strategy = seen.status.desired, context.spec.update_strategy
    if before is not None and strategy.type == "InPlace":
        states = _states(context, seen, before, own_pods(seen))
        if too_much := [one for one in states if one.is_too_much]:
            first = too_much[0]
            why = f"pod {first.pod.metadata.name}: {first.why}"
            return _taken_back(context, seen, size, _had_by(too_much, before), why)
    if strategy.canary is None:
        return Trial(_over(size))
    run = None if before is None else before.canary
    if before is not None and run is not None:
        states = _states(context, seen, before, _canaries(context, seen, before, run))
        has_size = bool(states) and all(one.state == "resized" for one in states)
        since = (run.since or context.clock.stamp()) if has_size else None
        is_over = since is not None and context.clock.is_past(after(since, strategy.canary.duration))
        for state in states:
            sizes = (sizes_of(run.previous), sizes_of(before.containers))
            has_new = state.state != "waiting"
            why = failure(strategy.canary, state.pod, sizes, before.since, is_over=is_over) if has_new else ""
            why = state.why if state.is_near_use else why
            if why:
                return _taken_back(context, seen, size, run.previous, f"pod {state.pod.metadata.name}: {why}")
        names = tuple(one.pod.metadata.name for one in states)
        run = run.model_copy(update={"pods": names, "since": since})
        # Pods that can't be resized are replaced by their workload, within its own limits.
        is_stuck = strategy.type == "InPlaceOrRollout" and any(one.is_stuck for one in states)
        if is_over or is_stuck:
            run = None
    if size.containers != (() if before is None else before.containers):
        run = CanaryRun(previous=_present(seen, size) if run is None else run.previous)
        names = tuple(pod.metadata.name for pod in _canaries(context, seen, size, run))
        run = run.model_copy(update={"pods": names})
    return Trial(_over(size) if run is None else size.model_copy(update={"canary": run}))


def _canaries(context: GateContext, seen: ObservedState, size: DesiredSize, run: CanaryRun) -> list[Pod]:
    """The pods that a size is tried on: those that ran out of memory, which need it most; those that it was tried on
    before; those that are ready."""

    def order(pod: Pod) -> tuple[bool, bool, bool, str]:
        name = pod.metadata.name
        return not ran_out_of_memory(pod, size.since), name not in run.pods, not is_ready(pod), name

    pods = own_pods(seen)
    return sorted(pods, key=order)[: context.spec.update_strategy.canary_pods(len(pods))]


def _states(
    context: GateContext, seen: ObservedState, size: DesiredSize, pods: Sequence[Pod]
) -> list[PodState]:
    refused = {one.uid: one for one in seen.refused_resizes}
    look = Look(context, sizes_of(size.containers), size.since, {}, seen.memory_use)
    return [look.at(pod, refused.get(pod.metadata.uid)) for pod in pods]


def _had_by(states: Sequence[PodState], size: DesiredSize) -> tuple[RecommendedContainer, ...]:
    """Of what `size` names, the most that these pods have."""
    found: dict[str, ResourceRequirements] = {}
    for pod in [one.pod for one in states]:
        for container in pod.spec.containers:
            own, most = present_of(pod, container), found.get(container.name, NOTHING)
            found[container.name] = ResourceRequirements(
                _larger(own.requests, most.requests), _larger(own.limits, most.limits)
            )
    return _named(size, found)


def _larger(one: Mapping[Resource, int], other: Mapping[Resource, int]) -> dict[Resource, int]:
    return {resource: max(value, other.get(resource, 0)) for resource, value in one.items()}


def _over(size: DesiredSize) -> DesiredSize:
    return size if size.canary is None else size.model_copy(update={"canary": None})


def _present(seen: ObservedState, size: DesiredSize) -> tuple[RecommendedContainer, ...]:
    """Of what `size` names, what the workload's containers have before it."""
    assert seen.workload is not None
    return _named(size, present_resources(seen.workload.spec.template.spec.containers))


def _named(
    size: DesiredSize, present: Mapping[str, ResourceRequirements]
) -> tuple[RecommendedContainer, ...]:
    found = []
    for name, one in sizes_of(size.containers).items():
        own = present.get(name, NOTHING)
        requests = {resource: value for resource, value in own.requests.items() if resource in one.requests}
        limits = {resource: value for resource, value in own.limits.items() if resource in one.limits}
        found.append(RecommendedContainer(name=name, requests=wire(requests), limits=wire(limits)))
    return tuple(found)


def failure(
    canary: Canary,
    pod: Pod,
    sizes: tuple[Mapping[str, ResourceRequirements], Mapping[str, ResourceRequirements]],
    since: dt.datetime,
    *,
    is_over: bool,
) -> str:
    """How a pod fails that has the new one of two `sizes` since a time; empty where it does not."""
    before, after_it = sizes
    for one in pod.status.container_statuses:
        has_more = _memory(after_it, one.name) > _memory(before, one.name)
        reasons = set(_ends(one, since))
        if has_more:
            reasons.discard(OOM_KILLED)  # which the size before could not have stood either
        if OOM_KILLED in reasons and OOM_KILLED in canary.rollback_on:
            return f"container {one.name} ran out of memory"
        waiting = one.state.waiting
        if (
            waiting is not None
            and waiting.reason == CRASH_LOOP
            and reasons
            and CRASH_LOOP in canary.rollback_on
        ):
            return f"container {one.name} ends again and again"
    if is_over and not is_ready(pod) and "NotReady" in canary.rollback_on:
        return "it is not ready"
    return ""


def _ends(one: ContainerStatus, since: dt.datetime) -> Iterator[str]:
    """Why the container ended since the size was decided."""
    for ended in (one.state.terminated, one.last_state.terminated):
        if ended is not None and ended.finished_at is not None and ended.finished_at >= since:
            yield ended.reason


def _memory(sizes: Mapping[str, ResourceRequirements], name: str) -> int:
    return sizes.get(name, NOTHING).requests.get("memory", 0)


def _taken_back(
    context: GateContext,
    seen: ObservedState,
    size: DesiredSize,
    previous: tuple[RecommendedContainer, ...],
    why: str,
) -> Trial:
    """The desired size with `previous` in place of what failed."""
    assert seen.status.desired is not None
    record = taken_back(context, seen, sizes_of(seen.status.desired.containers), sizes_of(previous), why)
    since = context.clock.stamp().replace(microsecond=0)
    return Trial(size.model_copy(update={"containers": previous, "canary": None, "since": since}), record)


def taken_back(
    context: GateContext,
    seen: ObservedState,
    failed: Mapping[str, ResourceRequirements],
    previous: Mapping[str, ResourceRequirements],
    why: str,
) -> RolledBack:
    """The record of sizes that failed, and of what the pods had before."""
    changes = tuple(
        FailedChange(container=name, resource=resource, previous=have, failed=value)
        for name, one in failed.items()
        for resource, value in one.requests.items()
        if (have := previous.get(name, NOTHING).requests.get(resource)) is not None and have != value
    )
    clock = context.clock
    count = rollbacks_after(seen.status.rolled_back, clock)
    return RolledBack(count=count, time=clock.stamp(), message=why, changes=changes)
