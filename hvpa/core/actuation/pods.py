"""Resizes of running pods: which pods are asked for the desired size now, and in which order (`pod` has one pod's). And
the sizes that pods are created with: entries of the namespace's HvpaSizes, in which the admission policy of
`config/size-at-creation` looks up who owns a new pod."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from hvpa.api.hvpa.status import Actuation, DesiredSize
from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.desired import Sizes, moved, size_of_new_pods, sizes_of
from hvpa.core.actuation.pod import Look, PodState, is_ready, own_pods, ran_out_of_memory
from hvpa.core.gates.gates import PAUSED, Change, GateContext, first_hold
from hvpa.core.model import Direction, ObservedState, PodResize
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import present_resources, wire
from hvpa.core.workload.rollout import is_living

CREATED_WITHIN: Final = dt.timedelta(seconds=30)
"""Controllers create pods within seconds. Where some are missing so long after the decision, its size may be why: a
quota or LimitRange refuses it."""


# --- running pods ----------------------------------------------------------------------------------------------------
class Resizing(msgspec.Struct, frozen=True, gc=False):
    """Where the pods of a workload stand. `is_done`: all have the desired size. `stuck`: why pods can't have it, or
    have not got it in time (empty: there are none): what the next rung is for. `too_large`: the API server or a kubelet
    will not have this size."""

    status: Actuation
    is_done: bool = True
    resizes: tuple[PodResize, ...] = ()
    stuck: str = ""
    too_large: bool = False


def resize_pods(context: GateContext, observed: ObservedState, desired: DesiredSize) -> Resizing:
    """Compare the workload's pods with the desired size: what to resize now: raises first, of all raises those
    of pods that ran out of memory, and of resizes that restart a container no more at once than may be unavailable."""
    seen = pod_states(context, observed, desired)
    unavailable = sum(not is_ready(one.pod) or (one.restarts and one.resize is None) for one in seen)
    room = context.spec.strategy.most_unavailable(len(seen)) - unavailable
    resizes: list[PodResize] = []
    for one in sorted(seen, key=lambda one: not one.raises):
        if one.resize is None:
            continue
        if one.restarts and is_ready(one.pod):
            if room <= 0:
                continue
            room -= 1
        resizes.append(one.resize)
    refused = {one.uid for one in observed.refused_resizes if not one.used}
    too_large = any(one.is_stuck and (one.is_too_much or one.pod.metadata.uid in refused) for one in seen)
    stuck = _first_reason([one for one in seen if one.is_stuck])
    is_done = all(one.state == "resized" for one in seen)
    return Resizing(_status(seen, observed), is_done, tuple(resizes), stuck, too_large)


def pod_states(context: GateContext, observed: ObservedState, desired: DesiredSize) -> list[PodState]:
    """Where each pod of the workload stands that runs or will run, with the resize that is due."""
    since, run = desired.since, desired.canary
    look = Look.of(context, observed, sizes_of(desired.containers), since)
    before = look if run is None else look._replace(sizes=sizes_of(run.previous))
    states = []
    for pod in own_pods(observed):
        if run is None or pod.metadata.name in run.pods or ran_out_of_memory(pod, since):
            states.append(look.at(pod))
        elif (state := before.at(pod)).state != "resized":
            states.append(state)
        else:
            states.append(PodState(pod, "waiting", "the new size is tried on other pods first"))
    return _held_back(context, since, states)


def _held_back(context: GateContext, since: dt.datetime, seen: Sequence[PodState]) -> list[PodState]:
    """The pods without the resizes that wait for something other than the kubelet.

    What was decided inside a maintenance window waits for the next one where the window has closed before it was done.
    A pod that was created after the decision is excepted, which never served with the old size, and so is one that ran
    out of memory. The other pods' memory is raised when the pods that ran out of it have theirs: a size that does not
    help is not given to all pods at once.
    """
    starved = {one.pod.metadata.uid for one in seen if ran_out_of_memory(one.pod, since)}
    first = sorted(
        one.pod.metadata.name
        for one in seen
        if one.pod.metadata.uid in starved and one.state != "resized" and not one.is_stuck
    )
    found = []
    for one in seen:
        why = ""
        if one.resize is not None and one.pod.metadata.uid not in starved:
            if first and "memory" in one.raises:
                why = f"pod {first[0]}, which ran out of memory, gets its new size first"
            elif (created := one.pod.metadata.creation_timestamp) is None or created < since:
                why = held_by(context, up=bool(one.raises), down=bool(one.lowers))
        found.append(msgspec.structs.replace(one, resize=None, why=why) if why else one)
    return found


def held_by(context: GateContext, *, up: bool, down: bool) -> str:
    """Why a change that was decided before is not made now: its direction is switched off by now, or its maintenance
    window has closed. Empty where nothing is against it. Another mode than Apply counts for nothing here: the resizes
    are those of Apply, and none is made."""
    directions: tuple[tuple[bool, Direction], ...] = ((up, "up"), (down, "down"))
    for wanted, direction in directions:
        change = Change(context.rules["vertical", direction], None)
        if wanted and (hold := first_hold(change, context, frozenset({PAUSED}))) is not None:
            return f"held by {hold.text()}"
    return ""


def template_held(context: GateContext, target: Workload, sizes: Sizes) -> str:
    """The same for a change of the pod template to these sizes."""
    raised, lowered = moved(present_resources(target.spec.template.spec.containers), sizes)
    return held_by(context, up=bool(raised), down=bool(lowered))


def _status(seen: Sequence[PodState], observed: ObservedState) -> Actuation:
    counts = Counter(one.state for one in seen)
    explained = [one for one in seen if one.why and (one.is_stuck or one.state in ("deferred", "waiting"))]
    return Actuation(
        resized=f"{counts['resized']}/{len(seen)}",
        pods=len(seen),
        in_progress=counts["in_progress"],
        deferred=counts["deferred"],
        infeasible=counts["infeasible"],
        waiting=counts["waiting"],
        size_at_creation=observed.creation_sizes is not None,
        message="; ".join(filter(None, (_first_reason(explained), _first_reason(_of_others(observed))))),
    )


def _of_others(observed: ObservedState) -> list[PodState]:
    """The pods that the workload's selector matches, and whose owner is another one, with that owner."""
    found = []
    for pod in filter(is_living, observed.others):
        owner = pod.metadata.controller()
        whose = "has no controller" if owner is None else f"is of {owner.kind} {owner.name}"
        found.append(PodState(pod, "waiting", f"matches the selector, but {whose}, and is not resized"))
    return found


def _first_reason(seen: Sequence[PodState]) -> str:
    """Of the first pod by name its reason, and how many more there are."""
    if not seen:
        return ""
    first = min(seen, key=lambda one: one.pod.metadata.name)
    more = f" (and {len(seen) - 1} more pods)" if len(seen) > 1 else ""
    return f"pod {first.pod.metadata.name}{more}: {first.why}"


# --- new pods --------------------------------------------------------------------------------------------------------
def owner_keys(target: Workload, pods: Sequence[Pod]) -> Collection[str]:
    """The keys of a workload's entries, as the policy makes them of a pod's owner: the workload's own; of a custom kind
    those of the objects that control its pods. Examples: `Deployment.apps/web`, `ReplicationController/web`;
    `ReplicaSet.apps/web-5d4f` of an Argo Rollout."""
    if target.kind in KINDS:
        return (_key(target.kind, target.api_version, target.metadata.name),)
    owners = [one.metadata.controller() for one in pods]
    return {_key(one.kind, one.api_version, one.name) for one in owners if one is not None}


def _key(kind: str, api_version: str, name: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{kind}{group and f'.{group}'}/{name}"


def creation_changes(
    clock: Clock, seen: ObservedState, desired: DesiredSize | None, resizing: Resizing | None
) -> Mapping[str, str | None]:
    """What to write of the Hvpa's entries, by key; None for one that goes. Empty where all is as it should be, or where
    nothing may be written: no policy is installed, the mode is not Apply, or the spec can't be used as it is."""
    if seen.creation_sizes is None or seen.spec is None or seen.spec.mode != "Apply":
        return {}
    if seen.problem is not None and seen.target is not None:
        return {}
    wanted, known = _wanted(clock, seen, desired, resizing), dict(seen.creation_sizes)
    gone = {key: None for key in known if key not in wanted}
    return {**{key: one for key, one in wanted.items() if known.get(key) != one}, **gone}


def _wanted(
    clock: Clock, seen: ObservedState, desired: DesiredSize | None, resizing: Resizing | None
) -> dict[str, str]:
    """A size that pods can't be created with must not keep them from being created. Of a pod whose creation was refused
    only that shows: some time after the decision there are fewer pods than replicas."""
    target = seen.target
    if target is None or desired is None or resizing is None or resizing.too_large:
        return {}
    containers = [
        _entry_of(name, wire(one.requests), wire(one.limits))
        for name, one in sorted(size_of_new_pods(desired).items())
        if one.requests or one.limits
    ]
    are_missing = len(seen.resizable) < target.spec.replicas
    if not containers or (are_missing and clock.is_past(desired.since + CREATED_WITHIN)):
        return {}
    return dict.fromkeys(owner_keys(target, seen.resizable), "; ".join((seen.metadata.name, *containers)))


def _entry_of(container: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> str:
    """A container's part of an entry. Example: `app 900m:1800m 700M:`, where memory has no limit."""
    return " ".join((container, *(f"{requests.get(one, '')}:{limits.get(one, '')}" for one in RESOURCES)))
