"""Valid settings in a spec that are probably unintended: each remark with the field, the reason and a remedy.

This module checks a single Hvpa's spec by itself. A remark must be true for every reader: a setting that works as
written gets no remark. Amounts (`memory: 128m`) are in `hvpa.core.spec.amounts`, ranges, waits and resizes in
`hvpa.core.spec.ranges`, other objects in `hvpa.cli.validate.object_set`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hvpa.api.hvpa.scaling import ScaleType
from hvpa.api.hvpa.spec import HpaSpec, HvpaSpec, VpaSpec
from hvpa.api.hvpa.templates import ContainerPolicy, HpaTemplateSpec
from hvpa.api.objects.kinds import KINDS, in_words, is_custom
from hvpa.api.schema.base import dotted_path
from hvpa.api.suggest import suggestion
from hvpa.api.values.duration import format_duration
from hvpa.api.values.quantity import RESOURCES
from hvpa.api.values.text import counted
from hvpa.core.values.weight import FULL

LOW_TARGET: Final = 20
"""A utilization target below this percentage of the requests is probably a mistake (7 for 70): pods would request five
times their usage."""
MANY_REPLICAS: Final = 500
"""maxReplicas from this number on is probably not a deliberate bound …"""
MANY_TIMES: Final = 100
"""… if it is also this many times minReplicas."""
LONG_WAIT: Final = dt.timedelta(hours=1)
"""A wait before each scale-out that is too long for any load: the HPA itself allows an hour at most."""
_INTERVALS: Final = "spec.weightBasedScalingIntervals"
_TEMPLATE: Final = "spec.hpa.template.spec"


@dataclass(frozen=True, slots=True)
class Remark:
    """A probable mistake: the field, the reason, and the remedy."""

    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; {self.remedy}"


def review(spec: HvpaSpec) -> tuple[Remark, ...]:
    """Return the remarks on a spec: first on its settings, then on settings without effect."""
    parts = (_recommenders, _passed_on, _target, _replicas, _interval_bounds, _interval_holes)
    effects = (
        _low_targets,
        _no_end,
        _one_axis_only,
        _utilization,
        _windows,
        _floors,
        _fallback,
        _forecast,
        _long_waits,
        _costs,
        _approvals,
        _runtimes,
    )
    return tuple(remark for check in (*parts, *effects) for remark in check(spec))


def _recommenders(spec: HvpaSpec) -> Iterator[Remark]:
    for axis, deploy, named, template in (
        ("hpa", spec.hpa.deploy, spec.hpa.name, spec.hpa.template.spec),
        ("vpa", spec.vpa.deploy, spec.vpa.name, spec.vpa.template.spec),
    ):
        if template is not None and not deploy and named is None:
            yield Remark(
                f"spec.{axis}.template",
                "has no effect: deploy is not true",
                f"set spec.{axis}.deploy: true, or remove the template",
            )
    if not (has_hpa(spec) or has_vpa(spec)):
        yield Remark(
            "spec",
            "neither spec.hpa nor spec.vpa is deployed or named, so HVPA scales nothing",
            "set spec.hpa.deploy: true, spec.vpa.deploy: true, or both",
        )


def _passed_on(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on each field of a template that HVPA does not know, if its name is like that of a known field."""
    for axis, template in (("hpa", spec.hpa.template.spec), ("vpa", spec.vpa.template.spec)):
        for field in () if template is None else template.passed_on():
            path = dotted_path(("spec", axis, "template", "spec", *field))
            if (meant := suggestion(path)) is not None:
                why = f"HVPA does not know this field, and passes it on to the {axis.upper()}"
                yield Remark(path, why, f"remove it if it is misspelt: {meant}")


def _target(spec: HvpaSpec) -> Iterator[Remark]:
    target = spec.target_ref
    if is_custom(target.api_version, target.kind):
        if spec.strategy.type != "InPlace":
            why = f"the pod template of a {target.kind} can't be changed"
            yield Remark("spec.updateStrategy.type", why, "set InPlace")
    elif target.kind not in KINDS:
        why, only = f"a {target.kind} is not scaled", f"only {in_words()} are supported"
        yield Remark("spec.targetRef.kind", why, only)


def _replicas(spec: HvpaSpec) -> Iterator[Remark]:
    template = deployed_hpa(spec)
    if template is None or are_off(spec.hpa):
        return
    if (template.min_replicas or 1) == template.max_replicas:
        field = "maxReplicas" if template.min_replicas is None else "minReplicas"
        yield Remark(
            f"{_TEMPLATE}.{field}",
            f"minReplicas and maxReplicas are both {template.max_replicas}: the number of replicas never changes",
            "raise maxReplicas, or remove spec.hpa to scale only requests",
        )
    if template.max_replicas >= max(MANY_REPLICAS, MANY_TIMES * (template.min_replicas or 1)):
        yield Remark(
            f"{_TEMPLATE}.maxReplicas",
            f"{template.max_replicas} is too high to be a limit: a few minutes of a wrong metric create as many pods",
            "set a number that the nodes, the budget and the backends of these pods can handle",
        )


# --- intervals ------------------------------------------------------------------------------------------------
def _interval_bounds(spec: HvpaSpec) -> Iterator[Remark]:
    for overlap in spec.overlaps:
        remedy = "let neighbours share at most their boundary"
        yield Remark(f"{_INTERVALS}[{overlap.later}]", str(overlap), remedy)
    template = deployed_hpa(spec)
    if template is None:
        return
    least, most = template.min_replicas or 1, template.max_replicas
    for index, interval in enumerate(spec.weight_based_scaling_intervals):
        start, last = interval.start_replica_count, interval.last_replica_count
        if start is not None and start > most:
            field, why = "start", f"{start} is above maxReplicas ({most}): it never applies"
        elif last is not None and last < least:
            field, why = "last", f"{last} is below minReplicas ({least}): it never applies"
        elif last is not None and last > most:
            field, why = "last", f"{last} is above maxReplicas ({most}): the count is never that high"
        else:
            continue
        fit = "fit the interval to minReplicas and maxReplicas, or change these"
        yield Remark(f"{_INTERVALS}[{index}].{field}ReplicaCount", why, fit)


def _interval_holes(spec: HvpaSpec) -> Iterator[Remark]:
    for first, last in holes(spec):
        counts = counted(first) if first == last else f"{first} to {last} replicas"
        yield Remark(
            _INTERVALS,
            f"no interval contains {counts}: the weight is 0 there, so HVPA scales only the number of replicas",
            "extend a neighbour over these counts, or add an interval with vpaWeight: 0 if that is intended",
        )


def holes(spec: HvpaSpec) -> list[tuple[int, int]]:
    """Return the ranges of replica counts from minReplicas to maxReplicas that no interval contains, each with its
    first and last count. If no HPA is deployed, the bounds are unknown and only gaps between intervals count."""
    intervals = spec.weight_based_scaling_intervals
    if not intervals:
        return []
    template, least, most = deployed_hpa(spec), 1, None
    if template is not None:
        least = template.min_replicas or 1
        # On a path, a weight applies to the step up from a count: there is no such step from maxReplicas.
        most = template.max_replicas - 1 if spec.joint else template.max_replicas
    by_start = sorted(intervals, key=lambda interval: interval.start_replica_count or least)
    at = (by_start[0].start_replica_count or 1) if template is None else least
    gaps = []
    for interval in by_start:
        start = interval.start_replica_count
        if start is not None and start > at and (most is None or at <= most):
            gaps.append((at, start - 1 if most is None else min(start - 1, most)))
        if interval.last_replica_count is None:
            return gaps
        at = max(at, interval.last_replica_count + 1)
    if most is not None and at <= most:
        gaps.append((at, most))
    return gaps


def _one_axis_only(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark if there are two recommenders, but the weights exclude one of them."""
    if spec.joint or not (has_hpa(spec) and has_vpa(spec)):
        return
    weights = spec.weights_ppm
    if not any(weights):
        yield Remark(
            _INTERVALS if weights else "spec.vpa",
            f"{'all weights are 0' if weights else 'there are no intervals, so the weight is 0'}: HVPA scales"
            " requests only at maxReplicas, and memory after a container ran out of it",
            f"set a vpaWeight above 0 in {_INTERVALS}, or remove spec.vpa",
        )
    elif all(weight == FULL for weight in weights) and not holes(spec):
        yield Remark(
            _INTERVALS,
            "all weights are 100 percent: HVPA follows the HPA's count only while the VPA recommends nothing",
            "set a vpaWeight below 100 at the counts at which HVPA should scale replicas, or remove spec.hpa",
        )


def resource_metrics(spec: HvpaSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the deployed HPA's metrics of a resource, with their paths, as `resource` or `containerResource`."""
    template = deployed_hpa(spec)
    for index, metric in enumerate(() if template is None else template.metrics):
        wire = metric.to_v2()
        if isinstance(source := wire.get("resource") or wire.get("containerResource"), dict):
            yield f"{_TEMPLATE}.metrics[{index}]", source


def _utilization(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on a utilization target and a VPA for the same resource that both have a part in each change."""
    template = deployed_hpa(spec)
    if spec.joint or template is None or not any(0 < weight < FULL for weight in spec.weights_ppm):
        return
    targets = [(path, source["name"], source["target"]["type"]) for path, source in resource_metrics(spec)]
    for path, resource, kind in targets if template.metrics else [(_TEMPLATE, "cpu", "Utilization")]:
        if kind == "Utilization" and vpa_controls(spec.vpa, resource):
            yield Remark(
                path,
                f"the HPA follows the utilization of {resource}, and the VPA changes the {resource} request: a raised"
                " request lowers the utilization at the same load",
                "use an AverageValue, blend: Trajectory, or vpaWeight 0 or 100 in each interval",
            )


def _low_targets(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on targets such as 7 percent, probably meant as 70."""
    for path, source in resource_metrics(spec):
        percent = source.get("target", {}).get("averageUtilization")
        if percent is not None and percent < LOW_TARGET:
            yield Remark(
                path,
                f"a target of {percent} percent: pods request {round(100 / percent)} times their usage",
                f"set the intended target, such as {min(10 * percent, 70)}",
            )


def _no_end(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on a path along which pods may become larger than any node."""
    written = spec.trajectory is not None and bool(spec.trajectory.intervals)
    if not spec.joint or written or not spec.vpa.deploy or spec.vpa.max_allowed is not None:
        return
    policies = _policies(spec.vpa)
    unbounded = [
        resource
        for resource in RESOURCES
        if not policies
        or any(_recommends(policy, resource) and resource not in policy.max_allowed for policy in policies)
    ]
    if unbounded:
        yield Remark(
            "spec.vpa.template.spec.resourcePolicy",
            f"no maxAllowed for {' and '.join(unbounded)}: pods may become larger than any node",
            "set maxAllowed of each container so that a pod fits on a node",
        )


def _policies(vpa: VpaSpec) -> Sequence[ContainerPolicy]:
    resources = vpa.template.spec.resource_policy if vpa.template.spec is not None else None
    return resources.container_policies if resources is not None else ()


def _recommends(policy: ContainerPolicy, resource: str) -> bool:
    """Return whether a VPA recommends this resource for the containers of a policy."""
    controlled = policy.controlled_resources
    return policy.mode != "Off" and (controlled is None or resource in controlled)


def vpa_controls(vpa: VpaSpec, resource: str) -> bool:
    """Return whether a deployed VPA recommends this resource for any container."""
    policies = _policies(vpa)
    on = any(_recommends(policy, resource) for policy in policies)
    return vpa.deploy and (on or all(policy.container_name != "*" for policy in policies))


# --- time -------------------------------------------------------------------------------------------------------
def _windows(spec: HvpaSpec) -> Iterator[Remark]:
    waiting = [
        f"spec.{axis}.{name}.updatePolicy.updateMode"
        for axis, used, scaling in (("hpa", has_hpa(spec), spec.hpa), ("vpa", has_vpa(spec), spec.vpa))
        for name, direction in (("scaleUp", scaling.scale_up), ("scaleDown", scaling.scale_down))
        if used and direction.update_policy.update_mode == "MaintenanceWindow"
    ]
    field = "maintenanceWindows" if spec.maintenance_windows else "maintenanceTimeWindow"
    there_are = bool(spec.maintenance_windows) or spec.maintenance_time_window is not None
    if there_are and not waiting:
        yield Remark(
            f"spec.{field}",
            "has no effect: no direction waits for a window",
            "set updatePolicy: {updateMode: MaintenanceWindow} for directions that should wait, such as"
            " vpa.scaleDown",
        )
    for path in () if there_are else waiting:
        yield Remark(
            path,
            "waits for a maintenance window, but none is configured: HVPA never scales in this direction",
            "add spec.maintenanceWindows or spec.maintenanceTimeWindow; or set Auto, or Off if that is intended",
        )


def _adds_none(spec: HvpaSpec, path: str, *, counted: bool) -> Iterator[Remark]:
    """Yield a remark on a field that could only add replicas, if nothing is `counted` or replicas are never added."""
    name = path.rpartition(".")[2]
    if not counted:
        yield Remark(path, "has no effect: no HPA is deployed or named", "set spec.hpa.deploy: true")
    elif is_off(spec.hpa.scale_up):
        why = "adds no replicas: spec.hpa.scaleUp.updatePolicy.updateMode is Off"
        yield Remark(path, why, f"set Auto, or remove the {name}")


def _floors(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield remarks on scheduled floors that have no effect, or less than expected."""
    path, template = "spec.hpa.schedule", deployed_hpa(spec)
    counted = has_hpa(spec) or (spec.trajectory is not None and bool(spec.trajectory.intervals))
    if spec.hpa.schedule:
        yield from _adds_none(spec, path, counted=counted)
    if template is None:
        return
    least, most = template.min_replicas or 1, template.max_replicas
    for index, scheduled in enumerate(spec.hpa.schedule):
        field, floor = f"{path}[{index}].minReplicas", scheduled.min_replicas
        if floor > most:
            why = f"{floor} is above maxReplicas ({most}), which takes precedence"
            yield Remark(field, why, "raise maxReplicas, or lower the floor")
        elif floor <= least:
            why = f"{floor} is not above the HPA's minReplicas ({least}): it has no effect"
            yield Remark(field, why, "raise the floor, or remove it")


def _fallback(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield remarks on replicas for an HPA without metrics that have no effect, or less than expected."""
    path, fallback, template = "spec.hpa.fallback", spec.hpa.fallback, deployed_hpa(spec)
    if fallback is None:
        return
    floor = fallback.replicas
    if useless := list(_adds_none(spec, path, counted=has_hpa(spec))):
        yield from useless
    elif floor == "Current":
        why = "Current is what HVPA does without a fallback: the replicas stay"
        yield Remark(f"{path}.replicas", why, "set AsUsual or a number, or remove the fallback")
    elif template is not None and isinstance(floor, int) and floor > template.max_replicas:
        why = f"{floor} is above maxReplicas ({template.max_replicas}), which takes precedence"
        yield Remark(f"{path}.replicas", why, "raise maxReplicas, or lower the number")


def _forecast(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on a forecast that has no effect."""
    if spec.forecast is not None:
        yield from _adds_none(spec, "spec.forecast", counted=has_hpa(spec))


def _long_waits(spec: HvpaSpec) -> Iterator[Remark]:
    wait = spec.hpa.scale_up.stabilization_duration
    if has_hpa(spec) and wait >= LONG_WAIT:
        yield Remark(
            "spec.hpa.scaleUp.stabilizationDuration",
            f"HVPA adds no replica for {format_duration(wait)} after each change of the number of replicas, at any"
            " load",
            "use minutes at most; to keep replicas longer, set scaleDown.stabilizationDuration",
        )


def _costs(spec: HvpaSpec) -> Iterator[Remark]:
    path, kind = "spec.updateStrategy.podDeletionCost", spec.target_ref.kind
    if spec.strategy.pod_deletion_cost == "Never":
        return
    if not spec.strategy.in_place:
        why = "has no effect: with updateStrategy.type Rollout all pods get the same size"
        yield Remark(path, why, "set type: InPlaceOrRollout or InPlace, or remove podDeletionCost")
    elif kind in ("StatefulSet", "DaemonSet"):
        yield Remark(
            path, f"has no effect: a {kind} does not choose pods by their cost", "remove podDeletionCost"
        )


def _approvals(spec: HvpaSpec) -> Iterator[Remark]:
    if spec.mode == "Review" and not has_vpa(spec):
        why = "only requests wait for an approval, and no VPA is deployed or named: HVPA changes replicas as with Apply"
        yield Remark("spec.mode", why, "set Apply, or Recommend to change nothing")


def _runtimes(spec: HvpaSpec) -> Iterator[Remark]:
    for index, runtime in enumerate(spec.runtimes):
        if runtime.kind == "Other" and runtime.heap_percent is None:
            why = "has no effect: HVPA knows neither this runtime nor its heap"
            yield Remark(f"spec.runtimes[{index}]", why, "set heapPercent, or remove the entry")


def is_off(direction: ScaleType) -> bool:
    """Return whether a direction is switched off."""
    return direction.update_policy.update_mode == "Off"


def are_off(axis: HpaSpec | VpaSpec) -> bool:
    """Return whether both directions of an axis are switched off."""
    return is_off(axis.scale_up) and is_off(axis.scale_down)


def has_hpa(spec: HvpaSpec) -> bool:
    """Return whether an HPA is deployed or named."""
    return spec.hpa.deploy or spec.hpa.name is not None


def has_vpa(spec: HvpaSpec) -> bool:
    """Return whether a VPA is deployed or named."""
    return spec.vpa.deploy or spec.vpa.name is not None


def deployed_hpa(spec: HvpaSpec) -> HpaTemplateSpec | None:
    """Return the spec of the deployed HPA; None if none is deployed and its bounds are unknown."""
    return spec.hpa.template.spec if spec.hpa.deploy else None
