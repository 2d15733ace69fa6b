"""Metrics: series that are there for as long as their Hvpa is; one rendering for all scrapes within a second, for which
nothing else waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from builders import build
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.invariants import Violation
from hvpa.core.model import Decision, ReplicaView, ResourceRequirements
from hvpa.kube.leases.lease_api import LeaseTimes
from hvpa.kube.objects.resources import ON_DEMAND, WATCHED
from hvpa.kube.server.endpoints import metrics_routes
from hvpa.kube.server.metrics import FRESH, SLICE, Metrics, MetricsPage
from hvpa.reconcile.ports import Key
from tests.unit.kube.fake_server import LONG, background, until
from tests.unit.kube.leases.test_election import Leases, elector
from tests.unit.kube.server.listening import listening

HVPAS = 2000
SCRAPES = 60
TIMES = LeaseTimes(duration=9, renew=6, retry=0.2)
"""Shorter than SCRAPES renderings one after the other, longer than a busy machine stalls."""


DECISION = Decision(
    HvpaStatus(),
    replicas=ReplicaView(2, 4, 3, 4),
    recommended={"app": ResourceRequirements({"cpu": 1500, "memory": 1000}, {})},
)


class Rendering:
    """Counts how often a page is rendered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.count = 0

    def __call__(self) -> Iterator[bytes]:
        self.count += 1
        return self._metrics.pieces()


def with_hvpas(count: int) -> Metrics:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    for number in range(count):
        metrics.decided(Key("ns", f"h-{number}"), DECISION, build.workload())
    return metrics


def shown(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All samples of the page, as Prometheus reads them."""
    families = text_string_to_metric_families(b"".join(metrics.pieces()).decode())
    samples = [sample for family in families for sample in family.samples]
    values = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(values) == len(samples)
    return values


def test_broken_invariants_are_counted_from_0_on_where_they_are_looked_for() -> None:
    assert not [name for name, _ in shown(Metrics(CollectorRegistry())) if "invariant" in name]
    metrics = Metrics(CollectorRegistry(), checks_invariants=True)
    assert metrics.checks_invariants
    metrics.violated(Key("ns", "h"), Violation("capacity", "too few"))
    counts = {
        dict(labels)["invariant"]: count
        for (name, labels), count in shown(metrics).items()
        if "invariant" in name
    }
    assert counts == {"capacity": 1, "unmeasured": 0, "unexplained": 0}


@pytest.mark.parametrize("name", ["h", 'a "quoted" \\ name\nof two lines'])
def test_the_series_of_an_hvpa_are_there_until_it_is_deleted(name: str) -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    key = Key("ns", name)
    metrics.decided(key, DECISION, build.workload(5))
    names = {"namespace": "ns", "name": name}
    cpu = {**names, "container": "app", "resource": "cpu"}
    values = shown(metrics)
    for metric, labels, value in (
        ("hvpa_replicas", names, 5.0),  # of the workload: what was decided may not be written yet
        ("hvpa_recommended_replicas", names, 4.0),
        ("hvpa_request", cpu, 1.0),
        ("hvpa_recommended_request", cpu, 1.5),
        ("hvpa_recommended_request", {**cpu, "resource": "memory"}, 1000.0),
    ):
        assert values[metric, frozenset(labels.items())] == value
    metrics.forgotten(key)
    assert not [series for series in shown(metrics) if ("namespace", "ns") in series[1]]


def test_all_slices_together_have_each_hvpa_once() -> None:
    shown_once = [name for name, _ in shown(with_hvpas(2 * SLICE + 1)) if name == "hvpa_replicas"]
    assert len(shown_once) == 2 * SLICE + 1


def test_how_fresh_each_cache_is_is_shown_by_resource() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.watch_caches(lambda: {"pods": 1.5e9})
    values = shown(metrics)
    assert values["hvpa_watch_last_success_timestamp_seconds", frozenset({("resource", "pods")})] == 1.5e9


def test_undecodable_objects_are_counted_from_0_on() -> None:
    metrics = Metrics(CollectorRegistry())
    name = "hvpa_undecodable_objects_total"

    def counted() -> dict[str, float]:
        return {
            dict(labels)["resource"]: value
            for (metric, labels), value in shown(metrics).items()
            if metric == name
        }

    assert counted() == {resource.plural: 0 for resource in (*WATCHED, *ON_DEMAND)}
    metrics.bad_object("pods")
    assert counted()["pods"] == 1


def test_without_the_flag_no_series_has_an_object_s_name() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided(Key("ns", "h"), DECISION, None)
    metrics.finished(Key("ns", "h"), "done", 0.1)
    assert '"h"' not in b"".join(metrics.pieces()).decode()


async def test_many_scrapes_at_once_cost_no_lease_and_one_rendering_a_second(tmp_path: Path) -> None:
    leases, rendering = Leases(), Rendering(with_hvpas(HVPAS))
    async with leases.running(tmp_path) as transport, aiohttp.ClientSession() as session:
        mine = elector(transport, "mine", TIMES)
        await mine.acquire()
        async with (
            background(mine.keep()) as keeping,
            listening(metrics_routes(MetricsPage(rendering).read)) as (port, _),
        ):

            async def scrape() -> int:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as response:
                    return (await response.read()).count(b"hvpa_replicas{")

            loop = asyncio.get_running_loop()
            began, version = loop.time(), leases.version
            counts = await asyncio.gather(*(scrape() for _ in range(SCRAPES)))
            lasted = loop.time() - began
            assert counts == [HVPAS] * SCRAPES
            assert 1 <= rendering.count <= 1 + lasted / FRESH
            await until(lambda: leases.version > version)  # it is renewed
            assert mine.holds()
            assert not keeping.done()


async def test_each_page_is_at_most_as_old_as_what_is_due() -> None:
    metrics = Metrics(CollectorRegistry())
    rendering = Rendering(metrics)
    page = MetricsPage(rendering)
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

    page = MetricsPage(pieces)
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

    page = MetricsPage(pieces)
    with pytest.raises(RuntimeError, match="broken"):
        await page.read()
    assert await page.read() == b"fine"


def test_what_waits_for_its_namespace_is_shown_apart_from_what_waits_for_a_worker() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.watch_queue(lambda: 1.0, lambda: 2.0, lambda: 3.0)
    metrics.started(Key("ns", "web"), 0.1)
    metrics.postponed(Key("ns", "web"), 30.0)
    values = shown(metrics)
    none: frozenset[tuple[str, str]] = frozenset()
    assert values["hvpa_postponed", none] == 3.0
    assert values["hvpa_postponed_decisions_total", none] == 1.0
    assert values["hvpa_queue_wait_seconds_count", none] == 1.0
