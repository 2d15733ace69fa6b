"""The served versions of Hvpa, if the cluster does not serve ours."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from hvpa.kube.client.discovery import served
from hvpa.kube.client.errors import UNREADABLE, ApiError, Unreachable
from hvpa.kube.client.paths import escaped_path
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import HVPAS

GROUP, OURS = HVPAS.api.rsplit("/", 1)
MOST: Final = 10
"""Maximum number of versions to request."""


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Version] = []


async def other_version(transport: Transport) -> str | None:
    """The message if the cluster serves Hvpas only in other versions; None if it serves none, or discovery fails.

    Every user may read this.
    """
    try:
        group = msgspec.json.decode(await transport.request("GET", GROUP), type=_Group)
        names = [version.version for version in group.versions if version.version != OURS][:MOST]
        served_resources = await asyncio.gather(
            *(served(transport, GROUP + escaped_path(name)) for name in names)
        )
    except (ApiError, Unreachable, *UNREADABLE):
        return None
    versions = [
        name
        for name, resources in zip(names, served_resources, strict=True)
        if any(resource.name == HVPAS.plural for resource in resources)
    ]
    if not versions:
        return None
    use = "use an hvpa of that version" if len(versions) == 1 else "use an hvpa of one of these versions"
    return f"the cluster serves Hvpas as {' and '.join(versions)} only, but this hvpa supports {OURS}: {use}"
