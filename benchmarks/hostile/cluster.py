"""An honest Hvpa next to forty maximally expensive Hvpas: its waiting time, and whether the operator keeps its
lease."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from benchmarks.hostile.inputs import Json, Largest, document, largest
from benchmarks.hostile.server import MemoryServer
from builders import build
from hvpa.core import Objects, Settings
from hvpa.core.values.memo import forget_all
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.limits import Limiter
from hvpa.kube.clock import SystemClock
from hvpa.kube.cluster import KubeCluster
from hvpa.kube.events import EventRecorder
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, PODS, VPAS, ApiResource
from hvpa.operator import garbage
from hvpa.operator.roles import SETTLE
from hvpa.reconcile.aside import Aside
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Telemetry

BOMBS = 40
"""Number of hostile Hvpas, in a single namespace (issue 36)."""
CHANGES = 0.025
"""Seconds between two changes of a hostile spec."""
PAUSE = 0.3
"""Seconds between two measurements of the honest Hvpa."""
WORKERS = 16
CROWDS = 4
"""Hostile Hvpas with many pods: each takes 30 MB."""
HONEST = "honest"
EVIL = "evil"
HONEST_SPEC: Json = {"weightBasedScalingIntervals": None, "vpa": {"deploy": False}}
"""Only the HPA decides, so that each of its changes is patched."""


@dataclass
class OperatorWork(Telemetry):
    """Counts the operator's work."""

    decisions: int = 0
    late: int = 0
    reported: set[Key] = field(default_factory=set)
    crashed: int = 0

    def decided(self, key: Key, decision: Any, workload: Any) -> None:
        """See Telemetry."""
        self.decisions += 1
        if any("this decision is late" in condition.message for condition in decision.status.conditions):
            self.reported.add(key)

    def postponed(self, key: Key, seconds: float) -> None:
        """See Telemetry."""
        self.late += 1

    def write_failed(self, key: Key, operation: Any, kind: Any) -> None:
        """See Telemetry."""
        self.crashed += kind == "crashed"


def _named(obj: Any, namespace: str, name: str, uid: str = "") -> Json:
    """Return an object's JSON with this namespace, this name instead of `web`, and this Hvpa as owner."""
    text = (
        msgspec.json.encode(obj)
        .decode()
        .replace('"web', f'"{name}')
        .replace(build.UID, _uid(namespace, name))
    )
    manifest: Json = msgspec.json.decode(text)
    manifest["metadata"] |= {"namespace": namespace, "uid": uid or manifest["metadata"].get("uid") or name}
    return manifest


def _uid(namespace: str, name: str) -> str:
    """Return an Hvpa's UID."""
    return f"uid-{namespace}-{name}"


class HostileCluster:
    """The objects, the operator's parts that use them, and automatic changes: a Deployment follows its spec."""

    def __init__(self) -> None:
        self.api = MemoryServer()
        self.load = OperatorWork()
        self.patched = asyncio.Event()
        self.api.on_write = self._written
        self._paths: dict[str, ApiResource[Any]] = {}

    def start(self) -> None:
        """Start as a new process, without state of an earlier process."""
        forget_all()
        transport: Any = self.api
        clock, limiter = SystemClock(), Limiter()
        queue, self.aside = WorkQueue(), Aside()
        self.local = LocalCluster([""], lambda key: self.work.enqueue_in(key, SETTLE))
        recorder = EventRecorder(transport, clock, limiter)
        port = KubeCluster(transport, self.local, recorder, limiter=limiter)
        reconciler = Reconciler(port, clock, Settings(), self.load, queue.postponed, self.aside)
        self.work = WorkLoop(queue, reconciler.reconcile, self.load, WORKERS, limiter.permit)
        self.elector = LeaderElector(transport, clock, Candidate("default", "hvpa", "me"))
        self._recorder = recorder

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the operator's tasks with all existing objects."""
        self.start()
        await self.elector.acquire()
        tasks = [
            asyncio.create_task(work)
            for work in (self.work.run(), self.elector.keep(), self._recorder.run(), garbage.look_after())
        ]
        for path, resource in self._paths.items():
            self._show(resource, self.api.objects[path])
            await asyncio.sleep(0)  # as between the pages of a list
        try:
            yield
        finally:
            self.work.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.aside.close()

    def put(self, resource: ApiResource[Any], manifest: Json) -> None:
        """Write an object as a user or a controller; the watch reports it."""
        path = resource.path(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        self._paths[path] = resource
        stored = self.api.store(path, manifest)
        if hasattr(self, "local"):
            self._show(resource, stored)

    def _show(self, resource: ApiResource[Any], stored: Json) -> None:
        obj = resource.decode(json_of(stored))
        self.local.store(resource).put(obj)

    def _written(self, path: str, stored: Json) -> None:
        """Let Deployments follow their spec at once."""
        if "/deployments/" in path:
            count, metadata = stored["spec"]["replicas"], stored["metadata"]
            metadata["generation"] = metadata.get("generation", 1) + 1
            stored["status"] = {
                "observedGeneration": metadata["generation"],
                **dict.fromkeys(build.COUNTS, count),
            }
            if metadata["namespace"] == HONEST:
                self.patched.set()


def json_of(manifest: Json) -> bytes:
    """Encode an object as the API server does."""
    return msgspec.json.encode(manifest)


def put_all(cluster: HostileCluster, objects: Objects, spec: Json, namespace: str, name: str) -> None:
    """Write an Hvpa and all objects that belong to it."""
    hvpa = {"metadata": {"name": name, "generation": 1}, "spec": document(spec)}
    cluster.put(HVPAS, _named(hvpa, namespace, name, _uid(namespace, name)))
    workload = _named(objects.workload, namespace, name)
    workload["spec"]["selector"] = {"matchLabels": {"app": name}}
    cluster.put(DEPLOYMENTS, workload)
    for resource, recommenders in ((HPAS, objects.hpas), (VPAS, objects.vpas)):
        for recommender in recommenders:
            cluster.put(resource, _named(recommender, namespace, name))
    for pod in objects.pods:
        manifest = _named(pod, namespace, name, f"{namespace}-{pod.metadata.name}-{name}")
        manifest["metadata"]["labels"] = {"app": name}
        cluster.put(PODS, manifest)


def bombs() -> Iterable[tuple[str, Largest]]:
    """Yield forty Hvpas that alternate between the kinds of large Hvpas."""
    kinds = [(name, hvpa) for name, hvpa in largest().items() if name != "usual"]
    crowds = [kind for kind in kinds if "pods" in kind[0] or kind[0] == "all of it"]
    others = [kind for kind in kinds if kind not in crowds]
    for number in range(BOMBS):
        among = crowds if number < CROWDS else others
        yield f"bomb-{number}", among[number % len(among)][1]


async def honest_waits(cluster: HostileCluster, seconds: float) -> list[float]:
    """Measure repeatedly the seconds from the HPA's new status to the patch of the workload."""
    waits: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(PAUSE)
        replicas = cluster.api.objects[DEPLOYMENTS.path(HONEST, "web")]["spec"]["replicas"]
        wanted = 6 if replicas == 3 else 3
        hpa = build.hpa(wanted, 100 if wanted == 6 else 25, replicas=replicas)
        manifest = _named(hpa, HONEST, "web")
        cluster.patched.clear()
        began = time.monotonic()
        cluster.put(HPAS, manifest)
        try:
            async with asyncio.timeout(60):
                await cluster.patched.wait()
        except TimeoutError:
            return [*waits, float("inf")]
        waits.append(time.monotonic() - began)
    return waits


async def change_specs(cluster: HostileCluster, specs: dict[str, Json]) -> None:
    """Change the hostile specs in turn, forever; no two versions are alike."""
    number = 0
    while specs:
        for name, spec in specs.items():
            number += 1
            changed = build.merged(spec, {"vpa": {"scaleUp": {"stabilizationDuration": f"{number}ms"}}})
            for part in (changed.get("maintenanceWindows", ()), changed.get("hpa", {}).get("schedule", ())):
                for entry in part:
                    entry["duration"] = f"{3600 + number}s"
            path = HVPAS.path(EVIL, name)
            cluster.put(HVPAS, {**cluster.api.objects[path], "spec": _own(changed, name)})
            await asyncio.sleep(CHANGES)


def _own(spec: Json, name: str) -> Json:
    own: Json = _named({"metadata": {}, "spec": document(spec)}, EVIL, name)["spec"]
    return own


async def _lag(longest: list[float]) -> None:
    """Measure the longest delay of the event loop."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        await asyncio.sleep(0.001)
        longest[0] = max(longest[0], loop.time() - began - 0.001)


async def phase(cluster: HostileCluster, seconds: float, specs: dict[str, Json]) -> dict[str, Any]:
    """Run the operator from its start, while these hostile specs change, and measure."""
    cluster.load.__init__()  # type: ignore[misc]
    cluster.api.renewals.clear()
    longest = [0.0]
    async with cluster.running():
        tasks = [asyncio.create_task(_lag(longest)), asyncio.create_task(change_specs(cluster, specs))]
        began = time.thread_time()
        waits = await honest_waits(cluster, seconds)
        used = time.thread_time() - began
        for task in tasks:
            task.cancel()
        held = cluster.elector.holds()
    renewals = cluster.api.renewals
    gaps = [after - before for before, after in pairwise(renewals)]
    return {
        "first_s": round(waits[0], 3),
        "median_s": round(statistics.median(waits), 3),
        "worst_s": round(max(waits), 3),
        "waits": len(waits),
        "loop_blocked_ms": round(1000 * longest[0], 1),
        "loop_cpu": round(used / seconds, 2),
        "lease_kept": held,
        "longest_renewal_s": round(max(gaps, default=0.0), 2),
        "decisions": cluster.load.decisions,
        "postponed": cluster.load.late,
        "reported": len(cluster.load.reported),
        "crashed": cluster.load.crashed,
    }


async def measure(seconds: float) -> dict[str, dict[str, Any]]:
    """Measure the honest Hvpa alone, then after a restart with forty hostile Hvpas."""
    cluster = HostileCluster()
    put_all(cluster, build.objects(horizontal=build.hpa()), HONEST_SPEC, HONEST, "web")
    phases = {"alone": await phase(cluster, seconds, {})}
    specs = {}
    for name, hvpa in bombs():
        specs[name] = hvpa.spec
        put_all(cluster, hvpa.make(hvpa.spec), hvpa.spec, EVIL, name)
    phases["beside 40 bombs"] = await phase(cluster, 2 * seconds, specs)
    return phases
