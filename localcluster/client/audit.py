"""Reading the API server's audit log: the requests, and their users."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster.client.api import ApiError, KubeApi, wait_for

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
BEGUN = "RequestReceived"
"""The stage of a log line that reports the arrival of a request; the log has it for writes."""
_STAGE = re.compile(rb'"auditID":"([^"]+)","stage":"(\w+)"')


@dataclass(frozen=True, slots=True)
class Request:
    """An answered request (a watch appears when it begins)."""

    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    time: dt.datetime
    """Time of the response."""
    received: dt.datetime
    uri: str
    body: Any = field(default=None, compare=False)
    """The request body, for writes to workloads, Hvpas, HPAs, VPAs and Leases; None otherwise."""
    is_forbidden: bool = False
    """Whether no role allows it. (A 403 may have other reasons: a policy, or a namespace that is being deleted.)"""

    @property
    def is_write(self) -> bool:
        """Whether it requested a change."""
        return self.verb in WRITE_VERBS

    def __str__(self) -> str:
        path = "/".join(part for part in (self.resource, self.subresource) if part) or self.uri
        return (
            f"{self.time:%H:%M:%S.%f} {self.user} {self.verb} {path} {self.namespace}/{self.name} {self.code}"
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the audit log."""

    offset: int


class Audit:
    """The audit log of a control plane, read while it grows."""

    def __init__(self, path: Path, api: Callable[[], KubeApi]) -> None:
        """`api` returns a client whose requests bring the log up to date (`settle`)."""
        self._path = path
        self._api = api
        self._lock = threading.Lock()
        self._scanned = 0
        """The log before this offset was searched for writes that have begun; always the start of a line."""
        self._begun: set[bytes] = set()

    def mark(self) -> Mark:
        """Return the present place: every request answered before, and every write begun before, is in front of it."""
        self.settle()
        self._unanswered()
        return Mark(self._scanned)

    def settle(self) -> None:
        """Wait until the log holds all requests answered so far: send a request and wait for it in the log. The effect
        of a write is visible before its response, so this also waits for every write that has begun."""
        name = f"audit-{uuid.uuid4().hex}"
        start = self._path.stat().st_size if self._path.exists() else 0
        try:
            self._api().raw("GET", f"/api/v1/namespaces/default/configmaps/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
        wait_for(
            lambda: name.encode() in self._read(start), 60, "the audit log shows a request", interval=0.02
        )
        begun = self._unanswered()
        wait_for(lambda: not begun & self._unanswered(), 60, "the audit log shows the ends of writes", 0.02)

    def restarted(self) -> None:
        """The API server was restarted: it will never answer its pending requests."""
        with self._lock:
            self._scanned = self._path.stat().st_size if self._path.exists() else 0
            self._begun.clear()

    def _unanswered(self) -> set[bytes]:
        """The writes that have begun and have no response yet."""
        with self._lock:
            self._scan()
            return set(self._begun)

    def _scan(self) -> None:
        *lines, _ = self._read(self._scanned).split(b"\n")
        for line in lines:
            if stage := _STAGE.search(line):
                (self._begun.add if stage[2] == BEGUN.encode() else self._begun.discard)(stage[1])
        self._scanned += sum(len(line) + 1 for line in lines)

    def requests(
        self,
        since: Mark | None = None,
        *,
        user: str | None = None,
        writes: bool | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        code: int | None = None,
    ) -> list[Request]:
        """The requests since a mark (by default since the start) that match all given arguments, in order of their
        responses. `user` is a user name, or `NAMESPACE:NAME` of a ServiceAccount; `resource` is a plural."""
        self.settle()
        wanted: dict[str, object] = {
            "user": _user(user),
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
            "code": code,
            "is_write": writes,
        }
        requested = {key: value for key, value in wanted.items() if value is not None}
        lines = self._read(since.offset if since else 0).splitlines()
        if namespace:  # a log of all tests so far has few lines of a single namespace
            lines = [line for line in lines if f'"{namespace}"'.encode() in line]
        requests = parse(lines)
        return [
            request for request in requests if all(getattr(request, k) == v for k, v in requested.items())
        ]

    def writers(self, resource: str, name: str, namespace: str) -> Counter[str]:
        """Users with accepted writes to an object or its subresources, and the number of these writes."""
        requests = self.requests(writes=True, resource=resource, namespace=namespace, name=name)
        return Counter(request.user for request in requests if request.code < 300)

    def _read(self, offset: int) -> bytes:
        if not self._path.exists():
            return b""
        with self._path.open("rb") as log:
            log.seek(offset)
            return log.read()


def _user(user: str | None) -> str | None:
    if user and user.count(":") == 1 and not user.startswith("system:"):
        return f"system:serviceaccount:{user}"
    return user


def parse(lines: Iterable[bytes]) -> list[Request]:
    """The requests of audit log lines, without incomplete lines (still being written). Of a watch only the beginning
    counts, of other requests only the end. Dry runs are omitted: they change nothing."""
    requests = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["stage"] == BEGUN or (event["verb"] == "watch" and event["stage"] != "ResponseStarted"):
            continue
        if event["verb"] != "watch" and event["stage"] == "ResponseStarted":
            continue
        if not is_dry_run(event):
            requests.append(_request(event))
    return requests


def is_dry_run(event: dict[str, Any]) -> bool:
    """Whether a request was a dry run, and changed nothing."""
    return "dryRun=All" in event["requestURI"]


def _request(event: dict[str, Any]) -> Request:
    reference = event.get("objectRef", {})
    body = event.get("requestObject")
    # A create request names its object only in the body.
    name = reference.get("name") or (body or {}).get("metadata", {}).get("name", "")
    return Request(
        user=event["user"].get("username", ""),
        user_agent=event.get("userAgent", ""),
        verb=event["verb"],
        group=reference.get("apiGroup", ""),
        resource=reference.get("resource", ""),
        subresource=reference.get("subresource", ""),
        namespace=reference.get("namespace", ""),
        name=name,
        code=event.get("responseStatus", {}).get("code", 0),
        time=dt.datetime.fromisoformat(event["stageTimestamp"]),
        received=dt.datetime.fromisoformat(event.get("requestReceivedTimestamp", event["stageTimestamp"])),
        uri=event["requestURI"],
        body=body,
        is_forbidden=event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid",
    )
