"""What both strategies share of the requests and limits of one step: the gates' view of a change, raises of starving
containers, and what comes of all changes (DESIGN 5.3, 6). What is wanted of a request is each strategy's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams, ScaleParams
from hvpa.api.hvpa.status import Pending
from hvpa.api.objects.read_models import condition
from hvpa.api.values.quantity import Resource
from hvpa.core.axes.out_of_memory import OVERRIDE_EVERY, enough_memory
from hvpa.core.axes.record import Record
from hvpa.core.axes.steps import RequestsResult, Step, blocked, note
from hvpa.core.gates.gates import (
    MAINTENANCE_WINDOW,
    OVERRIDDEN,
    RELIEVED,
    Change,
    GateContext,
    Hold,
    first_hold,
)
from hvpa.core.gates.refusals import refused_until
from hvpa.core.gates.rolled_back import rolled_back_until
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.values.arithmetic import ceil_div, scale_limit, threshold
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource, present_resources

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


class RequestsAxis:
    """What both strategies need to change requests: the record, the gates' view of a change, raises of starving
    containers, and the resources that come of it. `items` are the container resources that are governed, `disruptive`
    tells that a change replaces pods, `default_min_change` is used where the spec sets none."""

    def __init__(
        self,
        seen: ObservedState,
        context: GateContext,
        items: Sequence[ContainerResource],
        *,
        disruptive: bool = True,
        default_min_change: Mapping[Resource, int] = DEFAULT_MIN_CHANGE,
    ) -> None:
        assert seen.workload is not None and seen.vpa.object is not None and seen.spec is not None
        self.seen = seen
        self.context = context
        self.clock = context.clock
        self.items = items
        self.disruptive = disruptive
        self.default_min_change = default_min_change
        self.spec = seen.spec.vpa
        self.present = present_resources(seen.workload.spec.template.spec.containers)
        self.pending = {
            (one.container, one.resource): one for one in seen.vertical.pending if one.direction == "up"
        }
        self.starving = bool(seen.pods.starving) or seen.legacy_override
        self.young_until = history_until(seen, context.clock)
        self.is_young = False
        self.record = Record(seen.vertical, self.present, context)
        self.duration = None if (one := seen.spec.update_strategy.canary) is None else one.duration
        desired = seen.status.desired
        self.canary = None if self.duration is None or desired is None else desired.canary
        self.is_tried = seen.rollout is not None and bool(seen.rollout.previous)
        tries = seen.spec.update_strategy.in_place or self.duration is not None
        self.rolled_back = seen.status.rolled_back if tries else None

    # --- a change ----------------------------------------------------------------------------------------------------
    def raise_now(self, item: ContainerResource) -> Step | None:
        """The raise of a starving container's memory, which comes before all else; None where there is none, or where
        the last one was less than ten minutes ago."""
        raised = self._raise(item)
        return None if raised is None or raised.change.raised_until is not None else raised

    def step_to(
        self,
        item: ContainerResource,
        wanted: int,
        ppm: int,
        *,
        measured_at: dt.datetime | None = None,
        moved_from: int | None = None,
    ) -> Step | None:
        """The change of a request to `wanted`, which the weight `ppm` leads to, as its gates see it; None where it is
        none. `measured_at`: until when it waits for the HPA's measurement."""
        up = wanted > item.current
        if wanted == item.current:
            return None
        least = self._least_change(item, up)
        pending = self._pending(item) if up and ppm > 0 and _may_pass(item, wanted, least) else None
        starves = self._starves(item)
        change = Change(
            policy=self.spec.scale_up if up else self.spec.scale_down,
            last_scale_time=self.seen.vertical.last_scale_time,
            contested_until=self.record.contest.until(up=up),
            refused_until=self._refused_until(item, wanted),
            weightless=ppm == 0,
            disruptive=self.disruptive,
            too_small=abs(wanted - item.current) < least or self._is_raised(item, least),
            small_until=None if pending is None else after(pending.since, self._timeout(item)),
            unmeasured=measured_at is not None,
            measured_at=measured_at,
            is_kept=starves and not up,
            young_until=None if up else self._young_until(),
            is_after_canary=self.canary is not None or self.is_tried,
            canary_until=self._canary_until(),
            rolled_back_until=rolled_back_until(self.rolled_back, self.clock, wanted, item.key),
        )
        passes = RELIEVED if self.starving and up and not starves else frozenset[str]()
        return Step(item, wanted, ppm, change, passes, pending=pending, moved_from=moved_from)

    def hold(self, step: Step) -> Hold | None:
        """What holds a step back."""
        return first_hold(step.change, self.context, step.passes)

    def _refused_until(self, item: ContainerResource, wanted: int) -> dt.datetime | None:
        return refused_until(self.seen.vertical.refused, self.clock, item.current, wanted, item.key)

    def _least_change(self, item: ContainerResource, up: bool) -> int:
        """The smallest change of a request that is made (DESIGN 6.3)."""
        params = params_of((self.spec.scale_up if up else self.spec.scale_down).min_change, item.resource)
        if params.value is None and params.percentage is None:
            return self.default_min_change[item.resource]
        return threshold(params.value, params.percentage, item.current)

    def _is_raised(self, item: ContainerResource, least: int) -> bool:
        """Whether memory was raised beyond its target since it ran out, and that target has not moved by minChange: the
        raise must not be taken back by the very target that was too small."""
        before = self.record.blended_from(item)
        if before is None or item.resource != "memory" or item.container not in self.record.overrides:
            return False
        return item.current > before[0] and abs(item.target - before[0]) < max(1, least)

    def _timeout(self, item: ContainerResource) -> dt.timedelta:
        """How long a rise that is smaller than minChange waits: `minChangeTimeout`, doubled with each such step that
        came before, up to a day (DESIGN 6.4)."""
        timeout = self.spec.scale_up.min_change_timeout
        for _ in range(self.record.small_steps(item)):
            if timeout <= dt.timedelta() or timeout >= LONGEST_TIMEOUT:
                return timeout
            timeout = min(2 * timeout, LONGEST_TIMEOUT)
        return timeout

    def _canary_until(self) -> dt.datetime | None:
        """Until when another size is tried on some pods; None where none is, or where they do not have it yet."""
        if self.canary is None or self.canary.since is None or self.duration is None:
            return None
        return after(self.canary.since, self.duration)

    def _young_until(self) -> dt.datetime | None:
        self.is_young = self.is_young or self.young_until is not None
        return self.young_until

    def _pending(self, item: ContainerResource) -> Pending:
        known = self.pending.get((item.container, item.resource))
        if known is not None and not self.clock.is_ahead(known.since):
            return known
        since = self.clock.stamp()
        return Pending(container=item.container, resource=item.resource, direction="up", since=since)

    # --- starving containers (DESIGN 6.4) ----------------------------------------------------------------------------
    def _starves(self, item: ContainerResource) -> bool:
        starving = self.seen.legacy_override or item.container in self.seen.pods.starving
        return item.resource == "memory" and starving

    def _raise(self, item: ContainerResource) -> Step | None:
        """The raise of a starving container's memory; None where it does not starve, or has all that it may have. Where
        it restarts no pod, it waits for no maintenance window."""
        if not self._starves(item):
            return None
        before = self.record.overrides.get(item.container)
        wanted = enough_memory(item, known=item.container in self.seen.pods.starving)
        if wanted <= item.current:
            return None
        change = Change(
            self.spec.scale_up,
            self.seen.vertical.last_scale_time,
            contested_until=self.record.contest.until(up=True),
            refused_until=self._refused_until(item, wanted),
            disruptive=self.disruptive,
            raised_until=self.clock.held_until(before.time if before is not None else None, OVERRIDE_EVERY),
        )
        passes = OVERRIDDEN if self.disruptive else OVERRIDDEN | {MAINTENANCE_WINDOW}
        return Step(item, wanted, FULL, change, passes, override=True)

    def _with_raises(self, decided: Sequence[tuple[Step, Hold | None]]) -> list[tuple[Step, Hold | None]]:
        """The changes with the raises that wait for their ten minutes, each in place of another change of the same
        memory, but for one that raises it sooner."""
        found = {step.item.key: (step, hold) for step, hold in decided}
        for item in self.items:
            raised = self._raise(item)
            if raised is None or raised.change.raised_until is None:
                continue
            hold = self.hold(raised)
            if not _raises_before(hold, found.get(item.key)):
                found[item.key] = (raised, hold)
        return list(found.values())

    # --- the result --------------------------------------------------------------------------------------------------
    def result(self, decided: Sequence[tuple[Step, Hold | None]]) -> RequestsResult:
        """What becomes of all requests and limits, given the changes that are wanted and what holds each of them."""
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

    def _resources(self, steps: Sequence[Step]) -> Mapping[str, ResourceRequirements]:
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


def _may_pass(item: ContainerResource, wanted: int, least: int) -> bool:
    """Whether a rise is large enough to go through once it has been wanted for `minChangeTimeout`: the smaller of a
    tenth of the request and half of minChange. Of 1 core and 200m: 100m (DESIGN 6.4)."""
    return (wanted - item.current) >= min(ceil_div(item.current, 10), ceil_div(least, 2))


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
