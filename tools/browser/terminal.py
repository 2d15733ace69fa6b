"""Pictures of terminal output for the docs, drawn by headless Chromium."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from matplotlib import get_data_path

from tools.browser.dashboard_page import BrowserPage

WIDTH: Final = 1000
"""Width in pixels: 123 characters."""
FONT: Final = "fonts/ttf/DejaVuSansMono.ttf"
"""The monospace font of matplotlib: the fetched browser has none."""
LOOK: Final = """
@font-face { font-family: terminal; src: url(data:font/ttf;base64,%s) }
body { margin: 0 }
pre { margin: 0; padding: 12px 16px; font: 13px/1.4 terminal; white-space: pre-wrap; overflow-wrap: anywhere;
  background: #1e1e2e; color: #e4e4ef }
"""


async def pictures(page: BrowserPage, shown: Mapping[str, str]) -> dict[str, bytes]:
    """Return a PNG of each text, drawn in the tab of `page`. Raises PageError."""
    font = base64.b64encode((Path(get_data_path()) / FONT).read_bytes()).decode()
    await page.tab.call("Page.navigate", url="about:blank")
    await page.until("location.href === 'about:blank'")
    await page.tab.evaluate(f"document.head.innerHTML = {json.dumps(f'<style>{LOOK % font}</style>')}; 1")
    await page.tab.evaluate("document.fonts.load('13px terminal').then(() => 1)")
    drawn = {}
    for name, text in shown.items():
        body = json.dumps(f"<pre>{html.escape(text)}</pre>")
        await page.resize(WIDTH, 10)
        await page.tab.evaluate(f"document.body.innerHTML = {body}; 1")
        height = await page.tab.evaluate("document.querySelector('pre').getBoundingClientRect().height")
        await page.resize(WIDTH, math.ceil(height))
        drawn[name] = await page.picture()
    return drawn
