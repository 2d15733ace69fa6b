"""Rollouts for memory that containers read when they start (`spec.runtimes`, docs/decisions/0086), if pods are resized
in place otherwise."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from hvpa.api.hvpa.progress import DesiredSize, TemplateWrite
from hvpa.api.hvpa.status import VerticalAxis
from hvpa.api.values.quantity import MEMORY
from hvpa.core.actuation.desired import sizes_of, template_has
from hvpa.core.actuation.pods import Resizing, hold_of
from hvpa.core.gates.gates import CONTESTED, GateContext, Hold
from hvpa.core.model import Blocked, Direction, ScalableState
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import HALF_LIFE, REVERTED_FOR
from hvpa.core.workload.containers import amount_of, present_resources


class Replacement(NamedTuple):
    """Whether the pod template is to get the desired size, and the changes of memory that wait for that."""

    is_due: bool = False
    blocked: tuple[Blocked, ...] = ()


def replacement(
    context: GateContext,
    observation: ScalableState,
    size: DesiredSize,
    resizing: Resizing,
    vertical: VerticalAxis,
) -> Replacement:
    """Returns whether a rollout replaces pods for their memory. `vertical` is the record after this decision.

    Memory that an OOM raised above the VPA's target replaces no pods for a day: the pods that ran out of it have it. A
    template that another client has set back is written again after `REVERTED_FOR`.
    """
    if context.spec.strategy.type != "InPlaceOrRollout" or size.canary is not None:
        return Replacement()
    template, wanted = (
        present_resources(observation.target.spec.template.spec.containers),
        sizes_of(size.containers),
    )
    moves = {
        name: (template[name].requests.get(MEMORY, 0), wanted[name].requests.get(MEMORY, 0))
        for name in sorted(resizing.replaced_for)
        if name in template
        and not _only_rescues(context.clock, vertical, name, wanted[name].requests.get(MEMORY, 0))
    }
    if not moves or template_has(observation.target, size):
        return Replacement()
    directions: dict[str, Direction] = {
        name: "up" if then > now else "down" for name, (now, then) in moves.items()
    }
    hold = _set_back(context.clock, observation, size)
    for direction in sorted(set(directions.values())):
        hold = hold or hold_of(context, direction)
    blocked = tuple(
        [
            Blocked(
                "vertical", directions[name], hold.reason, now, then, name, "memory", hold.until, hold.figures
            )
            for name, (now, then) in moves.items()
            if hold is not None
        ]
    )
    return Replacement(hold is None, blocked)


def _only_rescues(clock: Clock, vertical: VerticalAxis, name: str, memory: int) -> bool:
    """Returns whether an OOM raised a container's memory above the VPA's target, less than a day ago."""
    override = next((one for one in vertical.overrides if one.container == name), None)
    if override is None or clock.held_until(override.time, HALF_LIFE) is None:
        return False
    targets = [
        amount_of(MEMORY, source.target)
        for source in vertical.applied_from
        if (source.container, source.resource) == (name, MEMORY)
    ]
    return all(target is None or target < memory for target in targets)


def _set_back(clock: Clock, observation: ScalableState, size: DesiredSize) -> Hold | None:
    """Returns the hold of a size that another client has removed from the template after HVPA wrote it. The write and
    its undoing are two generations; with one, it is not known whether HVPA's own write succeeded."""
    written = size.written
    if written is None or observation.target.metadata.generation < written.generation + 2:
        return None
    until = clock.held_until(written.time, REVERTED_FOR)
    return None if until is None else Hold(CONTESTED, until)


def with_write(size: DesiredSize, generation: int, now: dt.datetime) -> DesiredSize:
    """Returns the desired size with the record that the template gets it now."""
    return size.model_copy(update={"written": TemplateWrite(generation=generation, time=now)})
