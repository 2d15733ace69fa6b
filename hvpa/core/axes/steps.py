"""Steps of the vertical axis as values: a wanted change of a container resource, the result of all changes, and the
axis's record of them (DESIGN 8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import msgspec

from hvpa.api.hvpa.status import AppliedTarget, FastRaise, MemoryOverride, Pending, VerticalAxis
from hvpa.api.values.quantity import format_resource, readable_change, readable_resource
from hvpa.core.axes.fast import Need
from hvpa.core.gates.backoff import judge_contest, without_written
from hvpa.core.gates.gates import CONTESTED, MIN_CHANGE, Change, GateContext, Hold
from hvpa.core.model import Blocked, Direction, ResourceRequirements
from hvpa.core.state import before_fast, step_time
from hvpa.core.values.tuning import FAST_UNDONE, OVERRIDE_EVERY
from hvpa.core.values.weight import percent
from hvpa.core.workload.containers import ContainerResource, amount_of, amounts


class ResourceStep(msgspec.Struct, frozen=True, gc=False):
    """A wanted change of a container resource."""

    item: ContainerResource
    request: int
    """The wanted request, in millicores or bytes."""
    weight_ppm: int
    """The vertical weight of the blend, in parts per million."""
    change: Change
    """The change in the form that gates check."""
    passes: frozenset[str] = frozenset()
    """Gates that do not hold this step."""
    override: bool = False
    """The container ran out of memory."""
    fast: Need | None = None
    """What the kubelets report, if the step is for that."""
    pending: Pending | None = None
    before_fast: int | None = None
    """The request before the fast signal raised it, if the step begins from there."""
    moved_from: int | None = None
    """The target that the current request was blended from, if the request moves with its target from there."""

    @property
    def is_never_near(self) -> bool:
        """Whether the step is made however small it is: the container runs out of a resource, or a raise by the fast
        signal ends."""
        return self.override or self.fast is not None or self.before_fast is not None

    @property
    def is_return(self) -> bool:
        """Whether the step only takes back what the fast signal did."""
        before = self.before_fast
        return before is not None and self.request == self.item.bounds.clamp(before)

    @property
    def is_fast(self) -> bool:
        """Whether the fast signal raises the request."""
        return self.fast is not None and self.direction == "up"

    @property
    def end_of_fast(self) -> str:
        """The raise by the fast signal that the step takes back, for Events; empty if there is none."""
        item = self.item
        if self.before_fast is None:
            return ""
        before = readable_resource(item.resource, self.before_fast)
        text = f"the fast signal had raised {item.resource} of {item.container} from {before}"
        return text if self.fast is None else f"{text}; {self.fast.text}"

    @property
    def direction(self) -> Direction:
        """Direction of the change."""
        return "up" if self.request > self.item.current else "down"

    def blocked(self, hold: Hold) -> Blocked:
        """Returns the status entry of a step that is held back."""
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
        """Describes the step in words."""
        item, shown = self.item, percent(self.weight_ppm)
        now, wanted = readable_change(item.resource, item.current, self.request)
        target = readable_resource(item.resource, item.target)
        text = f"{item.container} {item.resource}: {now} now, {target} recommended, {wanted}"
        if self.fast is not None:
            verb = "raised" if self.is_fast else "lowered no further"
            text += f", {verb} because {self.fast.text}"
        elif self.override:
            text += ", raised because it ran out of memory"
        elif self.is_return:
            text += " as before the fast signal raised it"
        else:
            text += f" at weight {shown}"
            if self.before_fast is not None:
                now = readable_resource(item.resource, self.before_fast)
                text += f" from {now}, as the fast signal raised it from there"
            if self.moved_from is not None:
                before = readable_resource(item.resource, self.moved_from)
                text += f": {now} was set when {before} was recommended, so "
                text += f"{now} + ({target} - {before}) × {shown} %"
        bounds = (
            (
                item.bounds.fixed_limit,
                ", which is the maximum that limits, the pod's own resources and nodes allow",
            ),
            (item.bounds.upper, ", which is maxAllowed"),
            (item.bounds.lower, f", which is {item.lower}"),
        )
        text += next((name for value, name in bounds if value == self.request), "")
        return text if hold is None else f"{text}, held back by {hold.text()}"


class RequestsResult(msgspec.Struct, frozen=True, gc=False):
    """The result for all requests and limits."""

    containers: Mapping[str, ResourceRequirements]
    """Resources that HVPA applies now."""
    recommended: Mapping[str, ResourceRequirements]
    """Resources without any gate."""
    changed: frozenset[str]
    """Containers that this decision changes."""
    directions: tuple[Direction, ...]
    axis: VerticalAxis
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    """The usage that kubelets report, for each raise by the fast signal."""
    ended: tuple[str, ...] = ()
    """The raises by the fast signal that are taken back."""
    young_until: dt.datetime | None = None
    """Until when the VPA's history is too short for a request that would be lowered."""
    short_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """By container: until when the VPA's history is too short."""
    lost_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """Like `short_until`, if the VPA has recommended for so long that the history must have been lost."""
    without_request: tuple[str, ...] = ()
    """Container resources without a request."""


class AxisRecord:
    """The axis's record: the targets that requests were blended from, pending changes, raised memory, and the contest
    with another client. `present` are the containers' current resources."""

    def __init__(
        self, axis: VerticalAxis, present: Mapping[str, ResourceRequirements], context: GateContext
    ) -> None:
        self.axis = axis
        self.present = present
        self.context = context
        self.applied_from = {(target.container, target.resource): target for target in axis.applied_from}
        self.overrides = {override.container: override for override in axis.overrides}
        undone = context.applies and any(self._is_undone(target) for target in axis.applied_from)
        self.contest = judge_contest(undone, axis.set_back, axis.last_scale_time, context.clock)

    def _is_undone(self, target: AppliedTarget) -> bool:
        """Whether a request that HVPA set has another value now."""
        have, was_set = self.present.get(target.container), amounts({target.resource: target.request})
        return have is not None and not (was_set and was_set.items() <= have.requests.items())

    def blended_from(self, item: ContainerResource) -> tuple[int, float] | None:
        """Returns the target and the weight (percent) that the request was blended with; None if unknown, or if another
        client has set another request since."""
        before = self.applied_from.get(item.key)
        if before is None or self._is_undone(before):
            return None
        target = amount_of(item.resource, before.target)
        return None if target is None else (target, before.weight)

    def small_steps(self, item: ContainerResource) -> int:
        """Returns the number of consecutive small steps of this container resource (DESIGN 6.4)."""
        before = self.applied_from.get(item.key)
        return 0 if before is None else before.small_steps or 0

    def after(self, decided: Sequence[tuple[ResourceStep, Hold | None]]) -> VerticalAxis:
        """Returns the record after this decision. Waiting changes stay pending, even if HVPA must not apply
        anything."""
        applied: list[ResourceStep] = []
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
            if any(step.direction == "up" and not step.is_fast for step in applied):
                update["last_scale_up_time"] = when
            update |= {
                "last_scale_time": when,
                "applied_from": self._applied_from_after(applied),
                "overrides": self._overrides_after(applied),
                "fast_raises": self._fast_raises_after(applied),
                "set_back": self.contest.after_step(when),
                "refused": without_written(self.axis.refused, {step.item.key for step in applied}),
            }
        elif any(hold is not None and hold.reason == CONTESTED for _, hold in decided):
            update["set_back"] = self.contest.record
        return self.axis.model_copy(update=update) if update else self.axis

    def _applied_from_after(self, applied: Sequence[ResourceStep]) -> tuple[AppliedTarget, ...]:
        """Returns the blended targets, without containers that are gone and requests that a client changed. A raise by
        the fast signal and its end keep the target. A step that passed by `minChangeTimeout` adds a small step; a step
        that `minChange` allows resets the count."""
        known = {
            key: target
            for key, target in self.applied_from.items()
            if target.container in self.present and not self._is_undone(target)
        }
        for step in applied:
            item, is_small = step.item, step.change.small_until is not None
            is_fast = step.fast is not None and item.resource == "cpu"
            if (is_fast or step.is_return) and (before := known.get(item.key)) is not None:
                request = format_resource(item.resource, step.request)
                known[item.key] = before.model_copy(update={"request": request})
                continue
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

    def _fast_raises_after(self, applied: Sequence[ResourceStep]) -> tuple[FastRaise, ...]:
        """Returns the raises by the fast signal. A raise is kept for a day, and while the container has its request."""
        clock = self.context.clock
        requests: dict[tuple[str, str], int] = {
            (name, resource): request
            for name, size in self.present.items()
            for resource, request in size.requests.items()
        }
        requests.update({step.item.key: step.request for step in applied})
        known: dict[tuple[str, str], FastRaise] = {
            (raised.container, raised.resource): raised for raised in self.axis.fast_raises
        }
        for step in applied:
            item, key = step.item, step.item.key
            if step.fast is not None:
                before = before_fast(self.axis.fast_raises, *key, item.current)
                known[key] = FastRaise(
                    container=item.container,
                    resource=item.resource,
                    request=step.request,
                    before=item.current if before is None else before,
                    time=clock.stamp(),
                )
            elif key in known and known[key].request == step.request:
                known[key] = known[key].model_copy(update={"before": None})
        return tuple(
            raised
            for key, raised in sorted(known.items())
            if requests.get(key) == raised.request or clock.held_until(raised.time, FAST_UNDONE) is not None
        )

    def _overrides_after(self, applied: Sequence[ResourceStep]) -> tuple[MemoryOverride, ...]:
        """Returns the raises of starving containers. A raise is kept until its ten minutes are over and the memory is
        set again."""
        clock = self.context.clock
        anew = {step.item.container for step in applied if step.item.resource == "memory"}
        known = {
            name: override
            for name, override in self.overrides.items()
            if name in self.present and (name not in anew or clock.held_until(override.time, OVERRIDE_EVERY))
        }
        for step in applied:
            name = step.item.container
            if step.override:
                memory = format_resource("memory", step.request)
                known[name] = MemoryOverride(container=name, time=clock.stamp(), memory=memory)
        return tuple(known[name] for name in sorted(known))
