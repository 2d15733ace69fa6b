"""`observe`: from the objects of the cluster to one frozen Observation. It resolves which objects belong together, for
the operator, `explain -f` and the simulator alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, RolloutRecord
from hvpa.api.objects.kinds import KINDS, api_version_of, has_replicas, in_words, is_custom
from hvpa.api.objects.read_models import (
    ContainerRecommendation,
    Hpa,
    Meta,
    Recommendation,
    ResourceList,
    Vpa,
    VpaStatusRead,
    Workload,
    condition,
    policies_by_name,
)
from hvpa.api.values.quantity import RESOURCES, format_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.actuation.desired import as_desired
from hvpa.core.actuation.startup import BoostInputs, boosts_of, unboosted
from hvpa.core.gates.verdict import with_values
from hvpa.core.model import (
    LAST_APPLIED,
    MOST_RIVALS,
    BoundRatio,
    Finding,
    Objects,
    Observation,
    ObservedState,
    OtherHvpa,
    PodsSeen,
    Recommender,
    ScalableObservation,
    ScalableState,
    Settings,
    UnscalableObservation,
    UnscalableState,
)
from hvpa.core.recommenders.history import history_ratios
from hvpa.core.recommenders.ownership import O, OwnerRules, resolve, returns
from hvpa.core.recommenders.stale import recommender_of, silent_since
from hvpa.core.spec.check import spec_problems
from hvpa.core.state import recorded_axes
from hvpa.core.values.arithmetic import two_digits
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import Basis, Memo, remembered, remembered_while
from hvpa.core.values.tuning import RESIZES_AGAIN
from hvpa.core.workload.containers import amount, amounts, recommendations
from hvpa.core.workload.own_rollout import NEVER_REPLACING, own_rollout
from hvpa.core.workload.pod_level import pooled, shared_history, shared_in_pods, shared_in_template
from hvpa.core.workload.pod_owner import PodsByOwner, by_owner
from hvpa.core.workload.rollout import see_pods
from hvpa.core.workload.runtimes import full_heap_exits
from hvpa.core.workload.selector import MOST_TERMS, has_too_many_terms, selector_text
from hvpa.core.workload.starving import raised_at, with_full_heaps

_replacing_pods: Final = remembered(HvpaSpec.replacing_pods)
MOST_CONTAINERS = 100
"""Maximum number of containers in a scaled pod, so that the report of each container fits into a status and an
annotation."""
MOST_PROBLEMS = 20
"""Maximum number of errors of a spec in one report."""
MOST_SELECTOR = 32_768
"""Maximum length of a workload's selector in characters; the status repeats it for the HPA."""
SilentRecommenders = tuple[tuple[str, dt.datetime], ...]
"""Names of VPAs whose recommender is silent, and when it last wrote them."""
Histories = tuple[tuple[str, tuple[BoundRatio, ...]], ...]
"""Names of VPAs, and the ratios of their upper bounds."""
_NO_HPA: Recommender[Hpa] = Recommender(False)
_VPA_NOT_SERVED = Finding(
    "VpaNotServed", "the cluster does not serve VerticalPodAutoscaler (autoscaling.k8s.io/v1)"
)


def observe(objects: Objects, now: dt.datetime, settings: Settings, memo: Memo | None = None) -> Observation:
    """Resolve `objects` as seen at `now` (timezone-aware) into the inputs of a decision. `memo` has earlier results
    about the same Hvpa."""
    now = now.astimezone(dt.UTC)
    clock = Clock(now, memo=memo)
    spec, period, mute = objects.hvpa.spec, settings.vpa_period, objects.silent_recommenders
    written = [(vpa.metadata.name, silent_since(vpa, clock, period, mute)) for vpa in objects.vpas]
    silent = tuple([(name, since) for name, since in written if since is not None])
    histories = tuple([(vpa.metadata.name, history_ratios(vpa, objects.checkpoints)) for vpa in objects.vpas])
    state = _state(clock, objects, tuple([_counted(vpa, spec) for vpa in objects.vpas]), silent, histories)
    parts = {**structs.asdict(state), "now": now, "changes_at": clock.changes_at, "settings": settings}
    if isinstance(state, UnscalableState):
        # An Hvpa that can't scale must keep neither what a former one adopted, nor what acted on another workload.
        hpa = structs.replace(_NO_HPA, changes=returns(state.metadata, spec, objects.hpas))
        vpa = structs.replace(state.vpa, changes=returns(state.metadata, spec, objects.vpas))
        return UnscalableObservation(**parts | {"hpa": hpa, "vpa": vpa})
    hpa, spec, kind = _NO_HPA, state.spec, state.workload.kind
    if has_replicas(kind):
        hpa = _hpa(clock, state.metadata, spec, objects.hpas, objects.others)
    else:
        if spec.hpa.deploy or spec.hpa.name:
            why = f"a {kind} has no replica count, so only its requests are scaled"
            hpa = Recommender(True, Finding("NoReplicaCount", why))
        hpa = structs.replace(hpa, changes=returns(state.metadata, spec, objects.hpas))
    return ScalableObservation(**parts | {"hpa": hpa})


def _hpa(
    clock: Clock, hvpa: Meta, spec: HvpaSpec, hpas: tuple[Hpa, ...], others: tuple[OtherHvpa, ...]
) -> Recommender[Hpa]:
    """Return the HPA to read, in its present state. The choice does not depend on any HPA's status, so it is cached: a
    reconcile without changes takes a quarter of the time (`python -m benchmarks decision`: 0.9 instead of 4.0
    yardsticks)."""
    return _as_now(_found_hpa(clock, hvpa, spec, hpas, others), hpas)


def _as_now(recommender: Recommender[O], candidates: tuple[O, ...]) -> Recommender[O]:
    """Return the cached recommender with the present version of its object. An object with other metadata would not
    have been cached (`_owner_basis`)."""
    meta = None if recommender.object is None else recommender.object.metadata
    now = next((candidate for candidate in candidates if candidate.metadata is meta), None)
    return structs.replace(recommender, object=now)


def _owner_basis(
    hvpa: Meta, spec: HvpaSpec, candidates: tuple[Any, ...], others: tuple[OtherHvpa, ...]
) -> Basis:
    """All inputs of `resolve`, without the Hvpa's resource version: each write of its status changes that."""
    parts = [part for candidate in candidates for part in (candidate.metadata, candidate.raw_spec)]
    identity = (hvpa.namespace, hvpa.name, hvpa.uid, hvpa.creation_timestamp)
    return Basis((spec, *parts), (others, *identity))


@remembered_while(_owner_basis)
def _found_hpa(
    clock: Clock, hvpa: Meta, spec: HvpaSpec, candidates: tuple[Hpa, ...], others: tuple[OtherHvpa, ...]
) -> Recommender[Hpa]:
    return resolve(OwnerRules("HorizontalPodAutoscaler", hvpa, spec, candidates, others))


@remembered_while(_owner_basis)
def _found_vpa(
    clock: Clock, hvpa: Meta, spec: HvpaSpec, candidates: tuple[Vpa, ...], others: tuple[OtherHvpa, ...]
) -> Recommender[Vpa]:
    return resolve(OwnerRules("VerticalPodAutoscaler", hvpa, spec, candidates, others))


@remembered
def _counted(vpa: Vpa, spec: HvpaSpec | None) -> Vpa:
    """Return the VPA without bounds, which a decision does not use and which change all the time."""
    recommendation = vpa.status.recommendation
    if recommendation is None or recommendation.container_recommendations is None:
        return vpa
    targets = [
        (container, _target(container, spec)) for container in recommendation.container_recommendations
    ]
    unbounded = [
        ContainerRecommendation(container.container_name, target, {}, {}, _beyond(container, target))
        for container, target in targets
    ]
    return structs.replace(vpa, status=VpaStatusRead(Recommendation(unbounded), vpa.status.conditions))


def _target(container: ContainerRecommendation, spec: HvpaSpec | None) -> ResourceList:
    """Return the target that a decision uses.

    A joint decision follows the pods' usage (DESIGN 5.4). It uses the uncapped target if `minAllowed` raised the
    target, or if the Hvpa's own `maxAllowed` cut it: that bounds the size, and replicas cover the rest. A cut by the
    recommender's flags, or by the policy of a VPA that the Hvpa names, stays.

    Example: `--container-recommendation-max-allowed-memory` cut a target from 40Gi to 8Gi; HVPA uses 8Gi.
    """
    if spec is None or not spec.joint or not container.uncapped_target:
        return container.target
    template = spec.vpa.template.spec if spec.vpa.deploy else None
    policy = None if template is None else template.resource_policy
    own_policy = policies_by_name(policy.container_policies if policy is not None else ())(
        container.container_name
    )
    target_in_use = dict(container.target)
    for resource in RESOURCES:
        target, uncapped = amount(container.target, resource), amount(container.uncapped_target, resource)
        if target is None or uncapped is None:
            continue
        most = amount(own_policy.max_allowed, resource)
        if uncapped < target or (most is not None and target >= most):
            target_in_use[resource] = container.uncapped_target[resource]
    return target_in_use


def _beyond(container: ContainerRecommendation, target: ResourceList) -> ResourceList:
    """Return the recommendation without any cap if it exceeds the target in use. It is rounded up to two digits, so
    that small movements do not change it."""
    known = amounts(target)
    higher = {
        name: value
        for name, value in amounts(container.uncapped_target).items()
        if value > known.get(name, value)
    }
    return {name: format_resource(name, two_digits(value)) for name, value in higher.items()}


def _basis(
    objects: Objects, vpas: tuple[Vpa, ...], silent: SilentRecommenders, histories: Histories
) -> Basis:
    """All inputs except the HPAs. Each decision creates new lists, but their members stay the same objects."""
    hvpa, others = objects.hvpa, (objects.others, objects.hvpa.problems, objects.postponed)
    of_pods = (objects.pods, objects.refused_resizes, objects.creation_sizes, objects.memory_use)
    of_kubelets_and_adapters = (objects.usage, objects.canary_values)
    return Basis(
        (hvpa.metadata, hvpa.spec, hvpa.status, objects.workload, objects.lately, *of_kubelets_and_adapters),
        (vpas, silent, histories, objects.vpa_served, objects.largest_node, *others, *of_pods),
    )


@remembered_while(_basis)
def _state(
    clock: Clock, objects: Objects, vpas: tuple[Vpa, ...], silent: SilentRecommenders, histories: Histories
) -> ObservedState:
    """Return the observed state without the HPA."""
    hvpa, spec = objects.hvpa, _acting(clock, objects.hvpa.spec, objects.hvpa.status)
    problem = _problem(objects)
    target = _existing(objects.workload)
    target = None if target is None else shared_in_template(target)
    workload = target if problem is None else None
    rollout = own_rollout(target)
    status = _with_rolled_back(hvpa.status, rollout)
    in_place = spec is not None and spec.strategy.in_place
    tries = spec is not None and spec.strategy.canary is not None
    has_boosts = bool(status.boosts) or (spec is not None and bool(spec.startup_boost))
    if workload is not None and in_place:
        workload = as_desired(workload, status.desired)
    annotation = None if workload is None else workload.metadata.annotations.get(LAST_APPLIED)
    horizontal, vertical = recorded_axes(status, annotation, clock)
    is_legacy = annotation is None and status.axes is None
    vpa: Recommender[Vpa] = Recommender(False)
    pods, owned = PodsSeen(), PodsByOwner()
    if spec is not None and workload is not None:
        vpa = _as_now(_found_vpa(clock, hvpa.metadata, spec, vpas, objects.others), vpas)
        vpa = structs.replace(vpa, problem=_vpa_problem(vpa, objects, dict(silent)))
        if vpa.configured and not objects.vpa_served:
            vpa = Recommender(True, _VPA_NOT_SERVED)
        if vpa.object is not None:
            vpa = structs.replace(vpa, object=pooled(vpa.object, spec, workload.spec.template.spec))
        owned = by_owner(objects.pods, workload)
        exits = full_heap_exits(spec.runtimes, workload.spec.template.spec.containers)
        owned = owned._replace(own=shared_in_pods(with_full_heaps(owned.own, exits), workload))
        since = raised_at(clock, vertical, workload.spec.template.spec.containers, in_place=in_place)
        node = objects.largest_node
        sized = spec.joint or node is not None or _lacks_requests(workload)
        boosts = boosts_of(BoostInputs(spec, workload, vpa.object, status.boosts, owned.own, node), {})
        counted = unboosted(clock, owned.own, boosts)
        pods = see_pods(clock, owned._replace(own=counted.pods), workload, since, sized)
        if counted.boosted:
            pods = structs.replace(pods, boosted=(counted.of_all, counted.of_ready))
    kind: Any = ScalableState if problem is None else UnscalableState
    state: ObservedState = kind(
        metadata=hvpa.metadata,
        spec=spec,
        status=status,
        problem=problem,
        workload=workload,
        target=target if target is None or _too_large(target) is None else None,
        horizontal=horizontal,
        vertical=vertical,
        legacy_override=is_legacy and bool(status.override_scale_up_stabilization),
        hpa=_NO_HPA,
        vpa=vpa,
        pods=pods,
        history=()
        if vpa.object is None or workload is None
        else shared_history(dict(histories).get(vpa.object.metadata.name, ()), workload.spec.template.spec),
        rollout=rollout,
        resizable=owned.own if in_place or tries or pods.stuck or has_boosts else (),
        others=owned.others if in_place or tries else (),
        has_rival=any(other.applies for other in objects.others),
        refused_resizes=objects.refused_resizes,
        creation_sizes=objects.creation_sizes,
        memory_use=objects.memory_use,
        postponed=objects.postponed,
        lately=objects.lately if in_place else None,
        usage=objects.usage if in_place else None,
        canary_metrics=()
        if spec is None
        else with_values(spec, status.canary_metrics, objects.canary_values),
        canary_is_read=objects.canary_values is not None,
        largest_node=objects.largest_node,
    )
    return state


def _acting(clock: Clock, spec: HvpaSpec | None, status: HvpaStatus) -> HvpaSpec | None:
    """Return the spec to act by. If pods could not be resized, they are replaced for a day and decisions are those for
    replaced pods: otherwise each new size would cost another rollout."""
    if spec is None or spec.strategy.type != "InPlaceOrRollout" or status.replacing is None:
        return spec
    if clock.held_until(status.replacing.since, RESIZES_AGAIN) is None:
        return spec
    return _replacing_pods(spec)


def _with_rolled_back(status: HvpaStatus, rollout: RolloutRecord | None) -> HvpaStatus:
    """Return the status with the sizes that a rollout rolls back; they are written to the workload first."""
    written, known = None if rollout is None else rollout.rolled_back, status.rolled_back
    if written is None or (known is not None and known.time >= written.time):
        return status
    return status.model_copy(update={"rolled_back": written})


def _problem(objects: Objects) -> Finding | None:
    """Return why nothing can be scaled."""
    spec, problems = objects.hvpa.spec, objects.hvpa.problems[:MOST_PROBLEMS]
    if spec is None or problems:
        return Finding("InvalidSpec", "; ".join(map(str, problems)) or "the spec can't be read")
    if errors := spec_problems(spec):
        return Finding("InvalidSpec", "; ".join(map(str, errors)))
    if why := _unsupported(spec):
        return Finding("UnsupportedTarget", why)
    name = f"{spec.target_ref.kind} {spec.target_ref.name}"
    if objects.unlisted:
        return Finding("TargetUnreadable", f"{name} can't be read: {objects.unlisted}")
    rivals = [other.name for other in objects.others if other.applies] if spec.applies else []
    if rivals:
        # A message about many Hvpas has no names and no number: otherwise each further Hvpa would change all of them.
        many = len(rivals) > MOST_RIVALS
        who = f"more than {MOST_RIVALS} other Hvpas" if many else f"Hvpa {', '.join(sorted(rivals))}"
        what = f"{name} is also the target of {who} in mode Apply"
        until = "until the others are deleted, or their spec.mode is Recommend"
        return Finding("TargetShared", f"{what}; none of them scales it {until}")
    workload = _existing(objects.workload)
    return Finding("TargetNotFound", f"{name} does not exist") if workload is None else _too_large(workload)


def _unsupported(spec: HvpaSpec) -> str:
    """Return why this kind of target can't be scaled in this way; empty if it can."""
    target, strategy = spec.target_ref, spec.strategy
    version = target.api_version or api_version_of(target.kind)
    if is_custom(version, target.kind):
        if strategy.type != "InPlace":
            why = f"the pod template of a {target.kind} can't be changed"
            return f"spec.targetRef: {why}; set spec.updateStrategy.type to InPlace"
    elif target.kind not in KINDS or version != KINDS[target.kind].api_version:
        return f"spec.targetRef: {version} {target.kind} is not supported, only {in_words()}"
    if strategy.canary is not None and not strategy.in_place and target.kind in NEVER_REPLACING:
        why = f"a {target.kind} never replaces pods, so HVPA can't try a size on some of them first"
        return f"spec.updateStrategy.canary: {why}; use type InPlace"
    if spec.joint and not has_replicas(target.kind):
        why = f"decides replicas, and a {target.kind} has no replica count"
        return f"spec.blend: Trajectory {why}; use Additive"
    return ""


def _existing(workload: Workload | None) -> Workload | None:
    """Return the workload, unless it is being deleted."""
    return None if workload is None or workload.metadata.deletion_timestamp is not None else workload


def _too_large(workload: Workload) -> Finding | None:
    """Return why the workload does not fit into a status."""
    name, why = f"{workload.kind} {workload.metadata.name}", ""
    if len(workload.spec.template.spec.containers) > MOST_CONTAINERS:
        why = f"{name} has more than {MOST_CONTAINERS} containers in its pod template"
    elif has_too_many_terms(workload.spec.selector):
        why = f"{name}: its selector has more than {MOST_TERMS} labels, conditions and values"
    elif len(selector_text(workload.spec.selector)) > MOST_SELECTOR:
        why = f"{name}: its selector has more than {MOST_SELECTOR} characters"
    return Finding("UnsupportedTarget", why) if why else None


def _lacks_requests(workload: Workload) -> bool:
    """Return whether the template leaves a request out that the pods may still have."""
    return any(
        resource not in container.resources.requests and resource not in container.resources.limits
        for container in workload.spec.template.spec.containers
        for resource in RESOURCES
    )


def _vpa_problem(
    recommender: Recommender[Vpa], objects: Objects, silent: Mapping[str, dt.datetime]
) -> Finding | None:
    """Return why a VPA's recommendation does not count (yet)."""
    vpa = recommender.object
    if vpa is None or recommender.problem is not None:
        return recommender.problem
    name, conditions = f"VerticalPodAutoscaler {vpa.metadata.name}", vpa.status.conditions
    for kind in ("ConfigUnsupported", "ConfigDeprecated", "LowConfidence"):
        entry = condition(conditions, kind)
        if entry is not None and entry.status == "True":
            return Finding(kind, entry.message or entry.reason)
    provided = condition(conditions, "RecommendationProvided")
    if provided is None or provided.status != "True" or not recommendations(vpa):
        message = "" if provided is None else provided.message
        return Finding("NoRecommendation", message or f"{name} has no recommendation yet")
    since = silent.get(vpa.metadata.name)
    if since is None or objects.workload is None or objects.workload.spec.replicas == 0:
        return None
    why = f"the status of {name} was last updated at {readable_timestamp(since)}"
    if objects.silent_recommenders.get(recommender_of(vpa)) == since:
        why = f"the VPA's recommender has written no checkpoints or recommendations since {readable_timestamp(since)}"
    return Finding("RecommendationStale", why)
