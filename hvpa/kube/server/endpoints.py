"""The operator's own HTTP servers: /metrics on one address, /healthz and /readyz on another.

They serve GET and HEAD of their paths and reveal nothing else: no path, no version, no traceback. The cost of a
client is limited: the size of its request, the time to send it and to read the response, and its connections
(`hvpa.kube.server.acceptor`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from hvpa.kube.server.acceptor import IDLE, Acceptor, under_way

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

MAX_LINE = 2048
"""Maximum bytes of a request line."""
MAX_FIELD = 8190
"""Maximum bytes of a header field: enough for a bearer token (a ServiceAccount's has about 1,000)."""
MAX_HEADERS = 64
"""Maximum header fields of a request."""
RESPONSE = 30.0
"""Maximum seconds until a request is served and the client has read the response."""
METHODS = ("GET", "HEAD")
LIMITS: Mapping[str, Any] = {
    "access_log": None,
    "keepalive_timeout": 2 * IDLE,  # the acceptor ends idle connections
    "lingering_time": 0.0,
    "max_line_size": MAX_LINE,
    "max_field_size": MAX_FIELD,
    "max_headers": MAX_HEADERS,
}
"""Options of aiohttp's part of a connection."""

Check = Callable[[], str | None]
"""None if all is well, else the problem."""
Routes = Mapping[str, Callable[[], Awaitable[web.Response]]]
"""Handlers by path."""
Guard = Callable[[web.BaseRequest], Awaitable[web.Response | None]]
"""None for a request that may be served, else the refusal."""


class AddressError(ValueError):
    """A bind address, or another setting of a server, that can't be read or used."""


def parse_address(text: str) -> tuple[str | None, int] | None:
    """Host (None: all interfaces) and port of `HOST:PORT` or `:PORT`; None for "0", which disables a server.

    Raises AddressError.
    """
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise AddressError(f"{text!r} is not an address like :8081 or 127.0.0.1:8081, nor 0")
    return host or None, int(port)


async def serve(
    address: str, routes: Routes, guard: Guard | None = None, tls: ssl.SSLContext | None = None
) -> Listener | None:
    """Serve `routes` at `address` until the listener's `cleanup`; None if `address` is "0".

    With `tls`, it serves HTTPS. Each request passes the `guard` first. Raises AddressError.
    """
    where = parse_address(address)
    if where is None:
        return None
    listener = Listener(routes, guard)
    try:
        await listener.start(where[0], where[1], tls)
    except OSError as error:
        raise AddressError(f"can't listen on {address}: {error.strerror or error}") from error
    return listener


def metrics_routes(read: Callable[[], Awaitable[bytes]]) -> Routes:
    """`/metrics` in Prometheus' text format, as returned by `read`."""

    async def response() -> web.Response:
        return web.Response(body=await read(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return {"/metrics": response}


def health_routes(healthy: Check, ready: Check) -> Routes:
    """`/healthz` and `/readyz`: 200 and "ok", or 503 and the problem."""

    async def verdict(check: Check) -> web.Response:
        problem = check()
        return web.Response(text="ok") if problem is None else web.Response(status=503, text=problem)

    return {"/healthz": partial(verdict, healthy), "/readyz": partial(verdict, ready)}


def text_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A short response as text."""
    return web.Response(status=status, text=text + "\n", headers=headers)


class _Connection(web.RequestHandler):
    """A connection whose error responses are short: aiohttp would show versions and echo the request."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            raise ConnectionError("the client is gone, or already has part of another response")
        if status >= 500:
            log.error("a request could not be answered", error=repr(exc))
        response = _named(text_response(status, "bad request" if status < 500 else "internal error"))
        response.force_close()
        return response


class Listener(web.Server):
    """Serves requests by their path until `cleanup`."""

    def __init__(self, routes: Routes, guard: Guard | None) -> None:
        super().__init__(self._answer)
        self._routes = routes
        self._guard = guard
        self.acceptor = Acceptor(self)

    async def start(self, host: str | None, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen. Raises OSError."""
        await self.acceptor.start(host, port, tls)

    async def cleanup(self) -> None:
        """Close the address; requests in progress have a second to end."""
        self.acceptor.stop_listening()
        self.pre_shutdown()
        await self.shutdown(1.0)
        await self.acceptor.close()

    def __call__(self) -> web.RequestHandler:
        """The handler of a new connection."""
        return _Connection(self, loop=asyncio.get_running_loop(), **LIMITS)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        with under_way(request):
            return await self._answer_in_time(request)

    async def _answer_in_time(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            async with asyncio.timeout(RESPONSE):
                response = _named(await self._respond(request))
                if isinstance(response.body, bytes):
                    # With series per Hvpa it may have megabytes. aiohttp sends a file in pieces, so that a slow
                    # client costs the memory of a piece.
                    response.body = BytesIO(response.body)
                await response.prepare(request)
                await response.write_eof()
                return response
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the client was too slow") from None

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        route = self._routes.get(request.path)
        if route is None:
            return text_response(404, "not found")
        if request.method not in METHODS:
            return text_response(405, "method not allowed", {"Allow": ", ".join(METHODS)})
        refusal = await self._guard(request) if self._guard is not None else None
        return await route() if refusal is None else refusal


def _named(response: web.Response) -> web.Response:
    """The response with a Server header without a version (else aiohttp adds its version)."""
    response.headers["Server"] = "hvpa"
    return response
