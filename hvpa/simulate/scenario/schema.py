"""The form of a scenario's file: its fields, their defaults, and what they may hold. docs/simulate.md explains each.

What belongs here: what can be judged from the fields alone. What the files that a scenario names hold is judged where
they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from hvpa.api.hvpa.templates import HpaTemplateSpec, VpaTemplateSpec
from hvpa.api.objects.kinds import KINDS, is_custom
from hvpa.api.schema.base import SpecModel, fault
from hvpa.api.schema.fields import LIST_LENGTH, Flag, NoNulls, PositiveCount, Timestamp
from hvpa.core.workload.own_rollout import NEVER_REPLACING
from hvpa.simulate.model import ResizeMode
from hvpa.simulate.scenario.fields import (
    Amounts,
    ApiVersion,
    Beyond,
    Bytes,
    Column,
    Factor,
    FileName,
    FineBytes,
    FineMillicores,
    Fraction,
    KindName,
    Label,
    Millicores,
    PlainText,
    PositiveSeconds,
    Replicas,
    Seconds,
    SomePods,
    check_limits,
)


def _check_names(names: Sequence[str], kind: str, field: str) -> None:
    """Raise the `fault` of the first name that another one has before it."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise fault(f"is the name of another {kind} too", field, index, "name")


# --- the load -------------------------------------------------------------------------------------------------------
class CsvLoad(SpecModel):
    """A CSV file with a header."""

    file: FileName
    timestamp: Column = "timestamp"
    value: Column = "value"


def _series(value: object) -> object:
    """A series' number in the response, or labels that only it has."""
    if isinstance(value, dict) and value and all(isinstance(one, str) for one in value.values()):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be the series' number (0 is the first), or labels with their values as text")
    return value


class PrometheusLoad(SpecModel):
    """What Prometheus' /api/v1/query_range responded."""

    file: FileName
    series: Annotated[Any, BeforeValidator(_series)] = None
    sum: Flag = False

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.sum and self.series is not None:
            raise fault("choose one series, or sum all: not both", "sum")
        return self


def _number_as_text(value: object) -> object:
    """A constant load is a formula, also without quotes."""
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class LoadModel(SpecModel):
    """The load over time, from exactly one source."""

    csv: CsvLoad | None = None
    formula: Annotated[PlainText | None, BeforeValidator(_number_as_text)] = None
    prometheus: PrometheusLoad | None = None
    scale: Factor = 1.0
    noise: Fraction = 0.0
    noise_from: Seconds = 0.0
    backlog: Seconds = 0.0
    repeat: Flag = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.csv, self.formula, self.prometheus)) != 1:
            raise fault("needs exactly one of csv, formula and prometheus")
        if self.repeat and self.formula is not None:
            raise fault("is for recorded loads: a formula has no end", "repeat")
        return self


# --- the workload and where it runs ---------------------------------------------------------------------------------
class CpuUse(SpecModel):
    """CPU of a container: without any load, for each unit of it, and until its pod is ready (None: the base).
    Millicores."""

    base: FineMillicores = 0.0
    per_unit: FineMillicores = 0.0
    start_up: FineMillicores | None = None


class MemoryUse(SpecModel):
    """Memory of a container: without any load, for each unit of it, and what is never given back (bytes). `kept` is the
    share of what the load took that the runtime keeps when the load falls."""

    base: FineBytes = 0.0
    per_unit: FineBytes = 0.0
    leak_per_hour: FineBytes = 0.0
    kept: Fraction = 0.0


class ScenarioContainer(SpecModel):
    """A container: what it is given, and what it uses."""

    name: Label
    requests: Amounts = Amounts()
    limits: Amounts = Amounts()
    cpu: CpuUse = CpuUse()
    memory: MemoryUse = MemoryUse()

    @model_validator(mode="after")
    def _limits_above_requests(self) -> Self:
        check_limits(self.requests, self.limits, "limits")
        return self


class Blips(SpecModel):
    """Moments in which a pod that is ready is not: so far apart on average, and so long."""

    every: PositiveSeconds
    length: PositiveSeconds = 10.0


class ScenarioWorkload(SpecModel):
    """The workload that is scaled."""

    api_version: ApiVersion | None = None
    kind: KindName = "Deployment"
    name: Label
    namespace: Label = "default"
    replicas: Replicas = 1
    start_up: Seconds = 0.0
    termination_grace: Seconds = 0.0
    max_surge: SomePods = "25%"
    max_unavailable: SomePods = "25%"
    resize: ResizeMode = "InPlace"
    resize_delay: Seconds = 2.0
    resize_deferred: Seconds = 0.0
    resize_refused: Flag = False
    blips: Blips | None = None
    spread: Fraction = 0.0
    containers: Annotated[tuple[ScenarioContainer, ...], Field(min_length=1, max_length=LIST_LENGTH)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        _check_names([one.name for one in self.containers], "container", "containers")
        return self

    @model_validator(mode="after")
    def _kind_is_known(self) -> Self:
        own = KINDS.get(self.kind)
        if own is None and not is_custom(self.api_version, self.kind):
            raise fault(
                f"must be one of {', '.join(KINDS)}, or apiVersion must have the group of another kind",
                "kind",
            )
        if own is not None and self.api_version not in (None, own.api_version):
            raise fault(f"must be {own.api_version}", "apiVersion")
        return self

    @model_validator(mode="after")
    def _rollouts_can_proceed(self) -> Self:
        given = self.model_fields_set & {"max_surge", "max_unavailable"}
        if self.kind == "StatefulSet" and given:
            raise fault(
                "a StatefulSet replaces one pod at a time: maxSurge and maxUnavailable are a Deployment's"
            )
        if self.kind in NEVER_REPLACING and given:
            raise fault(f"a {self.kind} never replaces pods: maxSurge and maxUnavailable are a Deployment's")
        if self.kind == "StatefulSet" and self.termination_grace:
            raise fault("is simulated for Deployments only", "terminationGrace")
        if str(self.max_surge).rstrip("%") == "0" == str(self.max_unavailable).rstrip("%"):
            raise fault("must not be 0 where maxSurge is 0", "maxUnavailable")
        return self


class Nodes(SpecModel):
    """The nodes; without end where nothing is set."""

    cpu: Millicores | None = None
    memory: Bytes | None = None
    headroom: Beyond | None = None
    count: PositiveCount | None = None
    start_up: Seconds = 0.0


class Metrics(SpecModel):
    """metrics-server. `offset` is drawn from the seed where it is not set, as those of the controllers are; `load` is
    the name of the metric that is the load, `share` and `queue` those of two that are made of it."""

    resolution: PositiveSeconds = 15.0
    delay: Seconds = 10.0
    offset: Seconds | None = None
    load: Column = "load"
    share: Column | None = None
    queue: Column | None = None


# --- the controllers ------------------------------------------------------------------------------------------------
class HpaController(SpecModel):
    """kube-controller-manager's flags for HPAs; `offset` is when it first looks (None: drawn from the seed)."""

    sync_period: PositiveSeconds = 15.0
    tolerance: Fraction = 0.1
    downscale_stabilization: Seconds = 300.0
    cpu_initialization_period: Seconds = 300.0
    initial_readiness_delay: Seconds = 30.0
    offset: Seconds | None = None


_Percentile = Annotated[Fraction, Field(gt=0)]


class VpaController(SpecModel):
    """Periods of the VPA's recommender and updater and when each first looks (None: drawn from the seed), and the
    recommender's flags. A flag that is not set here keeps the default that it has in
    `hvpa.recommend.vpa.recommender.VpaSettings`."""

    period: PositiveSeconds = 60.0
    offset: Seconds | None = None
    updater_period: PositiveSeconds = 60.0
    updater_offset: Seconds | None = None
    safety_margin: Fraction | None = None
    target_cpu_percentile: _Percentile | None = None
    lower_bound_cpu_percentile: _Percentile | None = None
    upper_bound_cpu_percentile: _Percentile | None = None
    target_memory_percentile: _Percentile | None = None
    lower_bound_memory_percentile: _Percentile | None = None
    upper_bound_memory_percentile: _Percentile | None = None
    confidence_interval_cpu: PositiveSeconds | None = None
    confidence_interval_memory: PositiveSeconds | None = None
    pod_min_cpu: Annotated[FineMillicores, Field(gt=0)] | None = None
    pod_min_memory: Annotated[FineBytes, Field(gt=0)] | None = None
    memory_aggregation_interval: PositiveSeconds | None = None
    memory_aggregation_interval_count: Annotated[PositiveCount, Field(le=1000)] | None = None
    cpu_half_life: PositiveSeconds | None = None
    memory_half_life: PositiveSeconds | None = None
    oom_bump_up_ratio: Annotated[Factor, Field(ge=1)] | None = None
    oom_min_bump_up: Annotated[FineBytes, Field(gt=0)] | None = None


class ControllersModel(SpecModel):
    """The controllers around the workload."""

    hpa: HpaController = HpaController()
    vpa: VpaController = VpaController()


# --- the policies: the ways to scale that are compared ------------------------------------------------------------
class HpaAlone(HpaTemplateSpec):
    """Spec of an HPA (autoscaling/v2) that scales the workload itself."""

    @model_validator(mode="after")
    def _has_a_maximum(self) -> Self:
        if self.max_replicas == 0:
            raise fault("is required, and greater than 0", "maxReplicas")
        if self.min_replicas == 0:
            raise fault("must be greater than 0", "minReplicas")
        if not self.is_in_order:
            raise fault("must not be greater than maxReplicas", "minReplicas")
        return self


def _mode(value: object) -> object:
    if value not in ("Recreate", "InPlaceOrRecreate", "Off"):
        raise ValueError("must be Recreate, InPlaceOrRecreate or Off: what others do is not simulated")
    return value


class VpaUpdates(SpecModel):
    """What the VPA's updater does."""

    update_mode: Annotated[Literal["Recreate", "InPlaceOrRecreate", "Off"], BeforeValidator(_mode)] = (
        "Recreate"
    )
    min_replicas: PositiveCount | None = None


class VpaAlone(VpaTemplateSpec):
    """Spec of a VPA (autoscaling.k8s.io/v1) that acts on the workload itself."""

    update_policy: VpaUpdates = VpaUpdates()

    def to_wire(self) -> dict[str, object]:
        """As autoscaling.k8s.io/v1 writes it."""
        updates: dict[str, object] = {"updateMode": self.update_policy.update_mode}
        if self.update_policy.min_replicas is not None:
            updates["minReplicas"] = self.update_policy.min_replicas
        wire: dict[str, object] = {"updatePolicy": updates}
        if self.resource_policy is not None:
            wire["resourcePolicy"] = self.resource_policy.to_wire()
        return wire


class FixedContainer(SpecModel):
    """Requests and limits in place of those that the workload begins with."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class FixedSize(SpecModel):
    """A size that stays; the workload's own where nothing is set."""

    replicas: Replicas | None = None
    containers: Annotated[dict[Label, FixedContainer], NoNulls] = Field(default_factory=dict)


def _manifest(value: object) -> object:
    if not isinstance(value, dict) and (not isinstance(value, str) or not value):
        raise ValueError("must be the name of a file, or a manifest")
    return value


class PolicyModel(SpecModel):
    """One way to scale."""

    name: Annotated[PlainText, Field(min_length=1, max_length=100)]
    hvpa: Annotated[Any, BeforeValidator(_manifest)] = None
    hpa: HpaAlone | None = None
    vpa: VpaAlone | None = None
    fixed: FixedSize | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (self.hvpa is not None, self.hpa is not None or self.vpa is not None, self.fixed is not None)
        if sum(kinds) != 1:
            raise fault("needs exactly one of hvpa, hpa or vpa (or both of these), and fixed")
        return self


# --- all of it ------------------------------------------------------------------------------------------------------
class ScenarioModel(SpecModel):
    """A scenario's file."""

    name: Annotated[PlainText, Field(min_length=1, max_length=200)]
    description: PlainText = ""
    start: Timestamp | None = None
    duration: PositiveSeconds | None = None
    step: PositiveSeconds = 5.0
    warm_up: Seconds = 0.0
    load: LoadModel
    workload: ScenarioWorkload
    nodes: Nodes = Nodes()
    metrics: Metrics = Metrics()
    controllers: ControllersModel = ControllersModel()
    policies: Annotated[tuple[PolicyModel, ...], Field(min_length=1, max_length=LIST_LENGTH)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        _check_names([one.name for one in self.policies], "policy", "policies")
        return self
