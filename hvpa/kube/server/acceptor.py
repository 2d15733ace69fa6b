"""Accepts the connections of an address, and limits the connections, open files, memory and time of clients.

Every connection counts from its arrival, before its TLS handshake. A new connection is never refused: if there are
too many, an idle connection is closed instead (`hvpa.kube.server.fair_limit`). Peers are distinguished by address.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, cast

import structlog
from aiohttp import web

from hvpa.kube.server.fair_limit import FairLimit

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

MAX_CONNECTIONS: Final = 256
"""Maximum concurrent connections. A TLS connection takes 0.3 MB (a buffer of asyncio's), 80 MB in total."""
MAX_PER_PEER: Final = 128
"""Maximum concurrent connections per address. Scrapers and probes need a handful, proxies represent many clients."""
HEADER: Final = 3.0
"""Seconds until the header of a request is complete.

They count from a connection's start, or from the first byte of a further request. The limit is shorter than the time
between two probes of the kubelet.
"""
HANDSHAKE: Final = 3.0
"""Maximum seconds of a TLS handshake, which precedes the first request."""
IDLE: Final = 30.0
"""Maximum seconds that a connection waits for the next request after a response."""
BACKLOG: Final = 1024
"""Maximum connections that the kernel holds until they are accepted (at most net.core.somaxconn, usually 4096)."""
BATCH: Final = 8
"""Maximum connections that are accepted in a batch.

Requests are read between batches, so that a connection with a request is in use before MAX_PER_PEER newer connections
make it the oldest idle connection.
"""
PAUSE: Final = 0.05
"""Seconds without accepting after the process ran out of open files, until a closed connection has freed its file."""
WARN_EVERY: Final = 60.0
"""Seconds between two warnings that no connection can be accepted."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Serves each connection with a protocol that `protocol` creates, until `close`."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        total: int = MAX_CONNECTIONS,
        per_peer: int = MAX_PER_PEER,
    ) -> None:
        self._protocol = protocol
        self._connections: FairLimit[Connection] = FairLimit(
            total, per_peer, lambda connection: not connection.is_busy
        )
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        self._warned_at = -WARN_EVERY

    async def start(self, host: str | None, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen at `host` (None: all interfaces); returns the port, a free port if `port` is 0. Raises OSError."""
        self._tls = tls
        addresses = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(addresses):
            try:
                listening = socket.create_server(
                    cast("tuple[str, int]", address), family=family, backlog=BACKLOG
                )
            except OSError as error:
                if host is None and error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                    continue  # the machine has no IPv6, or no IPv4
                self.stop_listening()
                raise
            listening.setblocking(False)
            self._listening.append(listening)
        if not self._listening:
            raise OSError(errno.EADDRNOTAVAIL, "not an address of this machine")
        for listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening)
        return cast("int", self._listening[0].getsockname()[1])

    async def close(self) -> None:
        """Close the address and all connections."""
        self.stop_listening()
        for connection in self._connections:
            self._end(connection)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __len__(self) -> int:
        """The number of connections, including those in their handshake."""
        return len(self._connections)

    def stop_listening(self) -> None:
        """Close the address; connections stay."""
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        self._listening = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BATCH):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._wait(listening, error)
                return
            accepted.setblocking(False)
            self._admit(Connection(self._protocol(), accepted, self._connections), str(address[0]))

    def _wait(self, listening: socket.socket, error: OSError) -> None:
        """Handle a failed accept: close an idle connection if open files ran out, and accept again after a pause."""
        if error.errno in _EXHAUSTED and (idle := self._connections.least_missed()) is not None:
            self._end(idle)
        if self._loop.time() - self._warned_at >= WARN_EVERY:
            self._warned_at = self._loop.time()
            log.warning("a connection can't be accepted; trying again", error=error.strerror or str(error))
        self._loop.remove_reader(listening)
        self._loop.call_later(PAUSE, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening)

    def _admit(self, connection: Connection, peer: str) -> None:
        displaced = self._connections.add(connection, peer)
        if displaced is not None:
            self._end(displaced)
        task = self._loop.create_task(self._open(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, connection: Connection) -> None:
        """Start the connection's protocol, after the handshake if TLS is used."""
        limit = HANDSHAKE if self._tls is not None else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                connection.socket,
                ssl=self._tls,
                ssl_handshake_timeout=limit,
                ssl_shutdown_timeout=limit,
            )
        except OSError as error:
            # Also ssl.SSLError: invalid data from a client, or a closed connection, is no fault of the server.
            self._connections.discard(connection)
            # The traceback's frames in asyncio hold the error, and 0.3 MB. The garbage collector counts objects, not
            # their size, and would free them only after thousands of connections.
            error.with_traceback(None)

    def _end(self, connection: Connection) -> None:
        self._connections.discard(connection)
        connection.end()


class Connection(asyncio.Protocol):
    """A client's connection, between the transport and the protocol that responds.

    It closes the connection if the client takes too long for a request's header. `begin` and `finish` mark a request
    in progress: only the protocol ends it then, or a new connection if there is no idle connection to close.
    """

    def __init__(
        self, inner: asyncio.Protocol, accepted: socket.socket, connections: FairLimit[Connection]
    ) -> None:
        self.socket = accepted
        self.is_busy = False
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_sending = True
        """Whether the client has begun to send a request that is not in progress yet; assumed for a new connection."""

    def begin(self) -> None:
        """Note that a request's header has arrived."""
        self.is_busy, self._is_sending = True, False
        self._cancel_deadline()

    def finish(self) -> None:
        """Note that the response was passed to the transport."""
        self.is_busy = False
        if self.socket.fileno() < 0:  # closed in the meantime
            return
        self._connections.used(self)
        self._set_deadline(HEADER if self._is_sending else IDLE)

    def end(self) -> None:
        """Close at once, also during the handshake, or if the client does not read the rest of a response."""
        if self._transport is not None:
            self._transport.abort()
        with suppress(OSError):
            # A transport that is already closing (asyncio over TLS then ignores `abort`), or that is in its
            # handshake, ends by this.
            self.socket.shutdown(socket.SHUT_RDWR)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)
        self._set_deadline(HEADER)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._is_sending:
            self._is_sending = True
            if not self.is_busy:
                self._set_deadline(HEADER)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See asyncio.Protocol."""
        return self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._cancel_deadline()
        self._connections.discard(self)
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._inner.resume_writing()

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


@contextmanager
def under_way(request: web.BaseRequest) -> Iterator[None]:
    """Mark the request as in progress during the block, so that its connection is not idle."""
    connection = None if request.transport is None else request.transport.get_protocol()
    if not isinstance(connection, Connection):  # closed in the meantime
        yield
        return
    connection.begin()
    try:
        yield
    finally:
        connection.finish()
