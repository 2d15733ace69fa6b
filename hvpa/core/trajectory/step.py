"""A step of a joint decision (DESIGN 5.4, 5.5, 6): the change passes the gates of both axes, and if a gate holds one
axis, HVPA solves the other axis again.

Sizes come first, then the count that serves with the sizes that pods have or will have. If more replicas are held back
while demand grows, larger pods make up for them. HVPA replaces pods once for all changes to them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, structs

from hvpa.api.values.quantity import RESOURCES
from hvpa.api.values.text import counted
from hvpa.core.axes.replicas import ReplicasResult, as_recommended_last, begun, restored, scale_to
from hvpa.core.axes.steps import RequestsResult
from hvpa.core.gates.gates import MEASUREMENT, MIN_HISTORY, POD_REPLACEMENT, REFUSED, GateContext
from hvpa.core.model import Blocked, JointView, ScalableState, Unknown
from hvpa.core.path.path import ResourceKey, Sizes
from hvpa.core.recommenders.desired_replicas import DesiredReplicas, last_recommended, was_lowered
from hvpa.core.recommenders.estimate import unproven
from hvpa.core.rules import highest_demand
from hvpa.core.trajectory.capacity import Capacity
from hvpa.core.trajectory.config import overlaps_by_resource, path_of, reserves, trajectory_of
from hvpa.core.trajectory.demand import (
    MetricRequirement,
    Requests,
    boosted,
    by_targets,
    is_saturated,
    requirements,
)
from hvpa.core.trajectory.history import DemandHistory, first_seen
from hvpa.core.trajectory.requests import scale_to_sizes
from hvpa.core.trajectory.solve import Joint, WithoutNode
from hvpa.core.trajectory.view import SolutionView
from hvpa.core.values.clock import after
from hvpa.core.values.lately import Demands
from hvpa.core.values.tuning import FEW_NEW, NOT_WORTH_REPLACING, ROOM_FOR, SETTLING, STARVES_FOR
from hvpa.core.values.weight import Bounds, EffectiveWeight, is_horizontal, weight_intervals, weight_leaving
from hvpa.core.workload.containers import (
    SHARED,
    ContainerResource,
    amount,
    present_resources,
    recommendations,
)
from hvpa.core.workload.governed import governed
from hvpa.core.workload.own_rollout import keeps_pods
from hvpa.core.workload.stuck import UNSCHEDULABLE

_UNSETTLED: Final = "the HPA has not measured the current pods yet"


class JointResult(Struct, frozen=True):
    """The results of both axes, and how they were found."""

    horizontal: ReplicasResult | None
    vertical: RequestsResult | None
    view: JointView
    called_for: Demands | None
    """The demand of the metrics by name (None: they have no value)."""


class _Demands(NamedTuple):
    """The demand now and usually."""

    required: tuple[MetricRequirement, ...] | None
    """The requirements of the metrics; None if unknown."""
    urgent: tuple[MetricRequirement, ...]
    """The same, with more for saturated CPU."""
    usual: Mapping[ResourceKey, int]
    saturated: frozenset[ResourceKey] = frozenset()
    """The container resources whose pods use all that they have."""


class JointScaling:
    """The step of one decision, within the HPA's `bounds`. A scheduled floor only raises the replica count: the path
    and the sizes follow the demand."""

    def __init__(
        self, observation: ScalableState, context: GateContext, desired: DesiredReplicas, bounds: Bounds
    ) -> None:
        self.observation = observation
        self.spec = observation.spec
        self.context = context
        self.desired = desired
        self.replicas = observation.workload.spec.replicas
        self.in_place = observation.spec.strategy.in_place
        self.starving = bool(observation.pods.starving) or observation.legacy_override
        self.vertical_only = observation.vpa.configured and not observation.hpa.configured
        self.bounds = self._bounds(bounds)
        self.unsettled_until = self._unsettled_until()
        self.resources = present_resources(observation.workload.spec.template.spec.containers)
        self.known = first_seen(observation, self.resources)
        self.joint = self._joint()

    def _bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of the path's counts: the HPA's; without an HPA those of `trajectory.intervals`, otherwise
        the present count."""
        if self.observation.hpa.in_charge:
            return bounds
        intervals = trajectory_of(self.spec).intervals
        if not self.observation.hpa.configured and intervals:
            return structs.replace(bounds, lower=1, upper=intervals[-1].max_replicas)
        return Bounds(self.replicas, self.replicas)

    def _stepped_until(self) -> dt.datetime | None:
        """Return until when measurements may be from before HVPA's last step."""
        return self.context.clock.held_until(self.observation.horizontal.last_scale_time, SETTLING)

    def _unsettled_until(self) -> dt.datetime | None:
        """Return until when the HPA's measurement may be of another number of pods: of the pods before HVPA's last
        step, or of pods that are being replaced. A metric is a mean over pods, so its total would be too small for
        fewer pods. None: it is of the present pods."""
        pods, clock = self.observation.pods, self.context.clock
        changes = [
            self._stepped_until(),
            was_lowered(self.observation, clock),
        ]
        lately = [until for when in pods.ready_since if (until := clock.held_until(when, SETTLING))]
        if len(lately) * FEW_NEW > pods.ready:
            changes.append(max(lately))
        if not pods.ready:
            changes.append(clock.held_until(pods.newest_unready, SETTLING))
        return max([until for until in changes if until is not None], default=None)

    def _joint(self) -> Joint:
        """Return the inputs of the joint solution."""
        observation, desired, clock = self.observation, self.desired, self.context.clock
        unsettled = self.unsettled_until is not None
        items = governed(observation) if observation.vpa.in_charge and observation.vpa.problem is None else ()
        resized = [item for item in items if not item.at_start]
        requests = self._requests(resized)
        groups = self._groups(requests)
        on_path = self._on_path(resized, groups)
        apart = tuple([item for item in items if item not in on_path])
        history, lately, window = (
            DemandHistory(observation, clock, on_path, requests),
            observation.lately,
            highest_demand(self.spec).duration,
        )
        required, urgent, usual, saturated = self._demands(history, on_path, requests)
        stands = required is not None and unsettled and not begun(observation.horizontal, self.replicas)
        is_short = lately is not None and lately.is_short(clock, window) is not None
        keeps = not self.in_place and bool(keeps_pods(observation.workload))
        without_node = self._without_node()
        return Joint(
            path=path_of(self.spec, on_path, self.known.first, self.bounds, self.vertical_only),
            items=on_path,
            apart=apart,
            requests=requests,
            groups=groups,
            margins=overlaps_by_resource(self.spec),
            replicas=self.replicas,
            usual=usual,
            capacity=Capacity(observation.pods.shapes, stays_mixed=keeps),
            required=required,
            urgent=urgent,
            saturated=saturated,
            recent=self._recent(required or (), urgent) if self.in_place else urgent,
            held=requirements(desired.held, requests),
            holds_in=self._holds_in(is_short),
            keeps=_UNSETTLED if self.in_place and self._stepped_until() else "",
            unproven=unproven(observation, clock),
            fails=observation.pods.failed * FEW_NEW > observation.pods.living,
            unknown=desired.unknown,
            last=last_recommended(observation) if desired.unknown or stands else 0,
            in_place=self.in_place,
            keeps_pods=keeps,
            serving=max(observation.pods.ready, clock.count_past(observation.pods.counted_from))
            or observation.workload.status.ready_replicas,
            without_node=without_node,
            raised=without_node != "room"
            and clock.held_until(observation.vertical.last_scale_up_time, SETTLING) is not None,
        )

    def _demands(
        self, history: DemandHistory, on_path: Sequence[ContainerResource], requests: Requests
    ) -> _Demands:
        """Return the demand now and usually. Updates `known`."""
        desired = self.desired
        if not self.observation.hpa.configured:
            self.known, usual = history.by_targets(self.known) if on_path else (self.known, {})
            usual_requirements = tuple(
                [
                    MetricRequirement(
                        f"the usual demand of {key.container} {key.resource}", (key,), amount, 0
                    )
                    for key, amount in usual.items()
                ]
            )
            return _Demands(usual_requirements, usual_requirements, usual)
        required: tuple[MetricRequirement, ...] | None = None
        urgent: tuple[MetricRequirement, ...] = ()
        measured, saturated = None, frozenset[ResourceKey]()
        if demands := desired.demands:
            required = requirements(demands, requests)
            beyond = boosted(demands, requests)
            urgent = required if beyond == demands else requirements(beyond, requests)
            full = [
                requirement.keys
                for demand, requirement in zip(demands, required, strict=True)
                if is_saturated(demand, requests)
            ]
            saturated = frozenset(chain(*full))
            if self.unsettled_until is None:
                raw = required if desired.measured == demands else requirements(desired.measured, requests)
                measured = by_targets(raw, requests)
        self.known, usual = history.updated(self.known, measured, desired.unmeasured)
        return _Demands(required, urgent, usual, saturated)

    def _holds_in(self, is_short: bool) -> str:
        """Return why no replica may be removed; empty if some may. `is_short`: the recent demand is not known yet."""
        if self.desired.unmeasured:
            return "a metric has no value"
        if self.in_place:
            return "the demand before the operator's start is unknown" if is_short else ""
        return "" if self.unsettled_until is None else _UNSETTLED

    def _without_node(self) -> WithoutNode:
        """Return how serving pods react to pods that find no node."""
        waiting = [
            pod.since for pod in self.observation.pods.stuck if pod.reason == UNSCHEDULABLE and pod.since
        ]
        if not waiting or not self.context.clock.is_past(waiting[0]):
            return ""
        return "size" if self.context.clock.is_past(after(waiting[0], ROOM_FOR)) else "room"

    def _recent(
        self, required: Sequence[MetricRequirement], urgent: Sequence[MetricRequirement]
    ) -> tuple[MetricRequirement, ...]:
        """Return the demand for the sizes of pods that are resized in place: the highest of the recent minutes, or more
        for saturated pods."""
        lately, clock, window = (
            self.observation.lately,
            self.context.clock,
            highest_demand(self.spec).duration,
        )
        if lately is None:
            return tuple(urgent)
        return tuple(
            [
                requirement.scaled(
                    max(
                        lately.counted(requirement.name, requirement.amount, clock, window),
                        urgent_requirement.amount if urgent_requirement.amount > requirement.amount else 0,
                    )
                )
                for requirement, urgent_requirement in zip(required, urgent, strict=True)
            ]
        )

    def _groups(self, requests: Requests) -> tuple[tuple[ResourceKey, ...], ...]:
        """Return the container resources that each metric of the HPA covers together."""
        metered = self.desired.metered or ()
        return tuple([requests.covered(resource, container) for resource, container in metered])

    def _on_path(
        self, items: Sequence[ContainerResource], groups: Sequence[tuple[ResourceKey, ...]]
    ) -> tuple[ContainerResource, ...]:
        """Return the container resources that have a path: those that a metric of the HPA measures, with or without a
        value. Without an HPA, `trajectory.intervals` gives the path."""
        if not self.observation.hpa.configured:
            return tuple(items) if trajectory_of(self.spec).intervals else ()
        if self.desired.metered is None:
            return tuple(items)  # the HPA does not exist yet: its metrics are unknown
        return tuple([item for item in items if any(item.key in keys for keys in groups)])

    def _requests(self, items: Sequence[ContainerResource]) -> Requests:
        """Return the requests of template and pods, with the VPA's target of each container in the pods."""
        pods, known, vpa = self.observation.pods, self.known, self.observation.vpa.object
        targets = {item.key: item.target for item in items}
        others = {
            key: target
            for name, recommendation in (recommendations(vpa) if vpa is not None else {}).items()
            for resource in RESOURCES
            if (key := ResourceKey(name, resource)) not in targets
            and (name in pods.containers or name in self.resources)
            and (target := amount(recommendation.target, resource))
        }
        reserve = reserves(self.spec, known.first)
        limits = {item.key: item.limit for item in items if item.limit is not None}
        if SHARED in self.resources:
            own = self.resources[SHARED].limits
            limits |= {ResourceKey(SHARED, resource): limit for resource, limit in own.items()}
        horizontal = not trajectory_of(self.spec).intervals and is_horizontal(self.spec, self.vertical_only)
        return Requests(
            known.requests,
            known.first,
            pods.sizes,
            reserve,
            targets,
            limits,
            others,
            pods.totals,
            horizontal=horizontal,
            short=self._short_of_memory(items) if self.in_place and not horizontal else frozenset(),
            ran_out={
                item.key: pods.failed * (item.limit or item.current)
                for item in items
                if item.resource == "memory" and item.container in pods.starving and item.is_largest
            },
        )

    def _short_of_memory(self, items: Sequence[ContainerResource]) -> Set[ResourceKey]:
        """Return the memory of containers that ran out of it, or got more because of that, less than a day ago."""
        names = set(self.observation.pods.starving)
        for override in self.observation.vertical.overrides:
            if self.context.clock.held_until(override.time, STARVES_FOR) is not None:
                names.add(override.container)
        return {item.key for item in items if item.resource == "memory" and item.container in names}

    def weight(self) -> EffectiveWeight | None:
        """Return the vertical weight at which the path leaves the present count; None if `trajectory.intervals` gives
        the path."""
        if trajectory_of(self.spec).intervals:
            return None
        weight = weight_leaving(weight_intervals(self.spec, self.vertical_only), self.replicas, self.bounds)
        return EffectiveWeight(weight, f"for the step of the path from {counted(self.replicas)}")

    # --- the step ----------------------------------------------------------------------------------------------------
    def result(self) -> JointResult:
        """Return the results of both axes after their gates."""
        joint = self.joint
        vertical = self._resized(joint.wanted.sizes) if joint.items or joint.apart else None
        horizontal = None
        if self.desired.unknown is not None:
            horizontal = self._as_recommended_last(self.desired.unknown)
        elif self.observation.hpa.in_charge or self.bounds.upper != self.bounds.lower:
            sizes = self._sizes(vertical)
            goal = self._goal(vertical)
            horizontal = self._counted(goal, sizes, self._held_for_history(goal, vertical))
            if vertical is not None and horizontal.target < goal:
                vertical = self._made_up_for(vertical, horizontal)
        if (
            (joint.holds_in or joint.keeps or joint.unproven)
            and joint.required is not None
            and horizontal is not None
        ):
            horizontal = self._with_waits(horizontal)
        known = joint.required is not None and self.observation.hpa.configured
        called_for = (
            {requirement.name: requirement.amount for requirement in joint.required or ()} if known else None
        )
        return JointResult(
            horizontal, vertical, SolutionView(joint, self.observation.hpa.configured), called_for
        )

    def _sizes(self, vertical: RequestsResult | None) -> Sizes:
        """Return the requests after this step."""
        if vertical is None:
            return self.joint.current
        containers = vertical.containers
        return {
            key: containers[key.container].requests.get(key.resource, size)
            for key, size in self.joint.current.items()
        }

    def _resized(self, sizes: Sizes, is_held: bool = False) -> RequestsResult:
        return scale_to_sizes(self.observation, self.context, self.joint, sizes, is_held)

    def _goal(self, vertical: RequestsResult | None) -> int:
        """Return the count that serves the present demand with the sizes of the pods once all of them serve."""
        joint = self.joint
        if joint.required is None:
            return joint.measured.replicas
        if vertical is not None and joint.awaits(joint.settled.replicas):
            vertical = self._resized(joint.once_started.wanted.sizes)
        return joint.replicas_for(self._sizes(vertical))

    def _held_for_history(self, goal: int, vertical: RequestsResult | None) -> Blocked | None:
        """Return the block on scaling in if the VPA's history is short. Without an HPA, the count follows from the
        VPA's targets, so it does not fall until their history is long enough."""
        if self.observation.hpa.configured or vertical is None or goal >= self.replicas:
            return None
        containers = {item.container for item in self.joint.items}
        short = [until for name, until in vertical.short_until.items() if name in containers]
        if not short:
            return None
        return Blocked("horizontal", "down", MIN_HISTORY, self.replicas, goal, until=max(short))

    def _counted(self, goal: int, sizes: Sizes, held: Blocked | None) -> ReplicasResult:
        """Return the count on its way to the `goal`. If pods must become larger first, the rest follows when they have
        their size (DESIGN 5.5)."""
        joint, observation = self.joint, self.observation
        if goal < restored(observation, joint.last) or goal <= self.replicas < joint.last:
            assert self.unsettled_until is not None
            return self._as_recommended_last(Unknown(_UNSETTLED, self.unsettled_until))
        goal = goal if held is None else self.replicas
        result = scale_to(observation, self.context, self.desired, goal, self.bounds, self.starving)
        raised = self.bounds.raised
        result = structs.replace(result, recommended=raised.clamp(self._recommended(goal, sizes)))
        if held is not None:
            return structs.replace(result, blocked=result.blocked or (held,))
        if result.blocked:
            return result
        wanted = raised.clamp(max(joint.once_replaced.measured.replicas, joint.held_down_to(sizes)))
        if wanted >= min(raised.clamp(goal), self.replicas):
            return result
        if joint.unproven and joint.once_measured().replicas_for(sizes) < goal:
            return result  # the replicas wait for a measurement, not for larger pods
        waits = Blocked("horizontal", "down", POD_REPLACEMENT, self.replicas, wanted)
        note = f"replicas: {wanted} once enough pods have their new size"
        return structs.replace(result, blocked=(waits,), steps=(*result.steps, note))

    def _recommended(self, goal: int, sizes: Sizes) -> int:
        """Return the count without gates, at most the `goal`. Sizes that are close enough stay as they are after this
        step, so the HPA's own count is for these sizes."""
        joint = self.joint
        ungated = {
            key: sizes[key] if joint.is_near(key, size) else size for key, size in joint.wanted.sizes.items()
        }
        return min(goal, max(joint.wanted.replicas, joint.held_down_to(ungated)))

    def _as_recommended_last(self, unknown: Unknown) -> ReplicasResult:
        return as_recommended_last(
            self.observation, self.context, self.desired, unknown, self.bounds, self.starving
        )

    def _made_up_for(self, vertical: RequestsResult, horizontal: ReplicasResult) -> RequestsResult:
        """Return the sizes with which fewer replicas serve, because more replicas are held back. If they are held back
        only briefly, pods keep as much of their present size as they need, and don't become larger."""
        joint, sizes = self.joint, self._sizes(vertical)
        needed = joint.grown(horizontal.target, sizes)
        is_held = self._is_held_for_long(horizontal)
        if not is_held:
            needed = {key: max(sizes[key], min(size, joint.current[key])) for key, size in needed.items()}
        if needed == sizes:
            return vertical
        return structs.replace(self._resized(needed, is_held), recommended=vertical.recommended)

    def _is_held_for_long(self, horizontal: ReplicasResult) -> bool:
        """Return whether needed replicas are held back for longer than it takes to replace pods."""
        held = next((block for block in horizontal.blocked if block.direction == "up"), None)
        if held is None:
            return False
        if held.reason == REFUSED or self.in_place or held.until is None:
            return True  # a refused change is retried later, but is not more likely to succeed
        return not self.context.clock.is_past(held.until - NOT_WORTH_REPLACING)

    def _with_waits(self, horizontal: ReplicasResult) -> ReplicasResult:
        """Return the count with the scale-in that waits for the HPA's next measurement."""
        wanted = self.bounds.raised.clamp(self.joint.once_measured().wanted.replicas)
        if horizontal.blocked or wanted >= min(self.replicas, horizontal.target):
            return horizontal
        until = self.unsettled_until
        if not (self.joint.holds_in or self.joint.keeps):
            ends = self.observation.pods.unproven_until
            until = ends[self.context.clock.count_past(ends)]
        waits = Blocked("horizontal", "down", MEASUREMENT, self.replicas, wanted, until=until)
        return structs.replace(horizontal, blocked=(waits,))
