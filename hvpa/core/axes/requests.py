"""Requests and limits of a step, as far as both strategies share them: the gates' view of a change, raises of starving
containers, and the result of all changes (DESIGN 5.3, 6). Each strategy finds the wanted requests itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

from msgspec import structs

from hvpa.api.hvpa.status import Pending
from hvpa.api.objects.read_models import condition
from hvpa.api.values.quantity import readable_resource
from hvpa.core.axes.fast import FastRaises
from hvpa.core.axes.steps import AxisRecord, RequestsResult, ResourceStep
from hvpa.core.gates.approval import approved
from hvpa.core.gates.backoff import refused_until, rolled_back_until
from hvpa.core.gates.gates import (
    APPROVAL,
    MAINTENANCE_WINDOW,
    MIN_CHANGE,
    NO_CLOCK,
    OVERRIDDEN,
    RELIEVED,
    Change,
    GateContext,
    Hold,
    first_hold,
)
from hvpa.core.gates.verdict import trial_end
from hvpa.core.model import Direction, ResourceRequirements, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.history import LOST, view_history
from hvpa.core.rules import DEFAULT, MIN_CHANGE_REPLACING, GateFigures, Rules, params_of
from hvpa.core.state import before_fast, last_raise
from hvpa.core.values.arithmetic import KILOBYTE, after_oom, ceil_div, is_same_size, round_up, scale_limit
from hvpa.core.values.clock import after, doubled
from hvpa.core.values.tuning import (
    LONGEST_TIMEOUT,
    OOM_CAP,
    OOM_FOLLOWED,
    OVERRIDE_EVERY,
    SETTLING,
)
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource, amount_of, present_resources
from hvpa.core.workload.pod_level import with_limits


class RequestsAxis:
    """Both strategies change requests with this class. It holds the record, the gates' view of a change, raises of
    starving containers, and the resulting resources."""

    def __init__(
        self,
        observation: ScalableState,
        context: GateContext,
        items: Sequence[ContainerResource],
        *,
        weightless: bool = False,
        on_path: Mapping[ResourceKey, int] | None = None,
        saturated: Collection[ResourceKey] = (),
    ) -> None:
        self.observation = observation
        self.context = context
        self.clock = context.clock
        self.items = items
        """Governed container resources."""
        self.disruptive = not observation.spec.strategy.in_place
        """A change replaces pods."""
        self.weightless = weightless
        """Only replicas scale."""
        self.on_path = on_path or {}
        """The VPA's own targets (millicores or bytes) of items that a metric measures: their `target` is a size of the
        path."""
        self.saturated = saturated
        """Items whose pods use all that they have, so that raising them is a rescue (`spec.review.rescues`)."""
        review = observation.spec.mode == "Review"
        self._approved = approved(observation.metadata.annotations) if review else None
        self.spec = observation.spec.vpa
        self.present = present_resources(observation.workload.spec.template.spec.containers)
        template = observation.target.spec.template.spec.containers
        self._replaces = observation.spec.strategy.type == "InPlaceOrRollout"
        self._written = present_resources(template) if observation.spec.strategy.in_place else self.present
        """The containers' resources in the pod template."""
        self.record = AxisRecord(observation.vertical, self.present, context)
        self.pending = {
            (pending.container, pending.resource, pending.direction): pending
            for pending in observation.vertical.pending
        }
        self.starving = bool(observation.pods.starving) or observation.legacy_override
        min_history = self.spec.scale_down.min_history
        self.provided_until = self._provided_until(min_history)
        self.history, self.short_until = view_history(
            observation.vertical.history, observation.history, min_history, self.clock
        )
        self.young: list[dt.datetime] = []
        self.canary_until = self._canary_until()
        self.raises = {item.key: raised for item in items if (raised := self._memory_raise(item)) is not None}
        self._fast = FastRaises(observation, context.clock)
        self._kept: list[str] = []
        """What the fast signal raised and pods still need."""

    def _provided_until(self, least: dt.timedelta) -> dt.datetime | None:
        """Returns until when the VPA has recommended for less than `least`; None if it has for longer."""
        assert self.observation.vpa.object is not None
        provided = condition(self.observation.vpa.object.status.conditions, "RecommendationProvided")
        if provided is None or provided.last_transition_time is None:
            return None
        until = after(provided.last_transition_time, least)
        return None if self.clock.is_past(until) else until

    def young_until(self, container: str) -> dt.datetime | None:
        """Returns until when a container's recommendation has too short a history to lower a request (`minHistory`);
        None if the history is long enough."""
        times = (self.provided_until, self.short_until.get(container))
        return max([until for until in times if until is not None], default=None)

    def _canary_until(self) -> dt.datetime | None:
        """Returns until when another size is tried on some pods; NO_CLOCK while they do not have it yet."""
        canary, desired = self.observation.spec.strategy.canary, self.observation.status.desired
        run = None if canary is None or desired is None else desired.canary
        if canary is not None and run is not None and run.since is not None:
            return trial_end(self.context, self.observation, run.since)[0]
        is_rolled_out = self.observation.rollout is not None and bool(self.observation.rollout.previous)
        return NO_CLOCK if run is not None or is_rolled_out else None

    # --- a change ----------------------------------------------------------------------------------------------------
    def step_to(
        self,
        item: ContainerResource,
        wanted: int,
        ppm: int,
        *,
        measured_at: dt.datetime | None = None,
        moved_from: int | None = None,
        start: int | None = None,
    ) -> ResourceStep | None:
        """Returns the change of a request to `wanted` at weight `ppm`, in the form that gates check. None if nothing
        changes, or if a request inside its bounds would change only by a rounding error. `measured_at`: until when the
        change waits for the HPA's measurement. `start`: the request before the fast signal raised it, if the change
        begins from there; the way back to it needs no history and is never too small."""
        up, is_way_back = wanted > item.current, start is not None and wanted < item.current
        if is_same_size(item.current, wanted) and item.current == item.bounds.clamp(item.current):
            return None
        raised_until = None
        if up and (recent := self._recent_raise(item)) is not None and wanted > recent[0]:
            wanted, raised_until = (recent[0], None) if recent[0] > item.current else (wanted, recent[1])
        min_change, starves = self._rules(up).min_change[item.resource], self._starves(item)
        if item.at_start and self.observation.spec.joint and min_change.source == DEFAULT:
            min_change = MIN_CHANGE_REPLACING[item.resource]
        least, wait = min_change.of(item.current), None
        pending = (
            self.pending_since(item, "up") if up and ppm > 0 and _may_pass(item, wanted, least) else None
        )
        small_until = None
        is_small = abs(wanted - item.current) < least or self._is_raised(item, least)
        if is_small and not is_way_back:
            small_until = NO_CLOCK
            if pending is not None:
                first = self.spec.scale_up.min_change_timeout
                wait = doubled(first, self.record.small_steps(item), LONGEST_TIMEOUT)
                small_until = after(pending.since, wait)
        if not up and self.observation.spec.polls_kubelets:
            # Until then the HPA may not have measured the usage that the kubelets reported.
            raised_at = last_raise(self.observation.vertical)
            measured_at = measured_at or self.clock.held_until(raised_at, SETTLING)
        young_until = None if up or is_way_back else self.young_until(item.container)
        if young_until is not None:
            self.young.append(young_until)
        change = structs.replace(
            self._change(item, wanted),
            weightless=ppm == 0,
            canary_until=self.canary_until,
            young_until=young_until,
            kept_until=NO_CLOCK if starves and not up else None,
            raised_until=raised_until,
            measured_at=measured_at,
            small_until=small_until,
            least=GateFigures(wait, least, min_change.source),
        )
        passes = RELIEVED if self.starving and up and not starves else frozenset[str]()
        return ResourceStep(
            item, wanted, ppm, change, passes, pending=pending, before_fast=start, moved_from=moved_from
        )

    def hold(self, step: ResourceStep) -> Hold | None:
        """Returns the hold of a step, if a gate blocks it."""
        passes = step.passes | {APPROVAL} if self._is_rescue(step) else step.passes
        return first_hold(step.change, self.context, passes)

    def _is_rescue(self, step: ResourceStep) -> bool:
        """Whether a step is a rescue that needs no approval: memory that ran out, or CPU of saturated pods."""
        if (
            self._approved is None
            or self.observation.spec.review.rescues == "Wait"
            or step.direction == "down"
        ):
            return False
        return step.override or step.fast is not None or step.item.key in self.saturated

    def _change(self, item: ContainerResource, wanted: int) -> Change:
        """Returns the part of a change that is the same for all requests."""
        up, margin = wanted > item.current, self.observation.spec.review.margin
        return Change(
            self._rules(up),
            self.observation.vertical.last_scale_time,
            disruptive=self.disruptive or (item.at_start and self._replaces),
            contested_until=self.record.contest.until(up=up),
            refused_until=refused_until(
                self.observation.vertical.refused, self.clock, item.current, wanted, item.key
            ),
            rolled_back_until=rolled_back_until(
                self.observation.status.rolled_back,
                self.clock,
                wanted,
                item.key,
                only_in_place=self.context.spec.strategy.type == "InPlace",
            ),
            unapproved_until=None
            if self._approved is None
            else self._approved.held_until(self.clock, item.key, item.current, wanted, margin),
        )

    def before_fast(self, item: ContainerResource) -> int | None:
        """Returns the request before the fast signal raised it to the present one; None if it did not."""
        return before_fast(self.observation.vertical.fast_raises, *item.key, item.current)

    def _rules(self, up: bool) -> Rules:
        return self.context.rules["vertical", "up" if up else "down"]

    def _is_raised(self, item: ContainerResource, least: int) -> bool:
        """Whether memory was raised above its target, after an OOM or by the fast signal, and the target has since
        moved by less than minChange. The target that was too small must not undo the raise."""
        before = self.record.blended_from(item)
        is_override = item.container in self.record.overrides or self.before_fast(item) is not None
        if before is None or item.resource != "memory" or not is_override:
            return False
        return item.current > before[0] and abs(item.target - before[0]) < max(1, least)

    def pending_since(self, item: ContainerResource, direction: Direction) -> Pending:
        """Returns since when a change in this direction has been pending."""
        known = self.pending.get((*item.key, direction))
        if known is not None and not self.clock.is_ahead(known.since):
            return known
        since = self.clock.stamp()
        return Pending(container=item.container, resource=item.resource, direction=direction, since=since)

    # --- starving containers (DESIGN 6.4) ----------------------------------------------------------------------------
    def raise_now(self, item: ContainerResource) -> ResourceStep | None:
        """Returns the raise of a starving container's memory, which precedes all other changes. None if there is none,
        or if the last raise was less than ten minutes ago."""
        raised = self.raises.get(item.key)
        return None if raised is None or raised.change.raised_until is not None else raised

    def _starves(self, item: ContainerResource) -> bool:
        starving = self.observation.legacy_override or item.container in self.observation.pods.starving
        return item.resource == "memory" and starving

    def _memory_raise(self, item: ContainerResource) -> ResourceStep | None:
        """Returns the raise of a starving container's memory. None if the container does not starve or has the maximum.
        If the raise restarts no pod, it does not wait for a maintenance window."""
        wanted = self._enough_memory(item) if self._starves(item) else 0
        if wanted <= item.current:
            return None
        before = self.record.overrides.get(item.container)
        until = None if before is None else self.clock.held_until(before.time, OVERRIDE_EVERY)
        change = structs.replace(self._change(item, wanted), raised_until=until)
        passes = OVERRIDDEN if self.disruptive else OVERRIDDEN | {MAINTENANCE_WINDOW}
        return ResourceStep(item, wanted, FULL, change, passes, override=True)

    def with_fast(self, item: ContainerResource, usual: ResourceStep | None) -> ResourceStep | None:
        """Returns the raise by the fast signal, if no gate holds it and it is larger than the `usual` change; else
        that."""
        if (need := self._fast.need(item, self.on_path.get(item.key, item.target))) is None:
            return usual
        change = structs.replace(
            self._change(item, need.request), weightless=self.weightless, canary_until=self.canary_until
        )
        raised = ResourceStep(item, need.request, FULL, change, RELIEVED, fast=need)
        if self.hold(raised) is not None:
            return usual
        is_smaller = usual is None or usual.request <= raised.request or self.hold(usual) is not None
        return raised if is_smaller else usual

    def without_raise(
        self, item: ContainerResource, before: int, usual: tuple[int, int, int | None]
    ) -> ResourceStep | None:
        """Returns the change that ends a raise by the fast signal, once pods need it no more. It goes to the `usual`
        request (with its weight, and the target that it moves with), which begins from the request `before`. If that is
        smaller than `before`, held, or without weight, it goes to `before`; a smaller request then follows as usual."""
        wanted, ppm, moved_from = usual
        way_back = item.bounds.clamp(before)
        larger = max(wanted, way_back) if ppm else way_back
        step, is_needed = self._kept_of_raise(item, larger, before)
        if is_needed:
            return step
        if larger > way_back:
            step = self.step_to(item, larger, ppm, moved_from=moved_from, start=before)
            if step is None or (hold := self.hold(step)) is None or hold.reason == MIN_CHANGE:
                return step
        return self.step_to(item, way_back, FULL, start=before)

    def _kept_of_raise(
        self, item: ContainerResource, usual: int, before: int
    ) -> tuple[ResourceStep | None, bool]:
        """Returns the step to what pods still need of a raise of CPU by the fast signal (None: all of it), and whether
        they need any of it. `usual`: the usual request, which begins from `before`."""
        need = self._fast.still_needed(item, usual)
        if need is None:
            return None, False
        step = self.step_to(item, need.request, FULL, start=before)
        if step is None or self.hold(step) is not None:
            name, now = f"{item.container} {item.resource}", readable_resource(item.resource, item.current)
            self._kept.append(f"{name}: {now} now, kept as raised by the fast signal, because {need.text}")
            return None, True
        return structs.replace(step, fast=need), True

    def _enough_memory(self, item: ContainerResource) -> int:
        """Returns the VPA's target if it is above the request. Otherwise it returns 120 % of the request, at least
        100Mi more, within `maxAllowed` or four times the target; this applies only if the pods show that this container
        starves. An older status reports only that some container does. Example: 1Gi becomes 1.2Gi."""
        target = self.on_path.get(item.key, item.target)
        is_above = target > item.current and not is_same_size(item.current, target)
        if is_above or item.container not in self.observation.pods.starving:
            return structs.replace(item, target=target).blended(FULL)
        raised = after_oom(item.current)
        raised = round_up(raised, KILOBYTE)
        if item.bounds.upper is None:
            # A target with a short history does not show how much memory is enough.
            known = target if self.young_until(item.container) is None else max(target, item.current)
            raised = min(raised, OOM_CAP * known)
        return item.bounds.clamp(raised)

    def _recent_raise(self, item: ContainerResource) -> tuple[int, dt.datetime] | None:
        """Returns how far memory follows the VPA's target after a raise less than ten minutes ago, and until when. None
        without such a raise, or if a metric measures the usage.

        Example: 256Mi ran out and was raised to 356Mi. A minute later the VPA's target is 4Gi. Memory rises to 712Mi.
        """
        before = self.record.overrides.get(item.container)
        if item.resource != "memory" or before is None or item.key in self.on_path:
            return None
        raised = amount_of("memory", before.memory)
        until = self.clock.held_until(before.time, OVERRIDE_EVERY)
        return None if raised is None or until is None else (raised * OOM_FOLLOWED, until)

    def _with_raises(
        self, decided: Sequence[tuple[ResourceStep, Hold | None]]
    ) -> list[tuple[ResourceStep, Hold | None]]:
        """Adds raises that wait for their ten minutes. Each replaces another change of the same memory, except a change
        that raises it sooner."""
        reported = {step.item.key: (step, hold) for step, hold in decided}
        for key, raised in self.raises.items():
            if raised.change.raised_until is not None:
                hold = self.hold(raised)
                if not _raises_before(hold, reported.get(key)):
                    reported[key] = (raised, hold)
        return list(reported.values())

    # --- the result --------------------------------------------------------------------------------------------------
    def result(self, decided: Sequence[tuple[ResourceStep, Hold | None]]) -> RequestsResult:
        """Returns the result for all requests and limits, from the wanted changes and their holds."""
        reported = self._with_raises(decided)
        applied = [step for step, hold in decided if hold is None]
        axis = self.record.after(decided)
        if axis.history != self.history:
            axis = axis.model_copy(update={"history": self.history})
        # If the VPA has recommended for a long time, a short history means a lost history.
        long_ago = LOST * self.spec.scale_down.min_history
        is_lost = bool(self.short_until) and self._provided_until(long_ago) is None
        containers = self._resources(applied)
        return RequestsResult(
            containers=containers,
            recommended=self._resources([step for step, _ in reported if not step.change.weightless]),
            changed=frozenset([name for name, size in containers.items() if size is not self.present[name]]),
            directions=tuple(sorted({step.direction for step in applied})),
            axis=axis,
            blocked=tuple([step.blocked(hold) for step, hold in reported if hold is not None]),
            steps=(*[step.text(hold) for step, hold in reported], *self._kept),
            reported=tuple(
                [
                    f"{step.fast.text} for {step.item.container}"
                    for step in applied
                    if step.fast is not None and step.is_fast
                ]
            ),
            ended=tuple([text for step in applied if (text := step.end_of_fast)]),
            young_until=max(self.young, default=None),
            short_until=self.short_until,
            lost_until=self.short_until if is_lost else {},
            without_request=tuple(
                [f"{item.container} {item.resource}" for item in self.items if item.request is None]
            ),
        )

    def _resources(self, steps: Sequence[ResourceStep]) -> Mapping[str, ResourceRequirements]:
        """Returns the resources of all containers after these steps."""
        resources = dict(self.present)
        for step in steps:
            item = step.item
            requirements, limit = resources[item.container], self._scaled_limit(step)
            resources[item.container] = ResourceRequirements(
                {**requirements.requests, item.resource: step.request},
                requirements.limits if limit is None else {**requirements.limits, item.resource: limit},
            )
        target = self.observation.target.spec.template.spec
        changed = {step.item.resource for step in steps}
        return with_limits(
            target,
            resources,
            [item for item in self.items if item.resource in changed],
            self.observation.spec,
        )

    def _pair_of(self, item: ContainerResource) -> tuple[int | None, int | None]:
        """Returns the request and the limit whose ratio the limit keeps. In place, they are those of the pod template,
        which HVPA leaves as it is; by the present pair, which is rounded, the limit would creep up."""
        written = self._written.get(item.container)
        if written is not None and (limit := written.limits.get(item.resource)) is not None:
            return written.requests.get(item.resource), limit
        return item.request, item.limit

    def _scaled_limit(self, step: ResourceStep) -> int | None:
        """Returns the limit that goes with a step's request; None if there is none."""
        item = step.item
        if not item.scales_limit:
            return item.limit
        gap = params_of(self.spec.limits_requests_gap_scale_params, item.resource)
        limit = scale_limit(item.resource, step.request, *self._pair_of(item), gap)
        has_gap = gap.percentage is not None or gap.value is not None
        if limit is not None and item.limit is not None and step.direction == "up" and not has_gap:
            limit = max(limit, item.limit)  # the template's limit may have been lowered since
        return limit


def _may_pass(item: ContainerResource, wanted: int, least: int) -> bool:
    """Whether a raise is large enough to pass after `minChangeTimeout`: at least the smaller of 10 % of the request and
    half of minChange. Example: 100m for a request of 1 core and a minChange of 200m (DESIGN 6.4)."""
    return (wanted - item.current) >= min(ceil_div(item.current, 10), ceil_div(least, 2))


def _raises_before(waiting: Hold | None, decided: tuple[ResourceStep, Hold | None] | None) -> bool:
    """Whether another change raises the request before the gate of the `waiting` raise opens."""
    if decided is None or decided[0].direction == "down" or waiting is None:
        return False
    hold = decided[1]
    if hold is None or waiting.until is None:
        return True
    return hold.until is not None and hold.until <= waiting.until
