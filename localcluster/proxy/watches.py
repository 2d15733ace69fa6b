"""The watches that are open through the proxy, and how a test ends them. All of it runs in the proxy's event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Literal

import aiohttp
from aiohttp import web

from localcluster.proxy.answers import reset
from localcluster.proxy.faults import status_body

Cut = Literal["reset", "end"]
GONE = json.dumps({"type": "ERROR", "object": status_body(410)}).encode() + b"\n"
"""The event that says that a watch's resource version is too old."""
_OVERTAKEN = 0.05
"""Seconds after which what was sent has arrived: a reset would overtake it."""


class _Watch:
    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.ended = asyncio.Event()
        """To be ended at once, with `last` as the last event."""
        self.last = b""
        self.cut: Cut | None = None
        """How it ends in the middle of its next event."""


class Watches:
    """All open watches."""

    def __init__(self) -> None:
        self._open: set[_Watch] = set()

    @property
    def urls(self) -> list[str]:
        """Which they are."""
        return [str(watch.request.rel_url) for watch in list(self._open)]

    async def reset(self) -> int:
        """Reset their connections; how many there were."""
        watches = list(self._open)
        for watch in watches:
            reset(watch.request)
        return len(watches)

    async def end(self, last: bytes) -> int:
        """End them in order after these last bytes; how many there were."""
        watches = list(self._open)
        for watch in watches:
            watch.last = last
            watch.ended.set()
        return len(watches)

    async def cut_in_event(self, path: str, how: Cut) -> int:
        """End those whose path holds this text in the middle of their next event; how many they are."""
        watches = [watch for watch in self._open if path in watch.request.path]
        for watch in watches:
            watch.cut = how
        return len(watches)

    async def relay(self, request: web.Request, upstream: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """What the API server sends on a watch, until either side or a test ends it."""
        watch = _Watch(request)
        self._open.add(watch)
        ended = asyncio.ensure_future(watch.ended.wait())
        read: asyncio.Future[bytes] | None = None
        try:
            while True:
                read = asyncio.ensure_future(upstream.content.readany())
                await asyncio.wait({read, ended}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    yield watch.last
                    return
                chunk = read.result()
                if not chunk:
                    return
                if watch.cut:
                    yield _first_half(chunk)
                    if watch.cut == "reset":
                        await asyncio.sleep(_OVERTAKEN)
                        reset(request)
                    return
                yield chunk
        finally:
            ended.cancel()
            if read is not None:
                read.cancel()
            self._open.discard(watch)


def _first_half(chunk: bytes) -> bytes:
    """What begins with an event, up to the middle of that."""
    line, _, _ = chunk.partition(b"\n")
    return line[: len(line) // 2]
