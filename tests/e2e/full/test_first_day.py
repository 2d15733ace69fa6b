"""docs/first-day.md: the page's own commands, all of them and in their order, as a new user types them, with the real
Helm, Prometheus and browser; and what the page says comes true.

The pictures of the page are from such a run: HVPA_PICTURES=docs/first-day has it write them there."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from hvpa.api.values.quantity import parse_memory
from localcluster.client.api import KubeApi, wait_for
from localcluster.process import Process, free_port
from localcluster.programs.build import Programs
from tests.e2e.full import objects
from tests.e2e.full.shells import ROOT, Shells, blocks
from tools.browser import chromium, terminal
from tools.browser.dashboard_page import Page, opened

pytestmark = pytest.mark.owned_cluster

PAGE: Final = (ROOT / "docs/first-day.md").read_text()
START, PROMETHEUS, LOAD, INSTALL, OPERATOR, INIT, *_SCALING, UNINSTALL, DOWN = blocks(PAGE)
APPLY, GET, DASHBOARD, MORE_LOAD, PAUSE, MORE_MEMORY, ALERT, RESUME, HISTORY = _SCALING
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)
SOON: Final = 120
"""Seconds for what the page has within a minute: other tests run beside this one."""
REQUEST: Final = 2**30
"""Bytes of memory that the shop's pods begin with."""
REPLICAS: Final = "document.querySelectorAll('#charts figure')[2]"
WINDOW: Final = (1200, 420)
ROW: Final = "(document.querySelector('#table tbody tr')?.textContent ?? '')"


class Day:
    """The user's shells, and what they have shown for the page's pictures."""

    def __init__(self, shells: Shells, port: int) -> None:
        self.shells, self.port = shells, port
        self.shown: dict[str, str] = {}
        self.pictures: dict[str, bytes] = {}

    def type(self, block: str, name: str | None = None) -> str:
        """Run the commands of a block one by one; what they print, which is kept for the picture of that name."""
        here, lines = f"localhost:{self.port}", []
        for command in re.split(r"(?<!\\)\n", block.strip()):
            printed = self.shells.run(command.replace("localhost:9090", here)).replace(here, "localhost:9090")
            lines += [f"$ {re.sub(r' +# .*', '', command)}", printed]
        text = "\n".join(lines)
        if name is not None:
            self.shown[name] = text.replace("\n\n$", "\n$").strip()
        return text


@pytest.fixture
def day(helm: Path, prometheus: Programs, tmp_path: Path) -> Iterator[Day]:
    """A control plane with the shop, a Prometheus, and shells that know both."""
    port, metrics = free_port(), free_port()
    shells = Shells(
        tmp_path,
        PROMETHEUS_ARGS=f"--port {port} --metrics-port {metrics}",
        OPERATOR_ARGS=f"--metrics-port {metrics}",
    )
    for kind in ("CACHE", "CONFIG", "DATA"):
        shells.env[f"HELM_{kind}_HOME"] = str(tmp_path / "helm")  # nothing of the user's is read
    with shells.started("prometheus", PROMETHEUS) as server:
        try:
            shells.run(START)
            shells.env["KUBECONFIG"], shells.env["PATH"] = shells.run(
                ENVIRONMENT + 'echo "$KUBECONFIG"; echo "$PATH"'
            ).splitlines()
            wait_for(lambda: "two weeks" in server.tail(3), SOON, server.tail)
            yield Day(shells, port)
        finally:
            shells.run(DOWN)


@pytest.mark.timeout(900)  # two dozen commands, each of which may wait for a busy machine
async def test_the_page_keeps_its_word(day: Day, tmp_path: Path) -> None:
    browser = chromium.find_browser()
    api = KubeApi(Path(day.shells.env["KUBECONFIG"]))
    async with contextlib.AsyncExitStack() as running:
        load = running.enter_context(day.shells.started("load", LOAD))
        assert "STATUS: deployed" in day.type(INSTALL, "install")
        operator = running.enter_context(day.shells.started("operator", OPERATOR))
        dashboard = running.enter_context(day.shells.started("dashboard", DASHBOARD))
        assert "Conclusion" in day.type(INIT, "init")
        day.type(APPLY)
        wait_for(lambda: ready(api)[0] == "True", SOON, lambda: f"the Hvpa is ready, not {ready(api)}")
        day.type(GET, "apply")
        address = wait_for(partial(address_of, dashboard), SOON, dashboard.tail)
        page = None
        if browser is not None:
            page = await running.enter_async_context(opened(browser, address, tmp_path))
            await watch(day, api, page, load)
        load.kill()
        await starve(day, api, page)
        operator.kill()
        uninstall(day, api)
        if page is None:
            pytest.skip(f"docs/first-day.md, only what the dashboard shows: {chromium.MISSING}")
        day.pictures |= await terminal.pictures(page, day.shown)
    keep(day.pictures, Path(os.environ.get("HVPA_PICTURES", tmp_path)))


async def watch(day: Day, api: KubeApi, page: Page, load: Process) -> None:
    """Replicas follow the load, and the dashboard shows how."""
    await page.tab.call("Emulation.setScrollbarsHidden", hidden=True)
    await page.resize(*WINDOW)
    await page.until(f"{ROW}.includes('ready')")
    day.pictures["dashboard"] = await page.picture()
    await page.resize(1200, 900)
    await page.tab.evaluate("location.hash = '#/shop/web'; 1")
    await page.until("document.querySelectorAll('figure[data-values]').length > 3")
    load.kill()
    before = pods(api)
    with day.shells.started("more load", MORE_LOAD):
        wait_for(lambda: pods(api) > before, SOON, lambda: f"more pods than {before}")
        await page.until(f"/ready (\\d+)/.exec({REPLICAS}.textContent)[1] > {before}")
        known = await page.tab.evaluate(f"Number({REPLICAS}.dataset.values)")
        await page.until(f"{REPLICAS}.dataset.values > {known} + 1")  # the step is not at the chart's edge
        day.pictures["watch"] = await page.picture()
    await page.tab.evaluate("location.hash = '#/'; 1")


async def starve(day: Day, api: KubeApi, page: Page | None) -> None:
    """Containers run out of memory while the Hvpa is paused: the alert fires, and ends when it is resumed."""
    day.type(PAUSE)
    with day.shells.started("more memory", MORE_MEMORY):
        fires = "HvpaStarving.*shop.*Paused"
        wait_for(lambda: re.search(fires, day.type(ALERT)), SOON, lambda: day.type(ALERT), interval=1)
        day.type(ALERT, "alert")
        if page is not None:
            await page.resize(*WINDOW)
            await page.until(f"{ROW}.includes('Starving')")
            day.pictures["starving"] = await page.picture()
        day.type(RESUME)
        wait_for(lambda: not re.search(fires, day.type(ALERT)), SOON, lambda: day.type(ALERT), interval=1)
        day.type(HISTORY, "resume")
        wait_for(
            lambda: min(memory(api)) > REQUEST, SOON, lambda: f"pods have more memory, not {memory(api)}"
        )


def uninstall(day: Day, api: KubeApi) -> None:
    """All is gone but the workload."""
    count = pods(api)
    day.type(UNINSTALL, "uninstall")
    assert pods(api) == count
    assert api.find("Deployment", "hvpa", "hvpa-system") is None
    assert api.find("CustomResourceDefinition", "hvpas.autoscaling.k8s.io") is None
    wait_for(lambda: not made(api), SOON, "HPA and VPA are gone")


def memory(api: KubeApi) -> list[int]:
    """What the containers of the pods request, in bytes."""
    containers = [pod["spec"]["containers"][0] for pod in api.list("Pod", "shop", "app=web")]
    return [parse_memory(one["resources"]["requests"]["memory"]) for one in containers]


def made(api: KubeApi) -> list[str]:
    """What the Hvpa has made."""
    kinds = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler")
    return [kind for kind in kinds if api.list(kind, "shop")]


def ready(api: KubeApi) -> tuple[str, str]:
    """Status and reason of the Hvpa's condition Ready."""
    return objects.conditions(api, "web", "shop").get("Ready", ("", ""))


def pods(api: KubeApi) -> int:
    """How many are ready."""
    return int(api.get("Deployment", "web", "shop")["status"].get("readyReplicas", 0))


def address_of(dashboard: Process) -> str:
    """What `hvpa dashboard` prints first."""
    found = re.search(r"http://\S+", dashboard.tail(3))
    return found[0] if found else ""


def keep(pictures: dict[str, bytes], folder: Path) -> None:
    """Write the pictures, which are those that the page shows."""
    assert {f"first-day/{name}.png" for name in pictures} == set(re.findall(r"\]\((\S+\.png)\)", PAGE))
    for name, picture in pictures.items():
        (folder / f"{name}.png").write_bytes(picture)
