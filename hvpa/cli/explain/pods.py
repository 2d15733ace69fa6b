"""The progress of each pod towards the desired size, as `hvpa explain` and `hvpa status` show it.

In place, the states are those that the operator counts (`hvpa.core.actuation.pods`). With rollouts, a pod has the
template's resources or older resources.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.api.values.quantity import RESOURCES, readable_change, readable_resource
from hvpa.cli.output import Json, containers, timestamp
from hvpa.core.actuation.desired import NOTHING, sizes_of
from hvpa.core.actuation.pod import PodState, is_ready, present_sizes, reported_since
from hvpa.core.actuation.pods import pod_states, resize_pods
from hvpa.core.actuation.undo import undo_of
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import Observation, ResourceRequirements, ScalableObservation
from hvpa.core.report.summary import rollout_text
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import changes, present_resources
from hvpa.core.workload.own_rollout import keeps_pods, partition_of
from hvpa.core.workload.pod_level import shared_in_pods
from hvpa.core.workload.pod_owner import by_owner

STATES: Final[Mapping[str, str]] = {
    "resized": "has the desired size",
    "in_progress": "is being resized",
    "deferred": "its node has no room for now",
    "infeasible": "can't be resized",
    "waiting": "has another size; its resize has not been requested yet",
    "template": "has the size of its template; HVPA has not decided on another size",
    "updated": "has the template's resources",
    "old": "its resources differ from the template's",
    "terminating": "is being deleted",
    "ended": "has ended",
    "unknown": "the workload can't be scaled; see condition Ready",
}
"""The states of a pod and their meanings."""


class PodRow(NamedTuple):
    """A pod of the workload."""

    name: str
    ready: bool
    restarts: int
    present: Mapping[str, ResourceRequirements]
    """Its actual resources by container."""
    desired: Mapping[str, ResourceRequirements]
    """Its desired resources by container."""
    state: str
    """A key of STATES."""
    why: str = ""
    since: dt.datetime | None = None
    """The start of the state, or a lower bound if not `exact`; None: unknown."""
    exact: bool = False

    def to_json(self) -> Json:
        """The row in the form of `docs/status.schema.json`."""
        return {
            "name": self.name,
            "ready": self.ready,
            "restarts": self.restarts,
            "present": containers(self.present),
            "desired": containers(self.desired),
            "state": self.state,
            "since": timestamp(self.since),
            "sinceIsExact": self.exact,
            "why": self.why,
        }


def pod_rows(observation: Observation, pods: Sequence[Pod], size: DesiredSize | None) -> tuple[PodRow, ...]:
    """The workload's `pods` by name. `size` is the decided size, if they are resized in place."""
    target, spec = observation.target, observation.spec
    if target is None:
        return ()
    own_pods = shared_in_pods(by_owner(tuple(pods), target).own, target)
    in_place = spec is not None and spec.strategy.in_place
    rows = _in_place(observation, own_pods, size) if in_place else _rolled_out(observation, target, own_pods)
    return tuple(sorted(rows, key=lambda row: row.name))


def _in_place(observation: Observation, pods: Sequence[Pod], size: DesiredSize | None) -> Iterable[PodRow]:
    sizes, since = sizes_of(() if size is None else size.containers), None if size is None else size.since
    states: Mapping[str, PodState] = {}
    due: frozenset[str] = frozenset()
    if isinstance(observation, ScalableObservation):
        context = GateContext(Clock(observation.now), observation.spec, is_settled=True)
        arguments = (context, observation, size or DesiredSize(replicas=0, since=observation.now))
        states = {state.pod.metadata.uid: state for state in pod_states(*arguments)}
        due = frozenset([resize.uid for resize in resize_pods(*arguments).resizes])
    for pod in pods:
        pod_state, started = states.get(pod.metadata.uid), pod.status.start_time
        if pod_state is None:
            yield _row(pod, sizes, _gone(pod) or "unknown")
        elif pod_state.state == "resized" and not sizes:
            yield _row(pod, sizes, "template", since=started, exact=True)
        else:
            why = pod_state.why or _waits_for(observation, pod, pod_state, due)
            begun = reported_since(pod, pod_state.state)
            yield _row(pod, sizes, pod_state.state, why, begun or _latest(since, started), begun is not None)


def _waits_for(observation: Observation, pod: Pod, pod_state: PodState, due: frozenset[str]) -> str:
    """The reason why a pod has not been resized yet."""
    spec = observation.spec
    if spec is None or pod_state.state != "waiting":
        return ""
    if not spec.applies and undo_of(observation) is None:
        return f"mode {spec.mode}: no pod is resized"
    reported = observation.status.actuation.message if observation.status.actuation is not None else ""
    if reported.startswith((f"pod {pod.metadata.name}:", f"pod {pod.metadata.name} (")):
        return f"the operator reports: {reported}"
    if pod.metadata.uid in due:
        return "is resized next"
    most = spec.strategy.max_unavailable
    return f"its resize restarts containers, and no more pods may be unavailable (maxUnavailable {most})"


def _rolled_out(observation: Observation, target: Workload, pods: Sequence[Pod]) -> Iterable[PodRow]:
    """The rows of pods whose workload's template is patched."""
    sizes = present_resources(target.spec.template.spec.containers)
    for pod in pods:
        started = pod.status.start_time
        if gone := _gone(pod):
            yield _row(pod, sizes, gone)
        elif _matches_template(pod, sizes):
            yield _row(pod, sizes, "updated", since=started, exact=True)
        else:
            why = _keeps(observation, target, pod) or "is replaced by the rollout"
            yield _row(pod, sizes, "old", why, _latest(observation.vertical.last_scale_time, started))


def _keeps(observation: Observation, target: Workload, pod: Pod) -> str:
    """Why a pod of an older template is not replaced; empty if it is replaced."""
    if observation.status.rollout is not None:
        return rollout_text(observation.status.rollout)
    partition = partition_of(target) if target.kind == "StatefulSet" else 0
    ordinal = pod.metadata.name.rpartition("-")[2]
    if partition and ordinal.isdecimal() and int(ordinal) >= partition:
        return ""
    why = keeps_pods(target)
    return f"{target.kind} {target.metadata.name} does not replace it: {why}" if why else ""


def _matches_template(pod: Pod, template: Mapping[str, ResourceRequirements]) -> bool:
    """Whether a pod has the resources in the template. Additions by a LimitRange or a webhook don't count."""
    present = present_resources(pod.spec.containers)
    return not any(
        changes(present[name], requirements) for name, requirements in template.items() if name in present
    )


def _row(
    pod: Pod,
    sizes: Mapping[str, ResourceRequirements],
    state: str,
    why: str = "",
    since: dt.datetime | None = None,
    exact: bool = False,
) -> PodRow:
    desired = {}
    for name, requirements in present_resources(pod.spec.containers).items():
        size = sizes.get(name, NOTHING)
        desired[name] = ResourceRequirements(
            {**requirements.requests, **size.requests}, {**requirements.limits, **size.limits}
        )
    present = present_sizes(pod)
    restarts = sum(status.restart_count for status in pod.status.container_statuses)
    return PodRow(pod.metadata.name, is_ready(pod), restarts, present, desired, state, why, since, exact)


def _gone(pod: Pod) -> str:
    """The state of a pod that no longer counts; empty for all others."""
    if pod.metadata.deletion_timestamp is not None:
        return "terminating"
    return "ended" if pod.status.phase in ("Failed", "Succeeded") else ""


def _latest(*times: dt.datetime | None) -> dt.datetime | None:
    return max([time for time in times if time is not None], default=None)


def differences_text(row: PodRow) -> str:
    """The differences between a pod's actual and desired resources, such as `app requests cpu 500m -> 1`; empty if it
    has none."""
    parts = []
    for name, desired in row.desired.items():
        present = row.present[name]
        for section, changed in changes(present, desired).items():
            before, after = getattr(present, section), getattr(desired, section)
            for what in (resource for resource in RESOURCES if resource in changed):
                pair = "none", readable_resource(what, after[what])
                if what in before:
                    pair = readable_change(what, before[what], after[what])
                parts.append(f"{name} {section} {what} {' -> '.join(pair)}")
    return ", ".join(parts)
