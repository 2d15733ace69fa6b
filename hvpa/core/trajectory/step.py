"""One step of a joint decision (DESIGN 5.4, 5.5, 6): what is wanted goes through the gates of both axes, and where one
is held, the other one is solved again.

Sizes are judged first, then the count that serves with the sizes that will be; a count that is held while demand grows
is made up for by larger pods. Pods are replaced once for all that is wanted of them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.actuation.desired import NOTHING, sizes_of
from hvpa.core.axes.replicas import ReplicasResult, as_recommended_last, begun, restored, scale_to
from hvpa.core.axes.steps import RequestsResult
from hvpa.core.gates.gates import MEASUREMENT, MIN_HISTORY, POD_REPLACEMENT, REFUSED, GateContext
from hvpa.core.model import Blocked, JointView, ObservedState
from hvpa.core.path.path import ResourceKey, Sizes
from hvpa.core.recommenders.desired_replicas import DesiredReplicas, Unknown, last_recommended, was_lowered
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.trajectory.config import overlaps, path_of, reserves, trajectory_of
from hvpa.core.trajectory.demand import (
    BOOST_IN_PLACE,
    BOOST_REPLACED,
    MetricRequirement,
    Requests,
    boosted,
    by_targets,
    requirements,
)
from hvpa.core.trajectory.history import Memory, first_seen
from hvpa.core.trajectory.means import HALF_LIFE
from hvpa.core.trajectory.requests import NOT_WORTH_REPLACING, scale_to_sizes
from hvpa.core.trajectory.solve import Joint
from hvpa.core.trajectory.view import View
from hvpa.core.values.weight import Bounds, Weight, weight_intervals, weight_leaving
from hvpa.core.workload.containers import ContainerResource, amount, present_resources, recommendations
from hvpa.core.workload.governed import governed
from hvpa.core.workload.stuck import UNSCHEDULABLE

_FEW: Final = 10
"""One of so many pods may be new without its share in a mean over all being worth to wait for."""
LONGEST_BACK_OFF: Final = dt.timedelta(minutes=5)
"""Up to so long the kubelet waits until it starts a container again (`MaxContainerBackOff`)."""
_UNSETTLED: Final = "the HPA has yet to measure the pods that there are now"


class JointResult(Struct, frozen=True):
    """What becomes of both axes, and how it was found. `ready_pods` are the requests, in millicores and
    bytes, that pods that are ready have until the others are."""

    horizontal: ReplicasResult | None
    vertical: RequestsResult | None
    view: JointView
    ready_pods: Sizes


class JointScaling:
    """One decision's step, within the HPA's `bounds`. A scheduled floor raises the count that is set and nothing else:
    the path, and so the sizes, are those of the demand."""

    def __init__(
        self, seen: ObservedState, context: GateContext, desired: DesiredReplicas, bounds: Bounds
    ) -> None:
        assert seen.spec is not None and seen.workload is not None
        self.seen = seen
        self.spec = seen.spec
        self.context = context
        self.desired = desired
        self.replicas = seen.workload.spec.replicas
        self.in_place = seen.spec.update_strategy.in_place
        self.starving = bool(seen.pods.starving) or seen.legacy_override
        self.vertical_only = seen.vpa.configured and not seen.hpa.configured
        self.bounds = self._bounds(bounds)
        self.unsettled_until = self._unsettled_until()
        self.held_until = self._held_until()
        self.resources = present_resources(seen.workload.spec.template.spec.containers)
        self.known = first_seen(seen, self.resources)
        self.joint = self._joint()

    def _bounds(self, bounds: Bounds) -> Bounds:
        """The counts of the path: the HPA's; without one those that are written out, else the present count."""
        if self.seen.hpa.in_charge:
            return bounds
        intervals = trajectory_of(self.spec).intervals
        if not self.seen.hpa.configured and intervals:
            return structs.replace(bounds, lower=1, upper=intervals[-1].max_replicas)
        return Bounds(self.replicas, self.replicas)

    def _unsettled_until(self) -> dt.datetime | None:
        """Until when what the HPA measured may be of another number of pods than the present one: of those before a
        step of ours, or of those that are being replaced. It is a mean over pods, and too small in sum for fewer of
        them. None: it is of these pods."""
        pods, clock = self.seen.pods, self.context.clock
        changes = [
            clock.held_until(self.seen.horizontal.last_scale_time, SETTLING),
            was_lowered(self.seen, clock),
        ]
        lately = [until for when in pods.ready_since if (until := clock.held_until(when, SETTLING))]
        if len(lately) * _FEW > pods.ready:
            changes.append(max(lately))
        if not pods.ready:
            changes.append(clock.held_until(pods.newest_unready, SETTLING))
        return max([until for until in changes if until is not None], default=None)

    def _held_until(self) -> dt.datetime | None:
        """Until when nothing is taken away: while the measurement may be of other pods, or of pods as they were
        before they grew in place. Such pods may have been saturated, and what they used is then no measure of demand;
        nor is it while containers that ran out of memory wait to be started again."""
        clock, times = self.context.clock, [self.unsettled_until]
        if self.in_place:
            vertical = self.seen.vertical
            ends = (*self.seen.pods.starving.values(), *(one.time for one in vertical.overrides))
            times.append(clock.held_until(vertical.last_scale_up_time, SETTLING))
            times += [clock.held_until(when, LONGEST_BACK_OFF) for when in ends]
        return max([until for until in times if until is not None], default=None)

    def _joint(self) -> Joint:
        """What both axes are solved from."""
        seen, desired, unsettled = self.seen, self.desired, self.unsettled_until is not None
        items = governed(seen) if seen.vpa.in_charge and seen.vpa.problem is None else ()
        # What metrics measure that are no resource is served by CPU, or by memory where CPU is not governed.
        spare: Resource = "memory" if {item.resource for item in items} == {"memory"} else "cpu"
        requests = self._requests(items)
        found: tuple[MetricRequirement, ...] | None = None if seen.hpa.configured else ()
        urgent: tuple[MetricRequirement, ...] = ()
        measured: Mapping[ResourceKey, int] | None = None if seen.hpa.configured else {}
        if demands := desired.demands:
            found = requirements(demands, requests, spare)
            beyond = boosted(demands, requests, BOOST_IN_PLACE if self.in_place else BOOST_REPLACED)
            urgent = found if beyond == demands else requirements(beyond, requests, spare)
            if not unsettled:
                as_demanded = desired.measured == demands
                raw = found if as_demanded else requirements(desired.measured, requests, spare)
                measured = by_targets(raw, requests)
        apart = self._apart(items, found or ())
        items = tuple([item for item in items if item not in apart])
        memory = Memory(seen, self.context.clock, items, requests)
        first = self.known.first
        self.known, means = memory.brought_up(self.known, measured, desired.unmeasured)
        stands = found is not None and unsettled and not begun(seen.horizontal, self.replicas)
        return Joint(
            path=path_of(self.spec, items, first, self.bounds, self.vertical_only),
            items=items,
            requests=requests,
            margins=overlaps(self.spec),
            replicas=self.replicas,
            means=means,
            found=found,
            urgent=urgent,
            held=requirements(desired.held, requests, spare),
            holds_in="a metric has no value" if desired.unmeasured else _UNSETTLED if self.held_until else "",
            unknown=desired.unknown,
            last=last_recommended(seen) if desired.unknown or stands else 0,
            in_place=self.in_place,
            ran_out=self._ran_out(items, requests, found or ()),
            apart=apart,
        )

    def _apart(
        self, items: Sequence[ContainerResource], found: Sequence[MetricRequirement]
    ) -> tuple[ContainerResource, ...]:
        """Memory that ran out within a day and that no metric measures. The VPA's recommender counts each OOM, so that
        its target times the usual number of pods would ask for replicas, which need as much each: in a crash loop at
        256Mi, 3 pods became 10."""
        if not self.seen.hpa.configured:
            return ()
        clock, starving = self.context.clock, self.seen.pods.starving
        measured = {key for one in found for key in one.keys}
        measured |= {
            ResourceKey(one.container, "memory") for one in self.known.demands if one.resource == "memory"
        }
        raised = {
            one.container
            for one in self.seen.vertical.overrides
            if clock.held_until(one.time, HALF_LIFE) is not None
        }
        return tuple(
            [
                item
                for item in items
                if item.resource == "memory"
                and item.key not in measured
                and (item.container in starving or item.container in raised)
            ]
        )

    def _ran_out(
        self,
        items: Sequence[ContainerResource],
        requests: Requests,
        found: Sequence[MetricRequirement],
    ) -> dict[ResourceKey, int]:
        """The memory that pods had whose containers ran out of it within the last minutes: their limits. Empty where no
        metric measures memory, and replicas come and go with CPU."""
        pods, clock = self.seen.pods, self.context.clock
        measured = {key for one in found for key in one.keys}
        return {
            item.key: pods.starving_pods[item.container]
            * requests.work(item.key, max(item.limit or 0, item.current))
            for item in items
            if item.resource == "memory"
            and item.key in measured
            and (when := pods.starving.get(item.container)) is not None
            and clock.held_until(when, LONGEST_BACK_OFF) is not None
        }

    def _requests(self, items: Sequence[ContainerResource]) -> Requests:
        """The requests of template and pods, with the VPA's target of each container that pods have."""
        pods, known, vpa = self.seen.pods, self.known, self.seen.vpa.object
        targets = {item.key: item.target for item in items}
        others = {
            key: target
            for name, one in (recommendations(vpa) if vpa is not None else {}).items()
            for resource in RESOURCES
            if (key := ResourceKey(name, resource)) not in targets
            and (name in pods.containers or name in self.resources)
            and (target := amount(one.target, resource)) is not None
        }
        reserve = reserves(self.spec, known.first)
        return Requests(known.requests, known.first, pods.sizes, reserve, targets, others, pods.totals)

    def weight(self) -> Weight | None:
        """The vertical weight at which the path leaves the present count; None where the path is written out."""
        if trajectory_of(self.spec).intervals:
            return None
        found = weight_leaving(weight_intervals(self.spec, self.vertical_only), self.replicas, self.bounds)
        return Weight(found, None, f"where the path leaves {self.replicas} replicas")

    # --- the step ----------------------------------------------------------------------------------------------------
    def result(self) -> JointResult:
        """Both axes, each through its gates."""
        joint = self.joint
        vertical = self._resized(joint.wanted.sizes) if joint.items or joint.apart else None
        horizontal = None
        if self.desired.unknown is not None:
            horizontal = self._as_recommended_last(self.desired.unknown)
        elif self.seen.hpa.in_charge or self.bounds.upper != self.bounds.lower:
            sizes = self._sizes(vertical)
            goal = self._goal(joint, sizes)
            if self.in_place and vertical is not None and self._shrinks_soon(vertical):
                goal = max(goal, min(self.replicas, joint.wanted.replicas))
            short_until = {} if vertical is None else vertical.short_until
            goal, untrusted = self._trusted_goal(goal, sizes, short_until), goal
            horizontal = self._counted(goal, sizes)
            if untrusted < goal and not horizontal.blocked:
                until = max(short_until.values())
                held = Blocked("horizontal", "down", MIN_HISTORY, self.replicas, untrusted, until=until)
                horizontal = structs.replace(horizontal, blocked=(held,))
            if vertical is not None and horizontal.target < goal:
                vertical = self._made_up_for(vertical, horizontal)
        if joint.holds_in and joint.found is not None and horizontal is not None:
            horizontal = self._with_waits(horizontal)
        count = self.replicas if horizontal is None else horizontal.target
        return JointResult(horizontal, vertical, View(joint), self._ready_pods(count, self._sizes(vertical)))

    def _sizes(self, vertical: RequestsResult | None) -> Sizes:
        """The requests that will be."""
        if vertical is None:
            return self.joint.current
        containers = vertical.containers
        return {
            key: containers[key.container].requests.get(key.resource, size)
            for key, size in self.joint.current.items()
        }

    def _resized(self, sizes: Sizes, is_held: bool = False) -> RequestsResult:
        return scale_to_sizes(self.seen, self.context, self.joint, sizes, is_held)

    def _goal(self, joint: Joint, sizes: Sizes) -> int:
        """The count that serves the present demand with the sizes that will be."""
        wanted = joint.wanted.sizes
        if sizes == wanted:
            return joint.measured.replicas
        is_held = any(wanted[key] > size for key, size in sizes.items())
        return joint.replicas_for(sizes, may_grow=not is_held)

    def _trusted_goal(self, goal: int, sizes: Sizes, short_until: Mapping[str, dt.datetime]) -> int:
        """The count, which does not fall by targets of containers whose history is short: these count as their requests
        at least. What the HPA measures still lowers it."""
        if goal >= self.replicas or not short_until:
            return goal
        raised = {
            one.key: max(one.target, one.current) for one in self.joint.items if one.container in short_until
        }
        targets = {**self.joint.requests.targets, **raised}
        items = tuple([structs.replace(one, target=targets[one.key]) for one in self.joint.items])
        requests = structs.replace(self.joint.requests, targets=targets)
        trusted = dataclasses.replace(self.joint, items=items, requests=requests)
        return max(goal, min(self.replicas, self._goal(trusted, sizes)))

    def _shrinks_soon(self, vertical: RequestsResult) -> bool:
        """Whether it is a few minutes at most until pods are smaller: fewer of them would serve until then, and the
        others would have to be started again.

        Example: 8 pods of 1 core are to be 6 of 800m, of which the sizes are held for 20 seconds. Until then 5 would
        do; it goes to 6."""
        held = [one.until for one in vertical.blocked if one.direction == "down"]
        soon = [until for until in held if until and self.context.clock.is_past(until - NOT_WORTH_REPLACING)]
        return bool(soon) and len(soon) == len(held)

    def _counted(self, goal: int, sizes: Sizes) -> ReplicasResult:
        """The count on its way to the `goal`. It falls only as far as the smaller of old and new pods serve as well;
        the rest follows when all pods are replaced (DESIGN 5.5)."""
        joint, seen = self.joint, self.seen
        if goal < restored(seen, joint.last) or goal <= self.replicas < joint.last:
            assert self.unsettled_until is not None
            return self._as_recommended_last(Unknown(_UNSETTLED, self.unsettled_until))
        target = goal
        if goal < self.replicas and not self.in_place:
            target = min(self.replicas, max(goal, joint.safe(sizes)))
        found = scale_to(seen, self.context, self.desired, target, self.bounds, self.starving)
        raised = self.bounds.raised
        found = structs.replace(found, recommended=raised.clamp(joint.wanted.replicas))
        goal = raised.clamp(goal)
        if raised.clamp(target) == goal or found.blocked:
            return found
        waits = Blocked("horizontal", "down", POD_REPLACEMENT, self.replicas, goal)
        note = f"replicas: {goal} once all pods have their new size"
        return structs.replace(found, blocked=(waits,), steps=(*found.steps, note))

    def _as_recommended_last(self, unknown: Unknown) -> ReplicasResult:
        return as_recommended_last(self.seen, self.context, self.desired, unknown, self.bounds, self.starving)

    def _made_up_for(self, vertical: RequestsResult, horizontal: ReplicasResult) -> RequestsResult:
        """The sizes with which fewer replicas serve than it takes: more of them are held back. Where that is not for
        long, pods are no smaller than they are, so far as they are needed, and not larger either."""
        joint, sizes = self.joint, self._sizes(vertical)
        needed = joint.grown(horizontal.target, sizes)
        is_held = self._is_held_for_long(horizontal)
        if not is_held:
            needed = {key: max(sizes[key], min(size, joint.current[key])) for key, size in needed.items()}
        if needed == sizes:
            return vertical
        return structs.replace(self._resized(needed, is_held), recommended=vertical.recommended)

    def _is_held_for_long(self, horizontal: ReplicasResult) -> bool:
        """Whether more replicas are needed and held back, for longer than it takes to replace pods."""
        held = next((one for one in horizontal.blocked if one.direction == "up"), None)
        if held is None:
            return False
        if held.reason == REFUSED or self.in_place or held.until is None:
            return (
                True  # what was refused is tried again at that time, and is then no more likely to be taken
            )
        return not self.context.clock.is_past(held.until - NOT_WORTH_REPLACING)

    def _with_waits(self, horizontal: ReplicasResult) -> ReplicasResult:
        """The count with what waits for the HPA's next measurement: fewer replicas."""
        wanted = self.bounds.raised.clamp(self.joint.once_measured().wanted.replicas)
        if horizontal.blocked or wanted >= min(self.replicas, horizontal.target):
            return horizontal
        waits = Blocked("horizontal", "down", MEASUREMENT, self.replicas, wanted, until=self.held_until)
        return structs.replace(horizontal, blocked=(waits,))

    def _ready_pods(self, count: int, sizes: Sizes) -> Sizes:
        """The CPU with which the pods that are ready serve the present demand alone, so far as they may have it, where
        that is more than a tenth above their size; and the memory, where the others find no node. (Memory is given
        back slowly, so that pods which are about to start are not waited for with it.) New pods are not larger for it.

        Example: 6 pods of 1 core are to serve 6 cores, and 2 of them are ready: these have 3 cores each. Until the
        HPA has measured a step, what all pods have by it is the demand: its status may be of pods that were
        saturated."""
        ready, joint = self.seen.pods.ready, self.joint
        if not self.in_place or not joint.found or not ready:
            return {}
        larger = self._of_all(ready, count, sizes) if ready < count else self._until_measured(sizes)
        return {key: size for key, size in larger.items() if size * 10 > sizes[key] * 11}

    def _of_all(self, ready: int, count: int, sizes: Sizes) -> Sizes:
        """The requests with which the pods that are ready serve the demand of all `count` of them."""
        joint = self.joint
        demand = dict(joint.urgent_demand)
        if self._was_just_raised():
            for key in demand:
                demand[key] = max(demand[key], count * joint.requests.work(key, sizes[key]))
        raised = RESOURCES if self._finds_no_node() else ("cpu",)
        return {key: size for key, size in joint.path.sizes(ready, demand).items() if key.resource in raised}

    def _until_measured(self, sizes: Sizes) -> Sizes:
        """The CPU that ready pods had while others started, until the HPA has measured all of them together: pods that
        have just started have it too."""
        before = self.seen.status.desired
        if before is None or self.unsettled_until is None:
            return {}
        had = sizes_of(before.ready_pods)
        return {
            key: had[key.container].requests["cpu"]
            for key in sizes
            if key.resource == "cpu" and "cpu" in had.get(key.container, NOTHING).requests
        }

    def _was_just_raised(self) -> bool:
        """Whether the HPA may not have measured the last step up or out."""
        times = (self.seen.vertical.last_scale_up_time, self.seen.horizontal.last_scale_time)
        return any(self.context.clock.held_until(when, SETTLING) is not None for when in times)

    def _finds_no_node(self) -> bool:
        """Whether pods wait for a node, and have for longer than it takes to find one."""
        found = [one.since for one in self.seen.pods.stuck if one.reason == UNSCHEDULABLE]
        return any(since is None or self.context.clock.is_past(since) for since in found)
