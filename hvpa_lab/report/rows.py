"""The result of each blend for each workload, by `hvpa.core.observe` and `decide`, and the workload's requests and
monthly costs, now and then."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple, get_args

from hvpa.api.hvpa.spec import Blend
from hvpa.api.objects.read_models import HpaStatusRead, Workload
from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import RESOURCES, QuantityError, parse_resource
from hvpa.core import Settings, decide, observe
from hvpa.core.model import Decision, Observation, ResourceRequirements
from hvpa.core.workload.containers import present_resources
from hvpa.core.workload.pod_level import pod_request
from hvpa_lab.report.inventory import BlendInput, Inventory, Subject
from hvpa_lab.report.risks import DAY, Facts, Risk, history_of, risks
from hvpa_lab.report.surroundings import Surroundings, total

HOURS_PER_MONTH: Final = 730
"""A year of 8760 hours has twelve months."""


class Amount(NamedTuple):
    """CPU in millicores and memory in bytes."""

    cpu: int = 0
    memory: int = 0

    def plus(self, other: Amount, times: int = 1) -> Amount:
        """The sum of this and `times` times the other."""
        return Amount(self.cpu + times * other.cpu, self.memory + times * other.memory)

    @property
    def cores(self) -> float:
        """CPU in cores."""
        return self.cpu / 1000

    @property
    def gib(self) -> float:
        """Memory in GiB."""
        return self.memory / 2**30

    def cost(self, prices: Prices) -> float:
        """The cost of a month: 2 cores and 4 GiB at 0.03 and 0.004 cost 730 * (0.06 + 0.016) = 55.48."""
        return prices.cost(self.cores * HOURS_PER_MONTH, self.gib * HOURS_PER_MONTH)


class Size(NamedTuple):
    """A number of replicas, the requests of a replica, and the requests and limits of its containers."""

    replicas: int
    pod: Amount
    containers: Mapping[str, ResourceRequirements]
    mean: float | None = None
    """The mean number of replicas over the past, which counts for the total; None if unknown or fixed."""

    @property
    def total(self) -> Amount:
        """The requests of all replicas."""
        if self.mean is None:
            return Amount().plus(self.pod, self.replicas)
        return Amount(round(self.pod.cpu * self.mean), round(self.pod.memory * self.mean))

    @property
    def shown(self) -> str:
        """The number of replicas that counts, as text."""
        return str(self.replicas) if self.mean is None else f"{self.mean:.1f}"


def size_of(
    workload: Workload,
    replicas: int | None = None,
    containers: Mapping[str, ResourceRequirements] | None = None,
) -> Size:
    """The size of a workload with these replicas and containers (default: those of its spec).

    Requests of the pod itself (pod-level `resources`) replace its containers', as for the scheduler; a decision
    includes what the containers share. Native sidecars count in addition.
    """
    if containers is None:
        containers = present_resources(workload.spec.template.spec.containers)
    spec = workload.spec.template.spec
    pod = Amount(pod_request(spec, "cpu", containers), pod_request(spec, "memory", containers))
    return Size(workload.spec.replicas if replicas is None else replicas, pod, containers)


class Option(NamedTuple):
    """The size that a blend would set if nothing were held back."""

    blend: Blend
    is_own: bool
    """Whether it is from an existing Hvpa."""
    size: Size | None
    """The size; None if nothing can be decided."""
    why: str
    """The basis of the decision, or why there is none."""


Basis = Literal["Measured", "History", "MeasuredReplicas", "Mixed", "Snapshot", "YoungHistory", "None"]
"""The basis of a workload's figures. `Measured`: usage of at least a week, and no HPA. `History`: a VPA of at least a
day, and no HPA. `MeasuredReplicas`: usage of at least a week or such a VPA for the requests, and the mean replicas of
at least a week. `Mixed`: such a VPA, and the HPA's measurement of this instant for the replicas. `YoungHistory`: a
younger VPA, or usage of less than a week. `Snapshot`: measurements of this instant alone. `None`: nothing is measured,
so nothing changes."""
WEEK: Final = 7
"""Days of usage from which on it counts as measured: load differs by the day of the week."""
FIXED: Final = ("namespace", "kind")
"""Levels of groups that are not keys of labels."""
BASES: Final[tuple[Basis, ...]] = get_args(Basis)


class Used(NamedTuple):
    """The usage of all pods, as far as it is known: millicores and bytes."""

    cpu: int | None = None
    memory: int | None = None


class Row(NamedTuple):
    """A workload, in its current size and in each blend's."""

    subject: Subject
    now: Size
    options: Sequence[Option]
    risks: Sequence[Risk]
    used: Used
    restarts: int
    """Restarts of the containers of its present pods."""
    basis: Basis
    history: dt.timedelta | None
    """How long its VPA has recommended; None if unknown."""
    values: tuple[str, ...] = ()
    """Its value at each level of the groups."""

    @property
    def chosen(self) -> Option:
        """The option of its own Hvpa, or else of Trajectory, whose size is final."""
        own = (option for option in self.options if option.is_own)
        return next(own, self.options[-1])

    @property
    def change(self) -> Amount:
        """The difference of the chosen option."""
        return self.difference(self.chosen)

    def difference(self, option: Option) -> Amount:
        """The requests of the blend minus the current requests; 0 if the blend decides nothing."""
        return Amount() if option.size is None else option.size.total.plus(self.now.total, -1)

    def largest(self, prices: Prices) -> float:
        """The largest cost difference of a blend, up or down."""
        return max(abs(self.difference(option).cost(prices)) for option in self.options)


class Report(NamedTuple):
    """The report. `rows` are sorted by the largest cost difference."""

    at: dt.datetime
    prices: Prices
    inventory: Inventory
    rows: Sequence[Row]
    by: Sequence[str] = ()
    """The levels of the groups: `namespace`, `kind`, or keys of labels."""

    @property
    def now(self) -> Amount:
        """The current requests of all workloads with a recommender."""
        return sum_of(row.now.total for row in self.rows)

    def difference(self, blend: Blend) -> Amount:
        """The difference between their requests with a blend and now."""
        return sum_of(
            row.difference(option) for row in self.rows for option in row.options if option.blend == blend
        )


def report(
    inventory: Inventory, now: dt.datetime, settings: Settings, prices: Prices, by: Sequence[str] = ()
) -> Report:
    """Decide about every workload, as of `now`; `by` are the levels of the groups."""
    rows = [
        _row(subject, now, settings)._replace(values=_values(subject.workload, by, inventory.around))
        for subject in inventory.subjects
    ]
    rows.sort(key=lambda row: -row.largest(prices))
    return Report(now, prices, inventory, rows, by)


def _values(workload: Workload, by: Sequence[str], around: Surroundings) -> tuple[str, ...]:
    """The workload's value of each level; empty without such a label. A workload's label counts before its
    namespace's."""
    meta = workload.metadata
    fixed = dict(zip(FIXED, (meta.namespace, workload.kind), strict=True))
    known = {**around.labels.get(meta.namespace, {}), **meta.labels, **fixed}
    return tuple(known.get(level, "") for level in by)


def _row(subject: Subject, now: dt.datetime, settings: Settings) -> Row:
    observations = [observe(candidate.objects, now, settings) for candidate in subject.candidates]
    decisions = [decide(observation) for observation in observations]
    facts = Facts(subject, observations[0], decisions)
    history, mean = history_of(facts), _mean_replicas(facts)
    options = [
        _with_mean(facts, decision, mean, _option(candidate, observation, decision))
        for candidate, observation, decision in zip(subject.candidates, observations, decisions, strict=True)
    ]
    return Row(
        subject,
        size_of(subject.workload)._replace(mean=mean),
        options,
        list(risks(facts)),
        _used(facts),
        sum(status.restart_count for pod in subject.pods for status in pod.status.container_statuses),
        _basis(facts, history),
        history,
    )


def _mean_replicas(facts: Facts) -> float | None:
    """The mean replicas of at least a week, if an HPA scales them. Fixed replicas are those of now."""
    past = facts.subject.past
    is_known = past is not None and past.days >= WEEK and "HpaActive" in _active(facts)
    return past.replicas if past is not None and is_known else None


def _active(facts: Facts) -> set[str]:
    """The recommenders that count, by their conditions."""
    active = {entry.type for entry in facts.decisions[0].status.conditions if entry.status == "True"}
    return active & {"HpaActive", "VpaActive"}


def _with_mean(facts: Facts, decision: Decision, mean: float | None, option: Option) -> Option:
    """The option with its mean replicas. It assumes that they differ from the HPA's (with an Hvpa, from its own) by the
    same factor at all times. Example: of 6 replicas that the HPA wants, 5 larger ones make 10 of a mean of 12."""
    size, view, hpa = option.size, decision.replicas, facts.hpa
    if mean is None or size is None or view is None or hpa is None:
        return option
    known = view.current if facts.subject.hvpas or not view.hpa else view.hpa
    scaled = mean * size.replicas / known if known else mean
    scaled = max(min(mean, hpa.spec.min_replicas), min(scaled, max(mean, hpa.spec.max_replicas)))
    return option._replace(size=size._replace(mean=scaled))


def _used(facts: Facts) -> Used:
    """The usage of all pods: the mean of the past, else from the metrics API, or else the HPA's average usage times its
    pods."""
    if facts.subject.past is not None:
        used = facts.subject.past.used
        return Used(used.get("cpu"), used.get("memory"))
    known = total(facts.subject.usage)
    hpa = facts.hpa
    status = HpaStatusRead() if hpa is None else hpa.status
    for source in (metric.resource for metric in status.current_metrics or ()):
        if source is None or source.current.average_value is None:
            continue
        for resource in RESOURCES:
            if source.name == resource and resource not in known:
                with suppress(QuantityError):
                    average = parse_resource(resource, source.current.average_value)
                    known[resource] = average * status.current_replicas
    return Used(known.get("cpu"), known.get("memory"))


def _basis(facts: Facts, history: dt.timedelta | None) -> Basis:
    active = _active(facts)
    past, is_estimated = facts.subject.past, facts.subject.is_estimated
    is_week = past is not None and past.days >= WEEK
    if "VpaActive" in active and (past is not None if is_estimated else history is not None):
        if not (is_week if is_estimated else history is not None and history >= DAY):
            return "YoungHistory"
        if "HpaActive" in active:
            return "MeasuredReplicas" if is_week else "Mixed"
        return "Measured" if is_estimated else "History"
    return "Snapshot" if active else "None"


def _option(candidate: BlendInput, observation: Observation, decision: Decision) -> Option:
    view = decision.replicas
    if observation.problem is not None or view is None:
        why = "nothing is decided" if observation.problem is None else observation.problem.message
        return Option(candidate.blend, candidate.is_own, None, why)
    size = size_of(observation.workload, view.recommended, decision.recommended)
    why = "; ".join(decision.steps) if decision.joint is None else decision.joint.because
    return Option(candidate.blend, candidate.is_own, size, why)


def sum_of(amounts: Iterable[Amount]) -> Amount:
    """The sum of all amounts."""
    result = Amount()
    for summand in amounts:
        result = result.plus(summand)
    return result
