"""All reflectors of an operator, as one: started together, ready when every one of them is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from hvpa.kube.local import LocalCluster
from hvpa.kube.reflector import Reflector, ReflectorTelemetry
from hvpa.kube.resources import HVPAS, VPAS, WATCHED
from hvpa.kube.transport import Transport


class Watches:
    """One reflector per resource and scope."""

    def __init__(
        self,
        transport: Transport,
        local: LocalCluster,
        scopes: Collection[str],
        telemetry: ReflectorTelemetry,
    ) -> None:
        self._local = local
        self._changed = asyncio.Event()
        self.reflectors: list[Reflector[Any]] = [
            Reflector(transport, resource, scope, local.store(resource), telemetry, self._on_state)
            for resource in WATCHED
            for scope in scopes
        ]

    async def run(self) -> None:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(
                    reflector.run(), name=f"watch {reflector.resource.plural} {reflector.scope}"
                )

    def synced(self) -> bool:
        """Whether everything that is served has been listed."""
        return all(reflector.state != "starting" for reflector in self.reflectors)

    def healthy(self) -> bool:
        """Whether no reflector is stuck."""
        return all(reflector.healthy() for reflector in self.reflectors)

    def hvpas_served(self) -> bool:
        """Whether the cluster knows Hvpas (False only when it said that it does not)."""
        return all(one.state != "not served" for one in self.reflectors if one.resource is HVPAS)

    def problems(self) -> dict[str, str]:
        """What is wrong, by resource."""
        return {one.resource.plural: one.problem for one in self.reflectors if one.problem is not None}

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is tried whenever a reflector's state changes."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _on_state(self) -> None:
        vpas = [one for one in self.reflectors if one.resource is VPAS]
        if any(one.state != "starting" for one in vpas):
            self._local.set_vpa_served(any(one.state != "not served" for one in vpas))
        self._changed.set()
