"""An event loop whose time is virtual, and an API server of Leases in it: minutes of many members in milliseconds, with
requests that are late, lost, or carried out without the caller learning of it."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import json
import random
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Body

Value = TypeVar("Value")
Json = dict[str, Any]


class _Selector(selectors.SelectSelector):
    """Does not wait: lets the loop's time go on instead."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events:
            assert timeout is not None, "nothing will ever happen any more"
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Sleeping takes no time."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """The virtual time, in seconds."""
        return self._virtual.now

    def compute(self, seconds: float) -> None:
        """Have the time go by that computing takes."""
        self._virtual.now += seconds


def run_virtually(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run `coroutine` in virtual time; all that it started and left is cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


class VirtualClock:
    """The wall clock that goes with it."""

    def now(self) -> dt.datetime:
        """Some day, and the loop's time."""
        passed = dt.timedelta(seconds=asyncio.get_running_loop().time())
        return dt.datetime(2026, 11, 21, tzinfo=dt.UTC) + passed


class LeaseServer:
    """Leases with optimistic locking, as an API server has them."""

    def __init__(self) -> None:
        self.leases: dict[str, Json] = {}
        self.requests: list[tuple[str, str]] = []
        """Verb and name of what was carried out (empty name: a list)."""
        self._versions = itertools.count(1)

    def holder(self, name: str) -> str | None:
        """Who holds a Lease by its word."""
        return self.leases.get(name, {}).get("spec", {}).get("holderIdentity") or None

    def handle(self, method: str, name: str, query: Mapping[str, str] | None, body: Any) -> Any:
        """Carry a request out. Raises ApiError."""
        self.requests.append((method, name))
        known = self.leases.get(name)
        match method:
            case "GET" if not name:
                key, _, value = (query or {})["labelSelector"].partition("=")
                items = self.leases.values()
                return {
                    "items": [
                        lease for lease in items if lease["metadata"].get("labels", {}).get(key) == value
                    ]
                }
            case "POST":
                if body["metadata"]["name"] in self.leases:
                    raise ApiError(409, "AlreadyExists", "")
                return self._store(body, f"uid-{next(self._versions)}")
        if known is None:
            raise ApiError(404, "NotFound", "")
        if method == "GET":
            return known
        wanted = body["preconditions"] if method == "DELETE" else body["metadata"]
        for field in ("uid", "resourceVersion"):
            if wanted.get(field) != known["metadata"][field]:
                raise ApiError(409, "Conflict", "")
        return self.leases.pop(name) if method == "DELETE" else self._store(body, known["metadata"]["uid"])

    def _store(self, lease: Json, uid: str) -> Json:
        metadata = {**lease["metadata"], "uid": uid, "resourceVersion": str(next(self._versions))}
        stored = self.leases[metadata["name"]] = {**lease, "metadata": metadata}
        return stored


class Line:
    """One process's connection to the server; in place of a `Transport`. While it is `cut`, nothing gets through, and
    while it is `deaf`, no answer does; with `losses`, so large a part of the requests and of the answers is lost; with
    `slow` seconds, each takes up to so long; the next `dead` requests are lost."""

    def __init__(self, server: LeaseServer, rng: random.Random, slow: float = 0.01) -> None:
        self._server = server
        self._rng = rng
        self.slow = slow
        self.losses = 0.0
        self.dead = 0
        self.cut = False
        self.deaf = False

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = 10.0,
        verb: str = "",
    ) -> bytes:
        """As `Transport.request`. What was sent is carried out even when the caller doesn't wait for it any more."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if self.dead > 0:
            self.dead -= 1
        elif not self._is_lost():
            sent = None if body is None else json.loads(body.data)
            name = path.partition("/leases")[2].removeprefix("/")
            loop.call_later(self._time(), self._arrive, (method, name, query, sent), answer)
        try:
            async with asyncio.timeout(timeout):
                return json.dumps(await answer).encode()
        except TimeoutError as error:
            raise Unreachable("no answer in time") from error

    def _arrive(self, request: tuple[str, str, Any, Any], answer: asyncio.Future[Any]) -> None:
        try:
            result: Any = self._server.handle(*request)
        except ApiError as error:
            result = error
        if not self.deaf and not self._is_lost():
            asyncio.get_running_loop().call_later(self._time(), _settle, answer, result)

    def _is_lost(self) -> bool:
        return self.cut or self._rng.random() < self.losses

    def _time(self) -> float:
        return self._rng.uniform(0.001, self.slow)


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
