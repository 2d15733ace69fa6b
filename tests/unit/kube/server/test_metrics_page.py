"""Scrapes: one rendering for all who come within a second, and nothing else waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from builders import build
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.model import Decision, ReplicaView, ResourceRequirements
from hvpa.kube.leases.lease import LeaseTimes
from hvpa.kube.server.endpoints import metrics_routes, serve
from hvpa.kube.server.metrics import FRESH, Metrics, Page
from hvpa.reconcile.ports import Key
from tests.unit.kube.fake_server import LONG, reserved_port, until
from tests.unit.kube.leases.test_election import Leases, elector

HVPAS = 2000
SCRAPES = 60
TIMES = LeaseTimes(duration=9, renew=6, retry=0.2)
"""Shorter than SCRAPES renderings one after the other, longer than a busy machine stalls."""


class Rendering:
    """Counts how often a page is rendered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.count = 0

    def __call__(self) -> Iterator[bytes]:
        self.count += 1
        return self._metrics.pieces()


def many_hvpas() -> Metrics:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    recommended = {"app": ResourceRequirements({"cpu": 1500, "memory": 1000}, {})}
    decision = Decision(HvpaStatus(), replicas=ReplicaView(2, 4, 3, 4), recommended=recommended)
    for number in range(HVPAS):
        metrics.decided(Key("ns", f"hvpa-{number}"), decision, build.workload())
    return metrics


async def test_many_scrapes_at_once_cost_no_lease_and_one_rendering_a_second(tmp_path: Path) -> None:
    leases, rendering = Leases(), Rendering(many_hvpas())
    async with leases.running(tmp_path) as transport, aiohttp.ClientSession() as session:
        mine = elector(transport, "mine", TIMES)
        await mine.acquire()
        keeping = asyncio.create_task(mine.keep())
        with reserved_port() as port:
            address = f"127.0.0.1:{port}"
            listener = await serve(address, metrics_routes(Page(rendering).read))
            assert listener is not None

            async def scrape() -> int:
                async with session.get(f"http://{address}/metrics") as response:
                    return (await response.read()).count(b"hvpa_replicas{")

            loop = asyncio.get_running_loop()
            began, version = loop.time(), leases.version
            found = await asyncio.gather(*(scrape() for _ in range(SCRAPES)))
            lasted = loop.time() - began
            await listener.cleanup()
        assert found == [HVPAS] * SCRAPES
        assert 1 <= rendering.count <= 1 + lasted / FRESH
        await until(lambda: leases.version > version)  # it is renewed
        assert mine.holds()
        assert not keeping.done()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_each_page_is_at_most_as_old_as_what_is_due() -> None:
    metrics = Metrics(CollectorRegistry())
    rendering = Rendering(metrics)
    page = Page(rendering)
    first = await page.read()
    metrics.request("get", "200")
    async with asyncio.timeout(LONG):
        while (later := await page.read()) == first:
            await asyncio.sleep(0.05)
    assert b'hvpa_api_requests_total{code="200",verb="get"} 1.0' in later
    assert rendering.count == 2


async def test_a_client_that_goes_away_stops_no_rendering() -> None:
    held = asyncio.Event()
    rendered: list[str] = []

    def pieces() -> Iterator[bytes]:
        rendered.append("begun")
        while not held.is_set():
            yield b""
        yield b"whole"

    page = Page(pieces)
    gone, stays = (asyncio.create_task(page.read()) for _ in range(2))
    await until(lambda: bool(rendered))
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    held.set()
    assert await stays == b"whole"
    assert rendered == ["begun"]


async def test_what_fails_is_tried_again_for_the_next_client() -> None:
    wrong = [RuntimeError("broken")]

    def pieces() -> Iterator[bytes]:
        if wrong:
            raise wrong.pop()
        yield b"fine"

    page = Page(pieces)
    with pytest.raises(RuntimeError, match="broken"):
        await page.read()
    assert await page.read() == b"fine"
