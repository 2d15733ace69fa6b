"""Keeps workloads of custom kinds up to date by reading their `scale` subresource.

HVPA reads each workload every PERIOD, as kube-controller-manager does for an HPA's target, and at once when an Hvpa
first names it. This requires the right to `get` the subresource and no right on the objects themselves. Namespaces
are read in parallel: none waits for many workloads or a slow API of another namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import structlog

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.names import is_label
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import CustomTarget
from hvpa.kube.cache.store import is_older
from hvpa.kube.client.discovery import served
from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.paths import PathError, api_path
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import custom_resource
from hvpa.reconcile.supervision import Supervisor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

PERIOD: Final = 15.0
"""Seconds between two reads of a workload."""
AT_ONCE: Final = 8
"""Maximum concurrent reads."""
AT_ONCE_EACH: Final = 2
"""Maximum concurrent reads per namespace, to leave capacity for the others."""


class NotScalable(Exception):
    """The kind is not served, or has no `scale` subresource."""


class Scales:
    """Reads the targets of custom kinds that Hvpas name."""

    def __init__(
        self,
        transport: Transport,
        local: LocalCluster,
        period: float = PERIOD,
        supervisor: Supervisor | None = None,
        on_set_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._transport = transport
        self._supervisor = supervisor or Supervisor()
        self._on_set_back = on_set_back
        self._local = local
        self._period = period
        self._named = asyncio.Event()
        self._wake: dict[str, asyncio.Event] = {}
        """By namespace that is being read."""
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def named(self, namespace: str) -> None:
        """Note that an Hvpa of this namespace names another target."""
        self._wake.get(namespace, self._named).set()

    async def run(self) -> None:
        """Read forever."""
        self._wake.clear()
        async with asyncio.TaskGroup() as group:
            while True:
                self._named.clear()
                for namespace in self._local.custom.namespaces - self._wake.keys():
                    self._wake[namespace] = asyncio.Event()
                    read = partial(self._read_namespace, namespace)
                    group.create_task(self._supervisor.keep("read custom kinds of a namespace", read))
                await self._named.wait()

    async def _read_namespace(self, namespace: str) -> None:
        """Read the targets of a namespace as long as it has any."""
        wake, due, known = self._wake[namespace], 0.0, set[CustomTarget]()
        while targets := self._local.custom.of(namespace):
            wake.clear()
            if time.monotonic() >= due:
                due, known = time.monotonic() + self._period, set()
            left = iter([custom for custom in targets if custom not in known])

            async def one_after_another(left: Iterator[CustomTarget] = left) -> None:
                for custom in left:
                    await self._read(custom)

            await asyncio.gather(*[one_after_another() for _ in range(AT_ONCE_EACH)])
            known.update(targets)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - time.monotonic()):
                    await wake.wait()
        del self._wake[namespace]

    async def _read(self, custom: CustomTarget) -> None:
        async with self._at_once:
            before = self._local.custom_workload(custom.target)
            try:
                workload = await read_scale(self._transport, self._local, custom)
                if (
                    workload is not None
                    and before is not None
                    and is_older(_version(workload), _version(before))
                ):
                    # A read is consistent, so the state known before belongs to a lost state of the cluster.
                    self._local.set_custom(custom, None)
                    self._on_set_back()
                self._local.set_custom(custom, workload)
            except (ApiError, Unreachable, NotScalable, PathError) as error:
                log.debug(
                    "target can't be read", kind=custom.kind, target=custom.target.name, error=str(error)
                )
                self._local.set_custom(custom, None, str(error))
            except Exception as error:  # of a single target: the others are still read
                self._supervisor.failed("read a workload of a custom kind", error)
                self._local.set_custom(custom, None, f"internal error: {type(error).__name__}")


def _version(workload: Workload) -> str:
    return workload.metadata.resource_version


async def read_scale(transport: Transport, local: LocalCluster, custom: CustomTarget) -> Workload | None:
    """A workload of a custom kind; None if it does not exist. Raises NotScalable, ApiError and Unreachable."""
    named = (custom.api_version, custom.kind)
    resource = local.custom.resources.get(named)
    if resource is None:
        plural = await _plural_of(transport, custom.api_version, custom.kind)
        resource = local.custom.resources[named] = custom_resource(custom.api_version, custom.kind, plural)
    namespace, kind, name = custom.target
    try:
        response = await transport.request("GET", resource.path(namespace, name, "scale"))
    except ApiError as error:
        if error.status != 404:
            raise
        if error.is_of_an_object:
            return None
        if local.custom.resources.get(named) is resource:  # another read may have noticed it as well
            del local.custom.resources[named]
        raise NotScalable(f"the cluster serves no {custom.kind} of {custom.api_version} any more") from error
    workload = decoded(resource.decode, response, f"the scale of {kind} {name}")
    if (workload.metadata.namespace, workload.metadata.name) != (namespace, name):
        raise Unreachable(f"the scale of {kind} {name} can't be read: it is another object's")
    return workload


# --- discovery --------------------------------------------------------------------------------------------------------
async def _plural_of(transport: Transport, api_version: str, kind: str) -> str:
    """The plural of a custom kind with a `scale` subresource, for example `rollouts` for Rollout.

    Raises NotScalable, ApiError and Unreachable.
    """
    try:
        resources = await served(transport, api_path(api_version))
    except ApiError as error:
        if error.status == 404:
            raise NotScalable(f"the cluster does not serve {api_version}") from error
        raise
    plural = next(
        (resource.name for resource in resources if resource.kind == kind and is_label(resource.name)), None
    )
    if plural is None:
        raise NotScalable(f"the cluster serves no {kind} of {api_version}")
    if f"{plural}/scale" not in {resource.name for resource in resources}:
        raise NotScalable(f"{plural} of {api_version} have no scale subresource")
    return plural
