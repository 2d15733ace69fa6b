"""What `hvpa status` shows of one Hvpa: what the operator last reported, and the pods as they are now."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

from hvpa.api.hvpa.status import Actuation, BlockedScaling, StatusCondition
from hvpa.cli.explain.pods import PodRow, pod_rows
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.model import Objects, Observation, ResourceRequirements
from hvpa.core.workload.containers import present_resources


class View(NamedTuple):
    """One Hvpa at a glance. `replicas` and `ready` are the workload's (None: there is none), `desired_replicas` and
    `desired` what was last decided, by container, and `since` when that was. `actuation` is None with rollouts."""

    namespace: str
    name: str
    target: str
    mode: str
    strategy: str
    conditions: tuple[StatusCondition, ...]
    blocked: tuple[BlockedScaling, ...]
    notes: tuple[str, ...]
    replicas: int | None
    ready: int | None
    desired_replicas: int | None
    desired: Mapping[str, ResourceRequirements]
    since: dt.datetime | None
    actuation: Actuation | None
    pods: tuple[PodRow, ...]


def view_of(objects: Objects, seen: Observation) -> View:
    """The state of the Hvpa that was observed."""
    spec, status, workload = seen.spec, seen.status, seen.target
    in_place = spec is not None and spec.update_strategy.in_place
    size = status.desired if in_place else None
    desired = sizes_of(() if size is None else size.containers)
    replicas = size.replicas if size is not None else None
    if workload is not None and not in_place:
        desired, replicas = present_resources(workload.spec.template.spec.containers), workload.spec.replicas
    last = status.last_scaling.last_scale_time if status.last_scaling is not None else None
    return View(
        seen.metadata.namespace,
        seen.metadata.name,
        "unknown" if spec is None else f"{spec.target_ref.kind} {spec.target_ref.name}",
        "unknown" if spec is None else spec.mode,
        "unknown" if spec is None else spec.update_strategy.type,
        status.conditions,
        status.last_blocked_scaling,
        _notes(seen),
        None if workload is None else workload.spec.replicas,
        None if workload is None else workload.status.ready_replicas,
        replicas,
        desired,
        size.since if size is not None else None if in_place else last,
        status.actuation if in_place else None,
        pod_rows(seen, objects.pods, size),
    )


def _notes(seen: Observation) -> tuple[str, ...]:
    """What keeps the report from being the present state."""
    if not seen.status.conditions:
        return ("the operator has reported nothing yet: is it running, and does it watch this namespace?",)
    ready = next((one for one in seen.status.conditions if one.type == "Ready"), None)
    known = None if ready is None else ready.observed_generation
    if known is not None and known < seen.metadata.generation:
        return ("the operator has not looked at the newest spec yet",)
    return ()
