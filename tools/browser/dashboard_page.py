"""The page of `hvpa dashboard` in headless Chromium: for its end-to-end test, and for the pictures in `docs/`.

`python -m tools.browser.dashboard_page --kubeconfig FILE --hvpa NAMESPACE/NAME` opens the page on a cluster, waits for
samples, and writes `docs/dashboard.png` (all Hvpas) and `docs/dashboard-hvpa.png` (a single Hvpa, dark mode).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from localcluster.process import Process
from tools.browser.check_page import ROOT, PageError, Tab, debugger, running
from tools.browser.chromium import MISSING, find_browser

TIMEOUT: Final = 60.0
"""Seconds to wait for an expected state of the page."""
SECONDS: Final = 300.0
"""Seconds of samples in a picture."""
FONT: Final = "DejaVu"
"""The font of pictures: the browser's own has no symbols for states."""
LARGEST: Final = 150_000
"""Largest size of a picture in bytes."""
KEYS: Final = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "Escape": 27}


class BrowserPage:
    """The page in a tab of the browser."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab

    async def until(self, script: str, timeout: float = TIMEOUT) -> Any:
        """Return the result of a script on the page once it is true. Raises PageError."""
        end, value = time.monotonic() + timeout, None
        while time.monotonic() < end:
            if value := await self.tab.evaluate(script):
                return value
            await asyncio.sleep(0.1)
        raise PageError("; ".join([f"{script} is {value!r}", *self.tab.complaints]))

    async def press(self, *keys: str) -> None:
        """Press these keys in order."""
        for key in keys:
            known = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
            text = {"text": "\r"} if key == "Enter" else {}
            await self.tab.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
            await self.tab.call("Input.dispatchKeyEvent", type="keyUp", **known)

    async def mouse(self, kind: str, x: float, y: float, clicks: int = 1) -> None:
        """Send a mouse event at a position: `mousePressed`, `mouseMoved` or `mouseReleased`."""
        button = {"button": "left", "buttons": 1, "clickCount": clicks}
        await self.tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    async def prefers(self, scheme: str) -> None:
        """Set the user's color scheme: `dark` or `light`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.tab.call("Emulation.setEmulatedMedia", features=[feature])

    async def resize(self, width: int, height: int) -> None:
        """Resize the window."""
        await self.tab.resize(width, height)

    async def picture(self) -> bytes:
        """Return a PNG of the window."""
        response = await self.tab.call("Page.captureScreenshot")
        return base64.b64decode(response["data"])


@asynccontextmanager
async def opened(browser: str, url: str, folder: Path, font: str | None = None) -> AsyncIterator[BrowserPage]:
    """Open the page at `url` in a fresh browser with its profile in `folder`, without checking the certificate. `font`
    is a family of `tools/browser/fonts.py` that replaces the browser's own font."""
    with running(browser, folder, font) as profile:
        address = await debugger(profile)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            page = BrowserPage(Tab(socket))
            await page.tab.call("Security.setIgnoreCertificateErrors", ignore=True)
            await page.tab.begin(url)
            yield page


@contextmanager
def dashboard(kubeconfig: Path, folder: Path, *flags: str) -> Iterator[tuple[Process, str]]:
    """Run `hvpa dashboard`. Yields the process and its first line of output: its address. Raises PageError."""
    log = folder / "dashboard.log"
    argv = [sys.executable, "-m", "hvpa", "dashboard", "--kubeconfig", str(kubeconfig), *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = Process("dashboard", argv, log, env=environment, cwd=ROOT)
    process.start()
    try:
        end = time.monotonic() + TIMEOUT
        while "Ctrl-C" not in (text := log.read_text() if log.exists() else ""):
            if not process.alive or time.monotonic() > end:
                raise PageError(f"hvpa dashboard does not start: {text}")
            time.sleep(0.05)
        yield process, text.splitlines()[0]
    finally:
        process.kill()


async def take(
    browser: str, kubeconfig: Path, hvpa: str, seconds: float, folder: Path
) -> tuple[bytes, bytes]:
    """Return a picture of all Hvpas, and a picture of `hvpa`, both after this number of seconds. Raises PageError."""
    rows = "document.querySelectorAll('#table tbody tr').length > 0"
    with dashboard(kubeconfig, folder, "-A") as (_, url):
        async with opened(browser, url, folder, FONT) as page:
            await page.until(rows)  # the page has taken the token of its address
            await page.tab.call("Emulation.setScrollbarsHidden", hidden=True)
            await page.prefers("dark")
            await page.resize(1200, 1080)
            await page.tab.evaluate(f"location.hash = '#/{hvpa}'; 1")
            await asyncio.sleep(seconds)
            await page.until("document.querySelectorAll('figure[data-values]').length > 3")
            details = await page.picture()
            await page.prefers("light")
            await page.resize(1320, 840)
            await page.tab.evaluate("location.hash = '#/'; 1")
            await page.until(rows)
            table = await page.picture()
            if page.tab.complaints:
                raise PageError("; ".join(page.tab.complaints))
            return table, details


def main() -> int:
    """Take the pictures; 0 if that worked, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--hvpa", required=True, metavar="NAMESPACE/NAME")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of samples (default {SECONDS:g})")
    parser.add_argument("--into", type=Path, default=ROOT / "docs", help="folder (default: docs)")
    args = parser.parse_args()
    browser = find_browser()
    if browser is None:
        print(MISSING, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="hvpa-dashboard-") as folder:
        try:
            pictures = asyncio.run(take(browser, args.kubeconfig, args.hvpa, args.seconds, Path(folder)))
        except PageError as error:
            print(error, file=sys.stderr)
            return 1
    for name, picture in zip(("dashboard.png", "dashboard-hvpa.png"), pictures, strict=True):
        if len(picture) > LARGEST:
            print(f"{name}: {len(picture):,} bytes are more than {LARGEST:,}", file=sys.stderr)
            return 1
        (args.into / name).write_bytes(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
