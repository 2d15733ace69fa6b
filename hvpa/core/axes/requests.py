"""The requests and limits of one step, for both strategies: each through the gates (DESIGN 5.3, 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams, ScaleParams
from hvpa.api.hvpa.status import AppliedTarget, Pending
from hvpa.api.objects.read_models import condition
from hvpa.api.values.quantity import Resource
from hvpa.core.axes.record import Record
from hvpa.core.axes.starving import OVERRIDE_EVERY, enough_memory
from hvpa.core.axes.steps import RequestsResult, Step, blocked, note
from hvpa.core.gates.gates import OVERRIDDEN, RELIEVED, Change, GateContext, Hold, first_hold
from hvpa.core.gates.refusals import refused_until
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.values.arithmetic import ceil_div, scale_limit, threshold
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.weight import FULL, Weight, percent
from hvpa.core.workload.containers import ContainerResource, amount, present_resources
from hvpa.core.workload.governed import governed

DEFAULT_MIN_CHANGE: dict[Resource, int] = {"cpu": 200, "memory": 200_000_000}
"""200m and 200M, gardener's defaults, where neither value nor percentage is set (DESIGN 6.3)."""
LONGEST_TIMEOUT = dt.timedelta(days=1)
"""Up to this `minChangeTimeout` doubles (DESIGN 6.4)."""


def history_until(seen: ObservedState, clock: Clock) -> dt.datetime | None:
    """Until when the VPA's history is too young to lower requests (`minHistory`); None when it is old enough."""
    assert seen.vpa.object is not None and seen.spec is not None
    provided = condition(seen.vpa.object.status.conditions, "RecommendationProvided")
    if provided is None or provided.last_transition_time is None:
        return None
    until = after(provided.last_transition_time, seen.spec.vpa.scale_down.min_history)
    return None if clock.is_past(until) else until


class VerticalScaling:
    """One decision's vertical axis: what is the same for all container resources, and the way from container resource
    to outcome.

    `wants_out` tells that all replicas there may be are there and the HPA wants more: what goes up has full weight
    then, once the HPA can have measured that count (it still wants out, DESIGN 5.2).
    """

    def __init__(self, seen: ObservedState, context: GateContext, weight: Weight, wants_out: bool) -> None:
        assert seen.workload is not None and seen.vpa.object is not None and seen.spec is not None
        self.seen = seen
        self.context = context
        self.now = context.clock
        self.weight = weight
        self.wants_out = wants_out
        self.spec = seen.spec.vpa
        self.present = present_resources(seen.workload.spec.template.spec.containers)
        self.items = governed(seen)
        self.pending = {
            (one.container, one.resource): one for one in seen.vertical.pending if one.direction == "up"
        }
        self.starving = bool(seen.pods.starving) or seen.legacy_override
        self.young_until = history_until(seen, context.clock)
        self.is_young = False
        self.disruptive = True
        self.record = Record(seen.vertical, self.present, context)
        self.contest = self.record.contest

    def outcome(self) -> RequestsResult:
        """Decide on every container resource."""
        decided = self.decided()
        reported = self._with_raises(decided)
        without_request = [f"{one.container} {one.resource}" for one in self.items if one.request is None]
        applied = [step for step, hold in decided if hold is None]
        return RequestsResult(
            containers=self._resources(applied),
            recommended=self._resources([step for step, _ in reported if not step.change.weightless]),
            changed=frozenset([step.item.container for step in applied]),
            directions=tuple(sorted({step.direction for step in applied})),
            axis=self.record.after(decided, applied),
            blocked=tuple([blocked(step, hold) for step, hold in reported if hold is not None]),
            steps=tuple([note(step, hold) for step, hold in reported]),
            young_until=self.young_until if self.is_young else None,
            without_request=tuple(without_request),
        )

    # --- what is wanted ----------------------------------------------------------------------------------------------
    def decided(self) -> list[tuple[Step, Hold | None]]:
        """The changes that are wanted, and what holds each of them back."""
        steps = [step for item in self.items if (step := self.step(item)) is not None]
        return [(step, first_hold(step.change, self.context, step.passes)) for step in steps]

    def step(self, item: ContainerResource) -> Step | None:
        """The change that is wanted of one container resource; None where there is none."""
        starves = self._starves(item)
        if starves and (raised := self._override(item)) is not None and raised.change.raised_until is None:
            return raised
        ppm, measured_at = self._weight_of(item)
        wanted = self._blended(item, ppm)
        up = wanted > item.current
        if wanted == item.current:
            return None
        least = self.least_change(item, up)
        pending = self._pending(item) if up and ppm > 0 and self._may_pass(item, wanted, least) else None
        change = Change(
            policy=self.spec.scale_up if up else self.spec.scale_down,
            last_scale_time=self.seen.vertical.last_scale_time,
            contested_until=self.contest.until(up=up),
            refused_until=self._refused_until(item, wanted),
            weightless=ppm == 0,
            disruptive=self.disruptive,
            too_small=abs(wanted - item.current) < least or self._is_raised(item, least),
            small_until=None if pending is None else after(pending.since, self._timeout(item)),
            unmeasured=measured_at is not None,
            measured_at=measured_at,
            is_kept=starves and not up,
            young_until=None if up else self._young_until(),
        )
        relieved = self.starving and up and not starves
        passes = RELIEVED if relieved else frozenset[str]()
        return Step(
            item, wanted, ppm, change, passes, pending=pending, moved_from=self._moved_from(item, ppm)
        )

    def _refused_until(self, item: ContainerResource, wanted: int) -> dt.datetime | None:
        return refused_until(self.seen.vertical.refused, self.now, item.current, wanted, item.key)

    def _weight_of(self, item: ContainerResource) -> tuple[int, dt.datetime | None]:
        """The weight of a container resource; and until when a step of it waits for the HPA's measurement.

        Where the HPA still wants out at maxReplicas, what goes up has full weight, once the HPA has measured that
        count. Until then the container resource has its usual weight where that makes a step.
        """
        usual = self.weight.vertical_ppm
        if not self.wants_out or item.target <= item.current:
            return usual, None
        measured_at = self.now.held_until(self.seen.horizontal.last_scale_time, SETTLING)
        if measured_at is not None and usual > 0 and self._blended(item, usual) > item.current:
            return usual, None
        return FULL, measured_at

    def _blended(self, item: ContainerResource, ppm: int) -> int:
        """The request that is wanted at a weight (at full weight where there is none: that is reported as held).

        A target that has had its step at this weight moves the request by its own movement, and no more: 750m was
        blended from 1000m at weight 50, the target is 1400m now: 950m, and not 1075m (DESIGN 5.2). Blended anew, a
        target that drifts would pull the request all the way. A step at full weight has left nothing to be taken twice.
        """
        before = self._moved_from(item, ppm)
        return item.blended(ppm or FULL) if before is None else item.moved(item.target - before, ppm)

    def _moved_from(self, item: ContainerResource, ppm: int) -> int | None:
        """The target from which a request moves with its target; None where it is blended anew."""
        before = self._standing(item)
        if before is None or ppm in (0, FULL) or before.weight != percent(ppm):
            return None
        return self._target_of(before, item)

    def _standing(self, item: ContainerResource) -> AppliedTarget | None:
        """What the request was blended from; None where somebody has set another since, or nothing is known."""
        before = self.record.applied_from.get((item.container, item.resource))
        if before is None or amount({item.resource: before.request}, item.resource) != item.current:
            return None
        return None if amount({item.resource: before.target}, item.resource) is None else before

    @staticmethod
    def _target_of(before: AppliedTarget, item: ContainerResource) -> int:
        return amount({item.resource: before.target}, item.resource) or 0

    def _is_raised(self, item: ContainerResource, least: int) -> bool:
        """Whether memory was raised beyond its target since it ran out, and that target has not moved by minChange: the
        raise must not be taken back by the very target that was too small."""
        before = self._standing(item)
        if before is None or item.resource != "memory" or item.container not in self.record.overrides:
            return False
        target = self._target_of(before, item)
        return item.current > target and abs(item.target - target) < max(1, least)

    @staticmethod
    def _may_pass(item: ContainerResource, wanted: int, least: int) -> bool:
        """Whether a rise is large enough to go through once it has been wanted for `minChangeTimeout`: the smaller of a
        tenth of the request and half of minChange. Of 1 core and 200m: 100m (DESIGN 6.4)."""
        return (wanted - item.current) >= min(ceil_div(item.current, 10), ceil_div(least, 2))

    def _timeout(self, item: ContainerResource) -> dt.timedelta:
        """How long a rise that is smaller than minChange waits: `minChangeTimeout`, doubled with each such step that
        came before, up to a day (DESIGN 6.4)."""
        timeout = self.spec.scale_up.min_change_timeout
        for _ in range(self.record.small_steps(item)):
            if timeout <= dt.timedelta() or timeout >= LONGEST_TIMEOUT:
                return timeout
            timeout = min(2 * timeout, LONGEST_TIMEOUT)
        return timeout

    def _young_until(self) -> dt.datetime | None:
        self.is_young = self.is_young or self.young_until is not None
        return self.young_until

    def least_change(self, item: ContainerResource, up: bool) -> int:
        """The smallest change of a request that is made (DESIGN 6.3)."""
        params = params_of((self.spec.scale_up if up else self.spec.scale_down).min_change, item.resource)
        if params.value is None and params.percentage is None:
            return DEFAULT_MIN_CHANGE[item.resource]
        return threshold(params.value, params.percentage, item.current)

    def _pending(self, item: ContainerResource) -> Pending:
        known = self.pending.get((item.container, item.resource))
        if known is not None and not self.now.is_ahead(known.since):
            return known
        since = self.now.stamp()
        return Pending(container=item.container, resource=item.resource, direction="up", since=since)

    # --- starving containers (DESIGN 6.4) ----------------------------------------------------------------------------
    def _starves(self, item: ContainerResource) -> bool:
        starving = self.seen.legacy_override or item.container in self.seen.pods.starving
        return item.resource == "memory" and starving

    def _override(self, item: ContainerResource) -> Step | None:
        """The raise of a starving container's memory; None where it has all that it may have."""
        before = self.record.overrides.get(item.container)
        wanted = enough_memory(item, known=item.container in self.seen.pods.starving)
        if wanted <= item.current:
            return None
        change = Change(
            self.spec.scale_up,
            self.seen.vertical.last_scale_time,
            contested_until=self.contest.until(up=True),
            refused_until=self._refused_until(item, wanted),
            disruptive=self.disruptive,
            raised_until=self.now.held_until(before.time if before is not None else None, OVERRIDE_EVERY),
        )
        return Step(item, wanted, FULL, change, OVERRIDDEN, override=True)

    def _with_raises(self, decided: list[tuple[Step, Hold | None]]) -> list[tuple[Step, Hold | None]]:
        """The changes with the raises that wait for their ten minutes, each in place of another change of the same
        memory, but for one that raises it sooner."""
        found = {step.item.key: (step, hold) for step, hold in decided}
        for item in self.items:
            raised = self._override(item) if self._starves(item) else None
            if raised is None or raised.change.raised_until is None:
                continue
            hold = first_hold(raised.change, self.context, raised.passes)
            if not _raises_before(hold, found.get(item.key)):
                found[item.key] = (raised, hold)
        return list(found.values())

    # --- requests and limits -----------------------------------------------------------------------------------------
    def _resources(self, steps: list[Step]) -> Mapping[str, ResourceRequirements]:
        """All containers' resources with the steps taken."""
        if not steps:
            return self.present
        found = dict(self.present)
        for step in steps:
            item = step.item
            requests, limits = dict(found[item.container].requests), dict(found[item.container].limits)
            requests[item.resource] = step.request
            limit = self._limit(step)
            if limit is not None:
                limits[item.resource] = limit
            found[item.container] = ResourceRequirements(requests, limits)
        return found

    def _limit(self, step: Step) -> int | None:
        """The limit that goes with a step's request; None where none is set."""
        item = step.item
        if not item.scales_limit:
            return item.limit
        gap = params_of(self.spec.limits_requests_gap_scale_params, item.resource)
        found = scale_limit(item.resource, step.request, item.request, item.limit, gap)
        return found if found is None or item.most_limit is None else min(found, item.most_limit)


def _raises_before(waiting: Hold | None, decided: tuple[Step, Hold | None] | None) -> bool:
    """Whether a change raises a request before the gate opens for which another raise of it is `waiting`."""
    if decided is None or decided[0].direction == "down" or waiting is None:
        return False
    hold = decided[1]
    if hold is None or waiting.until is None:
        return True
    return hold.until is not None and hold.until <= waiting.until


def params_of(params: ScaleParams, resource: Resource) -> CpuParams | MemoryParams:
    """One resource's parameters."""
    return params.cpu if resource == "cpu" else params.memory
