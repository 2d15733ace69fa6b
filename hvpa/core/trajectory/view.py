"""A joint decision for display: how HVPA found it, in numbers and in words.

This module has the parts that `explain`, the Events and the conditions show. Few decisions are displayed, so each part
is computed on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hvpa.api.values.quantity import readable_resource
from hvpa.api.values.text import counted, names
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import JointResource
from hvpa.core.path.path import Path, Point
from hvpa.core.trajectory.demand import MetricRequirement, pods_needed
from hvpa.core.trajectory.solve import Joint
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource


@dataclass
class SolutionView:
    """A solution for display (`JointView`). Set no attribute after creation."""

    joint: Joint
    is_measured: bool = True
    """Whether an HPA measures the demand; otherwise it is the usual demand."""

    @cached_property
    def path(self) -> Path:
        """See the protocol."""
        return self.joint.path

    @cached_property
    def items(self) -> tuple[JointResource, ...]:
        """See the protocol."""
        joint = self.joint
        return (*map(self._described, joint.items), *map(_by_vpa, joint.apart))

    @cached_property
    def usual(self) -> Point | None:
        """See the protocol."""
        return self.joint.settled if self.joint.items else None

    @cached_property
    def wanted(self) -> Point:
        """See the protocol."""
        return self.joint.wanted

    def _described(self, item: ContainerResource) -> JointResource:
        joint, key = self.joint, item.key
        curve = joint.path.curves[key]
        amount = joint.present.get(key) if self.is_measured else None
        size = joint.wanted.sizes.get(key, item.current)
        usual = joint.usual.get(key)
        covering = [requirement for requirement in joint.required or () if key in requirement.keys]
        needed = [pods_needed(requirement, joint.wanted.sizes, joint.requests) for requirement in covering]
        source = "HPA: mean of its measurements" if self.is_measured else "VPA: mean of its targets per pod"
        return JointResource(
            key=key,
            base=curve.size_bounds.base,
            current=item.current,
            size=size,
            usual=usual,
            usual_from="" if usual is None else source,
            usual_replicas=None if usual is None else curve.count(joint.in_total(joint.usual)[key]),
            present=amount,
            present_from=f"HPA: {names([requirement.label for requirement in covering])}"
            if covering and self.is_measured
            else "",
            present_replicas=None if amount is None else max(needed),
            stays=self._stays(item) if size == item.current else "",
            bound=_bound(item, curve.size_bounds.upper),
        )

    def _stays(self, item: ContainerResource) -> str:
        """Return why a request stays although the path has another size, in words."""
        joint, key = self.joint, item.key
        exact = joint.exact[key]
        if exact == item.current:
            return ""
        if exact < item.current and joint.required is None:
            return "not lowered while the HPA has no metrics"
        if exact < item.current and joint.in_place and joint.holds_in:
            return f"not lowered: {joint.holds_in}"
        if exact < item.current and joint.in_place and joint.fails:
            return "not lowered: too many pods failed recently"
        if exact < item.current and joint.in_place and joint.raised:
            return "raised less than a minute ago"
        if exact < item.current and joint.awaits(joint.settled.replicas):
            return "kept until new pods are ready"
        if joint.is_near(key, exact):
            return f"close enough to {readable_resource(item.resource, exact)}"
        return ""

    @cached_property
    def because(self) -> str:
        """See the protocol."""
        joint = self.joint
        wanted = joint.wanted.replicas
        if joint.unknown is not None and joint.required is None:
            until = readable_timestamp(joint.unknown.until)
            return (
                f"{joint.unknown.why}: HVPA keeps the last recommendation, {counted(wanted)}, until {until}"
            )
        if joint.required is None:
            if wanted > joint.replicas:
                return f"the usual demand needs {counted(wanted)}; the HPA has no metrics"
            return "the HPA has no metrics, so HVPA does not follow lower demand"
        pods = [
            (joint.pods_for(requirement, joint.wanted.sizes), self._named(requirement))
            for requirement in joint.called_for
        ]
        needed, label = max(pods, default=(0, ""))
        asked = f"{label} needs {counted(needed)}"
        if needed > wanted and wanted == joint.path.counts.upper:
            return f"{asked}; the maximum is {wanted}"
        if needed > wanted:
            return f"{asked}; {counted(wanted)} nearly suffice"
        return asked if needed == wanted else self._why_more(asked, needed)

    def _named(self, requirement: MetricRequirement) -> str:
        """Return the metric, and why its demand is more than the measured one."""
        ran_out = not self.joint.requests.short.isdisjoint(requirement.keys)
        return f"{requirement.label} after an OOM" if ran_out else requirement.label

    def _why_more(self, asked: str, needed: int) -> str:
        """Return why there are more replicas than `needed`."""
        joint, wanted = self.joint, self.joint.wanted.replicas
        if wanted == joint.path.counts.lower:
            return f"{asked}; the minimum is {wanted}"
        if kept := joint.holds_in or joint.keeps:
            return f"HVPA removes no replica: {kept}"
        if joint.held_down_to(joint.wanted.sizes) > needed:
            return f"{asked} now; the HPA still recommends more"
        if joint.unproven:
            return f"{asked}, plus {joint.unproven} that are new or failed recently"
        return f"{asked}; the difference is within the overlap"


def _by_vpa(item: ContainerResource) -> JointResource:
    """Return a container resource that no metric measures: it follows the VPA alone."""
    size = item.blended(FULL)
    bound = "" if item.upper_bound is None else item.upper_bound.name
    base = item.bounds.lower or item.current
    return JointResource(item.key, base, item.current, size, usual_from="the VPA's target", bound=bound)


def _bound(item: ContainerResource, most: int | None) -> str:
    """Return the name of the setting that gives the largest size on the path; empty if there is none."""
    bound = item.upper_bound
    if most is None:
        return ""
    return bound.name if bound is not None and bound.size <= most else "the end of spec.trajectory.intervals"
