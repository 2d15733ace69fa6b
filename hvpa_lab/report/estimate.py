"""A VPA for a workload without one, as the VPA's recommender would write it if the known usage were all usage.

It exists in memory only. From the present usage it lacks a load that is larger at other times, so every figure is a
snapshot; from the usage of the past (`hvpa_lab.prometheus`) it has that load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from hvpa.api.objects.read_models import Vpa, Workload
from hvpa.api.values.quantity import MIB, RESOURCES, Resource, format_resource
from hvpa.kube.objects.resources import VPAS
from hvpa_lab.recommend.vpa.settings import VpaSettings
from hvpa_lab.report.surroundings import ContainerUsage

NAME: Final = "estimate.report.hvpa.autoscaling.k8s.io"
"""The VPA's name. A VPA of the cluster with this name would be read instead, by its owner's choice."""
_FLAGS: Final = VpaSettings()


def estimated_vpa(workload: Workload, usage: Sequence[ContainerUsage]) -> Vpa | None:
    """The VPA, or None if no usage of the workload's containers is known.

    A container's target is the highest usage of a pod plus the recommender's margin, and at least its minimum. Example:
    pods that use 200m and 300m make 345m.
    """
    containers = workload.spec.template.spec.containers
    targets = {container.name: _target(container.name, usage, len(containers)) for container in containers}
    entries = [{"containerName": name, "target": target} for name, target in targets.items() if target]
    if not entries:
        return None
    meta = workload.metadata
    document = {
        "metadata": {"name": NAME, "namespace": meta.namespace},
        "spec": {
            "targetRef": {"apiVersion": workload.api_version, "kind": workload.kind, "name": meta.name},
            "updatePolicy": {"updateMode": "Off"},
        },
        "status": {
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
            "recommendation": {"containerRecommendations": entries},
        },
    }
    return VPAS.decode(msgspec.json.encode(document))


def _target(container: str, usage: Sequence[ContainerUsage], containers: int) -> dict[str, str]:
    target = {}
    for resource in RESOURCES:
        used = [pod[container][resource] for pod in usage if resource in pod.get(container, {})]
        if used:
            least = _least(resource) / containers
            value = round(max(least, max(used) * (1 + _FLAGS.safety_margin)))
            target[str(resource)] = format_resource(resource, value)
    return target


def _least(resource: Resource) -> float:
    """The recommender's minimum for a whole pod."""
    return _FLAGS.pod_min_cpu_millicores if resource == "cpu" else _FLAGS.pod_min_memory_mb * MIB
