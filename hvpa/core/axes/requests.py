"""The requests and limits of one step, for both strategies: each through the gates (DESIGN 5.3, 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hvpa.api.hvpa.resource import CpuParams, MemoryParams, ScaleParams
from hvpa.api.hvpa.status import AppliedTarget, Pending
from hvpa.api.objects.read_models import condition
from hvpa.api.values.quantity import Resource
from hvpa.core.axes.record import Record
from hvpa.core.axes.starving import OVERRIDE_EVERY, enough_memory
from hvpa.core.axes.steps import Step, VerticalOutcome, blocked, note
from hvpa.core.gates.gates import OVERRIDDEN, RELIEVED, Change, Hold, Moment, first_hold
from hvpa.core.gates.refusals import refused_until
from hvpa.core.model import ContainerResources, Scene
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.values.arithmetic import ceil_div, scale_limit, threshold
from hvpa.core.values.clock import Present, after
from hvpa.core.values.weight import FULL, Weight, percent
from hvpa.core.workload.containers import Slot, amount, present_resources
from hvpa.core.workload.governed import governed

DEFAULT_MIN_CHANGE: dict[Resource, int] = {"cpu": 200, "memory": 200_000_000}
"""200m and 200M, gardener's defaults, where neither value nor percentage is set (DESIGN 6.3)."""
LONGEST_TIMEOUT = dt.timedelta(days=1)
"""Up to this `minChangeTimeout` doubles (DESIGN 6.4)."""


def history_until(seen: Scene, present: Present) -> dt.datetime | None:
    """Until when the VPA's history is too young to lower requests (`minHistory`); None when it is old enough."""
    assert seen.vpa.object is not None and seen.spec is not None
    provided = condition(seen.vpa.object.status.conditions, "RecommendationProvided")
    if provided is None or provided.last_transition_time is None:
        return None
    until = after(provided.last_transition_time, seen.spec.vpa.scale_down.min_history)
    return None if present.is_past(until) else until


class VerticalScaling:
    """One decision's vertical axis: what is the same for all slots, and the way from slot to outcome.

    `wants_out` tells that all replicas there may be are there and the HPA wants more: what goes up has full weight
    then, once the HPA can have measured that count (it still wants out, DESIGN 5.2).
    """

    def __init__(self, seen: Scene, moment: Moment, weight: Weight, wants_out: bool) -> None:
        assert seen.workload is not None and seen.vpa.object is not None and seen.spec is not None
        self.seen = seen
        self.moment = moment
        self.now = moment.present
        self.weight = weight
        self.wants_out = wants_out
        self.spec = seen.spec.vpa
        self.present = present_resources(seen.workload.spec.template.spec.containers)
        self.slots = governed(seen)
        self.pending = {
            (one.container, one.resource): one for one in seen.vertical.pending if one.direction == "up"
        }
        self.starving = bool(seen.pods.starving) or seen.legacy_override
        self.young_until = history_until(seen, moment.present)
        self.is_young = False
        self.disruptive = True
        self.record = Record(seen.vertical, self.present, moment)
        self.contest = self.record.contest

    def outcome(self) -> VerticalOutcome:
        """Decide on every slot."""
        judged = self.judged()
        reported = self._with_raises(judged)
        without_request = [f"{one.container} {one.resource}" for one in self.slots if one.request is None]
        applied = [step for step, hold in judged if hold is None]
        return VerticalOutcome(
            containers=self._resources(applied),
            recommended=self._resources([step for step, _ in reported if not step.change.weightless]),
            changed=frozenset([step.slot.container for step in applied]),
            directions=tuple(sorted({step.direction for step in applied})),
            axis=self.record.after(judged, applied),
            blocked=tuple([blocked(step, hold) for step, hold in reported if hold is not None]),
            steps=tuple([note(step, hold) for step, hold in reported]),
            young_until=self.young_until if self.is_young else None,
            without_request=tuple(without_request),
        )

    # --- what is wanted ----------------------------------------------------------------------------------------------
    def judged(self) -> list[tuple[Step, Hold | None]]:
        """The changes that are wanted, and what holds each of them back."""
        steps = [step for slot in self.slots if (step := self.step(slot)) is not None]
        return [(step, first_hold(step.change, self.moment, step.passes)) for step in steps]

    def step(self, slot: Slot) -> Step | None:
        """The change that is wanted of one slot; None where there is none."""
        starves = self._starves(slot)
        if starves and (raised := self._override(slot)) is not None and raised.change.raised_until is None:
            return raised
        ppm, measured_at = self._weight_of(slot)
        wanted = self._blended(slot, ppm)
        up = wanted > slot.current
        if wanted == slot.current:
            return None
        least = self.least_change(slot, up)
        pending = self._pending(slot) if up and ppm > 0 and self._may_pass(slot, wanted, least) else None
        change = Change(
            policy=self.spec.scale_up if up else self.spec.scale_down,
            last_scale_time=self.seen.vertical.last_scale_time,
            contested_until=self.contest.until(up=up),
            refused_until=self._refused_until(slot, wanted),
            weightless=ppm == 0,
            disruptive=self.disruptive,
            too_small=abs(wanted - slot.current) < least or self._is_raised(slot, least),
            small_until=None if pending is None else after(pending.since, self._timeout(slot)),
            unmeasured=measured_at is not None,
            measured_at=measured_at,
            is_kept=starves and not up,
            young_until=None if up else self._young_until(),
        )
        relieved = self.starving and up and not starves
        passes = RELIEVED if relieved else frozenset[str]()
        return Step(
            slot, wanted, ppm, change, passes, pending=pending, moved_from=self._moved_from(slot, ppm)
        )

    def _refused_until(self, slot: Slot, wanted: int) -> dt.datetime | None:
        return refused_until(self.seen.vertical.refused, self.now, slot.current, wanted, slot.key)

    def _weight_of(self, slot: Slot) -> tuple[int, dt.datetime | None]:
        """The weight of a slot; and until when a step of it waits for the HPA's measurement.

        Where the HPA still wants out at maxReplicas, what goes up has full weight, once the HPA has measured that
        count. Until then the slot has its usual weight where that makes a step.
        """
        usual = self.weight.vertical_ppm
        if not self.wants_out or slot.target <= slot.current:
            return usual, None
        measured_at = self.now.held_until(self.seen.horizontal.last_scale_time, SETTLING)
        if measured_at is not None and usual > 0 and self._blended(slot, usual) > slot.current:
            return usual, None
        return FULL, measured_at

    def _blended(self, slot: Slot, ppm: int) -> int:
        """The request that is wanted at a weight (at full weight where there is none: that is reported as held).

        A target that has had its step at this weight moves the request by its own movement, and no more: 750m was
        blended from 1000m at weight 50, the target is 1400m now: 950m, and not 1075m (DESIGN 5.2). Blended anew, a
        target that drifts would pull the request all the way. A step at full weight has left nothing to be taken twice.
        """
        before = self._moved_from(slot, ppm)
        return slot.blended(ppm or FULL) if before is None else slot.moved(slot.target - before, ppm)

    def _moved_from(self, slot: Slot, ppm: int) -> int | None:
        """The target from which a request moves with its target; None where it is blended anew."""
        before = self._standing(slot)
        if before is None or ppm in (0, FULL) or before.weight != percent(ppm):
            return None
        return self._target_of(before, slot)

    def _standing(self, slot: Slot) -> AppliedTarget | None:
        """What the request was blended from; None where somebody has set another since, or nothing is known."""
        before = self.record.spent.get((slot.container, slot.resource))
        if before is None or amount({slot.resource: before.request}, slot.resource) != slot.current:
            return None
        return None if amount({slot.resource: before.target}, slot.resource) is None else before

    @staticmethod
    def _target_of(before: AppliedTarget, slot: Slot) -> int:
        return amount({slot.resource: before.target}, slot.resource) or 0

    def _is_raised(self, slot: Slot, least: int) -> bool:
        """Whether memory was raised beyond its target since it ran out, and that target has not moved by minChange: the
        raise must not be taken back by the very target that was too small."""
        before = self._standing(slot)
        if before is None or slot.resource != "memory" or slot.container not in self.record.overrides:
            return False
        target = self._target_of(before, slot)
        return slot.current > target and abs(slot.target - target) < max(1, least)

    @staticmethod
    def _may_pass(slot: Slot, wanted: int, least: int) -> bool:
        """Whether a rise is large enough to go through once it has been wanted for `minChangeTimeout`: the smaller of a
        tenth of the request and half of minChange. Of 1 core and 200m: 100m (DESIGN 6.4)."""
        return (wanted - slot.current) >= min(ceil_div(slot.current, 10), ceil_div(least, 2))

    def _timeout(self, slot: Slot) -> dt.timedelta:
        """How long a rise that is smaller than minChange waits: `minChangeTimeout`, doubled with each such step that
        came before, up to a day (DESIGN 6.4)."""
        timeout = self.spec.scale_up.min_change_timeout
        for _ in range(self.record.small_steps(slot)):
            if timeout <= dt.timedelta() or timeout >= LONGEST_TIMEOUT:
                return timeout
            timeout = min(2 * timeout, LONGEST_TIMEOUT)
        return timeout

    def _young_until(self) -> dt.datetime | None:
        self.is_young = self.is_young or self.young_until is not None
        return self.young_until

    def least_change(self, slot: Slot, up: bool) -> int:
        """The smallest change of a request that is made (DESIGN 6.3)."""
        params = params_of((self.spec.scale_up if up else self.spec.scale_down).min_change, slot.resource)
        if params.value is None and params.percentage is None:
            return DEFAULT_MIN_CHANGE[slot.resource]
        return threshold(params.value, params.percentage, slot.current)

    def _pending(self, slot: Slot) -> Pending:
        known = self.pending.get((slot.container, slot.resource))
        if known is not None and not self.now.is_ahead(known.since):
            return known
        since = self.now.stamp()
        return Pending(container=slot.container, resource=slot.resource, direction="up", since=since)

    # --- starving containers (DESIGN 6.4) ----------------------------------------------------------------------------
    def _starves(self, slot: Slot) -> bool:
        starving = self.seen.legacy_override or slot.container in self.seen.pods.starving
        return slot.resource == "memory" and starving

    def _override(self, slot: Slot) -> Step | None:
        """The raise of a starving container's memory; None where it has all that it may have."""
        before = self.record.overrides.get(slot.container)
        wanted = enough_memory(slot, known=slot.container in self.seen.pods.starving)
        if wanted <= slot.current:
            return None
        change = Change(
            self.spec.scale_up,
            self.seen.vertical.last_scale_time,
            contested_until=self.contest.until(up=True),
            refused_until=self._refused_until(slot, wanted),
            disruptive=self.disruptive,
            raised_until=self.now.held_until(before.time if before is not None else None, OVERRIDE_EVERY),
        )
        return Step(slot, wanted, FULL, change, OVERRIDDEN, override=True)

    def _with_raises(self, judged: list[tuple[Step, Hold | None]]) -> list[tuple[Step, Hold | None]]:
        """The changes with the raises that wait for their ten minutes, each in place of another change of the same
        memory, but for one that raises it sooner."""
        found = {step.slot.key: (step, hold) for step, hold in judged}
        for slot in self.slots:
            raised = self._override(slot) if self._starves(slot) else None
            if raised is None or raised.change.raised_until is None:
                continue
            hold = first_hold(raised.change, self.moment, raised.passes)
            if not _raises_before(hold, found.get(slot.key)):
                found[slot.key] = (raised, hold)
        return list(found.values())

    # --- requests and limits -----------------------------------------------------------------------------------------
    def _resources(self, steps: list[Step]) -> Mapping[str, ContainerResources]:
        """All containers' resources with the steps taken."""
        if not steps:
            return self.present
        found = dict(self.present)
        for step in steps:
            slot = step.slot
            requests, limits = dict(found[slot.container].requests), dict(found[slot.container].limits)
            requests[slot.resource] = step.request
            limit = self._limit(step)
            if limit is not None:
                limits[slot.resource] = limit
            found[slot.container] = ContainerResources(requests, limits)
        return found

    def _limit(self, step: Step) -> int | None:
        """The limit that goes with a step's request; None where none is set."""
        slot = step.slot
        if not slot.scales_limit:
            return slot.limit
        gap = params_of(self.spec.limits_requests_gap_scale_params, slot.resource)
        found = scale_limit(slot.resource, step.request, slot.request, slot.limit, gap)
        return found if found is None or slot.most_limit is None else min(found, slot.most_limit)


def _raises_before(waiting: Hold | None, judged: tuple[Step, Hold | None] | None) -> bool:
    """Whether a change raises a request before the gate opens for which another raise of it is `waiting`."""
    if judged is None or judged[0].direction == "down" or waiting is None:
        return False
    hold = judged[1]
    if hold is None or waiting.until is None:
        return True
    return hold.until is not None and hold.until <= waiting.until


def params_of(params: ScaleParams, resource: Resource) -> CpuParams | MemoryParams:
    """One resource's parameters."""
    return params.cpu if resource == "cpu" else params.memory
