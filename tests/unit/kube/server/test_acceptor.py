"""A well-behaved client is answered whatever other clients hold: idle, slow, half-open, never reading, in a handshake.
Peers are addresses of loopback."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import shutil
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from hvpa.kube.server import acceptor
from hvpa.kube.server import endpoints as serving
from hvpa.kube.server.endpoints import Listener, Routes
from hvpa.kube.server.tls import CERTIFICATE, KEY, Certificate
from localcluster.client.pki import Authority
from tests.unit.kube.fake_server import LONG, until
from tests.unit.kube.server.listening import fine, listening

CROWD = 2000
"""Connections of clients that do no good."""
WHOLE = b"GET /ok HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE = b"x" * 20_000_000
"""More than socket buffers take."""


async def _large() -> web.Response:
    return web.Response(body=LARGE)


ROUTES: Routes = {"/ok": fine, "/large": _large}


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Both ends of CROWD connections are open files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CROWD + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this user may open {hard} files")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name in ("HEADER", "HANDSHAKE", "IDLE"):
        monkeypatch.setattr(acceptor, name, 0.3)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No deadline ends anything: only limits make room."""
    for name in ("HEADER", "HANDSHAKE", "IDLE"):
        monkeypatch.setattr(acceptor, name, LONG)


def one_peer(number: int) -> str:
    return "127.0.0.1"


def many_peers(number: int) -> str:
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


@asynccontextmanager
async def crowd(
    port: int, sent: bytes, peer: Callable[[int], str] = one_peer, size: int = CROWD
) -> AsyncIterator[list[socket.socket]]:
    """Clients that have sent `sent`, and read nothing."""
    loop = asyncio.get_running_loop()
    with ExitStack() as held:
        clients = []
        for number in range(size):
            client = held.enter_context(socket.socket())
            client.setblocking(False)
            client.bind((peer(number), 0))
            await loop.sock_connect(client, ("127.0.0.1", port))
            with suppress(OSError):  # closed meanwhile
                await loop.sock_sendall(client, sent)
            clients.append(client)
        yield clients


async def response(
    port: int, source: str = "127.0.0.1", tls: ssl.SSLContext | None = None, sent: bytes = WHOLE
) -> str:
    """The status line and the body of one request, over a connection of its own; empty if it was closed."""
    name = "localhost" if tls is not None else None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, local_addr=(source, 0), ssl=tls, server_hostname=name
    )
    try:
        writer.write(sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        head, _, body = (await asyncio.wait_for(reader.read(), LONG)).partition(b"\r\n\r\n")
        return f"{head.decode().splitlines()[0]} {body.decode()}" if head else ""
    finally:
        writer.close()


OK = "HTTP/1.1 200 OK fine"
SENT = {
    "idle": b"",
    "half a header": WHOLE[:20],
    "answered and waiting": WHOLE,
    "pipelining": WHOLE * 50,
    "never reading": b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n",
    "garbage": b"\x16\x03\x01\x00",
    "a body that never comes": b"GET /ok HTTP/1.1\r\nHost: here\r\nContent-Length: 99\r\n\r\n",
}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("peer", [one_peer, many_peers])
async def test_probes_are_answered_with_2000_idle_connections_open(peer: Callable[[int], str]) -> None:
    async with listening(ROUTES) as (port, listener), crowd(port, b"", peer):
        assert [await response(port, source) for source in ("127.0.0.1", "127.9.9.9") * 20] == [OK] * 40
        assert len(listener.acceptor) <= acceptor.MAX_CONNECTIONS


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("peer", [one_peer, many_peers])
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
async def test_probes_are_answered_whatever_others_have_sent(
    sent: bytes, peer: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "__init__", _limited(20, 10))
    async with listening(ROUTES) as (port, listener), crowd(port, sent, peer, 60):
        assert [await response(port, source) for source in ("127.0.0.1", "127.9.9.9") * 5] == [OK] * 10
        assert len(listener.acceptor) <= 20


def _limited(total: int, per_peer: int) -> Callable[..., None]:
    """A Listener's constructor with other limits."""
    begin = Listener.__init__

    def init(self: Listener, *arguments: Any) -> None:
        begin(self, *arguments)
        self.acceptor = acceptor.Acceptor(self, total, per_peer)

    return init


@pytest.mark.usefixtures("patient")
async def test_one_peer_takes_no_connection_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "__init__", _limited(20, 10))
    async with (
        listening(ROUTES) as (port, _),
        crowd(port, b"", lambda number: "127.0.0.2", 5) as others,
        crowd(port, b"", size=100),
    ):
        assert await response(port) == OK
        for client in others:
            with pytest.raises(BlockingIOError):  # open, and nothing to read
                client.recv(1)


@pytest.mark.usefixtures("patient")
async def test_a_request_under_way_outlives_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "__init__", _limited(10, 10))
    started, release = asyncio.Event(), asyncio.Event()

    async def slow() -> web.Response:
        started.set()
        await release.wait()
        return web.Response(text="slow")

    async with listening({"/ok": slow}) as (port, _):
        waiting = asyncio.create_task(response(port))
        await started.wait()
        async with crowd(port, b"", size=100):
            release.set()
            assert await waiting == "HTTP/1.1 200 OK slow"


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
async def test_every_connection_ends_by_itself(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvpa.kube.server.endpoints.RESPONSE", 0.3)
    async with listening(ROUTES) as (port, listener), crowd(port, sent, size=20):
        await until(lambda: not len(listener.acceptor) and not listener.connections)


@pytest.mark.usefixtures("short")
async def test_trickled_bytes_buy_no_time() -> None:
    async with listening(ROUTES) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ended = asyncio.create_task(reader.read())
        with suppress(ConnectionError):
            writer.write(b"GET /ok HTTP/1.1\r\nX: ")
            for _ in range(serving.MAX_FIELD // 2):
                writer.write(b"y")
                await writer.drain()
                if (await asyncio.wait({ended}, timeout=0.02))[0]:
                    break
            assert await ended == b""
        writer.close()


async def test_a_connection_is_kept_for_further_requests() -> None:
    async with listening(ROUTES) as (port, listener):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(WHOLE)
            await reader.readuntil(b"fine")
        assert len(listener.acceptor) == 1
        writer.close()
        await until(lambda: not len(listener.acceptor))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    pair = authority.server("one")
    shutil.copy(pair.certificate, tmp_path / CERTIFICATE)
    shutil.copy(pair.key, tmp_path / KEY)
    return Certificate(tmp_path).context


@pytest.fixture
def client(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.certificate)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["silent", "half a handshake"])
@pytest.mark.parametrize("peer", [one_peer, many_peers])
async def test_handshakes_that_do_not_end_hold_no_place(
    sent: bytes,
    peer: Callable[[int], str],
    server: ssl.SSLContext,
    client: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Listener, "__init__", _limited(20, 10))
    async with (
        listening(ROUTES, tls=server) as (port, listener),
        crowd(port, sent, peer, 60),
    ):
        for source in ("127.0.0.1", "127.9.9.9"):
            assert await response(port, source, client) == OK
        assert len(listener.acceptor) <= 20


@pytest.mark.usefixtures("short")
async def test_a_client_that_does_not_end_its_tls_is_cut_off(
    server: ssl.SSLContext, client: ssl.SSLContext
) -> None:
    """It completes the handshake, and answers nothing afterwards: asyncio would wait for half a minute."""
    async with listening(ROUTES, tls=server) as (port, listener):
        streams = [
            await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
            for _ in range(5)
        ]
        for _, writer in streams:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: not len(listener.acceptor) and not listener.connections)
        for _, writer in streams:
            writer.transport.abort()


def of_tls() -> int:
    """Connections over TLS whose memory, a quarter of a megabyte each, this process's server holds."""
    return sum(isinstance(instance, SSLProtocol) and instance._server_side for instance in gc.get_objects())


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def over_tls(port: int, client: ssl.SSLContext, sent: bytes) -> None:
    """A client that ends after its first look at the response, if it asks for one."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=LONG) as plain,
        client.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        tls.sendall(sent)
        if sent:
            tls.recv(1)


@pytest.mark.usefixtures("short", "uncollected")
@pytest.mark.parametrize(
    "sent", ["", "half a handshake", "no handshake", "silent", "idle", "answered", "never reading"]
)
async def test_the_memory_of_a_connection_over_tls_ends_with_it(
    sent: str, server: ssl.SSLContext, client: ssl.SSLContext
) -> None:
    """It does not wait for the garbage collector, which counts objects and not their size."""
    raw = {"half a handshake": b"\x16\x03\x01\x02\x00\x01", "no handshake": WHOLE, "silent": b""}
    whole = {"idle": b"", "answered": WHOLE, "never reading": SENT["never reading"]}
    before = of_tls()
    async with listening(ROUTES, tls=server) as (port, listener):
        if sent in raw:
            async with crowd(port, raw[sent], size=20):
                await until(lambda: not len(listener.acceptor))
        elif sent:
            for _ in range(5):
                await asyncio.to_thread(over_tls, port, client, whole[sent])
        else:
            async with crowd(port, b"", size=20):  # the clients end first
                pass
        await until(lambda: not len(listener.acceptor) and not listener.connections)
        await until(lambda: of_tls() == before)


@contextmanager
def no_more_files(clients: int) -> Iterator[None]:
    """From now on this process may open `clients` more files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as probe:
        highest = probe.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + clients, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("patient")
async def test_without_open_files_the_oldest_idle_connection_makes_room() -> None:
    async with listening(ROUTES) as (port, listener):
        with ExitStack() as held:
            clients = [held.enter_context(socket.socket()) for _ in range(30)]
            for client in clients:
                client.setblocking(False)
            with capture_logs() as logs, no_more_files(10):
                for client in clients:
                    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
                await asyncio.get_running_loop().sock_sendall(clients[-1], WHOLE)
                answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(clients[-1], 4096), LONG)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert [line["event"] for line in logs] == ["a connection can't be accepted; trying again"]
            assert len(listener.acceptor) < 30


async def test_an_address_that_is_in_use_is_named() -> None:
    async with listening(ROUTES) as (port, listener):
        with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
            await acceptor.Acceptor(listener).start("127.0.0.1", port, None)


async def test_all_interfaces_are_listened_on_and_free_ports_are_named() -> None:
    async with listening(ROUTES) as (_, listener):
        other = acceptor.Acceptor(listener)
        port = await other.start(None, 0, None)
        assert await response(port) == OK
        await other.close()
