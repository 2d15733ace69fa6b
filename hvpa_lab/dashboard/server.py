"""The page over HTTP: its files, two streams of server-sent events (all Hvpas, one Hvpa), and what-ifs.

The server writes nothing to the cluster. Only the streams and the what-ifs contain data, and they pass the guard. The
page's policy prevents it from loading anything from elsewhere, and from being shown in another page.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import msgspec
from aiohttp import web

from hvpa.api.values.names import is_label, is_subdomain
from hvpa.cli.errors import plain_line
from hvpa.cli.output import Json
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.server.acceptor import Acceptor, under_way
from hvpa.kube.server.endpoints import LIMITS, RESPONSE, Guard, text_response
from hvpa.kube.server.fair_limit import FairLimit
from hvpa.reconcile.ports import Key
from hvpa_lab.dashboard.access import namespace_of, owner_of
from hvpa_lab.dashboard.board import Board
from hvpa_lab.dashboard.table import PROBLEM, HvpaTable
from hvpa_lab.dashboard.watched_hvpas import WatchedHvpas
from hvpa_lab.dashboard.whatif import (
    Measured,
    Simulator,
    WhatIfError,
    hvpa_exists,
    read_changes,
    read_manifest,
)

STREAMS: Final = 64
"""Maximum open streams; a further stream displaces a stream of the user with the most."""
STREAMS_OF_USER: Final = 32
"""Maximum open streams per user; a further stream displaces the user's oldest."""
GAVE_WAY: Final = (
    "too many pages are open: the server disconnected this page for a newer page; reload to continue"
)
ALIVE: Final = 15.0
"""Seconds after which a stream without news gets a keep-alive, and its reader's permissions are checked again."""
PAGE: Final = resources.files("hvpa_lab.dashboard").joinpath("static")
CHARTS: Final = resources.files("hvpa_lab.charts")
FILES: Final = {
    "": (PAGE.joinpath("index.html"), "text/html"),
    "page.css": (PAGE.joinpath("page.css"), "text/css"),
    "page.js": (PAGE.joinpath("page.js"), "text/javascript"),
    "charts.css": (CHARTS.joinpath("charts.css"), "text/css"),
    "charts.js": (CHARTS.joinpath("charts.js"), "text/javascript"),
    "locale.js": (CHARTS.joinpath("locale.js"), "text/javascript"),
    "uPlot.iife.min.js": (CHARTS.joinpath("uPlot.iife.min.js"), "text/javascript"),
    "uPlot.min.css": (CHARTS.joinpath("uPlot.min.css"), "text/css"),
    "uPlot.LICENSE.txt": (CHARTS.joinpath("uPlot.LICENSE.txt"), "text/plain"),
}
"""The page's files, by the last part of their URL, and their types."""
HVPA: Final = "{namespace:[a-z0-9][a-z0-9-]*}/{name:[a-z0-9][a-z0-9.-]*}"
"""An Hvpa in a path; no other text can be its namespace and name."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "hvpa",
}


@dataclass
class Dashboard:
    """The served application."""

    transport: Transport
    table: HvpaTable
    watched: WatchedHvpas
    guard: Guard
    scope: str
    """The namespace shown, or ALL_NAMESPACES."""
    hosts: frozenset[str] | None = None
    """Accepted values of the Host header (None: any).

    A page of another origin whose name resolves to this address sends another value.
    """
    simulator: Simulator = field(default_factory=Simulator)

    def __post_init__(self) -> None:
        self._streams: FairLimit[_Place] = FairLimit(STREAMS, STREAMS_OF_USER, lambda place: False)

    async def listen(self, host: str | None, port: int, tls: ssl.SSLContext | None) -> Serving:
        """Serve at this address. Raises OSError."""
        runner = web.AppRunner(self.app(), handler_cancellation=True, shutdown_timeout=1.0, **LIMITS)
        await runner.setup()
        assert runner.server is not None
        acceptor = Acceptor(runner.server)
        try:
            return Serving(runner, acceptor, await acceptor.start(host, port, tls))
        except OSError:
            await runner.cleanup()
            raise

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(middlewares=[self._checked], client_max_size=1024)
        for name, (file, kind) in FILES.items():
            app.router.add_get(f"/{name}", _file(file.read_bytes(), kind))
        app.router.add_get("/healthz", _healthy)
        app.router.add_get("/api/hvpas", self._hvpas, allow_head=False)
        app.router.add_get(f"/api/hvpas/{HVPA}", self._hvpa, allow_head=False)
        app.router.add_post(f"/api/hvpas/{HVPA}/what-if", self._what_if)
        return app

    @web.middleware
    async def _checked(self, request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        """The response, with the common headers; a refusal if the request may not be served."""
        with under_way(request):
            try:
                response: web.StreamResponse = await self._refusal(request) or await handler(request)
            except web.HTTPException as error:
                response = text_response(error.status, error.reason.lower())
            if not response.prepared:
                response.headers.update(HEADERS)
                with suppress(ConnectionResetError):  # the client has disconnected
                    async with _in_time(request):
                        await response.prepare(request)
                        await response.write_eof()
            return response

    async def _refusal(self, request: web.Request) -> web.Response | None:
        if self.hosts is not None and request.host not in self.hosts:
            return text_response(421, f"this page is served as {' and '.join(sorted(self.hosts))} only")
        if not request.path.startswith("/api/"):
            return None
        namespace = request.match_info.get("namespace")
        if self.scope and namespace not in (None, self.scope):
            return text_response(404, f"only namespace {self.scope} is shown")
        return await self.guard(request)

    # --- streams ------------------------------------------------------------------------------------------------
    async def _hvpas(self, request: web.Request) -> web.StreamResponse:
        namespace = namespace_of(request, self.scope)

        def wants(name: str) -> bool:
            return not namespace or name == PROBLEM or name.startswith(f"{namespace}/")

        return await self._stream(request, self.table.board, {"scope": namespace}, wants)

    async def _hvpa(self, request: web.Request) -> web.StreamResponse:
        key = _key(request)
        await self._refuse_absent(key)
        watched = self.watched.at(key, owner_of(request))
        return await self._stream(request, watched.board, {"samples": watched.recent})

    async def _refuse_absent(self, key: Key) -> None:
        """Refuse a request for an Hvpa that does not exist, before any work for it. Raises HTTPNotFound."""
        exists = self.table.has(key)
        if exists is None:
            with suppress(Unreachable):  # the page shows the problem
                exists = await hvpa_exists(self.transport, key)
        if exists is False:
            raise web.HTTPNotFound(reason=f"Hvpa {key} does not exist")

    async def _stream(
        self,
        request: web.Request,
        board: Board,
        first: Json,
        wants: Callable[[str], bool] = lambda name: True,
    ) -> web.StreamResponse:
        """Send the changed parts of a board as events; the first event has all parts and `first`."""
        place = _Place()
        displaced = self._streams.add(place, owner_of(request))
        if displaced is not None:
            displaced.lost.set_result(None)
        try:
            response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
            with suppress(ConnectionError):  # the reader has disconnected
                await response.prepare(request)
                await _write(request, response, _event("first", first))
                async with aclosing(board.follow(wants)) as changes:
                    await self._send(request, response, changes, place)
            return response
        finally:
            self._streams.discard(place)

    async def _send(
        self,
        request: web.Request,
        response: web.StreamResponse,
        changes: AsyncGenerator[Json, None],
        place: _Place,
    ) -> None:
        """Send changes until the reader disconnects, loses its permission, or is displaced."""
        following = asyncio.ensure_future(anext(changes, None))
        try:
            while True:
                waiting: set[asyncio.Future[Any]] = {following, place.lost}
                await asyncio.wait(waiting, timeout=ALIVE, return_when=asyncio.FIRST_COMPLETED)
                refusal = await self.guard(request)
                if refusal is not None:  # the page requests the stream again, and gets the reason
                    return
                if place.lost.done() or (following.done() and following.result() is None):
                    await _write(request, response, _event("ended", {"message": GAVE_WAY}))
                    return
                parts = following.result() if following.done() else None
                await _write(request, response, b": alive\n\n" if parts is None else _event("parts", parts))
                if parts is not None:
                    following = asyncio.ensure_future(anext(changes, None))
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await following

    # --- what-ifs -----------------------------------------------------------------------------------------------
    async def _what_if(self, request: web.Request) -> web.Response:
        key, owner = _key(request), owner_of(request)
        await self._refuse_absent(key)
        try:
            watched = self.watched.at(key, owner)
            if watched.objects is None:
                raise WhatIfError("no data for this Hvpa yet; try again in a moment", 409)
            changes = read_changes(request.query)
            manifest = await read_manifest(self.transport, key.namespace, key.name)
            desired = watched.board.get("status")["desired"]["containers"]
            measured = Measured(watched.objects, desired, watched.recent)
            report = await self.simulator.run(measured, manifest, changes, owner)
        except WhatIfError as error:
            return text_response(error.status, str(error))
        except (ApiError, Unreachable) as error:
            return text_response(502, f"the cluster's response: {plain_line(error)}")
        return web.Response(body=msgspec.json.encode(report), content_type="application/json")


@dataclass
class Serving:
    """A dashboard that is served at `port` until `cleanup`."""

    runner: web.AppRunner
    acceptor: Acceptor
    port: int

    async def cleanup(self) -> None:
        """Close the address; requests in progress have a second to end."""
        self.acceptor.stop_listening()
        await self.runner.cleanup()
        await self.acceptor.close()


class _Place:
    """A stream's place among the open streams; `lost` is done when another stream displaces it."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()


@asynccontextmanager
async def _in_time(request: web.Request) -> AsyncIterator[None]:
    """Abort a client that reads nothing for RESPONSE seconds."""
    try:
        async with asyncio.timeout(RESPONSE):
            yield
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client was too slow") from None


async def _write(request: web.Request, response: web.StreamResponse, content: bytes) -> None:
    async with _in_time(request):
        await response.write(content)


def _key(request: web.Request) -> Key:
    """The Hvpa of a request. Raises HTTPNotFound if no object can have this name."""
    namespace, name = request.match_info["namespace"], request.match_info["name"]
    if not (is_label(namespace) and is_subdomain(name)):
        raise web.HTTPNotFound
    return Key(namespace, name)


def _event(kind: str, content: Mapping[str, Any]) -> bytes:
    """A server-sent event. JSON has no line breaks."""
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"


def _file(content: bytes, kind: str) -> Callable[[web.Request], Any]:
    async def response(request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return response


async def _healthy(request: web.Request) -> web.Response:
    return text_response(200, "ok")
