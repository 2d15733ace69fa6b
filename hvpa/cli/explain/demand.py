"""Sections of `hvpa explain` about the input of a decision: the workload, the recommendations of HPA and VPA, and
pods that ran out of memory.

With `blend: Trajectory`, also the position on the path, its bounds, and the interim size while changes are held back.
Only words belong here; all shown values are decided in `hvpa.core`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hvpa.api.objects.read_models import Hpa, MetricSource, MetricValue, ResourceList, Vpa, condition
from hvpa.api.values.quantity import RESOURCES, QuantityError, parse_quantity, readable_resource
from hvpa.api.values.text import counted
from hvpa.cli.explain.words import at, held, pods, readable
from hvpa.core.model import Decision, JointResource, JointView, Observation, Recommender, ScalableObservation
from hvpa.core.path.curve import NONE
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.bounds import saturation
from hvpa.core.values.weight import percent

_OVERRIDDEN = "ran out of memory"
"""Words of a step that does not concern the path."""


def demand(observation: Observation, decision: Decision) -> Iterable[str]:
    """The lines of the section Demand."""
    if observation.metadata.deletion_timestamp is not None:
        yield "the Hvpa is being deleted; the workload is not changed"
        return
    if not isinstance(observation, ScalableObservation):
        yield observation.problem.message
        return
    workload = observation.workload
    yield f"{workload.kind} {workload.metadata.name}: {counted(workload.spec.replicas)}"
    for container in workload.spec.template.spec.containers:
        resources = container.resources
        yield (
            f"container {container.name}: requests {_amounts(resources.requests)}; "
            f"limits {_amounts(resources.limits)}"
        )
    yield from _hpa(observation, decision)
    yield from _vpa(observation.vpa)
    for name, instant in sorted(observation.pods.starving.items()):
        yield f"container {name} ran out of memory{at(instant, ' at ')}: HVPA scales up without delay"
    if observation.legacy_override:
        yield "status.overrideScaleUpStabilization is set: HVPA scales up without delay"


def _hpa(observation: ScalableObservation, decision: Decision) -> Iterable[str]:
    if not observation.hpa.configured:
        yield "HPA: not configured"
        return
    active = next(
        (
            status_condition
            for status_condition in decision.status.conditions
            if status_condition.type == "HpaActive"
        ),
        None,
    )
    unused = active is not None and active.status != "True"
    if active is not None and unused:
        yield f"HPA: not used, {active.reason}: {active.message}"
    hpa = observation.hpa.object
    if hpa is None or not hpa.status.desired_replicas:
        return
    desired = counted(hpa.status.desired_replicas)
    yield f"HPA {hpa.metadata.name}: {f'last desired {desired}, not used' if unused else f'{desired} desired'}"
    yield from _metrics(hpa)
    if decision.estimate is not None:
        measured = f"these metrics require {decision.estimate}"
    elif decision.unknown is not None:
        measured = f"{decision.unknown.why}{at(decision.unknown.until, ', until ')}"
    else:
        measured = "no metric has a value"
    used = decision.replicas.hpa if decision.replicas is not None else None
    yield f"  {measured}; {'not used' if used is None else f'using {used}'}"


def _metrics(hpa: Hpa) -> Iterable[str]:
    spec_sources = [
        spec_source for spec_metric in reversed(hpa.spec.metrics) if (spec_source := spec_metric.source())
    ]
    targets = {_source_key(metric_source): metric_source.target for metric_source in spec_sources}
    for metric in hpa.status.current_metrics or ():
        source = metric.source()
        if source is None:
            continue
        wanted = targets.get(_source_key(source))
        name = source.name or source.metric.name or metric.type
        container = f" of container {source.container}" if source.container else ""
        target = f", target {_value(source.name, wanted)}" if wanted is not None else ""
        yield f"  {metric.type} {name}{container}: {_value(source.name, source.current)}{target}"


def _source_key(source: MetricSource) -> tuple[str, str, str]:
    return source.name, source.container, source.metric.name


def _value(resource: str, value: MetricValue) -> str:
    """A metric's target or current value; `resource` is the measured resource ("": not a resource of pods)."""
    if value.average_utilization is not None:
        return f"{value.average_utilization} %"
    if value.average_value is not None:
        return f"{_quantity(resource, value.average_value)} per pod"
    return "no value" if value.value is None else _quantity(resource, value.value)


def _quantity(resource: str, text: str | int | float) -> str:
    """A quantity for people: CPU and memory in the form of requests, others as plain numbers."""
    try:
        value = parse_quantity(text)
    except QuantityError:
        return str(text)
    if resource == "memory" and value.denominator == 1 and value >= 0:
        return readable_resource("memory", int(value))
    return str(text) if resource else _number(value)


def _number(value: Fraction) -> str:
    """A number with four digits, without an exponent unless it is huge."""
    return f"{round(value):,}" if abs(value) >= 1000 else f"{float(value):.4g}"


def _vpa(vpa: Recommender[Vpa]) -> Iterable[str]:
    if not vpa.configured:
        yield "VPA: not configured"
        return
    if vpa.problem is not None:
        yield f"VPA: not used, {vpa.problem.reason}: {vpa.problem.message}"
    if vpa.object is None:
        return
    provided = condition(vpa.object.status.conditions, "RecommendationProvided")
    since = provided.last_transition_time if provided is not None and provided.status == "True" else None
    recommendation = vpa.object.status.recommendation
    containers = (recommendation.container_recommendations or ()) if recommendation is not None else ()
    if vpa.problem is None:
        yield f"VPA {vpa.object.metadata.name}: recommends{at(since, ' since ')}"
    elif containers:
        yield f"VPA {vpa.object.metadata.name}: last recommendation, not used:"
    for container in containers:
        yield f"  container {container.container_name}: {_amounts(container.target)}"


def _amounts(amounts: ResourceList) -> str:
    known = [f"{name} {readable(name, amounts[name])}" for name in RESOURCES if name in amounts]
    return ", ".join(known) or "none"


# --- blend: Trajectory ----------------------------------------------------------------------------------------------
def path_lines(observation: Observation, decision: Decision, view: JointView) -> Iterable[str]:
    """The lines of the section Path, for readers who know an HPA and a VPA."""
    reserved = any(curve.size_bounds.reserve != NONE for curve in view.path.curves.values())
    base = ", without the base usage of each pod" if reserved else ""
    yield "HVPA solves replicas and requests together: usual demand sets the requests, present demand"
    yield f"sets the replicas; demand is expressed as requests of all pods together{base}"
    yield _counts(view, decision)
    for item in view.items:
        yield from _item(item)
    if not view.items and (observation.vpa.problem is not None or not observation.vpa.in_charge):
        yield "requests are not scaled: there is no usable VPA recommendation"
    if view.usual is not None:
        yield f"usual demand is served by: {pods(view.usual.replicas, view.usual.sizes)}"
    yield f"wanted: {pods(view.wanted.replicas, view.wanted.sizes)}"
    yield f"because: {view.because}"
    yield from saturation(view)
    yield from _other_steps(view, decision)
    yield from _instead(observation, decision, view)


def _counts(view: JointView, decision: Decision) -> str:
    lower, upper = view.path.counts.lower, view.path.counts.upper
    text = f"replicas may be {lower}{' or more' if upper is None else f' to {upper}'}"
    if decision.weight_ppm is None or decision.replicas is None or lower == upper:
        return text
    shown, current = percent(decision.weight_ppm), counted(decision.replicas.current)
    return (
        f"{text}; at {current}, {shown} percent of an increase goes into larger pods, the rest into more pods"
    )


def _item(item: JointResource) -> Iterable[str]:
    """The lines of one container resource."""
    key = item.key
    current, wanted = _amount(key, item.current), _amount(key, item.size)
    request = f"{current}, unchanged" if item.size == item.current else f"{current} now, {wanted} wanted"
    yield f"{key.container} {key.resource}: request {request}{f' ({item.stays})' if item.stays else ''}"
    if item.usual is not None:
        fits = "" if item.usual_replicas is None else f": {counted(item.usual_replicas)} on the path"
        yield f"  usually {_amount(key, item.usual)} ({item.usual_from}){fits}"
    if item.present is None:
        yield "  now: no HPA metric measures it"
        return
    takes = "" if item.present_replicas is None else f": {counted(item.present_replicas)} of {wanted}"
    yield f"  now {_amount(key, item.present)} ({item.present_from}){takes}"


def _other_steps(view: JointView, decision: Decision) -> Iterable[str]:
    """Steps outside of the path: how the count is reached, and memory that ran out."""
    shown = tuple(f"{item.key.container} {item.key.resource}: " for item in view.items)
    for step in decision.steps:
        if not step.startswith(("weight: ", *shown)) or _OVERRIDDEN in step:
            yield step


def _instead(observation: Observation, decision: Decision, view: JointView) -> Iterable[str]:
    """The changes that are held back, and the interim size; nothing if all changes are made."""
    for entry in decision.blocked:
        yield f"held back: {held(entry, observation.now)}"
    if decision.replicas is None or (observation.spec is not None and not observation.spec.applies):
        return
    sizes = {
        item.key: decision.containers[item.key.container].requests.get(item.key.resource, item.current)
        for item in view.items
    }
    wanted = {item.key: item.size for item in view.items}
    if decision.replicas.target != view.wanted.replicas or sizes != wanted:
        yield f"for now: {pods(decision.replicas.target, sizes)}"


def _amount(key: ResourceKey, amount: int) -> str:
    return readable_resource(key.resource, amount)
