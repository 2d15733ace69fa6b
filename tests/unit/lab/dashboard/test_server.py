"""The page over HTTP: who is answered, what a response allows a browser, the stream of one Hvpa, and what-ifs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.server.auth import USER
from hvpa.reconcile.ports import Key
from hvpa_lab.dashboard import server, watched_hvpas
from hvpa_lab.dashboard.server import FILES
from hvpa_lab.dashboard.table import PROBLEM, HvpaTable
from tests.unit.cli import schema
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import of_kind
from tests.unit.lab.dashboard import shop
from tests.unit.lab.dashboard.harness import Client, Stream, Watched, serving

SHOP = "/api/hvpas/default/shop"
STATIC = resources.files("hvpa_lab.dashboard").joinpath("static")
CHARTS = resources.files("hvpa_lab.charts")
UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""SHA-256 of the files of npm's package uplot 1.6.32 (docs/decisions/0043)."""


@pytest.fixture
def cluster() -> Watched:
    api = Api()
    api.put(shop.documents())
    return Watched(api, shop.metrics())


# --- the page's files -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", UPLOT)
def test_the_library_is_what_its_registry_has(name: str) -> None:
    assert hashlib.sha256(CHARTS.joinpath(name).read_bytes()).hexdigest() == UPLOT[name]


def test_every_file_is_served_and_no_other() -> None:
    shared = {path.name for path in CHARTS.iterdir() if path.name.endswith((".css", ".js", ".txt"))}
    shared.remove("tables.css")  # of the pages that commands write
    assert {name or "index.html" for name in FILES} == {path.name for path in STATIC.iterdir()} | shared


def test_what_the_page_names_is_there_and_nothing_of_it_stands_in_the_page_itself() -> None:
    page = STATIC.joinpath("index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"#:]+)"', page)
    assert set(named) == FILES.keys() - {"", "uPlot.LICENSE.txt"}
    assert re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|style=", page) == [], (
        "the policy allows none of it"
    )
    script = STATIC.joinpath("page.js").read_text()
    assert set(re.findall(r'\$\("([\w-]+)"\)', script)) <= set(re.findall(r'id="([\w-]+)"', page))


async def test_every_response_tells_the_browser_to_load_nothing_from_elsewhere(
    cluster: Watched, tmp_path: Path
) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        for path in ("/", "/page.js", "/nothing", "/api/hvpas", "/healthz"):
            async with client.session.get(client.base + path, headers=client.headers) as response:
                policy = response.headers["Content-Security-Policy"]
                assert policy.startswith(
                    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
                )
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["Server"] == "hvpa"


async def test_files_and_health_need_no_token(cluster: Watched, tmp_path: Path) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        client.headers = {}
        assert (await client.ask("/"))[1].startswith("<!DOCTYPE html>")
        assert await client.ask("/healthz") == (200, "ok\n")
        assert await client.ask("/nothing") == (404, "not found\n")
        assert (await client.ask("/page.js", "POST"))[0] == 405


# --- who is answered ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("token", ["", "Bearer ", "Bearer wrong", "Basic x", "Bearer é"])
@pytest.mark.parametrize(
    ("path", "method"), [("/api/hvpas", "GET"), (SHOP, "GET"), (f"{SHOP}/what-if", "POST")]
)
async def test_without_the_printed_token_there_is_no_data(
    cluster: Watched, tmp_path: Path, token: str, path: str, method: str
) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        client.headers = {"Authorization": token}
        status, text = await client.ask(path, method)
        assert (status, "has printed" in text) == (401, True)


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/hvpas", "/healthz"])
async def test_a_name_that_was_made_to_lead_here_gets_nothing(
    cluster: Watched, tmp_path: Path, path: str
) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        status, text = await client.ask(path, Host="evil.example")
        assert (status, text.startswith("this page is served as 127.0.0.1:")) == (421, True)


async def test_another_namespace_than_the_one_that_is_shown_is_not_there(
    cluster: Watched, tmp_path: Path
) -> None:
    async with serving(cluster, tmp_path, scope="default") as (client, _):
        assert await client.ask("/api/hvpas/other/shop") == (404, "only namespace default is shown\n")
        async with client.stream("/api/hvpas?namespace=other") as rows:
            await rows.until(lambda parts: "default/shop" in parts)


@pytest.mark.parametrize(
    "name", ["default/..%2Fx", "a%2Fb/shop", "default/a%3Fb", "default/%00", "default/A", "D/shop"]
)
async def test_what_no_hvpa_can_be_called_is_not_looked_at(
    cluster: Watched, tmp_path: Path, name: str
) -> None:
    async with serving(cluster, tmp_path) as (client, dashboard):
        assert await client.ask(f"/api/hvpas/{name}") == (404, "not found\n")
        assert await client.ask(f"/api/hvpas/{name}/what-if", "POST") == (404, "not found\n")
        assert not dashboard.watched._watched


@pytest.mark.parametrize("path", ["/api/hvpas", SHOP])
async def test_a_stream_has_no_head_that_could_be_asked_for(
    cluster: Watched, tmp_path: Path, path: str
) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        assert (await client.ask(path, "HEAD"))[0] == 405


async def test_a_reader_who_leaves_during_a_write_is_no_error(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(*_: object) -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(server, "_write", gone)
    async with serving(cluster, tmp_path) as (client, _), client.stream("/api/hvpas") as rows:
        assert not await rows.next()
    assert "Error handling request" not in caplog.text


async def _as_user(request: web.BaseRequest) -> None:
    """A guard that takes the token for the user's name."""
    request[USER] = request.headers["Authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def _pages(client: Client, path: str, users: Iterable[str]) -> AsyncIterator[list[Stream]]:
    """A page for each user, the first one opened first."""
    async with AsyncExitStack() as held:
        pages = []
        for user in users:
            client.headers = {"Authorization": f"Bearer {user}"}
            pages.append(await held.enter_async_context(client.stream(path)))
            assert await pages[-1].next() == "first"
        yield pages


async def _ends(page: Stream) -> str:
    """Why a page's stream has ended."""
    async with asyncio.timeout(30):
        while (kind := await page.next()) != "ended":
            assert kind, "the stream has ended without a reason"
    return str(page.ended)


async def test_the_page_of_the_user_with_the_most_gives_way(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STREAMS", 4)
    async with (
        serving(cluster, tmp_path, _as_user) as (client, dashboard),
        _pages(client, "/api/hvpas", ["bob", "eve", "eve", "eve"]) as pages,
        _pages(client, "/api/hvpas", ["ann"]) as (anns,),
    ):
        assert "disconnected this page" in await _ends(pages[1])
        for page in (pages[0], anns):
            await page.until(lambda parts: "default/shop" in parts)
        assert len(dashboard._streams) == 4


async def test_a_user_s_oldest_page_gives_way_to_the_newest(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STREAMS_OF_USER", 2)
    accounts = [f"system:serviceaccount:team:{number}" for number in range(3)]
    async with (
        serving(cluster, tmp_path, _as_user) as (client, _),
        _pages(client, "/api/hvpas", accounts) as pages,
    ):
        assert "disconnected this page" in await _ends(pages[0])
        await pages[2].until(lambda parts: "default/shop" in parts)


ABSENT = "/api/hvpas/default/absent"


async def test_an_hvpa_that_does_not_exist_is_not_found_and_costs_nothing(
    cluster: Watched, tmp_path: Path
) -> None:
    async with serving(cluster, tmp_path) as (client, dashboard):
        async with client.stream("/api/hvpas") as rows:
            await rows.until(lambda parts: "default/shop" in parts)
        before = len(cluster.api.asked)
        for _ in range(100):
            assert await client.ask(ABSENT) == (404, "hvpa default/absent does not exist\n")
            assert (await client.ask(f"{ABSENT}/what-if", "POST"))[0] == 404
        assert (await client.ask("/api/hvpas/default/x%2Fy"))[0] == 404
        assert (await client.ask("/api/hvpas/default/..%3Fx"))[0] == 404
        assert len(cluster.api.asked) == before
        assert not dashboard.watched._watched
        assert not len(dashboard._streams)


async def test_before_hvpas_are_listed_an_hvpa_is_looked_up(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HvpaTable, "has", lambda table, key: None)
    async with serving(cluster, tmp_path) as (client, _):
        assert (await client.ask(ABSENT))[0] == 404
        async with client.stream(SHOP) as stream:
            await stream.until(lambda parts: "status" in parts)
        cluster.api.fail["hvpas"] = 403
        async with client.stream(ABSENT) as stream:
            await stream.until(lambda parts: "no hvpas for you" in (parts.get("problem") or ""))


async def test_a_page_that_reads_nothing_is_cut_off(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RESPONSE", 0.3)
    monkeypatch.setattr(server, "_event", lambda kind, content: b"x" * 10_000_000)
    async with serving(cluster, tmp_path) as (client, dashboard):
        _, writer = await asyncio.open_connection("127.0.0.1", int(client.base.rpartition(":")[2]), limit=1)
        token = client.headers["Authorization"]
        host = client.base.removeprefix("http://")
        writer.write(f"GET /api/hvpas HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n\r\n".encode())
        async with asyncio.timeout(30):
            while not len(dashboard._streams):
                await asyncio.sleep(0.01)
            while len(dashboard._streams):
                await asyncio.sleep(0.01)
        writer.close()


# --- one Hvpa -------------------------------------------------------------------------------------------------------
async def test_one_hvpa_is_shown_as_the_commands_show_it(cluster: Watched, tmp_path: Path) -> None:
    async with serving(cluster, tmp_path) as (client, _), client.stream(SHOP) as stream:
        parts = await stream.until(
            lambda parts: {"status", "explain", "history", "path", "sample"} <= parts.keys()
        )
        schema.check(parts["status"], schema.schema_of("status"))
        schema.check(parts["history"], schema.schema_of("history"))
        whole = schema.schema_of("explain")
        for name, part in parts["explain"].items():
            if name != "steps":
                assert schema.faults(part, whole["$defs"]["Explanation"]["properties"][name], whole) == []
        assert parts["sample"]["cpu"] == {"demand": 3600, "capacity": 2000, "used": 1800}
        assert [curve["resource"] for curve in parts["path"]] == ["cpu"]
        assert parts["explain"]["path"]["because"]
        assert not parts.get("problem")
        assert not parts.get("unmeasured")


async def test_a_change_of_the_hvpa_is_shown_at_once(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_hvpas, "PERIOD", 1000.0)
    monkeypatch.setattr(watched_hvpas, "AT_LEAST", 0.0)
    async with serving(cluster, tmp_path) as (client, _):
        async with client.stream("/api/hvpas") as rows:
            await rows.until(lambda parts: "default/shop" in parts)
        async with client.stream(SHOP) as stream:
            await stream.until(lambda parts: "status" in parts)
            cluster.change("MODIFIED", of_kind(shop.documents(mode="Paused"), "Hvpa"))
            await stream.until(lambda parts: parts["status"]["mode"] == "Paused")


async def test_samples_are_kept_for_the_next_page(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_hvpas, "PERIOD", 0.02)
    monkeypatch.setattr(watched_hvpas, "AT_LEAST", 0.01)
    monkeypatch.setattr(watched_hvpas, "SAMPLES", 5)
    async with serving(cluster, tmp_path) as (client, dashboard):
        async with client.stream(SHOP) as stream:
            begin = (await stream.until(lambda parts: "sample" in parts))["sample"]["time"]
            await stream.until(lambda parts: parts["sample"]["time"] > begin)
        watched = dashboard.watched.at(next(iter(dashboard.watched._watched)))
        async with asyncio.timeout(30):
            while len(watched.samples) < 5:
                await asyncio.sleep(0.01)
        async with client.stream(SHOP) as stream:
            await stream.next()
            times = [sample["time"] for sample in stream.first["samples"]]
        assert (len(times), times) == (5, sorted(times))


async def test_of_many_containers_fewer_samples_are_kept(cluster: Watched, tmp_path: Path) -> None:
    async with serving(cluster, tmp_path) as (_, dashboard):
        watched = dashboard.watched.at(Key("default", "shop"))
        for count, kept in ((1, 1440), (4, 1440), (100, 57), (10_000, 1)):
            containers = dict.fromkeys(map(str, range(count)))
            for number in range(1500):
                watched._keep({"time": number, "sizes": {}, "used": containers})
            assert (len(watched.samples), watched.samples[-1]["time"]) == (kept, 1499)


FORBIDDEN = "no pods for you"


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        pytest.param(lambda server: server.change("DELETED", of_kind(shop.documents(), "Hvpa")),
                     "Hvpa default/shop does not exist", id="deleted"),
        pytest.param(lambda server: server.api.fail.update(pods=403), FORBIDDEN, id="without a right"),
        pytest.param(lambda server: server.api.fail.update(hvpas=404), "the CRD is not installed", id="no CRD"),
        pytest.param(lambda server: server.api.raw.update(deployments=b"[]"), "", id="no sense"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_meanwhile_is_shown_beside_what_was_known(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_it: Any, problem: str
) -> None:
    monkeypatch.setattr(watched_hvpas, "PERIOD", 0.05)
    monkeypatch.setattr(watched_hvpas, "AT_LEAST", 0.01)
    async with serving(cluster, tmp_path) as (client, _), client.stream(SHOP) as stream:
        await stream.until(lambda parts: "status" in parts)
        break_it(cluster)
        parts = await stream.until(lambda parts: parts.get("problem"))
        assert problem in parts["problem"]
        assert "status" in parts


async def test_events_and_usage_that_can_not_be_read_are_named(cluster: Watched, tmp_path: Path) -> None:
    cluster.usage, cluster.api.fail = None, {"events": 403}
    async with serving(cluster, tmp_path) as (client, _), client.stream(SHOP) as stream:
        parts = await stream.until(lambda parts: "sample" in parts)
        assert parts["unmeasured"] == "pod usage can't be read from metrics.k8s.io: no metrics"
        assert parts["history"]["problem"] == "Events can't be read: no events for you"
        assert parts["sample"]["cpu"] == {"demand": 3600, "capacity": 2000, "used": None}


def _others(cluster: Watched, names: str) -> None:
    """Further Hvpas of these names, of one letter each."""
    shown = of_kind(shop.documents(), "Hvpa")
    for name in names:
        cluster.change("ADDED", {**shown, "metadata": {**shown["metadata"], "name": name}})


async def test_an_hvpa_that_no_page_shows_gives_way_first(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_hvpas, "MOST", 2)
    _others(cluster, "ab")
    async with serving(cluster, tmp_path) as (client, dashboard), client.stream(SHOP) as shown:
        await shown.until(lambda parts: "status" in parts)
        async with client.stream("/api/hvpas/default/a") as left:
            await left.until(lambda parts: "status" in parts)
        async with asyncio.timeout(30):
            while dashboard.watched.at(Key("default", "a")).board.followers:
                await asyncio.sleep(0.01)
        async with client.stream("/api/hvpas/default/b") as other:
            await other.until(lambda parts: "status" in parts)
            assert [key.name for key in dashboard.watched._watched] == ["shop", "b"]


async def test_the_user_who_looks_at_the_most_hvpas_loses_one(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_hvpas, "MOST", 3)
    _others(cluster, "abc")
    async with (
        serving(cluster, tmp_path, _as_user) as (client, dashboard),
        _pages(client, SHOP, ["ann"]) as (anns,),
        _pages(client, "/api/hvpas/default/a", ["eve"]) as (first,),
        _pages(client, "/api/hvpas/default/b", ["eve"]) as (second,),
        _pages(client, "/api/hvpas/default/c", ["bob"]) as (bobs,),
    ):
        assert "disconnected this page" in await _ends(first)
        for page in (anns, second, bobs):
            await page.until(lambda parts: "status" in parts)
        assert {key.name for key in dashboard.watched._watched} == {"shop", "b", "c"}


async def test_nobody_is_looked_at_for_ever(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in {"PERIOD": 0.02, "AT_LEAST": 0.01, "KEPT": 0.05}.items():
        monkeypatch.setattr(watched_hvpas, name, seconds)
    async with serving(cluster, tmp_path) as (client, dashboard):
        async with client.stream(SHOP) as stream:
            await stream.until(lambda parts: "status" in parts)
        async with asyncio.timeout(30):
            while dashboard.watched._watched:
                await asyncio.sleep(0.01)


async def test_a_look_that_gave_way_as_it_ended_takes_the_place_of_no_other(
    cluster: Watched, tmp_path: Path
) -> None:
    async with serving(cluster, tmp_path) as (client, dashboard), client.stream(SHOP) as stream:
        await stream.until(lambda parts: "status" in parts)
        (watched,) = dashboard.watched._watched.values()
        gone = watched_hvpas.WatchedHvpa(watched._transport, watched.key, watched._settings, watched._lease)
        gone.run = _at_once  # type: ignore[method-assign]
        await dashboard.watched._run(gone)
        assert dashboard.watched._watched == {watched.key: watched}


async def _at_once() -> None:
    pass


async def test_a_silent_operator_is_shown_on_both_pages(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.cli.input.operator.CONFIRM", 0.0)
    cluster.api.put_lease("hvpa", "me", seconds=150, duration=15)
    async with serving(cluster, tmp_path) as (client, _):
        async with client.stream("/api/hvpas") as rows:
            await rows.until(lambda parts: "operator silent for 2m" in (parts.get(PROBLEM) or ""))
        async with client.stream(SHOP) as stream:
            await stream.until(lambda parts: "status" in parts)
            assert stream.parts["status"]["operator"]["state"] == "silent"
            assert "operator" not in stream.parts["explain"]


# --- what-ifs -------------------------------------------------------------------------------------------------------
async def test_a_what_if_is_simulated_and_a_lower_target_costs_more(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_hvpas, "PERIOD", 0.02)
    monkeypatch.setattr(watched_hvpas, "AT_LEAST", 0.01)
    monkeypatch.setattr("hvpa_lab.dashboard.whatif.STEP", 0.02)
    monkeypatch.setattr("hvpa_lab.dashboard.whatif.TIME_LIMIT", 280.0)
    monkeypatch.setattr("hvpa_lab.dashboard.whatif.DURATION", "3h")
    async with serving(cluster, tmp_path) as (client, dashboard), client.stream(SHOP) as stream:
        await stream.until(lambda parts: "sample" in parts)
        watched = dashboard.watched.at(next(iter(dashboard.watched._watched)))
        async with asyncio.timeout(30):
            while len(watched.samples) < 20:
                await asyncio.sleep(0.01)
        status, text = await client.ask(f"{SHOP}/what-if?target=25", "POST")
        assert status == 200, text
        whole = schema.schema_of("simulate")
        scenario = json.loads(text)
        assert [policy["name"] for policy in scenario["policies"]] == ["as it is", "what if"]
        assert schema.faults(scenario, whole["$defs"]["ScenarioReport"], whole) == []
        as_it_is, what_if = (policy["figures"]["cost"] for policy in scenario["policies"])
        assert what_if > 1.3 * as_it_is
        assert scenario["baseline"] == "as it is"
        assert any("what if costs" in sentence for sentence in scenario["conclusion"])
        assert len(scenario["policies"][1]["series"]["replicas"]["values"]) > 1


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("?target=x", 400, "target: must be a whole number from 1 to 1000\n"),
        ("", 400, "of pod usage are known"),
    ],
)
async def test_a_what_if_that_makes_no_sense_is_refused(
    cluster: Watched, tmp_path: Path, query: str, status: int, message: str
) -> None:
    async with serving(cluster, tmp_path) as (client, _):
        assert await client.ask(f"{SHOP}/what-if", "POST") == (
            409,
            "no data for this Hvpa yet; try again in a moment\n",
        )
        async with client.stream(SHOP) as stream:
            await stream.until(lambda parts: "sample" in parts)
            code, text = await client.ask(f"{SHOP}/what-if{query}", "POST")
            assert (code, message in text) == (status, True)
            cluster.change("DELETED", of_kind(shop.documents(), "Hvpa"))
            assert (await client.ask(f"{SHOP}/what-if", "POST"))[0] == 502


async def test_a_page_of_another_origin_can_not_start_one(cluster: Watched, tmp_path: Path) -> None:
    """It may send a POST, but no header Authorization without a preflight, which nothing here allows."""
    async with serving(cluster, tmp_path) as (client, _):
        status, _ = await client.ask(f"{SHOP}/what-if", "OPTIONS", Origin="http://evil.example")
        assert status == 405
