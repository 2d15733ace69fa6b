"""A long answer of HTTP/1.1 (a watch): its body, piece by piece as it comes, over a connection of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator

from hvpa.kube.answers import Answer, Lost, Malformed
from hvpa.kube.connection import Connection, Pool

MOST_UNREAD = 2**18
"""Bytes of a body that nobody has taken yet, beyond which the server has to wait."""
KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""TCP keep-alive: a peer that is gone without a word is noticed after 30 s (client-go pings after 30 s)."""


class Stream(Connection):
    """One connection for one request. `silence`: seconds after which an answer of which nothing came counts as over."""

    def __init__(self, pool: Pool, silence: float) -> None:
        super().__init__(pool)
        self._silence = silence
        self._news: asyncio.Future[None] | None = None
        """Somebody waits for something to happen."""
        self._unread = 0
        self._answer: Answer | None = None
        self._error: Exception | None = None
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def status(self) -> int:
        """The answer's status."""
        return self._reader.status

    async def open(self, request: bytes) -> Stream | Answer:
        """Send `request`: this stream once the answer's headers are there, where it is a success, or the whole of
        another answer. Raises Lost, Malformed and TimeoutError."""
        if self._transport is None:
            raise Lost("the connection was closed")
        try:
            self._transport.write(request)
            while self._answer is None:
                if 200 <= self.status < 300:
                    keep_alive(self._transport)
                    return self
                await self._something()
        except BaseException:
            self.end()
            raise
        if 200 <= self._answer.status < 300:
            return self
        self.end()
        return self._answer

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body, as it comes. Raises as `open`, once all was had that came before."""
        while True:
            if piece := self._reader.take():
                if self._unread > MOST_UNREAD and self._transport and not self._transport.is_closing():
                    self._transport.resume_reading()
                self._unread = 0
                yield piece
            elif self._answer is not None:
                return
            else:
                await self._something()

    async def _something(self) -> None:
        """Wait until something comes, or raise what ended it."""
        if self._error is not None:
            raise self._error
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _succeed(self, answer: Answer) -> None:
        if self._answer is None and self._error is None:
            self._answer = answer
        self._tell()

    def _fail(self, error: Exception) -> None:
        if self._answer is None and self._error is None:
            self._error = error
        self._tell()

    def _look(self) -> None:
        """Whether there was silence for too long; come again when there may have been."""
        due = self._heard_at + self._silence
        if due > self._loop.time():
            self._timer = self._loop.call_at(due, self._look)
        else:
            self._fail(TimeoutError())
            self.end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(self._silence, self._look)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._heard_at = self._loop.time()
        if self._answer is not None or self._error is not None:
            return
        try:
            self._answer = self._reader.feed(data)
        except Malformed as error:
            self._fail(error)
            self.end()
            return
        before, self._unread = self._unread, self._unread + len(data)
        if before <= MOST_UNREAD < self._unread and self._transport and not self._transport.is_closing():
            self._transport.pause_reading()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)


def keep_alive(transport: asyncio.BaseTransport | None) -> None:
    """Have the system notice a peer that is gone without a word."""
    raw = None if transport is None else transport.get_extra_info("socket")
    if raw is None:
        return
    try:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        return  # only a finer detection of dead peers is lost
