"""The sizes that pods are created with: entries of the namespace's HvpaSizes, in which the admission policy of
`config/size-at-creation` looks up who owns a new pod.

What a policy cannot know is watched here: a size that pods can't be created with must not keep them from being created.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from hvpa.api.hvpa.status import DesiredSize
from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import CreationSize, Pod, SizedContainer, Workload
from hvpa.core.actuation.desired import size_of_new_pods
from hvpa.core.actuation.pods import Resizing
from hvpa.core.model import ObservedState
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import wire

CREATED_WITHIN: Final = dt.timedelta(seconds=30)
"""Controllers create pods within seconds. Where some are missing so long after the decision, its size may be why: a
quota or LimitRange refuses it."""


def owner_keys(target: Workload, pods: Sequence[Pod]) -> Collection[str]:
    """The keys of a workload's entries, as the policy makes them of a pod's owner: the workload's own. Which objects
    make the pods of a custom kind only its pods tell. Examples: `Deployment.apps/web`, `ReplicationController/web`;
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
) -> Mapping[str, CreationSize | None]:
    """What to write of the Hvpa's entries, by key; None for one that goes. Empty where all is as it should be, or where
    nothing may be written: no policy is installed, the mode is not Apply, or the spec can't be used as it is."""
    if seen.creation_sizes is None or seen.spec is None or seen.spec.mode != "Apply":
        return {}
    wanted = _wanted(clock, seen, desired, resizing)
    if seen.problem is not None and seen.target is not None:
        return {}
    known = dict(seen.creation_sizes)
    gone = {key: None for key in known if key not in wanted}
    return {**{key: one for key, one in wanted.items() if known.get(key) != one}, **gone}


def _wanted(
    clock: Clock, seen: ObservedState, desired: DesiredSize | None, resizing: Resizing | None
) -> dict[str, CreationSize]:
    target = seen.target
    if target is None or desired is None or resizing is None:
        return {}
    containers = [
        SizedContainer(name, {**wire(one.requests)}, {**wire(one.limits)})
        for name, one in sorted(size_of_new_pods(desired).items())
        if one.requests or one.limits
    ]
    if not containers or resizing.too_large or _are_missing(clock, seen, desired):
        return {}
    return dict.fromkeys(owner_keys(target, seen.resizable), CreationSize(seen.metadata.name, containers))


def _are_missing(clock: Clock, seen: ObservedState, desired: DesiredSize) -> bool:
    """Whether there are fewer pods than replicas, some time after the decision."""
    assert seen.target is not None
    if len(seen.resizable) >= seen.target.spec.replicas:
        return False
    return clock.is_past(desired.since + CREATED_WITHIN)
