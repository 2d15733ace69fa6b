"""`python -m tools.browser.opening URL ROWS [RUNS]` prints the seconds that the page of `hvpa dashboard` takes from its
request until its table has that many rows, in a browser that runs already. `python -m benchmarks dashboard` uses it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tools.browser.check_page import PageError
from tools.browser.chromium import MISSING, find_browser
from tools.browser.dashboard_page import opened


async def seconds(browser: str, url: str, rows: int) -> float:
    """Returns the seconds by the browser's clock, and at most 0.1 s more. Raises PageError."""
    with tempfile.TemporaryDirectory(prefix="hvpa-browser-") as folder:
        async with opened(browser, "about:blank", Path(folder)) as page:
            await page.tab.call("Page.navigate", url=url)
            is_drawn = f"document.querySelectorAll('#table tbody tr').length >= {rows}"
            milliseconds = await page.until(f"{is_drawn} && performance.now()")
            if page.tab.complaints:
                raise PageError("; ".join(page.tab.complaints))
            return float(milliseconds) / 1000


def main(arguments: list[str]) -> int:
    """Print the seconds of each run; 0 if that worked."""
    url, rows, *rest = arguments
    browser = find_browser()
    if browser is None:
        print(MISSING, file=sys.stderr)
        return 1
    for _ in range(int(rest[0]) if rest else 1):
        print(f"{asyncio.run(seconds(browser, url, int(rows))):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
