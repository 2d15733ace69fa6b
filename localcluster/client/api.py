"""A small synchronous Kubernetes client for tests, on the standard library: fast enough to poll with, and separate from
the client under test."""

from __future__ import annotations

import base64
import http.client
import json
import select
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import yaml

Json = dict[str, Any]
Jsons = list[Json]
Value = TypeVar("Value")
PatchType = Literal["merge", "strategic", "json", "apply"]

_CONTENT_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
# For kinds named without their group.
_DEFAULT_VERSIONS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "VerticalPodAutoscaler": "autoscaling.k8s.io/v1",
    "Rollout": "argoproj.io/v1alpha1",
    "Hvpa": "autoscaling.k8s.io/v1alpha1",
    "HvpaSizes": "autoscaling.k8s.io/v1alpha1",
    "Lease": "coordination.k8s.io/v1",
    "APIService": "apiregistration.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PodMetrics": "metrics.k8s.io/v1beta1",
    "NodeMetrics": "metrics.k8s.io/v1beta1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
}


class ApiError(Exception):
    """A response of the API server other than 2xx. `causes` are the reasons among its details."""

    def __init__(self, status: int, reason: str, message: str, causes: Sequence[str] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The client's identity: a TLS context with or without client certificate, or a bearer token."""

    server: str
    tls: ssl.SSLContext
    token: str | None


def read_kubeconfig(path: Path) -> Credentials:
    """Address and credentials of the current context: certificates or a token (no exec plugins)."""
    config = yaml.safe_load(path.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    with tempfile.TemporaryDirectory() as folder:
        authority = _material(cluster, "certificate-authority", path, Path(folder))
        tls = ssl.create_default_context(cafile=authority)
        certificate = _material(user, "client-certificate", path, Path(folder))
        if certificate:
            tls.load_cert_chain(certificate, _material(user, "client-key", path, Path(folder)))
    return Credentials(cluster["server"], tls, user.get("token"))


def _named(entries: list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def _material(entry: Json, field: str, config: Path, folder: Path) -> str | None:
    if f"{field}-data" in entry:
        path = folder / field
        path.write_bytes(base64.b64decode(entry[f"{field}-data"]))
        return str(path)
    return str(config.parent / entry[field]) if field in entry else None


_IDLE_SECONDS = 30
"""Seconds after which a connection is not used again: the API server closes connections after 90 s, maybe during a
request."""


class _Connection(http.client.HTTPSConnection):
    """Closes with its owner: a thread that ends closes its connection."""

    used_at = 0.0
    """Time of the last use, by `time.monotonic`."""

    def __del__(self) -> None:
        self.close()


class KubeApi:
    """Requests as the user of a kubeconfig. A kind is named `Deployment`, or with its version if it is not in the table
    of well-known kinds: `apps/v1/Deployment`. Safe to use from several threads. Raises `ApiError` for requests that the
    server refuses, and `OSError` if it cannot be reached."""

    def __init__(self, kubeconfig: Path) -> None:
        """Read the kubeconfig; nothing is sent yet."""
        self._credentials = read_kubeconfig(kubeconfig)
        self._address = urlsplit(self._credentials.server)
        self._local = threading.local()
        self._resources: dict[str, tuple[str, bool]] = {}

    def get(self, kind: str, name: str, namespace: str | None = None, *, subresource: str = "") -> Json:
        """The object, or a subresource of it."""
        return self._request("GET", self.path(kind, namespace, name, subresource))

    def find(self, kind: str, name: str, namespace: str | None = None) -> Json | None:
        """The object, or None if it does not exist."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> Jsons:
        """All objects of a kind, in a namespace or in all, that match a label selector."""
        query = {"labelSelector": selector} if selector else None
        items: Jsons = self._request("GET", self.path(kind, namespace), query=query)["items"]
        return items

    def columns(self, kind: str, name: str, namespace: str | None = None) -> dict[str, str]:
        """The output of `kubectl get -o wide` for an object, by column heading."""
        path, accept = self.path(kind, namespace, name), "application/json;as=Table;v=v1;g=meta.k8s.io"
        table = self._request("GET", path, accept=accept)
        headings = [column["name"].upper() for column in table["columnDefinitions"]]
        cells = ["" if cell is None else str(cell) for cell in table["rows"][0]["cells"]]
        return dict(zip(headings, cells, strict=True))

    def create(self, manifest: Json, *, strict: bool = True) -> Json:
        """Create an object; unknown and duplicate fields are refused when `strict`."""
        query = {"fieldValidation": "Strict" if strict else "Ignore", "fieldManager": "test"}
        return self._request("POST", self._path_of(manifest, named=False), manifest, query=query)

    def replace(self, manifest: Json, *, subresource: str = "") -> Json:
        """Write a whole object (PUT), conditional on its resourceVersion if it has a resourceVersion."""
        return self._request("PUT", self._path_of(manifest, subresource=subresource), manifest)

    def apply(self, manifest: Json, *, manager: str = "test", force: bool = True) -> Json:
        """Server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        path = self._path_of(manifest)
        return self._request("PATCH", path, manifest, content_type=_CONTENT_TYPES["apply"], query=query)

    def patch(
        self,
        kind: str,
        name: str,
        namespace: str | None,
        body: Json | Jsons,
        *,
        type: PatchType = "merge",
        subresource: str = "",
        manager: str = "test",
    ) -> Json:
        """Patch an object or a subresource of it."""
        path = self.path(kind, namespace, name, subresource)
        query = {"fieldManager": manager}
        return self._request("PATCH", path, body, content_type=_CONTENT_TYPES[type], query=query)

    def patch_status(self, kind: str, name: str, namespace: str | None, status: Json) -> Json:
        """Merge into an object's status."""
        return self.patch(kind, name, namespace, {"status": status}, subresource="status")

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        missing_ok: bool = True,
        grace: int | None = None,
    ) -> None:
        """Delete an object; `grace` is its grace period in seconds."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self._request("DELETE", self.path(kind, namespace, name), body)
        except ApiError as error:
            if error.status != 404 or not missing_ok:
                raise

    def raw(self, method: str, path: str, body: object = None) -> Json:
        """Any request by its path, such as `/readyz` (a response that is no JSON comes back as {"text":
        …})."""
        return self._request(method, path, body)

    def path(self, kind: str, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The URL path of a kind's objects, or of a single object."""
        version, _, short = kind.rpartition("/")
        version = version or _DEFAULT_VERSIONS.get(short, "v1")
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        plural, namespaced = self._resource(root, short)
        scope = f"/namespaces/{namespace}" if namespaced and namespace else ""
        parts = [
            root + scope,
            plural,
            *([quote(name)] if name else []),
            *([subresource] if subresource else []),
        ]
        return "/".join(parts)

    def _path_of(self, manifest: Json, *, named: bool = True, subresource: str = "") -> str:
        metadata = manifest["metadata"]
        kind = f"{manifest['apiVersion']}/{manifest['kind']}"
        name = metadata["name"] if named else ""
        return self.path(kind, metadata.get("namespace", "default"), name, subresource)

    def _resource(self, root: str, kind: str) -> tuple[str, bool]:
        key = f"{root}/{kind}"
        if key not in self._resources:
            for entry in self._request("GET", root)["resources"]:
                if "/" not in entry["name"]:
                    self._resources[f"{root}/{entry['kind']}"] = (entry["name"], entry["namespaced"])
        if key not in self._resources:
            raise ApiError(404, "NotFound", f"the API server knows no {kind} under {root}")
        return self._resources[key]

    def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        url = f"{path}?{urlencode(query)}" if query else path
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "hvpa-test"}
        if self._credentials.token:
            headers["Authorization"] = f"Bearer {self._credentials.token}"
        data = None if body is None else json.dumps(body).encode()
        status, reason, text = self._exchange(method, url, data, headers)
        content = _decode(text)
        if status >= 300:
            message = content.get("message", text.decode(errors="replace"))
            causes = (content.get("details") or {}).get("causes") or ()
            reasons = [cause["reason"] for cause in causes if cause.get("reason")]
            raise ApiError(status, content.get("reason", reason), message, reasons)
        return content

    def _exchange(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        """Send a request on this thread's connection; repeat a read once if the connection breaks during it."""
        for attempt in (1, 2):
            connection = self._connection()
            try:
                connection.request(method, url, data, dict(headers))
                response = connection.getresponse()
                return response.status, response.reason, response.read()
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                if method != "GET" or attempt == 2:
                    raise OSError(f"{method} {url}: {error!r}") from error
        raise AssertionError("unreachable: the second attempt returns or raises")

    def _connection(self) -> _Connection:
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            host, port = self._address.hostname or "127.0.0.1", self._address.port or 443
            connection = _Connection(host, port, timeout=60, context=self._credentials.tls)
            self._local.connection = connection
        elif time.monotonic() - connection.used_at > _IDLE_SECONDS:
            connection.close()
        elif connection.sock is not None and _is_readable(connection.sock):
            connection.close()  # readable without a pending request: the server has closed it
        connection.used_at = time.monotonic()
        return connection


def _is_readable(line: socket.socket) -> bool:
    """Whether there is something to read. (`select` does not support file descriptors from 1024 on.)"""
    poller = select.poll()
    poller.register(line, select.POLLIN)
    return bool(poller.poll(0))


def _decode(text: bytes) -> Json:
    try:
        content = json.loads(text)
    except ValueError:
        return {"text": text.decode(errors="replace")}
    return content if isinstance(content, dict) else {"value": content}


def wait_for(
    predicate: Callable[[], Value],
    timeout: float = 30,
    message: str | Callable[[], str] = "",
    interval: float = 0.1,
) -> Value:
    """Return the first true value of `predicate`, called every `interval` seconds, and less often with time: every half
    second after five seconds of waiting. `ApiError`, `OSError`, `AssertionError`, `KeyError` and `IndexError` count as
    not yet. Raises `TimeoutError` after `timeout` seconds with the message, the last value and the last error."""
    began = time.monotonic()
    value: Any = None
    error: Exception | None = None
    while True:
        try:
            value, error = predicate(), None
            if value:
                return value  # type: ignore[no-any-return]
        except (ApiError, OSError, AssertionError, KeyError, IndexError) as failure:
            error = failure
        waited = time.monotonic() - began
        if waited >= timeout:
            text = message() if callable(message) else message
            reported = f"{type(error).__name__}: {error}" if error else f"last value: {value!r}"
            raise TimeoutError(f"not within {timeout:g} s: {text or predicate}; {reported}")
        time.sleep(max(interval, min(0.5, waited / 10)))
