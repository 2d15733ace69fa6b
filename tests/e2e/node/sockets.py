"""What listens on the machine."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Final

_LISTENS: Final = "0A"
"""The state of a socket in /proc/net/tcp."""


def listening(process: Path | None = None) -> set[tuple[str, int]]:
    """The addresses and ports that are listened on; by one process alone, if its folder in /proc is given."""
    own = {os.readlink(descriptor) for descriptor in (process / "fd").iterdir()} if process else set()
    endpoints = set()
    for name, words in (("tcp", 1), ("tcp6", 4)):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS and (process is None or f"socket:[{inode}]" in own):
                packed, port = local.split(":")
                raw = bytes.fromhex(packed)
                parts = b"".join(raw[at * 4 : at * 4 + 4][::-1] for at in range(words))
                address = ipaddress.ip_address(parts)
                mapped = getattr(address, "ipv4_mapped", None)
                endpoints.add((str(mapped or address), int(port, 16)))
    return endpoints


def beyond_loopback() -> set[tuple[str, int]]:
    """Those that other machines can reach."""
    return {endpoint for endpoint in listening() if not ipaddress.ip_address(endpoint[0]).is_loopback}
