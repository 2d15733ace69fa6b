"""`observe`: from the objects of the cluster to one frozen Observation. Who belongs to whom is decided here, for the
operator, `explain -f` and the simulator alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from msgspec import structs

from hvpa.api.objects.read_models import (
    WORKLOAD_API_VERSION,
    ContainerRecommendation,
    Hpa,
    Recommendation,
    ResourceList,
    Vpa,
    VpaStatusRead,
    Workload,
    condition,
)
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import (
    LAST_APPLIED,
    MOST_RIVALS,
    Finding,
    Objects,
    Observation,
    ObservedState,
    PodsSeen,
    Recommender,
    Settings,
)
from hvpa.core.recommenders.ownership import HpaRules, O, OwnerRules, VpaRules
from hvpa.core.recommenders.ownership import resolve as resolve_owned
from hvpa.core.recommenders.read_only import read
from hvpa.core.recommenders.stale import silent_since
from hvpa.core.spec.check import SUPPORTED_KINDS, spec_problems
from hvpa.core.state import recorded_axes
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import Basis, remembered, remembered_while
from hvpa.core.workload.containers import RESOURCES, recommendations
from hvpa.core.workload.rollout import see_pods
from hvpa.core.workload.selector import selector_text

MOST_CONTAINERS = 100
"""Containers of a pod that is scaled. What is told and remembered of each has room in a status and an annotation."""
MOST_PROBLEMS = 20
"""Faults of a spec that are told at once."""
MOST_SELECTOR = 32_768
"""Characters of a workload's selector, which the status repeats for the HPA."""
Silent = tuple[tuple[str, dt.datetime | None], ...]
"""VPAs by name that their recommender has not written for too long, and when it last did."""
_NO_AMOUNTS: ResourceList = {}
_NO_HPA: Recommender[Hpa] = Recommender(False)


def observe(objects: Objects, now: dt.datetime, settings: Settings) -> Observation:
    """Resolve `objects` as seen at `now` (timezone-aware) into what a decision depends on."""
    now = now.astimezone(dt.UTC)
    clock = Clock(now)
    uncapped = objects.hvpa.spec is not None and objects.hvpa.spec.joint
    silent = [(one.metadata.name, silent_since(one, clock, settings.vpa_period)) for one in objects.vpas]
    vpas = tuple([_said(one, uncapped) for one in objects.vpas])
    state = _state(clock, objects, vpas, tuple([one for one in silent if one[1] is not None]))
    hpa = _NO_HPA
    if state.spec is not None and state.workload is not None:
        hpa = _resolved(HpaRules(state.metadata, state.spec, objects.hpas, objects.others))
    parts = structs.asdict(structs.replace(state, hpa=hpa))
    return Observation(now=now, changes_at=clock.changes_at, settings=settings, **parts)


def _resolved(rules: OwnerRules[O]) -> Recommender[O]:
    return resolve_owned(rules) if rules.spec.mode == "Apply" else read(rules)


@remembered
def _said(vpa: Vpa, uncapped: bool) -> Vpa:
    """The VPA as far as a decision looks at it: the bounds, which move all the time, have no say. A joint decision goes
    by what the pods use (`uncapped`): a capped target would hold demand up at minAllowed (DESIGN 5.4)."""
    said = vpa.status.recommendation
    if said is None or said.container_recommendations is None:
        return vpa
    targets = [
        ContainerRecommendation(
            one.container_name,
            (uncapped and one.uncapped_target) or one.target,
            _NO_AMOUNTS,
            _NO_AMOUNTS,
            _NO_AMOUNTS,
        )
        for one in said.container_recommendations
    ]
    status = VpaStatusRead(Recommendation(targets), vpa.status.conditions)
    return structs.replace(vpa, status=status)


def _basis(objects: Objects, vpas: tuple[Vpa, ...], silent: Silent) -> Basis:
    """All of them but the HPAs. Lists are made anew for each decision, their members are not."""
    hvpa = objects.hvpa
    return Basis(
        (hvpa.metadata.namespace, hvpa.metadata.name),
        (hvpa.metadata, hvpa.spec, hvpa.status, objects.workload),
        (objects.pods, vpas, silent, objects.vpa_served, objects.others, hvpa.problems),
    )


@remembered_while(_basis, of_status=True)
def _state(clock: Clock, objects: Objects, vpas: tuple[Vpa, ...], silent: Silent) -> ObservedState:
    """The scene without its HPA."""
    hvpa = objects.hvpa
    spec, status = hvpa.spec, hvpa.status
    problem = _problem(objects)
    workload = objects.workload if problem is None else None
    annotation = workload.metadata.annotations.get(LAST_APPLIED) if workload is not None else None
    horizontal, vertical = recorded_axes(status, annotation, clock)
    legacy = annotation is None and status.axes is None and bool(status.override_scale_up_stabilization)
    vpa: Recommender[Vpa] = Recommender(False)
    pods = PodsSeen()
    if spec is not None and workload is not None:
        vpa = _usable_vpa(
            _resolved(VpaRules(hvpa.metadata, spec, vpas, objects.others)), objects, dict(silent)
        )
        since = vertical.last_scale_up_time
        if since is not None and clock.is_ahead(since):
            since = None  # by a clock that was wrong: no container is to starve until then
        pods = see_pods(hvpa.metadata, objects.pods, workload, since, spec.joint or _lacks_requests(workload))
    return ObservedState(
        metadata=hvpa.metadata,
        spec=spec,
        status=status,
        problem=problem,
        workload=workload,
        target=workload or _standing(objects.workload),
        horizontal=horizontal,
        vertical=vertical,
        legacy_override=legacy,
        hpa=_NO_HPA,
        vpa=vpa,
        pods=pods,
    )


def _problem(objects: Objects) -> Finding | None:
    """Why nothing can be scaled at all."""
    spec, problems = objects.hvpa.spec, objects.hvpa.problems
    if spec is None or problems:
        told = "; ".join(str(one) for one in problems[:MOST_PROBLEMS])
        return Finding("InvalidSpec", told or "the spec can't be read")
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
    rivals = [one.name for one in objects.others if one.applies] if spec.mode == "Apply" else []
    if rivals:
        return Finding(
            "TargetShared",
            f"{target.kind} {target.name} is also the target of {_rivals_named(rivals)} in mode Apply; none of them "
            "scales it until the others are deleted, or their spec.mode is Recommend",
        )
    if objects.workload is None or objects.workload.metadata.deletion_timestamp is not None:
        return Finding("TargetNotFound", f"{target.kind} {target.name} does not exist")
    return _too_large(objects.workload)


def _standing(workload: Workload | None) -> Workload | None:
    """The target where it is not scaled, so far as it can be reported."""
    is_there = workload is not None and workload.metadata.deletion_timestamp is None
    return workload if workload is not None and is_there and _too_large(workload) is None else None


def _rivals_named(rivals: Sequence[str]) -> str:
    """Who they are. Of many no name is told, nor how many they are: else each one more would be news to all others."""
    if len(rivals) > MOST_RIVALS:
        return f"more than {MOST_RIVALS} other Hvpas"
    return f"Hvpa {', '.join(sorted(rivals))}"


def _too_large(workload: Workload) -> Finding | None:
    """Why there is too much of a workload to be told in a status."""
    name = f"{workload.kind} {workload.metadata.name}"
    if len(workload.spec.template.spec.containers) > MOST_CONTAINERS:
        why = f"{name} has more than {MOST_CONTAINERS} containers in its pod template"
        return Finding("UnsupportedTarget", why)
    if len(selector_text(workload.spec.selector)) > MOST_SELECTOR:
        return Finding("UnsupportedTarget", f"{name}: its selector has more than {MOST_SELECTOR} characters")
    return None


def _lacks_requests(workload: Workload) -> bool:
    """Whether the template leaves a request open, which pods may have been given all the same."""
    return any(
        resource not in one.resources.requests and resource not in one.resources.limits
        for one in workload.spec.template.spec.containers
        for resource in RESOURCES
    )


def _usable_vpa(
    found: Recommender[Vpa], objects: Objects, silent: Mapping[str, dt.datetime | None]
) -> Recommender[Vpa]:
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
    since = silent.get(found.object.metadata.name)
    if since is not None and objects.workload is not None and objects.workload.spec.replicas > 0:
        name, when = found.object.metadata.name, readable_timestamp(since)
        why = f"the status of VerticalPodAutoscaler {name} was last updated at {when}"
        return structs.replace(found, problem=Finding("RecommendationStale", why))
    return found
