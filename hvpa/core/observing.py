"""`observe`: from the objects of the cluster to one frozen Observation. Who belongs to whom is decided here, for the
operator, `explain -f` and the simulator alike."""

from __future__ import annotations

import datetime as dt

from msgspec import structs

from hvpa.api.objects import WORKLOAD_API_VERSION, Hpa, Vpa, condition
from hvpa.core.model import LAST_APPLIED, Finding, Objects, Observation, PodsSeen, Recommender, Settings
from hvpa.core.ownership import resolve_hpa, resolve_vpa
from hvpa.core.rollout import see_pods
from hvpa.core.slots import recommendations
from hvpa.core.spec_check import spec_problems
from hvpa.core.state import recorded_axes

SUPPORTED_KINDS = ("Deployment", "StatefulSet")


def observe(objects: Objects, now: dt.datetime, settings: Settings) -> Observation:
    """Resolve `objects` as seen at `now` (timezone-aware) into what a decision depends on."""
    now = now.astimezone(dt.UTC)
    hvpa = objects.hvpa
    spec, status = hvpa.spec, hvpa.status
    problem = _problem(objects)
    workload = objects.workload if problem is None else None
    annotation = workload.metadata.annotations.get(LAST_APPLIED) if workload is not None else None
    horizontal, vertical = recorded_axes(status, annotation, now)
    legacy = annotation is None and status.axes is None and bool(status.override_scale_up_stabilization)
    hpa: Recommender[Hpa] = Recommender(False)
    vpa: Recommender[Vpa] = Recommender(False)
    pods = PodsSeen()
    if spec is not None and workload is not None:
        hpa = resolve_hpa(objects, spec)
        vpa = _usable_vpa(resolve_vpa(objects, spec), objects)
        pods = see_pods(objects.pods, workload, vertical.last_scale_time)
    return Observation(
        now=now,
        settings=settings,
        metadata=hvpa.metadata,
        spec=spec,
        status=status,
        problem=problem,
        workload=workload,
        horizontal=horizontal,
        vertical=vertical,
        legacy_override=legacy,
        hpa=hpa,
        vpa=vpa,
        pods=pods,
    )


def _problem(objects: Objects) -> Finding | None:
    """Why nothing can be scaled at all."""
    spec, problems = objects.hvpa.spec, objects.hvpa.problems
    if spec is None or problems:
        return Finding("InvalidSpec", "; ".join(str(one) for one in problems) or "the spec can't be read")
    found = spec_problems(spec)
    if found:
        return Finding("InvalidSpec", "; ".join(str(one) for one in found))
    target = spec.target_ref
    if (
        target.kind not in SUPPORTED_KINDS
        or (target.api_version or WORKLOAD_API_VERSION) != WORKLOAD_API_VERSION
    ):
        return Finding(
            "UnsupportedTarget",
            f"spec.targetRef: {target.api_version or WORKLOAD_API_VERSION} {target.kind} is not supported, only "
            f"{' and '.join(SUPPORTED_KINDS)} of {WORKLOAD_API_VERSION}",
        )
    if objects.rivals:
        return Finding(
            "TargetShared",
            f"{target.kind} {target.name} is also the target of Hvpa {', '.join(sorted(objects.rivals))}; "
            "it is scaled by none of them",
        )
    if objects.workload is None or objects.workload.metadata.deletion_timestamp is not None:
        return Finding("TargetNotFound", f"{target.kind} {target.name} does not exist")
    return None


def _usable_vpa(found: Recommender[Vpa], objects: Objects) -> Recommender[Vpa]:
    """Add why a VPA's recommendation does not count (yet)."""
    if not found.configured:
        return found
    if not objects.vpa_served:
        text = "the cluster does not serve VerticalPodAutoscaler (autoscaling.k8s.io/v1)"
        return Recommender(True, None, Finding("VpaNotServed", text))
    if found.object is None or found.problem is not None:
        return found
    conditions = found.object.status.conditions
    for kind in ("ConfigUnsupported", "ConfigDeprecated", "LowConfidence"):
        entry = condition(conditions, kind)
        if entry is not None and entry.status == "True":
            return structs.replace(found, problem=Finding(kind, entry.message or entry.reason))
    provided = condition(conditions, "RecommendationProvided")
    if provided is None or provided.status != "True" or not recommendations(found.object):
        message = provided.message if provided is not None else ""
        text = message or f"VerticalPodAutoscaler {found.object.metadata.name} has no recommendation yet"
        return structs.replace(found, problem=Finding("NoRecommendation", text))
    return found
