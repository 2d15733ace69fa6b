"""`hvpa dashboard` in headless Chromium, on a cluster whose operator scales a workload; and in a cluster's place, for
users by their tokens."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localcluster.controlplane.cluster import Cluster
from localcluster.operator.operator import Operator
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import MEBI
from tools.browser import chromium
from tools.browser.dashboard_page import BrowserPage, dashboard, opened

NAMES = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.cells[2].textContent)"
STATES = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.cells[0].textContent)"
CAUSES = "[...document.querySelectorAll('#causes button')].map((button) => button.textContent)"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?Z")
PROBLEM = "document.getElementById('problem').textContent"
CHARTS = "[...document.querySelectorAll('#charts figure')]"
DRAWN = """[...document.querySelectorAll('#charts canvas')].every((canvas) => {
  const blank = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
  return canvas.toDataURL() !== blank.toDataURL();
})"""
LABELLED = """(() => {
  const by = (one) => document.getElementById(one.getAttribute('aria-labelledby'))?.textContent;
  const name = (one) => by(one) ?? one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent;
  const unnamed = [...document.querySelectorAll('a, button, input, select, [tabindex="0"], table th, summary')]
    .filter((one) => !name(one)?.trim());
  return unnamed.map((one) => one.outerHTML);
})()"""

FAINT = """(() => {
  const rgba = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = ([r, g, b, a], below) => [r, g, b].map((one, at) => one * a + below[at] * (1 - a));
  const paper = (one) => one ? over(rgba(getComputedStyle(one).backgroundColor), paper(one.parentElement))
    : [255, 255, 255];
  const linear = (one) => one / 255 <= .04045 ? one / 255 / 12.92 : ((one / 255 + .055) / 1.055) ** 2.4;
  const light = (colour) => colour.map(linear).reduce((sum, one, at) => sum + one * [.2126, .7152, .0722][at], .05);
  const ratio = (one, part) => {
    const ground = paper(one), ink = over(rgba(getComputedStyle(one, part).color), ground);
    const [low, high] = [light(ground), light(ink)].sort((a, b) => a - b);
    return high / low;
  };
  const shown = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility() && !one.disabled);
  const texts = shown.filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  const hints = shown.filter((one) => one.placeholder).map((one) => [one, '::placeholder']);
  const found = [...texts.map((one) => [one]), ...hints].filter(([one, part]) => ratio(one, part) < 4.5)
    .map(([one, part]) => `${ratio(one, part)} ${part ?? ''} ${one.outerHTML}`);
  return texts.length > 10 ? found : ['no texts'];
})()"""
"""The texts that WCAG 2 calls too faint on their background (criterion 1.4.3)."""


@pytest.fixture(scope="module")
def browser() -> str:
    path = chromium.find_browser()
    if path is None:
        pytest.skip(chromium.MISSING)
    return path


@pytest.fixture
def load(cluster: Cluster, operator: Operator, namespace: str) -> Iterator[PodLoad]:
    """A namespace with the Hvpa `web`, whose two pods get 800m in all, and `lost`, whose target is not there."""
    api = cluster.api
    api.create(objects.deployment("web", namespace))
    target = {"type": "Utilization", "averageUtilization": 70}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    horizontal = objects.horizontal()
    horizontal["template"]["spec"]["metrics"] = [metric]
    replaced = {"updateStrategy": {"type": "Rollout"}}
    spec = {"blend": "Trajectory", "hpa": horizontal, "vpa": objects.vertical(), **replaced}
    api.create(objects.hvpa("web", namespace, **spec))
    api.create(objects.hvpa("lost", namespace, hpa=objects.horizontal()))
    await_pods(api, namespace, "web")
    with PodLoad(api, namespace, "app=web", cpu=800, memory=200 * MEBI) as load:
        yield load


def origins(page: BrowserPage) -> set[str]:
    """Where the page has loaded anything from."""
    return {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, page.tab.asked_for)}


@pytest.mark.owned_cluster  # it shares out a load
async def test_the_page_shows_what_happens_in_the_cluster(
    browser: str, cluster: Cluster, load: PodLoad, tmp_path: Path
) -> None:
    with dashboard(cluster.kubeconfig, tmp_path, "-n", load.namespace) as (process, url):
        async with opened(browser, url, tmp_path) as page:
            await table(page, cluster, load.namespace)
            await decisions(page, cluster, load)
            await one_hvpa(page)
            await what_if(page)
            assert origins(page) == {url.partition("/#")[0]}
            assert page.tab.complaints == []
            assert await page.tab.evaluate("window.marked"), "the page was never loaded again"

            cluster.api.delete("Hvpa", "web", load.namespace)
            await page.until(f"{PROBLEM}.includes('Hvpa {load.namespace}/web does not exist')")
            assert await page.tab.evaluate(f"{CHARTS}.length"), "what was known stays"
            await is_legible(page)
            process.kill()
            await page.until(f"{PROBLEM}.includes('is hvpa dashboard still running?')")


async def table(page: BrowserPage, cluster: Cluster, namespace: str) -> None:
    """Both Hvpas are there, the one that needs action first; changes show up, filter and order work, by keys alone."""
    await page.tab.evaluate("window.marked = true")
    await page.until(f"{NAMES}.join() === 'lost,web' && {STATES}[0] === 'attention'")
    assert not await page.tab.evaluate("location.hash.includes('token')"), (
        "the token stays out of the history"
    )
    cluster.api.patch("Hvpa", "web", namespace, {"spec": {"mode": "Paused"}})
    await page.until(f"{STATES}.join() === 'attention,paused'")
    cluster.api.patch("Hvpa", "web", namespace, {"spec": {"mode": "Apply"}})
    await page.until(f"{STATES}.join() === 'attention,ready'")
    cluster.api.create(objects.hvpa("later", namespace, vpa=objects.vertical()))
    await page.until(f"{NAMES}.join() === 'later,lost,web'")
    await page.until(f"{CAUSES}.join() === '2 × TargetNotFound'")
    await page.tab.evaluate("document.querySelector('#causes button').click()")
    await page.until(f"{NAMES}.join() === 'later,lost'")
    await page.tab.evaluate("document.querySelector('#all form').reset()")
    cluster.api.delete("Hvpa", "later", namespace)
    await page.until(f"{NAMES}.length === 2 && {CAUSES}.length === 0")
    assert await page.tab.evaluate(LABELLED) == []
    await is_legible(page)

    await page.tab.evaluate("document.querySelector('#all input').focus()")
    await page.tab.call("Input.insertText", text="nowhere to be found")
    await page.until(f"{NAMES}.length === 0")
    await page.tab.evaluate(
        "document.querySelector('#all form').reset(); document.querySelector('#all input').focus()"
    )
    await page.tab.call("Input.insertText", text="web")
    await page.until(f"{NAMES}.join() === 'web'")
    await page.tab.evaluate("document.querySelector('#all input').value = ''")
    await page.press(
        "Tab", "Tab", "Tab", "Tab", "Enter"
    )  # filter, state, and the heads State, Namespace, Name
    await page.until("document.activeElement.textContent === 'Name'")
    assert await page.tab.evaluate("document.activeElement.closest('th').ariaSort") == "ascending"
    await page.press("Enter")
    await page.until(f"{NAMES}.join() === 'web,lost'")
    await page.press(*["Tab"] * 8)
    assert await page.tab.evaluate("document.activeElement.textContent") == "web"
    await page.press("Enter")
    await page.until(f"document.querySelector('#one h1').textContent === 'Hvpa {namespace}/web'")
    assert await page.tab.evaluate("document.activeElement.tagName") == "H1"


async def is_legible(page: BrowserPage) -> None:
    """Every text that is shown stands out from its background, in the light and in the dark."""
    for scheme in ("light", "dark"):
        await page.prefers(scheme)
        await page.until(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        assert await page.tab.evaluate(FAINT) == [], scheme


def table_of(part: str) -> str:
    """The cells of a table's rows."""
    rows = f"[...document.querySelectorAll('#{part} tbody tr')]"
    return f"{rows}.map((row) => [...row.cells].map((one) => one.textContent))"


async def decisions(page: BrowserPage, cluster: Cluster, load: PodLoad) -> None:
    """What was done and why; what is held, by what and until when."""
    step = f"{table_of('history')}.find(([time, type, what]) => /^Scaled(Out|Up)$/.test(what) && type === 'Normal')"
    time, _, _, message = await page.until(step)
    assert TIME.fullmatch(time)
    assert " -> " in message
    why = await page.until("document.querySelector('#why li') && document.getElementById('why').innerText")
    assert re.search(r"^Path: .+", why, re.MULTILINE), why
    assert re.search(r"^HpaActive True, \w+: .+", why, re.MULTILINE), why
    assert not re.search("^(Ready|Paused|Contested) ", why, re.MULTILINE), (
        "at the top of the page, or as usual"
    )
    await page.until("document.getElementById('state').textContent.startsWith('Ready is True since ')")
    await page.until("document.getElementById('state').className === 'state ready'")

    begin = dt.datetime.now(dt.UTC) + dt.timedelta(hours=12)
    end = begin + dt.timedelta(hours=1)
    later = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    directions = {"scaleUp": later, "scaleDown": later}
    window = {"begin": f"{begin:%H%M%S}+0000", "end": f"{end:%H%M%S}+0000"}
    change = {"maintenanceTimeWindow": window, "hpa": directions, "vpa": directions}
    cluster.api.patch("Hvpa", "web", load.namespace, {"spec": change})
    usual, load.cpu = load.cpu, 1600
    held = f"{table_of('held')}.find((row) => row[3] === 'MaintenanceWindow')"
    what, now, wanted, _, until = await page.until(held)
    assert what == "replicas" or what.startswith("app "), what
    assert now != wanted
    assert until == f"{begin:%Y-%m-%d %H:%M:%S}Z"
    nothing = {"scaleUp": None, "scaleDown": None}
    undone = {"maintenanceTimeWindow": None, "hpa": nothing, "vpa": nothing}
    cluster.api.patch("Hvpa", "web", load.namespace, {"spec": undone})
    load.cpu = usual


async def one_hvpa(page: BrowserPage) -> None:
    """All of one Hvpa: charts with values that can be read by keys and as a table, and in the dark."""
    await page.until(f"{CHARTS}.length >= 6 && {CHARTS}.every((one) => one.dataset.values >= 2)")
    cpu = "document.querySelector('#charts figure')"
    await page.until(
        f"/demand [0-9].*capacity .requested. [0-9].*used [0-9]/.test({cpu}.querySelector('ul').textContent)"
    )
    assert await page.tab.evaluate(DRAWN)
    assert await page.tab.evaluate(LABELLED) == []
    titles = await page.tab.evaluate(f"{CHARTS}.map((one) => one.querySelector('figcaption').textContent)")
    assert titles[:3] == ["CPU, all pods, cores", "Memory, all pods, GiB", "Replicas, pods"]
    assert [title for title in titles if title.startswith("Path: app cpu")]
    text = await page.until("document.getElementById('one').innerText")
    for wanted in ("Deployment web", "the Hvpa was created", "Trajectory", "Path: "):
        assert wanted in text
    await page.tab.evaluate(f"{cpu}.querySelector('[tabindex]').focus()")
    await page.press("Home", "ArrowRight")
    await page.until(f"/at [0-9:]+$/.test({cpu}.querySelector('ul').textContent)")
    assert await page.tab.evaluate(f"{cpu}.querySelector('ul').ariaLive") == "polite"
    await page.press("Escape")
    await page.until(f"!/at [0-9:]+$/.test({cpu}.querySelector('ul').textContent)")
    await zoom(page, cpu)
    await page.tab.evaluate(f"{cpu}.querySelector('summary').click()")
    await page.until(f"{cpu}.querySelectorAll('tbody tr').length >= 2")

    await is_legible(page)
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('#charts canvas').toDataURL()"
    await page.prefers("light")
    light = await page.tab.evaluate(paper), await page.tab.evaluate(ink)
    await page.prefers("dark")
    await page.until(f"{paper} !== '{light[0]}'")
    await page.until(f"{ink} !== '{light[1]}'")  # charts are drawn anew, too
    assert (await page.picture()).startswith(b"\x89PNG")


async def zoom(page: BrowserPage, chart: str) -> None:
    """A stretch that was dragged over stays in view when the next sample comes; a double click shows all again."""
    shown = f"{chart}.dataset.shown.split(' ').map(Number)"
    whole = await page.tab.evaluate(shown)
    box = f"{chart}.querySelector('.u-over').getBoundingClientRect()"
    x, y, width, height = [await page.tab.evaluate(f"{box}.{side}") for side in ("x", "y", "width", "height")]
    await page.mouse("mouseMoved", x + width / 4, y + height / 2)
    await page.mouse("mousePressed", x + width / 4, y + height / 2)
    await page.mouse("mouseMoved", x + width / 2, y + height / 2)
    await page.mouse("mouseReleased", x + width / 2, y + height / 2)
    begin, end = await page.until(f"{shown}[1] < {whole[1]} && {shown}")
    assert whole[0] < begin < end < whole[1]
    known = int(await page.tab.evaluate(f"{chart}.dataset.values"))
    await page.until(f"{chart}.dataset.values > {known}")
    assert await page.tab.evaluate(shown) == [begin, end]
    for clicks in (1, 2):
        await page.mouse("mousePressed", x + width / 2, y + height / 2, clicks)
        await page.mouse("mouseReleased", x + width / 2, y + height / 2, clicks)
    await page.until(f"{shown}[1] > {whole[1]}")


async def simulated(page: BrowserPage, form: str, outcome: str) -> str:
    """What the what-if box says after a simulation."""
    await page.tab.evaluate(f"{form}.querySelector('button').click()")
    return str(await page.until(f"!/^(Simulating|$)/.test({outcome}) && {outcome}", timeout=120))


async def what_if(page: BrowserPage) -> None:
    """A lower target costs more; a wrong one is refused with the field."""
    form = "document.getElementById('what-if')"
    outcome = "document.getElementById('outcome').innerText"
    await page.until(f"{CHARTS}[0].dataset.values >= 14", timeout=120)
    await page.tab.evaluate(f"{form}.elements.target.value = 20")
    # What a minute's charts show may lack the use of some seconds, on a machine that measured late.
    while "try again a little later" in (text := await simulated(page, form, outcome)):
        await asyncio.sleep(1)
    assert "what if costs" in text, text
    assert "Unmet demand" in text
    await page.until("document.querySelectorAll('#outcome figure[data-values]').length === 2")
    await page.tab.evaluate(f"{form}.noValidate = true; {form}.elements.minReplicas.value = 9")
    await page.tab.evaluate(f"{form}.elements.maxReplicas.value = 3; {form}.querySelector('button').click()")
    await page.until(f"{outcome}.includes('minReplicas: must not be greater than maxReplicas')")
    # A refusal is no fault of the page's; the browser notes each as one.
    page.tab.complaints[:] = [
        complaint for complaint in page.tab.complaints if "status of 400" not in complaint
    ]
