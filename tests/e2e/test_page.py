"""The page of `hvpa simulate --html`, and the dashboard's charts, in the pinned headless Chromium, which `make test`
provides (tools/browser/chromium.py), with each font that users' browsers show them with."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from hvpa_lab.simulate.report.page import to_html
from tests.unit.lab.simulate.report.results import busy
from tools.browser import check_page, chromium, fonts
from tools.browser.check_page import PageSettings
from tools.browser.dashboard_page import opened

FONTS: Final = (None, *fonts.FAMILIES)
WIDTHS: Final = (1320, 390)
"""A desk's window, and a phone's."""
STATIC: Final = check_page.ROOT / "hvpa_lab/dashboard/static"
SAMPLE: Final = "Policy number 1: 12:34:56, 0.0012"
WIDTH_OF: Final = f"""(() => {{
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "100px system-ui, sans-serif";
  return pen.measureText({json.dumps(SAMPLE)}).width;
}})()"""
CHART: Final = """(async () => {
  document.body.innerHTML = "<main style='width: 600px'></main>";
  const made = new Chart(document.querySelector("main"), { title: "Memory", unit: "GiB", lines: [{ label: "one" }] });
  const at = Array.from({ length: 60 }, (_, index) => 1.8e9 + index * 600);
  made.uplot.setData([at, at.map(() => 1234567)]);
  await new Promise(requestAnimationFrame);
  const plot = made.uplot, pen = plot.ctx;
  const labels = (axis) => plot.axes[axis]._values.filter((one) => one);
  const width = (axis) => {
    pen.font = plot.axes[axis].font[0];
    return Math.max(...labels(axis).map((one) => pen.measureText(one).width)) / devicePixelRatio;
  };
  const [x, y] = plot.axes, apart = plot.bbox.width / devicePixelRatio / 35400;
  const steps = x._splits.filter((one) => one).map((one, index, all) => (all[index + 1] - one) * apart).slice(0, -1);
  const between = Math.min(...steps), room = y._size - y.ticks.size - y.gap;
  return { labels: labels(1), y: width(1), room, x: width(0), between };
})()"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = chromium.find_browser()
    if found is None:
        pytest.skip(chromium.MISSING)
    return found


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
    seen, picture = asyncio.run(check_page.check(browser, page, tmp_path, PageSettings(font, width)))
    assert seen.startswith("4 plots, ")
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
    for one, other in itertools.combinations(sorted(widths), 2):
        assert other - one > 5, f"two fonts are equally wide: {dict(zip(FONTS, widths, strict=True))}"


@pytest.mark.parametrize("font", FONTS)
async def test_a_chart_of_the_dashboard_has_room_for_the_labels_of_its_axes(
    browser: str, tmp_path: Path, font: str | None
) -> None:
    scripts = [(STATIC / name).read_text() for name in ("locale.js", "uPlot.iife.min.js", "charts.js")]
    whole = "\n".join([*scripts, CHART.replace("(async", "globalThis.shown = (async", 1)])
    script = f"(0, eval)({json.dumps(re.sub(r'^export ', '', whole, flags=re.MULTILINE))}), globalThis.shown"
    shown = await measured(browser, tmp_path, font, script)
    assert "1,000,000" in shown["labels"]
    assert shown["y"] <= shown["room"], shown
    assert shown["x"] + 8 <= shown["between"], shown


def test_a_page_whose_script_fails_is_refused(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    whole = to_html([busy(steps=50, policies=2)])
    page.write_text(whole.replace("RIGHT = 14", "RIGHT = 15"), encoding="utf-8")  # its hash is another one
    with pytest.raises(check_page.PageError, match="Content Security Policy"):
        asyncio.run(check_page.check(browser, page, tmp_path, PageSettings(timeout=2.0)))
