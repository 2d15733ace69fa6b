"""Kubernetes Events on Hvpas, their workloads and policies: written in the background, repetitions counted, their
number limited."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections import OrderedDict
from dataclasses import dataclass

import msgspec
import structlog

from hvpa.api.objects.read_models import Meta
from hvpa.api.values.text import one_line
from hvpa.core.model import API_VERSION, Event, Involved
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.limits import Limiter, concerns_all
from hvpa.kube.client.paths import PathError, escaped_path
from hvpa.kube.client.transport import MERGE_PATCH, Body, Transport
from hvpa.reconcile.ports import Overloaded, TimeSource

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

SAME_WITHIN = dt.timedelta(minutes=10)
"""The same reason and message within this time raises a count instead of a new Event (as client-go's aggregator)."""
REMEMBERED = 4096
"""Number of Events that are stored for counting (client-go's cache size)."""
BURST = 25
REFILL = dt.timedelta(seconds=30)
"""Each object may have BURST Events, plus one Event per REFILL (client-go's spam filter: 25 and 5 minutes)."""
BACKLOG = 10_000
"""Maximum Events in the queue, half a kilobyte each; further Events are dropped."""
PAUSES = (0.25, 1.0, 4.0, 8.0)
"""Seconds between attempts.

They apply if no response arrives (a lost request, or a restart of the API server), and in addition to a wait that the
API server requested.
"""
MESSAGE_LENGTH = 1024
"""The API server's limit for `message`."""
FLUSH = 2.0
"""Maximum seconds that closing waits for unwritten Events."""
COMPONENT = "hvpa"


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    last: dt.datetime


class EventRecorder:
    """Queues Events without waiting; `run` writes them in order."""

    def __init__(self, transport: Transport, clock: TimeSource, limiter: Limiter | None = None) -> None:
        self._transport = transport
        self._clock = clock
        self._limiter = limiter or Limiter()
        self._queue: asyncio.Queue[tuple[Meta, Event, dt.datetime]] = asyncio.Queue(BACKLOG)
        self._written: OrderedDict[tuple[str, str, str, str], _Written] = OrderedDict()
        self._due: OrderedDict[str, dt.datetime] = OrderedDict()
        """By uid of the object: the time at which all its Events would have been written at one per REFILL."""

    def record(self, hvpa: Meta, event: Event) -> None:
        """Queue an Event on `hvpa`, or on the object that the Event names. Dropped if that object has too many
        Events."""
        if not self._allowed(_involved_in(hvpa, event).uid):
            return
        try:
            self._queue.put_nowait((hvpa, event, self._clock.now()))
        except asyncio.QueueFull:
            log.debug("event dropped", namespace=hvpa.namespace, name=hvpa.name, reason=event.reason)

    async def run(self) -> None:
        """Write Events as they arrive, forever."""
        while True:
            hvpa, event, time = await self._queue.get()
            try:
                await self._write_with_permit(hvpa, event, time)
            except (ApiError, Unreachable, Overloaded, PathError) as error:
                log.debug("event not written", namespace=hvpa.namespace, name=hvpa.name, error=str(error))
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait, for at most FLUSH, until all queued Events are written."""
        try:
            async with asyncio.timeout(FLUSH):
                await self._queue.join()
        except TimeoutError:
            log.debug("events lost at shutdown", count=self._queue.qsize())

    async def _write_with_permit(self, hvpa: Meta, event: Event, time: dt.datetime) -> None:
        # All attempts use the same name: an attempt whose response was lost may have succeeded.
        unique = uuid.uuid4().hex[:16]
        for pause in (*PAUSES, None):
            try:
                async with self._limiter.permit():
                    with self._limiter.write():
                        await self._write(hvpa, event, time, unique)
                return
            except (ApiError, Unreachable, Overloaded) as error:
                if pause is None or (isinstance(error, ApiError) and not concerns_all(error)):
                    raise
            await asyncio.sleep(pause)

    async def _write(self, hvpa: Meta, event: Event, now: dt.datetime, unique: str) -> None:
        """Write an Event that was queued at `now`; its name ends in `unique`."""
        message = one_line(event.message, MESSAGE_LENGTH)
        involved = _involved_in(hvpa, event)
        identity = (involved.uid, event.type, event.reason, message)
        known = self._written.get(identity)
        if known is not None and now - known.last < SAME_WITHIN and await self._count(hvpa, known, now):
            return
        name, space = f"{involved.name[:200].rstrip('-.')}.{unique}", _namespace(hvpa)
        body = {
            "metadata": {"name": name, "namespace": space},
            "involvedObject": {
                "apiVersion": involved.api_version,
                "kind": involved.kind,
                "namespace": hvpa.namespace,
                "name": involved.name,
                "uid": involved.uid,
                "resourceVersion": involved.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": message,
            "source": {"component": COMPONENT},
            "firstTimestamp": _seconds(now),
            "lastTimestamp": _seconds(now),
            "count": 1,
            "reportingComponent": COMPONENT,
        }
        path = escaped_path("api", "v1", "namespaces", space, "events")
        try:
            await self._transport.request("POST", path, body=Body(msgspec.json.encode(body)), verb="create")
        except ApiError as error:
            if error.status != 409:  # it exists: an earlier attempt succeeded
                raise
        self._written[identity] = _Written(name, 1, now)
        self._written.move_to_end(identity)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def _count(self, hvpa: Meta, known: _Written, now: dt.datetime) -> bool:
        """Raise the count of an Event; returns False if the Event does not exist any more."""
        body = msgspec.json.encode({"count": known.count + 1, "lastTimestamp": _seconds(now)})
        path = escaped_path("api", "v1", "namespaces", _namespace(hvpa), "events", known.name)
        try:
            await self._transport.request("PATCH", path, body=Body(body, MERGE_PATCH))
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        known.count += 1
        known.last = now
        return True

    def _allowed(self, uid: str) -> bool:
        now = self._clock.now()
        due = self._due.get(uid, now)
        if not now <= due <= now + BURST * REFILL:  # the time is over, or the clock was set back
            due = now
        if due - now > (BURST - 1) * REFILL:
            return False
        self._due[uid] = due + REFILL
        self._due.move_to_end(uid)
        if len(self._due) > REMEMBERED:
            self._due.popitem(last=False)
        return True


def _namespace(meta: Meta) -> str:
    """The namespace of an object's Events: that of Kubernetes' choice for an object without a namespace."""
    return meta.namespace or "default"


def _involved_in(hvpa: Meta, event: Event) -> Involved:
    """The object of an Event: the object that the Event names, else the Hvpa."""
    return event.involved or Involved(API_VERSION, "Hvpa", hvpa.name, hvpa.uid, hvpa.resource_version)


def _seconds(now: dt.datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
