"""List and watch, against a server that misbehaves; and since when a store is out of date, and who learns of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from hvpa.api.objects.read_models import Pod
from hvpa.kube.cache.reflector import FRUITLESS, STALE, Freshness, Reflector, Reports
from hvpa.kube.cache.store import ALL_NAMESPACES, Store
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.objects.resources import PODS
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import FakeServer, Stream, background, listing, respond, status, until


def pod(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}, **more}


@pytest.fixture(autouse=True)
def delays(monkeypatch: pytest.MonkeyPatch) -> Delays:
    """None of the waits."""
    delays = Delays()
    monkeypatch.setattr("hvpa.kube.cache.reflector.RETRY", delays)
    monkeypatch.setattr("hvpa.kube.cache.reflector.SECOND_LOOK", 0.0)
    return delays


def bookmark(version: int) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}}


class Delays:
    """Stands in for the back-off: notes how many failures it was asked about, and does not wait."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def delay(self, failures: int, rng: object) -> float:
        self.asked.append(failures)
        return 0.001


class Harness(Telemetry, Reports):
    """A reflector at work, and its server."""

    def __init__(self) -> None:
        self.set_back_by = 0
        self.faults: list[str] = []
        self.server = FakeServer(self._handle)
        self.lists: list[web.Response] = []
        self.watches: list[Stream | web.Response] = []
        self.asked: list[dict[str, str]] = []
        self.revision = 1000
        """The server's version, as a list of one object has it."""
        self.check: web.Response | None = None
        """In place of that list."""
        self.restarts: list[str] = []
        self.bad = 0
        self.deleted: list[str] = []
        self.store: Store[Pod] = Store((ALL_NAMESPACES,), self._note)

    def watch_restarted(self, plural: str, reason: str) -> None:
        self.restarts.append(reason)

    def bad_object(self, plural: str) -> None:
        self.bad += 1

    def set_back(self, reflector: Reflector[Any]) -> None:
        self.set_back_by += 1

    def failed(self, task: str, error: Exception) -> None:
        self.faults.append(task)

    def names(self) -> list[str]:
        return sorted(key.name for key in self.store)

    def versions(self) -> list[str]:
        return [query["resourceVersion"] for query in self.asked]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") == "1":
            return listing([], str(self.revision)) if self.check is None else respond(self.check)
        if request.query.get("watch") != "true":
            return self.lists.pop(0) if self.lists else listing([], "1")
        self.asked.append(dict(request.query))
        answer = self.watches.pop(0) if self.watches else Stream()
        return await answer.respond(request) if isinstance(answer, Stream) else answer

    def _note(self, old: Pod | None, new: Pod | None, own: bool) -> None:
        if "poison" in {pod.metadata.name for pod in (old, new) if pod is not None}:
            raise KeyError("poison")
        if new is None and old is not None:
            self.deleted.append(old.metadata.name)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[Reflector[Pod]]:
        async with self.server.connected(folder) as transport:
            reflector = Reflector(transport, PODS, ALL_NAMESPACES, self.store, self, self)
            async with background(reflector.run()):
                yield reflector

    async def watched(self, times: int = 1) -> None:
        """Wait until so many watches have begun."""
        await until(lambda: len(self.asked) == times)

    @property
    def lists_made(self) -> int:
        """How many lists were requested."""
        return sum(query.get("limit") == "500" for _, _, query in self.server.requests)


async def test_all_pages_are_listed_then_changes_are_followed(tmp_path: Path) -> None:
    harness, stream = Harness(), Stream()
    harness.lists = [listing([pod("a", 1)], "5", "more"), listing([pod("b", 2)], "5")]
    harness.watches = [stream]
    async with harness.running(tmp_path) as reflector:
        await harness.watched()
        assert reflector.state == "synced"
        assert harness.names() == ["a", "b"]
        assert harness.server.requests[0][2] == {"limit": "500"}
        assert harness.server.requests[1][2] == {"limit": "500", "continue": "more"}
        assert harness.asked[0]["resourceVersion"] == "5"
        assert harness.asked[0]["allowWatchBookmarks"] == "true"
        stream.send("ADDED", pod("c", 6))
        stream.send("DELETED", pod("a", 7))
        await until(lambda: harness.names() == ["b", "c"])


async def test_a_watch_that_ends_is_resumed_after_the_last_bookmark_without_a_list(tmp_path: Path) -> None:
    harness, stream = Harness(), Stream()
    harness.lists = [listing([pod("a", 1)], "5")]
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await harness.watched()
        stream.send("BOOKMARK", bookmark(99))
        stream.end()
        await harness.watched(2)
    assert harness.versions() == ["5", "99"]
    assert harness.restarts == ["ended"]
    assert harness.names() == ["a"]
    assert harness.lists_made == 1


async def test_a_connection_that_breaks_in_mid_event_is_resumed_and_nothing_is_lost(tmp_path: Path) -> None:
    harness, stream = Harness(), Stream()
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await harness.watched()
        stream.send("ADDED", pod("a", 6))
        stream.send_raw(b'{"type":"ADDED","object":{"metadata":{"na')
        stream.end()
        await harness.watched(2)
    assert harness.versions() == ["1", "6"]


def event(code: int, reason: str = "") -> Stream:
    """A watch that ends with an ERROR event, or (0) at once."""
    stream = Stream()
    if code:
        stream.send("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "broken"})
    stream.end()
    return stream


def no_json() -> Stream:
    stream = Stream()
    stream.send_raw(b'{"type":"ADDED","object":{]}\n')
    stream.end()
    return stream


A, AB = [pod("a", 1)], [pod("a", 1), pod("b", 2)]
BC = [pod("b", 2), pod("c", 8)]
GONE, NOT_FOUND = (410, "Expired", "too old"), (404, "NotFound")
MANY = range(FRUITLESS)


@pytest.mark.parametrize(
    ("lists", "watches", "versions", "deleted"),
    [
        pytest.param(["5", AB, "9", BC], lambda: [event(410)], "5 9", "a", id="an event 410 leads to a list"),
        pytest.param(["5", AB, "9", BC], lambda: [status(*GONE)], "5 9", "a", id="so does a response 410"),
        pytest.param([500, 503, "5", A], list, "5", "", id="lists that fail are tried again"),
        pytest.param([{}, {"metadata": {}, "items": []}, "5", A], list, "5", "", id="other JSON is no list"),
        pytest.param(
            ["5", A, "6", A], lambda: [status(*NOT_FOUND)], "5 6", "", id="one 404 to a watch empties no store"
        ),
        pytest.param(
            ["5", A, 404, "6", A], lambda: [status(*GONE)], "5 6", "", id="nor does one 404 to a list"
        ),
        pytest.param(["5", A, "9", BC], lambda: [status(400)], "5 9", "a", id="one that is refused is listed"),
        *[
            pytest.param(
                ["5", A, "9", BC], lambda answer=answer: [answer() for _ in MANY], "5 " * FRUITLESS + "9", "a", id=id
            )
            for answer, id in (
                (lambda: event(500), "an ERROR event again and again leads to a list"),
                (no_json, "no JSON again and again"),
                (lambda: status(500), "status 500 again and again"),
                (lambda: event(0), "an end at once again and again"),
            )
        ],
        *[
            pytest.param(
                ["5", A], lambda code=code: [status(code) for _ in (0, *MANY)], "5 " * (FRUITLESS + 2), "", id=id
            )
            for code, id in ((429, "a busy server is not listed anew"), (503, "nor is one that is not there"))
        ],
    ],
)  # fmt: skip
async def test_lists_and_watches_that_fail_are_followed_by_what_helps(
    tmp_path: Path, lists: list[Any], watches: Any, versions: str, deleted: str
) -> None:
    """`lists`: codes of failures, bodies, and resource versions each with the items; `watches` fail one after another,
    and the one after them stays. Then `versions` have been watched from, and `deleted` is what went."""
    harness, expected = Harness(), versions.split()
    items: Any = []
    for answer, following in zip(lists, [*lists[1:], None], strict=True):
        if isinstance(answer, int):
            harness.lists.append(status(answer, headers={"Retry-After": "0"}))
        elif isinstance(answer, dict):
            harness.lists.append(web.json_response(answer))
        elif isinstance(answer, str):
            harness.lists.append(listing(following or [], answer))
            items = following
    harness.watches = watches()
    async with harness.running(tmp_path) as reflector:
        await harness.watched(len(expected))
        assert reflector.state == "synced"
    assert harness.versions() == expected
    assert " ".join(harness.deleted) == deleted
    assert harness.names() == [item["metadata"]["name"] for item in items or []]


async def test_two_responses_404_in_a_row_empty_the_store_and_block_nothing(tmp_path: Path) -> None:
    harness = Harness()
    harness.lists = [listing(A, "5"), status(404, "NotFound")]
    harness.watches = [status(404, "NotFound")]
    async with harness.running(tmp_path) as reflector:
        await until(lambda: reflector.state == "not served")
        assert reflector.healthy()
    assert harness.deleted == ["a"]


@pytest.mark.parametrize("lists", [True, False])
async def test_neither_lists_that_succeed_nor_a_time_without_watch_hurry_the_next_try(
    tmp_path: Path, lists: bool, delays: Delays, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness()
    if lists:
        harness.watches = [status(*GONE) for _ in range(4)]
    else:
        monkeypatch.setattr("hvpa.kube.cache.reflector.LONG_LIVED", 0.0)
        harness.lists = [status(500) for _ in range(4)]
    async with harness.running(tmp_path):
        await harness.watched(5 if lists else 1)
    assert delays.asked == [1, 2, 3, 4]


async def test_one_bad_object_does_not_hide_the_others(tmp_path: Path) -> None:
    harness, stream = Harness(), Stream()
    harness.lists = [listing([pod("a", 1), pod("bad", 2, spec={"containers": 7}), pod("b", 3)], "5")]
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await until(lambda: harness.names() == ["a", "b"])
        stream.send("MODIFIED", pod("a", 6, status={"phase": 1}))
        stream.send("ADDED", {"metadata": 5})
        stream.send("ADDED", pod("c", 7))
        await until(lambda: harness.names() == ["b", "c"])
    assert harness.bad == 3
    assert harness.deleted == ["a"]


async def test_a_watch_that_goes_on_failing_is_not_listed_at_every_try(tmp_path: Path) -> None:
    harness = Harness()
    harness.watches = [status(500) for _ in range(2 * FRUITLESS)]
    async with harness.running(tmp_path):
        await until(lambda: len(harness.asked) > 2 * FRUITLESS)
    assert harness.lists_made == 3


async def test_a_watch_that_fails_after_each_event_is_resumed_and_not_listed_anew(tmp_path: Path) -> None:
    harness = Harness()
    for version in range(10, 10 + FRUITLESS + 1):
        stream = Stream()
        stream.send("ADDED", pod(f"p{version}", version))
        stream.send("ERROR", {"kind": "Status", "code": 500, "message": "broken"})
        harness.watches.append(stream)
    async with harness.running(tmp_path):
        await harness.watched(FRUITLESS + 2)
    assert len(set(harness.versions())) == FRUITLESS + 2
    assert harness.lists_made == 1


# --- the cluster is set back, as by a restore of etcd ---
@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED", "BOOKMARK"])
async def test_an_event_or_bookmark_below_the_known_version_leads_to_a_list(
    tmp_path: Path, kind: str
) -> None:
    harness, stream = Harness(), Stream()
    harness.lists = [listing(AB, "50"), listing(A, "30")]
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await harness.watched()
        stream.send(kind, bookmark(20) if kind == "BOOKMARK" else pod("a", 20))
        await harness.watched(2)
    assert harness.versions() == ["50", "30"]
    assert harness.restarts == ["expired"]
    assert (harness.names(), harness.deleted) == (["a"], ["b"])
    assert harness.set_back_by == 1


@pytest.mark.parametrize(
    ("revision", "lists"),
    [
        pytest.param(40, 2, id="below the watch's version"),
        pytest.param(50, 1, id="as before"),
        pytest.param(90, 1, id="or above"),
    ],
)
async def test_after_a_watch_broke_the_server_s_version_is_looked_at(
    tmp_path: Path, revision: int, lists: int
) -> None:
    """A watch from a version that the server has not reached again would be silent."""
    harness, stream = Harness(), Stream()
    harness.lists, harness.revision = [listing(AB, "50"), listing(A, "40")], revision
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await harness.watched()
        stream.end()
        await harness.watched(2)
    assert harness.lists_made == lists
    assert harness.names() == (["a"] if lists == 2 else ["a", "b"])


async def test_a_look_at_the_server_s_version_that_fails_is_tried_again(tmp_path: Path) -> None:
    harness = Harness()
    harness.lists, harness.watches = [listing(A, "50")], [status(503)]
    harness.check = status(503)
    async with harness.running(tmp_path) as reflector:
        await until(lambda: reflector.freshness.problem == "503" and len(harness.server.requests) > 5)
        assert len(harness.asked) == 1
        harness.check = None
        await harness.watched(2)
    assert harness.versions() == ["50", "50"]


@pytest.mark.parametrize(("code", "listed"), [(503, 2), (429, 1)])
async def test_after_an_outage_all_is_listed_but_not_for_a_server_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, listed: int
) -> None:
    monkeypatch.setattr("hvpa.kube.cache.reflector.OUTAGE", 0.0)
    harness = Harness()
    harness.lists = [listing(AB, "50"), listing(A, "60")]
    harness.watches = [status(code)]
    async with harness.running(tmp_path):
        await harness.watched(2)
    assert harness.lists_made == listed


async def test_a_list_is_called_for_from_outside_while_a_watch_is_silent_or_a_list_is_made(
    tmp_path: Path,
) -> None:
    harness = Harness()
    harness.lists = [listing([pod("a", 45)], "50"), listing([pod("a", 45, spec={"nodeName": "n"})], "50")]
    async with harness.running(tmp_path) as reflector:
        await harness.watched()
        reflector.relist()
        assert "set back" in (reflector.freshness.problem or "")
        await harness.watched(2)
        await until(lambda: not reflector.freshness.stale)
        reflector.relist()
        reflector.relist()
        await harness.watched(3)
    assert harness.lists_made == 3


# --- what goes wrong in the program itself ---
async def test_a_change_that_can_t_be_taken_in_hides_no_other_object(tmp_path: Path) -> None:
    harness, stream = Harness(), Stream()
    harness.lists = [listing([pod("a", 1), pod("poison", 2), pod("b", 3)], "5")]
    harness.watches = [stream]
    async with harness.running(tmp_path):
        await harness.watched()
        stream.send("MODIFIED", pod("poison", 6))
        stream.send("DELETED", pod("poison", 7))
        stream.send("ADDED", pod("c", 8))
        await until(lambda: harness.names() == ["a", "b", "c"])
    assert harness.faults == ["watch pods"] * 3


async def test_a_watch_that_crashed_begins_with_a_list_and_says_so(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.running(tmp_path) as reflector:
        await harness.watched()
    reflector.crashed(KeyError("10.0.0.1"))
    assert reflector.freshness.problem == "internal error: KeyError"
    assert not reflector.freshness.stale, "only if it goes on"
    async with harness.server.connected(tmp_path) as transport:
        reflector._transport = transport
        async with background(reflector.run()):
            await harness.watched(2)
    assert harness.lists_made == 2
    assert reflector.freshness.problem is None


# --- freshness ---
FORBIDDEN = ApiError(403, "Forbidden", 'User "system:serviceaccount:a:b" cannot list resource "pods"')


class Time:
    """A monotonic clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("steps", "stale"),
    [
        pytest.param("ok 1000 fail", False, id="a quiet watch that breaks now is not out of date"),
        pytest.param("ok 1000 fail 60 fail", True, id="one that fails for a minute is"),
        pytest.param("ok 1000 fail 60 fail ok", False, id="and is not once it succeeds"),
        pytest.param("fail 59 ok fail 59 ok fail", False, id="a failure that passes within a minute is none"),
        pytest.param(
            "ok 60 worked 1 fail 60 worked 1 fail", False, id="a quiet watch may break now and then"
        ),
        pytest.param(
            "fail 61", False, id="a watch that broke once and is open again is fresh while it is quiet"
        ),
    ],
)
def test_a_store_is_out_of_date_once_list_and_watch_have_failed_for_a_minute(steps: str, stale: bool) -> None:
    time, last = Time(), None
    fresh = Freshness("pods", "", time)
    for step in steps.split():
        match step:
            case "ok":
                fresh.succeeded()
                last = time.now
            case "fail" | "worked":
                fresh.failed(FORBIDDEN, had_worked=step == "worked")
            case seconds:
                time.now += float(seconds)
    assert (fresh.stale, fresh.succeeded_at) == (stale, last)


def test_it_is_logged_once_and_so_is_the_end_of_it() -> None:
    time = Time()
    fresh = Freshness("pods", "ns", time)
    with capture_logs() as logs:
        fresh.succeeded()
        for _ in range(4):
            fresh.failed(FORBIDDEN)
            time.now += STALE / 2
        fresh.succeeded()
        fresh.succeeded()
    assert [(line["log_level"], line["event"], line["resource"], line["scope"]) for line in logs] == [
        ("warning", "cache is out of date: neither list nor watch succeeds", "pods", "ns"),
        ("info", "cache is up to date again", "pods", "ns"),
    ]
    assert "cannot list" in logs[0]["error"]
    assert (logs[0]["seconds"], logs[1]["seconds"]) == (60, 120)


def test_the_problem_names_neither_accounts_nor_addresses() -> None:
    fresh = Freshness("pods", "", Time())
    fresh.failed(FORBIDDEN)
    assert fresh.problem == "403 Forbidden"
    fresh.failed(Unreachable("Cannot connect to host 10.0.0.1:443"))
    assert fresh.problem == "no usable response"
