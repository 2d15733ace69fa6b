"""The floor of a step: a bare client that repeats the operator's writes, and does nothing else.

The number of requests of each kind is the audit log's count for a step of the operator, spread evenly over the objects.
The bodies are those of a sample of its writes, without their conditions, and modified if they would write existing
values. Workloads are patched first, object by object, with the operator's concurrency. Events are written one after
another at the same time, as the operator does. Everything is prepared before, so only the sending is timed.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.scale.audit import Requested, RequestKind
from benchmarks.scale.http import JSON, MERGE, STRATEGIC, Client, each
from benchmarks.scale.objects import APPS, HVPAS, Item, make_items

WORKLOADS, STATUS, SPEC = (
    RequestKind("patch", "deployments"),
    RequestKind("patch", "hvpas/status"),
    RequestKind("patch", "hvpas"),
)
NEW_EVENT, EVENT = RequestKind("create", "events"), RequestKind("patch", "events")
ORDER = (WORKLOADS, STATUS, SPEC)
"""The operator's order of writes."""
OTHER_REPLICAS, OTHER_CPU = 50, 7000
"""Values that no step has set."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Share:
    """Requests of a kind: their number, and bodies to choose from."""

    kind: RequestKind
    count: int
    bodies: list[bytes]

    def of(self, index: int, objects: int) -> range:
        """Return the numbers of an object's requests."""
        return range(self.count * index // objects, self.count * (index + 1) // objects)


@dataclass(frozen=True, slots=True)
class Write:
    """A request."""

    method: str
    path: str
    body: bytes
    content: str


def shares(step: Requested, earlier: Sequence[Requested] = ()) -> list[Share]:
    """Return the operator's writes in a step. Raises ValueError if a kind is unknown here, or was not sampled in this
    step or in `earlier` steps (Events are dropped when there are very many)."""
    writes = []
    events = step.kinds[NEW_EVENT] + step.kinds[EVENT]  # Events with a raised count are treated as new
    counted: Mapping[RequestKind, int] = {**{kind: step.kinds[kind] for kind in ORDER}, NEW_EVENT: events}
    if unknown := [str(kind) for kind in step.kinds if kind.is_write and kind not in (*counted, EVENT)]:
        raise ValueError(f"the operator's step has writes that the floor doesn't know: {', '.join(unknown)}")
    for kind, count in counted.items():
        bodies = next(
            (sample for requested in (step, *earlier) if (sample := requested.bodies.get(kind))), []
        )
        if kind == WORKLOADS:  # preferably those that change both axes
            bodies = [body for body in bodies if b'"replicas"' in body and b'"requests"' in body] or bodies
        if count and not bodies:
            raise ValueError(f"no {kind} in the sample of the operator's step")
        writes.append(Share(kind, count, bodies))
    return writes


class Floor:
    """The bare client; runs in a separate process."""

    def __init__(
        self, kubeconfig: Path, objects: int, concurrency: int, shares_of_writes: list[Share]
    ) -> None:
        self._client = Client(kubeconfig, "floor")
        self._items = make_items(objects)
        self._concurrency = concurrency
        self._shares = shares_of_writes
        self._writes: list[list[Write]] = []
        self._events: list[list[Write]] = []

    async def begin(self) -> None:
        """See `Served`; prepares all requests."""
        for index, item in enumerate(self._items):
            writes: dict[bool, list[Write]] = {False: [], True: []}
            for share in self._shares:
                for turn, number in enumerate(share.of(index, len(self._items))):
                    body = _decode(share.bodies[number % len(share.bodies)])
                    writes[share.kind == NEW_EVENT].append(_write(share.kind, item, body, turn))
            self._writes.append(writes[False])
            self._events.append(writes[True])

    async def run(self) -> dict[str, float]:
        """Send all requests."""
        started = time.perf_counter()
        events: asyncio.Queue[Write] = asyncio.Queue()

        async def write(index: int) -> None:
            for request in self._writes[index]:
                await self._send(request)
            for request in self._events[index]:
                events.put_nowait(request)

        async def write_events() -> None:
            for _ in range(sum(map(len, self._events))):
                await self._send(await events.get())

        async with asyncio.TaskGroup() as group:
            group.create_task(write_events())
            group.create_task(each(range(len(self._items)), self._concurrency, write))
        return {"seconds": time.perf_counter() - started, "requests": self._client.requests}

    async def _send(self, request: Write) -> None:
        await self._client.send(request.method, request.path, request.body, request.content)


_numbers = itertools.count(1)


def _write(kind: RequestKind, item: Item, body: dict[str, Any], turn: int) -> Write:
    """Return a sampled request, adapted to another object; `turn` counts the requests of a kind for an object."""
    metadata = body.setdefault("metadata", {})
    metadata.pop("resourceVersion", None)
    if kind == NEW_EVENT:
        metadata.update(name=f"{item.name}.{next(_numbers):016x}", namespace=item.namespace)
        body["involvedObject"].update(name=item.name, namespace=item.namespace)
        return Write("POST", item.collection("/api/v1", "events"), msgspec.json.encode(body), JSON)
    if kind == WORKLOADS:
        body["spec"]["replicas"] = OTHER_REPLICAS + turn
        for container in body["spec"].get("template", {}).get("spec", {}).get("containers", ()):
            resources = container["resources"]
            resources.setdefault("requests", {})["cpu"] = f"{OTHER_CPU + turn}m"
            if "cpu" in resources.get("limits", {}):
                resources["limits"]["cpu"] = f"{2 * (OTHER_CPU + turn)}m"
        path = item.path(APPS, "deployments", "?fieldManager=hvpa")
        return Write("PATCH", path, msgspec.json.encode(body), STRATEGIC)
    if kind == SPEC:
        body["spec"]["replicas"] = OTHER_REPLICAS + turn
    suffix = "/status" if kind == STATUS else ""
    path = item.path(HVPAS, "hvpas", f"{suffix}?fieldManager=hvpa")
    return Write("PATCH", path, msgspec.json.encode(body), MERGE)
