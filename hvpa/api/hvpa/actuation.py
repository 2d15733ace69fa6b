"""How a new size reaches the pods of a workload: `spec.updateStrategy` (DESIGN 11.1), `spec.review`, `spec.fastSignal`,
`spec.startupBoost` and `spec.runtimes`."""

from __future__ import annotations

import datetime as dt
import re
from functools import cached_property
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema

from hvpa.api.hvpa.metrics import DescribedObject, MetricIdentifier
from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import (
    INT32_MAX,
    ContainerName,
    Duration,
    NonNegativeQuantity,
    PositiveDuration,
    PositiveQuantity,
)
from hvpa.api.values.quantity import parse_cpu, parse_quantity

StrategyType = Literal["Rollout", "InPlaceOrRollout", "InPlace"]
Failure = Literal["OOMKilled", "CrashLoopBackOff", "NotReady"]

_PERCENT: Final = re.compile(r"^(100|[1-9][0-9]?)%\Z", re.ASCII)
_COUNT_OR_PERCENT_SCHEMA: Final = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "minimum": 1,
    "maximum": INT32_MAX,
    "maxLength": 4,
    "pattern": _PERCENT.pattern.replace(r"\Z", "$"),
}


def _count_or_percent(value: object) -> int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INT32_MAX:
        return value
    if isinstance(value, str) and _PERCENT.match(value):
        return value
    raise ValueError("must be a positive number of pods, or a percentage from 1% to 100%")


CountOrPercent = Annotated[
    int | str, BeforeValidator(_count_or_percent), WithJsonSchema(_COUNT_OR_PERCENT_SCHEMA)
]


class RollbackExternal(SpecModel):
    """A metric that does not belong to an object of the cluster."""

    metric: MetricIdentifier
    """The metric."""


class RollbackObject(SpecModel):
    """A metric of an object in the Hvpa's namespace, such as an Ingress."""

    metric: MetricIdentifier
    """The metric."""
    described_object: DescribedObject
    """The object that the metric describes."""


class RollbackMetric(SpecModel):
    """A metric of the service, such as its P99 or its share of errors, that a new size must not raise above a
    threshold."""

    RULES = (
        Rule(
            "has(self.external) != has(self.object)",
            lambda metric: (metric.external is None) != (metric.object is None),
            "set one of external and object",
        ),
    )

    external: RollbackExternal | None = None
    """A metric of the API external.metrics.k8s.io. If it has several series, the largest value counts."""
    object: RollbackObject | None = None
    """A metric of the API custom.metrics.k8s.io."""
    above: NonNegativeQuantity
    """The threshold, as a quantity such as 500m. If the metric passes it, the new size has failed."""

    def is_exceeded(self, value: str) -> bool:
        """Returns whether a value (a valid quantity) is above the threshold."""
        return parse_quantity(value) > parse_quantity(self.above)


class Canary(SpecModel):
    """Tries a new size on some pods first. If it fails there, HVPA restores the previous size."""

    pods: CountOrPercent = 1
    """How many pods get a new size first: a number, or a percentage of the pods (rounded down, at least 1)."""
    duration: PositiveDuration = Field(default=dt.timedelta(minutes=5), json_schema_extra={"default": "5m"})
    """How long these pods must have the new size before the other pods get it."""
    rollback_on: Annotated[tuple[Failure, ...], Field(min_length=1, max_length=3)] = (
        "OOMKilled",
        "CrashLoopBackOff",
        "NotReady",
    )
    """Events that count as a failure. OOMKilled: a container whose memory was not raised runs out of memory.
    CrashLoopBackOff: a container stops again and again. NotReady: a pod is not ready at the end of the duration."""
    rollback_on_metrics: Annotated[tuple[RollbackMetric, ...], Field(max_length=4)] = ()
    """Metrics of the service that count as a failure above their threshold, while these pods have the new size. HVPA
    reads them every 15 seconds during a trial, and once a minute before."""


class UpdateStrategy(SpecModel):
    """How a new size reaches the pods."""

    type: StrategyType | None = None
    """Rollout: HVPA patches the pod template, and the workload replaces its pods. InPlace: HVPA resizes the running
    pods and does not change the template. InPlaceOrRollout: as InPlace, but HVPA patches the template if pods can't be
    resized. Default: Rollout; with blend Trajectory, InPlaceOrRollout if the API server can resize pods."""
    timeout: PositiveDuration = Field(default=dt.timedelta(minutes=5), json_schema_extra={"default": "5m"})
    """How long a resize may be deferred or in progress. Then HVPA patches the template (InPlaceOrRollout) or reports
    the pod as stuck (InPlace). If that holds for all pods of an InPlace workload with an HPA, HVPA adds replicas
    instead. HVPA does not wait for a resize that is infeasible."""
    max_unavailable: CountOrPercent = "25%"
    """How many pods may be unavailable at once while resizes restart containers (by their resizePolicy): a number, or a
    percentage of the pods (rounded down, at least 1). Resizes without a restart are not limited."""
    canary: Canary | None = None
    """If set, HVPA tries a new size on some pods first. With Rollout, these are the first pods that the workload
    replaces; HVPA then pauses the rollout."""

    pod_deletion_cost: Literal["Never", "BySize"] = "Never"
    """BySize: when HVPA removes replicas of a Deployment or ReplicaSet, it marks pods that do not have the decided size
    by controller.kubernetes.io/pod-deletion-cost, so that of equally ready pods these go first. HVPA sets no cost while
    another client sets costs of these pods. Only for pods that are resized in place, and with the right to patch pods
    (config/deletion-cost)."""

    @property
    def in_place(self) -> bool:
        """Whether HVPA resizes running pods."""
        return self.type in ("InPlace", "InPlaceOrRollout")

    @property
    def is_default(self) -> bool:
        """Whether the type is a default, not set by the user."""
        return "type" not in self.model_fields_set

    @cached_property
    def resizing(self) -> Self:
        """Returns this strategy with the default type InPlaceOrRollout."""
        return self._by_default("InPlaceOrRollout")

    @cached_property
    def replacing(self) -> Self:
        """Returns this strategy with the default type Rollout."""
        return self._by_default("Rollout")

    def _by_default(self, kind: StrategyType) -> Self:
        strategy = self.model_copy(update={"type": kind})
        strategy.model_fields_set.discard("type")
        return strategy

    def most_unavailable(self, pods: int) -> int:
        """Returns how many of this number of pods may be unavailable at once. 25% of 10 pods: 2; of 3 pods: 1."""
        return _count_of(self.max_unavailable, pods)

    def canary_pods(self, pods: int) -> int:
        """Returns how many of this number of pods get a new size first. 10% of 25 pods: 2."""
        return pods if self.canary is None else _count_of(self.canary.pods, pods)


def _count_of(count: int | str, pods: int) -> int:
    return count if isinstance(count, int) else max(1, pods * int(count.rstrip("%")) // 100)


class FastSignal(SpecModel):
    """Raises requests as soon as the kubelets report more usage, before the HorizontalPodAutoscaler and the
    VerticalPodAutoscaler have measured it. Only for pods that are resized in place."""

    mode: Literal["Off", "Raise"] = "Off"
    """Off: the kubelets are not polled. Raise: HVPA polls the kubelets of the pods, and raises requests at most twofold
    for each measurement. It lowers no request and changes no replicas for it."""
    above: Annotated[int, Field(ge=75, le=200)] = 90
    """The percentage of the CPU request, or of the memory limit, above which a container needs more: 75 to 200."""


class Review(SpecModel):
    """How changes of requests wait for approval, with mode Review. Replicas need none."""

    margin: Annotated[int, Field(ge=0, le=50)] = 10
    """How far a size may differ from the approved one, in percent of it: 0 to 50."""
    rescues: Literal["Wait", "Pass"] = "Wait"
    """Whether rescues need approval. Pass: HVPA raises memory that ran out, and CPU of saturated pods, at once."""


class StartupCpu(SpecModel):
    """How much CPU a container requests during its start."""

    RULES = (
        Rule(
            "has(self.factor) != has(self.value)",
            lambda cpu: (cpu.factor is None) != (cpu.value is None),
            "set either factor or value",
        ),
    )

    factor: Annotated[int, Field(ge=2, le=100)] | None = None
    """The multiple of its request: 2 to 100."""
    value: PositiveQuantity | None = None
    """The amount, such as 2 or 1500m."""

    def of(self, request: int) -> int:
        """Returns the CPU during the start of a container with this request, both in millicores."""
        return parse_cpu(self.value) if self.value is not None else request * (self.factor or 1)


class StartupBoost(SpecModel):
    """More CPU for a container while its pod starts. A limit grows in proportion. The boost counts neither as demand
    nor as capacity."""

    container: ContainerName
    """The name of a container, native sidecar or init container of the pod template. An init container has a larger
    limit only."""
    cpu: StartupCpu
    """How much CPU it requests during the start."""
    until: Literal["Ready", "Started"] = "Ready"
    """Ready: the start ends when the pod is ready. Started: it ends when the container's startup probe has passed."""
    after: Duration = Field(default=dt.timedelta(0), json_schema_extra={"default": "0s"})
    """How long the boost lasts beyond that: from the pod's readiness, or, with Started, from the start of its
    containers."""
    at_most: PositiveDuration = Field(default=dt.timedelta(minutes=2), json_schema_extra={"default": "2m"})
    """How long the boost lasts at most, from the start of the pod's containers."""


class Runtime(SpecModel):
    """The runtime of a container. Java, Node, and others with a heapPercent, size their heap when they start. Unless
    the container's resizePolicy restarts it for memory, HVPA then resizes only its CPU in place: pods get other memory
    at their creation, and with InPlaceOrRollout a rollout replaces the present pods."""

    container: ContainerName
    """The container's name."""
    kind: Literal["Java", "Node", "Python", "Go", "Other"]
    """The runtime."""
    heap_percent: Annotated[int, Field(ge=1, le=95)] | None = None
    """The percentage of the memory limit that the heap may use, such as -XX:MaxRAMPercentage: 1 to 95. Set it for
    Python, Go and Other if they calculate their heap from the limit when they start."""

    @property
    def reads_memory_once(self) -> bool:
        """Whether it reads its memory limit only when it starts."""
        return self.kind in ("Java", "Node") or self.heap_percent is not None
