"""Common fonts of Linux browsers, for tests of a page's layout: DejaVu, Liberation (as wide as Arial) and Noto. DejaVu
comes with matplotlib. The others are files of pinned npm packages in the user's cache."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from matplotlib import get_data_path

from localcluster.programs.toolchain import cache_folder
from tools.browser import npm

PACKAGES: Final = {
    "Liberation": (
        npm.NpmPackage(
            "pdfjs-dist",
            "6.5.438",
            "sha512-vg8Pw1x+AFKy4AMDvhuWl5cOYV8d698UoEANoFFhc79hqXDnZQqnOXoxw3HG907WHOg1JYOvLhP756boddFxpA==",
        ),
        ("standard_fonts/LiberationSans-Regular.ttf", "standard_fonts/LiberationSans-Bold.ttf"),
    ),
    "Noto": (
        npm.NpmPackage(
            "@embedpdf/fonts-latin",
            "1.0.0",
            "sha512-LLYysdr8O6sRNzhmW3PbF3AeA8xnqvOi4XLFfIfNlW5uEZ+qsJdcfd78Q78sFJMhlaOAYFMziMMsnOzmx463rA==",
        ),
        ("fonts/NotoSans-Regular.ttf", "fonts/NotoSans-Bold.ttf"),
    ),
}
"""By family: the package, and its files in regular and bold weight."""
FAMILIES: Final = ("DejaVu", *PACKAGES)
CONFIGURATION: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def configure(fonts: Path, folder: Path) -> Path:
    """Write a fontconfig configuration into `folder` that finds only the fonts in `fonts`."""
    configuration = folder / "fonts.conf"
    configuration.write_text(CONFIGURATION.format(fonts=fonts, cache=folder / "font-cache"))
    return configuration


def only(family: str, folder: Path) -> Path:
    """Return a folder in `folder` with the files of a family."""
    alone = folder / f"fonts-{family}"
    alone.mkdir(exist_ok=True)
    for file in files(family):
        shutil.copy(file, alone)
    return alone


def files(family: str) -> list[Path]:
    """Return a family's files."""
    if family in PACKAGES:
        return [_home(family) / Path(name).name for name in PACKAGES[family][1]]
    return [Path(get_data_path()) / "fonts/ttf" / name for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]


def missing() -> list[str]:
    """Return the families that were not fetched."""
    return [family for family in PACKAGES if not _home(family).exists()]


def fetch() -> None:
    """Fetch the families that are missing. Raises npm.NotFetchedError and npm.NotPinnedError."""
    for family in missing():
        package, members = PACKAGES[family]
        print(f"fonts: {family} of {package} from npm, once")
        target = _home(family)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="fonts-") as temporary:
            folder = Path(temporary)
            whole = folder / "whole"
            whole.mkdir()
            npm.extract(package, {name: whole / Path(name).name for name in members}, folder)
            whole.rename(target)


def _home(family: str) -> Path:
    return cache_folder() / f"fonts-{family}-{PACKAGES[family][0].version}"
