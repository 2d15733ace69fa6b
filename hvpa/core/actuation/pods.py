"""Resizes of running pods: which pods get the desired size now, and in which order (`pod` handles a single pod). It
also maintains the sizes for new pods: entries in the namespace's HvpaSizes, which the admission policy of
`config/size-at-creation` looks up by the new pod's owner."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from hvpa.api.hvpa.progress import Actuation, BoostedContainer, DesiredSize
from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import Pod, Quantity, Resources, Workload
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.desired import NOTHING, ContainerSizes, moved, size_of_new_pods, sizes_of
from hvpa.core.actuation.pod import (
    PodComparison,
    PodState,
    is_ready,
    own_pods,
    ran_out_of_memory,
    sizes_reported,
)
from hvpa.core.actuation.startup import Boosts, creation_refused, sizes_of_spec
from hvpa.core.actuation.undo import undo_of, undo_resizes
from hvpa.core.gates.gates import PAUSED, Change, GateContext, Hold, first_hold
from hvpa.core.model import Direction, ObservedState, PodResize, ResourceRequirements
from hvpa.core.values.clock import LAST_INSTANT, Clock
from hvpa.core.values.tuning import CREATED_WITHIN
from hvpa.core.workload.containers import SHARED, present_resources, read_all, wire
from hvpa.core.workload.pod_level import POD, with_pod, with_rest
from hvpa.core.workload.rollout import is_living
from hvpa.recommend.hpa.pods import lasting

_SEPARATOR: Final = "; "
"""Between the parts of an entry of new pods."""


# --- running pods ----------------------------------------------------------------------------------------------------
class Resizing(msgspec.Struct, frozen=True, gc=False):
    """The state of all pods of a workload."""

    status: Actuation
    is_done: bool = True
    """All pods have the desired size."""
    resizes: tuple[PodResize, ...] = ()
    stuck: str = ""
    """Why pods can't get the size, or did not get it in time; empty if there are none. `InPlaceOrRollout` then replaces
    pods."""
    too_large: bool = False
    """The API server or a kubelet will not accept this size."""
    replaced_for: frozenset[str] = frozenset()
    """Containers whose memory only other pods will have (`spec.runtimes`). `InPlaceOrRollout` then replaces pods."""
    rescues: frozenset[str] = frozenset()
    """Those of them whose memory these resizes raise in place, because they ran out of it."""
    boosts: tuple[BoostedContainer, ...] = ()
    """As in the status."""


def resize_pods(context: GateContext, observation: ObservedState, desired: DesiredSize) -> Resizing:
    """Compares the workload's pods with the desired size and returns the resizes that are due now. Raises come first.
    Resizes that restart a container are limited to the pods that may be unavailable."""
    states = pod_states(context, observation, desired)
    unavailable = sum(
        not is_ready(state.pod) or (state.restarts and state.resize is None) for state in states
    )
    room = context.spec.strategy.most_unavailable(len(states)) - unavailable
    resizes: list[PodResize] = []
    for state in sorted(states, key=lambda state: not state.raises):
        if state.resize is None:
            continue
        if state.restarts and is_ready(state.pod):
            if room <= 0:
                continue
            room -= 1
        resizes.append(state.resize)
    refused = {
        refusal.uid for refusal in observation.refused_resizes if not refusal.used and not refusal.of_start
    }
    too_large = any(
        state.is_stuck and (state.is_too_much or state.pod.metadata.uid in refused) for state in states
    )
    stuck = _first_reason([state for state in states if state.is_stuck])
    is_done = all(state.state == "resized" for state in states)
    boosts = Boosts.of(observation, sizes_of(desired.containers))
    no_boost = _without_boost(observation, boosts, states)
    status = _actuation(states, observation, no_boost)
    new, had = Boosts.of(observation, size_of_new_pods(desired)), _sizes_had(observation, boosts)
    kept = boosts.recorded(had)
    kept += tuple([boost for boost in new.recorded(had) if boost not in kept])
    replaced_for = frozenset[str]().union(*[state.replaced_for for state in states])
    rescues = frozenset[str]().union(*[state.rescues for state in states if state.resize in resizes])
    return Resizing(status, is_done, tuple(resizes), stuck, too_large, replaced_for, rescues, kept)


def end_boosts(
    context: GateContext, observation: ObservedState
) -> tuple[tuple[PodResize, ...], tuple[BoostedContainer, ...]]:
    """Returns the resizes that end boosts of pods that are not resized otherwise, since another strategy applies now,
    and the boosts that pods still have."""
    boosts, pods = Boosts.of(observation, {}), own_pods(observation)
    if not boosts.known:
        return (), ()
    comparison = PodComparison.of(context, observation, {}, LAST_INSTANT)
    ends = [end.resize for pod in pods if (end := comparison.end_of_boosts(pod)) is not None and end.resize]
    return tuple(ends), boosts.recorded(_sizes_had(observation, boosts))


def _sizes_had(observation: ObservedState, boosts: Boosts) -> list[ContainerSizes]:
    """Returns the sizes that pods have by their spec and by their kubelet, and those that new pods are created with."""
    pods = own_pods(observation)
    assert observation.target is not None
    template = observation.target.spec.template.spec
    entries = [with_rest(template, sizes_in(entry)) for _, entry in observation.creation_sizes or ()]
    of_pods = [*[sizes_of_spec(pod.spec) for pod in pods], *map(sizes_reported, pods)]
    return [*map(boosts.as_in_template, of_pods), *entries]


def pod_states(context: GateContext, observation: ObservedState, desired: DesiredSize) -> list[PodState]:
    """Returns the state of each pod that runs or will run, with the resize that is due."""
    since, run = desired.since, desired.canary
    comparison = PodComparison.of(context, observation, sizes_of(desired.containers), since)
    before = comparison
    if run is not None:
        before = PodComparison.of(context, observation, sizes_of(run.previous), since)
    states = []
    for pod in own_pods(observation):
        if run is None or pod.metadata.name in run.pods or ran_out_of_memory(pod, since):
            states.append(_until_replaced(observation, comparison.at(pod)))
        elif (state := before.at(pod)).state != "resized":
            states.append(state)
        else:
            states.append(PodState(pod, "waiting", "HVPA tries the new size on other pods first"))
    if undo_of(observation) is not None:
        return undo_resizes(context, observation, desired, states)
    return _without_held_resizes(context, since, states)


def _until_replaced(observation: ObservedState, state: PodState) -> PodState:
    """Returns the state of a pod that has all of its size that resizes give it: it waits until another pod replaces
    it, if that one would have other memory."""
    if not state.replaced_for or state.state != "resized":
        return state
    assert observation.spec is not None
    is_kept = observation.spec.strategy.type == "InPlace" and observation.creation_sizes is None
    then = (
        "no new pod has the new size without config/size-at-creation"
        if is_kept
        else "new pods have the new size"
    )
    why = f"container {min(state.replaced_for)} reads its memory when it starts (runtimes): {then}"
    return msgspec.structs.replace(state, state="waiting", why=why)


def _without_held_resizes(
    context: GateContext, since: dt.datetime, states: Sequence[PodState]
) -> list[PodState]:
    """Removes resizes that wait for something other than the kubelet.

    If a maintenance window closes before its resizes are done, they wait for the next window. Exceptions are pods that
    start or were created after the decision (they never served with the old size) and pods that ran out of memory.
    Memory of other pods is raised only after the pods that ran out of memory have the new size, so a size that does not
    help is not given to all pods at once.
    """
    starved = {state.pod.metadata.uid for state in states if ran_out_of_memory(state.pod, since)}
    first = sorted(
        state.pod.metadata.name
        for state in states
        if state.pod.metadata.uid in starved
        and state.state != "resized"
        and not state.is_stuck
        and not (state.replaced_for and state.resize is None)
    )
    adjusted = []
    for state in states:
        why = ""
        if state.resize is not None and state.pod.metadata.uid not in starved:
            if first and "memory" in state.raises:
                why = f"pod {first[0]}, which ran out of memory, gets its new size first"
            elif not state.of_start and _is_older(state.pod, since):
                why = held_by(context, up=bool(state.raises), down=bool(state.lowers))
        adjusted.append(msgspec.structs.replace(state, resize=None, why=why) if why else state)
    return adjusted


def _is_older(pod: Pod, since: dt.datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is None or created < since


def held_by(context: GateContext, *, up: bool, down: bool) -> str:
    """Returns why a decided change is not made now: its direction is switched off by now, or its maintenance window has
    closed. Empty if nothing holds it. `spec.mode` is ignored: outside of mode Apply no resize is made anyway."""
    directions: tuple[tuple[bool, Direction], ...] = ((up, "up"), (down, "down"))
    for wanted, direction in directions:
        if wanted and (hold := hold_of(context, direction)) is not None:
            return f"held by {hold.text()}"
    return ""


def hold_of(context: GateContext, direction: Direction) -> Hold | None:
    """Returns the hold of decided changes of requests in this direction."""
    change = Change(context.rules["vertical", direction], None)
    return first_hold(change, context, frozenset({PAUSED}))


def template_held(context: GateContext, target: Workload, sizes: ContainerSizes) -> str:
    """Same as `held_by` for a change of the pod template to these sizes."""
    raised, lowered = moved(present_resources(target.spec.template.spec.containers), sizes)
    return held_by(context, up=bool(raised), down=bool(lowered))


def _actuation(states: Sequence[PodState], observation: ObservedState, no_boost: str) -> Actuation:
    counts = Counter(state.state for state in states)
    explained = [
        state for state in states if state.why and (state.is_stuck or state.state in ("deferred", "waiting"))
    ]
    return Actuation(
        resized=f"{counts['resized']}/{len(states)}",
        pods=len(states),
        in_progress=counts["in_progress"],
        deferred=counts["deferred"],
        infeasible=counts["infeasible"],
        waiting=counts["waiting"],
        starting=sum(state.starts for state in states),
        size_at_creation=observation.creation_sizes is not None,
        message="; ".join(
            filter(None, (_first_reason(explained), no_boost, _first_reason(_states_of_others(observation))))
        ),
    )


def _without_boost(observation: ObservedState, boosts: Boosts, states: Sequence[PodState]) -> str:
    """Returns why starts have no boost; empty if all have it."""
    pods = [msgspec.structs.replace(state, why=state.no_boost) for state in states if state.no_boost]
    reasons = [*boosts.left_out, _first_reason(pods)]
    if boosts.first and observation.creation_sizes is None:
        reasons.append("init containers get it by the policy for sizes at creation, which is not installed")
    gives = boosts.by_container or boosts.first
    if gives and observation.target is not None and creation_refused(observation.target):
        reasons.append("new pods are refused, so they are created without it")
    why = "; ".join(filter(None, reasons))
    return f"no startup boost: {why}" if why else ""


def _states_of_others(observation: ObservedState) -> list[PodState]:
    """Returns the pods that match the workload's selector but have another owner, with that owner."""
    states = []
    for pod in filter(is_living, observation.others):
        owner = pod.metadata.controller()
        whose = "has no controller" if owner is None else f"belongs to {owner.kind} {owner.name}"
        states.append(
            PodState(pod, "waiting", f"matches the selector but {whose}, so HVPA does not resize it")
        )
    return states


def _first_reason(states: Sequence[PodState]) -> str:
    """Returns the reason of the first pod by name, and the number of further pods."""
    if not states:
        return ""
    first = min(states, key=lambda state: state.pod.metadata.name)
    others = f" (and {len(states) - 1} more pods)" if len(states) > 1 else ""
    return f"pod {first.pod.metadata.name}{others}: {first.why}"


# --- new pods --------------------------------------------------------------------------------------------------------
def owner_keys(target: Workload, pods: Sequence[Pod]) -> Collection[str]:
    """Returns the keys of a workload's entries, in the policy's notation for a pod's owner. A custom kind has the keys
    of the objects that control its pods. Examples: `Deployment.apps/web`, `ReplicationController/web`;
    `ReplicaSet.apps/web-5d4f` of an Argo Rollout."""
    if target.kind in KINDS:
        return (_owner_key(target.kind, target.api_version, target.metadata.name),)
    owners = [pod.metadata.controller() for pod in pods]
    return {_owner_key(owner.kind, owner.api_version, owner.name) for owner in owners if owner is not None}


def _owner_key(kind: str, api_version: str, name: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{kind}{group and f'.{group}'}/{name}"


def creation_changes(
    clock: Clock, states: ObservedState, desired: DesiredSize | None, resizing: Resizing | None
) -> Mapping[str, str | None]:
    """Returns the Hvpa's entries to write, by key; None deletes an entry. Empty if the entries are correct or HVPA must
    not write: no policy is installed, the mode is not Apply (and nothing is undone), or the spec is invalid."""
    if states.creation_sizes is None or states.spec is None:
        return {}
    known = dict(states.creation_sizes)
    if states.spec.mode == "Recommend" and any(change.action == "return" for change in states.vpa.changes):
        return dict.fromkeys(known)  # the VPA sizes new pods again
    if states.problem is not None and states.target is not None:
        return {}
    if not states.spec.applies and undo_of(states) is None:
        if states.target is None:
            return {}
        # nobody would end boosts of new pods
        decided, template = size_of_new_pods(desired), states.target.spec.template.spec
        boosts, whole = Boosts.of(states, decided), with_pod(template, decided).get(POD, NOTHING)
        sizes = {key: with_rest(template, sizes_in(entry)) for key, entry in known.items()}
        ending = {one.name for one in template.init_containers} - {one.name for one in lasting(template)}
        changed = {}
        for key, has in sizes.items():
            usual = boosts.not_at_creation({name: has[name] for name in has if name not in ending})
            if usual != has:
                changed[key] = _entry(states, {**usual, SHARED: NOTHING, POD: whole})
        return changed
    wanted = _wanted_entries(clock, states, desired, resizing)
    gone = {key: None for key in known if key not in wanted}
    return {**{key: entry for key, entry in wanted.items() if known.get(key) != entry}, **gone}


def _wanted_entries(
    clock: Clock, states: ObservedState, desired: DesiredSize | None, resizing: Resizing | None
) -> dict[str, str]:
    """Returns the Hvpa's entries. A size that pods can't be created with has no entry. A refused creation only shows as
    missing pods some time after the decision. A rollout that replaces pods that can't be resized creates pods without
    boosts, because these would not end in time."""
    target = states.target
    if target is None or desired is None or resizing is None or resizing.too_large:
        return {}
    sizes = size_of_new_pods(desired)
    if not resizing.stuck and not creation_refused(target):
        sizes = Boosts.of(states, sizes).at_creation(sizes)
    entry, are_missing = _entry(states, sizes), len(states.resizable) < target.spec.replicas
    if entry is None or (are_missing and clock.is_past(desired.since + CREATED_WITHIN)):
        return {}
    return dict.fromkeys(owner_keys(target, states.resizable), entry)


def _entry(states: ObservedState, sizes: ContainerSizes) -> str | None:
    """Returns the Hvpa's entry with these sizes; None if there are none."""
    sizes = with_pod(None if states.target is None else states.target.spec.template.spec, sizes)
    containers = [_part(name, size) for name, size in sorted(sizes.items()) if size.requests or size.limits]
    return _SEPARATOR.join((states.metadata.name, *containers)) if containers else None


def sizes_in(entry: str) -> ContainerSizes:
    """Returns the sizes in an entry: the reverse of `_entry`. Parts that HVPA does not write are left out."""
    written = {}
    for part in entry.split(_SEPARATOR)[1:]:
        name, *amounts = part.split(" ")
        if len(amounts) == len(RESOURCES) and all(amount.count(":") == 1 for amount in amounts):
            requests, limits = zip(*[amount.split(":") for amount in amounts], strict=True)
            written[name] = Resources(_given(requests), _given(limits))
    return read_all(written)


def _given(amounts: Sequence[str]) -> dict[str, Quantity]:
    return {resource: amount for resource, amount in zip(RESOURCES, amounts, strict=True) if amount}


def _part(container: str, size: ResourceRequirements) -> str:
    """Returns a container's part of an entry. Example: `app 900m:1800m 700M:` sets no memory limit."""
    requests, limits = wire(size.requests), wire(size.limits)
    return " ".join((container, *(f"{requests.get(of, '')}:{limits.get(of, '')}" for of in RESOURCES)))
