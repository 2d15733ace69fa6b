"""Health, metrics, and their addresses."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from builders import build
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.model import Decision, ReplicaView, ResourceRequirements
from hvpa.kube.server.endpoints import AddressError, health_routes, metrics_routes, parse_address, serve
from hvpa.kube.server.metrics import SLICE, Metrics, Page
from hvpa.reconcile.ports import Key
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
    routes = {
        **health_routes(lambda: problems[0], lambda: problems[1]),
        **metrics_routes(Page(metrics.pieces).read),
    }
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


def shown(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All samples of the page, as Prometheus reads them."""
    families = text_string_to_metric_families(b"".join(metrics.pieces()).decode())
    samples = [sample for family in families for sample in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(found) == len(samples)
    return found


def decision() -> Decision:
    recommended = {"app": ResourceRequirements({"cpu": 1500, "memory": 1000}, {})}
    return Decision(HvpaStatus(), replicas=ReplicaView(2, 4, 3, 4), recommended=recommended)


@pytest.mark.parametrize("name", ["h", 'a "quoted" \\ name\nof two lines'])
def test_the_series_of_an_hvpa_are_there_until_it_is_deleted(name: str) -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    key = Key("ns", name)
    metrics.decided(key, decision(), build.workload())
    names = {"namespace": "ns", "name": name}
    cpu = {**names, "container": "app", "resource": "cpu"}
    found = shown(metrics)
    for metric, labels, value in (
        ("hvpa_replicas", names, 2.0),
        ("hvpa_recommended_replicas", names, 4.0),
        ("hvpa_request", cpu, 1.0),
        ("hvpa_recommended_request", cpu, 1.5),
        ("hvpa_recommended_request", {**cpu, "resource": "memory"}, 1000.0),
    ):
        assert found[metric, frozenset(labels.items())] == value
    metrics.forgotten(key)
    assert not [one for one in shown(metrics) if ("namespace", "ns") in one[1]]


def test_all_slices_together_have_each_hvpa_once() -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    for number in range(2 * SLICE + 1):
        metrics.decided(Key("ns", f"h-{number}"), decision(), build.workload())
    assert sum(name == "hvpa_replicas" for name, _ in shown(metrics)) == 2 * SLICE + 1


def test_how_fresh_each_cache_is_is_shown_by_resource() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.watch_caches(lambda: {"pods": 1.5e9})
    found = shown(metrics)
    assert found["hvpa_watch_last_success_timestamp_seconds", frozenset({("resource", "pods")})] == 1.5e9


def test_without_the_flag_no_series_has_an_object_s_name() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided(Key("ns", "h"), Decision(HvpaStatus(), replicas=ReplicaView(2, 4, 3, 4)), None)
    metrics.finished(Key("ns", "h"), "done", 0.1)
    assert '"h"' not in b"".join(metrics.pieces()).decode()
