"""The page over HTTP: its files, two streams of server-sent events (all Hvpas, one Hvpa), and what-ifs.

Nothing is written to the cluster. What is served holds no data but the streams and the what-ifs, which pass the guard;
the page's own policy lets it load nothing from elsewhere, and be shown in no other page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import msgspec
from aiohttp import web

from hvpa.api.values.names import is_label, is_subdomain
from hvpa.cli.dashboard.access import namespace_of
from hvpa.cli.dashboard.board import Board
from hvpa.cli.dashboard.looks import Looks, TooManyError
from hvpa.cli.dashboard.table import PROBLEM, Table
from hvpa.cli.dashboard.whatif import Measured, Simulator, WhatIfError, read_changes, read_manifest
from hvpa.cli.errors import one_line
from hvpa.cli.output import Json
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.server.endpoints import Guard, plain
from hvpa.reconcile.ports import Key

STREAMS: Final = 64
"""Streams that are open at once."""
ALIVE: Final = 15.0
"""Seconds after which a stream without news gets a sign of life, and its reader's rights are looked at again."""
FILES: Final = {
    "": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "charts.js": "text/javascript",
    "locale.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "uPlot.LICENSE.txt": "text/plain",
}
"""The page's files, and their types."""
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
    """What is served. `hosts` are the values of the header Host that are answered (None: any): a page of another origin
    whose name was made to lead here sends another one. `scope` is the namespace that is shown, or ALL_NAMESPACES."""

    transport: Transport
    table: Table
    looks: Looks
    guard: Guard
    scope: str
    hosts: frozenset[str] | None = None
    simulator: Simulator = field(default_factory=Simulator)
    _streams: int = 0

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(middlewares=[self._checked], client_max_size=1024)
        for name, kind in FILES.items():
            app.router.add_get(f"/{name}", _file(name or "index.html", kind))
        app.router.add_get("/healthz", _healthy)
        app.router.add_get("/api/hvpas", self._all, allow_head=False)
        app.router.add_get("/api/hvpas/{namespace}/{name}", self._one, allow_head=False)
        app.router.add_post("/api/hvpas/{namespace}/{name}/what-if", self._what_if)
        return app

    @web.middleware
    async def _checked(self, request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        """The response, with the headers that every response has; to a request that may be answered."""
        try:
            response: web.StreamResponse = await self._refusal(request) or await handler(request)
        except web.HTTPException as error:
            response = plain(error.status, error.reason.lower())
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _refusal(self, request: web.Request) -> web.Response | None:
        if self.hosts is not None and request.host not in self.hosts:
            return plain(421, f"this page is served as {' and '.join(sorted(self.hosts))} only")
        if not request.path.startswith("/api/"):
            return None
        namespace = request.match_info.get("namespace")
        if self.scope and namespace not in (None, self.scope):
            return plain(404, f"only namespace {self.scope} is shown")
        return await self.guard(request)

    # --- streams ------------------------------------------------------------------------------------------------
    async def _all(self, request: web.Request) -> web.StreamResponse:
        namespace = namespace_of(request, self.scope)

        def wants(name: str) -> bool:
            return not namespace or name == PROBLEM or name.startswith(f"{namespace}/")

        return await self._stream(request, self.table.board, {"scope": namespace}, wants)

    async def _one(self, request: web.Request) -> web.StreamResponse:
        try:
            look = self.looks.at(_key(request))
        except TooManyError as error:
            return plain(503, str(error))
        return await self._stream(request, look.board, {"samples": look.recent})

    async def _stream(
        self,
        request: web.Request,
        board: Board,
        first: Json,
        wants: Callable[[str], bool] = lambda name: True,
    ) -> web.StreamResponse:
        """Events with the parts of a board that have changed, the first one with all of them and `first`."""
        if self._streams >= STREAMS:
            return plain(503, f"{STREAMS} pages are open already; close one")
        self._streams += 1
        try:
            response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(_event("first", first))
            async with aclosing(board.follow(wants)) as changes:
                await self._send(request, response, changes)
            return response
        finally:
            self._streams -= 1

    async def _send(
        self, request: web.Request, response: web.StreamResponse, changes: AsyncGenerator[Json, None]
    ) -> None:
        """Send what changes until the reader is gone, or may not read any more."""
        following = asyncio.ensure_future(anext(changes))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=ALIVE)
                refusal = await self.guard(request)
                if refusal is not None:  # the page requests the stream again, and gets the reason
                    return
                await response.write(_event("parts", following.result()) if done else b": alive\n\n")
                if done:
                    following = asyncio.ensure_future(anext(changes))
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await following

    # --- what-ifs -----------------------------------------------------------------------------------------------
    async def _what_if(self, request: web.Request) -> web.Response:
        key = _key(request)
        try:
            look = self.looks.at(key)
            if look.objects is None:
                raise WhatIfError("nothing is known of this Hvpa yet; try again in a moment", 409)
            changes = read_changes(request.query)
            manifest = await read_manifest(self.transport, key.namespace, key.name)
            desired = look.board.get("status")["desired"]["containers"]
            report = await self.simulator.run(Measured(look.objects, desired, look.recent), manifest, changes)
        except TooManyError as error:
            return plain(503, str(error))
        except WhatIfError as error:
            return plain(error.status, str(error))
        except (ApiError, Unreachable) as error:
            return plain(502, f"the cluster's response: {one_line(error)}")
        return web.Response(body=msgspec.json.encode(report), content_type="application/json")


def _key(request: web.Request) -> Key:
    """The Hvpa that a request is about. Raises HTTPNotFound where nothing can have this name."""
    namespace, name = request.match_info["namespace"], request.match_info["name"]
    if not (is_label(namespace) and is_subdomain(name)):
        raise web.HTTPNotFound
    return Key(namespace, name)


def _event(kind: str, content: Mapping[str, Any]) -> bytes:
    """A server-sent event. JSON has no line breaks."""
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"


def _file(name: str, kind: str) -> Callable[[web.Request], Any]:
    content = resources.files("hvpa.cli.dashboard").joinpath("static", name).read_bytes()

    async def response(request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return response


async def _healthy(request: web.Request) -> web.Response:
    return plain(200, "ok")
