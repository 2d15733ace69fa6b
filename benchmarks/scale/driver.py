"""Acts as a cluster with many Hvpas: user, HPA controller, VPA recommender, Deployment controller and kubelet, at full
speed or at a rate. It watches the Deployments, so it records when each was changed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.scale import objects
from benchmarks.scale.http import JSON, METADATA_ONLY, Client, each, paced
from benchmarks.scale.objects import APPS, HPAS, STEP_MILLICORES, VPAS, Item, Writer

LIMIT = 180.0
"""Seconds without progress after which waiting fails."""


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Named


class _Change(msgspec.Struct):
    type: str
    object: _Object


_decode_change = msgspec.json.Decoder(_Change).decode


class Driver:
    """Runs in a separate process; times are of `time.perf_counter`, which all processes share."""

    def __init__(self, kubeconfig: Path, hvpas: int, pods: int, concurrency: int) -> None:
        self._client = Client(kubeconfig, "driver")
        self._writer = Writer(self._client, pods)
        self._items = objects.make_items(hvpas)
        self._by_name = {(item.namespace, item.name): item for item in self._items}
        self._concurrency = concurrency
        self._missing = 0
        self._background: set[asyncio.Task[None]] = set()
        self._version = ""
        self._turn = itertools.cycle(self._items)
        self._watching: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """See `Served`."""
        self._watching = asyncio.create_task(self._watch_deployments())

    # --- phases ------------------------------------------------------------------------------------------------------
    async def prepare(self) -> dict[str, float]:
        """Create namespaces, workloads and pods, as if they had run for hours."""
        started = time.perf_counter()
        names = dict.fromkeys(item.namespace for item in self._items)
        await each(names, self._concurrency, self._writer.create_namespace)
        await each(self._items, self._concurrency, self._writer.create_workload)
        await self._until(lambda: all(item.generation for item in self._items), "a watch that shows all")
        return {"seconds": time.perf_counter() - started}

    async def create(self) -> dict[str, float]:
        """Create all Hvpas at once, and wait until all their HPAs and VPAs exist."""
        left: dict[str, set[tuple[str, str]]] = {}
        watches = []
        for path in (f"{HPAS}/horizontalpodautoscalers", f"{VPAS}/verticalpodautoscalers"):
            left[path] = set(self._by_name)
            watches.append(asyncio.create_task(self._watch_names(path, left[path])))
        try:
            started = time.perf_counter()
            await each(self._items, self._concurrency, self._writer.create_hvpa)
            written = time.perf_counter()
            await self._until(
                lambda: not any(left.values()),
                "all HPAs and VPAs",
                lambda: sum(len(names) for names in left.values()),
            )
            return {"seconds": time.perf_counter() - started, "driver_seconds": written - started}
        finally:
            for watch in watches:
                watch.cancel()

    async def settle(self) -> None:
        """Complete all rollouts, and let every HPA desire the current replicas."""
        await each(self._items, self._concurrency, self._settle)

    async def recommend_present(self) -> None:
        """Let every VPA recommend the current requests."""

        await each(self._items, self._concurrency, lambda item: self._writer.recommend(item, item.cpu))

    async def step(self) -> dict[str, Any]:
        """Change all statuses as fast as the server accepts them, and wait until all workloads are changed."""
        self._expect(self._items)
        started = time.perf_counter()
        await each(self._items, self._concurrency, self._change)
        written = time.perf_counter()
        await self._all_patched()
        last = max(item.patched for item in self._items)
        return {
            "seconds": last - started,
            "seconds_until_all_done": max(last, written) - started,
            "driver_seconds": written - started,
            "latencies": [item.patched - item.sent for item in self._items],
        }

    async def trickle(self, share: float, seconds: float) -> dict[str, Any]:
        """Write new statuses for this share of the objects per second, evenly, each object at most once."""
        rate = share * len(self._items)
        count = max(1, min(len(self._items), round(rate * seconds)))
        chosen = list(itertools.islice(self._turn, count))
        self._expect(chosen)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            async for item in paced(chosen, rate):
                group.create_task(self._change(item))
        written = time.perf_counter()
        await self._all_patched()
        return {
            "objects": count,
            "seconds": written - started,
            "latencies": [item.patched - item.sent for item in chosen],
        }

    async def change(self, share: float) -> int:
        """Write new statuses for this share of the objects; `changed` waits for the effects."""
        count = max(1, round(share * len(self._items)))
        chosen = list(itertools.islice(self._turn, count))
        self._expect(chosen)
        await each(chosen, self._concurrency, self._change)
        return count

    async def changed(self) -> dict[str, float]:
        """Return when the first and the last object of `change` were patched."""
        await self._all_patched()
        times = [item.patched for item in self._items if item.patched]
        return {"first": min(times), "last": max(times)}

    # --- single writes -----------------------------------------------------------------------------------------------
    async def _settle(self, item: Item) -> None:
        await self._complete(item)
        await self._writer.desire(item, item.replicas)

    async def _complete(self, item: Item) -> None:
        await self._writer.status(item, APPS, "deployments", objects.rollout_complete(item))

    async def _change(self, item: Item) -> None:
        """Write the VPA's status, then the HPA's, which makes the operator take a step on both axes."""
        await self._writer.recommend(item, item.cpu_before + 2 * STEP_MILLICORES)
        item.sent = time.perf_counter()
        await self._writer.desire(item, item.replicas_before + 2)

    # --- results -----------------------------------------------------------------------------------------------------
    def _expect(self, items: Iterable[Item]) -> None:
        for item in self._items:
            item.patched = 0.0
        self._missing = 0
        for item in items:
            item.expect()
            self._missing += 1

    async def _all_patched(self) -> None:
        try:
            await self._until(lambda: self._missing == 0, "patched workloads", lambda: self._missing)
        except TimeoutError as error:
            missing = [f"{item.namespace}/{item.name}" for item in self._items if item.awaited]
            raise TimeoutError(f"{error}: {len(missing)} are missing, {', '.join(missing[:5])}") from error

    async def _until(
        self, holds: Callable[[], bool], awaited: str, progress: Callable[[], object] = lambda: None
    ) -> None:
        """Wait; `progress` returns another value whenever there is progress."""
        deadline, last = time.perf_counter() + LIMIT, progress()
        while not holds():
            if self._watching is not None and self._watching.done():
                self._watching.result()
            if (now := progress()) != last:
                deadline, last = time.perf_counter() + LIMIT, now
            if time.perf_counter() > deadline:
                raise TimeoutError(f"no progress for {LIMIT:g} s: {awaited}")
            await asyncio.sleep(0.02)

    async def _watch_deployments(self) -> None:
        await self._watch(f"{APPS}/deployments", JSON, self._on_deployment, lambda: self._version)

    def _on_deployment(self, line: bytes) -> None:
        now = time.perf_counter()
        change = objects.decode_change(line)
        deployment = change.object
        if change.type == "ERROR":
            raise RuntimeError(f"the watch of Deployments failed: {line.decode()}")
        self._version = deployment.metadata.resourceVersion
        item = self._by_name.get((deployment.metadata.namespace, deployment.metadata.name))
        if item is None or deployment.spec is None:
            return
        item.replicas = deployment.spec.replicas
        item.cpu = objects.millicores(deployment.spec.template.spec.containers[0].resources.requests["cpu"])
        item.generation = deployment.metadata.generation
        if not item.awaited or item.replicas == item.replicas_before:
            return
        if item.cpu != item.cpu_before:
            item.awaited, item.patched = False, now
            self._missing -= 1
        else:  # the HPA's status was seen before the VPA's; requests change when the new count is there
            task = asyncio.create_task(self._complete(item))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _watch_names(self, path: str, left: set[tuple[str, str]]) -> None:
        def take(line: bytes) -> None:
            meta = _decode_change(line).object.metadata
            left.discard((meta.namespace, meta.name))

        await self._watch(path, METADATA_ONLY, take, lambda: "")

    async def _watch(
        self, path: str, accept: str, take: Callable[[bytes], None], version: Callable[[], str]
    ) -> None:
        """Watch without end; the server ends a watch at times."""
        while True:
            since = version()
            query = f"&resourceVersion={since}" if since else ""
            await self._client.lines(f"{path}?watch=true{query}", accept, take)
