"""What a decision begins from, as text for people: the workload, what the HPA and the VPA recommend, which pods ran out
of memory.

What belongs here: the section "Demand" of `hvpa explain`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hvpa.api.objects.read_models import Hpa, MetricSource, MetricValue, ResourceList, Vpa, condition
from hvpa.api.values.quantity import QuantityError, Resource, parse_quantity, readable_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import Decision, Observation, Recommender
from hvpa.core.recommenders.estimate import estimate_replicas, measured_from
from hvpa.core.workload.containers import RESOURCES, amount


def demand(seen: Observation, decision: Decision) -> Iterable[str]:
    """The lines of the section."""
    if seen.metadata.deletion_timestamp is not None:
        yield "the Hvpa is being deleted: its workload is left as it is"
        return
    if seen.problem is not None or seen.workload is None:
        yield seen.problem.message if seen.problem is not None else "there is no workload"
        return
    yield f"{seen.workload.kind} {seen.workload.metadata.name}: {seen.workload.spec.replicas} replicas"
    for one in seen.workload.spec.template.spec.containers:
        resources = one.resources
        yield f"container {one.name}: requests {_amounts(resources.requests)}; limits {_amounts(resources.limits)}"
    yield from _hpa(seen, decision)
    yield from _vpa(seen.vpa)
    starving = seen.pods.starving
    for name in sorted(starving):
        at = readable_timestamp(starving[name])
        yield f"container {name} ran out of memory at {at}: scaling up does not wait"
    if seen.legacy_override:
        yield "status.overrideScaleUpStabilization is set: scaling up does not wait"


def _hpa(seen: Observation, decision: Decision) -> Iterable[str]:
    found = seen.hpa
    if not found.configured:
        yield "HPA: none is configured"
        return
    active = next((one for one in decision.status.conditions if one.type == "HpaActive"), None)
    unused = active is not None and active.status != "True"
    if active is not None and unused:
        yield f"HPA: not used, {active.reason}: {active.message}"
    if found.object is None or seen.workload is None or not found.object.status.desired_replicas:
        return
    hpa = found.object
    asked = f"{hpa.status.desired_replicas} replicas"
    yield f"HPA {hpa.metadata.name}: {f'asked last for {asked}, which is not used' if unused else f'asks for {asked}'}"
    for line in _metrics(hpa):
        yield f"  {line}"
    estimate = estimate_replicas(seen, hpa)
    used = decision.replicas.hpa if decision.replicas is not None else None
    measured = "no metric has a value" if estimate is None else f"these metrics call for {estimate}"
    if estimate is None and (at := measured_from(seen)) is not None:
        pods = len(seen.pods.ready_since)
        measured = (
            f"the {pods} ready pods are not measured yet, the first of them is at {readable_timestamp(at)}"
        )
    yield f"  {measured}; {'not used' if used is None else f'using {used}'}"


def _metrics(hpa: Hpa) -> Iterable[str]:
    asked = [other for one in reversed(hpa.spec.metrics) if (other := one.source())]
    targets = {_named(one): one.target for one in asked}
    for metric in hpa.status.current_metrics or ():
        source = metric.source()
        if source is None:
            continue
        wanted = targets.get(_named(source))
        name = source.name or source.metric.name or metric.type
        container = f" of container {source.container}" if source.container else ""
        target = f", target {_value(source.name, wanted)}" if wanted is not None else ""
        yield f"{metric.type} {name}{container}: {_value(source.name, source.current)}{target}"


def _named(one: MetricSource) -> tuple[str, str, str]:
    return one.name, one.container, one.metric.name


def _value(resource: str, value: MetricValue) -> str:
    """A metric's target or current value; `resource` is what it measures ("": nothing that pods request)."""
    if value.average_utilization is not None:
        return f"{value.average_utilization} %"
    if value.average_value is not None:
        return f"{_quantity(resource, value.average_value)} per pod"
    return "no value" if value.value is None else _quantity(resource, value.value)


def _quantity(resource: str, text: str | int | float) -> str:
    """A quantity for people: CPU and memory as requests are shown, others as plain numbers."""
    try:
        value = parse_quantity(text)
    except QuantityError:
        return str(text)
    if resource == "memory" and value.denominator == 1 and value >= 0:
        return readable_resource("memory", int(value))
    return str(text) if resource else _number(value)


def _number(value: Fraction) -> str:
    """A number with four digits, without an exponent where it is not huge."""
    if abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{float(value):.4g}"


def _vpa(found: Recommender[Vpa]) -> Iterable[str]:
    if not found.configured:
        yield "VPA: none is configured"
        return
    if found.problem is not None:
        yield f"VPA: not used, {found.problem.reason}: {found.problem.message}"
    if found.object is None:
        return
    provided = condition(found.object.status.conditions, "RecommendationProvided")
    since = provided.last_transition_time if provided is not None and provided.status == "True" else None
    begun = "" if since is None else f" since {readable_timestamp(since)}"
    recommendation = found.object.status.recommendation
    containers = (recommendation.container_recommendations or ()) if recommendation is not None else ()
    if found.problem is None:
        yield f"VPA {found.object.metadata.name}: recommends{begun}"
    elif containers:
        yield f"VPA {found.object.metadata.name}: recommended last, which is not used:"
    for one in containers:
        yield f"  container {one.container_name}: {_amounts(one.target)}"


def _amounts(amounts: ResourceList) -> str:
    return ", ".join(f"{name} {_amount(name, amounts)}" for name in RESOURCES if name in amounts) or "none"


def _amount(resource: Resource, amounts: ResourceList) -> str:
    value = amount(amounts, resource)
    return str(amounts[resource]) if value is None else readable_resource(resource, value)
