"""What the operator does again and again leaves no objects behind. Objects are counted: resident memory also shows
what caches hold, and what Python and the C library keep for later."""

from __future__ import annotations

import datetime as dt
import gc
import subprocess
import sys
from collections import Counter
from contextlib import aclosing, suppress
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
from hvpa.kube.client.transport import Body
from hvpa.kube.objects import interning as sharing
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, VPAS, ApiResource
from hvpa.reconcile.ports import Key
from tests.unit.kube.fake_server import FakeServer, status

pytestmark = pytest.mark.long

START = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
KEY = Key("shop", "web")
OWNER = {"kind": "Hvpa", "name": "web", "uid": "1", "controller": True}
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
        replicas = {"replicas": number % 60 + 1}
        entry = {"manager": "hvpa", "time": time, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        ready = {"type": "Ready", "status": "True", "message": f"step {number}", "lastTransitionTime": time}
        selector = {"matchLabels": {"app": "web"}}
        workload = {"selector": selector, "template": {"spec": template}, **replicas}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        deployed = {"deploy": True, "template": {"spec": {"maxReplicas": 60}}}
        hvpa = {"targetRef": target, "hpa": deployed, "vpa": {"deploy": True}, **replicas}
        reference = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
        recommended = [{"containerName": "app", "target": {"cpu": f"{100 + number % 20}m"}}]
        provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": time}
        owned = {"ownerReferences": [OWNER]}
        hpa_status = {"desiredReplicas": number % 60 + 1, "conditions": [ready]}
        vpa_status = {"conditions": [provided], "recommendation": {"containerRecommendations": recommended}}
        for _ in range(2):
            self._put(DEPLOYMENTS, {"managedFields": [entry]}, workload, replicas)
            self._put(HPAS, owned, {"scaleTargetRef": reference, "maxReplicas": 60}, hpa_status)
            self._put(VPAS, owned, {"targetRef": target}, vpa_status)
            self._put(HVPAS, {}, hvpa, {"conditions": [ready], **replicas})
            objects = self.local.objects(KEY)
            assert objects is not None
            decide(observe(objects, now, Settings()))

    def _put(self, resource: ApiResource[Any], metadata: Any, spec: Any, state: Any) -> None:
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

    async def often(times: int) -> Counter[str]:
        for _ in range(times):
            with suppress(ApiError):
                await transport.request("PATCH", "/fail", body=Body(b"{}"))
            for query in ({}, {"cut": "true"}):
                with suppress(Unreachable):
                    async with aclosing(transport.stream("/x", {"watch": "true", **query}, 60.0)) as lines:
                        assert [line async for line in lines]
        return _of_requests()

    async with FakeServer(handler).connected(tmp_path) as transport:
        assert await often(5) == await often(25)


def _of_requests() -> Counter[str]:
    gc.collect()
    names = (type(instance).__name__ for instance in gc.get_objects())
    return Counter(name for name in names if name in OF_REQUESTS)
