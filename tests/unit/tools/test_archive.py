"""Archives are unpacked with and without the filter that Python 3.11.4 brought."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tools.archive import unpack


@pytest.mark.parametrize("has_filter", [True, False])
def test_an_archive_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_filter: bool) -> None:
    if not has_filter:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("folder/file")
        entry.size, entry.mode = 5, 0o664
        archive.addfile(entry, io.BytesIO(b"hello"))
    content.seek(0)
    with tarfile.open(fileobj=content) as archive:
        unpack(archive, tmp_path)
    file = tmp_path / "folder" / "file"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("hello", 0o644)
