"""Who may read the metrics, against an API server that says what a test has it say. (The real one: end to end.)"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from hvpa.kube.server import auth as serve_auth
from hvpa.kube.server.auth import ACCESS_REVIEWS, ALLOWED_SECONDS, REFUSED_SECONDS, TOKEN_REVIEWS, TokenGuard
from tests.unit.kube.fake_server import FakeServer, reserved_port, status, until
from tests.unit.kube.server.listening import fine, listening

USER = {"username": "prometheus", "uid": "1", "groups": ["g"], "extra": {"scopes": ["a"]}}


class Harness:
    """An API server that knows tokens and rights, the operator's metrics behind a guard, and a clock."""

    def __init__(self) -> None:
        self.server = FakeServer(self._review)
        self.tokens: dict[str, dict[str, Any]] = {"good": USER, "bare": {"username": "nobody"}}
        self.allowed = {"prometheus"}
        self.now = 0.0
        self.answer: web.StreamResponse | None = None
        self.held: asyncio.Event | None = None
        self.port = 0
        self.guard: TokenGuard

    async def _review(self, request: web.Request) -> web.StreamResponse:
        if self.held is not None:
            await self.held.wait()
        if self.answer is not None:
            return self.answer
        spec = json.loads(await request.read())["spec"]
        if request.path == TOKEN_REVIEWS:
            user = self.tokens.get(spec["token"])
            if user is None:
                return web.json_response({"status": {"error": "bad token"}}, status=201)
            return web.json_response({"status": {"authenticated": True, "user": user}}, status=201)
        allowed = spec["user"] in self.allowed
        return web.json_response({"status": {"allowed": allowed, "reason": "because"}}, status=201)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[None]:
        async with self.server.connected(folder) as transport:
            self.guard = TokenGuard(transport, lambda: self.now)
            async with listening({"/metrics": fine}, self.guard) as (self.port, _):
                yield

    async def get(self, authorization: str | None = None, method: str = "GET") -> tuple[int, str]:
        headers = {} if authorization is None else {"Authorization": authorization}
        async with (
            ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{self.port}/metrics", headers=headers) as answer,
        ):
            if answer.status == 401:
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            return answer.status, await answer.text()


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness()
    async with harness.running(tmp_path):
        yield harness


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer good morning"]
)
async def test_without_a_token_nobody_is_asked(harness: Harness, header: str | None) -> None:
    assert await harness.get(header) == (401, "unauthorized\n")
    assert harness.server.paths == []


@pytest.mark.parametrize("header", ["Bearer good", "bearer good", "BEARER  good "])
async def test_a_token_with_the_right_is_let_in(harness: Harness, header: str) -> None:
    assert await harness.get(header) == (200, "fine")
    assert harness.server.paths == [TOKEN_REVIEWS, ACCESS_REVIEWS]
    token, access = harness.server.bodies
    assert token == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "good"},
    }
    assert access["apiVersion"] == "authorization.k8s.io/v1"
    assert access["spec"] == {
        "user": "prometheus",
        "uid": "1",
        "groups": ["g"],
        "extra": {"scopes": ["a"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_whoever_is_unknown_or_without_the_right_is_refused(harness: Harness) -> None:
    assert await harness.get("Bearer wrong") == (401, "unauthorized\n")
    assert harness.server.paths == [TOKEN_REVIEWS]
    assert await harness.get("Bearer bare", "HEAD") == (403, "")
    assert await harness.get("Bearer bare") == (403, "authorization denied for user 'nobody'\n")
    specs = [body["spec"] for body in harness.server.bodies[2::2]]
    assert specs == [
        {"user": "nobody", "uid": "", "groups": [], "extra": {}, "nonResourceAttributes": attributes}
        for attributes in ({"path": "/metrics", "verb": "head"}, {"path": "/metrics", "verb": "get"})
    ]


async def test_an_answer_is_remembered_for_a_while(harness: Harness) -> None:
    assert (await harness.get("Bearer good"))[0] == 200
    harness.allowed.clear()
    harness.now = ALLOWED_SECONDS - 1
    assert (await harness.get("Bearer good"))[0] == 200
    assert len(harness.server.paths) == 2
    harness.now = ALLOWED_SECONDS
    assert (await harness.get("Bearer good"))[0] == 403
    harness.allowed.add("prometheus")
    harness.now += REFUSED_SECONDS - 1
    assert (await harness.get("Bearer good"))[0] == 403
    harness.now += 1
    assert (await harness.get("Bearer good"))[0] == 200


async def test_made_up_tokens_neither_fill_the_memory_nor_push_out_good_ones(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_auth, "REMEMBERED", 3)
    assert (await harness.get("Bearer good"))[0] == 200
    for number in range(5):
        assert (await harness.get(f"Bearer wrong-{number}"))[0] == 401
    harness.server.requests.clear()
    assert (await harness.get("Bearer good"))[0] == 200
    assert (await harness.get("Bearer wrong-4"))[0] == 401
    assert harness.server.paths == []
    assert (await harness.get("Bearer wrong-0"))[0] == 401  # forgotten, so asked again
    assert harness.server.paths == [TOKEN_REVIEWS]


async def test_what_waits_for_its_turn_is_not_asked_once_more(harness: Harness) -> None:
    harness.held = asyncio.Event()
    asking = [asyncio.ensure_future(harness.get("Bearer good")) for _ in range(20)]
    await until(lambda: len(harness.server.paths) == serve_auth.REVIEWS_AT_ONCE)
    harness.held.set()
    assert {code for code, _ in await asyncio.gather(*asking)} == {200}
    assert len(harness.server.paths) == 2 * serve_auth.REVIEWS_AT_ONCE


REVIEWS = (
    *[(status(code, "Reason", "secret message"), refusal)
      for code, refusal in ((500, 503), (503, 503), (429, 503), (401, 500), (403, 500), (404, 500))],
    *[(web.Response(status=201, text=body), 500)
      for body in ("", "[]", '{"status": 1}', '{"status": {"authenticated": "yes"}}')],
    *[(web.Response(status=201, text='{"status": {' + text + '}}'), 401)
      for text in ("", '"authenticated": true', '"user": {"username": "prometheus"}')],
)  # fmt: skip
"""What the API server answers to each review, and the status of the refusal."""


@pytest.mark.parametrize("number", range(len(REVIEWS)))
async def test_an_answer_that_is_no_review_opens_nothing(harness: Harness, number: int) -> None:
    harness.answer, refusal = REVIEWS[number]
    with capture_logs() as logs:
        answered, text = await harness.get("Bearer good")
    assert answered == refusal
    assert "secret" not in text
    if refusal == 401:
        return
    assert logs[-1]["event"] in ("a review of a token was refused", "a review of a token can't be read")
    harness.answer = None
    assert (await harness.get("Bearer good"))[0] == 200  # not remembered


async def test_an_api_server_that_is_gone_opens_nothing(tmp_path: Path) -> None:
    harness = Harness()
    with reserved_port() as gone:
        harness.server.url = f"http://127.0.0.1:{gone}"
        async with (
            harness.server.transport(tmp_path) as transport,
            listening({"/metrics": fine}, TokenGuard(transport)) as (harness.port, _),
        ):
            with capture_logs() as logs:
                assert await harness.get("Bearer good") == (503, "the API server can't be reached\n")
            assert logs[-1]["event"] == "the API server can't be reached to review a token"


async def test_no_token_is_kept_or_logged(harness: Harness) -> None:
    with capture_logs() as logs:
        for token in ("good", "wrong-and-secret"):
            await harness.get(f"Bearer {token}")
        harness.answer = status(500)
        await harness.get("Bearer other-secret")
    assert "secret" not in repr(logs)
    kept = repr([cache._found for cache in (harness.guard._allowed, harness.guard._refused)])
    assert "good" not in kept
    assert "secret" not in kept
    assert "prometheus" in kept


async def test_only_so_many_are_reviewed_at_once(harness: Harness) -> None:
    harness.held = asyncio.Event()
    asking = [asyncio.ensure_future(harness.get(f"Bearer wrong-{number}")) for number in range(10)]
    await until(lambda: len(harness.server.paths) == serve_auth.REVIEWS_AT_ONCE)
    await asyncio.sleep(0.1)
    assert len(harness.server.paths) == serve_auth.REVIEWS_AT_ONCE
    harness.held.set()
    assert {code for code, _ in await asyncio.gather(*asking)} == {401}
    assert len(harness.server.paths) == 10
