"""A dashboard over a small API server that can be listed and watched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, web

from hvpa.core.model import Settings
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.server.endpoints import Guard
from hvpa_lab.dashboard.access import OwnToken
from hvpa_lab.dashboard.server import Dashboard
from hvpa_lab.dashboard.table import HvpaTable
from hvpa_lab.dashboard.watched_hvpas import WatchedHvpas
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import Doc
from tests.unit.kube.fake_server import FakeServer, background

USAGE = "/apis/metrics.k8s.io/"
REVIEWS = "/apis/auth"


@dataclass
class Watched:
    """The API server: what `api` holds, a watch of Hvpas, and what pods use (None: it is not served)."""

    api: Api
    usage: list[Doc] | None = None
    reviews: dict[str, Doc] = field(default_factory=dict)
    """The status of the reviews of a token, or of a user's verb."""
    watchers: list[asyncio.Queue[Doc]] = field(default_factory=list)
    version: int = 100

    def change(self, kind: str, hvpa: Doc, namespace: str = "default") -> None:
        """An event of the watch: ADDED, MODIFIED or DELETED, of what is held afterwards."""
        self.version += 1
        meta = {
            "uid": "uid-0",
            **hvpa["metadata"],
            "namespace": namespace,
            "resourceVersion": str(self.version),
        }
        changed = {**hvpa, "metadata": meta}
        held = self.api.objects.setdefault((namespace, "hvpas"), [])
        held[:] = [document for document in held if document["metadata"]["name"] != meta["name"]]
        held += [changed] if kind != "DELETED" else []
        for watcher in self.watchers:
            watcher.put_nowait({"type": kind, "object": changed})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The response to any request."""
        if request.path.startswith(REVIEWS):
            spec = (await request.json())["spec"]
            asked = spec.get("token") or f"{spec['user']} {spec['resourceAttributes']['verb']}"
            return web.json_response({"status": self.reviews.get(asked, {})}, status=201)
        if request.path.startswith(USAGE):
            if self.usage is None:
                return web.json_response({"code": 404, "message": "no metrics"}, status=404)
            return web.json_response({"items": self.usage})
        if request.query.get("watch"):
            return await self._watch(request)
        query = {name: request.query.getall(name) for name in request.query}
        code, body = self.api.answer(request.path, query)
        content = json.loads(body)
        if "items" in content:
            content["metadata"]["resourceVersion"] = str(self.version)
        return web.json_response(content, status=code)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response, events = web.StreamResponse(), asyncio.Queue[Doc]()
        await response.prepare(request)
        self.watchers.append(events)
        while True:
            await response.write(json.dumps(await events.get()).encode() + b"\n")


class Client:
    """A browser's part: requests with a token, and streams."""

    def __init__(self, session: ClientSession, base: str, token: str) -> None:
        self.session = session
        self.base = base
        self.headers = {"Authorization": f"Bearer {token}"}

    async def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Status and text of a response."""
        async with self.session.request(
            method, self.base + path, headers={**self.headers, **headers}
        ) as response:
            return response.status, await response.text()

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        """A stream of events."""
        async with self.session.get(self.base + path, headers=self.headers) as response:
            assert response.status == 200, await response.text()
            assert response.headers["Content-Type"] == "text/event-stream"
            yield Stream(response)


class Stream:
    """The events of a stream, and the parts that they have made up so far."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.first: Doc = {}
        self.parts: Doc = {}
        self.ended = ""

    async def next(self) -> str:
        """Take one event in; its kind. Empty at the end."""
        lines = []
        async for line in self._response.content:
            if line == b"\n":
                break
            lines.append(line.decode().rstrip("\n"))
        if not lines or lines[0].startswith(":"):
            return lines[0] if lines else ""
        kind, content = lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))
        if kind == "first":
            self.first = content
        elif kind == "ended":
            self.ended = content["message"]
        else:
            self.parts.update(content)
        return kind

    async def until(self, condition: Any) -> Doc:
        """Take events in until the parts fulfil a condition."""
        async with asyncio.timeout(30):
            while not condition(self.parts):
                assert await self.next(), "the stream has ended"
        return self.parts


@asynccontextmanager
async def serving(
    server: Watched, folder: Path, guard: Guard | None = None, scope: str = ALL_NAMESPACES
) -> AsyncIterator[tuple[Client, Dashboard]]:
    """A dashboard, and a client with its token."""
    fake, own = FakeServer(server.handle), OwnToken()
    async with fake.connected(folder) as transport:
        watched = WatchedHvpas(transport, Settings())
        table = HvpaTable(transport, scope, watched.changed)
        dashboard = Dashboard(transport, table, watched, guard or own, scope)
        served = await dashboard.listen("127.0.0.1", 0, None)
        base = f"http://127.0.0.1:{served.port}"
        dashboard.hosts = frozenset({base.removeprefix("http://")})
        try:
            async with ClientSession() as session, background(table.run()):
                yield Client(session, base, own.token), dashboard
        finally:
            await served.cleanup()
            await watched.close()
