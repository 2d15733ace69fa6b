"""Opens the page of `hvpa simulate --html` in headless Chromium without any network and checks it: the plots are drawn,
the page loads no resource and logs no error, labels do not overlap, and zooming, hiding and filtering work.

`CHROMIUM` names the browser (default: the pinned browser of `make chromium`). Without a browser nothing is checked, and
the exit code is 0.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from tools.browser import fonts
from tools.browser.chromium import MISSING, environment, find_browser

ROOT: Final = Path(__file__).resolve().parents[2]
LARGEST: Final = 1_000_000
"""Largest size of a page in bytes, for any simulation."""
NO_NETWORK: Final = "127.0.0.1:9"
"""A proxy that does not exist, so that every request over the network fails."""
TIMEOUT: Final = 60.0
"""Seconds for the browser to start, and for the page to be drawn."""
WIDTH: Final = 1320
HEIGHT: Final = 3000
"""Default height of the window in pixels."""
SCENARIO: Final = """
name: <script>alert("name")</script> & co
duration: 6h
load: {formula: "200 + 150 * sin(2 * pi * t / day) + 300 * pulse(t, 3 * hour, 30 * minute)"}
workload:
  name: web
  replicas: 3
  startUp: 30s
  containers:
    - name: app
      requests: {cpu: 500m, memory: 512Mi}
      cpu: {base: 50m, perUnit: 10m}
      memory: {base: 200Mi, perUnit: 1Mi}
policies:
  - name: <a href="https://example.com/">HPA</a>
    hpa:
      minReplicas: 2
      maxReplicas: 20
      metrics:
        - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}
  - name: fixed
    fixed: {replicas: 8}
"""
COUNTS: Final = """(() => {
  const count = (selector) => document.querySelectorAll(selector).length;
  const shown = [...document.querySelectorAll(".events tbody tr")].filter((row) => !row.hidden).length;
  const lines = (typeof drawn === "undefined" ? [] : [...drawn])
    .flatMap((chart) => chart.lines.map((line, at) => ({ ...line, values: chart.uplot.data[at + 1] })));
  const values = (points) => lines.filter((line) => Boolean(line.points) === points)
    .map((line) => line.values.filter((one) => one !== null).length).filter(Boolean);
  return {
    drawn: document.documentElement?.dataset.drawn === "true", scenarios: count("section"),
    plots: [...document.querySelectorAll(".charts")].filter((one) => one.querySelector("canvas")).length,
    lines: values(false).length, marks: values(true).reduce((sum, one) => sum + one, 0),
    rows: count(".figures tbody tr"), sentences: count(".conclusion li"), events: count(".events tbody tr"), shown,
  };
})()"""
OVERLAPS: Final = """(() => [...drawn].flatMap(({ uplot, figure }) => {
  const [x, y] = uplot.axes, title = figure.querySelector("figcaption").textContent;
  const labels = (axis) => axis._splits
    .map((split, at) => ({ text: axis._values[at], at: uplot.valToPos(split, axis.scale) }))
    .filter((one) => one.text !== null && one.text !== "");
  const width = (axis, { text }) => {
    uplot.ctx.font = axis.font[0];
    return uplot.ctx.measureText(text).width / devicePixelRatio;
  };
  const close = (axis, room) => labels(axis).slice(1).map((one, at) => [labels(axis)[at], one])
    .filter((pair) => Math.abs(pair[0].at - pair[1].at) < room(pair))
    .map((pair) => pair.map((one) => one.text).join(" on "));
  const cut = labels(y).filter((one) => width(y, one) > y._size - y.ticks.size - y.gap)
    .map((one) => `${one.text} is cut off`);
  const both = (pair) => (width(x, pair[0]) + width(x, pair[1])) / 2 + 4;
  return [...cut, ...close(x, both), ...close(y, () => 11)].map((fault) => `${title}: ${fault}`);
}).concat(document.documentElement.scrollWidth > innerWidth ? ["the page is wider than its window"] : [],
  [...document.querySelectorAll(".policies button, .legend li")]
    .filter((one) => {
      const [own, around] = [one, one.closest("figure, .charts")].map((part) => part.getBoundingClientRect());
      return own.right > around.right + 1;
    }).map((one) => `${one.textContent} is cut off`)))()"""
FILTER: Final = """(() => {
  for (const form of document.querySelectorAll(".filters")) {
    form.elements.text.value = "no event says this";
    form.dispatchEvent(new Event("input"));
  }
})()"""
USE: Final = """(async () => {
  const own = [...drawn].filter((chart) => chart.figure.closest("#time-0")), [first] = own;
  const seen = () => own.map((chart) => chart.figure.dataset.shown).join();
  const over = first.figure.querySelector(".u-over"), finished = () => new Promise((done) => setTimeout(done, 100));
  const mouse = (kind, share, target = over) => {
    const { left, top, width } = over.getBoundingClientRect();
    const place = { clientX: left + width * share, clientY: top + 60, movementX: 1 };
    target.dispatchEvent(new MouseEvent(kind, { ...place, bubbles: true }));
  };
  const whole = seen(), lines = () => document.querySelectorAll("#time-0 .legend svg").length, all = lines();
  const button = document.querySelector(".policies button"), key = new KeyboardEvent("keydown", { key: "Home" });
  mouse("mousemove", .5);
  const values = own.every((chart) => /at \\d{4}-/.test(chart.spoken.textContent)); // the cursor is on all charts
  mouse("mousedown", .5); mouse("mousemove", .75); mouse("mouseup", .75, document);
  await finished();
  const ranges = own.map((chart) => chart.figure.dataset.shown.split(" ").map(Number));
  const zoomed = seen() !== whole && ranges.every(([from, to]) => from === ranges[0][0] && to === ranges[0][1]);
  mouse("dblclick", .5);
  await finished();
  const back = seen() === whole;
  button.click();
  const hidden = lines() < all;
  button.click();
  own.at(-1).plot.dispatchEvent(key);
  const keys = own.at(-1).below.textContent.startsWith("at ") && own.at(-1).below.ariaLive === "polite";
  own[0].figure.querySelector("summary").click();
  await finished();
  const table = own[0].figure.querySelectorAll("tbody tr").length > 1;
  return { values, zoomed, back, hidden, again: lines() === all, keys, table };
})()"""


class PageError(Exception):
    """A fault of the page or of the browser."""


class PageSettings(NamedTuple):
    """Settings for viewing a page."""

    font: str | None = None
    """A family of `tools/browser/fonts.py`; None for the pinned browser's own font."""
    width: int = WIDTH
    """Width of the window in pixels."""
    timeout: float = TIMEOUT
    """Seconds for the page to be drawn."""


def main() -> int:
    """Run the checks; 0 if all pass or there is no browser, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", help="default: a small one of this check's own")
    parser.add_argument("--page", help="check this page instead of a scenario's")
    parser.add_argument("--screenshot", metavar="FILE", help="also write a picture of the page")
    parser.add_argument(
        "--font", choices=fonts.FAMILIES, help="font of the page (default: the pinned browser's own)"
    )
    parser.add_argument("--width", type=int, default=WIDTH, help=f"pixels of the window (default {WIDTH})")
    args = parser.parse_args()
    named = os.environ.get("CHROMIUM")
    browser = shutil.which(named) if named else find_browser()
    if browser is None and named:
        print(f"page-check: CHROMIUM={named} is not there", file=sys.stderr)
        return 1
    if browser is None:
        print(f"page-check: skipped, {MISSING} (CHROMIUM=… names another one)")
        return 0
    with tempfile.TemporaryDirectory(prefix="hvpa-page-") as folder:
        try:
            page = Path(args.page).resolve() if args.page else simulate(args.scenario, Path(folder))
            if not page.is_file():
                raise PageError(f"{page} is not there")
            if page.stat().st_size > LARGEST:
                raise PageError(f"{page.stat().st_size:,} bytes are more than {LARGEST:,}")
            settings = PageSettings(args.font, args.width)
            reported, picture = asyncio.run(check(browser, page, Path(folder), settings))
        except PageError as error:
            print(f"page-check: {error}", file=sys.stderr)
            return 1
    print(f"page-check: {reported}")
    if args.screenshot:
        Path(args.screenshot).write_bytes(picture)
    return 0


def simulate(scenario: str | None, folder: Path) -> Path:
    """Return the page of a scenario, or of a built-in scenario. Raises PageError."""
    page, own = folder / "page.html", folder / "scenario.yaml"
    own.write_text(SCENARIO)
    command = [sys.executable, "-m", "hvpa", "simulate", scenario or str(own), "--html", str(page)]
    if subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL).returncode:
        raise PageError("there is no page to look at")
    return page


async def check(
    browser: str,
    page: Path,
    folder: Path,
    settings: PageSettings = PageSettings(),  # noqa: B008
) -> tuple[str, bytes]:
    """Check the page; return a summary and a PNG of it. Raises PageError."""
    with running(browser, folder, settings.font) as profile:
        address = await debugger(profile)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            tab = Tab(socket)
            await tab.resize(settings.width, HEIGHT)
            await tab.begin(page.as_uri())
            counts = await tab.drawn(settings.timeout)
            picture = await tab.picture()
            overlaps = await tab.evaluate(OVERLAPS)
            used = await tab.evaluate(USE)
            await tab.evaluate(FILTER)
            filtered = await tab.evaluate(COUNTS)
    tab.complaints += overlaps
    refuse(tab, counts, used, filtered)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in ("plots", "lines", "marks", "events"))
    return summary, picture


def refuse(tab: Tab, counts: dict[str, Any], used: dict[str, Any], filtered: dict[str, Any]) -> None:
    """Raise PageError if a check fails."""
    faults = [*tab.complaints, *(f"it asks for {url}" for url in tab.asked_for)]
    if counts["scenarios"] < 1 or counts["plots"] != 2 * counts["scenarios"]:
        faults.append(f"two plots for each scenario should be drawn: {counts}")
    if not all(counts[kind] for kind in ("lines", "marks", "rows", "sentences")):
        faults.append(f"lines, marks, rows or sentences are missing: {counts}")
    if not all(used.values()):
        faults.append(f"the plots don't answer mouse and keys: {used}")
    if counts["shown"] != counts["events"] or filtered["shown"]:
        faults.append(f"the list of events is not filtered: {counts}, then {filtered}")
    if faults:
        raise PageError("; ".join(faults))


@contextmanager
def running(browser: str, folder: Path, font: str | None = None) -> Iterator[Path]:
    """Run a browser with a single font: its own, or that family. Yields its fresh profile."""
    profile = folder / "profile"
    flags = [
        "--headless=new",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        f"--proxy-server={NO_NETWORK}",
        "--remote-debugging-port=0",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--user-data-dir={profile}",
    ]
    if os.geteuid() == 0:  # Chromium's sandbox refuses root
        flags.append("--no-sandbox")
    process = subprocess.Popen(
        [browser, *flags, "about:blank"],
        env=environment(browser, folder, font),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield profile
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def debugger(profile: Path) -> str:
    """Return the debugger address of the first tab. Raises PageError."""
    reported = profile / "DevToolsActivePort"
    for _ in range(int(TIMEOUT * 10)):
        lines = reported.read_text().split() if reported.exists() else []
        if len(lines) == 2:
            break
        await asyncio.sleep(0.1)
    else:
        raise PageError("the browser does not start")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{lines[0]}/json/list") as response,
    ):
        tabs = await response.json(content_type=None)
    return next(str(tab["webSocketDebuggerUrl"]) for tab in tabs if tab["type"] == "page")


class Tab:
    """A tab of the browser, its errors and its requests."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.asked_for: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._page = ""

    async def begin(self, page: str) -> None:
        """Open the page."""
        self._page = page
        for domain in ("Runtime", "Log", "Network", "Page"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=page)

    async def resize(self, width: int, height: int) -> None:
        """Resize the window."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **metrics)

    async def drawn(self, timeout: float) -> dict[str, Any]:
        """Return a description of the page once it is drawn. Raises PageError."""
        counts: dict[str, Any] = {}
        for _ in range(int(timeout * 4)):
            counts = await self.evaluate(COUNTS)
            if counts["drawn"]:
                return counts
            await asyncio.sleep(0.25)
        raise PageError("; ".join([f"the page is not drawn: {counts}", *self.complaints]))

    async def evaluate(self, script: str) -> Any:
        """Return the result of a script on the page. Raises PageError."""
        response = await self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in response:
            raise PageError(f"a script fails: {response['exceptionDetails']}")
        return response["result"].get("value")

    async def picture(self) -> bytes:
        """Return a PNG of the page."""
        response = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(response["data"])

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return a command's response, and record the events before it. Raises PageError."""
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(await self._socket.receive_str(timeout=TIMEOUT))
            if message.get("id") == number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message.get("method", ""), message.get("params", {}))

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(argument.get("value", "")) for argument in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(params["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            url = str(params["request"]["url"])
            if url != self._page and not url.startswith(("data:", "blob:")):
                self.asked_for.append(url)


if __name__ == "__main__":
    sys.exit(main())
