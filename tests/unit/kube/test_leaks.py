"""What the operator does again and again leaves no objects behind. Objects are counted: resident memory also shows
what caches hold, and what Python and the C library keep for later."""

from __future__ import annotations

import datetime as dt
import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from hvpa.core import decide, observe
from hvpa.core.model import Settings
from hvpa.core.values import memo
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Body, Transport
from hvpa.kube.objects import interning as sharing
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, VPAS, Resource
from hvpa.reconcile.ports import Key
from tests.unit.kube.fake_server import FakeServer, status

START = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
KEY = Key("shop", "web")
OWNER = {
    "apiVersion": "autoscaling.k8s.io/v1alpha1",
    "kind": "Hvpa",
    "name": "web",
    "uid": "1",
    "controller": True,
}
OF_REQUESTS = frozenset({"_Session", "ClientSession", "ClientRequest", "ClientResponse", "ResponseHandler"})
"""Types of which requests and streams make objects."""
SMALL = 32
"""Entries of tables that are full after a few changes."""
FIRST, CHANGES = 150, 300
"""Changes until all tables are full, and after that."""


class Shop:
    """A local copy with one Hvpa, which is looked at after each change."""

    def __init__(self) -> None:
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        self._version = 0

    def change(self, number: int) -> None:
        """Other recommendations, what is written for them, and a list of everything."""
        now = START + dt.timedelta(seconds=number)
        time, template = now.strftime("%Y-%m-%dT%H:%M:%SZ"), {"containers": [{"name": "app"}]}
        entry = {
            "manager": "hvpa",
            "operation": "Update",
            "time": time,
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }
        ready = {"type": "Ready", "status": "True", "message": f"step {number}", "lastTransitionTime": time}
        workload = {
            "selector": {"matchLabels": {"app": "web"}},
            "replicas": number % 60 + 1,
            "template": {"spec": template},
        }
        hvpa = {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "replicas": number % 60 + 1,
            "hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 60}}},
            "vpa": {"deploy": True},
        }
        reference = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
        told = {
            "containerRecommendations": [{"containerName": "app", "target": {"cpu": f"{100 + number % 20}m"}}]
        }
        provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": time}
        for _ in range(2):
            self._put(DEPLOYMENTS, {"managedFields": [entry]}, workload, {"replicas": number % 60 + 1})
            self._put(
                HPAS,
                {"ownerReferences": [OWNER]},
                {"scaleTargetRef": reference, "maxReplicas": 60},
                {"desiredReplicas": number % 60 + 1, "conditions": [ready]},
            )
            self._put(
                VPAS,
                {"ownerReferences": [OWNER]},
                {"targetRef": hvpa["targetRef"]},
                {"conditions": [provided], "recommendation": told},
            )
            self._put(HVPAS, {}, hvpa, {"conditions": [ready], "replicas": number % 60 + 1})
            objects = self.local.objects(KEY)
            assert objects is not None
            decide(observe(objects, now, Settings()))

    def _put(self, resource: Resource[Any], metadata: Any, spec: Any, state: Any) -> None:
        self._version += 1
        common = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": str(self._version)}
        document = {"metadata": common | metadata, "spec": spec, "status": state}
        self.local.store(resource).put(resource.decode(msgspec.json.encode(document)))


def blocks_left_behind() -> int:
    """Memory blocks that CHANGES leave behind, once all tables are full. For a process of its own."""
    monkeypatch = pytest.MonkeyPatch()
    for where, name in ((sharing, "SMALL"), (memo, "REMEMBERED")):
        monkeypatch.setattr(where, name, SMALL)
    shop = Shop()
    for number in range(FIRST):
        shop.change(number)
    gc.collect()
    before = sys.getallocatedblocks()
    for number in range(FIRST, FIRST + CHANGES):
        shop.change(number)
    gc.collect()
    return sys.getallocatedblocks() - before


def test_an_hvpa_that_changes_all_the_time_leaves_no_objects_behind() -> None:
    """In a process of its own, as caches that other tests have used fill at other times."""
    script = f"from {__name__} import blocks_left_behind; print(blocks_left_behind())"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(output) < 2 * CHANGES  # an object with attributes has three blocks or more


@pytest.mark.asyncio
async def test_requests_that_fail_and_watches_that_break_leave_no_objects_behind(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            return status(503, "ServiceUnavailable", "not now")
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b'{"type": "BOOKMARK"}\n')
        if request.transport is not None and "cut" in request.query:
            request.transport.abort()
        return answer

    async def fails(transport: Transport) -> None:
        await transport.request("PATCH", "/fail", body=Body(b"{}"))

    async def is_cut(transport: Transport) -> None:
        async with aclosing(transport.stream("/x", {"watch": "true", "cut": "true"}, 60.0)) as lines:
            async for _ in lines:
                pass

    async def ends(transport: Transport) -> None:
        async with aclosing(transport.stream("/x", {"watch": "true"}, 60.0)) as lines:
            async for _ in lines:
                pass

    server = FakeServer()
    server.handler = handler
    async with server.running(), server.transport(tmp_path) as transport:
        await _often(transport, 5, fails, is_cut, ends)
        before = _of_requests()
        await _often(transport, 60, fails, is_cut, ends)
        after = _of_requests()
    assert after == before


async def _often(transport: Transport, times: int, *works: Callable[[Transport], Awaitable[None]]) -> None:
    for _ in range(times):
        for work in works:
            try:
                await work(transport)
            except (ApiError, Unreachable):
                continue


def _of_requests() -> Counter[str]:
    gc.collect()
    names = (type(one).__name__ for one in gc.get_objects())
    return Counter(name for name in names if name in OF_REQUESTS)
