"""An API server in memory for the operator as a whole: lists, watches, patches, leases; and which requests the operator
may make at all."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, Final

from aiohttp import web

from tests.unit.kube.fake_server import status

Json = dict[str, Any]
Name = tuple[str, str]

PLURALS: Final = {
    "Hvpa": "hvpas",
    "Deployment": "deployments",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    "Pod": "pods",
}
APIS: Final = {
    "hvpas": "/apis/autoscaling.k8s.io/v1alpha1",
    "hvpasizes": "/apis/autoscaling.k8s.io/v1alpha1",
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "replicationcontrollers": "/api/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
    "verticalpodautoscalers": "/apis/autoscaling.k8s.io/v1",
    "verticalpodautoscalercheckpoints": "/apis/autoscaling.k8s.io/v1",
    "pods": "/api/v1",
    "nodes": "/api/v1",
    "events": "/api/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "rollouts": "/apis/argoproj.io/v1alpha1",
}
WRITTEN: Final = frozenset(APIS) - {"leases", "nodes", "verticalpodautoscalercheckpoints"}
"""What may be written to in an Hvpa's namespace; a lease only in its own."""
LISTED: Final = frozenset(APIS) - {"events", "leases", "rollouts"}
QUERIES: Final = frozenset(
    {"limit", "continue", "watch", "allowWatchBookmarks", "resourceVersion", "timeoutSeconds"}
    | {"fieldManager", "force", "labelSelector", "dryRun"}
)
SEGMENT: Final = r"[A-Za-z0-9._-]+"
PATH: Final = re.compile(
    rf"(?P<api>/api/v1|/apis/{SEGMENT}/{SEGMENT})"
    rf"(/namespaces/(?P<namespace>{SEGMENT}))?(/(?P<plural>[a-z]+)(/(?P<name>{SEGMENT})(/(?P<sub>[a-z]+))?)?)?"
)
MEMBER: Final = re.compile(r"web(-[a-z0-9]+)*")
"""Names of the objects of an Hvpa `web`, those that the operator creates for it included."""


class FakeCluster:
    """Answers requests; `faults` has those that the operator must not make."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.requests = 0
        self.writes: Counter[str] = Counter()
        """By method, resource and subresource."""
        self._version = 1000
        self._objects: dict[str, dict[Name, Json]] = defaultdict(dict)
        self._hvpas: set[Name] = set()
        """All that ever were."""
        self._reported: set[str] = set()
        self._watches: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)

    # --- what the test does -------------------------------------------------------------------------------------------
    def put(self, kind: str, document: Json) -> None:
        """Create or replace an object."""
        metadata = document["metadata"]
        self._store(PLURALS[kind], (metadata["namespace"], metadata["name"]), _as_json(document))

    def empty(self, namespace: str) -> None:
        """Delete all objects of a namespace."""
        for plural, objects in list(self._objects.items()):
            for key in [key for key in objects if key[0] == namespace and plural != "leases"]:
                self._delete(plural, key)

    def reason(self, namespace: str) -> str:
        """Of the condition Ready of the namespace's Hvpa, as it was reported; empty where nothing was."""
        hvpa_status = self._objects["hvpas"].get((namespace, "web"), {}).get("status")
        if namespace not in self._reported or not isinstance(hvpa_status, dict):
            return ""
        conditions = [
            condition for condition in hvpa_status.get("conditions") or () if isinstance(condition, dict)
        ]
        return next(
            (str(condition.get("reason")) for condition in conditions if condition.get("type") == "Ready"), ""
        )

    def wrote_status(self, namespace: str) -> bool:
        """Whether the status of the namespace's Hvpa was written."""
        return namespace in self._reported

    # --- what the operator requests -----------------------------------------------------------------------------------
    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request."""
        self.requests += 1
        match = PATH.fullmatch(request.rel_url.raw_path)
        body = await request.read()
        if match is None or self._problem(request, match) is not None:
            self.faults.append(f"{request.method} {request.raw_path}")
            return status(404, "NotFound")
        plural, namespace, name, sub = (match[group] for group in ("plural", "namespace", "name", "sub"))
        if plural is None:
            return self._discovery(match["api"])
        if name is None and request.method == "GET":
            if plural not in LISTED | {"leases"} or APIS[plural] != match["api"]:
                return status(404, "NotFound")
            return await self._read(request, plural, namespace)
        if "dryRun" in request.query:
            return self._tried(plural, (namespace, name))
        return self._write(request.method, (plural, namespace, name, sub), json.loads(body) if body else {})

    def _problem(self, request: web.Request, match: re.Match[str]) -> str | None:
        """Why the operator must not make a request."""
        plural, namespace, name = match["plural"], match["namespace"], match["name"]
        if not set(request.query) <= QUERIES:
            return "query"
        if plural is None:
            return None if request.method == "GET" and namespace is None and not request.query else "path"
        if namespace == "default" and plural == "leases":
            return None
        if request.method == "GET":
            if name is None:
                return None if namespace is None and plural in LISTED else "list"
            is_scale = match["sub"] == "scale" and namespace is not None and namespace.startswith("ns-")
            return None if is_scale else "read"
        is_written = (
            plural in WRITTEN and APIS[plural] == match["api"] and (namespace or "").startswith("ns-")
        )
        if not is_written or (namespace, "web") not in self._hvpas:
            return "write"
        return None if name is None or plural in ("hvpasizes", "events") or MEMBER.fullmatch(name) else "name"

    def _discovery(self, api: str) -> web.StreamResponse:
        if api != APIS["rollouts"]:
            return status(404, "NotFound")
        served = [{"name": "rollouts", "kind": "Rollout"}, {"name": "rollouts/scale", "kind": "Scale"}]
        return web.json_response({"resources": served})

    async def _read(self, request: web.Request, plural: str, namespace: str | None) -> web.StreamResponse:
        if "watch" not in request.query:
            items = [item for key, item in self._objects[plural].items() if namespace in (None, key[0])]
            return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": items})
        since = int(request.query["resourceVersion"])
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        for item in self._objects[plural].values():
            if int(item["metadata"]["resourceVersion"]) > since:
                queue.put_nowait(_event("MODIFIED", item))
        response = web.StreamResponse()
        await response.prepare(request)
        self._watches[plural].add(queue)
        try:
            with suppress(ConnectionResetError):  # the operator has given the watch up
                while True:
                    await response.write(await queue.get())
        finally:
            self._watches[plural].discard(queue)
        return response

    def _write(
        self, method: str, path: tuple[str, str, str | None, str | None], body: Json
    ) -> web.StreamResponse:
        plural, namespace, name, sub = path
        if method != "GET" and plural != "leases":
            self.writes[f"{method} {plural}" + (f"/{sub}" if sub else "")] += 1
        if name is None:
            name = body["metadata"]["name"]
            if (namespace, name) in self._objects[plural]:
                return status(409, "AlreadyExists")
            return web.json_response(self._store(plural, (namespace, name), body))
        key = (namespace, name)
        known = self._objects[plural].get(key)
        if plural == "rollouts" and sub == "scale" and method == "GET":
            return web.json_response(self._scale(namespace, name))
        is_apply = method == "PATCH" and "apiVersion" in body
        if known is None and not is_apply:
            details = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": name}}
            return web.json_response(details, status=404)
        if known is not None and method == "GET":
            return web.json_response(known)
        expected = body.get("preconditions" if method == "DELETE" else "metadata", {}).get("resourceVersion")
        if known is not None and expected not in (None, known["metadata"]["resourceVersion"]):
            return status(409, "Conflict")
        if (plural, sub) == ("hvpas", "status"):
            self._reported.add(namespace)
        if method == "DELETE":
            return web.json_response(self._delete(plural, key))
        return web.json_response(self._store(plural, key, _merged(known or {}, body)))

    def _tried(self, plural: str, key: Name) -> web.StreamResponse:
        """The response to a write that changes nothing."""
        known = self._objects[plural].get(key)
        return status(404, "NotFound") if known is None else web.json_response(known)

    def _scale(self, namespace: str, name: str) -> Json:
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-r",
            "resourceVersion": str(self._version),
        }
        return {
            "metadata": metadata,
            "spec": {"replicas": 3},
            "status": {"replicas": 3, "selector": "app=web"},
        }

    # --- objects ------------------------------------------------------------------------------------------------------
    def _store(self, plural: str, key: Name, document: Json) -> Json:
        known = self._objects[plural].get(key)
        self._version += 1
        if plural == "hvpas":
            self._hvpas.add(key)
        metadata = {
            "uid": f"{key[0]}-{plural}",
            **document.get("metadata", {}),
            "namespace": key[0],
            "name": key[1],
        }
        stored = {**document, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        self._objects[plural][key] = stored
        self._tell(plural, "ADDED" if known is None else "MODIFIED", stored)
        return stored

    def _delete(self, plural: str, key: Name) -> Json:
        gone = self._objects[plural].pop(key)
        self._version += 1
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self._version)}}
        self._tell(plural, "DELETED", gone)
        return gone

    def _tell(self, plural: str, kind: str, document: Json) -> None:
        for queue in self._watches[plural]:
            queue.put_nowait(_event(kind, document))


def _as_json(value: Any) -> Any:
    """What an API server makes of a value: valid JSON, in UTF-8, with finite numbers."""
    if isinstance(value, dict):
        return {_as_json(str(key)): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _event(kind: str, document: Json) -> bytes:
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"


def _merged(known: Json, patch: Json) -> Json:
    """A merge patch (RFC 7386), which is close enough to the other kinds here."""
    result = dict(known)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result
