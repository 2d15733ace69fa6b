"""Steps of the vertical axis as values: a wanted change of one container resource, what becomes of all of them, and
what the axis remembers of them (DESIGN 8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hvpa.api.hvpa.status import AppliedTarget, MemoryOverride, Pending, VerticalAxis
from hvpa.api.values.quantity import format_resource, readable_change, readable_resource
from hvpa.core.gates.backoff import judge_contest, without_written
from hvpa.core.gates.gates import CONTESTED, MIN_CHANGE, Change, GateContext, Hold
from hvpa.core.model import Blocked, Direction, ResourceRequirements
from hvpa.core.state import step_time
from hvpa.core.values.weight import percent
from hvpa.core.workload.containers import ContainerResource, amount_of, amounts

OVERRIDE_EVERY: Final = dt.timedelta(minutes=10)
"""The memory of a container that ran out of it is raised at most this often (DESIGN 6.4)."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A change of one container resource that is wanted: the request, the weight it was blended with, and how its gates
    see it. `override`: the container ran out of memory. `moved_from`: the target that the present request was blended
    from, where the request moves with its target from there."""

    item: ContainerResource
    request: int
    weight_ppm: int
    change: Change
    passes: frozenset[str] = frozenset()
    override: bool = False
    pending: Pending | None = None
    moved_from: int | None = None

    @property
    def direction(self) -> Direction:
        """Which way the request goes."""
        return "up" if self.request > self.item.current else "down"

    def blocked(self, hold: Hold) -> Blocked:
        """The step where it is held back."""
        item = self.item
        return Blocked(
            "vertical",
            self.direction,
            hold.reason,
            item.current,
            self.request,
            *item.key,
            hold.until,
            hold.figures,
        )

    def text(self, hold: Hold | None) -> str:
        """The step in words."""
        item, shown = self.item, percent(self.weight_ppm)
        now, wanted = readable_change(item.resource, item.current, self.request)
        target = readable_resource(item.resource, item.target)
        text = f"{item.container} {item.resource}: {now} now, {target} recommended, {wanted}"
        if self.override:
            text += ", raised because it ran out of memory"
        elif self.moved_from is None:
            text += f" at weight {shown}"
        else:
            before = readable_resource(item.resource, self.moved_from)
            text += f" at weight {shown}: {now} was set when {before} was recommended, so "
            text += f"{now} + ({target} - {before}) × {shown} %"
        bounds = (
            (item.bounds.fixed_limit, ", which is the most that limits and the pod's own resources leave"),
            (item.bounds.upper, ", which is maxAllowed"),
            (item.bounds.lower, ", which is minAllowed"),
        )
        text += next((name for value, name in bounds if value == self.request), "")
        return text if hold is None else f"{text}, held back by {hold.text()}"


class RequestsResult(msgspec.Struct, frozen=True, gc=False):
    """What becomes of the resources: `containers` is set now, `recommended` would be if nothing were blocked, `changed`
    names the containers that this decision changes.

    Until when the VPA's history is too short: `young_until` for a request that would be lowered, `short_until` by
    container, and `lost_until` by container where there have been recommendations for long, so that their history was
    lost. `without_request` names what was calculated from a missing request.
    """

    containers: Mapping[str, ResourceRequirements]
    recommended: Mapping[str, ResourceRequirements]
    changed: frozenset[str]
    directions: tuple[Direction, ...]
    axis: VerticalAxis
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    young_until: dt.datetime | None = None
    short_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    lost_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    without_request: tuple[str, ...] = ()


class Record:
    """What the axis remembers: what its requests were blended from, what waits, whose memory was raised, and who undid
    it. `present` are the containers' resources now."""

    def __init__(
        self, axis: VerticalAxis, present: Mapping[str, ResourceRequirements], context: GateContext
    ) -> None:
        self.axis = axis
        self.present = present
        self.context = context
        self.applied_from = {(one.container, one.resource): one for one in axis.applied_from}
        self.overrides = {one.container: one for one in axis.overrides}
        undone = context.applies and any(self._is_undone(one) for one in axis.applied_from)
        self.contest = judge_contest(undone, axis.set_back, axis.last_scale_time, context.clock)

    def _is_undone(self, one: AppliedTarget) -> bool:
        """Whether a request that was set stands at another value now."""
        have, was_set = self.present.get(one.container), amounts({one.resource: one.request})
        return have is not None and not (was_set and was_set.items() <= have.requests.items())

    def blended_from(self, item: ContainerResource) -> tuple[int, float] | None:
        """The target that the request was blended from, and the weight (percent) that it was blended with; None where
        another client has set another request since, or nothing is known."""
        before = self.applied_from.get(item.key)
        if before is None or amount_of(item.resource, before.request) != item.current:
            return None
        target = amount_of(item.resource, before.target)
        return None if target is None else (target, before.weight)

    def small_steps(self, item: ContainerResource) -> int:
        """How many small steps in a row this container resource has had (DESIGN 6.4)."""
        before = self.applied_from.get(item.key)
        return 0 if before is None else before.small_steps or 0

    def after(self, decided: Sequence[tuple[Step, Hold | None]]) -> VerticalAxis:
        """The record after this decision. What only waits stays pending, also where nothing may be applied."""
        applied: list[Step] = []
        waiting: list[Pending] = []
        for step, hold in decided:
            if hold is None and self.context.applies:
                applied.append(step)
            elif step.pending is not None:
                waiting.append(step.pending)
        update: dict[str, object] = {}
        if tuple(waiting) != self.axis.pending:
            update["pending"] = tuple(waiting)
        if applied:
            when = step_time(self.axis.last_scale_time, self.context.clock)
            if any(step.direction == "up" for step in applied):
                update["last_scale_up_time"] = when
            update |= {
                "last_scale_time": when,
                "applied_from": self._applied_from_after(applied),
                "overrides": self._overrides_after(applied),
                "set_back": self.contest.after_step(when),
                "refused": without_written(self.axis.refused, {step.item.key for step in applied}),
            }
        elif any(hold is not None and hold.reason == CONTESTED for _, hold in decided):
            update["set_back"] = self.contest.record
        return self.axis.model_copy(update=update) if update else self.axis

    def _applied_from_after(self, applied: Sequence[Step]) -> tuple[AppliedTarget, ...]:
        """What requests were blended from; forgotten where the container is gone or a client set another request. Small
        steps: one more where `minChangeTimeout` let the step through, none where `minChange` allows it."""
        known = {
            key: one
            for key, one in self.applied_from.items()
            if one.container in self.present and not self._is_undone(one)
        }
        for step in applied:
            item, is_small = step.item, step.change.small_until is not None
            small_steps = self.small_steps(item) + (MIN_CHANGE not in step.passes) if is_small else 0
            known[item.key] = AppliedTarget(
                container=item.container,
                resource=item.resource,
                target=format_resource(item.resource, item.target),
                weight=percent(step.weight_ppm),
                request=format_resource(item.resource, step.request),
                small_steps=small_steps or None,
            )
        return tuple(known[key] for key in sorted(known))

    def _overrides_after(self, applied: Sequence[Step]) -> tuple[MemoryOverride, ...]:
        """Raises of starving containers: remembered until their ten minutes are over and the memory is set anew."""
        clock = self.context.clock
        anew = {step.item.container for step in applied if step.item.resource == "memory"}
        known = {
            name: one
            for name, one in self.overrides.items()
            if name in self.present and (name not in anew or clock.held_until(one.time, OVERRIDE_EVERY))
        }
        for step in applied:
            name = step.item.container
            if step.override:
                memory = format_resource("memory", step.request)
                known[name] = MemoryOverride(container=name, time=clock.stamp(), memory=memory)
        return tuple(known[name] for name in sorted(known))
