"""The floor of a step: a bare client that writes what the operator wrote, and does nothing else.

How many requests of each kind there are is what the audit log counted in a step of the operator, spread evenly over the
objects; the bodies are those of a sample of its writes, without their conditions, and changed where they would say what
is there already. Workloads are patched first, object by object, so many requests at a time as the operator has under
way; Events are written one after another beside that, as the operator does. All is prepared before, so that what is
timed is the sending.
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

from benchmarks.scale.audit import Kind, Requested
from benchmarks.scale.http import JSON, MERGE, STRATEGIC, Client, each
from benchmarks.scale.objects import APPS, HVPAS, Item, make_items

WORKLOADS, STATUS, SPEC = Kind("patch", "deployments"), Kind("patch", "hvpas/status"), Kind("patch", "hvpas")
NEW_EVENT, EVENT = Kind("create", "events"), Kind("patch", "events")
ORDER = (WORKLOADS, STATUS, SPEC)
"""In which the operator writes."""
OTHER_REPLICAS, OTHER_CPU = 50, 7000
"""Values that no step has set."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Share:
    """Requests of one kind: how many in all, and bodies to choose from."""

    kind: Kind
    count: int
    bodies: list[bytes]

    def of(self, index: int, objects: int) -> range:
        """The numbers of those that fall to an object."""
        return range(self.count * index // objects, self.count * (index + 1) // objects)


@dataclass(frozen=True, slots=True)
class Write:
    """One request."""

    method: str
    path: str
    body: bytes
    content: str


def shares(step: Requested, earlier: Sequence[Requested] = ()) -> list[Share]:
    """What the operator wrote in a step; raises ValueError where a kind is unknown here, or none was sampled, neither
    in this step nor in `earlier` ones (Events are dropped when there are very many)."""
    found = []
    events = step.kinds[NEW_EVENT] + step.kinds[EVENT]  # those that raise a count are taken for new ones
    counted: Mapping[Kind, int] = {**{kind: step.kinds[kind] for kind in ORDER}, NEW_EVENT: events}
    if unknown := [str(kind) for kind in step.kinds if kind.is_write and kind not in (*counted, EVENT)]:
        raise ValueError(f"the operator's step has writes that the floor doesn't know: {', '.join(unknown)}")
    for kind, count in counted.items():
        bodies = next((sample for one in (step, *earlier) if (sample := one.bodies.get(kind))), [])
        if kind == WORKLOADS:  # those that change both axes, if there are any
            bodies = [body for body in bodies if b'"replicas"' in body and b'"requests"' in body] or bodies
        if count and not bodies:
            raise ValueError(f"no {kind} in the sample of the operator's step")
        found.append(Share(kind, count, bodies))
    return found


class Floor:
    """The bare client; served in a process of its own."""

    def __init__(self, kubeconfig: Path, objects: int, concurrency: int, what: list[Share]) -> None:
        self._client = Client(kubeconfig, "floor")
        self._items = make_items(objects)
        self._concurrency = concurrency
        self._shares = what
        self._writes: list[list[Write]] = []
        self._events: list[list[Write]] = []

    async def begin(self) -> None:
        """See `Served`; makes all requests."""
        for index, item in enumerate(self._items):
            writes: dict[bool, list[Write]] = {False: [], True: []}
            for share in self._shares:
                for turn, number in enumerate(share.of(index, len(self._items))):
                    body = _decode(share.bodies[number % len(share.bodies)])
                    writes[share.kind == NEW_EVENT].append(_write(share.kind, item, body, turn))
            self._writes.append(writes[False])
            self._events.append(writes[True])

    async def run(self) -> dict[str, float]:
        """Write all."""
        started = time.perf_counter()
        events: asyncio.Queue[Write] = asyncio.Queue()

        async def write(index: int) -> None:
            for one in self._writes[index]:
                await self._send(one)
            for one in self._events[index]:
                events.put_nowait(one)

        async def write_events() -> None:
            for _ in range(sum(map(len, self._events))):
                await self._send(await events.get())

        async with asyncio.TaskGroup() as group:
            group.create_task(write_events())
            group.create_task(each(range(len(self._items)), self._concurrency, write))
        return {"seconds": time.perf_counter() - started, "requests": self._client.requests}

    async def _send(self, one: Write) -> None:
        await self._client.send(one.method, one.path, one.body, one.content)


_numbers = itertools.count(1)


def _write(kind: Kind, item: Item, body: dict[str, Any], turn: int) -> Write:
    """A sampled request, as it would be for another object; `turn` counts those of one kind for one object."""
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
