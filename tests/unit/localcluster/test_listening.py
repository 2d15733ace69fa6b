"""A server that is closed just as a client connects."""

from __future__ import annotations

import asyncio
import gc
import socket

from localcluster.proxy.listening import stop_accepting


async def test_a_connection_is_closed_however_late_it_came() -> None:
    """Turns of the loop lie between the connection and the end of the server: in the second it is accepted, in the
    third the server has it. (Warnings are errors here: a socket that is not closed fails the test.)"""
    assert [await answers_after(turns) for turns in range(5)] == [0, 0, 1, 1, 1]
    gc.collect()


async def answers_after(turns: int) -> int:
    answered = 0

    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        answered += 1
        writer.transport.abort()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()):
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_accepting(server.sockets)
        server.close()
        for _ in range(5):
            await asyncio.sleep(0)
    return answered
