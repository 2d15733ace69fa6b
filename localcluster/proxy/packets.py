"""Drops packets that arrive at a socket: for the peer, the connection is dead."""

from __future__ import annotations

import ctypes
import socket
import struct
from asyncio.trsock import TransportSocket

_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""The only instruction of a filter (classic BPF) that accepts no byte of any packet."""


def swallow(connection: socket.socket | TransportSocket) -> None:
    """Make the system drop every packet for this connection before it is acknowledged."""
    code = ctypes.create_string_buffer(_RETURN_NOTHING)
    connection.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    )
