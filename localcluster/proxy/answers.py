"""How the proxy responds: with an answer of its own, the API server's answer, or a damaged copy of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from localcluster.proxy.faults import Damage, Fault, status_body

# Headers that belong to one connection (RFC 9110, 7.6.1), and what aiohttp sets itself.
OF_THE_CONNECTION = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
)
_PAGE = b"<!DOCTYPE html>\n<html>\n<body>Please log in to this network.</body>\n</html>\n"
_OTHER = b'{"all": "well"}\n'
_TICK = 0.005
"""Seconds: the event loop's clock is no finer than this on a loaded machine."""


def refusal(fault: Fault) -> web.Response:
    """The response of a fault that has a code: as the API server would put it."""
    headers = {}
    if fault.retry_after is not None:
        headers["Retry-After"] = str(fault.retry_after)
    if fault.location is not None:
        headers["Location"] = fault.location
    return web.json_response(status_body(fault.code, fault.retry_after), status=fault.code, headers=headers)


def like(upstream: aiohttp.ClientResponse) -> web.StreamResponse:
    """A response with the API server's status and headers, and nothing in it yet."""
    response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
    for name, value in upstream.headers.items():
        if name.lower() not in OF_THE_CONNECTION:
            response.headers[name] = value
    return response


async def damaged(request: web.Request, upstream: aiohttp.ClientResponse, fault: Fault) -> web.StreamResponse:
    """Send a damaged copy of the API server's answer. A watch is cut off from it."""
    response = like(upstream)
    is_watch = request.query.get("watch") in ("true", "1")
    body = b"" if is_watch and fault.damage is not Damage.SLOW else await upstream.read()
    half = body[: len(body) // 2]
    match fault.damage:
        case Damage.SHORT:
            response.content_length = len(body) + 1
            await _send(request, response, half)
            _close(request)
        case Damage.CHUNKED:
            await _send(request, response, half)
            _close(request)
        case Damage.SLOW:
            await _send_slowly(request, response, body, fault.seconds)
        case Damage.PAGE:
            response.headers["Content-Type"] = "text/html"
            await _send(request, response, _PAGE, end=True)
        case _:
            sent = {Damage.HALF: half, Damage.OTHER: _OTHER}
            await _send(request, response, sent.get(fault.damage or Damage.EMPTY, b""), end=True)
    return response


async def slowly(chunks: AsyncIterator[bytes], pause: float) -> AsyncIterator[bytes]:
    """The same bytes one by one, `pause` seconds apart on average."""
    debt = 0.0
    async for chunk in chunks:
        for position in range(len(chunk)):
            yield chunk[position : position + 1]
            debt += pause
            if debt >= _TICK:
                await asyncio.sleep(debt)
                debt = 0.0


async def _send(
    request: web.Request, response: web.StreamResponse, body: bytes, *, end: bool = False
) -> None:
    await response.prepare(request)
    if body:
        await response.write(body)
    if end:
        await response.write_eof()


async def _send_slowly(
    request: web.Request, response: web.StreamResponse, body: bytes, seconds: float
) -> None:
    async def whole() -> AsyncIterator[bytes]:
        yield body

    response.content_length = len(body)
    await response.prepare(request)
    async for part in slowly(whole(), seconds / max(1, len(body))):
        await response.write(part)
    await response.write_eof()


def reset(request: web.Request) -> None:
    """Reset the connection at once."""
    if request.transport is not None:
        request.transport.abort()


def _close(request: web.Request) -> None:
    """End the connection in order, once what was written is sent: the peer sees an early end, not a reset."""
    if request.transport is not None:
        request.transport.close()
