"""The operator as a whole on Hvpas made by chance: what `make fuzz TARGET=operator` goes on with for as long as one
likes; and that the fuzzer would see what must not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from hvpa.kube.events import EventRecorder
from hvpa.reconcile.reconciler import Reconciler
from tests.fuzz.cluster import FakeCluster
from tests.fuzz.generate import Generator
from tests.fuzz.operator import fuzz
from tests.unit.kube.fake_server import FakeServer

SEED = 36
ROUNDS = 40


async def test_nothing_that_is_drawn_ends_a_task_or_makes_a_request_elsewhere(tmp_path: Path) -> None:
    outcome = await fuzz(tmp_path, 300.0, SEED, ROUNDS)
    assert outcome.faults == []
    assert outcome.rounds == ROUNDS
    assert outcome.decided > ROUNDS
    assert {"PATCH deployments", "PATCH hvpas/status"} <= outcome.writes.keys()


async def test_what_must_not_be_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def crash(self: Any, key: Any) -> None:
        raise KeyError("a fault")

    async def stop(self: Any) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(Reconciler, "_reconcile", crash)
    monkeypatch.setattr(EventRecorder, "run", stop)
    outcome = await fuzz(tmp_path, 300.0, SEED, 4)
    text = " ".join(outcome.faults)
    assert "hvpa_write_failures_total" in text
    assert "hvpa_task_failures_total" in text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/kube-system/pods"),
        ("GET", "/api/v1/secrets"),
        ("GET", "/apis/apps/v1/deployments?fieldSelector=x"),
        ("GET", "/apis/argoproj.io/v1alpha1?x0=/namespaces/shop/rollouts/web/scale"),
        ("PATCH", "/apis/apps/v1/namespaces/kube-system/deployments/web"),
        ("PATCH", "/apis/apps/v1/namespaces/ns-2/deployments/web"),
        ("PATCH", "/apis/apps/v1/namespaces/ns-1/deployments/another"),
        ("PATCH", "/apis/apps/v1/namespaces/ns-1/deployments/web/../another"),
        ("PATCH", "/apis/batch/v1/namespaces/ns-1/jobs/web"),
        ("DELETE", "/api/v1/namespaces/ns-1"),
    ],
)
async def test_requests_outside_of_the_namespace_and_kinds_of_an_hvpa_are_found(
    method: str, path: str
) -> None:
    cluster, server = FakeCluster(), FakeServer()
    cluster.put("Hvpa", {"metadata": {"namespace": "ns-1", "name": "web"}})

    async def handle(request: web.Request) -> web.StreamResponse:
        return await cluster.handle(request)

    server._serve = handle  # type: ignore[method-assign]
    async with server.running(), aiohttp.ClientSession() as client:
        response = await client.request(method, URL(server.url + path, encoded=True))
        assert response.status == 404
        response.release()
    assert len(cluster.faults) == 1


def test_the_same_seed_makes_the_same_objects() -> None:
    for seed in range(30):
        assert repr(Generator(seed).objects("ns-1")) == repr(Generator(seed).objects("ns-1"))
