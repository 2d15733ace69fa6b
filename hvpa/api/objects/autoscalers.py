"""Read-models of the recommenders: HorizontalPodAutoscaler (autoscaling/v2) and VerticalPodAutoscaler
(autoscaling.k8s.io/v1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import msgspec

from hvpa.api.objects.meta import Condition, Count, Instant, Int, Meta, Quantity, ReadModel, ResourceList


class ObjectReference(ReadModel, frozen=True):
    """A reference to an object of the same namespace."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricName(ReadModel, frozen=True):
    """Name of a custom or external metric, and the label selector that narrows it (`metav1.LabelSelector`, as it is on
    the wire)."""

    name: str = ""
    selector: dict[str, Any] | None = None


class MetricValue(ReadModel, frozen=True):
    """A metric's target (spec) or current value (status): exactly one of the values is set."""

    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int | None = None


class MetricSource(ReadModel, frozen=True):
    """Any of the five metric sources, as target (`target`) or as measurement (`current`)."""

    name: str = ""
    container: str = ""
    metric: MetricName = MetricName()
    described_object: ObjectReference | None = None
    target: MetricValue = MetricValue()
    current: MetricValue = MetricValue()


class Metric(ReadModel, frozen=True):
    """An entry of `spec.metrics` or `status.currentMetrics`."""

    type: str = ""
    resource: MetricSource | None = None
    container_resource: MetricSource | None = None
    pods: MetricSource | None = None
    object: MetricSource | None = None
    external: MetricSource | None = None

    def source(self) -> MetricSource | None:
        """The source that `type` names; None for the empty entry that the HPA leaves for a metric without a value."""
        for source in (self.resource, self.container_resource, self.pods, self.object, self.external):
            if source is not None:
                return source
        return None


class HpaScalingPolicy(ReadModel, frozen=True):
    """How much may change in a period: `value` pods or percent, by `type` (Pods or Percent)."""

    type: str = ""
    value: Int = 0
    period_seconds: Int = 0


class HpaScalingRules(ReadModel, frozen=True):
    """A direction of `spec.behavior`. None is what nobody set and the API server would fill in."""

    stabilization_window_seconds: Int | None = None
    select_policy: str | None = None
    policies: list[HpaScalingPolicy] | None = None
    tolerance: Quantity | None = None


class HpaBehavior(ReadModel, frozen=True):
    """`spec.behavior`."""

    scale_up: HpaScalingRules | None = None
    scale_down: HpaScalingRules | None = None


class HpaSpecRead(ReadModel, frozen=True):
    """An HPA's spec."""

    scale_target_ref: ObjectReference = ObjectReference()
    min_replicas: Count = 1
    max_replicas: Count = 1
    metrics: list[Metric] = []
    behavior: HpaBehavior | None = None


class HpaStatusRead(ReadModel, frozen=True):
    """An HPA's status."""

    current_replicas: Count = 0
    desired_replicas: Count = 0
    current_metrics: list[Metric] | None = None
    conditions: list[Condition] | None = None
    last_scale_time: Instant | None = None


_hpa_spec = lru_cache(maxsize=16)(msgspec.json.Decoder(HpaSpecRead).decode)
"""A simulation reads the same spec at each step, and knows by the object that it is the same; `hvpa.kube` keeps specs
itself."""


class Hpa(ReadModel, frozen=True):
    """A HorizontalPodAutoscaler. The spec is kept as bytes, so that it can be compared with its template whole."""

    metadata: Meta
    raw_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")
    status: HpaStatusRead = HpaStatusRead()

    @property
    def spec(self) -> HpaSpecRead:
        """The decoded spec."""
        return _hpa_spec(bytes(self.raw_spec))


class ContainerRecommendation(ReadModel, frozen=True):
    """A VPA's recommendation for one container."""

    container_name: str
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}
    uncapped_target: ResourceList = {}


class Recommendation(ReadModel, frozen=True):
    """A VPA's recommendation."""

    container_recommendations: list[ContainerRecommendation] | None = None


class VpaContainerPolicy(ReadModel, frozen=True):
    """A container policy of `spec.resourcePolicy`."""

    container_name: str = ""
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: list[str] | None = None
    controlled_values: str = "RequestsAndLimits"


class VpaResourcePolicy(ReadModel, frozen=True):
    """`spec.resourcePolicy` of a VPA."""

    container_policies: list[VpaContainerPolicy] = []


class VpaUpdatePolicy(ReadModel, frozen=True):
    """`spec.updatePolicy` of a VPA."""

    update_mode: str = ""


class VpaRecommender(ReadModel, frozen=True):
    """A recommender by its name."""

    name: str = ""


class VpaSpecRead(ReadModel, frozen=True):
    """A VPA's spec."""

    target_ref: ObjectReference = ObjectReference()
    update_policy: VpaUpdatePolicy | None = None
    resource_policy: VpaResourcePolicy | None = None
    recommenders: list[VpaRecommender] | None = None
    """Those that are to recommend; none: the default one."""

    def policy(self, container: str) -> VpaContainerPolicy:
        """The container's policy by `policies_by_name`."""
        return policies_by_name(self.resource_policy.container_policies if self.resource_policy else ())(
            container
        )


class _Named(Protocol):
    @property
    def container_name(self) -> str | None: ...


P = TypeVar("P", bound=_Named)


def policies_by_name(found: Sequence[P]) -> Callable[[str], P | VpaContainerPolicy]:
    """Finds a container's policy: its own, the first there is, else the last one of `*`, else the default."""
    own = {policy.container_name: policy for policy in reversed(found)}
    default = next((one for one in reversed(found) if one.container_name == "*"), VpaContainerPolicy())
    return lambda container: own.get(container, default)


class VpaStatusRead(ReadModel, frozen=True):
    """A VPA's status."""

    recommendation: Recommendation | None = None
    conditions: list[Condition] | None = None


_vpa_spec = lru_cache(maxsize=16)(msgspec.json.Decoder(VpaSpecRead).decode)
"""See `_hpa_spec`."""


class StatusWrite(ReadModel, frozen=True):
    """A `metadata.managedFields` entry, reduced to when it was made and whether it is one of the status."""

    subresource: str = ""
    time: Instant | None = None


class VpaMeta(Meta, frozen=True):
    """`metadata` of a VPA, with when its status was written."""

    managed_fields: list[StatusWrite] = []

    def written_at(self) -> dt.datetime | None:
        """When the status was last changed; None where nobody says."""
        found = [
            one.time for one in self.managed_fields if one.subresource == "status" and one.time is not None
        ]
        return max(found, default=None)


class Vpa(ReadModel, frozen=True):
    """A VerticalPodAutoscaler; the spec is kept as bytes, as the HPA's."""

    metadata: VpaMeta
    raw_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")
    status: VpaStatusRead = VpaStatusRead()

    @property
    def spec(self) -> VpaSpecRead:
        """The decoded spec."""
        return _vpa_spec(bytes(self.raw_spec))
