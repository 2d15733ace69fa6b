"""What listens on the machine."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Final

_LISTENS: Final = "0A"
"""The state of a socket in /proc/net/tcp."""


def listening() -> set[tuple[str, int]]:
    """The addresses and ports that are listened on."""
    found = set()
    for name, words in (("tcp", 1), ("tcp6", 4)):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == _LISTENS:
                packed, port = local.split(":")
                raw = bytes.fromhex(packed)
                parts = b"".join(raw[at * 4 : at * 4 + 4][::-1] for at in range(words))
                address = ipaddress.ip_address(parts)
                mapped = getattr(address, "ipv4_mapped", None)
                found.add((str(mapped or address), int(port, 16)))
    return found


def beyond_loopback() -> set[tuple[str, int]]:
    """Those that other machines can reach."""
    return {one for one in listening() if not ipaddress.ip_address(one[0]).is_loopback}
