"""Kubernetes Events on Hvpas and their workloads: written in the background, repetitions as a count, never too many."""

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
from hvpa.kube.client.paths import PathError, path_of
from hvpa.kube.client.transport import MERGE_PATCH, Body, Transport
from hvpa.reconcile.ports import Clock, Overloaded

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

SAME_WITHIN = dt.timedelta(minutes=10)
"""The same reason and message again within this time is counted, not written anew (as client-go's aggregator)."""
REMEMBERED = 4096
"""Events that are remembered for counting (client-go's cache size)."""
BURST = 25
REFILL = dt.timedelta(seconds=30)
"""Each object may have BURST Events, and one more per REFILL (client-go's spam filter: 25 and 5 minutes)."""
BACKLOG = 10_000
"""Events that wait to be written, half a kilobyte each; further ones are dropped."""
PAUSES = (0.25, 1.0, 4.0, 8.0)
"""Seconds between tries where no response comes (a request may be lost, or the API server restart), or where the API
server asks to wait, on top of that."""
MESSAGE_LENGTH = 1024
"""The API server's limit for `message`."""
FLUSH = 2.0
"""Seconds that closing waits for Events that are still to be written."""
COMPONENT = "hvpa"


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    last: dt.datetime


class EventRecorder:
    """Takes Events without waiting; `run` writes them one after another."""

    def __init__(self, transport: Transport, clock: Clock, limiter: Limiter | None = None) -> None:
        self._transport = transport
        self._clock = clock
        self._limiter = limiter or Limiter()
        self._queue: asyncio.Queue[tuple[Meta, Event, dt.datetime]] = asyncio.Queue(BACKLOG)
        self._written: OrderedDict[tuple[str, str, str, str], _Written] = OrderedDict()
        self._due: OrderedDict[str, dt.datetime] = OrderedDict()
        """By uid of the object: when all its Events would have been written, had there been one per REFILL."""

    def record(self, hvpa: Meta, event: Event) -> None:
        """Note an Event on `hvpa`, or on the object that the Event names. Dropped where that object has too many."""
        if not self._allowed(_involved_in(hvpa, event).uid):
            return
        try:
            self._queue.put_nowait((hvpa, event, self._clock.now()))
        except asyncio.QueueFull:
            log.debug("event dropped", namespace=hvpa.namespace, name=hvpa.name, reason=event.reason)

    async def run(self) -> None:
        """Write Events as they come, for ever."""
        while True:
            hvpa, event, time = await self._queue.get()
            try:
                await self._write_with_permit(hvpa, event, time)
            except (ApiError, Unreachable, Overloaded, PathError) as error:
                log.debug("event not written", namespace=hvpa.namespace, name=hvpa.name, error=str(error))
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait, for a short while, until all noted Events are written."""
        try:
            async with asyncio.timeout(FLUSH):
                await self._queue.join()
        except TimeoutError:
            log.debug("events lost at shutdown", count=self._queue.qsize())

    async def _write_with_permit(self, hvpa: Meta, event: Event, time: dt.datetime) -> None:
        # The same name for all tries: one whose response is lost may have got through.
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
        """Write an Event that was noted at `now`; its name ends in `unique`."""
        message = one_line(event.message, MESSAGE_LENGTH)
        involved = _involved_in(hvpa, event)
        identity = (involved.uid, event.type, event.reason, message)
        known = self._written.get(identity)
        if known is not None and now - known.last < SAME_WITHIN and await self._count(hvpa, known, now):
            return
        name = f"{involved.name[:200].rstrip('-.')}.{unique}"
        body = {
            "metadata": {"name": name, "namespace": hvpa.namespace},
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
        path = path_of("api", "v1", "namespaces", hvpa.namespace, "events")
        try:
            await self._transport.request("POST", path, body=Body(msgspec.json.encode(body)), verb="create")
        except ApiError as error:
            if error.status != 409:  # it is there: an earlier try got through
                raise
        self._written[identity] = _Written(name, 1, now)
        self._written.move_to_end(identity)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def _count(self, hvpa: Meta, known: _Written, now: dt.datetime) -> bool:
        """Raise the count of an Event that exists; False when it doesn't any more."""
        body = msgspec.json.encode({"count": known.count + 1, "lastTimestamp": _seconds(now)})
        path = path_of("api", "v1", "namespaces", hvpa.namespace, "events", known.name)
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
        if not now <= due <= now + BURST * REFILL:  # that is over, or the clock was set back
            due = now
        if due - now > (BURST - 1) * REFILL:
            return False
        self._due[uid] = due + REFILL
        self._due.move_to_end(uid)
        if len(self._due) > REMEMBERED:
            self._due.popitem(last=False)
        return True


def _involved_in(hvpa: Meta, event: Event) -> Involved:
    """The object that an Event is about: the one that it names, else the Hvpa."""
    return event.involved or Involved(API_VERSION, "Hvpa", hvpa.name, hvpa.uid, hvpa.resource_version)


def _seconds(now: dt.datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
