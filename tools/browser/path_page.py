"""The page of `hvpa explain --plot` in headless Chromium: `python -m tools.browser.path_page` runs the command of
`docs/joint-scaling.md` and writes that page's picture, `docs/path.png`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.browser.check_page import OVERLAPS, ROOT, PageError
from tools.browser.chromium import MISSING, find_browser
from tools.browser.dashboard_page import opened

WIDTH: Final = 860
DOCUMENT: Final = ROOT / "docs/joint-scaling.md"
PICTURE: Final = ROOT / "docs/path.png"


async def take(browser: str, page: Path, folder: Path, font: str | None = None) -> bytes:
    """Return a picture of the page. Raises PageError."""
    async with opened(browser, page.as_uri(), folder, font) as shown:
        await shown.tab.call("Emulation.setScrollbarsHidden", hidden=True)
        await shown.resize(WIDTH, WIDTH)
        await shown.until("document.documentElement.dataset.drawn === 'true'")
        height = "Math.ceil(document.querySelector('main').getBoundingClientRect().height)"
        await shown.resize(WIDTH, await shown.tab.evaluate(height))
        picture = await shown.picture()
        faults = [*shown.tab.complaints, *await shown.tab.evaluate(OVERLAPS)]
    if faults:
        raise PageError("; ".join(faults))
    return picture


def draw(folder: Path) -> Path:
    """Run the document's command; return the page that it writes into `folder`."""
    (command,) = (line for line in DOCUMENT.read_text().splitlines() if line.startswith("hvpa explain -f"))
    page = folder / "path.html"
    arguments = command.replace("path.html", str(page)).split()[1:]
    subprocess.run(
        [sys.executable, "-m", "hvpa", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    return page


def main() -> int:
    """Take the picture; 0 if that worked, else 1."""
    browser = find_browser()
    if browser is None:
        print(MISSING, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="hvpa-path-") as folder:
        try:
            PICTURE.write_bytes(asyncio.run(take(browser, draw(Path(folder)), Path(folder))))
        except PageError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
