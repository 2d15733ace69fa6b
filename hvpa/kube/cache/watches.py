"""All reflectors of an operator: started together, ready when every reflector is."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from hvpa.api.values.timestamp import format_timestamp
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import NOT_YET
from hvpa.kube.cache.reflector import Reflector, Reports, WatchState
from hvpa.kube.cache.scales import Scales
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.targeting import Target
from hvpa.kube.client.discovery import resizes_pods
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import (
    CHECKPOINTS,
    CLUSTER_POLICIES,
    CLUSTER_WIDE,
    FOR_POLICIES,
    HVPA_POLICIES,
    NODES,
    ON_DEMAND,
    OPTIONAL,
    VPAS,
    WATCHED,
    ApiResource,
)
from hvpa.reconcile.ports import TimeSource
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LOOK: Final = 15.0
"""Seconds between two checks for silent recommenders, whose default period is a minute."""

ROUND: Final = 60.0
"""Seconds to wait for reflectors that could not list since the cluster was set back."""
CHECKS: Final = 10.0
"""Minimum seconds between two checks of the server's versions after conflicts."""

UPGRADE: Final = 600.0
"""Seconds between two checks whether the API server can resize pods."""
RETRY: Final = 2.0
"""Seconds until the next check if there was no response."""

_MAY_LACK: Final = (*OPTIONAL, *FOR_POLICIES)
"""Resources that need not be served."""


class Watches(Reports):
    """The reflectors, per resource and scope."""

    def __init__(
        self,
        transport: Transport,
        local: LocalCluster,
        scopes: Collection[str],
        telemetry: Telemetry,
        clock: TimeSource,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._transport = transport
        self._local = local
        self._scopes = scopes
        self._clock = clock
        self._changed = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._supervisor = supervisor or Supervisor(telemetry)
        self._scales = Scales(transport, local, supervisor=self._supervisor, on_set_back=self.set_back)
        self._relisting: set[Reflector[Any]] = set()
        """Reflectors that have not listed since the cluster was set back."""
        self._set_back_at = 0.0
        self._conflicted = asyncio.Event()
        self._has_looked = False
        """Whether the operator has found out if pods can be resized."""

        def watch(resource: ApiResource[Any]) -> list[Reflector[Any]]:
            store, within = local.store(resource), (ALL_NAMESPACES,) if resource in CLUSTER_WIDE else scopes
            return [Reflector(transport, resource, scope, store, telemetry, self) for scope in within]

        self._reflectors_of = watch
        self.reflectors: list[Reflector[Any]] = [
            reflector for resource in WATCHED for reflector in watch(resource)
        ]
        for resource in ON_DEMAND:
            local.set_unlisted(resource.kind, NOT_YET)
        local.on_named = self._on_named
        local.nodes.on_wanted = partial(self._watch_too, NODES)
        local.policies.on_wanted = self._watch_once

    async def run(self) -> None:
        """Watch forever."""
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._supervisor.keep("read workloads of custom kinds", self._scales.run))
            self._group.create_task(
                self._supervisor.keep("look for silent recommenders", self._note_silences)
            )
            self._group.create_task(self._supervisor.keep("compare versions", self._compare))
            self._group.create_task(
                self._supervisor.keep("look whether pods can be resized", self._note_resizes)
            )
            for reflector in self.reflectors:
                self._begin(reflector)

    async def _note_silences(self) -> None:
        """Check forever whether the VPA's recommender saves its checkpoints, as long as the checkpoints arrive here."""
        while True:
            read = [reflector for reflector in self.reflectors if reflector.resource in (VPAS, CHECKPOINTS)]
            if all(
                reflector.state != "starting" and reflector.freshness.problem is None for reflector in read
            ):
                self._local.note_silences(self._clock.now())
            await asyncio.sleep(LOOK)

    async def _note_resizes(self) -> None:
        """Check forever whether the API server can resize pods: its version may change."""
        while True:
            if await self._looked():
                self._has_looked = True
                self._changed.set()
            await asyncio.sleep(UPGRADE if self._has_looked else RETRY)

    async def _looked(self) -> bool:
        """Whether the question is settled: the API server reported whether it can resize pods, or never will (403,
        404).

        If it never will, HVPA assumes that it can; a resize that it can't do then fails with a message.
        """
        try:
            self._local.set_resizes_pods(await resizes_pods(self._transport))
        except (ApiError, Unreachable) as error:
            log.info("the API server does not report whether it can resize pods", error=str(error))
            return isinstance(error, ApiError) and error.status in (403, 404)
        return True

    def _begin(self, reflector: Reflector[Any]) -> None:
        assert self._group is not None
        self._group.create_task(self._supervisor.keep(reflector.task, reflector.run, reflector.crashed))

    def _on_named(self, target: Target) -> None:
        """Watch the kind of a workload that an Hvpa names, if it is not watched yet."""
        self._scales.named(target.namespace)
        resource = next((candidate for candidate in ON_DEMAND if candidate.kind == target.kind), None)
        if resource is not None:
            self._watch_once(resource)

    def _watch_once(self, resource: ApiResource[Any]) -> None:
        """Watch a resource, if it is not watched yet."""
        if all(reflector.resource is not resource for reflector in self.reflectors):
            self._watch_too(resource)

    def watch_policies(self) -> None:
        """Watch policies; those of the whole cluster only if all namespaces are watched."""
        self._watch_too(HVPA_POLICIES)
        if ALL_NAMESPACES in self._scopes:
            self._watch_too(CLUSTER_POLICIES)

    def _watch_too(self, resource: ApiResource[Any]) -> None:
        """Watch a resource that is not watched from the start."""
        added = self._reflectors_of(resource)
        self.reflectors += added
        if self._group is not None:
            for reflector in added:
                self._begin(reflector)

    # --- a cluster that is set back -----------------------------------------------------------------------------------
    def set_back(self, reflector: Reflector[Any] | None = None) -> None:
        """Make all reflectors list again after the cluster was set back to an earlier state.

        `reflector` noticed it; None if another client of this process did.
        """
        now = time.monotonic()
        if self._relisting and now - self._set_back_at < ROUND:
            return  # already handled: this reflector lists again because of it
        log.warning(
            "the cluster was set back to an earlier state, for example by a restore of etcd: listing everything again"
        )
        self._set_back_at = now
        self._relisting = {
            other for other in self.reflectors if other is not reflector and other.state == "synced"
        }
        for other in self._relisting:
            other.relist()

    def conflicted(self) -> None:
        """Note a write conflict: either the cache is behind, which the watch resolves, or the cluster was set back."""
        self._conflicted.set()

    async def _compare(self) -> None:
        """After each conflict, check whether the server's versions are below the known versions; forever."""
        while True:
            await self._conflicted.wait()
            self._conflicted.clear()
            for reflector in [reflector for reflector in self.reflectors if reflector.state == "synced"]:
                with suppress(ApiError, Unreachable):
                    if await reflector.is_set_back():
                        reflector.relist()
                        self.set_back(reflector)
            await asyncio.sleep(CHECKS)

    def listed(self, reflector: Reflector[Any]) -> None:
        """See `Reports`."""
        self._relisting.discard(reflector)
        self._local.policies.note_listed()

    def failed(self, task: str, error: Exception) -> None:
        """See `Reports`."""
        self._supervisor.failed(task, error)

    def synced(self) -> bool:
        """Whether everything that the cluster serves has been listed, except what is watched on demand (Hvpas that need
        that wait for it)."""
        listed = all(
            reflector.state != "starting"
            for reflector in self.reflectors
            if reflector.resource not in (*ON_DEMAND, *FOR_POLICIES, NODES)
        )
        return listed and self._has_looked

    def states(self, resource: ApiResource[Any]) -> set[WatchState]:
        """The states of the resource's reflectors; none if it is not watched."""
        return {reflector.state for reflector in self.reflectors if reflector.resource is resource}

    def healthy(self) -> bool:
        """Whether no reflector is stuck."""
        return all(reflector.healthy() for reflector in self.reflectors)

    def problems(self) -> list[str]:
        """The resources that are not listed, out of date or not served, each with its start and cause; an entry per
        resource.

        Optional resources may be not served. The texts contain no names or addresses, since anybody may read them.
        """
        problems: dict[str, str] = {}
        for reflector in self.reflectors:
            if (problem := self._problem(reflector)) is not None:
                problems.setdefault(reflector.resource.plural, problem)
        return [f"{plural}: {problem}" for plural, problem in problems.items()]

    def last_success(self) -> Mapping[str, float]:
        """When list or watch last succeeded, by resource, in seconds since 1970.

        The value is that of the oldest scope, 0 if there was no success. Optional resources that the cluster does not
        serve are omitted.
        """
        successes: dict[str, float] = {}
        for reflector in self.reflectors:
            if reflector.resource in _MAY_LACK and reflector.state == "not served":
                continue
            since = self._since(reflector)
            seconds = 0.0 if since is None else since.timestamp()
            successes[reflector.resource.plural] = min(
                seconds, successes.get(reflector.resource.plural, seconds)
            )
        return successes

    def _problem(self, reflector: Reflector[Any]) -> str | None:
        why = reflector.freshness.problem
        if reflector.state == "not served":
            return None if reflector.resource in _MAY_LACK else "not served by the cluster"
        if reflector.state == "starting":
            return "not listed yet" if why is None else f"not listed yet: {why}"
        since = self._since(reflector)
        if not reflector.freshness.stale or since is None:
            return None
        return f"out of date since {format_timestamp(since.replace(microsecond=0))}: {why}"

    def _since(self, reflector: Reflector[Any]) -> dt.datetime | None:
        """When the reflector last succeeded."""
        at = reflector.freshness.succeeded_at
        return None if at is None else self._clock.now() - dt.timedelta(seconds=time.monotonic() - at)

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is evaluated on each state change of a reflector."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def state_changed(self) -> None:
        """See `Reports`."""
        for resource in OPTIONAL:
            states = {reflector.state for reflector in self.reflectors if reflector.resource is resource}
            if states and states != {"starting"}:
                self._local.set_served(resource, states != {"not served"})
        for kind in ON_DEMAND:
            reflectors = [reflector for reflector in self.reflectors if reflector.resource is kind]
            late = [reflector for reflector in reflectors if reflector.state != "synced"]
            if reflectors:
                problem = next(
                    (reflector.freshness.problem for reflector in late if reflector.freshness.problem), None
                )
                why = NOT_YET if problem is None else f"the list of {kind.plural} fails: {problem}"
                self._local.set_unlisted(kind.kind, why if late else None)
        self._changed.set()
