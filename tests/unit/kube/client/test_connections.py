"""Connections that are kept, closed by either side, lost, cut, silent or dead; with both event loops."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from hvpa.kube.client.errors import TooLarge, Unreachable
from hvpa.kube.client.transport import DEAD_AFTER, MOST_BYTES, Body, Transport, _new_socket
from localcluster.client.pki import Authority
from tests.unit.kube.client.scripted_server import OK, READ, Server
from tests.unit.kube.fake_server import LONG, FakeServer, until

CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
MANY = 16
"""As many connections as there may be writes at once."""
SOON = 0.3
"""Seconds after which a request counts as lost, of which nothing arrived."""


@pytest.mark.parametrize("answer", [OK, CHUNKS])
async def test_a_connection_that_is_lost_in_mid_answer_is_an_error(tmp_path: Path, answer: bytes) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(answer[: server.connections - 1])
        await writer.drain()

    server = Server(conversation=conversation)
    async with server.running(), server.transport(tmp_path) as transport:
        for _ in range(len(answer)):
            with pytest.raises(Unreachable):
                await transport.request("PATCH", "/", None, Body(b"{}"))
    assert server.connections == len(answer)


@pytest.mark.parametrize(
    ("answer", "connections"),
    [(OK, 1), (CHUNKS, 1), (LAST, 3), (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3)],
)
async def test_a_connection_is_used_again_where_it_can_be(
    tmp_path: Path, answer: bytes, connections: int
) -> None:
    server = Server(answer=answer)
    async with server.running(), server.transport(tmp_path) as transport:
        for _ in range(3):
            assert await transport.request("PATCH", "/", None, Body(b"{}")) == b"ok"
        assert server.connections == connections


async def test_bytes_on_an_idle_connection_are_no_response_to_the_next_request(tmp_path: Path) -> None:
    chatter = asyncio.Event()
    server = Server(READ, OK, chatter, OK.replace(b"ok", b"no"), READ)
    async with server.running(), server.transport(tmp_path) as transport:
        await transport.request("GET", "/")
        chatter.set()
        await asyncio.sleep(0.05)  # it arrives
        assert await transport.request("PATCH", "/") == b"ok"
        assert server.connections == 2


async def test_a_connection_that_the_server_has_closed_is_not_used(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    server = Server(READ, OK, go_on)
    async with server.running(), server.transport(tmp_path) as transport:
        await transport.request("PATCH", "/")
        go_on.set()
        await until(lambda: server.open == 0)
        await asyncio.sleep(0.05)  # its end arrives
        assert await transport.request("PATCH", "/") == b"ok"


@pytest.mark.parametrize(
    ("method", "is_repeated"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("PATCH", False), ("POST", False)],
)
async def test_only_what_may_be_sent_twice_is_sent_again_where_a_kept_connection_ends(
    tmp_path: Path, method: str, is_repeated: bool
) -> None:
    server = Server(READ, OK, READ)
    async with server.running(), server.transport(tmp_path) as transport:
        await transport.request("GET", "/")
        if is_repeated:
            assert await transport.request(method, "/again", None, Body(b"{}")) == b"ok"
        else:
            with pytest.raises(Unreachable):
                await transport.request(method, "/again", None, Body(b"{}"))
    assert server.requests == ["GET /"] + [f"{method} /again"] * (1 + is_repeated)


async def test_a_caller_that_is_cancelled_leaves_no_response_for_the_next_one(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    server = Server(READ, go_on, OK.replace(b"ok", b"no"), READ)
    async with server.running(), server.transport(tmp_path) as transport:
        cancelled = asyncio.ensure_future(transport.request("PATCH", "/"))
        await until(lambda: len(server.requests) == 1)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        go_on.set()
        assert await transport.request("PATCH", "/") == b"ok"
        assert server.connections == 2


async def test_an_answer_that_is_not_http(tmp_path: Path) -> None:
    server = Server(answer=b"220 smtp.example.org ESMTP\r\n")
    async with server.running(), server.transport(tmp_path) as transport:
        with pytest.raises(Unreachable):
            await transport.request("GET", "/")
        await until(lambda: server.open == 0)


async def test_nothing_can_be_put_into_the_head(tmp_path: Path) -> None:
    server = Server()
    async with server.running(), server.transport(tmp_path, token="two\nX-More: lines") as transport:
        with pytest.raises(Unreachable) as caught:
            await transport.request("GET", "/")
    assert server.requests == []
    assert "X-More" not in str(caught.value)


@pytest.mark.parametrize(
    "head", [b"Content-Length: %d\r\n" % (MOST_BYTES + 1), b"Transfer-Encoding: chunked\r\n"]
)
async def test_an_answer_without_end_is_given_up(tmp_path: Path, head: bytes) -> None:
    piece = b"x" * 2**20
    piece = b"%x\r\n%s\r\n" % (len(piece), piece) if b"chunked" in head else piece

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        if server.connections > 1:
            writer.write(OK)
            return
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        while True:
            writer.write(piece)
            await writer.drain()

    server = Server(conversation=flood)
    async with server.running(), server.transport(tmp_path) as transport:
        with pytest.raises(TooLarge, match=f"more than {MOST_BYTES} bytes"):
            await transport.request("GET", "/", timeout=LONG)
        await until(lambda: server.open == 0)
        assert await transport.request("GET", "/") == b"ok"


async def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\none\n")
        while True:
            writer.write(b"x" * 2**20)
            await writer.drain()

    server = Server(conversation=flood)
    async with (
        server.running(),
        server.transport(tmp_path) as transport,
        aclosing(transport.stream("/", {}, LONG)) as lines,
    ):
        assert await anext(lines) == b"one"
        with pytest.raises(Unreachable, match=f"more than {MOST_BYTES} bytes"):
            await anext(lines)


# --- dead lines -------------------------------------------------------------------------------------------------------
class Crowd(FakeServer):
    """Answers the first MANY requests when they are all there, so over as many connections; later ones at once."""

    def __init__(self) -> None:
        super().__init__(self._together)

    async def _together(self, request: web.Request) -> web.StreamResponse:
        await until(lambda: len(self.requests) >= MANY)
        return web.Response(body=b"{}")

    @asynccontextmanager
    async def lost(self, folder: Path) -> AsyncIterator[Transport]:
        """A transport whose MANY connections are all dead."""
        async with self.connected(folder) as transport:
            await asyncio.gather(*(transport.request("GET", "/") for _ in range(MANY)))
            assert self.connections() == MANY
            self.lose_connections()
            yield transport


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_of_many_dead_connections_one_request_is_lost_and_no_other(tmp_path: Path, method: str) -> None:
    server = Crowd()
    async with server.lost(tmp_path) as transport:
        with pytest.raises(Unreachable, match="in time"):
            await transport.request(method, "/x", timeout=SOON)
        await transport.request(method, "/x", timeout=LONG)
    assert server.requests[MANY:] == [(method, "/x", {})]


async def test_requests_that_are_lost_together_cost_no_connection_that_came_later(tmp_path: Path) -> None:
    async with Crowd().lost(tmp_path) as transport:
        lost = [transport.request("PATCH", "/x", timeout=SOON * (1 + number)) for number in range(3)]
        under_way = asyncio.gather(*lost, return_exceptions=True)
        with pytest.raises(Unreachable, match="in time"):
            await transport.request("PATCH", "/x", timeout=SOON / 2)
        await transport.request("PATCH", "/y", timeout=LONG)
        before = transport._session
        assert all(isinstance(result, Unreachable) for result in await under_way)
        assert transport._session is before
        await transport.request("PATCH", "/y", timeout=LONG)
        assert [session for session in transport._open if not session.client.closed] == [before]


async def test_a_stream_has_a_connection_of_its_own_that_is_new(tmp_path: Path) -> None:
    async with Crowd().lost(tmp_path) as transport, aclosing(transport.stream("/watch", {}, LONG)) as lines:
        assert [line async for line in lines] == []


async def test_a_system_that_gets_no_acknowledgement_ends_the_connection() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with _new_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == DEAD_AFTER
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1000 * DEAD_AFTER


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_no_descriptor_is_left(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    pair = authority.server("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    server = Server()
    async with server.running(tls):
        before = descriptors()
        async with server.transport(
            tmp_path, {"certificate-authority": str(authority.certificate)}
        ) as transport:
            for _ in range(3):
                assert await transport.request("GET", "/", timeout=LONG) == b"ok"
            for delay in (0.0, 0.0005, 0.002, 0.004):
                requests = [asyncio.ensure_future(transport.request("GET", "/")) for _ in range(5)]
                await asyncio.sleep(delay)
                for request in requests:
                    request.cancel()
                await asyncio.gather(*requests, return_exceptions=True)
        gc.collect()
        await until(lambda: descriptors() <= before)
