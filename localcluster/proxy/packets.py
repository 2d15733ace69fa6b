"""Packets that arrive at a socket and vanish: for the peer, the connection is dead."""

from __future__ import annotations

import ctypes
import socket
import struct
from asyncio.trsock import TransportSocket
from functools import cache

_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""The only instruction of a filter (classic BPF) that accepts no byte of any packet."""


def swallow(connection: socket.socket | TransportSocket) -> None:
    """From now on the system drops every packet of this connection, before it is acknowledged."""
    code = ctypes.create_string_buffer(_RETURN_NOTHING)
    connection.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    )


@cache
def why_not() -> str:
    """The reason that this process can't do that, in a line; empty if it can. Some machines require root."""
    with socket.socket() as connection:
        try:
            swallow(connection)
        except OSError as error:
            return f"packet filters of sockets are not allowed here ({error.strerror})"
    return ""
