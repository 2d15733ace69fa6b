"""Resizes of running pods: which pods are asked for the desired size now, and in which order (`pod` has one pod's)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hvpa.api.hvpa.status import Actuation, DesiredSize
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.actuation.pod import Look, PodState, is_ready, own_pods, ran_out_of_memory
from hvpa.core.gates.gates import PAUSED, Change, GateContext, first_hold
from hvpa.core.model import ObservedState, PodResize, ResourceRequirements
from hvpa.core.workload.containers import amounts

_OF_MODE: Final = frozenset({PAUSED})
"""Not asked here: in another mode than Apply the resizes are those of Apply, and none is made."""


class Resizing(msgspec.Struct, frozen=True, gc=False):
    """Where the pods of a workload stand. `stuck` says why pods can't have the desired size, or have not got it in
    time (empty: there are none): what the next rung is for."""

    status: Actuation
    resizes: tuple[PodResize, ...] = ()
    stuck: str = ""
    too_large: bool = False
    """Whether the API server or a kubelet will not have this size."""


def resize_pods(context: GateContext, observed: ObservedState, desired: DesiredSize) -> Resizing:
    """Compare the workload's pods with the desired size and say what to resize now: raises first, of all raises those
    of pods that ran out of memory, and of resizes that restart a container no more at once than may be unavailable."""
    seen = pod_states(context, observed, desired)
    unavailable = sum(not is_ready(one.pod) or (one.restarts and one.resize is None) for one in seen)
    room = context.spec.update_strategy.most_unavailable(len(seen)) - unavailable
    resizes: list[PodResize] = []
    for one in sorted(seen, key=lambda one: not one.raises):
        if one.resize is None:
            continue
        if one.restarts and is_ready(one.pod):
            if room <= 0:
                continue
            room -= 1
        resizes.append(one.resize)
    refused = {one.uid for one in observed.refused_resizes}
    too_large = any(one.is_stuck and (one.is_too_much or one.pod.metadata.uid in refused) for one in seen)
    status = _status(seen, creation=observed.creation_sizes is not None)
    return Resizing(status, tuple(resizes), _stuck(seen), too_large)


def pod_states(context: GateContext, observed: ObservedState, desired: DesiredSize) -> list[PodState]:
    """Where each pod of the workload stands that runs or will run, with the resize that is due."""
    since = desired.since
    larger = {one.name: amounts(one.requests) for one in desired.ready_pods}
    if larger and (desired.canary is not None or held_by(context, up=True, down=True)):
        larger = {}  # what is raised for a moment could not be raised now, or not be lowered then
    living = own_pods(observed)
    refused = {one.uid: one for one in observed.refused_resizes}
    look = Look(context, sizes_of(desired.containers), since, larger, observed.memory_use)
    if desired.canary is None:
        states = [look.at(pod, refused.get(pod.metadata.uid)) for pod in living]
    else:
        run = desired.canary
        before = Look(context, sizes_of(run.previous), since, {}, observed.memory_use)
        states = [
            look.at(pod, refused.get(pod.metadata.uid))
            if pod.metadata.name in run.pods or ran_out_of_memory(pod, since)
            else _after_canary(before.at(pod, refused.get(pod.metadata.uid)))
            for pod in living
        ]
    return _held_back(context, since, states)


def _after_canary(state: PodState) -> PodState:
    """A pod that gets the new size when it was tried on others."""
    if state.state != "resized":
        return state
    return msgspec.structs.replace(state, state="waiting", why="the new size is tried on other pods first")


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
            elif not _is_created_after(one.pod, since):
                why = held_by(context, up=bool(one.raises), down=bool(one.lowers))
        found.append(msgspec.structs.replace(one, resize=None, why=why) if why else one)
    return found


def held_by(context: GateContext, *, up: bool, down: bool) -> str:
    """Why a change that was decided before is not made now: its direction is switched off by now, or its maintenance
    window has closed. Empty where nothing is against it."""
    scaling = context.spec.vpa
    for wanted, policy in ((up, scaling.scale_up), (down, scaling.scale_down)):
        if wanted and (hold := first_hold(Change(policy, None), context, _OF_MODE)) is not None:
            return f"held by {hold.text()}"
    return ""


def template_held(context: GateContext, target: Workload, sizes: Mapping[str, ResourceRequirements]) -> str:
    """The same for a change of the pod template to these sizes."""
    pairs = [
        (have.get(resource, 0), value)
        for one in target.spec.template.spec.containers
        if one.name in sizes
        for have, wanted in (
            (amounts(one.resources.requests), sizes[one.name].requests),
            (amounts(one.resources.limits), sizes[one.name].limits),
        )
        for resource, value in wanted.items()
    ]
    up, down = (any(value > have for have, value in pairs), any(value < have for have, value in pairs))
    return held_by(context, up=up, down=down)


def _is_created_after(pod: Pod, since: dt.datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is not None and created >= since


def _status(seen: Sequence[PodState], *, creation: bool) -> Actuation:
    counts = Counter(one.state for one in seen)
    return Actuation(
        resized=f"{counts['resized']}/{len(seen)}",
        pods=len(seen),
        in_progress=counts["in_progress"],
        deferred=counts["deferred"],
        infeasible=counts["infeasible"],
        waiting=counts["waiting"],
        size_at_creation=creation,
        message=_first_reason(
            [one for one in seen if one.why and (one.is_stuck or one.state in ("deferred", "waiting"))]
        ),
    )


def _stuck(seen: Sequence[PodState]) -> str:
    return _first_reason([one for one in seen if one.is_stuck])


def _first_reason(seen: Sequence[PodState]) -> str:
    """Of the first pod by name its reason, and how many more there are."""
    if not seen:
        return ""
    first = min(seen, key=lambda one: one.pod.metadata.name)
    more = f" (and {len(seen) - 1} more pods)" if len(seen) > 1 else ""
    return f"pod {first.pod.metadata.name}{more}: {first.why}"
