"""Unpacks archives with every Python 3.11: the safe way of 3.11.4 is missing in Debian 12's 3.11.2."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract an archive of known content (of our own commit, or with a pinned hash)."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        members = archive.getmembers()
        for member in members:
            member.mode &= 0o755  # as that filter does: only the owner may write
        archive.extractall(folder, members)
