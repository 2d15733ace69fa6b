"""The line that a test can let die."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from localcluster.client.api import wait_for
from localcluster.proxy.wire import Wire


def test_the_line_can_die_while_a_connection_on_it_ends() -> None:
    """Of a connection that its client has reset, the socket is closed before the connection is let go of."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with Wire(f"https://{host}:{port}") as wire:
            client = socket.create_connection(("127.0.0.1", int(wire.address.rpartition(":")[2])))
            with client:
                wait_for(lambda: any(len(connection.writers) == 2 for connection in wire._connections), 10)
                wire._call(_die_at_the_end_of_a_connection(wire))
                client.settimeout(10)
                with contextlib.suppress(ConnectionResetError):  # as good
                    assert client.recv(1) == b""


async def _die_at_the_end_of_a_connection(wire: Wire) -> None:
    (connection,) = wire._connections
    connection.writers[0].transport.abort()
    await asyncio.sleep(0)
    await wire._die()
