"""What a hostile or slow client gets from the HTTP servers: short responses that reveal nothing, for a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from hvpa.kube.server import acceptor
from hvpa.kube.server import endpoints as serving
from hvpa.kube.server.endpoints import Routes, text_response
from tests.unit.kube.fake_server import LONG, until
from tests.unit.kube.server.listening import fine, listening

LARGE = b"x" * 50_000_000
"""More than socket buffers take."""


async def _large() -> web.Response:
    return web.Response(body=LARGE)


async def _fails() -> web.Response:
    raise RuntimeError("secret reason")


ROUTES: Routes = {"/ok": fine, "/large": _large, "/fails": _fails}


async def exchange(port: int, sent: bytes) -> bytes:
    """All that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), LONG)
    finally:
        writer.close()


def request(path: str = "/ok", method: str = "GET", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: here", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (request(), 200, b"fine"),
        (request("/ok?a=b"), 200, b"fine"),
        (request("/ok", "HEAD"), 200, b""),
        (request("/other/secret-path"), 404, b"not found\n"),
        (request("/ok/../fails"), 404, b"not found\n"),
        (request("/ok", "POST", "Content-Length: 0"), 405, b"method not allowed\n"),
        (request("/ok", "DELETE"), 405, b"method not allowed\n"),
        (request("/fails"), 500, b"internal error\n"),
        (b"\x16\x03\x01\x02secret\r\n\r\n", 400, b"bad request\n"),
        (request("/ok", "GET", "X: a\x00secret"), 400, b"bad request\n"),
        (request("/" + "a" * serving.MAX_LINE), 400, b"bad request\n"),
        (request("/ok", "GET", "Authorization: Bearer " + "a" * serving.MAX_FIELD), 400, b"bad request\n"),
        (request("/ok", "GET", *["X: y"] * (serving.MAX_HEADERS + 1)), 400, b"bad request\n"),
    ],
)
async def test_responses_reveal_nothing(sent: bytes, status: int, body: bytes) -> None:
    async with listening(ROUTES) as (port, _):
        head, _, content = (await exchange(port, sent)).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert content == body
    assert b"\r\nServer: hvpa" in head
    for secret in (b"ython", b"aiohttp", b"secret", b"Traceback"):
        assert secret not in head + content


async def test_a_fault_of_ours_is_logged_and_a_client_s_is_not() -> None:
    async with listening(ROUTES) as (port, _):
        with capture_logs() as logs:
            await exchange(port, b"nonsense\r\n\r\n")
            await exchange(port, request("/fails"))
    assert [(line["event"], line["error"]) for line in logs] == [
        ("a request could not be answered", "RuntimeError('secret reason')")
    ]


async def test_a_guard_s_refusal_is_what_is_answered() -> None:
    guarded: list[str] = []

    async def guard(request: web.BaseRequest) -> web.Response | None:
        guarded.append(request.path)
        return text_response(403, "no") if request.query_string else None

    async with listening(ROUTES, guard) as (port, _):
        assert b"403 Forbidden" in await exchange(port, request("/ok?no"))
        assert (await exchange(port, request("/ok"))).endswith(b"fine")
        await exchange(port, request("/nowhere"))
    assert guarded == ["/ok", "/ok"]


async def _silent(writer: asyncio.StreamWriter) -> None:
    pass


async def _drop_by_drop(writer: asyncio.StreamWriter) -> None:
    for byte in request("/ok", "GET", *["X: y"] * 20):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


async def _after_one_answer(writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /ok HTTP/1.1\r\nHost: here\r\n\r\nGET /ok HTTP/1.1\r\nHo")


@pytest.mark.parametrize("sends", [_silent, _drop_by_drop, _after_one_answer])
async def test_a_client_that_does_not_finish_its_request_is_cut_off(
    sends: Callable[[asyncio.StreamWriter], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "HEADER", 0.3)
    monkeypatch.setattr(acceptor, "IDLE", 0.3)
    async with listening(ROUTES) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sending = asyncio.ensure_future(sends(writer))
        answer = b""
        with suppress(ConnectionError):  # while something was still on its way
            while chunk := await asyncio.wait_for(reader.read(2**16), LONG):
                answer += chunk
        assert answer.count(b"HTTP/1.1") == (1 if sends is _after_one_answer else 0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()


async def test_a_client_that_does_not_take_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded: list[str] = []

    async def guard(request: web.BaseRequest) -> None:
        guarded.append(request.path)

    monkeypatch.setattr(serving, "RESPONSE", 0.3)
    async with listening(ROUTES, guard) as (port, listener):
        with capture_logs() as logs:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("/large"))
            await until(lambda: bool(guarded) and not listener.connections)
            taken = 0
            with suppress(ConnectionError):
                while chunk := await asyncio.wait_for(reader.read(2**20), LONG):
                    taken += len(chunk)
            assert taken < len(LARGE)
            writer.close()
        monkeypatch.setattr(serving, "RESPONSE", LONG)
        assert (await exchange(port, request())).endswith(b"fine")
    assert logs == []


async def test_a_large_answer_comes_whole_and_head_brings_its_length_only() -> None:
    async with listening(ROUTES) as (port, _):
        head, _, content = (await exchange(port, request("/large"))).partition(b"\r\n\r\n")
        assert content == LARGE
        assert f"Content-Length: {len(LARGE)}".encode() in head
        head, _, content = (await exchange(port, request("/large", "HEAD"))).partition(b"\r\n\r\n")
        assert f"Content-Length: {len(LARGE)}".encode() in head
        assert content == b""


async def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    async with listening(ROUTES) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /ok HTTP/1.1\r\nHost: here\r\n\r\n")
        await reader.readuntil(b"fine")
    assert await asyncio.wait_for(reader.read(), LONG) == b""
    writer.close()
