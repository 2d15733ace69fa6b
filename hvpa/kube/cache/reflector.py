"""List, then watch: keeps one store equal to what an API server holds of one resource in one scope.

At rest there is no list: the watch is resumed from its last resource version (bookmarks keep that fresh). A new list is
made on `410 Gone`, and where watches from this version have failed again and again: what fails may be the version, or
the event that comes after it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, Literal, TypeVar

import msgspec
import structlog

from hvpa.api.objects.read_models import Meta
from hvpa.kube.cache.store import ALL_NAMESPACES, Store
from hvpa.kube.client.errors import UNREADABLE, ApiError, Unreachable, api_error
from hvpa.kube.client.pages import Page, read_list
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import NOT_REQUIRED, Resource, T
from hvpa.kube.objects.salvage import without_wrong_times
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.telemetry import Telemetry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

WATCH_SECONDS = (300, 600)
"""The server ends a watch after a random time in this range, as with client-go's reflector (5 to 10 minutes)."""
SILENCE = 130.0
"""Seconds without a byte after which a watch counts as dead: bookmarks come about once a minute."""
RETRY = Backoff(base=0.1, cap=10.0)
"""Between tries of a list or watch that fails."""
NOT_SERVED_RETRY = (30.0, 300.0)
"""First and largest wait, in seconds, before looking again for a resource that the cluster doesn't serve."""
SECOND_LOOK = 1.0
"""Seconds, at least, from a first 404 until the request that shows whether it was an accident (of a proxy, or of one
API server of several)."""
FRUITLESS = 5
"""Watches in a row that failed without any event, after which the next one begins with a list. client-go's reflector
lists after each of them; an API server that restarts fails two or three."""
PASSING = frozenset({401, 403, 408})
"""Statuses 4xx that say nothing against the request itself: it may succeed later as it is."""
UNANSWERED = frozenset({429, 502, 503, 504})
"""Statuses that say nothing about the position, as little as no response does: the API server is busy, or not there."""
HISTORY = 300.0
"""Seconds after which a resource version is too old to watch from: the API server compacts etcd every five minutes."""
LONG_LIVED = 30.0
"""Seconds after which a watch that breaks counts as one that had worked: its back-off starts anew."""
REMEMBERED = 1000
"""Faults of objects that are remembered, so that each is logged once."""
STUCK = 900.0
"""Seconds without any step of the loop after which a watch counts as stuck; every step is bounded by less."""

STALE = 60.0
"""Seconds for which list and watch have to fail until the store counts as out of date: longer than an API server takes
to restart."""

V = TypeVar("V")
State = Literal["starting", "synced", "not served"]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Named(msgspec.Struct):
    metadata: Meta


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_named = msgspec.json.Decoder(_Named).decode


def _or_none(read: Callable[[msgspec.Raw], V], raw: msgspec.Raw) -> V | None:
    """What `read` makes of an object; None where it can't be read."""
    try:
        return read(raw)
    except UNREADABLE:
        return None


class Freshness:
    """How fresh a store is: when its list or watch last succeeded, since when it fails, and why. Bookmarks count, about
    one a minute, and so does the regular end of a watch. What a store holds is used however old it is; its age is
    logged, and reported by /readyz and by a metric."""

    def __init__(self, plural: str, scope: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.succeeded_at: float | None = None
        """When list or watch last succeeded, by `monotonic`; None: never yet."""
        self.problem: str | None = None
        """Why list or watch fails, in a few words without names and addresses; None when neither does."""
        self.stale = False
        """Whether the store is out of date, as far as is known."""
        self._log = log.bind(resource=plural, scope=scope or "all")
        self._monotonic = monotonic
        self._failing_since: float | None = None

    def succeeded(self) -> None:
        """A list was complete, a watch brought an event or a bookmark, or the server ended it in the regular way."""
        if self.stale:
            self._log.info("cache is up to date again", seconds=self._age())
        self.succeeded_at = self._monotonic()
        self.problem = self._failing_since = None
        self.stale = False

    def failed(self, error: Exception, *, had_worked: bool = False) -> None:
        """List or watch failed; `had_worked`: after it had been open for long, only quiet."""
        now = self._monotonic()
        self.problem = "no response that can be used"
        if isinstance(error, ApiError):
            self.problem = f"{error.status} {error.reason}".rstrip()
        if self._failing_since is None or had_worked:
            self._failing_since = now
        if not self.stale and now - self._failing_since >= STALE:
            self.stale = True
            event = "cache is out of date: neither list nor watch succeeds"
            self._log.warning(event, error=str(error), seconds=self._age())

    def _age(self) -> int | None:
        """Seconds since the last success; None where there was none."""
        return None if self.succeeded_at is None else round(self._monotonic() - self.succeeded_at)


class _Unreadable(Unreachable):
    """What the server sends makes no watch."""


class _Expired(Exception):
    """The resource version is too old (or unknown): list again."""


class Reflector(Generic[T]):
    """Feeds `store` from the watch of `resource` in `scope` (a namespace or ALL_NAMESPACES). `on_state` is called at
    each change of `state`, and at each failure."""

    def __init__(
        self,
        transport: Transport,
        resource: Resource[T],
        scope: str,
        store: Store[T],
        telemetry: Telemetry,
        on_state: Callable[[], None] = lambda: None,
    ) -> None:
        self.resource = resource
        self.scope = scope
        self.state: State = "starting"
        self.freshness = Freshness(resource.plural, scope)
        self._transport = transport
        self._store = store
        self._telemetry = telemetry
        self._on_state = on_state
        self._rng = random.Random()
        self._position: str | None = None
        """Resource version up to which the store is complete; None: a list is needed."""
        self._fruitless = 0
        """Watches from this position, one after the other, that failed without any event."""
        self._not_found = 0
        """Responses 404, one after the other."""
        self._last_step = time.monotonic()
        self._logged: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Objects that can't be read, and why, as far as that was logged."""

    def healthy(self) -> bool:
        """Whether the loop is getting on (it may well be getting errors)."""
        return time.monotonic() - self._last_step < STUCK

    async def run(self) -> None:
        """List and watch for ever."""
        failures, plural = 0, self.resource.plural
        while True:
            self._last_step = time.monotonic()
            began: float | None = None  # the watch
            delay = 0.0
            try:
                if self._position is None:
                    self._position = await self._list()
                    self._listed()
                before, began = self._position, time.monotonic()
                await self._watch(before)
                self._telemetry.watch_restarted(plural, "ended")
                if time.monotonic() - began > 1.0 or self._position != before:
                    failures = self._fruitless = 0
                    self.freshness.succeeded()
                else:
                    failures += 1
                    self._fail(_Unreadable("the watch ends as soon as it begins"), failures)
                    delay = RETRY.delay(failures, self._rng)
            except _Expired:
                self._telemetry.watch_restarted(plural, "expired")
                self._position = None
                # A list that succeeds is no reason to list again at once.
                failures = _one_more(failures, began)
                delay = RETRY.delay(failures, self._rng)
            except (ApiError, Unreachable) as error:
                # The watch goes on after the last event that it delivered.
                failures = _one_more(failures, began)
                delay = self._failed(error, failures)
            await asyncio.sleep(delay)

    def _listed(self) -> None:
        """A list was complete."""
        self._fruitless = self._not_found = 0
        self._set_state("synced")
        self.freshness.succeeded()

    def _failed(self, error: ApiError | Unreachable, failures: int) -> float:
        """Note the failure; the delay until the next try, in seconds."""
        if isinstance(error, ApiError) and error.status == 404:
            return self._missing(failures)
        if isinstance(error, ApiError) and error.status == 403 and self.resource in NOT_REQUIRED:
            self._not_found = max(1, self._not_found)  # a right that is missing is no accident
            return self._missing(failures)
        self._not_found = 0
        self._telemetry.watch_restarted(self.resource.plural, "error")
        write = log.warning if failures in (3, 10) or failures % 100 == 0 else log.debug
        where = {"resource": self.resource.plural, "scope": self.scope or "all"}
        write("watch failed", **where, error=str(error), tries=failures)
        self._fail(error, failures)
        wait = error.retry_after if isinstance(error, ApiError) else None
        return RETRY.delay(failures, self._rng) + (wait or 0.0)

    def _missing(self, failures: int) -> float:
        """The response was 404: the delay until the next request, in seconds. One such response empties no store."""
        self._position = None
        self._not_found += 1
        if self._not_found == 1:
            return max(SECOND_LOOK, RETRY.delay(failures, self._rng))
        if self.state != "not served":
            where = {"resource": self.resource.plural, "api": self.resource.api}
            log.warning("resource is not served by the cluster, or may not be read", **where)
            self._store.clear(self.scope)
        self._set_state("not served")
        first, largest = NOT_SERVED_RETRY
        return min(largest, first * 2.0 ** min(self._not_found - 2, 10)) * self._rng.uniform(0.75, 1.0)

    def _fail(self, error: ApiError | Unreachable, failures: int) -> None:
        """Note a failure of list or watch, the first or one of several in a row; give the position up where it may be
        what makes watches fail."""
        self.freshness.failed(error, had_worked=failures == 1)
        self._on_state()
        status = error.status if isinstance(error, ApiError) else None
        if status in UNANSWERED or (status is None and not isinstance(error, _Unreadable)):
            succeeded = self.freshness.succeeded_at
            if succeeded is not None and time.monotonic() - succeeded > HISTORY:
                self._position = None
            return
        self._fruitless += 1
        is_refused = status is not None and 400 <= status < 500 and status not in PASSING
        if is_refused or self._fruitless >= FRUITLESS:
            self._fruitless = 0
            self._position = None

    async def _list(self) -> str:
        """Put all objects into the store, page by page; the list's resource version."""
        listed: set[Key] = set()
        resource_version = ""

        def take(page: Page) -> None:
            nonlocal resource_version
            if not resource_version:
                resource_version = page.metadata.resource_version
                if not resource_version:  # whatever it is, it says nothing about what there is
                    raise Unreachable(f"list of {self.resource.plural} can't be read: no resource version")
                self._store.restart(self.scope, resource_version)
            for item in page.items or ():
                if (meta := self._put(item)) is not None:
                    listed.add(Key(meta.namespace, meta.name))
            self._last_step = time.monotonic()

        try:
            await read_list(self._transport, self._path(), take)
        except ApiError as error:
            if error.status == 410:
                raise _Expired from error
            raise
        self._store.finish_list(self.scope, listed, resource_version)
        return resource_version

    async def _watch(self, resource_version: str) -> None:
        """Follow the changes since `resource_version` until the server ends the watch."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(self._rng.randint(*WATCH_SECONDS)),
        }
        try:
            async with aclosing(self._transport.stream(self._path(), query, SILENCE)) as lines:
                async for line in lines:
                    self._last_step = time.monotonic()
                    self._take(line)
        except ApiError as error:
            if error.status == 410 or "resource version" in str(error).lower():
                raise _Expired from error
            raise

    def _take(self, line: bytes) -> None:
        """Apply one watch event."""
        try:
            event = _decode_event(line)
            if event.type == "ERROR":
                raise api_error(None, bytes(event.object))
            meta = self._put(event.object) if event.type in ("ADDED", "MODIFIED") else None
            if meta is None and (named := _or_none(_decode_named, event.object)) is not None:
                meta = named.metadata
        except UNREADABLE as error:
            raise _Unreadable(f"watch of {self.resource.plural} can't be read: {error}") from error
        if meta is None:
            return  # logged by _put; the next event or bookmark moves the position on
        if event.type == "DELETED":
            self._store.delete(Key(meta.namespace, meta.name), meta.resource_version)
        self._position = meta.resource_version
        self._fruitless = 0
        self._store.seen(self.scope, meta.resource_version)
        self.freshness.succeeded()

    def _put(self, raw: msgspec.Raw) -> Meta | None:
        """Decode one object into the store; its metadata. One that can't be decoded harms no other: it counts as
        absent, and None is returned."""
        try:
            obj: T | None = self.resource.decode(raw)
        except UNREADABLE as error:
            obj = _or_none(self._salvaged, raw)
            if obj is None:
                self._telemetry.bad_object(self.resource.plural)
                named = _or_none(_decode_named, raw)
                meta = Meta() if named is None else named.metadata
                self._store.delete(Key(meta.namespace, meta.name))
                self._log_once("object can't be read", meta, error)
                return None
            self._log_once("a time of an object can't be read", obj.metadata, error)
        assert obj is not None
        self._store.put(obj)
        return obj.metadata

    def _salvaged(self, raw: msgspec.Raw) -> T | None:
        """The object without the times that can't be read; None where that doesn't help."""
        mended = without_wrong_times(raw)
        return None if mended is None else self.resource.decode(mended)

    def _log_once(self, event: str, meta: Meta, error: Exception) -> None:
        """Log what is wrong with an object: once, and again when something else is wrong with it; it may be written
        every second."""
        wrong = (meta.uid or meta.name, str(error))
        known = wrong in self._logged
        self._logged[wrong] = None
        self._logged.move_to_end(wrong)
        while len(self._logged) > REMEMBERED:
            self._logged.popitem(last=False)
        write = log.debug if known else log.warning
        where = {"kind": self.resource.kind, "namespace": meta.namespace, "object": meta.name}
        write(event, **where, error=str(error)[:500])

    def _path(self) -> str:
        return self.resource.path(None if self.scope == ALL_NAMESPACES else self.scope)

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._on_state()


def _one_more(failures: int, began: float | None) -> int:
    """How many failures in a row there are with one more; a watch that began (None: it did not) long ago had worked."""
    had_worked = began is not None and time.monotonic() - began > LONG_LIVED
    return 1 if had_worked else failures + 1
