"""The line between a client and a server, byte for byte: TLS goes through it from end to end. A test can let it die:
then no packet passes either way and nothing is closed, as when a machine on the way forgets its connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from localcluster.process import free_port
from localcluster.proxy.listening import stop_accepting
from localcluster.proxy.packets import swallow

_CHUNK = 2**16


class _Connection:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []
        self.passing = asyncio.Event()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on in one direction until its end; while the line is dead, none."""
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self.passing.wait()
                if writer.is_closing():
                    break  # asyncio would warn of each further chunk
                writer.write(chunk)
                await writer.drain()
        await self.passing.wait()
        self.close()

    def die(self) -> None:
        """Nothing that the client sends is acknowledged any more, and nothing is passed on."""
        self.passing.clear()
        swallow(self.writers[0].get_extra_info("socket"))

    def close(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
        self.passing.set()


class Wire:
    """Use as a context manager."""

    def __init__(self, server: str) -> None:
        """`server` is the address behind, https://HOST:PORT."""
        address = urlsplit(server)
        self._behind = (address.hostname or "127.0.0.1", address.port or 443)
        self._port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire", daemon=True)
        self._connections: set[_Connection] = set()
        self._dead = False
        self.accepted = 0
        """Connections that clients have opened so far."""

    def __enter__(self) -> Wire:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *error: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def address(self) -> str:
        """What clients connect to."""
        return f"https://127.0.0.1:{self._port}"

    def kubeconfig(self, like: Path) -> Path:
        """A copy of a kubeconfig, beside it, that goes through this line."""
        document = yaml.safe_load(like.read_text())
        document["clusters"][0]["cluster"]["server"] = self.address
        path = like.with_suffix(f".{self._port}.kubeconfig")
        path.write_text(yaml.safe_dump(document))
        return path

    @contextlib.contextmanager
    def dead(self) -> Iterator[None]:
        """For the time of the block, nothing passes on any connection; new ones are accepted, and nothing passes on
        them either. What was open at its beginning, or was opened in it, stays dead afterwards; new connections work
        again."""
        self._call(self._die())
        try:
            yield
        finally:
            self._dead = False

    def lose_connections(self) -> None:
        """What is open goes dead, until the next time; new connections work."""
        with self.dead():
            pass

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def _die(self) -> None:
        self._dead = True
        for connection in self._connections:
            if connection.passing.is_set() and not connection.writers[0].is_closing():
                connection.die()
            else:
                connection.close()  # dead since the last time, or at its end: its socket may be closed already

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        connection = _Connection()
        connection.writers.append(writer)
        self._connections.add(connection)
        try:
            if self._dead:
                connection.die()
                await connection.passing.wait()
            connection.passing.set()
            try:
                far_reader, far_writer = await asyncio.open_connection(*self._behind)
            except OSError:
                return
            connection.writers.append(far_writer)
            await asyncio.gather(connection.carry(reader, far_writer), connection.carry(far_reader, writer))
        except asyncio.CancelledError:
            return  # the wire is closed; asyncio would complain of a handler that was cancelled
        finally:
            connection.close()
            self._connections.discard(connection)

    async def _close(self) -> None:
        await stop_accepting(self._server.sockets)
        self._server.close()
        for connection in list(self._connections):
            connection.close()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for transport in list(getattr(self._loop, "_transports", {}).values()):
            transport.abort()  # one that was accepted a moment ago
        await asyncio.sleep(0)
