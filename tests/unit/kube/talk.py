"""An HTTP server that says to each connection what a test has it say, byte for byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from hvpa.kube import http
from hvpa.kube.http import Connections
from tests.e2e.world.listening import stop_accepting
from tests.unit.kube.fake_server import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Each connection is answered by `talk`; by default, each request with `answer`."""

    def __init__(self, talk: Conversation | None = None, answer: bytes = OK) -> None:
        self.talk = talk or self.answer_all
        self.answer = answer
        self.heads: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.port = 0

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Take one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")[:-2]
        lengths = [line.split(": ")[1] for line in lines if line.startswith("Content-Length")]
        self.bodies.append(await reader.readexactly(int(lengths[0])) if lengths else b"")
        self.heads.append(lines)

    async def answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await self.read(reader)
            writer.write(self.answer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self.talk(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client has ended it
        finally:
            self.open -= 1
            writer.transport.abort()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        """Listen on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            try:
                yield self
            finally:
                await stop_accepting(server.sockets)
        await until(lambda: self.open == 0)

    @asynccontextmanager
    async def client(
        self, tls: ssl.SSLContext | None = None, name: str | None = None, keep: float = http.KEEP
    ) -> AsyncIterator[Connections]:
        """A client of this server."""
        connections = Connections(("127.0.0.1", self.port), {"Host": "here"}, tls, name, keep)
        try:
            yield connections
        finally:
            await connections.close()
