"""Packets that arrive at a socket and vanish: for the peer, the line is dead."""

from __future__ import annotations

import ctypes
import socket
import struct
from asyncio.trsock import TransportSocket

_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""The one instruction of a filter (classic BPF) that accepts no byte of any packet."""


def swallow(connection: socket.socket | TransportSocket) -> None:
    """From now on the system drops every packet that comes for this connection, before it is acknowledged."""
    code = ctypes.create_string_buffer(_RETURN_NOTHING)
    connection.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    )
