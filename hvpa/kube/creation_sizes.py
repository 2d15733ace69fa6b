"""Writes the sizes of new pods: one object per namespace, so that a write has the changes of many Hvpas.

While a write to a namespace's object is in flight, further changes wait and are then written together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from hvpa.api.objects.read_models import Meta
from hvpa.kube.client.errors import not_found_error
from hvpa.kube.client.transport import JSON, MERGE_PATCH, Body
from hvpa.kube.objects.resources import HVPA_SIZES
from hvpa.reconcile.ports import Conflict, SizeChanges, WriteError

OBJECT = "hvpa"
"""Name of each namespace's object, which the policy's binding names too."""

Send = Callable[[Meta, str, str, Mapping[str, str], Body], Awaitable[bytes]]
"""Sends a write for an Hvpa: method, path, query and body. Raises WriteError."""


class _Batch:
    """The changes of a write."""

    def __init__(self) -> None:
        self.changes: dict[str, str | None] = {}
        self.done = False
        """Whether the write has ended; `error` is set if it failed."""
        self.error: WriteError | None = None


class CreationSizes:
    """Writes entries of the namespaces' HvpaSizes. `take` gets each object after its write."""

    def __init__(self, send: Send, take: Callable[[bytes], object]) -> None:
        self._send = send
        self._take = take
        self._batches: dict[str, _Batch] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks by namespace, as long as a write to it is in flight or waits."""

    async def write(self, hvpa: Meta, changes: SizeChanges) -> None:
        """Write these entries, and remove those that are None; returns when the object has them. Raises WriteError."""
        namespace = hvpa.namespace
        batch = self._batches.setdefault(namespace, _Batch())
        batch.changes.update(changes)
        lock = self._locks.setdefault(namespace, asyncio.Lock())
        async with lock:
            if not batch.done:
                await self._send_batch(hvpa, batch)
        if batch.error is not None:
            raise batch.error

    async def _send_batch(self, hvpa: Meta, batch: _Batch) -> None:
        if self._batches.get(hvpa.namespace) is batch:
            del self._batches[hvpa.namespace]
        try:
            await self._send_all(hvpa, batch.changes)
        except WriteError as error:
            batch.error = error
        batch.done = True

    async def _send_all(self, hvpa: Meta, changes: SizeChanges) -> None:
        path = HVPA_SIZES.path(hvpa.namespace, OBJECT)
        patch = Body(msgspec.json.encode({"sizes": changes}), MERGE_PATCH)
        try:
            self._take(await self._send(hvpa, "PATCH", path, {}, patch))
            return
        except Conflict as error:
            if not_found_error(error) is None:
                raise
        entries = {key: size for key, size in changes.items() if size is not None}
        if not entries:
            return
        document: dict[str, Any] = {
            "apiVersion": HVPA_SIZES.api.removeprefix("/apis/"),
            "kind": HVPA_SIZES.kind,
            "metadata": {"name": OBJECT, "labels": {"app.kubernetes.io/managed-by": "hvpa"}},
            "sizes": entries,
        }
        body = Body(msgspec.json.encode(document), JSON)
        self._take(await self._send(hvpa, "POST", HVPA_SIZES.path(hvpa.namespace), {}, body))
