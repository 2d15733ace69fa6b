"""Discovery: resources and subresources of an API version. Every user may read them."""

from __future__ import annotations

from typing import Final

import msgspec

from hvpa.kube.client.errors import decoded
from hvpa.kube.client.transport import Transport

CORE: Final = "/api/v1"
RESIZE: Final = "pods/resize"


class Served(msgspec.Struct):
    """A resource or subresource in a `metav1.APIResourceList`, for example `deployments/scale` of kind Scale."""

    name: str = ""
    kind: str = ""


class _List(msgspec.Struct):
    resources: list[Served] = []


_decode = msgspec.json.Decoder(_List).decode


async def served(transport: Transport, path: str) -> list[Served]:
    """The resources of an API version, for example at `/apis/apps/v1`. Raises ApiError and Unreachable."""
    return decoded(
        _decode, await transport.request("GET", path), f"the API resource list at {path}"
    ).resources


async def resizes_pods(transport: Transport) -> bool:
    """Whether the API server can resize pods (since Kubernetes 1.33, unless its feature gate is off).

    A list without pods is inconclusive and counts as yes. Raises ApiError and Unreachable.
    """
    names = {resource.name for resource in await served(transport, CORE)}
    return RESIZE in names or "pods" not in names
