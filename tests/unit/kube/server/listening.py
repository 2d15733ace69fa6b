"""The operator's HTTP server on a free port."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from hvpa.kube.server.endpoints import Guard, Listener, Routes, serve
from tests.unit.kube.fake_server import reserved_port


async def fine() -> web.Response:
    return web.Response(text="fine")


@asynccontextmanager
async def listening(
    routes: Routes, guard: Guard | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, Listener]]:
    """Port and server."""
    with reserved_port() as port:
        listener = await serve(f"127.0.0.1:{port}", routes, guard, tls)
        assert listener is not None
        try:
            yield port, listener
        finally:
            await listener.cleanup()
