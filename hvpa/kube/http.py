"""HTTP/1.1 with little CPU: one write per request, and no more of the answer's head than is needed. What goes through a
proxy is aiohttp's (docs/decisions/0016)."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import TypeVar

from aiohappyeyeballs import start_connection

from hvpa.kube.answers import Answer, Lost, Malformed
from hvpa.kube.connection import Connection
from hvpa.kube.streams import Stream

CONNECT_TIMEOUT = 5.0
"""Seconds until a connection is there, TLS included."""
KEEP = 15.0
"""Seconds that a connection is kept without a request (aiohttp's default; API servers keep it for longer)."""
MAX_IDLE = 100
"""Connections that are kept without a request, at most."""
HAPPY_EYEBALLS = 0.25
"""Seconds until the server's next address is tried as well (RFC 8305, section 5)."""

_AGAIN = frozenset({"GET", "HEAD", "PUT", "DELETE"})
"""Methods that may be sent twice: twice does what once does (RFC 9110, section 9.2.2)."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods that tell a length also of no body."""


_Kind = TypeVar("_Kind", bound=Connection)


class Connections:
    """Connections to one server: one request at a time on each, and those that are idle are kept for the next one. Made
    within the event loop that it is used in.

    `address`: host and port. `headers` are sent with every request. `tls` is None for http://; the server's certificate
    must be for `server_name` (default: the host). `keep`: seconds for which an idle connection is kept.
    """

    def __init__(
        self,
        address: tuple[str, int],
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        keep: float = KEEP,
    ) -> None:
        self._address = address
        self._tls = tls
        self._server_name = None if tls is None else server_name or address[0].rstrip(".")
        self._keep = keep
        self._headers = "".join(_line(name, value) for name, value in headers.items())
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self._idle: list[_Connection] = []  # the one that was used last at the end
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(
        self,
        method: str,
        target: str,
        timeout: float,
        body: bytes = b"",
        content_type: str | None = None,
        authorization: str | None = None,
    ) -> Answer:
        """The answer to a request for `target` (path and query, percent-encoded), whatever its status. Raises OSError
        where there is none (a certificate that doesn't verify: ssl.SSLCertVerificationError), TimeoutError when it is
        not there after `timeout` seconds, Malformed where it is not HTTP, or the request can't be put into a head.

        A kept connection may be one that the server has just closed. When it ends before a byte of the answer, the
        request is sent again, once, over a new connection, if it may be sent twice.
        """
        request = self._request(method, target, body, content_type, authorization)
        deadline = self._loop.time() + timeout
        connection = self._kept()
        if connection is not None:
            try:
                return await connection.ask(request, deadline, bodiless=method == "HEAD")
            except Lost:
                if connection.heard or method not in _AGAIN:
                    raise
        connection = await self._connect(_Connection(self), deadline)
        return await connection.ask(request, deadline, bodiless=method == "HEAD")

    async def open(self, target: str, silence: float, authorization: str | None = None) -> Stream | Answer:
        """GET for a long answer: its body as it comes, where it is a success, over a connection of its own. Raises as
        `ask`; TimeoutError when nothing comes for `silence` seconds."""
        request = self._request("GET", target, b"", None, authorization)
        stream = await self._connect(Stream(self, silence), self._loop.time() + silence)
        return await stream.open(request)

    def _request(
        self, method: str, target: str, body: bytes, content_type: str | None, authorization: str | None
    ) -> bytes:
        if not _printable(target) or " " in target:
            raise Malformed("the request's path has characters that must be percent-encoded")
        head = f"{method} {target} HTTP/1.1\r\n{self._headers}"
        if authorization is not None:
            head += _line("Authorization", authorization)
        if content_type is not None:
            head += _line("Content-Type", content_type)
        if body or method in _WITH_BODY:
            head += f"Content-Length: {len(body)}\r\n"
        return (head + "\r\n").encode() + body

    async def close(self) -> None:
        """Close all connections; requests under way are cut."""
        self._closed = True
        self._idle.clear()
        if self._timer is not None:
            self._timer.cancel()
        ends = [connection.end() for connection in self._open]
        if ends:
            await asyncio.wait(ends, timeout=CONNECT_TIMEOUT)

    async def _connect(self, connection: _Kind, deadline: float) -> _Kind:
        host, port = self._address
        try:
            async with asyncio.timeout(min(CONNECT_TIMEOUT, deadline - self._loop.time())):
                found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                raw = await start_connection(found, happy_eyeballs_delay=HAPPY_EYEBALLS)
                transport, _ = await self._loop.create_connection(
                    lambda: connection, sock=raw, ssl=self._tls, server_hostname=self._server_name
                )
        except (TimeoutError, ssl.SSLCertVerificationError):
            raise
        except OSError as error:
            why = str(error) or type(error).__name__
            raise OSError(f"can't connect to {host}:{port}: {why}") from error
        if self._closed:
            transport.abort()
        return connection

    def _kept(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable():
                return connection
            connection.end()
        return None

    def made(self, connection: Connection) -> None:
        """A connection is there."""
        self._open.add(connection)

    def lost(self, connection: Connection) -> None:
        """A connection has ended."""
        self._open.discard(connection)
        if isinstance(connection, _Connection) and connection in self._idle:
            self._idle.remove(connection)

    def release(self, connection: _Connection) -> None:
        """A connection has had its answer."""
        if self._closed or len(self._idle) >= MAX_IDLE or not connection.usable():
            connection.end()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(self._keep, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long; come again when the next one will have been."""
        now = self._loop.time()
        while self._idle and self._idle[0].idle_since + self._keep <= now:
            self._idle.pop(0).end()
        self._timer = None
        if self._idle:
            self._timer = self._loop.call_at(self._idle[0].idle_since + self._keep, self._sweep)


class _Connection(Connection):
    """One connection. There is no flow control for what is written: it is one request, which is in memory anyway."""

    def __init__(self, pool: Connections) -> None:
        super().__init__(pool)
        self.idle_since = 0.0
        self._connections = pool
        self._waiting: asyncio.Future[Answer] | None = None

    @property
    def heard(self) -> bool:
        """Whether anything of the answer to the last request has come."""
        return self._reader.heard

    def usable(self) -> bool:
        """Whether another request can be sent."""
        return self._reader.reusable and self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes, deadline: float, *, bodiless: bool) -> Answer:
        """The answer to `request`; see `Connections.ask`."""
        if self._transport is None or not self.usable():
            raise Lost("the connection was closed")
        self._reader.begin(bodiless=bodiless)
        self._waiting = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            answer = await self._waiting
        except (
            BaseException
        ):  # also a caller that was cancelled: the next request must not get this one's answer
            self.end()
            raise
        finally:
            timer.cancel()
            self._waiting = None
        self._connections.release(self)
        return answer

    def _succeed(self, answer: Answer) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        self._reader.reusable = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._waiting is None:  # nothing was asked for
            self.end()
            return
        if self._waiting.done():
            self._reader.reusable = False
            return
        try:
            answer = self._reader.feed(data)
        except Malformed as error:
            self._fail(error)
        else:
            if answer is not None:
                self._succeed(answer)


def _line(name: str, value: str) -> str:
    """A header; raises Malformed, which does not tell the value: it may be a secret."""
    if not _printable(value):
        raise Malformed(f"{name} has characters that can't be in a header")
    return f"{name}: {value}\r\n"


def _printable(text: str) -> bool:
    """Whether a line may hold it: nothing but ASCII, and no control characters."""
    return text.isascii() and text.isprintable()
