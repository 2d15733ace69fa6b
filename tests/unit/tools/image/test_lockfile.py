"""The lock files: what they must say, and what is said if they do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.dependencies.lockfile import ROOT
from tools.image import lockfile
from tools.image.errors import ImageError
from tools.image.lockfile import PACKAGES, DebianPackage

ALL = [DebianPackage(name, "1:2.36-9+deb12u14~x", "amd64", "0" * 64) for name in PACKAGES]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "image.lock"
    path.write_text(lockfile.render(reversed(ALL)))
    assert lockfile.read(path, "amd64") == sorted(ALL, key=lambda package: package.name)


@pytest.mark.parametrize("lock", lockfile.LOCKS)
def test_packages_for_all_architectures_are_for_each(lock: str) -> None:
    packages = lockfile.read(ROOT / lock, "amd64")
    assert {package.architecture for package in packages} == {"amd64", "all"}
    assert lockfile.render(packages, lock) == (ROOT / lock).read_text()


@pytest.mark.parametrize("lock", lockfile.LOCKS)
def test_it_has_no_address(lock: str) -> None:
    assert not re.search(r"://|@", (ROOT / lock).read_text())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("zlib1g 1.2.13 amd64", r"not NAME VERSION ARCHITECTURE sha256:…: zlib1g 1\.2\.13 amd64"),
        ("perl 5.36 amd64 sha256:" + "0" * 64, r"has other packages than .*: run make image-lock"),
    ],
)
def test_a_lock_of_something_else_is_refused(tmp_path: Path, line: str, error: str) -> None:
    path = tmp_path / "image.lock"
    path.write_text(lockfile.render(ALL) + line + "\n")
    with pytest.raises(ImageError, match=error):
        lockfile.read(path, "amd64")


def test_a_lock_of_another_architecture_says_how_to_get_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "image.lock"
    path.write_text(lockfile.render(ALL))
    with pytest.raises(ImageError, match=r"is for amd64, and this machine is arm64: run make image-lock"):
        lockfile.read(path, "arm64")


def paragraph(package: DebianPackage) -> str:
    return (
        f"Package: {package.name}\nVersion: {package.version}\nArchitecture: {package.architecture}\n"
        f"Description-md5: 1\nSHA256: {package.sha256}\n"
    )


def test_what_apt_offers_is_taken_once() -> None:
    older = DebianPackage(PACKAGES[0], "1", "amd64", "1" * 64)
    assert lockfile.parse("\n".join(map(paragraph, [*ALL, older]))) == ALL


def test_a_version_that_is_only_installed_is_none_that_apt_offers() -> None:
    installed = re.sub(r"SHA256: .*\n", "", paragraph(ALL[-1]))
    with pytest.raises(ImageError, match=f"^apt offers no {PACKAGES[-1]}: .*apt-get update"):
        lockfile.parse("\n".join([*map(paragraph, ALL[:-1]), installed]))
