"""What pods use at present, by the metrics API (`metrics.k8s.io`, which metrics-server serves)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import structlog

from hvpa.api.objects.read_models import Meta
from hvpa.api.values.quantity import QuantityError, parse_memory
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
TIMEOUT = 5.0
"""Seconds. Resizes wait for it, so it is short; without an answer they are made as if nothing were measured."""


class _Usage(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class _PodMetrics(msgspec.Struct):
    metadata: Meta
    containers: list[_Usage] = []


class _List(msgspec.Struct):
    items: list[_PodMetrics] = []


_decode = msgspec.json.Decoder(_List).decode


async def memory_in_use(transport: Transport, namespace: str, selector: str) -> Mapping[tuple[str, str], int]:
    """The memory in bytes that containers of the pods that a label selector matches used when they were last measured,
    by pod and container. What can't be read is left out; empty where there is no metrics API. Never raises."""
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
    try:
        response = await transport.request(
            "GET", path, {"labelSelector": selector}, timeout=TIMEOUT, verb="list"
        )
        pods = _decode(response).items
    except (ApiError, Unreachable, msgspec.MsgspecError, ValueError, RecursionError) as error:
        log.debug("memory in use is not known", namespace=namespace, error=str(error))
        return {}
    found: dict[tuple[str, str], int] = {}
    for pod in pods:
        for one in pod.containers:
            try:
                found[pod.metadata.name, one.name] = parse_memory(one.usage["memory"])
            except (KeyError, QuantityError):
                continue
    return found
