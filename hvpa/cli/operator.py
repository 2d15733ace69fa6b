"""The operator, put together: transport, watches, queue, reconciler, lease and servers; its start and its end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Coroutine
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from hvpa.cli.settings import RunSettings
from hvpa.kube.clock import SystemClock
from hvpa.kube.cluster import KubeCluster
from hvpa.kube.config import Credentials
from hvpa.kube.errors import ApiError, Unreachable
from hvpa.kube.events import EventRecorder
from hvpa.kube.faults import with_faults
from hvpa.kube.lease import LeaderElector
from hvpa.kube.local import LocalCluster
from hvpa.kube.metrics import Metrics
from hvpa.kube.reflector import RETRY
from hvpa.kube.resources import HVPAS
from hvpa.kube.serve import health_routes, metrics_routes, serve
from hvpa.kube.transport import Transport
from hvpa.kube.watches import Watches
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.reconciler import Reconciler

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

START_TRIES = 8
"""Tries to reach the API server at start, within about half a minute."""
DRAIN = 20.0
"""Seconds that writes under way may take at the end (a Pod gets 30 before it is killed)."""


class StartError(Exception):
    """The operator can't start; `code` is the exit code, the text what to tell the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Operator:
    """One `hvpa run`."""

    def __init__(self, settings: RunSettings, credentials: Credentials) -> None:
        self._settings = settings
        clock = SystemClock()
        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self.metrics = Metrics(registry, settings.per_object_metrics)
        self._transport = Transport(credentials, self.metrics.request)
        self._local = LocalCluster(settings.scopes, self._enqueue)
        self._watches = Watches(self._transport, self._local, settings.scopes, self.metrics)
        self._recorder = EventRecorder(self._transport, clock)
        self._elector: LeaderElector | None = None
        if settings.leader_elect:
            self._elector = LeaderElector(self._transport, clock, settings.candidate)
        may_write = self._elector.holds if self._elector is not None else lambda: True
        cluster = KubeCluster(self._transport, self._local, self._recorder, may_write)
        reconciler = Reconciler(
            with_faults(cluster, settings.fault_point), clock, settings.decisions, self.metrics
        )
        self._work = WorkLoop(WorkQueue(), reconciler.reconcile, self.metrics, settings.workers)
        self.metrics.watch_queue(self._work.depth, self._work.oldest_age)
        self._leads = False
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    async def run(self) -> int:
        """Work until SIGTERM or SIGINT (0) or until the lease is lost (1). Raises StartError and AddressError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        servers: list[web.AppRunner | None] = []
        try:
            servers.append(await serve(self._settings.metrics_address, metrics_routes(self.metrics.registry)))
            servers.append(
                await serve(
                    self._settings.health_address, health_routes(self._health_problem, self._ready_problem)
                )
            )
            return await self._live()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for server in servers:
                if server is not None:
                    await server.cleanup()
            await self._transport.close()

    async def _live(self) -> int:
        await self._unless_stopped(self._reach())
        if self._stop.is_set():
            return 0
        self._start(self._watches.run())
        self._start(self._recorder.run())
        await self._unless_stopped(self._watches.wait(self._watches.synced))
        if not self._stop.is_set():
            log.info("caches are filled", hvpas=len(self._local.hvpas), pods=len(self._local.pods))
            gc.collect()
            gc.freeze()  # what was listed stays: no need to walk over it at each collection
        if self._elector is None:
            return await self._work_until_stopped(None)
        await self._unless_stopped(self._elector.acquire())
        if self._stop.is_set():
            await self._elector.release()
            return 0
        return await self._work_until_stopped(self._start(self._elector.keep()))

    async def _work_until_stopped(self, lease: asyncio.Task[None] | None) -> int:
        """Reconcile; at a signal, finish what is under way and give the lease back."""
        self.metrics.set_leader(True)
        self._leads = True
        for key in self._local.hvpas:
            self._work.enqueue(key)
        work = self._start(self._work.run())
        stopped = self._start(self._stop.wait())
        await asyncio.wait(
            [one for one in (*self._tasks, lease) if one is not None], return_when=asyncio.FIRST_COMPLETED
        )
        if not self._stop.is_set():
            self._raise_failure()
            log.error("lost the lease: giving up")  # nothing else ends by itself
            return 1
        stopped.cancel()
        log.info("stopping")
        self._work.stop()
        done, _ = await asyncio.wait([work], timeout=DRAIN)
        if not done:
            log.warning("writes under way were cut off")
        await self._recorder.flush()
        if self._elector is not None and lease is not None:
            lease.cancel()
            await asyncio.gather(lease, return_exceptions=True)
            await self._elector.release()
        return 0

    async def _reach(self) -> None:
        """Make sure that the API server answers and knows Hvpas."""
        scope = self._settings.scopes[0] or None
        for attempt in range(1, START_TRIES + 1):
            try:
                await self._transport.request("GET", HVPAS.path(scope), {"limit": "1"}, verb="list")
            except ApiError as error:
                if error.status == 404:
                    hint = "`make install` or `hvpa crd | kubectl apply -f -` installs it"
                    raise StartError(
                        1, f"the cluster does not know the resource hvpas.autoscaling.k8s.io: {hint}"
                    ) from error
                if error.status in (401, 403):
                    code = 3 if error.status == 401 else 1
                    raise StartError(code, f"{self._transport.server}: {error}") from error
                problem: Exception = error
            except Unreachable as error:
                problem = error
            else:
                return
            if attempt == START_TRIES:
                raise StartError(3, f"{self._transport.server} can't be reached: {problem}") from problem
            log.warning(
                "API server can't be reached",
                server=self._transport.server,
                error=str(problem),
                tries=attempt,
            )
            await asyncio.sleep(min(5.0, RETRY.base * 2**attempt))

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for `work`, for the signal to stop, or for a task that fails, whichever comes first."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stopped, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if task.done():
            await task
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise what a task that should run for ever ended with."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    def _enqueue(self, key: Key) -> None:
        if self._leads:  # all that there is becomes due when we begin to work; until then nothing waits
            self._work.enqueue(key)

    def _on_signal(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)  # a second one ends the process at once
        self._stop.set()

    def _health_problem(self) -> str | None:
        if not self._watches.healthy():
            return "a watch is stuck"
        return None

    def _ready_problem(self) -> str | None:
        if self._stop.is_set():
            return "stopping"
        if not self._watches.synced():
            waiting = sorted(
                {one.resource.plural for one in self._watches.reflectors if one.state == "starting"}
            )
            return f"not listed yet: {', '.join(waiting)}"
        return None


async def operate(settings: RunSettings) -> int:
    """Run the operator to its end; its exit code. Raises ConfigError, StartError, AddressError."""
    credentials = await Credentials.load(settings.kubeconfig, settings.context)
    operator = Operator(settings, credentials)
    running: Awaitable[int] = operator.run()
    return await running
