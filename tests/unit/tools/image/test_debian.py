"""What of Debian's packages is in the image, and what is said if apt has them not."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from localcluster.oci import File, Link
from tools.image import debian
from tools.image.errors import ImageError
from tools.image.lockfile import DebianPackage

DEB = b"a package"
PACKAGE = DebianPackage("libssl3", "3.0.19-1", "amd64", hashlib.sha256(DEB).hexdigest())


@pytest.mark.parametrize(
    "name",
    [
        "usr/bin/python3.11",
        "lib/x86_64-linux-gnu/libc.so.6",
        "lib64/ld-linux-x86-64.so.2",
        "usr/lib/locale/C.utf8/LC_CTYPE",
        "usr/lib/python3.11/asyncio/base_events.py",
        "usr/lib/python3.11/lib-dynload/_bz2.cpython-311-x86_64-linux-gnu.so",
        "usr/lib/python3.11/unittest/case.py",
        "usr/share/doc/libc6/copyright",
        "usr/share/doc/libgcc-s1",
        "etc/java-17-openjdk/jvm-amd64.cfg",
        "usr/share/nodejs/acorn/dist/acorn.js",
    ],
)
def test_it_is_in_the_image(name: str) -> None:
    assert debian.is_kept(name)


@pytest.mark.parametrize(
    "name",
    [
        "etc/python3.11/sitecustomize.py",
        "sbin/ldconfig",
        "usr/bin/iconv",
        "usr/lib/python3.11/ctypes/test/test_cast.py",
        "usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so",
        "usr/lib/python3.11/lib2to3/main.py",
        "usr/lib/python3.11/sitecustomize.py",
        "usr/lib/python3.11/sqlite3/dbapi2.py",
        "usr/lib/python3.11/test/support/__init__.py",
        "usr/lib/x86_64-linux-gnu/gconv/UTF-16.so",
        "usr/share/doc/libc6/changelog.Debian.gz",
        "usr/share/man/man1/python3.11.1.gz",
        "var/lib/systemd/x",
    ],
)
def test_it_is_left_out(name: str) -> None:
    assert not debian.is_kept(name)


def archive(*members: tuple[str, bytes, int, bytes | str]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, kind, mode, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime, info.uid = kind, mode, 99, 1000
            if isinstance(content, str):
                info.linkname = content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def test_files_are_where_debians_links_lead() -> None:
    entries = debian.entries_of(
        archive(
            ("./lib/x86_64-linux-gnu/", tarfile.DIRTYPE, 0o755, b""),
            ("./lib/x86_64-linux-gnu/libz.so.1.2.13", tarfile.REGTYPE, 0o640, b"library"),
            ("./lib/x86_64-linux-gnu/libz.so.1", tarfile.SYMTYPE, 0o777, "libz.so.1.2.13"),
            ("./usr/bin/python3.11", tarfile.REGTYPE, 0o4755, b"program"),
            ("./usr/bin/other", tarfile.REGTYPE, 0o755, b"other"),
        )
    )
    assert entries == {
        "usr/lib/x86_64-linux-gnu/libz.so.1.2.13": File(b"library", 0o644),
        "usr/lib/x86_64-linux-gnu/libz.so.1": Link("libz.so.1.2.13"),
        "usr/bin/python3.11": File(b"program", 0o755),
    }


def test_a_file_that_a_layer_can_not_hold_is_named() -> None:
    with pytest.raises(ImageError, match=r"^/usr/lib/a is neither file nor link nor folder"):
        debian.entries_of(archive(("./usr/lib/a", tarfile.LNKTYPE, 0o644, "./usr/lib/b")))


def apt(monkeypatch: pytest.MonkeyPatch, content: bytes | None, complaint: str = "") -> list[Path]:
    """An apt that downloads this, or has nothing; the folders that it was called in."""
    folders = []

    def run(command: list[str], *, cwd: str, **_: Any) -> subprocess.CompletedProcess[str]:
        folders.append(Path(cwd))
        if content is not None:
            (Path(cwd) / "libssl3_3.0.19-1_amd64.deb").write_bytes(content)
        return subprocess.CompletedProcess(command, 0 if content is not None else 100, "", complaint)

    monkeypatch.setattr(subprocess, "run", run)
    return folders


def test_what_was_downloaded_once_is_not_downloaded_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    called = apt(monkeypatch, DEB)
    paths = debian.fetch([PACKAGE], tmp_path / "cache")
    assert paths[PACKAGE].read_bytes() == DEB
    assert debian.fetch([PACKAGE], tmp_path / "cache") == paths
    assert len(called) == 1
    assert list((tmp_path / "cache").iterdir()) == [paths[PACKAGE]]


def test_a_damaged_file_is_downloaded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called = apt(monkeypatch, DEB)
    debian.fetch([PACKAGE], tmp_path)[PACKAGE].write_bytes(b"damaged")
    assert debian.fetch([PACKAGE], tmp_path)[PACKAGE].read_bytes() == DEB
    assert len(called) == 2


def test_another_file_than_the_lock_names_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apt(monkeypatch, b"another")
    with pytest.raises(ImageError, match=r"libssl3=3\.0\.19-1 is not the file that its lock file names"):
        debian.fetch([PACKAGE], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        (
            "E: Version '3.0.19-1' for 'libssl3' was not found\n",
            "apt offers no libssl3=3.0.19-1: run apt-get update if its lists are old or missing; "
            "if Debian has replaced the version, run make image-lock",
        ),
        (
            "W: unsandboxed\nE: Failed to fetch, 404\nE: Unable to fetch some archives\n",
            "apt-get download libssl3=3.0.19-1: E: Failed to fetch, 404 E: Unable to fetch some archives",
        ),
        ("", "apt-get download libssl3=3.0.19-1: failed"),
    ],
)
def test_apts_complaint_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, complaint: str, said: str
) -> None:
    apt(monkeypatch, None, complaint)
    with pytest.raises(ImageError) as raised:
        debian.fetch([PACKAGE], tmp_path)
    assert str(raised.value) == said


def test_a_machine_without_apt_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="apt-get is needed"):
        debian.fetch([PACKAGE], tmp_path / "cache")
