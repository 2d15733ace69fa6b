"""The pages of `hvpa simulate --html` and `hvpa explain --plot`, and the dashboard's charts, in the pinned headless
Chromium, which `make test` provides (tools/browser/chromium.py), with each font that users' browsers show them with."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any, Final

import pytest

from hvpa_lab.simulate.report.page import to_html
from tests.unit.lab.simulate.report.results import busy
from tools.browser import check_page, chromium, fonts, path_page
from tools.browser.check_page import PageSettings
from tools.browser.dashboard_page import opened

FONTS: Final = (None, *fonts.FAMILIES)
WIDTHS: Final = (1320, 390)
"""A desk's window, and a phone's."""
CHARTS: Final = check_page.ROOT / "hvpa_lab/charts"
SAMPLE: Final = "Policy number 1: 12:34:56, 0.0012"
WIDTH_OF: Final = f"""(() => {{
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "100px system-ui, sans-serif";
  return pen.measureText({json.dumps(SAMPLE)}).width;
}})()"""
CHART: Final = """(async () => {
  document.body.innerHTML = "<main class=charts style='width: 600px'></main>";
  const made = new Chart(document.querySelector("main"), { title: "Memory", unit: "GiB", lines: [{ label: "one" }] });
  const at = Array.from({ length: 60 }, (_, index) => 1.8e9 + index * 600);
  made.set([at, at.map(() => 1234567)]);
  await new Promise(requestAnimationFrame);
  return made.uplot.axes[1]._values;
})()"""


@pytest.fixture(scope="module")
def browser() -> str:
    path = chromium.find_browser()
    if path is None:
        pytest.skip(chromium.MISSING)
    return path


@pytest.fixture(scope="module", autouse=True)
def fetched(browser: str) -> None:
    if fonts.missing():
        pytest.skip(
            f"the fonts {', '.join(fonts.missing())} are not in the cache: `make chromium` fetches them by npm"
        )


@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_plots_are_drawn_labels_stay_apart_and_the_mouse_zooms(
    browser: str, tmp_path: Path, font: str | None, width: int
) -> None:
    page = tmp_path / "page.html"
    page.write_text(to_html([busy(steps=1000), busy(steps=200, policies=2)]), encoding="utf-8")
    summary, picture = asyncio.run(check_page.check(browser, page, tmp_path, PageSettings(font, width)))
    assert summary.startswith("4 plots, ")
    assert picture.startswith(b"\x89PNG")


async def measured(browser: str, folder: Path, font: str | None, script: str) -> Any:
    """What a script comes to on an empty page with this font."""
    async with opened(browser, "about:blank", folder, font) as page:
        return await page.tab.evaluate(script)


def fresh(folder: Path, name: str) -> Path:
    """A new folder."""
    made = folder / name
    made.mkdir()
    return made


async def test_each_font_is_the_one_that_a_page_is_shown_with(browser: str, tmp_path: Path) -> None:
    folders = [fresh(tmp_path, str(font)) for font in FONTS]
    pairs = zip(folders, FONTS, strict=True)
    widths = [round(await measured(browser, folder, font, WIDTH_OF)) for folder, font in pairs]
    for width, other in itertools.combinations(sorted(widths), 2):
        assert other - width > 5, f"two fonts are equally wide: {dict(zip(FONTS, widths, strict=True))}"


@pytest.mark.parametrize("font", FONTS)
async def test_a_chart_of_the_dashboard_has_room_for_the_labels_of_its_axes(
    browser: str, tmp_path: Path, font: str | None
) -> None:
    scripts = [(CHARTS / name).read_text() for name in ("locale.js", "uPlot.iife.min.js", "charts.js")]
    async with opened(browser, "about:blank", tmp_path, font) as page:
        await page.tab.evaluate("\n".join(scripts))
        assert "1,000,000" in await page.tab.evaluate(CHART)
        assert await page.tab.evaluate(check_page.OVERLAPS) == []


@pytest.mark.parametrize("font", FONTS)
async def test_the_path_is_drawn_and_its_labels_stay_apart(
    browser: str, tmp_path: Path, font: str | None
) -> None:
    picture = await path_page.take(browser, path_page.draw(tmp_path), tmp_path, font)
    assert picture.startswith(b"\x89PNG")


def test_a_page_whose_script_fails_is_refused(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    whole = to_html([busy(steps=50, policies=2)])
    page.write_text(whole.replace("POINT = 7", "POINT = 8"), encoding="utf-8")  # its hash is another one
    with pytest.raises(check_page.PageError, match="Content Security Policy"):
        asyncio.run(check_page.check(browser, page, tmp_path, PageSettings(timeout=2.0)))
