"""An API server whose responses a test decides on: in-process, on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.transport import Transport
from localcluster.proxy.listening import stop_accepting
from localcluster.proxy.packets import swallow, why_not

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LONG = 60.0
"""Seconds for what takes milliseconds, on a machine that does many other things."""


class FakeServer:
    """`handler` answers every request (by default: 404); `requests` remembers method, path and query."""

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler: Handler = handler or always(status(404, "NotFound", "no such thing"))
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        self.url = ""
        self.counted: list[tuple[str, str]] = []

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path, dict(request.query)))
        self.headers.append(dict(request.headers))
        body = await request.read()
        self.bodies.append(json.loads(body) if body else None)
        return await self.handler(request)

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeServer]:
        """Serve on a free port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener, ssl_context=tls).start()
        self._runner = runner
        self.url = f"http{'' if tls is None else 's'}://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield self
        finally:
            await stop_accepting([listener])
            await runner.cleanup()

    def connections(self) -> int:
        """How many there are."""
        assert self._runner.server is not None
        return len(self._runner.server.connections)

    def lose_connections(self) -> None:
        """The connections that there are go dead: nothing arrives, without any error. New ones work. Skips the test
        where only root may do that."""
        if reason := why_not():
            pytest.skip(reason)
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            assert connection.transport is not None
            swallow(connection.transport.get_extra_info("socket"))

    @asynccontextmanager
    async def transport(
        self, folder: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
    ) -> AsyncIterator[Transport]:
        """A transport to this server, through a real kubeconfig."""
        credentials = await Credentials.load(str(kubeconfig(folder, self.url, user, cluster)))
        transport = Transport(credentials, lambda verb, code: self.counted.append((verb, code)))
        try:
            yield transport
        finally:
            await transport.close()

    @asynccontextmanager
    async def connected(
        self, folder: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
    ) -> AsyncIterator[Transport]:
        """Serve, with a transport to this server."""
        async with self.running(), self.transport(folder, user, cluster) as transport:
            yield transport

    @property
    def methods(self) -> list[str]:
        """Of the requests."""
        return [method for method, _, _ in self.requests]

    @property
    def paths(self) -> list[str]:
        """Of the requests."""
        return [path for _, path, _ in self.requests]


def always(answer: Any) -> Handler:
    """Answers each request with this response, these bytes, or this value as JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return respond(answer)

    return handle


def respond(answer: Any) -> web.Response:
    """A response with these bytes, or this value as JSON; one like this response, which can be sent only once."""
    if isinstance(answer, web.Response):
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    return web.Response(body=answer if isinstance(answer, bytes) else json.dumps(answer).encode())


@asynccontextmanager
async def background(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """`work` as a task, which is cancelled at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def kubeconfig(
    folder: Path, url: str, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> Path:
    """A kubeconfig file in `folder` for a server at `url`; `cluster` has its further fields."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "test", "user": user or {"token": "secret"}}],
    }
    path.write_text(json.dumps(document))
    return path


def status(
    code: int, reason: str = "", message: str = "", headers: dict[str, str] | None = None
) -> web.Response:
    """A metav1.Status as an answer."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


def listing(items: list[Any], version: str, token: str = "") -> web.Response:
    """A list as an answer."""
    return web.json_response({"metadata": {"resourceVersion": version, "continue": token}, "items": items})


class Stream:
    """A watch whose lines a test hands out; closes when the test says so."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, kind: str, obj: Any) -> None:
        """One event."""
        self.send_raw(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        """Any bytes, as one chunk."""
        self._queue.put_nowait(data)

    def end(self) -> None:
        """End the answer."""
        self._queue.put_nowait(None)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answer a watch request with what is handed out."""
        response = web.StreamResponse()
        await response.prepare(request)
        while (data := await self._queue.get()) is not None:
            await response.write(data)
        return response


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of loopback that the system gives to no one else while the context lasts; a server may listen on it."""
    with socket.socket() as held:
        # As servers do: only one that listens is in the way.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port


async def until(condition: Callable[[], bool], seconds: float = LONG) -> None:
    """Return once `condition` holds; one that stays, or nobody may be there to see it."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
