"""Health, metrics, and their addresses."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from hvpa.kube.server.endpoints import AddressError, health_routes, metrics_routes, parse_address, serve
from hvpa.kube.server.metrics import Metrics, MetricsPage
from tests.unit.kube.server.listening import listening


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


async def test_health_and_metrics_are_served() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.request("get", "200")
    problems: list[str | None] = [None, "not listed yet: pods"]
    routes = {
        **health_routes(lambda: problems[0], lambda: problems[1]),
        **metrics_routes(MetricsPage(metrics.pieces).read),
    }
    async with listening(routes) as (port, _), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        for path, status, text in (
            ("/healthz", 200, "ok"),
            ("/readyz", 503, "not listed yet: pods"),
            ("/metrics", 200, 'hvpa_api_requests_total{code="200",verb="get"} 1.0'),
        ):
            async with session.get(path) as response:
                assert response.status == status
                assert text in await response.text()
        with pytest.raises(AddressError, match="can't listen"):
            await serve(f"127.0.0.1:{port}", routes)
    assert await serve("0", routes) is None
