"""The operator as a whole: transport, watches, queue, reconciler, lease and servers; its start and its shutdown."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.reflector import RETRY
from hvpa.kube.cache.watches import Watches
from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ApiError, ConfigError, Unreachable
from hvpa.kube.client.limits import Limiter
from hvpa.kube.client.transport import OnRequest, Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.cluster import KubeCluster
from hvpa.kube.events import EventRecorder
from hvpa.kube.kubelets.client import KubeletClient
from hvpa.kube.kubelets.signal import KubeletSignal
from hvpa.kube.kubelets.token import KubeletToken
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.objects.versions import other_version
from hvpa.kube.policies import PolicyWriter
from hvpa.kube.server.auth import TokenGuard
from hvpa.kube.server.endpoints import AddressError, Listener, health_routes, metrics_routes, serve
from hvpa.kube.server.metrics import Metrics, MetricsPage
from hvpa.kube.server.tls import Certificate
from hvpa.kube.service_metrics import ServiceMetrics
from hvpa.operator import garbage
from hvpa.operator.policies import PolicyKeeper, Process
from hvpa.operator.roles import QueueShare, role_of
from hvpa.operator.settings import RunSettings
from hvpa.reconcile.aside import Aside
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key, TimeSource
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.reconciler import Reconciler, ReconcileResult
from hvpa.reconcile.supervision import Supervisor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

START_TRIES = 8
"""Number of tries to reach the API server at start, within about half a minute."""
NO_CRD = (
    "the cluster does not serve the resource hvpas.autoscaling.k8s.io: "
    "install it with `make install` or `hvpa crd | kubectl apply -f -`"
)
DRAIN = 20.0
"""Maximum time in seconds for current writes at shutdown (Kubernetes kills a Pod after 30 seconds)."""


class StartError(Exception):
    """The operator can't start. `code` is the exit code, the text is for the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Parts:
    """Access to the API server and the clock."""

    transport: Callable[[Credentials, OnRequest], Transport] = Transport
    clock: TimeSource = field(default_factory=SystemClock)


class Operator:
    """One run of the operator (`hvpa run`)."""

    def __init__(self, settings: RunSettings, credentials: Credentials, parts: Parts) -> None:
        self._settings = settings
        clock = parts.clock
        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self.metrics = Metrics(registry, settings.per_object_metrics, settings.check_invariants)
        self._transport = parts.transport(credentials, self.metrics.request)
        # Leases have their own connections, so that failures or the number of other requests don't affect them.
        self._leases = parts.transport(credentials, self.metrics.request)
        candidate = settings.candidate
        elected = candidate if settings.leader_elect else None
        self._role = role_of(self._leases, clock, elected, settings.shards)
        share = self._share = QueueShare(self._role, settings.shards, candidate.times.duration)
        period = settings.decisions.vpa_period
        self._local = LocalCluster(settings.scopes, share.changed, share.changed_by_us, period)
        self._supervisor = supervisor = Supervisor(self.metrics)
        self._watches = Watches(
            self._transport, self._local, settings.scopes, self.metrics, clock, supervisor
        )
        if settings.policies:
            self._watches.watch_policies()
        self._role.on_set_back(self._watches.set_back)
        limiter = Limiter(settings.max_in_flight, self.metrics)
        self._recorder = EventRecorder(self._transport, clock, limiter)
        cluster = KubeCluster(self._transport, self._local, self._recorder, self._share.may_write, limiter)
        cluster.on_conflict = self._watches.conflicted
        writer = PolicyWriter(self._transport, self._local, limiter, lambda: self._role.may_write(0))
        serves = partial(self._role.serves, 0)
        self._aside = Aside()
        process = Process(clock, serves, candidate.namespace, self._aside, self._recorder.record)
        self.metrics.watch_policies(lambda: self._local.policies.statuses() if serves() else {})
        self._policies = PolicyKeeper(self._local, self._watches, writer, process)
        token = KubeletToken(
            self._transport, candidate.namespace, settings.kubelet_account, asyncio.get_running_loop().time
        )
        self._kubelets = KubeletClient(_trust(settings, credentials), token)
        self._signal = KubeletSignal(
            self._kubelets, settings.kubelet_port, clock, self._share.changed, supervisor
        )
        cluster.signal = self._signal
        cluster.metrics = self._service_metrics = ServiceMetrics(
            self._transport, clock, self._share.changed, supervisor
        )
        self.metrics.watch_kubelets(lambda: self._signal.nodes, lambda: self._signal.silent)
        queue, decisions = WorkQueue(), settings.decisions
        self._reconciler = Reconciler(cluster, clock, decisions, self.metrics, queue.postponed, self._aside)
        self._work = WorkLoop(
            queue, self._reconcile, self.metrics, settings.workers, limiter.permit, supervisor
        )
        self.metrics.watch_queue(self._work.depth, self._work.oldest_age, self._work.waiting_for_budget)
        self.metrics.watch_shards(lambda: len(self._role.shards), settings.shards)
        self.metrics.watch_caches(self._watches.last_success)
        self.metrics.watch_limits(lambda: limiter.in_flight, lambda: limiter.limit)
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    async def run(self) -> int:
        """Runs until SIGTERM or SIGINT (returns 0) or until the lease is lost (returns 1). Raises StartError and
        AddressError."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        servers: list[Listener | None] = []
        try:
            servers.append(
                await serve_metrics(self._settings, MetricsPage(self.metrics.pieces), self._transport)
            )
            routes = health_routes(self._health_problem, self._ready_problem)
            servers.append(await serve(self._settings.health_address, routes))
            return await self._live()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for server in servers:
                if server is not None:
                    await server.cleanup()
            self._aside.close()
            self._signal.stop()
            self._service_metrics.stop()
            await self._kubelets.close()
            await self._transport.close()
            await self._leases.close()

    async def _live(self) -> int:
        if not await self._unless_stopped(self._reach()):
            return 0
        self._keep_running("watch", self._watches.run)
        self._keep_running("write Events", self._recorder.run)
        if not await self._unless_stopped(self._watches.wait(self._watches.synced)):
            return 0
        log.info("caches are filled", hvpas=len(self._local.hvpas), pods=len(self._local.pods))
        self._keep_running("look after garbage", garbage.look_after)
        if self._settings.policies:
            self._keep_running("keep policies", self._policies.run)
        self._share.open(self._work, self._local, self._reconciler.forget)
        return await self._work_until_stopped()

    async def _work_until_stopped(self) -> int:
        """Reconciles the Hvpas of this process. At a signal, finishes current reconciles and releases the leases."""
        work = self._keep_running("work loop", self._work.run)
        part = self._keep_running("role", lambda: self._role.run(self._share, self._supervisor))
        stopped = self._start(self._stop.wait())
        await asyncio.wait([part, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            log.error("lost the lease: exiting")
            return 1
        stopped.cancel()
        log.info("stopping")
        self._role.close()
        self._work.stop()
        done, _ = await asyncio.wait([work], timeout=DRAIN)
        if not done:
            log.warning("writes in progress were cancelled")
        for task in (work, part):
            task.cancel()
        await asyncio.gather(work, part, return_exceptions=True)
        await self._role.leave()  # before the Events, because no task waits for them
        await self._recorder.flush()
        return 0

    async def _reach(self) -> None:
        """Checks that the API server responds and knows Hvpas. Raises StartError."""
        scope, server = self._settings.scopes[0] or None, self._transport.server
        for attempt in range(1, START_TRIES + 1):
            try:
                await self._transport.request("GET", HVPAS.path(scope), {"limit": "1"}, verb="list")
                return
            except (ApiError, Unreachable) as error:
                status = error.status if isinstance(error, ApiError) else None
                if status == 404:
                    raise StartError(1, await other_version(self._transport) or NO_CRD) from error
                if status in (401, 403):
                    raise StartError(3 if status == 401 else 1, f"{server}: {error}") from error
                if attempt == START_TRIES:
                    raise StartError(3, f"{server} can't be reached: {error}") from error
                log.warning("API server can't be reached", server=server, error=str(error), tries=attempt)
            await asyncio.sleep(min(5.0, RETRY.base * 2**attempt))

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Waits for `work` or the signal to stop, whichever comes first. Returns whether to continue."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if task.done():
            await task
        else:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return not self._stop.is_set()

    def _keep_running(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[Any]:
        """Runs `work` for the lifetime of the process, and again after an exception."""
        return self._start(self._supervisor.keep(name, work))

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    async def _reconcile(self, key: Key) -> ReconcileResult:
        if not self._share.serves(key):  # its shard was given up while the key waited for its permit
            return ReconcileResult("done")
        return await self._reconciler.reconcile(key)

    def _on_signal(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            # A second signal ends the process at once.
            asyncio.get_running_loop().remove_signal_handler(number)
        self._stop.set()

    def _health_problem(self) -> str | None:
        return None if self._watches.healthy() else "a watch is stuck"

    def _ready_problem(self) -> str | None:
        if self._stop.is_set():
            return "stopping"
        tasks = [f"{name}: {problem}" for name, problem in self._supervisor.problems().items()]
        return "; ".join([*self._watches.problems(), *tasks]) or None


def _trust(settings: RunSettings, credentials: Credentials) -> ssl.SSLContext:
    """The certificate authorities of kubelets. Raises ConfigError for a file that can't be used."""
    file = settings.kubelet_authority or credentials.configuration.ssl_ca_cert
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--kubelet-certificate-authority {file}: {error}") from error
    if settings.kubelet_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # cluster CAs often don't meet it
    return context


async def operate(settings: RunSettings, parts: Parts) -> int:
    """Runs the operator until it ends, and returns its exit code. Raises ConfigError, StartError, AddressError."""
    credentials = await Credentials.load(settings.kubeconfig, settings.context)
    return await Operator(settings, credentials, parts).run()


async def serve_metrics(settings: RunSettings, page: MetricsPage, transport: Transport) -> Listener | None:
    """Serves /metrics; returns None if that is turned off. Raises AddressError, also for an unusable certificate, or if
    only one of the two TLS flags is set, so that an endpoint is never left unprotected by mistake."""
    folder = settings.metrics_cert_dir
    routes = metrics_routes(page.read)
    if settings.metrics_secure and folder is None:
        raise AddressError("--metrics-secure requires --metrics-cert-dir, a folder with tls.crt and tls.key")
    if folder is None:
        return await serve(settings.metrics_address, routes)
    if not settings.metrics_secure:
        raise AddressError("--metrics-cert-dir requires --metrics-secure")
    tls = Certificate(Path(folder)).context
    return await serve(settings.metrics_address, routes, TokenGuard(transport), tls)
