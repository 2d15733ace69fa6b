"""What an Hvpa has saved since its first change: the requests of its workload with the size before, minus those with
the present size. It changes nothing and decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from hvpa.api.hvpa.status import HvpaStatus, OriginalSize
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.model import Axis, Decision, ResourceRequirements, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.parts import AxesResult
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import amount, present_resources, wire
from hvpa.core.workload.pod_level import pod_request


class Saved(NamedTuple):
    """Saved requests of all pods, in millicores or bytes; negative if the workload requests more than before.

    Example: 4 pods of 1000m have become 5 of 600m. The size saves 5 * 400m = 2000m, the fifth pod costs 1000m. Together
    that is 4 * 1000m - 5 * 600m = 1000m.
    """

    size: int
    """The present replicas times the difference of a pod's request."""
    replicas: int
    """The difference of replicas times a pod's request before. It varies with the load."""


def saved(decision: Decision, workload: Workload | None) -> dict[Resource, Saved]:
    """Returns the saved requests after a decision about this workload; empty if HVPA has not changed it or can decide
    nothing now. Only container resources that HVPA has changed differ from the present size."""
    original, view, sizes = decision.status.original_size, decision.replicas, decision.containers
    if original is None or view is None or workload is None or not sizes:
        return {}
    spec = workload.spec.template.spec
    before = {
        name: ResourceRequirements(_before(size.requests, original.requests.get(name, {})), size.limits)
        for name, size in sizes.items()
    }
    replicas = view.target if original.replicas is None else original.replicas
    saved_requests = {}
    for resource in RESOURCES:
        now, then = pod_request(spec, resource, sizes), pod_request(spec, resource, before)
        saved_requests[resource] = Saved(view.target * (then - now), (replicas - view.target) * then)
    return saved_requests


def _before(requests: Mapping[Resource, int], original: Mapping[str, str]) -> dict[Resource, int]:
    known = {resource: amount(original, resource) for resource in RESOURCES}
    return {**requests, **{resource: size for resource, size in known.items() if size is not None}}


def original_size(observation: ScalableState, clock: Clock, axes: AxesResult) -> OriginalSize | None:
    """Returns the size before HVPA's first change, with the replicas or the requests that this decision is the first to
    change. Containers that no longer exist are dropped at a step."""
    known, changed = observation.status.original_size, {axis for axis, _ in axes.applied}
    if not changed:
        return known
    original = known or OriginalSize(since=clock.stamp().replace(microsecond=0))
    replicas, requests = original.replicas, original.requests
    if replicas is None and "horizontal" in changed:
        replicas = observation.workload.spec.replicas
    if "vertical" in changed:
        requests = {
            name: {**_changed(observation, axes, name), **requests.get(name, {})} for name in axes.containers
        }
        requests = {name: sizes for name, sizes in requests.items() if sizes}
    return _unless_empty(original, {"replicas": replicas, "requests": requests}, known)


def _changed(observation: ScalableState, axes: AxesResult, name: str) -> dict[str, str]:
    """Returns the present requests that a decision changes. A missing request is the limit, else that of the pods (for
    example of a LimitRange), else 0."""
    present = present_resources(observation.workload.spec.template.spec.containers)[name]
    changed = {}
    for resource, size in axes.containers[name].requests.items():
        of_pods = observation.pods.sizes.get(ResourceKey(name, resource), 0)
        before = present.requests.get(resource, present.limits.get(resource, of_pods))
        if before != size:
            changed[resource] = before
    return wire(changed)


def without_axes(before: HvpaStatus, decided: HvpaStatus, axes: Collection[Axis]) -> OriginalSize | None:
    """Returns the original size if the step was not carried out on these axes."""
    known, original = before.original_size, decided.original_size
    if original is None:
        return None
    fields: dict[str, object] = {}
    if "horizontal" in axes:
        fields["replicas"] = None if known is None else known.replicas
    if "vertical" in axes:
        fields["requests"] = {} if known is None else known.requests
    return _unless_empty(original, fields, known)


def _unless_empty(
    original: OriginalSize, fields: Mapping[str, object], known: OriginalSize | None
) -> OriginalSize | None:
    """Returns the record with these fields; the known record if nothing has changed yet (a step of limits alone)."""
    changed = original.model_copy(update=fields)
    return known if changed.replicas is None and not changed.requests else changed
