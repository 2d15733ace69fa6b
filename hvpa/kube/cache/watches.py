"""All reflectors of an operator, as one: started together, ready when every one of them is."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hvpa.api.values.timestamp import format_timestamp
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.reflector import Reflector
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import OPTIONAL, WATCHED
from hvpa.reconcile.ports import Clock
from hvpa.reconcile.telemetry import Telemetry


class Watches:
    """One reflector per resource and scope."""

    def __init__(
        self,
        transport: Transport,
        local: LocalCluster,
        scopes: Collection[str],
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._local = local
        self._clock = clock
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

    def problems(self) -> list[str]:
        """What is not listed, out of date or not served (some need not be), since when and why; one entry for each
        resource. Without names and addresses: anybody may read it."""
        found: dict[str, str] = {}
        for one in self.reflectors:
            if (problem := self._problem(one)) is not None:
                found.setdefault(one.resource.plural, problem)
        return [f"{plural}: {problem}" for plural, problem in found.items()]

    def last_success(self) -> Mapping[str, float]:
        """When list or watch last succeeded, in seconds since 1970, by resource: the oldest of its scopes; 0 where it
        never did. Without what a cluster need not serve where it doesn't."""
        found: dict[str, float] = {}
        for one in self.reflectors:
            if one.resource in OPTIONAL and one.state == "not served":
                continue
            since = self._since(one)
            seconds = 0.0 if since is None else since.timestamp()
            found[one.resource.plural] = min(seconds, found.get(one.resource.plural, seconds))
        return found

    def _problem(self, one: Reflector[Any]) -> str | None:
        why = one.freshness.problem
        if one.state == "not served":
            return None if one.resource in OPTIONAL else "not served by the cluster"
        if one.state == "starting":
            return "not listed yet" if why is None else f"not listed yet: {why}"
        since = self._since(one)
        if not one.freshness.stale or since is None:
            return None
        return f"out of date since {format_timestamp(since.replace(microsecond=0))}: {why}"

    def _since(self, one: Reflector[Any]) -> dt.datetime | None:
        """When the reflector last succeeded."""
        at = one.freshness.succeeded_at
        return None if at is None else self._clock.now() - dt.timedelta(seconds=time.monotonic() - at)

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is tried whenever a reflector's state changes."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _on_state(self) -> None:
        for resource in OPTIONAL:
            states = {one.state for one in self.reflectors if one.resource is resource}
            if states != {"starting"}:
                self._local.set_served(resource, states != {"not served"})
        self._changed.set()
