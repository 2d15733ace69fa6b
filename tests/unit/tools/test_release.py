"""The parts of `make release`: archives, folders, what is refused. (A whole release: tests/e2e/test_releases.py.)"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import distributions, release

NAMES = st.text("abc/é", min_size=1, max_size=120).filter(lambda name: name.strip("/") == name)
FILES = st.dictionaries(NAMES, st.binary(max_size=64), max_size=8)


@given(FILES, st.integers(0, 2**32 - 1))
def test_an_archive_holds_the_files_whatever_their_order(files: dict[str, bytes], epoch: int) -> None:
    packed = distributions.tar_gz(files, epoch)
    assert packed == distributions.tar_gz(dict(reversed(files.items())), epoch)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
        assert {member.name: _content(archive, member) for member in members} == files
        assert {(member.mtime, member.uid, member.gid, member.mode, member.uname) for member in members} <= {
            (epoch, 0, 0, 0o644, "")
        }


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def git(folder: Path, *command: str) -> None:
    subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True)


def test_what_is_not_committed_is_in_no_release(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "pyproject.toml").write_text("")
    git(tmp_path, "add", ".")
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    git(tmp_path, *identity, "commit", "-m", "first")
    (tmp_path / "pyproject.toml").write_text("# changed")
    with pytest.raises(distributions.ReleaseError, match=r"differ from it:\n M pyproject\.toml$"):
        release.release(tmp_path, Path("kubectl"))


def test_a_folder_without_a_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        distributions.ReleaseError, match=f"git status failed in {tmp_path}: .*not a git repository"
    ):
        release.release(tmp_path, Path("kubectl"))


def test_a_folder_with_other_files_gets_no_release(tmp_path: Path) -> None:
    files = {"a": b"1", release.CHECKSUMS: b"2"}
    release.write(files, tmp_path / "new" / "folder")
    release.write(files, tmp_path / "new" / "folder")
    (tmp_path / "hvpa-0.0.9.tgz").write_bytes(b"")
    with pytest.raises(distributions.ReleaseError, match=r"no part of this release: hvpa-0\.0\.9\.tgz, new"):
        release.write(files, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "hvpa-0.0.9.tgz"}
