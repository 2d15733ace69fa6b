"""Stops servers of a test process while clients still connect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol


class _Socket(Protocol):
    def fileno(self) -> int: ...


async def stop_accepting(listeners: Iterable[_Socket]) -> None:
    """Stop accepting connections on these sockets, and hand the accepted connections to the server. Await this before
    closing the server: asyncio drops a connection that was accepted in the same turn of the loop without closing its
    socket (`asyncio.Server._attach`, Python 3.11)."""
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)


async def end_connections() -> None:
    """Close the loop's remaining connections. Await this last, after closing the server."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.05)  # aiohttp's TLS connections end in the loop, after their `close`
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()  # an unfinished handshake, or a peer that does not report its close
    await asyncio.sleep(0)
