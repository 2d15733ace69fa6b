"""Keeps the workloads of custom kinds up to date: each one's `scale` subresource is read every PERIOD, as
kube-controller-manager reads that of an HPA's target, and at once when an Hvpa first names it.

That takes the right to `get` this subresource, and none on the objects themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import msgspec
import structlog

from hvpa.api.objects.read_models import Workload
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.targeting import Target
from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import custom

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

PERIOD: Final = 15.0
"""Seconds between two reads of a workload."""
AT_ONCE: Final = 8
"""Reads that are under way at once."""


class NotScalable(Exception):
    """A kind is not served, or has no `scale` subresource."""


class Scales:
    """Reads the targets of custom kinds that Hvpas name."""

    def __init__(self, transport: Transport, local: LocalCluster, period: float = PERIOD) -> None:
        self._transport = transport
        self._local = local
        self._period = period
        self._named = asyncio.Event()
        self._known: set[Target] = set()
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def named(self) -> None:
        """An Hvpa names another target."""
        self._named.set()

    async def run(self) -> None:
        """Read for ever."""
        due = 0.0
        while True:
            self._named.clear()
            targets = dict(self._local.custom_targets())
            if time.monotonic() >= due:
                due, self._known = time.monotonic() + self._period, set()
            wanted = [one for one in targets if one not in self._known]
            await asyncio.gather(*[self._read(one, targets[one]) for one in wanted])
            self._known.update(wanted)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - time.monotonic()):
                    await self._named.wait()

    async def _read(self, target: Target, api_version: str) -> None:
        async with self._at_once:
            try:
                found = await read(self._transport, self._local, target, api_version)
            except (ApiError, Unreachable, NotScalable) as error:
                log.debug("target can't be read", kind=target.kind, target=target.name, error=str(error))
                self._local.set_custom(target, None, str(error))
            else:
                self._local.set_custom(target, found)


async def read(
    transport: Transport, local: LocalCluster, target: Target, api_version: str
) -> Workload | None:
    """A workload of a custom kind; None where it does not exist. Raises NotScalable, ApiError and Unreachable."""
    resource = local.custom.get(target.kind)
    if resource is None or resource.api != f"/apis/{api_version}":
        kind = target.kind.partition(".")[0]
        resource = custom(api_version, kind, await _plural_of(transport, api_version, kind))
        local.custom[target.kind] = resource
    try:
        response = await transport.request("GET", resource.path(target.namespace, target.name, "scale"))
    except ApiError as error:
        if error.status != 404:
            raise
        if not error.is_of_an_object:
            del local.custom[target.kind]  # the kind is served no longer, or elsewhere
        return None
    return decoded(resource.decode, response, f"the scale of {target.kind} {target.name}")


# --- discovery --------------------------------------------------------------------------------------------------------
class _Served(msgspec.Struct):
    """A resource or subresource, as `metav1.APIResourceList` lists it."""

    name: str = ""
    kind: str = ""


class _List(msgspec.Struct):
    resources: list[_Served] = []


_decode = msgspec.json.Decoder(_List).decode


async def _plural_of(transport: Transport, api_version: str, kind: str) -> str:
    """The plural of a custom kind with a `scale` subresource. Example: `rollouts` of Rollout. Raises NotScalable,
    ApiError and Unreachable."""
    try:
        response = await transport.request("GET", f"/apis/{api_version}")
    except ApiError as error:
        if error.status == 404:
            raise NotScalable(f"the cluster does not serve {api_version}") from error
        raise
    served = decoded(_decode, response, f"what the cluster serves of {api_version}").resources
    plural = next((one.name for one in served if one.kind == kind and "/" not in one.name), None)
    if plural is None:
        raise NotScalable(f"the cluster serves no {kind} of {api_version}")
    if f"{plural}/scale" not in {one.name for one in served}:
        raise NotScalable(f"{plural} of {api_version} have no scale subresource")
    return plural
