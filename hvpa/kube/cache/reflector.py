"""List, then watch: keeps a store equal to a resource in one scope of the API server.

At rest there is no list: a watch resumes from its last resource version, which bookmarks keep recent. The reflector
lists again on `410 Gone`, after an outage of the API server, and if watches from the same version fail repeatedly:
the cause may be the version, or the event that follows it.

Versions only grow, unless etcd is restored from a backup. A watch from a version that the API server has not reached
again delivers nothing. Before a broken watch resumes, a small consistent list must therefore return a version that is
not below the watch's (docs/decisions/0057).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import msgspec
import structlog

from hvpa.api.objects.read_models import Meta
from hvpa.kube.cache.store import ALL_NAMESPACES, Store, is_older
from hvpa.kube.client.errors import UNREADABLE, ApiError, Unreachable, api_error, decoded
from hvpa.kube.client.pages import LIST_TIMEOUT, ListPage, decode_page, read_list
from hvpa.kube.client.transport import MOST_BYTES, Transport
from hvpa.kube.objects.resources import NOT_REQUIRED, ApiResource, T
from hvpa.kube.objects.salvage import without_wrong_times
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.telemetry import Telemetry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

WATCH_SECONDS = (300, 600)
"""The server ends a watch after a random time in this range, as with client-go's reflector (5 to 10 minutes)."""
SILENCE = 130.0
"""Seconds without a byte after which a watch counts as dead. Bookmarks arrive about once a minute."""
RETRY = Backoff(base=0.1, cap=10.0)
"""Back-off between attempts of a failing list or watch."""
NOT_SERVED_RETRY = (30.0, 300.0)
"""First and longest wait, in seconds, before the next look for a resource that the cluster doesn't serve."""
SECOND_LOOK = 1.0
"""Minimum seconds between a first 404 and the request that confirms it. A single 404 may come from a proxy, or from
one API server of several."""
FRUITLESS = 5
"""Consecutive watches that fail without any event before the reflector lists again. client-go's reflector lists after
each of them; an API server that restarts fails two or three."""
PASSING = frozenset({401, 403, 408})
"""4xx statuses that do not mean that the request is wrong: it may succeed later."""
BUSY = 429
UNANSWERED = frozenset({429, 502, 503, 504})
"""Statuses that, like a missing response, prove nothing about the position: the API server is busy or down."""
OUTAGE = 10.0
"""Seconds without any response after which the next request is a list.

A restore of etcd takes an outage, and afterwards new objects may soon have the versions of lost objects. A failover
between API servers takes less time.
"""
REGULAR_END = 0.9 * WATCH_SECONDS[0]
"""Seconds after which the end of a watch counts as regular."""
SET_BACK = "the cluster was set back to an earlier state, for example by a restore of etcd: listing again"
LONG_LIVED = 30.0
"""Seconds after which a watch that breaks counts as having worked: its back-off restarts."""
REMEMBERED = 1000
"""Number of object faults that are stored so that each is logged once."""
STUCK = 900.0
"""Seconds without any step of the loop after which a watch counts as stuck. Each step has a shorter limit."""

STALE = 60.0
"""Seconds of failing lists and watches after which the store counts as out of date; longer than an API server takes
to restart."""

V = TypeVar("V")
WatchState = Literal["starting", "synced", "not served"]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Named(msgspec.Struct):
    metadata: Meta


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_named = msgspec.json.Decoder(_Named).decode


def _or_none(read: Callable[[msgspec.Raw], V], raw: msgspec.Raw) -> V | None:
    """The result of `read`; None if the object can't be read."""
    try:
        return read(raw)
    except UNREADABLE:
        return None


class Reports:
    """Receives the reports of a reflector. This base class only logs failures."""

    def state_changed(self) -> None:
        """The reflector's `state` changed, or its list or watch failed."""

    def listed(self, reflector: Reflector[Any]) -> None:
        """A list was complete."""

    def set_back(self, reflector: Reflector[Any]) -> None:
        """The cluster returned to an earlier state."""

    def failed(self, task: str, error: Exception) -> None:
        """A bug of the program prevented the processing of an object."""
        log.error("an object could not be processed", task=task, exc_info=error)


class Freshness:
    """How fresh a store is: when list or watch last succeeded, since when they fail, and why.

    Bookmarks count as success (about every minute), and so does the regular end of a watch. HVPA uses a store
    whatever its age; the age is logged and reported by /readyz and by a metric.
    """

    def __init__(self, plural: str, scope: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.succeeded_at: float | None = None
        """When list or watch last succeeded, by `monotonic`; None: never yet."""
        self.problem: str | None = None
        """Why list or watch fails, in a few words without names and addresses; None if neither fails."""
        self.stale = False
        """Whether the store is known to be out of date."""
        self._log = log.bind(resource=plural, scope=scope or "all")
        self._monotonic = monotonic
        self._failing_since: float | None = None

    def succeeded(self) -> None:
        """Note that a list was complete, that a watch delivered an event or bookmark, or that a watch ended
        regularly."""
        if self.stale:
            self._log.info("cache is up to date again", seconds=self._age())
        self.succeeded_at = self._monotonic()
        self.problem = self._failing_since = None
        self.stale = False

    def failed(self, error: Exception, *, had_worked: bool = False) -> None:
        """Note that list or watch failed. `had_worked`: the watch had been open for a long time, only without
        events."""
        now = self._monotonic()
        self.problem = _in_a_few_words(error)
        if self._failing_since is None or had_worked:
            self._failing_since = now
        if not self.stale and now - self._failing_since >= STALE:
            self.stale = True
            event = "cache is out of date: neither list nor watch succeeds"
            self._log.warning(event, error=str(error), seconds=self._age())

    def outdated(self, problem: str) -> None:
        """Note that the content of the store is known to be wrong, until the next success."""
        self.problem, self.stale = problem, True
        self._log.warning("cache is out of date", error=problem, seconds=self._age())

    def failing_for(self) -> float:
        """Seconds for which list and watch have failed; 0 if they work."""
        return 0.0 if self._failing_since is None else self._monotonic() - self._failing_since

    def _age(self) -> int | None:
        """Seconds since the last success; None if there was none."""
        return None if self.succeeded_at is None else round(self._monotonic() - self.succeeded_at)


class _Unreadable(Unreachable):
    """The server's response is not a valid watch."""


def _in_a_few_words(error: Exception) -> str:
    """The error without names and addresses."""
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}".rstrip()
    if isinstance(error, Unreachable):
        return "no usable response"
    return f"internal error: {type(error).__name__}"


class _Expired(Exception):
    """The resource version is too old or unknown, or the server's version is below it: list again."""


class Reflector(Generic[T]):
    """Feeds `store` from the watch of `resource` in `scope` (a namespace or ALL_NAMESPACES)."""

    def __init__(
        self,
        transport: Transport,
        resource: ApiResource[T],
        scope: str,
        store: Store[T],
        telemetry: Telemetry,
        reports: Reports | None = None,
    ) -> None:
        self.task = f"watch {resource.plural}"
        self.resource = resource
        self.scope = scope
        self.state: WatchState = "starting"
        self.freshness = Freshness(resource.plural, scope)
        self._transport = transport
        self._store = store
        self._telemetry = telemetry
        self._reports = reports or Reports()
        self._rng = random.Random()
        self._position: str | None = None
        """Resource version up to which the store is complete; None: a list is needed."""
        self._fruitless = 0
        """Consecutive watches from this position that failed without any event."""
        self._not_found = 0
        """Consecutive 404 responses."""
        self._failures = 0
        """Consecutive failures of lists and watches."""
        self._unchecked = False
        """Whether a watch broke, so that the server's version must be checked before the next watch."""
        self._watching: asyncio.Timeout | None = None
        """The timeout of the open watch."""
        self._hurry = asyncio.Event()
        self._last_step = time.monotonic()
        self._logged: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Objects that can't be read, and the reasons, as far as logged."""

    def healthy(self) -> bool:
        """Whether the loop is running, even if its requests fail."""
        return time.monotonic() - self._last_step < STUCK

    async def run(self) -> None:
        """List and watch forever."""
        while True:
            self._last_step = time.monotonic()
            delay = await self._round()
            self._hurry.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._hurry.wait()

    async def _round(self) -> float:
        """List or check the server's version if necessary, then watch until the watch ends; returns the seconds to
        wait."""
        began: float | None = None  # start of the watch
        try:
            if not await self._is_positioned():
                return 0.0
            before, began = self._position, time.monotonic()
            assert before is not None
            await self._watch(before)
            self._telemetry.watch_restarted(self.resource.plural, "ended")
            self._unchecked = time.monotonic() - began < REGULAR_END
            return self._ended(before, began)
        except _Expired:
            self._telemetry.watch_restarted(self.resource.plural, "expired")
            self._position = None
            # A list that succeeds is no reason to list again at once.
            self._failures = _one_more(self._failures, began)
            return RETRY.delay(self._failures, self._rng)
        except (ApiError, Unreachable) as error:
            # The next watch continues after the last event that was delivered.
            self._unchecked = True
            self._failures = _one_more(self._failures, began)
            return self._failed(error, self._failures)

    async def _is_positioned(self) -> bool:
        """List, or check the server's version after a broken watch. Returns False if another list is needed already.

        Raises _Expired if the server's version is below the watch's.
        """
        if self._position is None:
            self._hurry.clear()
            position = await self._list()
            if self._hurry.is_set():
                return False
            self._position, self._unchecked = position, False
            self._listed()
        elif self._unchecked:
            if await self.is_set_back():
                raise _Expired
            self._unchecked = False
        return self._position is not None

    async def is_set_back(self) -> bool:
        """Whether the server's version of the resource is below the version known before.

        A list without a version is consistent: no API server may answer it from a state older than any state already
        shown. Raises ApiError and Unreachable.
        """
        position = self._position
        body = await self._transport.page(self._path(), {"limit": "1"}, LIST_TIMEOUT, MOST_BYTES)
        version = decoded(decode_page, body, f"the list {self._path()}").metadata.resource_version
        return position is not None and is_older(version, position)

    def relist(self) -> None:
        """List again at once: the cluster was set back, as another reflector noticed."""
        self._position = None
        self._store.distrust(self.scope)
        self.freshness.outdated(SET_BACK)
        self._hurry.set()
        if self._watching is not None and not self._watching.expired():
            self._watching.reschedule(asyncio.get_running_loop().time())

    def crashed(self, error: Exception) -> None:
        """Note that `run` ended with an exception: the store may be incomplete."""
        self._position = None
        self.freshness.failed(error)
        self._reports.state_changed()

    def _ended(self, before: str, began: float) -> float:
        """Handle the end of a watch by the server; returns the seconds until the next watch.

        `before` is the version from which the watch started, `began` its start.
        """
        if time.monotonic() - began > 1.0 or self._position != before:
            self._failures = self._fruitless = 0
            if self._position is not None:
                self.freshness.succeeded()
            return 0.0
        self._failures += 1
        self._fail(_Unreadable("the watch ends immediately"), self._failures)
        return RETRY.delay(self._failures, self._rng)

    def _listed(self) -> None:
        """Note that a list was complete."""
        self._fruitless = self._not_found = 0
        self.freshness.succeeded()
        self._set_state("synced")
        self._reports.listed(self)

    def _failed(self, error: ApiError | Unreachable, failures: int) -> float:
        """Note the failure; returns the seconds until the next attempt."""
        if isinstance(error, ApiError) and error.status == 404:
            return self._missing(failures)
        if isinstance(error, ApiError) and error.status == 403 and self.resource in NOT_REQUIRED:
            self._not_found = max(1, self._not_found)  # a missing permission is no accident
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
        """Handle a 404; returns the seconds until the next request. A single 404 empties no store."""
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
        """Note a failure of list or watch (`failures` in a row); drop the position if it may be the cause."""
        self.freshness.failed(error, had_worked=failures == 1)
        self._reports.state_changed()
        status = error.status if isinstance(error, ApiError) else None
        if status in UNANSWERED or (status is None and not isinstance(error, _Unreadable)):
            if status != BUSY and self.freshness.failing_for() >= OUTAGE:
                self._position = None
            return
        self._fruitless += 1
        is_refused = status is not None and 400 <= status < 500 and status not in PASSING
        if is_refused or self._fruitless >= FRUITLESS:
            self._fruitless = 0
            self._position = None

    async def _list(self) -> str:
        """Put all objects into the store, page by page; returns the list's resource version."""
        listed: set[Key] = set()
        resource_version = ""

        def take(page: ListPage) -> None:
            nonlocal resource_version
            if not resource_version:
                resource_version = page.metadata.resource_version
                if not resource_version:  # not a list that HVPA can use
                    raise Unreachable(f"list of {self.resource.plural} can't be read: no resource version")
                if self._store.restart(self.scope, resource_version):
                    self.freshness.outdated(SET_BACK)
                    self._reports.set_back(self)
            for item in page.items or ():
                if (meta := self._put(item, resource_version)) is not None:
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
            async with (
                asyncio.timeout(None) as self._watching,
                aclosing(self._transport.stream(self._path(), query, SILENCE)) as lines,
            ):
                async for line in lines:
                    self._last_step = time.monotonic()
                    self._take(line)
        except TimeoutError as error:  # by `relist`
            raise _Expired from error
        except ApiError as error:
            if error.status == 410 or "resource version" in str(error).lower():
                raise _Expired from error
            raise
        finally:
            self._watching = None

    def _take(self, line: bytes) -> None:
        """Apply a watch event."""
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
            return  # logged by _put; the next event or bookmark advances the position
        if self._position is not None and is_older(meta.resource_version, self._position):
            raise _Expired  # a stream never goes back, unless the cluster does
        if event.type == "DELETED":
            self._apply(partial(self._store.delete, Key(meta.namespace, meta.name), meta.resource_version))
        self._position = meta.resource_version
        self._fruitless = 0
        self._store.note_delivered(self.scope, meta.resource_version)
        self.freshness.succeeded()

    def _put(self, raw: msgspec.Raw, listed_at: str | None = None) -> Meta | None:
        """Decode an object into the store; returns its metadata.

        An object that can't be decoded counts as absent (returns None) and affects no other object. `listed_at` is
        the version of the list that contains the object.
        """
        try:
            obj: T | None = self.resource.decode(raw)
        except UNREADABLE as error:
            obj = _or_none(self._salvaged, raw)
            if obj is None:
                self._telemetry.bad_object(self.resource.plural)
                named = _or_none(_decode_named, raw)
                meta = Meta() if named is None else named.metadata
                self._apply(partial(self._store.delete, Key(meta.namespace, meta.name)))
                self._log_once("object can't be read", meta, error)
                return None
            self._log_once("a time of an object can't be read", obj.metadata, error)
        assert obj is not None
        if listed_at is None:
            self._apply(partial(self._store.put, obj))
        else:
            self._apply(partial(self._store.put_listed, obj, self.scope, listed_at))
        return obj.metadata

    def _apply(self, change: Callable[[], bool]) -> None:
        """Change the store. An object that causes a failure affects no other object."""
        try:
            change()
        except Exception as error:
            self._reports.failed(self.task, error)

    def _salvaged(self, raw: msgspec.Raw) -> T | None:
        """The object without its unreadable times; None if it still can't be read."""
        mended = without_wrong_times(raw)
        return None if mended is None else self.resource.decode(mended)

    def _log_once(self, event: str, meta: Meta, error: Exception) -> None:
        """Log a fault of an object once, and again only if the fault changes: the object may be written every
        second."""
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

    def _set_state(self, state: WatchState) -> None:
        if state != self.state:
            self.state = state
            self._reports.state_changed()


def _one_more(failures: int, began: float | None) -> int:
    """The number of consecutive failures including the current failure; 1 if the watch had worked for a long time.

    `began` is the start of the watch, None if there was no watch.
    """
    had_worked = began is not None and time.monotonic() - began > LONG_LIVED
    return 1 if had_worked else failures + 1
