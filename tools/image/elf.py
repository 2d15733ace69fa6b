"""Checks that the image has every shared library that its programs and libraries load."""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator

from localcluster.oci import Entries, File

_LOAD, _DYNAMIC = 1, 2
_END, _NEEDED, _STRINGS = 0, 1, 5


def missing(entries: Entries) -> dict[str, str]:
    """Return the needed libraries that have no entry, each with a file that needs it."""
    present = {posixpath.basename(path) for path in entries}
    return {
        name: path
        for path, entry in sorted(entries.items())
        if isinstance(entry, File)
        for name in needed(entry.content)
        if name not in present
    }


def needed(content: bytes) -> list[str]:
    """Return the names of the libraries that a 64-bit little-endian ELF file loads; empty for other files."""
    if content[:6] != b"\x7fELF\x02\x01":
        return []
    segments = list(_segments(content))
    entries: list[tuple[int, int]] = []
    for kind, offset, _, size in segments:
        if kind == _DYNAMIC:
            entries += struct.iter_unpack("<QQ", content[offset : offset + size])
    names, strings = [], 0
    for tag, value in entries:
        if tag == _END:
            break
        if tag == _NEEDED:
            names.append(value)
        elif tag == _STRINGS:
            strings = value
    for kind, offset, address, size in segments:
        if kind == _LOAD and address <= strings < address + size:
            start = offset + strings - address
            return [_text(content, start + name) for name in names]
    return []


def _segments(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield type, offset, address and file size of each program header."""
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", content, table + index * size)
        yield kind, offset, address, length


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()
