"""The page of `hvpa simulate --html` in headless Chromium, which `make test` provides (tools/browser/chromium.py)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hvpa.simulate.report.page import to_html
from tests.unit.simulate.report.results import busy
from tools.browser import check_page, chromium


@pytest.fixture(scope="module")
def browser() -> str:
    found = chromium.find_browser()
    if found is None:
        pytest.skip("no Chromium: `make chromium` fetches one by npm, CHROMIUM=… names one")
    return found


def test_plots_are_drawn_labels_stay_apart_and_the_mouse_zooms(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(to_html([busy(steps=1000), busy(steps=200, policies=2)]), encoding="utf-8")
    seen, picture = asyncio.run(check_page.check(browser, page, tmp_path))
    assert seen.startswith("4 plots, ")
    assert picture.startswith(b"\x89PNG")


def test_a_page_whose_script_fails_is_refused(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    whole = to_html([busy(steps=50, policies=2)])
    page.write_text(whole.replace("LEFT = 58", "LEFT = 59"), encoding="utf-8")  # its hash is another one
    with pytest.raises(check_page.PageError, match="Content Security Policy"):
        asyncio.run(check_page.check(browser, page, tmp_path, timeout=2.0))
