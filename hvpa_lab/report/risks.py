"""The risks of a workload as it is scaled now, with remedies: an ordered list of small checks.

Only checks of the objects themselves belong here. `hvpa.core` decides whether a recommender is used, and its findings
are passed on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Hpa, Metric, MetricSource, Vpa, condition, policies_by_name
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.api.values.text import names
from hvpa.api.values.timestamp import format_timestamp
from hvpa.core.model import Decision, Observation
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.desired_replicas import TOO_MANY_REPLICAS, is_of_keda
from hvpa.core.report.bounds import saturation
from hvpa.core.report.problems import NO_FAULT
from hvpa.core.workload.containers import amount, present_resources, recommendations, request_now
from hvpa.core.workload.rollout import PROGRESSING, rollout_gaps
from hvpa.core.workload.runtimes import shown_by
from hvpa_lab.report.inventory import Subject

_PERCENT: Final = 100
DAY: Final = dt.timedelta(days=1)
"""Most load has a daily pattern."""
_KEDA: Final = ("app.kubernetes.io/managed-by", "keda-operator")
"""The label of the HPAs that KEDA creates."""


class Risk(NamedTuple):
    """A risk: a reason in one word, and a sentence with the remedy."""

    reason: str
    message: str


class Facts(NamedTuple):
    """The input of the checks: the workload, the first blend's observation, and each blend's decision."""

    subject: Subject
    observation: Observation
    decisions: Sequence[Decision]

    @property
    def hpa(self) -> Hpa | None:
        """The HPA that is read, or the first HPA that targets the workload."""
        return self.observation.hpa.object or next(iter(self.subject.hpas), None)

    @property
    def vpa(self) -> Vpa | None:
        """The VPA that is read, with its bounds, or the first VPA that targets the workload. An estimate is none."""
        if self.subject.is_estimated:
            return None
        read = self.observation.vpa.object
        known = (*self.subject.candidates[0].objects.vpas, *self.subject.vpas)
        vpas = (vpa for vpa in known if read is None or vpa.metadata.name == read.metadata.name)
        return next(vpas, None)


def risks(facts: Facts) -> Iterator[Risk]:
    """All risks of a workload, the most pressing kind first."""
    for check in CHECKS:
        yield from check(facts)


def _starving(facts: Facts) -> Iterator[Risk]:
    for name, when in sorted(facts.observation.pods.starving.items()):
        yield Risk(
            "OutOfMemory",
            f"container {name} ran out of memory at {format_timestamp(when)} with the request and limit that it has "
            "now; raise both",
        )


def _memory_limits(facts: Facts) -> Iterator[Risk]:
    targets = recommendations(facts.vpa) if facts.vpa is not None else {}
    for container in facts.subject.workload.spec.template.spec.containers:
        limit = amount(container.resources.limits, "memory")
        recommended = targets.get(container.name)
        wanted = (
            None
            if recommended is None
            else amount(recommended.uncapped_target or recommended.target, "memory")
        )
        if limit is not None and wanted is not None and limit < wanted:
            yield Risk(
                "LimitTooSmall",
                f"the memory limit of container {container.name} is {human('memory', limit)}, and its VPA recommends "
                f"{human('memory', wanted)}: it is likely to be killed; raise the limit",
            )


def _requests_exceeded(facts: Facts) -> Iterator[Risk]:
    """Requests below the VPA's lower bound, or below the usage that the HPA measures."""
    resources = present_resources(facts.subject.workload.spec.template.spec.containers)
    targets = recommendations(facts.vpa) if facts.vpa is not None else {}
    reported = False
    for name, recommended in sorted(targets.items()):
        for resource in RESOURCES if name in resources else ():
            least = amount(recommended.lower_bound, resource)
            request = request_now(resources[name], ResourceKey(name, resource), facts.observation.pods)
            if least is not None and 0 < request < least:
                reported = True
                yield Risk(
                    "RequestTooSmall",
                    f"container {name} requests {human(resource, request)}, less than its VPA's lower bound of "
                    f"{human(resource, least)}: it depends on capacity that other pods leave unused; raise the "
                    "request",
                )
    measured = () if reported or facts.hpa is None else facts.hpa.status.current_metrics or ()
    for source in _sources(measured):
        used = source.current.average_utilization
        if used is not None and used > _PERCENT:
            yield Risk(
                "RequestTooSmall",
                f"pods use {used} % of the {source.name} that they request: they depend on capacity that other "
                "pods leave unused; raise the request",
            )


def _requests_missing(facts: Facts) -> Iterator[Risk]:
    template = facts.subject.workload.spec.template.spec
    relative = _relative_resources(facts.hpa)
    for name, requirements in present_resources(template.containers).items():
        for resource in RESOURCES:
            whole = None if template.resources is None else amount(template.resources.requests, resource)
            if (
                whole is not None
                or request_now(requirements, ResourceKey(name, resource), facts.observation.pods) > 0
            ):
                continue
            problem = f"container {name} requests no {resource}"
            if resource in relative:
                yield Risk(
                    "NoRequest",
                    f"{problem}, so the HPA has no {resource} utilization to scale on; set a request, or a target of "
                    "type AverageValue",
                )
            else:
                why = (
                    "is evicted first"
                    if resource == "memory"
                    else "gets only CPU time that other pods leave unused"
                )
                yield Risk(
                    "NoRequest", f"{problem}: it {why}, and these costs leave out its usage; set a request"
                )


def _chasing(facts: Facts) -> Iterator[Risk]:
    """An HPA on utilization together with a VPA that changes the same requests."""
    for hpa in facts.subject.hpas:
        relative = _relative_resources(hpa)
        for vpa in facts.subject.vpas:
            both = sorted(relative & _changed_resources(facts, vpa))
            if both:
                resources = " and ".join(both)
                yield Risk(
                    "UtilizationBesideVpa",
                    f"HPA {hpa.metadata.name} scales on {resources} utilization, and VPA {vpa.metadata.name} changes "
                    f"the {resources} requests that utilization is relative to, so they chase each other; let one Hvpa "
                    "use both, or set the VPA's updateMode to Off",
                )


def _changed_resources(facts: Facts, vpa: Vpa) -> set[str]:
    """The resources whose requests a VPA changes by itself."""
    policy = vpa.spec.update_policy
    if policy is not None and policy.update_mode == "Off":
        return set()
    resource_policy = vpa.spec.resource_policy
    find = policies_by_name(resource_policy.container_policies if resource_policy is not None else ())
    resources: set[str] = set()
    for container in facts.subject.workload.spec.template.spec.containers:
        policy_of = find(container.name)
        if policy_of.mode != "Off":
            controlled = policy_of.controlled_resources
            resources.update(RESOURCES if controlled is None else controlled)
    return resources


def _several(facts: Facts) -> Iterator[Risk]:
    for short, recommenders, why in (
        ("HPA", facts.subject.hpas, "Kubernetes lets none of them scale (AmbiguousSelector)"),
        ("VPA", facts.subject.vpas, "it is undefined which VPA applies"),
    ):
        if len(recommenders) > 1:
            many = names([recommender.metadata.name for recommender in recommenders])
            message = f"{short}s {many} point at the same workload: {why}; delete all but one"
            yield Risk(f"Several{short.capitalize()}s", message)


def _hvpa_faults(facts: Facts) -> Iterator[Risk]:
    problem = facts.observation.problem
    if problem is not None:
        yield Risk(problem.reason, problem.message)
    for hvpa in facts.subject.hvpas:
        ready = next((entry for entry in hvpa.status.conditions if entry.type == "Ready"), None)
        if (
            ready is None
            or ready.status != "False"
            or (problem is not None and ready.reason == problem.reason)
        ):
            continue
        reason = f"({ready.reason}): {ready.message}"
        yield Risk("HvpaNotReady", f"Hvpa {hvpa.metadata.name} is not Ready {reason}")


def _recommenders(facts: Facts) -> Iterator[Risk]:
    """A recommender that is not used now, according to the decision."""
    for kind, short in (("HpaActive", "HPA"), ("VpaActive", "VPA")):
        active = next((entry for entry in facts.decisions[0].status.conditions if entry.type == kind), None)
        if active is not None and active.status == "False" and active.reason not in NO_FAULT:
            yield Risk(active.reason, f"the {short} is not used: {active.message}")


def _runtimes(facts: Facts) -> Iterator[Risk]:
    """Heaps that do not fit their containers, and runtimes that no Hvpa knows of."""
    template = facts.subject.workload.spec.template.spec.containers
    targets = recommendations(facts.vpa) if facts.vpa is not None else {}
    specs = [hvpa.spec for hvpa in facts.subject.hvpas if hvpa.spec is not None]
    declared = {runtime.container for spec in specs for runtime in spec.runtimes}
    shown = shown_by(template)
    for container in template if shown else ():
        if container.name not in shown:
            continue
        runtime, heap = shown[container.name]
        least, size = (None, 0) if heap is None else (heap.least_memory, heap.size or 0)
        limit = amount(container.resources.limits, "memory")
        target = targets.get(container.name)
        wanted = limit if target is None else amount(target.target, "memory")
        if heap is not None and limit is not None and limit < size:
            yield Risk(
                "HeapTooLarge",
                f"{heap.option} lets the heap of container {container.name} grow beyond its memory limit of "
                f"{human('memory', limit)}: it is killed there; lower the heap, or raise the limit",
            )
        elif heap is not None and least is not None and wanted is not None and wanted > least:
            yield Risk(
                "HeapFixed",
                f"{heap.option} in container {container.name} needs about {human('memory', least)}, and "
                f"{'its limit is' if target is None else 'its VPA recommends'} {human('memory', wanted)}: more memory "
                "does not enlarge the heap; replace the size by a share of the limit",
            )
        if specs and container.name not in declared:
            yield Risk(
                "RuntimeUndeclared",
                f"container {container.name} is {runtime.kind}, which sizes its heap when it starts; declare it in "
                "spec.runtimes of the Hvpa, so that its memory is not resized in place",
            )


def _young(facts: Facts) -> Iterator[Risk]:
    """A VPA that has not seen a whole day: its recommendation covers only these hours."""
    age = history_of(facts)
    if facts.vpa is not None and age is not None and age < DAY:
        yield Risk(
            "YoungRecommendation",
            f"VPA {facts.vpa.metadata.name} has recommended for {readable_duration(age)}, less "
            "than a day, so other hours are missing; wait for a day before you rely on these figures",
        )


def history_of(facts: Facts) -> dt.timedelta | None:
    """How long the workload's VPA has recommended; None without a VPA that recommends, or if its age is unknown."""
    vpa = facts.vpa
    provided = None if vpa is None else condition(vpa.status.conditions, "RecommendationProvided")
    if vpa is None or provided is None or provided.status != "True":
        return None
    times = [
        time for time in (vpa.metadata.creation_timestamp, provided.last_transition_time) if time is not None
    ]
    return max(facts.observation.now - max(times), dt.timedelta(0)) if times else None


def _unmeasured(facts: Facts) -> Iterator[Risk]:
    """Metrics without a value in the HPA; kubectl shows `<unknown>`."""
    active = next(
        (entry for entry in facts.decisions[0].status.conditions if entry.type == "HpaActive"), None
    )
    if active is not None and active.status == "False" and active.reason not in NO_FAULT:
        return  # `_recommenders` reports this
    for hpa in facts.subject.hpas:
        known = {_named(metric) for metric in hpa.status.current_metrics or () if _has_value(metric)}
        missing = [metric for metric in hpa.spec.metrics if _named(metric) not in known]
        if missing:
            which = names([_label(metric) for metric in missing])
            yield Risk(
                "UnknownMetric",
                f"HPA {hpa.metadata.name} has no value for {which} (kubectl shows <unknown>), so these figures leave "
                "it out; check that the metric is served and that all containers have requests",
            )


def _named(metric: Metric) -> tuple[str, ...]:
    """The identity of a metric, in an HPA's spec and in its status."""
    source = metric.source()
    return (
        (metric.type,) if source is None else (metric.type, source.name, source.container, source.metric.name)
    )


def _label(metric: Metric) -> str:
    source = metric.source()
    return metric.type if source is None else source.name or source.metric.name or metric.type


def _has_value(metric: Metric) -> bool:
    source = metric.source()
    if source is None:
        return False
    value = source.current
    return (value.average_utilization, value.average_value, value.value) != (None, None, None)


def _ends(facts: Facts) -> Iterator[Risk]:
    hpa = facts.hpa
    if hpa is not None:
        least, most = hpa.spec.min_replicas, hpa.spec.max_replicas
        limited = condition(hpa.status.conditions, "ScalingLimited")
        if least == most:
            yield Risk(
                "FixedReplicas",
                f"minReplicas and maxReplicas of HPA {hpa.metadata.name} are both {most}, so it can't scale; raise "
                "maxReplicas",
            )
        elif limited is not None and limited.status == "True" and limited.reason == TOO_MANY_REPLICAS:
            yield Risk(
                "AtMaxReplicas",
                f"HPA {hpa.metadata.name} needs more than maxReplicas, {most}; raise it, or let pods grow",
            )
    for joint in (decision.joint for decision in facts.decisions if decision.joint is not None):
        for text in saturation(joint):
            yield Risk("Saturated", f"{text}; raise maxReplicas or maxAllowed")


def _pods(facts: Facts) -> Iterator[Risk]:
    workload, pods = facts.subject.workload, facts.observation.pods
    count = workload.spec.replicas
    if count == 0:
        yield Risk(
            "ScaledToZero",
            "the workload has 0 replicas: an Hvpa leaves it alone until something else scales it up",
        )
        return
    if count == 1:
        yield Risk(
            "SingleReplica",
            "the workload has a single replica, so no pod serves while it is replaced; run two",
        )
    if pods.unready:
        many = names(list(pods.unready))
        yield Risk(
            "UnreadyPods",
            f"not ready: {many}; HVPA changes requests once these pods are ready, or have failed for long",
        )
    progress = condition([*workload.status.conditions], PROGRESSING)
    if progress is not None and progress.status == "False":
        yield Risk(
            "RolloutStuck", f"the last rollout is not progressing ({progress.reason}): {progress.message}"
        )
    elif gaps := rollout_gaps(workload):
        yield Risk("RolloutIncomplete", f"the last rollout is not complete: {'; '.join(gaps)}")


def _keda(facts: Facts) -> Iterator[Risk]:
    label, value = _KEDA
    for hpa in facts.subject.hpas:
        if is_of_keda(hpa) or hpa.metadata.labels.get(label) == value:
            yield Risk(
                "Keda",
                f"HPA {hpa.metadata.name} is KEDA's, which also scales to 0 and back: an Hvpa can watch it (mode "
                "Recommend); before mode Apply, point the ScaledObject at the Hvpa",
            )


CHECKS: Final[tuple[Callable[[Facts], Iterator[Risk]], ...]] = (
    _starving,
    _memory_limits,
    _requests_exceeded,
    _requests_missing,
    _hvpa_faults,
    _several,
    _chasing,
    _recommenders,
    _unmeasured,
    _runtimes,
    _young,
    _ends,
    _pods,
    _keda,
)
"""The checks, in the order of the report."""


def human(resource: Resource, value: int) -> str:
    """Millicores or bytes for people: `0.50 cores`, `0.063 GiB`; three digits below 0.1."""
    unit, quantity = ("cores", value / 1000) if resource == "cpu" else ("GiB", value / 2**30)
    return f"{quantity:.{3 if 0 < quantity < 0.1 else 2}f} {unit}"


def _relative_resources(hpa: Hpa | None) -> set[str]:
    """The resources whose utilization an HPA scales on."""
    sources = _sources(() if hpa is None else hpa.spec.metrics)
    return {source.name for source in sources if source.target.average_utilization is not None}


def _sources(metrics: Sequence[Metric]) -> list[MetricSource]:
    """The resource metrics among these, of pods or of a container."""
    return [
        source for metric in metrics if (source := metric.resource or metric.container_resource) is not None
    ]
