"""The image's base: the files of Debian packages that Python needs, without the packages' scripts."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import posixpath
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from localcluster.oci import Entries, File, Folder, Link
from tools.image.errors import ImageError
from tools.image.lockfile import DebianPackage

PYTHON: Final = "usr/bin/python3.11"
VERSION: Final = (3, 11)
GLIBC: Final = 36
"""Minor version of glibc in Debian 12 (2.36)."""
_KEPT: Final = (
    PYTHON,
    "etc/debian_version",
    "etc/os-release",
    "lib/*",
    "lib64/*",
    "usr/lib/*",
    "usr/share/ca-certificates/mozilla/*.crt",
    "usr/share/doc/*/copyright",
    # Of runtimes.lock.
    "etc/java-17-openjdk/*",
    "usr/bin/node",
    "usr/share/nodejs/*.js*",
)
_STDLIB: Final = "usr/lib/python3.11"
_DROPPED: Final = (
    "usr/lib/*/gconv/*",
    "usr/lib/binfmt.d/*",
    "usr/lib/ssl/*",
    "usr/lib/terminfo/*",
    f"{_STDLIB}/sitecustomize.py",  # a link into /etc
    f"{_STDLIB}/config-*",
    f"{_STDLIB}/LICENSE.txt",
    *(f"{_STDLIB}/{name}/*" for name in ("curses", "distutils", "lib2to3", "pydoc_data", "sqlite3", "test")),
    *(f"{_STDLIB}/*/{name}/*" for name in ("test", "tests")),
    f"{_STDLIB}/lib-dynload/_test*",
    f"{_STDLIB}/lib-dynload/_xx*",
    f"{_STDLIB}/lib-dynload/xx*",
    # Modules without their libraries.
    *(
        f"{_STDLIB}/lib-dynload/{name}.*"
        for name in ("_curses", "_curses_panel", "_dbm", "_sqlite3", "nis", "readline")
    ),
)
"""Files of the packages that no code in the image uses."""
_MERGED: Final = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}
"""Folders that Debian 12 has as links into /usr."""
_BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_MADE: Final[Entries] = {
    **{name: Folder() for name in ("dev", "etc", "home", "opt", "proc", "run", "sys", "usr/bin", "usr/sbin")},
    "root": Folder(0o700),
    "tmp": Folder(0o1777),
    "var/tmp": Folder(0o1777),
    "var/run": Link("/run"),
    **{name: Link(target) for name, target in _MERGED.items()},
    "etc/passwd": File(
        b"root:x:0:0:root:/root:/usr/sbin/nologin\n"
        b"hvpa:x:65532:65532:hvpa:/:/usr/sbin/nologin\n"
        b"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": File(b"root:x:0:\nhvpa:x:65532:\nnogroup:x:65534:\n"),
    "etc/nsswitch.conf": File(b"passwd: files\ngroup: files\nhosts: files dns\n"),
    "usr/lib/ssl/cert.pem": Link(f"/{_BUNDLE}"),
    "usr/lib/ssl/certs": Link("/etc/ssl/certs"),
}
"""Files that Debian's installer and the packages' scripts create."""


def fetch(packages: Iterable[DebianPackage], cache: Path) -> dict[DebianPackage, Path]:
    """Return the packages' files; apt downloads those that are missing in the cache. Raises ImageError."""
    cache.mkdir(parents=True, exist_ok=True)
    files = {package: cache / f"{package.name}-{package.sha256}.deb" for package in packages}
    for package, path in files.items():
        if not path.is_file() or _sha256(path) != package.sha256:
            _download(package, path)
    return files


def _download(package: DebianPackage, path: Path) -> None:
    wanted = f"{package.name}={package.version}"
    with tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as folder:
        try:
            done = subprocess.run(
                ["apt-get", "download", "--quiet", wanted],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise ImageError(
                "apt-get is needed: the base is made of Debian's packages (Debian 12)"
            ) from error
        downloads = list(Path(folder).glob("*.deb"))
        if done.returncode or len(downloads) != 1:
            raise ImageError(refusal(wanted, done.stderr))
        if _sha256(downloads[0]) != package.sha256:
            raise ImageError(f"{wanted} is not the file that its lock file names: its SHA-256 differs")
        downloads[0].replace(path)


def refusal(wanted: str, complaint: str) -> str:
    """Explain in a line why apt gives no package, and how to fix it."""
    if "was not found" in complaint or "Unable to locate" in complaint:
        return (
            f"apt offers no {wanted}: run apt-get update if its lists are old or missing; if Debian has replaced the "
            "version, run make image-lock"
        )
    lines = [line for line in complaint.splitlines() if line.startswith("E:")]
    return f"apt-get download {wanted}: {' '.join(lines) or 'failed'}"


def unpack(files: dict[DebianPackage, Path]) -> Entries:
    """Return the base's files."""
    entries: dict[str, File | Link | Folder] = dict(_MADE)
    certificates = {}
    for package, path in files.items():
        for name, entry in entries_of(_run("dpkg-deb", "--fsys-tarfile", str(path))).items():
            if name.startswith("usr/share/ca-certificates/") and isinstance(entry, File):
                certificates[name] = entry.content
            else:
                entries[name] = entry
        # Image scanners look for packages here if there is no dpkg database.
        entries[f"var/lib/dpkg/status.d/{package.name}"] = File(_run("dpkg-deb", "--field", str(path)))
    entries[_BUNDLE] = File(b"".join(certificates[name].rstrip() + b"\n" for name in sorted(certificates)))
    return entries


def entries_of(archive: bytes) -> dict[str, File | Link | Folder]:
    """Return the files of a package to keep, by their paths in the image."""
    entries: dict[str, File | Link | Folder] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = posixpath.normpath(member.name).lstrip("/")
            if not is_kept(name):
                continue
            top, _, rest = name.partition("/")
            placed = f"{_MERGED[top]}/{rest}" if top in _MERGED else name
            if member.issym():
                entries[placed] = Link(member.linkname)
            elif member.isfile() and (file := tar.extractfile(member)) is not None:
                entries[placed] = File(file.read(), 0o755 if member.mode & 0o111 else 0o644)
            elif not member.isdir():
                raise ImageError(f"/{name} is neither file nor link nor folder: the image can't hold it")
    return entries


def is_kept(name: str) -> bool:
    """Whether the image has this file of a package, by its path there. Links of whole documentation folders stay,
    because they lead to the copyright."""
    if fnmatch.fnmatchcase(name, "usr/share/doc/*") and name.count("/") == 3:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _KEPT) and not any(
        fnmatch.fnmatchcase(name, pattern) for pattern in _DROPPED
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*command: str) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise ImageError(f"{command[0]} is needed to unpack Debian's packages") from error
    if done.returncode:
        raise ImageError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
