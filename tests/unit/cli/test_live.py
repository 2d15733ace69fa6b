"""`hvpa explain NAME`: reads a cluster with GET and LIST only, and says what is wrong when it can't."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from hvpa.kube.pages import PAGE
from tests.unit.cli.support import NOW, Doc, Ran, Shell, changed, of_kind

PLURALS = {
    "Hvpa": "hvpas",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    "Pod": "pods",
}


class Api:
    """A small API server: serves documents by namespace; `fail` maps a plural to the code to answer with."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], list[Doc]] = {}
        self.fail: dict[str, int] = {}
        self.raw: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []

    def put(self, documents: list[Doc], namespace: str = "default") -> None:
        """Hold these documents in a namespace, as a cluster would."""
        for number, document in enumerate(documents):
            if document["kind"] in PLURALS:
                filled = {"uid": f"uid-{number}", "resourceVersion": str(number), **document["metadata"]}
                stored = {**document, "metadata": {**filled, "namespace": namespace}}
                del stored["apiVersion"], stored["kind"]  # items of lists carry neither
                self.objects.setdefault((namespace, PLURALS[document["kind"]]), []).append(stored)

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        """The code and body for a GET."""
        parts = path.strip("/").split("/")
        index = parts.index("namespaces")
        namespace, plural, *name = parts[index + 1 :]
        self.asked.append((plural, "get" if name else "list"))
        if plural in self.fail:
            status = {"kind": "Status", "code": self.fail[plural], "message": f"no {plural} for you"}
            return self.fail[plural], json.dumps(status).encode()
        if plural in self.raw:
            return 200, self.raw[plural]
        found = self.objects.get((namespace, plural), [])
        if name:
            for one in found:
                if one["metadata"]["name"] == name[0]:
                    return 200, json.dumps(one).encode()
            return 404, b'{"message": "not found"}'
        for selector in query.get("labelSelector", []):
            key, _, value = selector.partition("=")
            found = [one for one in found if one["metadata"].get("labels", {}).get(key) == value]
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        page: Doc = {"metadata": {}, "items": found[start : start + limit]}
        if start + limit < len(found):
            page["metadata"]["continue"] = str(start + limit)
        return 200, json.dumps(page).encode()


@pytest.fixture
def api() -> Api:
    """The server's content."""
    return Api()


@pytest.fixture
def server(api: Api) -> Iterator[str]:
    """The server's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            code, body = api.answer(url.path, parse_qs(url.query))
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.fixture
def kubeconfig(server: str, tmp_path: Path) -> str:
    """A kubeconfig with a context that names a namespace and one that does not."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config(server)))
    return str(path)


def config(server: str) -> Doc:
    """A kubeconfig for a server."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plain",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [
            {"name": "plain", "context": {"cluster": "it", "user": "me"}},
            {"name": "shop", "context": {"cluster": "it", "user": "me", "namespace": "shop"}},
        ],
    }


def explain(shell: Shell, kubeconfig: str, *flags: str) -> Ran:
    """Explain hvpa-sample."""
    return shell.run("explain", "hvpa-sample", "--kubeconfig", kubeconfig, "--now", NOW, "-o", "json", *flags)


def owned(documents: list[Doc]) -> list[Doc]:
    """The documents as they are in a cluster: HPA and VPA are owned."""
    owner = {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "name": "hvpa-sample",
        "uid": "uid-0",
        "controller": True,
    }
    return changed(
        documents,
        HorizontalPodAutoscaler__metadata__ownerReferences=[owner],
        VerticalPodAutoscaler__metadata__ownerReferences=[owner],
    )


def test_the_live_objects_are_explained_as_files_are(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == shell.explain(gardener)
    assert set(api.asked) == {
        ("hvpas", "list"),
        ("horizontalpodautoscalers", "list"),
        ("verticalpodautoscalers", "list"),
        ("deployments", "get"),
        ("pods", "list"),
    }


def test_the_namespace_is_the_contexts_or_the_given_one(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener), "shop")
    assert explain(shell, kubeconfig, "--context", "shop").code == 0
    assert explain(shell, kubeconfig, "-n", "shop").code == 0
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.err) == (1, "hvpa: error: Hvpa default/hvpa-sample does not exist\n")


def test_long_lists_are_read_page_by_page(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    pod = of_kind(gardener, "Pod")
    crowd = [{**pod, "metadata": {**pod["metadata"], "name": f"more-{number}"}} for number in range(PAGE)]
    api.put([*owned(gardener), *crowd])
    assert explain(shell, kubeconfig).code == 0
    assert api.asked.count(("pods", "list")) == 2


def test_a_rival_is_seen(shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]) -> None:
    hvpa = of_kind(gardener, "Hvpa")
    api.put([*owned(gardener), {**hvpa, "metadata": {"name": "rival"}}])
    ran = explain(shell, kubeconfig)
    assert ran.json["conditions"][0]["reason"] == "TargetShared"


def test_a_missing_target_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put([one for one in gardener if one["kind"] != "Deployment"])
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][0]["reason"]) == (0, "TargetNotFound")


def test_a_target_of_another_kind_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(changed(gardener, Hvpa__spec__targetRef__kind="ReplicaSet"))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][0]["reason"]) == (0, "UnsupportedTarget")


def test_a_cluster_without_vpas_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener))
    api.fail["verticalpodautoscalers"] = 404
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][2]["reason"]) == (0, "VpaNotServed")


def test_an_invalid_hvpa_is_told_with_the_field(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(changed(gardener, Hvpa__spec__mode="Sometimes"))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("hvpa: error: Hvpa default/hvpa-sample: spec.mode: ")


@pytest.mark.parametrize(
    ("plural", "answer", "code", "told"),
    [
        ("hvpas", 404, 1, "the cluster does not know Hvpas: the CRD is not installed"),
        ("hvpas", 401, 3, "answers 401: no hvpas for you"),
        ("hvpas", 403, 1, "answers 403: no hvpas for you"),
        ("deployments", 403, 1, "answers 403: no deployments for you"),
        ("pods", 500, 3, "answers 500: no pods for you"),
        ("horizontalpodautoscalers", 503, 3, "answers 503: "),
        ("pods", b"<html>", 3, "/pods can't be read: "),
        (
            "pods",
            b'{"items": [{"metadata": {"name": "odd", "labels": 3}}]}',
            1,
            "Pod default/odd can't be read: ",
        ),
        ("pods", b'{"items": [3]}', 1, "Pod default/? can't be read: "),
    ],
)
def test_what_a_cluster_refuses_is_told_in_one_line(
    shell: Shell,
    api: Api,
    kubeconfig: str,
    gardener: list[Doc],
    plural: str,
    answer: int | bytes,
    code: int,
    told: str,
) -> None:
    api.put(owned(gardener))
    if isinstance(answer, int):
        api.fail[plural] = answer
    else:
        api.raw[plural] = answer
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_cluster_that_does_not_answer_can_not_be_reached(shell: Shell) -> None:
    path = shell.file(yaml.safe_dump(config("http://127.0.0.1:1")), "nobody")
    ran = explain(shell, path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("hvpa: error: can't reach the cluster at http://127.0.0.1:1: ")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        (None, ()),
        ("kind: [", ()),
        ("{}", ()),
        ("current-context: none", ()),
        (yaml.safe_dump(config("http://127.0.0.1:1")), ("--context", "unknown")),
    ],
)
def test_a_kubeconfig_that_can_not_be_used_is_told(
    shell: Shell, content: str | None, flags: tuple[str, ...]
) -> None:
    path = str(shell.folder / "missing") if content is None else shell.file(content, "broken")
    ran = explain(shell, path, *flags)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("hvpa: error: can't reach the cluster: ")
    assert len(ran.err.splitlines()) == 1


def test_without_any_configuration_there_is_no_cluster(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes_asyncio.config import kube_config

    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(shell.folder / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    ran = shell.run("explain", "web")
    assert (ran.code, "no kubeconfig given or found" in ran.err) == (3, True)
