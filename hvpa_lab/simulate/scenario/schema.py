"""The fields of a scenario's file, with defaults and valid values. docs/simulate.md explains each.

Only checks that need nothing but the fields are here. The contents of other files are checked when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from hvpa.api.hvpa.templates import HpaTemplateSpec, ResourcePolicy
from hvpa.api.objects.kinds import KINDS, is_custom
from hvpa.api.schema.base import OpenModel, SpecModel, fault
from hvpa.api.schema.fields import LIST_LENGTH, Flag, NoNulls, PositiveCount, Timestamp
from hvpa.core.workload.own_rollout import NEVER_REPLACING
from hvpa_lab.simulate.model import KubeletKind, ResizeMode, RuntimeKind
from hvpa_lab.simulate.scenario.fields import (
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
    Heap,
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
    """Raise the `fault` of the first name that occurs twice."""
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
    """The value, if it is a series' index in the response, or labels that select it."""
    if isinstance(value, dict) and value and all(isinstance(text, str) for text in value.values()):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be the series' number (0 is the first), or labels with their values as text")
    return value


class PrometheusLoad(SpecModel):
    """A saved response of Prometheus' /api/v1/query_range."""

    file: FileName
    series: Annotated[Any, BeforeValidator(_series)] = None
    sum: Flag = False

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.sum and self.series is not None:
            raise fault("choose a series or sum all, not both", "sum")
        return self


def _number_as_text(value: object) -> object:
    """The value; a number becomes the text of a formula."""
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


# --- the workload, nodes and metrics --------------------------------------------------------------------------------
class CpuUse(SpecModel):
    """CPU usage of a container in one pod, in millicores."""

    base: FineMillicores = 0.0
    """Usage without load."""
    per_unit: FineMillicores = 0.0
    """Usage for each unit of the load that the pod serves."""
    start_up: FineMillicores | None = None
    """Usage until the pod is ready. Default: `base`."""


class MemoryUse(SpecModel):
    """Memory usage of a container in one pod, in bytes."""

    base: FineBytes = 0.0
    """Usage without load."""
    per_unit: FineBytes = 0.0
    """Usage for each unit of the load that the pod serves."""
    leak_per_hour: FineBytes = 0.0
    kept: Fraction = 0.0
    """Share of the load's memory that the runtime keeps when the load falls."""


class ContainerRuntime(SpecModel):
    """A runtime that sizes its heap when its container starts. The heap holds all memory except `memory.base`."""

    kind: RuntimeKind
    heap: Heap
    """Maximum heap: an amount, or a percentage of the memory limit at the start."""


class ScenarioContainer(SpecModel):
    """A container's resources and usage."""

    name: Label
    requests: Amounts = Amounts()
    limits: Amounts = Amounts()
    cpu: CpuUse = CpuUse()
    memory: MemoryUse = MemoryUse()
    runtime: ContainerRuntime | None = None

    @model_validator(mode="after")
    def _limits_above_requests(self) -> Self:
        check_limits(self.requests, self.limits, "limits")
        return self


class PodResources(SpecModel):
    """Resources of the pod itself, which its containers share."""

    requests: Amounts = Amounts()
    limits: Amounts = Amounts()

    @model_validator(mode="after")
    def _limits_above_requests(self) -> Self:
        check_limits(self.requests, self.limits, "limits")
        if not self.requests.by_resource() and not self.limits.by_resource():
            raise fault("needs requests or limits")
        return self


class Blips(SpecModel):
    """Failing readiness probes: from time to time, a ready pod is not ready."""

    every: PositiveSeconds
    """Mean time between two blips."""
    length: PositiveSeconds = 10.0
    """Time for which the pod is not ready."""


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
    resources: PodResources | None = None
    containers: Annotated[tuple[ScenarioContainer, ...], Field(min_length=1, max_length=LIST_LENGTH)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        _check_names([container.name for container in self.containers], "container", "containers")
        return self

    @model_validator(mode="after")
    def _kind_is_known(self) -> Self:
        known_kind = KINDS.get(self.kind)
        if known_kind is None and not is_custom(self.api_version, self.kind):
            raise fault(
                f"must be one of {', '.join(KINDS)}, or apiVersion must have the group of another kind",
                "kind",
            )
        if known_kind is not None and self.api_version not in (None, known_kind.api_version):
            raise fault(f"must be {known_kind.api_version}", "apiVersion")
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
            raise fault("must not be 0 if maxSurge is 0", "maxUnavailable")
        return self


class Nodes(SpecModel):
    """The nodes. Size, headroom and count are unlimited by default."""

    cpu: Millicores | None = None
    memory: Bytes | None = None
    headroom: Beyond | None = None
    count: PositiveCount | None = None
    start_up: Seconds = 0.0


class Metrics(SpecModel):
    """metrics-server, and the names of the custom or external metrics."""

    resolution: PositiveSeconds = 15.0
    delay: Seconds = 10.0
    offset: Seconds | None = None
    """Time of the first measurement. Default: drawn from the seed."""
    load: Column = "load"
    """Metric name of the load."""
    share: Column | None = None
    """Metric name of the load per ready pod."""
    queue: Column | None = None
    """Metric name of the queue's length: jobs of one second each, in progress or waiting."""
    kubelets: KubeletKind = "Default"
    """The kubelets' settings, for spec.fastSignal."""


# --- the controllers ------------------------------------------------------------------------------------------------
class HpaController(SpecModel):
    """kube-controller-manager's flags for HPAs."""

    sync_period: PositiveSeconds = 15.0
    tolerance: Fraction = 0.1
    downscale_stabilization: Seconds = 300.0
    cpu_initialization_period: Seconds = 300.0
    initial_readiness_delay: Seconds = 30.0
    offset: Seconds | None = None
    """Time of the first sync. Default: drawn from the seed."""


_Percentile = Annotated[Fraction, Field(gt=0)]


class VpaController(SpecModel):
    """Periods of the VPA's recommender and updater, and the recommender's flags, with the defaults of
    `hvpa_lab.recommend.vpa.recommender.VpaSettings`."""

    period: PositiveSeconds = 60.0
    """Period of the recommender."""
    offset: Seconds | None = None
    """Time of the recommender's first run. Default: drawn from the seed."""
    updater_period: PositiveSeconds = 60.0
    updater_offset: Seconds | None = None
    """Time of the updater's first run. Default: drawn from the seed."""
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
    """Settings of the HPA and VPA controllers."""

    hpa: HpaController = HpaController()
    vpa: VpaController = VpaController()


# --- the policies to compare ----------------------------------------------------------------------------------------
def _check_known(spec: OpenModel) -> None:
    """Raises the `fault` of the first field that is not simulated."""
    for path in spec.passed_on():
        raise fault("unknown field", *path)


class HpaAlone(HpaTemplateSpec):
    """Spec of an HPA (autoscaling/v2) that scales the workload directly."""

    @model_validator(mode="after")
    def _has_a_maximum(self) -> Self:
        _check_known(self)
        if self.max_replicas == 0:
            raise fault("is required, and greater than 0", "maxReplicas")
        if self.min_replicas == 0:
            raise fault("must be greater than 0", "minReplicas")
        if not self.is_in_order:
            raise fault("must not be greater than maxReplicas", "minReplicas")
        return self


def _mode(value: object) -> object:
    if value not in ("Recreate", "InPlaceOrRecreate", "Off"):
        raise ValueError("must be Recreate, InPlaceOrRecreate or Off: other modes are not simulated")
    return value


class VpaUpdates(SpecModel):
    """The VPA's `updatePolicy`."""

    update_mode: Annotated[Literal["Recreate", "InPlaceOrRecreate", "Off"], BeforeValidator(_mode)] = (
        "Recreate"
    )
    min_replicas: PositiveCount | None = None


class SimulatedPolicy(ResourcePolicy):
    """The VPA's `resourcePolicy`."""

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        _check_known(self)
        return self


class VpaAlone(SpecModel):
    """Spec of a VPA (autoscaling.k8s.io/v1) that acts on the workload directly."""

    resource_policy: SimulatedPolicy | None = None
    update_policy: VpaUpdates = VpaUpdates()

    def to_wire(self) -> dict[str, object]:
        """The spec in autoscaling.k8s.io/v1 form."""
        updates: dict[str, object] = {"updateMode": self.update_policy.update_mode}
        if self.update_policy.min_replicas is not None:
            updates["minReplicas"] = self.update_policy.min_replicas
        wire: dict[str, object] = {"updatePolicy": updates}
        if self.resource_policy is not None:
            wire["resourcePolicy"] = self.resource_policy.to_wire()
        return wire


class FixedPart(SpecModel):
    """Requests and limits that replace the workload's initial values."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class FixedSize(SpecModel):
    """A fixed size. A field that is not set keeps the workload's initial value."""

    replicas: Replicas | None = None
    resources: FixedPart | None = None
    containers: Annotated[dict[Label, FixedPart], NoNulls] = Field(default_factory=dict)


def _manifest(value: object) -> object:
    if not isinstance(value, dict) and (not isinstance(value, str) or not value):
        raise ValueError("must be the name of a file, or a manifest")
    return value


class PolicyModel(SpecModel):
    """A policy to compare: an Hvpa, an HPA, a VPA, both, or a fixed size."""

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


# --- the scenario ---------------------------------------------------------------------------------------------------
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
        _check_names([policy.name for policy in self.policies], "policy", "policies")
        return self
