"""The faults of the proxy as data: the affected requests, the effect, and the number of times. Without I/O."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web

_REASONS = {
    307: "TemporaryRedirect",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def verb_of(method: str, path: str, query: Mapping[str, str]) -> str:
    """The Kubernetes verb of a request: get, list, watch, create, update, patch, delete."""
    if method != "GET":
        return _VERBS.get(method, method.lower())
    if query.get("watch") in ("true", "1"):
        return "watch"
    # /api/v1/pods · /api/v1/namespaces/x/pods · /apis/g/v/pods · /apis/g/v/namespaces/x/pods: a list ends in
    # a plural.
    parts = [part for part in path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return "list" if len(rest) == 1 else "get"


def status_body(code: int, retry_after: int | str | None = None) -> dict[str, Any]:
    """The Status object that the API server sends with such a code."""
    details = {"details": {"retryAfterSeconds": retry_after}} if isinstance(retry_after, int) else {}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": _REASONS.get(code, "InternalError"),
        "message": f"fault {code} of the test's proxy",
        "code": code,
    } | details


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request that the proxy answered."""

    time: dt.datetime
    verb: str
    path: str
    query: str
    code: int
    user_agent: str

    @classmethod
    def of(cls, request: web.Request, code: int) -> AnsweredRequest:
        """The recorded part of a request."""
        return cls(
            dt.datetime.now(dt.UTC),
            verb_of(request.method, request.path, request.query),
            request.path,
            request.query_string,
            code,
            request.headers.get("User-Agent", ""),
        )


class Damage(Enum):
    """Damage to a response on its way back, after the API server has carried the request out. All except SLOW have code
    200 if the API server's response has it."""

    SHORT = "less comes than Content-Length says"
    CHUNKED = "the connection ends before the last chunk"
    HALF = "JSON that ends in the middle"
    PAGE = "an HTML page"
    EMPTY = "no body"
    OTHER = "JSON that is something else"
    SLOW = "byte by byte"


@dataclass(frozen=True, slots=True)
class Matcher:
    """Selects requests: by Kubernetes verb, and by regular expressions searched in the path and in the query string
    (decoded); None matches all."""

    verb: str | None
    path: str | None
    query: str | None = None

    def matches(self, method: str, path: str, query: Mapping[str, str]) -> bool:
        """Whether it matches the request."""
        if self.verb is not None and verb_of(method, path, query) != self.verb:
            return False
        if self.query is not None and not re.search(
            self.query, "&".join(f"{k}={v}" for k, v in query.items())
        ):
            return False
        return self.path is None or re.search(self.path, path) is not None


@dataclass(slots=True, eq=False)
class Fault:
    """An effect on matching requests, up to `times` times (None: until removed)."""

    matcher: Matcher
    times: int | None
    code: int = 0
    retry_after: int | str | None = None
    location: str | None = None
    seconds: float = 0
    damage: Damage | None = None
    hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, method: str, path: str, query: Mapping[str, str]) -> bool:
        """Whether the fault hits this request; counts it."""
        with self._lock:
            if self.times is not None and self.hits >= self.times:
                return False
            if not self.matcher.matches(method, path, query):
                return False
            self.hits += 1
            return True

    def remove(self) -> None:
        """Affect no further request."""
        with self._lock:
            self.times = 0


class Hold(Fault):
    """A fault that stops requests at a point until the test releases or drops them."""

    def __init__(self, matcher: Matcher, times: int | None, *, answered: bool) -> None:
        """`answered`: stop them after the API server's response, else before the API server gets them."""
        super().__init__(matcher, times)
        self.answered = answered
        self.caught: list[str] = []
        """Method and URL of the stopped requests."""
        self._reached = threading.Event()
        self._decided = threading.Event()
        self._go_on = True

    def wait(self, timeout: float = 60) -> str:
        """Method and URL of the first stopped request; raises `TimeoutError` if none came."""
        if not self._reached.wait(timeout):
            raise TimeoutError(f"no request for {self.matcher} within {timeout:g} s")
        return self.caught[0]

    def release(self) -> None:
        """Let held and later requests go on."""
        self._decided.set()

    def drop(self) -> None:
        """Reset the connections of held requests: the caller never gets a response."""
        self._go_on = False
        self._decided.set()

    async def pass_by(self, method: str, url: str) -> bool:
        """Stop here (in the proxy's event loop); return whether the request goes on."""
        self.caught.append(f"{method} {url}")
        self._reached.set()
        while not self._decided.is_set():
            await asyncio.sleep(0.01)
        return self._go_on
