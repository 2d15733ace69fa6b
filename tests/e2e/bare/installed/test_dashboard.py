"""`hvpa dashboard` in a cluster's place: with the rights of `config/dashboard`, for users by what their token may read,
over HTTPS and in headless Chromium."""

from __future__ import annotations

import json
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from localcluster.client.api import Json, wait_for
from localcluster.client.pki import Authority
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.process import free_port
from localcluster.workloads import bare_manifests
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.accounts import new_account, rule
from tools.browser import chromium
from tools.browser.dashboard_page import dashboard, opened

PROBLEM = "document.getElementById('problem').textContent"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:hvpa-dashboard"
SIGN_IN = "document.querySelector('#sign-in[open]')"


class Served(NamedTuple):
    """The dashboard's port, whom its clients trust, and tokens of a user with and of one without rights."""

    port: int
    trust: ssl.SSLContext
    reader: str
    stranger: str

    def ask(self, path: str, token: str | None) -> tuple[int, str]:
        """Status of a response, and its first two lines."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.trust) as response:
                return response.status, (response.readline() + response.readline()).decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def conditions(self, path: str) -> dict[str, Json]:
        """What the page of an Hvpa, as its stream has it first, says of each condition."""
        headers = {"Authorization": f"Bearer {self.reader}"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60, context=self.trust) as response:
            events = (json.loads(line[6:]) for line in response if line.startswith(b"data: "))
            explained = next(parts["explain"] for parts in events if "explain" in parts)
        return {condition["type"]: condition for condition in explained["conditions"]}


@pytest.fixture
def served(plane: ControlPlane, space: str, tmp_path: Path) -> Iterator[Served]:
    rendered = plane.kubectl("kustomize", REPOSITORY / "config/dashboard").stdout
    plane.apply_all([document for document in yaml.safe_load_all(rendered) if document])
    plane.await_right(ACCOUNT, rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]))
    plane.api.create(bare_manifests.deployment("web", space))
    plane.api.create(bare_manifests.hvpa("web", space))
    rights = [rule("autoscaling.k8s.io", ["hvpas"], ["get", "list"]), rule("", ["pods"], ["list"])]
    new_account(plane, space, "reader", *rights)
    new_account(plane, space, "stranger")
    authority, port = Authority(tmp_path / "ca", "dashboard-ca"), free_port()
    pair, folder = authority.server("dashboard"), tmp_path / "tls"
    folder.mkdir()
    for source, name in ((pair.certificate, "tls.crt"), (pair.key, "tls.key")):
        shutil.copy(source, folder / name)
    kubeconfig = plane.service_account_kubeconfig(NAMESPACE, "hvpa-dashboard")
    flags = ("-A", "--secure-bind-address", f"127.0.0.1:{port}", "--cert-dir", str(folder))
    with dashboard(kubeconfig, tmp_path, *flags) as (_, line):
        assert line == f"HTTPS at 127.0.0.1:{port}, for bearer tokens"
        trust = ssl.create_default_context(cafile=authority.certificate)
        tokens = [plane.service_account_token(space, name) for name in ("reader", "stranger")]
        yield Served(port, trust, *tokens)


def test_each_user_sees_what_the_token_may_read(served: Served, space: str, tmp_path: Path) -> None:
    mine, web_path = f"/api/hvpas?namespace={space}", f"/api/hvpas/{space}/web"
    for path in (mine, web_path):
        assert served.ask(path, served.reader)[0] == 200
    for path, token, status, text in (
        (mine, None, 401, "unauthorized"),
        (mine, "made-up", 401, "unauthorized"),
        (web_path, served.reader[:-4] + "AAAA", 401, "unauthorized"),
        (mine, served.stranger, 403, f"stranger', who lacks the right to list hvpas in namespace {space}"),
        (web_path, served.stranger, 403, f"stranger', who lacks the right to get hvpas in namespace {space}"),
        ("/api/hvpas", served.reader, 403, "lacks the right to list hvpas in all namespaces"),
        ("/api/hvpas/default/web", served.reader, 403, "lacks the right to get hvpas in namespace default"),
    ):
        answer = served.ask(path, token)
        assert (answer[0], text in answer[1]) == (status, True), answer
    log = (tmp_path / "dashboard.log").read_text()
    assert not [secret for secret in (served.reader, served.stranger, "made-up") if secret in log]


def test_a_custom_kind_is_shown_with_the_right_for_it(
    served: Served, plane: ControlPlane, rollout: Scenario
) -> None:
    page = f"/api/hvpas/{rollout.namespace}/{rollout.name}"
    refused = served.conditions(page)["Ready"]
    assert refused["reason"] == "TargetUnreadable"
    assert f'{ACCOUNT}" cannot get resource "rollouts/scale" in API group "argoproj.io"' in refused["message"]

    # Alone: what else is there is the operator's, and judged as such.
    for name in ("role", "role_binding"):
        path = REPOSITORY / f"config/custom-kinds/dashboard_{name}.yaml"
        plane.apply_all([yaml.safe_load(path.read_text())])
    wait_for(
        lambda: served.conditions(page)["Ready"]["reason"] != "TargetUnreadable", 60, "the Rollout is read"
    )
    assert served.conditions(page)["HpaActive"]["reason"] == "HpaCreated"
    asked = {
        (request.verb, request.subresource)
        for request in plane.audit.requests(user=ACCOUNT, resource="rollouts")
    }
    assert asked == {("get", "scale")}


async def test_a_user_signs_in_and_one_without_rights_is_told_why(
    served: Served, plane: ControlPlane, space: str, tmp_path: Path
) -> None:
    browser = chromium.find_browser()
    if browser is None:
        pytest.skip(chromium.MISSING)
    async with opened(browser, f"https://127.0.0.1:{served.port}/", tmp_path) as page:
        for token, namespace, message in (
            ("made-up", "", "unauthorized"),
            (served.stranger, space, f"lacks the right to list hvpas in namespace {space}"),
            (served.reader, space, ""),
        ):
            await page.until(f"{SIGN_IN} && document.activeElement.name === 'token'")
            await page.tab.call("Input.insertText", text=token)
            await page.press("Tab")
            await page.tab.evaluate("document.activeElement.value = ''")
            await page.tab.call("Input.insertText", text=namespace)
            await page.press("Enter")
            await page.until(f"{PROBLEM}.includes({message!r})" if message else f"!{SIGN_IN}")
        await page.until("document.querySelector('#table tbody tr')?.cells[2].textContent === 'web'")
        await page.tab.evaluate("document.querySelector('#table tbody a').click()")
        text = await page.until("document.getElementById('facts').innerText")
        assert "Deployment web" in text
        assert await page.tab.evaluate(PROBLEM) == "", "the rights of config/dashboard are enough"
        assert await page.tab.evaluate("document.querySelector('#history').innerText.includes('was created')")
        plane.api.delete("Hvpa", "web", space)
        await page.until(f"{PROBLEM}.includes('does not exist')")
