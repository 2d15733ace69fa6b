"""A small API server for commands that read a cluster, and a kubeconfig for it."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.unit.cli.support import Doc

PLURALS = {
    "Hvpa": "hvpas",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    "Pod": "pods",
}
HELD = {
    **PLURALS,
    "Event": "events",
    "Node": "nodes",
    "ScaledObject": "scaledobjects",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
    "Rollout": "rollouts",
    "PodMetrics": "podmetrics",
    "Namespace": "namespaces",
    "HvpaPolicy": "hvpapolicies",
    "ClusterHvpaPolicy": "clusterhvpapolicies",
}
"""What the server can hold."""


OPERATOR = "hvpa-system"
"""The operator's namespace."""
NEXT_VERSION = "serves Hvpas as v1beta1 only, but this hvpa supports v1alpha1"
"""What is said of `Api.serve_next_version`."""


class Api:
    """A small API server: serves documents by namespace; `fail` maps a plural to the code to answer with."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], list[Doc]] = {}
        self.fail: dict[str, int] = {}
        self.refuse: dict[str, int] = {}
        """By name of an Hvpa: the code to answer its next patch with."""
        self.raw: dict[str, bytes] = {}
        self.patched: list[Doc] = []
        """The specs of patches of other objects, which are not applied."""
        self.asked: list[tuple[str, str]] = []
        self.paths: list[str] = []
        self.unserved: set[str] = set()
        self.resizes_pods = True
        self.user = "ann@example.com"
        """Who asks; empty: the server does not say."""
        self.discovered: dict[str, tuple[int, bytes]] = {}
        self.operator: Callable[[Doc], None] = lambda hvpa: None
        """What the operator does with an Hvpa after a patch of it."""
        self.refused: Callable[[Doc], None] = lambda hvpa: None
        """What changed an object whose patch is refused."""
        self.put_lease("hvpa", "the-operator")

    def put_lease(self, name: str, holder: str, seconds: float = 0.0, duration: int = 3600) -> None:
        """Hold a Lease of the operator, renewed that many seconds ago."""
        renewed = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        held = self.objects.setdefault((OPERATOR, "leases"), [])
        held[:] = [lease for lease in held if lease["metadata"]["name"] != name]
        held.append({"metadata": {"name": name, "namespace": OPERATOR}, "spec": spec})

    def put(self, documents: list[Doc], namespace: str = "default") -> None:
        """Hold these documents in a namespace, as a cluster would."""
        for number, document in enumerate(documents):
            if document["kind"] in HELD:
                filled = {"uid": f"uid-{number}", "resourceVersion": str(number), **document["metadata"]}
                stored = {**document, "metadata": {**filled, "namespace": namespace}}
                del stored["apiVersion"], stored["kind"]  # items of lists carry neither
                self.objects.setdefault((namespace, HELD[document["kind"]]), []).append(stored)

    def serve_next_version(self) -> None:
        """Hvpas are served as v1beta1 only, beside VPAs as v1."""
        group = "/apis/autoscaling.k8s.io"
        self.fail["hvpas"] = 404
        self.unserved.add(f"{group}/v1alpha1")
        for path, content in (
            ("", {"versions": [{"version": "v1"}, {"version": "v1beta1"}]}),
            ("/v1", {"resources": [{"name": "verticalpodautoscalers"}]}),
            ("/v1beta1", {"resources": [{"name": "hvpas"}]}),
        ):
            self.discovered[f"{group}{path}"] = (200, json.dumps(content).encode())

    def serve_rollouts(self) -> None:
        """Rollouts are served, and have a scale."""
        served = [{"name": "rollouts", "kind": "Rollout"}, {"name": "rollouts/scale", "kind": "Scale"}]
        self.discovered["/apis/argoproj.io/v1alpha1"] = (200, json.dumps({"resources": served}).encode())

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        """The code and body for a GET."""
        self.paths.append(path)
        parts = path.strip("/").split("/")
        if parts[-1] not in HELD.values() and "namespaces" not in parts:
            return self.discovery(path)
        namespace, plural, *name = _address(parts)
        self.asked.append((plural, "get" if name else "list"))
        if plural in self.fail:
            status = {"kind": "Status", "code": self.fail[plural], "message": f"no {plural} for you"}
            return self.fail[plural], json.dumps(status).encode()
        if plural in self.raw:
            return 200, self.raw[plural]
        documents = self.found(namespace, plural)
        if name:
            for document in documents:
                if document["metadata"]["name"] == name[0]:
                    return 200, json.dumps(document).encode()
            return 404, json.dumps({"message": "not found", "details": {"name": name[0]}}).encode()
        for selector in query.get("labelSelector", []):
            key, _, value = selector.partition("=")
            documents = [
                document for document in documents if document["metadata"].get("labels", {}).get(key) == value
            ]
        for selector in query.get("fieldSelector", []):
            wanted = dict(part.removeprefix("involvedObject.").split("=") for part in selector.split(","))
            documents = [event for event in documents if wanted.items() <= event["involvedObject"].items()]
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        page: Doc = {"metadata": {}, "items": documents[start : start + limit]}
        if start + limit < len(documents):
            page["metadata"]["continue"] = str(start + limit)
        return 200, json.dumps(page).encode()

    def found(self, namespace: str, plural: str) -> list[Doc]:
        """The objects of a namespace; of all where it is empty."""
        kept = [
            many
            for (place, what), many in self.objects.items()
            if what == plural and namespace in ("", place)
        ]
        return [document for many in kept for document in many]

    def discovery(self, path: str) -> tuple[int, bytes]:
        """What is served under a group's version."""
        self.asked.append((path, "discovery"))
        if path in self.discovered:
            return self.discovered[path]
        if path in self.unserved:
            return 404, b'{"message": "not found"}'
        served = [*PLURALS.values(), *(["pods/resize"] if self.resizes_pods else [])]
        return 200, json.dumps({"resources": [{"name": resource} for resource in served]}).encode()

    def patch(self, path: str, body: Doc) -> tuple[int, bytes]:
        """The code and body for a merge patch of an Hvpa's mode and annotations, or a patch of a workload."""
        parts = path.strip("/").split("/")
        namespace, plural, name = parts[parts.index("namespaces") + 1 :]
        self.asked.append((plural, "patch"))
        hvpa = next(
            document for document in self.found(namespace, plural) if document["metadata"]["name"] == name
        )
        if code := self.refuse.pop(name if plural == "hvpas" else f"{plural}/{name}", 0):
            self.refused(hvpa)
            status = {"kind": "Status", "code": code, "message": f"no change of {name}"}
            return code, json.dumps(status).encode()
        assert body["metadata"]["resourceVersion"] == hvpa["metadata"]["resourceVersion"]
        if plural != "hvpas":
            self.patched.append(body["spec"])
            return 200, json.dumps(hvpa).encode()
        hvpa["spec"].update(body.get("spec", {}))
        annotations = {**hvpa["metadata"].get("annotations", {}), **body["metadata"]["annotations"]}
        hvpa["metadata"]["annotations"] = {
            key: value for key, value in annotations.items() if value is not None
        }
        self.operator(hvpa)
        return 200, json.dumps(hvpa).encode()


def _address(parts: list[str]) -> list[str]:
    """Namespace, plural and, for an object, name in a path. The metrics API's `pods` are `podmetrics`."""
    *_, last = parts
    if "namespaces" not in parts[:-2]:
        return ["", "namespaces", last] if "namespaces" in parts[:-1] else ["", _plural(parts)]
    namespace, *_ = rest = parts[parts.index("namespaces") + 1 :]
    return [namespace, _plural(parts), *rest[2:]]


def _plural(parts: list[str]) -> str:
    if "metrics.k8s.io" in parts:
        return "podmetrics"
    return parts[parts.index("namespaces") + 2] if "namespaces" in parts[:-2] else parts[-1]


class Responder(BaseHTTPRequestHandler):
    """Sends a response, and logs nothing."""

    def respond(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # the command was interrupted, and waits for no response
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        return


@contextmanager
def listening(handler: type[Responder]) -> Iterator[str]:
    """A server of HTTP on loopback; the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@contextmanager
def serving(api: Api) -> Iterator[str]:
    """Serve it; the address."""

    class Handler(Responder):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self.respond(*api.answer(url.path, parse_qs(url.query)))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.respond(*api.patch(urlsplit(self.path).path, body))

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert review["kind"] == "SelfSubjectReview"
            status = {"userInfo": {"username": api.user}}
            self.respond(201 if api.user else 404, json.dumps({**review, "status": status}).encode())

    with listening(Handler) as address:
        yield address


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
