"""An HTTP server that sends over each connection what a test has it send, byte for byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.transport import Transport
from localcluster.proxy.listening import stop_accepting
from tests.unit.kube.fake_server import kubeconfig, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Step = bytes | asyncio.Event | None
READ = None


class Server:
    """Answers each request with `answer`. The `first` connection goes as these steps, and then ends: READ a request,
    send bytes, wait for an event. `conversation` does for all connections what it likes."""

    def __init__(self, *first: Step, answer: bytes = OK, conversation: Conversation | None = None) -> None:
        self._conversation = conversation or self._converse
        self.answer = answer
        self._first = first
        self.requests: list[str] = []
        """Method and path of each."""
        self.connections = 0
        self.open = 0
        self.scheme = "http"
        self.port = 0

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Take one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")[:-2]
        lengths = [line.split(": ")[1] for line in lines if line.startswith("Content-Length")]
        if lengths:
            await reader.readexactly(int(lengths[0]))
        self.requests.append(lines[0].removesuffix(" HTTP/1.1"))

    async def answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await self.read(reader)
            writer.write(self.answer)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections > 1 or not self._first:
            await self.answer_all(reader, writer)
        for step in self._first:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, asyncio.Event):
                await step.wait()
            else:
                await self.read(reader)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self._conversation(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client has ended it
        finally:
            self.open -= 1
            writer.transport.abort()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        """Listen on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self.scheme = "http" if tls is None else "https"
        async with server:
            try:
                yield self
            finally:
                await stop_accepting(server.sockets)
        await until(lambda: self.open == 0)

    @asynccontextmanager
    async def transport(
        self, folder: Path, cluster: dict[str, Any] | None = None, token: str = "secret"
    ) -> AsyncIterator[Transport]:
        """A transport to this server."""
        url = f"{self.scheme}://127.0.0.1:{self.port}"
        transport = Transport(await Credentials.load(str(kubeconfig(folder, url, {"token": token}, cluster))))
        try:
            yield transport
        finally:
            await transport.close()
