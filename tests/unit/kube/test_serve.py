"""Health, metrics, and their addresses."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from hvpa.api.status import HvpaStatus
from hvpa.core.model import ContainerResources, Decision, ReplicaView
from hvpa.kube.metrics import Metrics
from hvpa.kube.serve import AddressError, health_routes, metrics_routes, parse_address, serve
from hvpa.reconcile.ports import Key
from tests.unit.core import build
from tests.unit.kube.fake_server import reserved_port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8081", (None, 8081)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:9569", ("::1", 9569)),
        ("localhost:1", ("localhost", 1)),
        ("0", None),
    ],
)
def test_addresses(text: str, address: tuple[str | None, int] | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", ":", ":0", ":65536", ":x", "a:-1", "a:٣"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(AddressError):
        parse_address(text)


@pytest.mark.asyncio
async def test_health_and_metrics_are_served() -> None:
    with reserved_port() as port:
        await _health_and_metrics(f"127.0.0.1:{port}")


async def _health_and_metrics(address: str) -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.request("get", "200")
    problems: list[str | None] = [None, "not listed yet: pods"]
    routes = {**health_routes(lambda: problems[0], lambda: problems[1]), **metrics_routes(metrics.registry)}
    runner = await serve(address, routes)
    assert runner is not None
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{address}/healthz") as response:
            assert (response.status, await response.text()) == (200, "ok")
        async with session.get(f"http://{address}/readyz") as response:
            assert (response.status, await response.text()) == (503, "not listed yet: pods")
        async with session.get(f"http://{address}/metrics") as response:
            assert 'hvpa_api_requests_total{code="200",verb="get"} 1.0' in await response.text()
    with pytest.raises(AddressError, match="can't listen"):
        await serve(address, routes)
    await runner.cleanup()
    assert await serve("0", routes) is None


def test_the_series_of_a_deleted_hvpa_are_gone() -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    decision = Decision(
        HvpaStatus(),
        replicas=ReplicaView(2, 4, 3, 4),
        recommended={"app": ContainerResources({"cpu": 1500, "memory": 1000}, {})},
    )
    key = Key("ns", "h")
    metrics.decided(key, decision, build.workload())
    text = generate_latest(metrics.registry).decode()
    for line in (
        'hvpa_replicas{name="h",namespace="ns"} 2.0',
        'hvpa_recommended_replicas{name="h",namespace="ns"} 4.0',
        'hvpa_request{container="app",name="h",namespace="ns",resource="cpu"} 1.0',
        'hvpa_recommended_request{container="app",name="h",namespace="ns",resource="cpu"} 1.5',
        'hvpa_recommended_request{container="app",name="h",namespace="ns",resource="memory"} 1000.0',
    ):
        assert line in text
    metrics.forgotten(key)
    assert 'name="h"' not in generate_latest(metrics.registry).decode()


def test_without_the_flag_no_series_has_an_object_s_name() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided(Key("ns", "h"), Decision(HvpaStatus(), replicas=ReplicaView(2, 4, 3, 4)), None)
    metrics.finished(Key("ns", "h"), "done", 0.1)
    assert '"h"' not in generate_latest(metrics.registry).decode()
