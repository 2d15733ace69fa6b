"""What /metrics shows: rendered once for all who ask within a second or more, and in pieces, so that neither many
scrapes nor many series hold up what else the operator does (the renewal of its lease above all)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

FRESH = 1.0
"""Seconds for which a page is used again; Prometheus scrapes at most once a second."""
SHARE = 10
"""A page is used for at least so many times the time that its rendering took: at most a tenth of the operator's time
goes into scrapes, as into any one Hvpa."""


class Page:
    """One page for all clients; `pieces` renders it, a few milliseconds of work at each step."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces
        self._content = b""
        self._until = 0.0
        self._rendering: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """The page; at least as new as the last rendering that was due."""
        loop = asyncio.get_running_loop()
        if self._rendering is None and loop.time() >= self._until:
            self._rendering = loop.create_task(self._render())
        if self._rendering is not None:
            await asyncio.shield(
                self._rendering
            )  # one client that goes away is no reason to stop for the others
        return self._content

    async def _render(self) -> None:
        loop = asyncio.get_running_loop()
        pieces, spent = [], 0.0
        try:
            began = loop.time()
            for piece in self._pieces():
                pieces.append(piece)
                spent += loop.time() - began
                await asyncio.sleep(0)
                began = loop.time()
            self._content = b"".join(pieces)
            self._until = loop.time() + max(FRESH, SHARE * spent)
        finally:
            self._rendering = None
