"""The objects of a soak: Hvpas of three classes with their workloads, and their recommenders' statuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import (
    HORIZONTAL_ONLY,
    VERTICAL_ONLY,
    ago,
    condition,
    deployment,
    entry,
    hvpa,
    merged,
    weight,
)
from tests.e2e.soak.plan import LEAST, MOST

SPACES = 5
"""Namespaces that the Hvpas are spread over."""
REPLICAS, CPU = 2, 500
"""What a new workload has: replicas, and millicores of each."""
PER_POD = 100
"""The HPA's target: so much of an external metric for each pod."""
Class = Literal["horizontal", "vertical", "both"]
Place = tuple[str, str]
"""Namespace and name."""
METRIC = {"metric": {"name": "demand"}}
TARGET = {"target": {"type": "AverageValue", "averageValue": str(PER_POD)}}


@dataclass(frozen=True, slots=True)
class Role:
    """One Hvpa and the workload of the same name. Where only one axis is scaled, what it ends at does not depend on the
    way there: the last desired replicas or target. On both, each step goes half of the way."""

    number: int

    @property
    def name(self) -> str:
        """Name of the Hvpa and of the workload."""
        return f"app-{self.number}"

    @property
    def namespace(self) -> str:
        """Where they are."""
        return f"soak-{self.number % SPACES}"

    @property
    def kind(self) -> str:
        """The workload's kind."""
        return "StatefulSet" if self.number % 7 == 3 else "Deployment"

    @property
    def axes(self) -> Class:
        """What is scaled."""
        classes: tuple[Class, ...] = ("horizontal", "vertical", "both")
        return classes[self.number % 3]

    def workload(self) -> Json:
        """A new workload."""
        made = deployment(self.name, self.namespace, REPLICAS, self.kind)
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{CPU}m"}}
        return made

    def hvpa(self) -> Json:
        """A new Hvpa."""
        changes = {"horizontal": HORIZONTAL_ONLY, "vertical": VERTICAL_ONLY, "both": weight(50)}[self.axes]
        made = hvpa(self.name, self.namespace, None, self.kind)
        spec = {
            "minReplicas": LEAST,
            "maxReplicas": MOST,
            "metrics": [{"type": "External", "external": METRIC | TARGET}],
        }
        made["spec"]["hpa"]["template"]["spec"] = spec
        made["spec"] = merged(made["spec"], changes)
        return made


def place_of(namespace: str, name: str) -> Place:
    """Of which Hvpa an object is: its own name, or one that begins with it (its HPA's or VPA's where that name was
    taken, an Event's)."""
    own = re.match("app-[0-9]+", name)
    return namespace, own.group() if own else name


def hpa_status(desired: int) -> Json:
    """The status of an HPA that wants so many replicas: its measurement calls for that count at any present one."""
    current = {"averageValue": str(PER_POD * desired)}
    return {
        "currentReplicas": 1,
        "desiredReplicas": desired,
        "currentMetrics": [{"type": "External", "external": METRIC | {"current": current}}],
        "conditions": [condition("ScalingActive", "True", "ValidMetricFound")],
    }


def vpa_status(target: int) -> Json:
    """The status of a VPA that recommends so many millicores."""
    provided = condition("RecommendationProvided", "True", "", ago(hours=2))
    containers = [entry("app", {"cpu": f"{target}m"})]
    return {"conditions": [provided], "recommendation": {"containerRecommendations": containers}}


def workload_status(workload: Json) -> Json:
    """The status that a workload's controller writes when all its pods are updated and available."""
    count = workload["spec"]["replicas"]
    return {
        "observedGeneration": workload["metadata"]["generation"],
        "replicas": count,
        "updatedReplicas": count,
        "readyReplicas": count,
        "availableReplicas": count,
    }
