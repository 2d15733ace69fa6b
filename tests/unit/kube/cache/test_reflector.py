"""List and watch, against a server that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.objects.read_models import Pod
from hvpa.kube.cache.reflector import FRUITLESS, Reflector
from hvpa.kube.cache.store import ALL_NAMESPACES, Store
from hvpa.kube.objects.resources import PODS
from hvpa.reconcile.ports import Key
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import FakeServer, Stream, listing, status, until

pytestmark = pytest.mark.asyncio


def pod(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}, **more}


def bookmark(version: int) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}}


class World(Telemetry):
    """A reflector at work, and its server."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.server.handler = self._handle
        self.lists: list[web.Response] = []
        self.watches: list[Stream | web.Response] = []
        self.asked: list[dict[str, str]] = []
        self.restarts: list[str] = []
        self.bad = 0
        self.deleted: list[str] = []
        self.store: Store[Pod] = Store((ALL_NAMESPACES,), self._note)

    def watch_restarted(self, plural: str, reason: str) -> None:
        self.restarts.append(reason)

    def bad_object(self, plural: str) -> None:
        self.bad += 1

    def names(self) -> list[str]:
        return sorted(key.name for key in self.store)

    def versions(self) -> list[str]:
        return [query["resourceVersion"] for query in self.asked]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            return self.lists.pop(0) if self.lists else listing([], "1")
        self.asked.append(dict(request.query))
        answer = self.watches.pop(0) if self.watches else Stream()
        return await answer.respond(request) if isinstance(answer, Stream) else answer

    def _note(self, old: Pod | None, new: Pod | None, own: bool) -> None:
        if new is None and old is not None:
            self.deleted.append(old.metadata.name)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[Reflector[Pod]]:
        async with self.server.running(), self.server.transport(folder) as transport:
            reflector = Reflector(transport, PODS, ALL_NAMESPACES, self.store, self)
            task = asyncio.create_task(reflector.run())
            try:
                yield reflector
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def test_all_pages_are_listed_then_changes_are_followed(tmp_path: Path) -> None:
    world, stream = World(), Stream()
    world.lists = [listing([pod("a", 1)], "5", "more"), listing([pod("b", 2)], "5")]
    world.watches = [stream]
    async with world.running(tmp_path) as reflector:
        await until(lambda: bool(world.asked))
        assert reflector.state == "synced"
        assert world.names() == ["a", "b"]
        assert world.server.requests[0][2] == {"limit": "500"}
        assert world.server.requests[1][2] == {"limit": "500", "continue": "more"}
        assert world.asked[0]["resourceVersion"] == "5"
        assert world.asked[0]["allowWatchBookmarks"] == "true"
        stream.send("ADDED", pod("c", 6))
        stream.send("DELETED", pod("a", 7))
        await until(lambda: world.names() == ["b", "c"])


async def test_a_watch_that_ends_is_resumed_after_the_last_bookmark_without_a_list(tmp_path: Path) -> None:
    world, stream = World(), Stream()
    world.lists = [listing([pod("a", 1)], "5")]
    world.watches = [stream]
    async with world.running(tmp_path):
        await until(lambda: bool(world.asked))
        stream.send("BOOKMARK", bookmark(99))
        stream.end()
        await until(lambda: len(world.asked) == 2)
    assert world.versions() == ["5", "99"]
    assert world.restarts == ["ended"]
    assert world.names() == ["a"]
    assert sum("watch" not in query for _, _, query in world.server.requests) == 1


@pytest.mark.parametrize("as_event", [True, False])
async def test_gone_leads_to_a_new_list_and_what_vanished_is_deleted(tmp_path: Path, as_event: bool) -> None:
    world, stream = World(), Stream()
    world.lists = [listing([pod("a", 1), pod("b", 2)], "5"), listing([pod("b", 2), pod("c", 8)], "9")]
    if as_event:
        stream.send("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
        world.watches = [stream]
    else:
        world.watches = [status(410, "Expired", "too old")]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == 2)
    assert world.versions() == ["5", "9"]
    assert world.names() == ["b", "c"]
    assert world.deleted == ["a"]
    assert world.restarts == ["expired"]


async def test_a_connection_that_breaks_in_mid_event_is_resumed_and_nothing_is_lost(tmp_path: Path) -> None:
    world, stream = World(), Stream()
    world.watches = [stream]
    async with world.running(tmp_path):
        await until(lambda: bool(world.asked))
        stream.send("ADDED", pod("a", 6))
        stream.send_raw(b'{"type":"ADDED","object":{"metadata":{"na')
        stream.end()
        await until(lambda: len(world.asked) == 2)
    assert world.versions() == ["1", "6"]


async def test_errors_are_waited_out(tmp_path: Path) -> None:
    world = World()
    world.lists = [status(500), status(503, headers={"Retry-After": "0"}), listing([pod("a", 1)], "5")]
    async with world.running(tmp_path) as reflector:
        await until(lambda: world.names() == ["a"])
        await until(lambda: reflector.state == "synced")
    assert world.restarts == ["error", "error"]


async def test_json_that_is_no_list_is_no_empty_list(tmp_path: Path) -> None:
    world = World()
    bodies: list[dict[str, object]] = [{}, {"metadata": {}, "items": []}]
    world.lists = [*map(web.json_response, bodies), listing([pod("a", 1)], "5")]
    async with world.running(tmp_path) as reflector:
        await until(lambda: reflector.state == "synced")
        assert world.names() == ["a"]
    assert world.restarts == ["error", "error"]


class Delays:
    """Stands in for the back-off: notes how many failures it was asked about, and does not wait."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def delay(self, failures: int, rng: object) -> float:
        self.asked.append(failures)
        return 0.001


async def test_lists_that_succeed_don_t_hurry_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, delays = World(), Delays()
    monkeypatch.setattr("hvpa.kube.cache.reflector.RETRY", delays)
    world.watches = [status(410, "Expired", "too old") for _ in range(4)]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == 5)
    assert delays.asked == [1, 2, 3, 4]


async def test_a_list_that_fails_after_a_long_time_is_no_watch_that_had_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, delays = World(), Delays()
    monkeypatch.setattr("hvpa.kube.cache.reflector.RETRY", delays)
    monkeypatch.setattr("hvpa.kube.cache.reflector.LONG_LIVED", 0.0)
    world.lists = [status(500) for _ in range(4)]
    async with world.running(tmp_path):
        await until(lambda: bool(world.asked))
    assert delays.asked == [1, 2, 3, 4]


async def test_one_bad_object_does_not_hide_the_others(tmp_path: Path) -> None:
    world, stream = World(), Stream()
    world.lists = [listing([pod("a", 1), pod("bad", 2, spec={"containers": 7}), pod("b", 3)], "5")]
    world.watches = [stream]
    async with world.running(tmp_path):
        await until(lambda: world.names() == ["a", "b"])
        stream.send("MODIFIED", pod("a", 6, status={"phase": 1}))
        stream.send("ADDED", {"metadata": 5})
        stream.send("ADDED", pod("c", 7))
        await until(lambda: world.names() == ["b", "c"])
    assert world.bad == 3
    assert world.deleted == ["a"]


async def test_a_resource_that_is_not_served_is_reported_and_blocks_nothing(tmp_path: Path) -> None:
    world = World()
    world.lists = [status(404, "NotFound"), status(404, "NotFound")]
    async with world.running(tmp_path) as reflector:
        await until(lambda: reflector.state == "not served")
        assert reflector.healthy()
        assert world.store.get(Key("ns", "a")) is None


async def test_one_answer_404_to_a_watch_empties_no_store_and_leads_to_a_list(tmp_path: Path) -> None:
    world = World()
    world.lists = [listing([pod("a", 1)], "5"), listing([pod("a", 1)], "6")]
    world.watches = [status(404, "NotFound")]
    async with world.running(tmp_path) as reflector:
        await until(lambda: len(world.asked) == 2)
        assert reflector.state == "synced"
    assert world.versions() == ["5", "6"]
    assert world.deleted == []


async def test_one_answer_404_to_a_list_empties_no_store(tmp_path: Path) -> None:
    world = World()
    world.lists = [listing([pod("a", 1)], "5"), status(404, "NotFound"), listing([pod("a", 1)], "6")]
    world.watches = [status(410, "Expired", "too old")]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == 2)
    assert world.deleted == []


async def test_two_answers_404_in_a_row_empty_the_store(tmp_path: Path) -> None:
    world = World()
    world.lists = [listing([pod("a", 1)], "5"), status(404, "NotFound")]
    world.watches = [status(404, "NotFound")]
    async with world.running(tmp_path) as reflector:
        await until(lambda: reflector.state == "not served")
    assert world.deleted == ["a"]


def failing(kind: str) -> Stream | web.Response:
    """A watch that fails, or ends, without any event."""
    stream = Stream()
    if kind == "an ERROR event":
        stream.send("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "broken"})
    elif kind == "an event that is no JSON":
        stream.send_raw(b'{"type":"ADDED","object":{]}\n')
    elif kind == "status 500":
        return status(500, "InternalError")
    stream.end()
    return stream


KINDS = ["an ERROR event", "an event that is no JSON", "status 500", "a watch that ends at once"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_watch_that_fails_again_and_again_gives_way_to_a_new_list(tmp_path: Path, kind: str) -> None:
    world = World()
    world.lists = [listing([pod("a", 1)], "5"), listing([pod("b", 8)], "9")]
    world.watches = [failing(kind) for _ in range(FRUITLESS)]
    async with world.running(tmp_path) as reflector:
        await until(lambda: world.names() == ["b"])
        await until(lambda: len(world.asked) == FRUITLESS + 1)
        assert reflector.freshness.problem is None
    assert world.versions() == ["5"] * FRUITLESS + ["9"]


async def test_the_new_list_of_a_watch_that_goes_on_failing_is_not_made_at_every_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    monkeypatch.setattr("hvpa.kube.cache.reflector.RETRY", Delays())
    world.watches = [failing("status 500") for _ in range(2 * FRUITLESS)]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) > 2 * FRUITLESS)
    assert sum("watch" not in query for _, _, query in world.server.requests) == 3


async def test_a_watch_that_fails_after_each_event_is_resumed_and_not_listed_anew(tmp_path: Path) -> None:
    world = World()
    for version in range(10, 10 + FRUITLESS + 1):
        stream = Stream()
        stream.send("ADDED", pod(f"p{version}", version))
        stream.send("ERROR", {"kind": "Status", "code": 500, "message": "broken"})
        world.watches.append(stream)
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == FRUITLESS + 2)
    assert len(set(world.versions())) == FRUITLESS + 2
    assert sum("watch" not in query for _, _, query in world.server.requests) == 1


async def test_a_watch_that_is_refused_as_wrong_is_followed_by_a_list_at_once(tmp_path: Path) -> None:
    world = World()
    world.lists = [listing([], "5"), listing([], "9")]
    world.watches = [status(400, "BadRequest")]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == 2)
    assert world.versions() == ["5", "9"]


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_is_busy_or_not_there_is_not_listed_anew(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    monkeypatch.setattr("hvpa.kube.cache.reflector.RETRY", Delays())
    world.watches = [status(code) for _ in range(FRUITLESS + 1)]
    async with world.running(tmp_path):
        await until(lambda: len(world.asked) == FRUITLESS + 2)
    assert set(world.versions()) == {"1"}
