"""What the vertical axis remembers (DESIGN 8): what its requests were blended from, what waits, whose memory was
raised, and who undid it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hvpa.api.hvpa.status import AppliedTarget, MemoryOverride, VerticalAxis
from hvpa.api.values.quantity import Resource, format_resource
from hvpa.core.axes.out_of_memory import OVERRIDE_EVERY
from hvpa.core.axes.steps import Step
from hvpa.core.gates.contest import judge_contest
from hvpa.core.gates.gates import CONTESTED, MIN_CHANGE, GateContext, Hold
from hvpa.core.gates.refusals import without_written
from hvpa.core.model import ResourceRequirements
from hvpa.core.state import step_time
from hvpa.core.values.weight import percent
from hvpa.core.workload.containers import ContainerResource, amount


class Record:
    """The axis's record as it is, for containers whose resources are now `present`, and as it is after a decision."""

    def __init__(
        self, axis: VerticalAxis, present: Mapping[str, ResourceRequirements], context: GateContext
    ) -> None:
        self.axis = axis
        self.present = present
        self.context = context
        self.now = context.clock
        self.applied_from = {(one.container, one.resource): one for one in axis.applied_from}
        self.overrides = {one.container: one for one in axis.overrides}
        undone = context.applies and any(self._undone(one) for one in axis.applied_from)
        self.contest = judge_contest(undone, axis.set_back, axis.last_scale_time, self.now)

    def _undone(self, one: AppliedTarget) -> bool:
        """Whether a request that we set stands at another value now."""
        resources = self.present.get(one.container)
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        return resources is not None and resources.requests.get(resource) != amount(
            {resource: one.request}, resource
        )

    def after(self, decided: Sequence[tuple[Step, Hold | None]], applied: Sequence[Step]) -> VerticalAxis:
        """The record after this decision. What only waits stays pending, also where nothing may be applied."""
        done = applied if self.context.applies else []
        waiting = [
            step.pending
            for step, hold in decided
            if step.pending is not None and not (hold is None and self.context.applies)
        ]
        update: dict[str, object] = {}
        if tuple(waiting) != self.axis.pending:
            update["pending"] = tuple(waiting)
        if done:
            when = step_time(self.axis.last_scale_time, self.now)
            if any(step.direction == "up" for step in done):
                update["last_scale_up_time"] = when
            update |= {
                "last_scale_time": when,
                "applied_from": self._applied_from_after(done),
                "overrides": self._overrides_after(done),
                "set_back": self.contest.after_step(when),
                "refused": without_written(self.axis.refused, {step.item.key for step in done}),
            }
        elif any(hold is not None and hold.reason == CONTESTED for _, hold in decided):
            update["set_back"] = self.contest.record
        return self.axis.model_copy(update=update) if update else self.axis

    def _applied_from_after(self, applied: Sequence[Step]) -> tuple[AppliedTarget, ...]:
        """What requests were blended from; forgotten where the container is gone or somebody set another request."""
        applied_from = {
            key: one
            for key, one in self.applied_from.items()
            if one.container in self.present and not self._undone(one)
        }
        for step in applied:
            item = step.item
            applied_from[item.container, item.resource] = AppliedTarget(
                container=item.container,
                resource=item.resource,
                target=format_resource(item.resource, item.target),
                weight=percent(step.weight_ppm),
                request=format_resource(item.resource, step.request),
                small_steps=self._small_steps(step) or None,
            )
        return tuple(applied_from[key] for key in sorted(applied_from))

    def blended_from(self, item: ContainerResource) -> tuple[int, float] | None:
        """The target that the request was blended from, and the weight (percent) that it was blended with; None where
        somebody has set another request since, or nothing is known."""
        before = self.applied_from.get((item.container, item.resource))
        if before is None or amount({item.resource: before.request}, item.resource) != item.current:
            return None
        target = amount({item.resource: before.target}, item.resource)
        return None if target is None else (target, before.weight)

    def small_steps(self, item: ContainerResource) -> int:
        """How many small steps in a row this container resource has had (DESIGN 6.4)."""
        before = self.applied_from.get((item.container, item.resource))
        return 0 if before is None else before.small_steps or 0

    def _small_steps(self, step: Step) -> int:
        """The same after a step: one more where `minChangeTimeout` let it through, none where `minChange` allows it."""
        if not step.change.too_small:
            return 0
        return self.small_steps(step.item) + (MIN_CHANGE not in step.passes)

    def _overrides_after(self, applied: Sequence[Step]) -> tuple[MemoryOverride, ...]:
        """Raises of starving containers: remembered until their ten minutes are over and the memory is set anew."""
        anew = {step.item.container for step in applied if step.item.resource == "memory"}
        kept = {
            name: one
            for name, one in self.overrides.items()
            if name in self.present
            and (name not in anew or self.now.held_until(one.time, OVERRIDE_EVERY) is not None)
        }
        raised = {step.item.container for step in applied if step.override}
        kept |= {name: MemoryOverride(container=name, time=self.now.stamp()) for name in raised}
        return tuple(kept[name] for name in sorted(kept))
