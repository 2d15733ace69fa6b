"""What a connection for short answers and one for a long answer have in common: their beginning and their end."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from hvpa.kube.answers import Answer, AnswerReader, Lost, Malformed


class Pool(Protocol):
    """Keeps count of connections."""

    def made(self, connection: Connection) -> None:
        """A connection is there."""
        ...

    def lost(self, connection: Connection) -> None:
        """A connection has ended."""
        ...


class Connection(asyncio.Protocol):
    """One connection to the server, and the reader of its answers. Within an event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None

    def end(self) -> asyncio.Future[None]:
        """Close at once. Done when that is done."""
        self._reader.reusable = False
        if self._transport is not None:
            self._transport.abort()
        return self._gone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses of it
        self._pool.made(self)

    def eof_received(self) -> None:
        """See `asyncio.Protocol`."""
        self._ended(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._ended(exc)
        self._reader.close()
        self._pool.lost(self)
        self._gone.set_result(None)

    def _ended(self, error: Exception | None) -> None:
        try:
            answer = None if error is not None else self._reader.end()
        except Malformed as wrong:
            self._fail(wrong)
            return
        if answer is not None:
            self._succeed(answer)
        self._fail(Lost(str(error or "the server closed the connection")))

    def _succeed(self, answer: Answer) -> None:
        """The whole answer is there; of what comes later, nothing counts."""
        raise NotImplementedError

    def _fail(self, error: Exception) -> None:
        """There will be no answer, unless there was one before."""
        raise NotImplementedError
