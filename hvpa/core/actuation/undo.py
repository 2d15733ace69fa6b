"""The return to the sizes before the last step, for pods that are resized in place: an annotation of a paused Hvpa,
which `hvpa undo` or Git writes (docs/decisions/0100).

Example: `{"by": "ann", "step": "2026-12-07T10:00:00Z"}`. It names a step, not sizes, so it can only bring back the
sizes of `status.previousSize`, which the operator recorded. Whoever may annotate an Hvpa may also change its spec, so
the annotation is not signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import PreviousSize, RolledBack
from hvpa.api.objects.kinds import has_replicas
from hvpa.api.objects.read_models import Instant, Pod
from hvpa.api.values.quantity import Resource
from hvpa.api.values.text import one_line
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.actuation.desired import NOTHING, by_section, recorded, sizes_of
from hvpa.core.actuation.pod import PodState, is_ready, own_pods
from hvpa.core.actuation.trial import changes_back
from hvpa.core.gates.approval import LONGEST_NAME
from hvpa.core.gates.backoff import refused_until
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import ObservedState, ScalableState
from hvpa.core.values.clock import CLOCK_SKEW

ANNOTATION: Final = "hvpa.autoscaling.k8s.io/undo"
"""The annotation that names the step."""
NOTHING_UNDONE: Final = "nothing is undone: "
"""Before the reason, in the condition `Paused`."""


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of the annotation."""

    step: Instant
    """The step to take back: `status.previousSize.time`."""
    by: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""
    """Who took it back."""

    def text(self) -> str:
        """Describes the sizes in words."""
        by = f" ({one_line(self.by)})" if self.by else ""
        return f"the sizes before the step of {readable_timestamp(self.step)}, by hvpa undo{by}"


def undo_of(observation: ObservedState) -> Undo | None:
    """Returns the step that is taken back while the Hvpa is paused; None if there is none."""
    found = _read(observation)
    return found if isinstance(found, Undo) else None


def undo_problem(observation: ObservedState) -> str:
    """Returns why the annotation of a paused Hvpa has no effect; empty if it has, or if there is none."""
    found = _read(observation)
    return found if isinstance(found, str) else ""


def _read(observation: ObservedState) -> Undo | str:
    """Returns the step to take back, or why there is none; empty without an annotation."""
    spec, status = observation.spec, observation.status
    text = observation.metadata.annotations.get(ANNOTATION)
    if not text or spec is None or spec.mode != "Paused" or observation.problem is not None:
        return ""
    try:
        undo = msgspec.json.decode(text, type=Undo)
    except (msgspec.MsgspecError, UnicodeError) as error:
        return f"annotation {ANNOTATION}: {one_line(str(error))}"
    if not spec.strategy.in_place or status.desired is None:
        return f"annotation {ANNOTATION}: HVPA has decided no size for pods that are resized in place"
    if observation.has_rival:
        return f"annotation {ANNOTATION}: another Hvpa in mode Apply sizes this workload"
    if status.previous_size is None or status.previous_size.time != undo.step:
        return f"annotation {ANNOTATION}: status.previousSize is not the size before {readable_timestamp(undo.step)}"
    return undo


def returned(spec: HvpaSpec, size: DesiredSize, previous: PreviousSize) -> DesiredSize:
    """Returns the decided size with the sizes before the last step; the same object if it has them.

    Replicas are never removed. If HVPA scales them, those from before the step come back: the step may have made few
    large pods of many small ones. A workload at 0 replicas stays there. Example: `previous` has 10 replicas of 500m,
    and the workload has 5 of 1 core. It gets 10 of 500m.
    """
    now, before = sizes_of(size.containers), sizes_of(previous.containers)
    back = {name: by_section(_replaced, have, before.get(name, NOTHING)) for name, have in now.items()}
    if back == now and size.canary is None:
        return size
    replicas = replicas_returned(spec, size.replicas, previous)
    update = {"replicas": replicas, "containers": recorded(back), "canary": None, "written": None}
    return size.model_copy(update=update)


def replicas_returned(spec: HvpaSpec, now: int, previous: PreviousSize) -> int:
    """Returns the replicas with which a workload returns to a size."""
    is_scaled = has_replicas(spec.target_ref.kind) and (spec.hpa.deploy or spec.hpa.name is not None)
    return max(now, previous.replicas) if now and is_scaled else now


def undone(
    context: GateContext, observation: ScalableState, undo: Undo, size: DesiredSize
) -> tuple[DesiredSize, RolledBack | None]:
    """Returns the desired size with the sizes before the step, and the record of the changes if this decision makes
    them. Replicas that the API server refused stay as they are."""
    previous, refused = observation.status.previous_size, observation.horizontal.refused
    assert previous is not None
    back = returned(context.spec, size, previous)
    if back is size:
        return size, None
    if refused_until(refused, context.clock, size.replicas, back.replicas) is not None:
        back = back.model_copy(update={"replicas": size.replicas})
    time, more = context.clock.stamp(), back.replicas > size.replicas
    message = f"replicas {size.replicas} -> {back.replicas}, {undo.text()}" if more else undo.text()
    changes = changes_back(sizes_of(size.containers), sizes_of(back.containers))
    generation = observation.target.metadata.generation
    update = {"since": time.replace(microsecond=0), "generation": generation}
    record = RolledBack(count=1, time=time, message=message, changes=changes)
    return back.model_copy(update=update), record


def undo_resizes(
    context: GateContext, observation: ObservedState, size: DesiredSize, states: Sequence[PodState]
) -> list[PodState]:
    """Removes the resizes that wait, or that are none of HVPA's business: once all pods have had the size, HVPA leaves
    them alone, so that somebody can resize them by hand. Only new pods still get the size."""
    previous, awaited = observation.status.previous_size, _awaited_replicas(context, observation, size)
    is_over = previous is not None and previous.restored is not None
    adjusted = []
    for state in states:
        if state.of_start:
            why = ""  # a boost ends in any case
        elif is_over and not _is_new(context, state.pod):
            why = "another client has resized it since hvpa undo"
        else:
            why = awaited if state.lowers and not state.raises else ""
        held = why and state.resize is not None
        adjusted.append(msgspec.structs.replace(state, resize=None, why=why) if held else state)
    return adjusted


def _is_new(context: GateContext, pod: Pod) -> bool:
    start = pod.status.start_time
    return start is None or context.clock.held_until(start, context.spec.strategy.timeout) is not None


def _awaited_replicas(context: GateContext, observation: ObservedState, size: DesiredSize) -> str:
    """Returns for which replicas lower requests wait: those that the return to a size adds serve first, but after the
    strategy's timeout the pods get their size in any case. Empty if nothing waits."""
    pods, since = own_pods(observation), size.since - CLOCK_SKEW
    new = [pod for pod in pods if (when := pod.metadata.creation_timestamp) is not None and when >= since]
    if len(pods) >= size.replicas and all(map(is_ready, new)):
        return ""
    until = context.clock.held_until(size.since, context.spec.strategy.timeout)
    return "" if until is None else f"waits for the added replicas, at most until {readable_timestamp(until)}"


def _replaced(now: Mapping[Resource, int], before: Mapping[Resource, int]) -> Mapping[Resource, int]:
    """Returns the decided amounts with those from before. An amount that did not exist before stays, because no resize
    removes it."""
    return {resource: before.get(resource, amount) for resource, amount in now.items()}
