"""Servers in a process of tests that stop listening while clients still connect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol


class _Socket(Protocol):
    def fileno(self) -> int: ...


async def stop_accepting(listeners: Iterable[_Socket]) -> None:
    """Accept no more connections on these sockets, and hand recently accepted connections to the server. Await this
    before closing the server: if a connection was accepted in the same iteration of the loop, asyncio drops its socket
    without closing it (`asyncio.Server._attach`, Python 3.11)."""
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)


async def end_connections() -> None:
    """End the remaining connections of the loop. Await this last, after the server was closed."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.05)  # aiohttp's TLS connections end in the loop, after their `close`
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()  # the handshake never ended, or the peer does not announce its close
    await asyncio.sleep(0)
