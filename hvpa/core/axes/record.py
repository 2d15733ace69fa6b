"""What the vertical axis remembers (DESIGN 8): what its requests were blended from, what waits, whose memory was
raised, and who undid it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hvpa.api.hvpa.status import AppliedTarget, MemoryOverride, VerticalAxis
from hvpa.api.values.quantity import Resource, format_resource
from hvpa.core.axes.starving import OVERRIDE_EVERY
from hvpa.core.axes.steps import Step
from hvpa.core.gates.contest import judge_contest
from hvpa.core.gates.gates import CONTESTED, MIN_CHANGE, Hold, Moment
from hvpa.core.gates.refusals import without_written
from hvpa.core.model import ContainerResources
from hvpa.core.state import step_time
from hvpa.core.values.weight import percent
from hvpa.core.workload.containers import Slot, amount


class Record:
    """The axis's record as it is, for containers whose resources are now `present`, and as it is after a decision."""

    def __init__(self, axis: VerticalAxis, present: Mapping[str, ContainerResources], moment: Moment) -> None:
        self.axis = axis
        self.present = present
        self.moment = moment
        self.now = moment.present
        self.spent = {(one.container, one.resource): one for one in axis.spent}
        self.overrides = {one.container: one for one in axis.overrides}
        undone = moment.applies and any(self._undone(one) for one in axis.spent)
        self.contest = judge_contest(undone, axis.set_back, axis.last_scale_time, self.now)

    def _undone(self, one: AppliedTarget) -> bool:
        """Whether a request that we set stands at another value now."""
        resources = self.present.get(one.container)
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        return resources is not None and resources.requests.get(resource) != amount(
            {resource: one.request}, resource
        )

    def after(self, judged: Sequence[tuple[Step, Hold | None]], applied: Sequence[Step]) -> VerticalAxis:
        """The record after this decision. What only waits stays pending, also where nothing may be applied."""
        done = applied if self.moment.applies else []
        waiting = [
            step.pending
            for step, hold in judged
            if step.pending is not None and not (hold is None and self.moment.applies)
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
                "spent": self._spent_after(done),
                "overrides": self._overrides_after(done),
                "set_back": self.contest.after_step(when),
                "refused": without_written(self.axis.refused, {step.slot.key for step in done}),
            }
        elif any(hold is not None and hold.reason == CONTESTED for _, hold in judged):
            update["set_back"] = self.contest.record
        return self.axis.model_copy(update=update) if update else self.axis

    def _spent_after(self, applied: Sequence[Step]) -> tuple[AppliedTarget, ...]:
        """What requests were blended from; forgotten where the container is gone or somebody set another request."""
        spent = {
            key: one
            for key, one in self.spent.items()
            if one.container in self.present and not self._undone(one)
        }
        for step in applied:
            slot = step.slot
            spent[slot.container, slot.resource] = AppliedTarget(
                container=slot.container,
                resource=slot.resource,
                target=format_resource(slot.resource, slot.target),
                weight=percent(step.weight_ppm),
                request=format_resource(slot.resource, step.request),
                small_steps=self._small_steps(step) or None,
            )
        return tuple(spent[key] for key in sorted(spent))

    def small_steps(self, slot: Slot) -> int:
        """How many small steps in a row this slot has had (DESIGN 6.4)."""
        before = self.spent.get((slot.container, slot.resource))
        return 0 if before is None else before.small_steps or 0

    def _small_steps(self, step: Step) -> int:
        """The same after a step: one more where `minChangeTimeout` let it through, none where `minChange` allows it."""
        if not step.change.too_small:
            return 0
        return self.small_steps(step.slot) + (MIN_CHANGE not in step.passes)

    def _overrides_after(self, applied: Sequence[Step]) -> tuple[MemoryOverride, ...]:
        """Raises of starving containers: remembered until their ten minutes are over and the memory is set anew."""
        anew = {step.slot.container for step in applied if step.slot.resource == "memory"}
        kept = {
            name: one
            for name, one in self.overrides.items()
            if name in self.present
            and (name not in anew or self.now.held_until(one.time, OVERRIDE_EVERY) is not None)
        }
        raised = {step.slot.container for step in applied if step.override}
        kept |= {name: MemoryOverride(container=name, time=self.now.stamp()) for name in raised}
        return tuple(kept[name] for name in sorted(kept))
