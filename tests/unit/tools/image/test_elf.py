"""Libraries that programs load."""

from __future__ import annotations

import struct

import pytest

from localcluster.oci import Entries, File, Link
from tools.image import elf


def program(*libraries: str) -> bytes:
    """An ELF file of two segments that loads these. Its strings are at offset 0x200, and at address 0x10200."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in libraries)
    offsets = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in libraries]
    dynamic = b"".join(struct.pack("<QQ", 1, offset) for offset in offsets) + struct.pack(
        "<QQQQ", 5, 0x10200, 0, 0
    )
    header = struct.pack("<4sBB10xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    end = 0x200 + len(strings)
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0x10000, 0, end, end, 1)
    segments += struct.pack("<IIQQQQQQ", 2, 4, 0x100, 0x10100, 0, len(dynamic), len(dynamic), 1)
    return ((header + segments).ljust(0x100, b"\0") + dynamic).ljust(0x200, b"\0") + strings


@pytest.mark.parametrize("libraries", [(), ("libc.so.6",), ("libm.so.6", "libc.so.6")])
def test_they_are_read(libraries: tuple[str, ...]) -> None:
    assert elf.needed(program(*libraries)) == list(libraries)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + b"\0" * 60])
def test_other_files_load_none(content: bytes) -> None:
    assert elf.needed(content) == []


def test_one_that_is_missing_is_named_with_who_needs_it() -> None:
    entries: Entries = {
        "usr/lib/a.so": File(program("libc.so.6", "libstdc++.so.6")),
        "usr/lib/libc.so.6": Link("libc-2.36.so"),
    }
    assert elf.missing(entries) == {"libstdc++.so.6": "usr/lib/a.so"}
