"""An API server in memory for the operator's own client code: it stores each write after a delay and reports it.
Without sockets, so only the operator is measured."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import Body

Json = dict[str, Any]
LATENCY = 0.005
"""Seconds that a request takes."""


class MemoryServer:
    """Replaces a `Transport`. `on_write` gets the path and the object after each write."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.on_write: Callable[[str, Json], None] = lambda path, stored: None
        self.renewals: list[float] = []
        """Times of the Lease's writes, by the event loop's clock."""
        self._versions = itertools.count(1000)

    def store(self, path: str, manifest: Json) -> Json:
        """Store an object in a new version."""
        metadata = {**manifest["metadata"], "resourceVersion": str(next(self._versions))}
        stored = self.objects[path] = {**manifest, "metadata": metadata}
        return stored

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = 10.0,
        verb: str = "",
    ) -> bytes:
        """See `Transport.request`. Raises ApiError."""
        await asyncio.sleep(LATENCY)
        sent: Json = {} if body is None else json.loads(body.data)
        target = path.removesuffix("/status").removesuffix("/scale")
        if method == "POST":
            name = sent.get("metadata", {}).get("name", "event")
            return json.dumps(self._written(f"{target}/{name}", sent)).encode()
        known = self.objects.get(target)
        if method == "PUT":
            return json.dumps(self._written(target, sent)).encode()
        if method == "PATCH":
            version = sent.get("metadata", {}).pop("resourceVersion", None)
            if known is not None and version not in (None, known["metadata"]["resourceVersion"]):
                raise ApiError(409, "Conflict", "the object has changed")
            return json.dumps(self._written(target, _merged(known or {"metadata": {}}, sent))).encode()
        if known is None:
            raise ApiError(404, "NotFound", f"{target} not found")
        return json.dumps(known).encode()

    def _written(self, path: str, manifest: Json) -> Json:
        stored = self.store(path, manifest)
        if "/leases" in path:
            self.renewals.append(asyncio.get_running_loop().time())
        self.on_write(path, stored)
        return stored


def _merged(old: Any, new: Any) -> Any:
    """Apply a merge patch; containers are merged by name."""
    if (
        isinstance(old, list)
        and isinstance(new, list)
        and all(isinstance(entry, dict) for entry in old + new)
    ):
        if all("name" in entry for entry in old + new) and old:
            changes = {entry["name"]: entry for entry in new}
            return [_merged(entry, changes.get(entry["name"], {})) for entry in old]
        return new
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
