"""Usage of containers, as the metrics API (`metrics.k8s.io`, which metrics-server serves) reports it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from hvpa.api.objects.read_models import Meta
from hvpa.api.values.quantity import RESOURCES, QuantityError, Resource, parse_resource
from hvpa.kube.client.errors import decoded
from hvpa.kube.client.paths import escaped_path
from hvpa.kube.client.transport import Transport

METRICS_TIMEOUT: Final = 5.0
"""Seconds. The timeout is short because resizes wait for it; without a response they proceed as if no usage were
known."""

Usage = Mapping[tuple[str, str], Mapping[Resource, int]]
"""Millicores and bytes by pod and container."""


class _Container(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class PodMetrics(msgspec.Struct):
    """The usage of a pod."""

    metadata: Meta
    containers: list[_Container] = []

    def used(self) -> dict[str, dict[Resource, int]]:
        """Millicores and bytes by container; unknown values are omitted."""
        by_container: dict[str, dict[Resource, int]] = {}
        for container in self.containers:
            used = by_container[container.name] = {}
            for resource in RESOURCES:
                with suppress(KeyError, QuantityError):
                    used[resource] = parse_resource(resource, container.usage[resource])
        return by_container


class _PodMetricsList(msgspec.Struct):
    items: list[PodMetrics] = []


_decode = msgspec.json.Decoder(_PodMetricsList).decode


async def read_usage(transport: Transport, namespace: str, selector: str) -> Usage:
    """The last measured usage of the pods that a label selector matches; unknown values are omitted.

    Raises ApiError and Unreachable.
    """
    path = escaped_path("apis", "metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods")
    response = await transport.request(
        "GET", path, {"labelSelector": selector}, None, METRICS_TIMEOUT, "list"
    )
    return {
        (pod.metadata.name, container): used
        for pod in decoded(_decode, response, "the list of pods' metrics").items
        for container, used in pod.used().items()
    }
