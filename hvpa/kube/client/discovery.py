"""Where an API server serves a custom kind, and whether the kind can be scaled."""

from __future__ import annotations

import msgspec

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport


class _Served(msgspec.Struct):
    """A resource or subresource, as `metav1.APIResourceList` lists it."""

    name: str = ""
    kind: str = ""


class _List(msgspec.Struct):
    resources: list[_Served] = []


class NotScalable(Exception):
    """A kind is not served, or has no `scale` subresource."""


async def plural_of(transport: Transport, api_version: str, kind: str) -> str:
    """The plural of a custom kind with a `scale` subresource. Example: `rollouts` of Rollout. Raises NotScalable,
    ApiError and Unreachable."""
    try:
        response = await transport.request("GET", f"/apis/{api_version}")
    except ApiError as error:
        if error.status == 404:
            raise NotScalable(f"the cluster does not serve {api_version}") from error
        raise
    try:
        served = _decode(response).resources
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreachable(f"what the cluster serves of {api_version} can't be read: {error}") from error
    plural = next((one.name for one in served if one.kind == kind and "/" not in one.name), None)
    if plural is None:
        raise NotScalable(f"the cluster serves no {kind} of {api_version}")
    if f"{plural}/scale" not in {one.name for one in served}:
        raise NotScalable(f"{plural} of {api_version} have no scale subresource")
    return plural


_decode = msgspec.json.Decoder(_List).decode
