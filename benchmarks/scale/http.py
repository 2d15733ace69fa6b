"""HTTP/1.1 to an API server with as little CPU as Python allows, because the simulated cluster shares the machine with
the measured operator. Bodies are bytes, connections are kept, and a request is only sent again if its connection was
closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster.client.api import read_kubeconfig

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
TRIES = 5
"""Attempts for a request if its connection breaks, or its response is 429."""


class Refused(Exception):
    """A response other than 2xx."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class _Connection(asyncio.Protocol):
    """A connection with a single request at a time. `on_body` gets the pieces of a response as they arrive."""

    def __init__(self) -> None:
        self.usable = True
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._on_body: Callable[[bytes], None] | None = None
        self._body = bytearray()
        self._status = 0
        self._left = -1  # of a body of known length; -1: in chunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.usable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the server closed the connection"))

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, request: bytes, on_body: Callable[[bytes], None] | None = None) -> tuple[int, bytes]:
        """Return status and body of the response."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._on_body = on_body
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer += data
        while self._answer is not None and not self._answer.done():
            if self._status == 0:
                if not self._read_head():
                    return
            elif self._left >= 0:
                if len(self._buffer) < self._left:
                    return
                self._take(0, self._left)
                self._finish()
            elif not self._read_chunk():
                return

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end]).lower()
        del self._buffer[: end + 4]
        self._status = int(head[9:12])
        _, separator, rest = head.partition(b"\r\ncontent-length:")
        self._left = int(rest.partition(b"\r\n")[0]) if separator else -1
        self.usable = self.usable and b"\r\nconnection: close" not in head
        return True

    def _read_chunk(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        size = int(self._buffer[:end], 16)
        if len(self._buffer) < end + size + 4:
            return False
        self._take(end + 2, size)
        del self._buffer[:2]
        if size == 0:
            self._finish()
        return True

    def _take(self, start: int, size: int) -> None:
        piece = bytes(self._buffer[start : start + size])
        del self._buffer[: start + size]
        if self._on_body is not None and self._status == 200:
            self._on_body(piece)
        else:
            self._body += piece

    def _finish(self) -> None:
        assert self._answer is not None
        self._answer.set_result((self._status, bytes(self._body)))
        self._body.clear()
        self._status = 0


class Client:
    """Requests as the user of a kubeconfig."""

    def __init__(self, kubeconfig: Path, agent: str) -> None:
        self._credentials = read_kubeconfig(kubeconfig)
        address = urlsplit(self._credentials.server)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 443
        token = self._credentials.token
        identity = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: {self._host}:{self._port}\r\nUser-Agent: {agent}\r\n{identity}"
        self._idle: list[_Connection] = []
        self.requests = 0

    async def send(self, method: str, path: str, body: bytes = b"", content: str = JSON) -> bytes:
        """Return the response's body. Raises `Refused` and `OSError`. It sends again after a 429, and a patch after a
        504: repeating a patch is harmless."""
        request = self._request(method, path, body, content, JSON)
        for attempt in range(1, TRIES + 1):
            connection = await self._take()
            try:
                status, response = await connection.ask(request)
            except ConnectionResetError:
                if attempt == TRIES:
                    raise
                continue
            self.requests += 1
            if connection.usable:
                self._idle.append(connection)
            if (status == 429 or (status == 504 and method == "PATCH")) and attempt < TRIES:
                await asyncio.sleep(1)
                continue
            if status >= 300:
                raise Refused(status, f"{method} {path}: {response.decode(errors='replace')}")
            return response
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def lines(self, path: str, accept: str, take: Callable[[bytes], None]) -> None:
        """Pass each line of a long response (a watch) to `take`, until the server ends it."""
        rest = b""

        def split(piece: bytes) -> None:
            nonlocal rest
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                take(line)

        connection = await self._open()
        try:
            status, response = await connection.ask(self._request("GET", path, b"", JSON, accept), split)
        finally:
            connection.close()
        if status != 200:
            raise Refused(status, f"GET {path}: {response.decode(errors='replace')}")

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._idle:
            connection.close()

    def _request(self, method: str, path: str, body: bytes, content: str, accept: str) -> bytes:
        kind = f"Content-Type: {content}\r\nContent-Length: {len(body)}\r\n" if body else ""
        return f"{method} {path} HTTP/1.1\r\n{self._head}Accept: {accept}\r\n{kind}\r\n".encode() + body

    async def _take(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return await self._open()

    async def _open(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            _Connection, self._host, self._port, ssl=self._credentials.tls
        )
        return connection


async def each(jobs: Iterable[Any], concurrency: int, work: Callable[[Any], Any]) -> None:
    """Await `work` of each job with this concurrency, started in order."""
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await work(job)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())


async def paced(jobs: Iterable[Any], rate: float) -> AsyncIterator[Any]:
    """Yield the jobs in order at this rate per second, without drift."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for job in jobs:
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield job
        due += 1 / rate
