"""Tries a new size on some pods first and rolls it back if they fail (`spec.updateStrategy.canary`, DESIGN 11.5). A
size that fits on no node is rolled back as well (DESIGN 11.6).

During the trial the other pods keep the previous size, and changes of requests wait (gate `Canary`). A failed size is
not tried again for a day (gate `RolledBack`). Replicas still change.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from functools import partial
from operator import or_

from hvpa.api.hvpa.actuation import Canary
from hvpa.api.hvpa.progress import CanaryRun, DesiredSize
from hvpa.api.hvpa.status import FailedChange, RolledBack, VerticalAxis
from hvpa.api.objects.read_models import Pod
from hvpa.api.values.quantity import CPU, MEMORY, Resource
from hvpa.core.actuation.desired import (
    NOTHING,
    ContainerSizes,
    by_section,
    differing,
    had,
    recorded,
    sizes_of,
)
from hvpa.core.actuation.kubelet import only
from hvpa.core.actuation.pod import (
    PodComparison,
    PodState,
    ends,
    is_ready,
    own_pods,
    present_sizes,
    ran_out_of_memory,
)
from hvpa.core.actuation.startup import Boosts
from hvpa.core.gates.backoff import rollbacks_after, with_rules, with_waiting
from hvpa.core.gates.gates import GateContext
from hvpa.core.gates.verdict import Verdict, judged
from hvpa.core.model import ObservedState, ResourceRequirements, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.state import before_fast
from hvpa.core.workload.containers import SHARED, present_resources
from hvpa.core.workload.runtimes import read_at_start
from hvpa.core.workload.starving import OOM_KILLED
from hvpa.core.workload.stuck import CRASH_LOOP


def tried(
    context: GateContext, observation: ScalableState, size: DesiredSize, axis: VerticalAxis | None
) -> tuple[DesiredSize, RolledBack | None]:
    """Starts, continues or ends a trial; returns the desired size with the trial, and the record of a rollback.

    A size that fails is rolled back, regardless of the rest of the decision. With `InPlace` a size that no pod can have
    is rolled back as well, and HVPA adds replicas instead. With an HPA, so is a CPU size for which no pod's node had
    room during the strategy's timeout. If only some pods can't have the size, the others keep it (DESIGN 5.4, sentence
    13). `axis`: the record after this decision. What the fast signal raised and its end need no trial.
    """
    before, strategy = observation.status.desired, context.spec.strategy
    template = observation.target.spec.template.spec.containers
    at_start = frozenset(
        [ResourceKey(name, MEMORY) for name in read_at_start(context.spec.runtimes, template)]
    )
    if before is not None and strategy.type == "InPlace":
        states = _states(context, observation, before, own_pods(observation))
        previous = _without_room(observation, before, states, at_start)
        if previous is not None:
            first = min(states, key=lambda state: state.pod.metadata.name)
            return _rolled_back_size(context, observation, size, previous, _of_pod(first.pod, first.why))
    run = None if before is None or strategy.canary is None else _run_of(before, at_start)
    if before is not None and strategy.canary is not None and run is not None:
        states = _states(
            context, observation, before, _canaries(context, observation, before.since, run.pods)
        )
        has_size = bool(states) and all(state.state == "resized" for state in states)
        since = (run.since or context.clock.stamp()) if has_size else None
        previous = sizes_of(run.previous)
        sizes = (previous, sizes_of(before.containers))
        verdict = Verdict() if since is None else judged(context, observation, since, sizes)
        is_over = verdict.is_over
        for state in states:
            why = state.why if state.is_near_use else ""
            if not why and (state.state != "waiting" or state.starts):
                why = failure(strategy.canary, state.pod, sizes, before.since, is_over=is_over)
            if why:
                return _rolled_back_size(context, observation, size, previous, _of_pod(state.pod, why))
        if verdict.failure:
            return _rolled_back_size(context, observation, size, previous, verdict.failure)
        # Pods that can't be resized are replaced by their workload, within its own limits.
        is_stuck = strategy.type == "InPlaceOrRollout" and any(state.is_stuck for state in states)
        names = tuple(state.pod.metadata.name for state in states)
        run = None if is_over or is_stuck else run.model_copy(update={"pods": names, "since": since})
    if strategy.canary is not None:
        present = present_resources(observation.workload.spec.template.spec.containers)
        fast, is_new = _changed(observation, present, size, axis, at_start)
        if is_new:
            previous = had(present, sizes_of(size.containers)) if run is None else sizes_of(run.previous)
            pods = _canaries(context, observation, size.since, ())
            names = tuple(pod.metadata.name for pod in pods)
            run = CanaryRun(pods=names, previous=recorded(_with_fast(previous, size, fast)))
    return (size if size.canary == run else size.model_copy(update={"canary": run})), None


def _changed(
    observation: ScalableState,
    present: ContainerSizes,
    size: DesiredSize,
    axis: VerticalAxis | None,
    at_start: Set[ResourceKey],
) -> tuple[frozenset[ResourceKey], bool]:
    """Returns the requests that need no trial, and whether anything else changes: those that the fast signal raises or
    that return to what they were before, and those that containers read when they start."""
    before = observation.status.desired
    containers = () if before is None else before.containers
    had_before = {**present, **sizes_of(containers)}
    known, raised = observation.vertical.fast_raises, () if axis is None else axis.fast_raises
    changes = {
        ResourceKey(name, resource): (then, now)
        for name, wanted in sizes_of(size.containers).items()
        for resource, now in wanted.requests.items()
        if (then := had_before.get(name, NOTHING).requests.get(resource, 0)) != now
    }
    fast = frozenset(
        key
        for key, (then, now) in changes.items()
        if key in at_start
        or before_fast(raised, *key, now) is not None
        or before_fast(known, *key, then) == now
    )
    return fast, size.containers != containers and (fast != changes.keys() or not changes)


def _run_of(size: DesiredSize, at_start: Set[ResourceKey]) -> CanaryRun | None:
    """Returns the trial of a size; None if there is none, or if it tries only what no pod gets by a resize."""
    run = size.canary
    if run is None or not at_start:
        return run
    before = sizes_of(run.previous)
    gaps = {
        name: differing(before.get(name, NOTHING), wanted)
        for name, wanted in sizes_of(size.containers).items()
    }
    changes = {
        ResourceKey(name, resource)
        for name, gap in gaps.items()
        for resource in gap.requests.keys() | gap.limits.keys()
    }
    return run if changes - at_start else None


def _with_fast(sizes: ContainerSizes, size: DesiredSize, fast: Set[ResourceKey]) -> ContainerSizes:
    """Returns `sizes` with what the fast signal changes, for the pods that do not try the rest."""

    def changed(
        name: str, old: Mapping[Resource, int], new: Mapping[Resource, int]
    ) -> Mapping[Resource, int]:
        return {**old, **{of: new[of] for of in new if ResourceKey(name, of) in fast}}

    wanted = sizes_of(size.containers)
    return {
        name: by_section(partial(changed, name), old, wanted.get(name, NOTHING))
        for name, old in sizes.items()
    }


def _without_room(
    observation: ScalableState,
    before: DesiredSize,
    states: Sequence[PodState],
    at_start: Set[ResourceKey],
) -> ContainerSizes | None:
    """Returns the sizes that replace a size that no pod can have, or that no pod's node had room for; None if there is
    none. Without room, memory stays: no replicas would replace it, and the pods may have run out of it."""
    if not states:
        return None
    decided = sizes_of(before.containers)
    previous = had(largest_of(observation, [state.pod for state in states]), decided)
    previous = {
        name: by_section(or_, size, only(decided[name], {MEMORY}))
        if ResourceKey(name, MEMORY) in at_start
        else size
        for name, size in previous.items()
    }
    if not all(state.is_too_much for state in states):
        if not observation.hpa.in_charge or not all(
            state.is_too_much or (state.is_stuck and state.state == "deferred") for state in states
        ):
            return None
        previous = {
            name: by_section(or_, size, only(previous.get(name, NOTHING), {CPU}))
            for name, size in decided.items()
        }
    return None if previous == decided else previous


def _canaries(
    context: GateContext, observation: ObservedState, since: dt.datetime, before: Sequence[str]
) -> list[Pod]:
    """Returns the pods that try a size: first those that ran out of memory `since` the decision, then the pods named in
    `before`, then ready pods."""

    def order(pod: Pod) -> tuple[bool, bool, bool, str]:
        name = pod.metadata.name
        return not ran_out_of_memory(pod, since), name not in before, not is_ready(pod), name

    pods = own_pods(observation)
    return sorted(pods, key=order)[: context.spec.strategy.canary_pods(len(pods))]


def _states(
    context: GateContext, observation: ObservedState, size: DesiredSize, pods: Sequence[Pod]
) -> list[PodState]:
    comparison = PodComparison.of(context, observation, sizes_of(size.containers), size.since)
    return [comparison.at(pod) for pod in pods]


def largest_of(observation: ObservedState, pods: Sequence[Pod]) -> ContainerSizes:
    """Returns the largest resources of each container among these pods. The template's CPU replaces boosts of starts,
    however old the pods are: a boost must never become a size."""

    def larger(amounts: Mapping[Resource, int], others: Mapping[Resource, int]) -> Mapping[Resource, int]:
        return {resource: max(amount, others.get(resource, 0)) for resource, amount in amounts.items()}

    boosts = Boosts.of(observation, {})
    largest: dict[str, ResourceRequirements] = {}
    for pod in pods:
        for name, have in boosts.unboosted_in(present_sizes(pod)).items():
            largest[name] = by_section(larger, have, largest.get(name, NOTHING))
    return largest


def failure(
    canary: Canary,
    pod: Pod,
    sizes: tuple[ContainerSizes, ContainerSizes],
    since: dt.datetime,
    *,
    is_over: bool,
) -> str:
    """Returns how a pod with the new size fails; empty if it does not. `sizes` are the size before and the new size."""
    before, then = [
        {name: size.requests.get("memory", 0) for name, size in by_name.items()} for by_name in sizes
    ]
    for status in pod.status.container_statuses:
        reasons, waiting = ends(status, since), status.state.waiting
        name = status.name if status.name in then else SHARED
        if then.get(name, 0) > before.get(name, 0):
            reasons.discard(OOM_KILLED)  # the smaller size before would have run out of memory as well
        if OOM_KILLED in reasons and OOM_KILLED in canary.rollback_on:
            return f"container {status.name} ran out of memory"
        is_looping = waiting is not None and waiting.reason == CRASH_LOOP
        if is_looping and reasons and CRASH_LOOP in canary.rollback_on:
            return f"container {status.name} keeps terminating"
    return "it is not ready" if is_over and not is_ready(pod) and "NotReady" in canary.rollback_on else ""


def _of_pod(pod: Pod, why: str) -> str:
    return f"pod {pod.metadata.name}: {why}"


def _rolled_back_size(
    context: GateContext,
    observation: ObservedState,
    size: DesiredSize,
    previous: ContainerSizes,
    why: str,
) -> tuple[DesiredSize, RolledBack]:
    """Returns the desired size with `previous` instead of the size that failed."""
    assert observation.status.desired is not None
    failed = sizes_of(observation.status.desired.containers)
    record = taken_back(context, observation, failed, previous, why)
    update = {"containers": recorded(previous), "canary": None, "since": record.time.replace(microsecond=0)}
    return size.model_copy(update=update), record


def taken_back(
    context: GateContext,
    observation: ObservedState,
    failed: ContainerSizes,
    previous: ContainerSizes,
    why: str,
) -> RolledBack:
    """Returns the record of the sizes that failed and of the sizes before them."""
    known, clock = observation.status.rolled_back, context.clock
    count, changes = rollbacks_after(known, clock), with_waiting(changes_back(failed, previous), known, clock)
    return RolledBack(count=count, time=clock.stamp(), message=with_rules(why, known, clock), changes=changes)


def changes_back(failed: ContainerSizes, previous: ContainerSizes) -> tuple[FailedChange, ...]:
    """Returns the requests that differ between sizes and the sizes before them."""
    return tuple(
        FailedChange(container=name, resource=resource, previous=have, failed=amount)
        for name, size in failed.items()
        for resource, amount in size.requests.items()
        if (have := previous.get(name, NOTHING).requests.get(resource)) is not None and have != amount
    )
