"""docs/first-day.md: the page's own commands, all of them and in their order, as a new user types them, with the real
Helm, Prometheus and browser; and what the page says comes true. Once on simulated nodes, and once on a real one if the
machine can, with the operator's image as pods.

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

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import KubeApi, wait_for
from localcluster.node.node import why_simulated
from localcluster.process import Process, free_port
from localcluster.programs.build import Programs
from localcluster.workloads.load import is_ready
from tests.e2e.full import objects
from tests.e2e.full.shells import ROOT, Shells, blocks
from tools.browser import chromium, terminal
from tools.browser.dashboard_page import FONT, BrowserPage, opened
from tools.dependencies.lockfile import read_project
from tools.image.__main__ import write
from tools.image.build import Content

pytestmark = pytest.mark.owned_cluster

PAGE: Final = (ROOT / "docs/first-day.md").read_text()
MAKE_IMAGE, START, LOAD, INSTALL, OPERATOR, INIT, *_SCALING, UNINSTALL, DOWN = blocks(PAGE)
APPLY, GET, DASHBOARD, MORE_LOAD, PAUSE, MORE_MEMORY, ALERT, RESUME, HISTORY = _SCALING
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)
(MORE_CPU,) = map(int, re.findall(r"LOAD=(\d+)m", MORE_LOAD))
(MORE_PODS,) = map(int, re.findall(r"there are (\d+) pods or more", PAGE))
SOON: Final = 120
"""Seconds for what the page has within a minute or two: other tests run beside this one."""
REQUEST: Final = 64 * 2**20
"""Bytes of memory that the shop's pods begin with."""
REPLICAS: Final = "document.querySelectorAll('#charts figure')[2]"
WINDOW: Final = (1320, 420)
ROW: Final = "(document.querySelector('#table tbody tr')?.textContent ?? '')"


class Day:
    """The user's shells, and what they have shown for the page's pictures."""

    def __init__(self, shells: Shells, port: int, nodes: str) -> None:
        self.shells, self.port, self.nodes = shells, port, nodes
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


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.at_length)])
def day(request: pytest.FixtureRequest, helm: Path, prometheus: Programs, tmp_path: Path) -> Iterator[Day]:
    """A control plane with the shop, a Prometheus, and shells that know both."""
    port, metrics = free_port(), free_port()
    image = ""
    if request.param == "real":
        if reason := why_simulated():
            pytest.skip(reason)
        image = make_image(request.getfixturevalue("image"), tmp_path / "image.tar")
    shells = Shells(
        tmp_path,
        PROMETHEUS_ARGS=f"--port {port} --metrics-port {metrics}",
        OPERATOR_ARGS=f"--metrics-port {metrics}",
        IMAGE=image,
        NODES=request.param,
    )
    for kind in ("CACHE", "CONFIG", "DATA"):
        shells.env[f"HELM_{kind}_HOME"] = str(tmp_path / "helm")  # nothing of the user's is read
    with shells.started("first", f"{START}\necho all is applied\nwait") as first:
        try:
            wait_for(lambda: "all is applied" in first.tail(3), 2 * SOON, first.tail)
            assert f"nodes: {request.param}" in first.log.read_text()
            shells.settle(ENVIRONMENT)
            log = shells.place / "prometheus.log"
            wait_for(lambda: "two weeks" in log.read_text(), SOON, log.read_text)
            yield Day(shells, port, request.param)
        finally:
            shells.end(DOWN)


def make_image(content: Content, file: Path) -> str:
    """The operator's image in a file, as the page's command makes it."""
    assert MAKE_IMAGE == "make image\n"
    write(content, file, f"hvpa:{read_project().version}")
    return str(file)


@pytest.mark.timeout(1500)  # two dozen commands, each of which may wait for a busy machine
async def test_the_page_keeps_its_word(day: Day, tmp_path: Path) -> None:
    browser = chromium.find_browser()
    api = KubeApi(Path(day.shells.env["KUBECONFIG"]))
    async with contextlib.AsyncExitStack() as running:
        load = running.enter_context(day.shells.started("load", LOAD))
        assert "STATUS: deployed" in day.type(INSTALL, "install")
        operator = None
        if day.nodes == "simulated":
            operator = running.enter_context(day.shells.started("operator", f"{OPERATOR}wait"))
        else:
            wait_for(lambda: operators(api) == [True, True], SOON, "the operator's pods are ready")
        dashboard = running.enter_context(day.shells.started("dashboard", f"{DASHBOARD}wait"))
        assert "Conclusion" in day.type(INIT, "init")
        day.type(APPLY)
        wait_for(lambda: ready(api)[0] == "True", SOON, lambda: f"the Hvpa is ready, not {ready(api)}")
        day.type(GET, "apply")
        address = wait_for(partial(address_of, dashboard), SOON, dashboard.tail)
        page = None
        if browser is not None:
            page = await running.enter_async_context(opened(browser, address, tmp_path, FONT))
        await watch(day, api, page, load)
        await starve(day, api, page)
        if operator is not None:
            operator.kill()
        uninstall(day, api)
        if page is None:
            pytest.skip(f"docs/first-day.md, only what the dashboard shows: {chromium.MISSING}")
        day.pictures |= await terminal.pictures(page, day.shown)
    keep(day.pictures, Path(os.environ.get("HVPA_PICTURES", tmp_path)))


async def watch(day: Day, api: KubeApi, page: BrowserPage | None, load: Process) -> None:
    """Replicas follow the load, and the dashboard shows how."""
    if page is not None:
        await page.tab.call("Emulation.setScrollbarsHidden", hidden=True)
        await page.resize(*WINDOW)
        await page.until(f"{ROW}.includes('ready')")
        day.pictures["dashboard"] = await page.picture()
        await page.resize(1200, 900)
        await page.tab.evaluate("location.hash = '#/shop/web'; 1")
        await page.until("document.querySelectorAll('figure[data-values]').length > 3")
    load.kill()
    with day.shells.started("more load", MORE_LOAD):
        wait_for(
            lambda: pods(api) >= MORE_PODS and sum(cpu(api)) > MORE_CPU,
            SOON,
            lambda: f"{MORE_PODS} pods of {MORE_CPU}m, not {pods(api)} of {cpu(api)}",
        )
        if page is not None:
            await page.until(f"/ready (\\d+)/.exec({REPLICAS}.textContent)[1] >= {MORE_PODS}")
            known = await page.tab.evaluate(f"Number({REPLICAS}.dataset.values)")
            await page.until(
                f"{REPLICAS}.dataset.values > {known} + 1"
            )  # the step is not at the chart's edge
            day.pictures["watch"] = await page.picture()
            await page.tab.evaluate("location.hash = '#/'; 1")


async def starve(day: Day, api: KubeApi, page: BrowserPage | None) -> None:
    """Containers run out of memory while the Hvpa is paused: the alert fires, and ends when it is resumed."""
    day.type(PAUSE)
    with day.shells.started("more memory", MORE_MEMORY):
        fires = "HvpaStarving.*shop.*Paused"
        wait_for(lambda: re.search(fires, day.type(ALERT)), SOON, lambda: day.type(ALERT), interval=1)
        day.type(ALERT, "alert")
        assert "OOMKilled" in ends(api)
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
        wait_for(lambda: pods(api) == wanted(api), SOON, "all containers run again")


def uninstall(day: Day, api: KubeApi) -> None:
    """All is gone but the workload."""
    before = wanted(api)
    day.type(UNINSTALL, "uninstall")
    assert wanted(api) >= before  # it may have scaled out until then
    wait_for(lambda: pods(api) == wanted(api), SOON, "all pods of the workload are ready")
    assert api.find("Deployment", "hvpa", "hvpa-system") is None
    assert api.find("CustomResourceDefinition", "hvpas.autoscaling.k8s.io") is None
    wait_for(lambda: not made(api), SOON, "HPA and VPA are gone")


def cpu(api: KubeApi) -> list[int]:
    """What the containers of the pods request, in millicores."""
    return [parse_cpu(amounts["cpu"]) for amounts in requests(api)]


def memory(api: KubeApi) -> list[int]:
    """What they request, in bytes."""
    return [parse_memory(amounts["memory"]) for amounts in requests(api)]


def requests(api: KubeApi) -> list[dict[str, str]]:
    """The requests of the pods' containers."""
    return [
        pod["spec"]["containers"][0]["resources"]["requests"] for pod in api.list("Pod", "shop", "app=web")
    ]


def ends(api: KubeApi) -> set[str]:
    """Why containers of the workload ended."""
    statuses = [
        status for pod in api.list("Pod", "shop", "app=web") for status in pod["status"]["containerStatuses"]
    ]
    states = [status.get(name) or {} for status in statuses for name in ("state", "lastState")]
    return {state["terminated"]["reason"] for state in states if "terminated" in state}


def operators(api: KubeApi) -> list[bool]:
    """Which of the operator's pods are ready."""
    return [is_ready(pod) for pod in api.list("Pod", "hvpa-system", "app.kubernetes.io/name=hvpa")]


def wanted(api: KubeApi) -> int:
    """How many pods the workload has been scaled to."""
    return int(api.get("Deployment", "web", "shop")["spec"]["replicas"])


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
    match = re.search(r"http://\S+", dashboard.tail(3))
    return match[0] if match else ""


def keep(pictures: dict[str, bytes], folder: Path) -> None:
    """Write the pictures, which are those that the page shows."""
    assert {f"first-day/{name}.png" for name in pictures} == set(re.findall(r"\]\((\S+\.png)\)", PAGE))
    for name, picture in pictures.items():
        (folder / f"{name}.png").write_bytes(picture)
