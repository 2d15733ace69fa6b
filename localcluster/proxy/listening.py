"""Servers in a process of tests that stop listening while clients still connect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol


class _Socket(Protocol):
    def fileno(self) -> int: ...


async def stop_accepting(listeners: Iterable[_Socket]) -> None:
    """Take no more connections on these sockets, and let the server have those that were taken a moment ago. To be
    awaited before the server is closed: of a connection that was accepted in the same turn of the loop, asyncio gives
    up the socket without closing it (`asyncio.Server._attach`, Python 3.11)."""
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)


async def end_connections() -> None:
    """End what the loop still has of connections. To be awaited last, after the server was closed."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.05)  # aiohttp's TLS connections end in the loop, after their `close`
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()  # one whose handshake was never ended, or whose peer does not say that it closes
    await asyncio.sleep(0)
