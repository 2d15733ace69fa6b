"""Leases of coordination.k8s.io/v1: what of them is read and written, and the requests for it. `election.py` notices
that a lease is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.paths import api_path, path_of
from hvpa.kube.client.transport import Body, Transport, deletion
from hvpa.reconcile.ports import Clock

API_VERSION = "coordination.k8s.io/v1"
POLL = 1.0
"""Seconds at the most between two looks of one who waits for a lease."""

Monotonic = Callable[[], float]
"""Seconds since any fixed time, that no setting of the clock moves."""


def awake_or_not() -> float:
    """Seconds since the system started, those that it slept included (CLOCK_BOOTTIME, where the system has one): to a
    lease it makes no difference whether its holder was suspended or busy."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. `duration`: after which others may take the lease; `renew`: after which a holder that could not renew
    gives up; `retry`: between tries. The defaults are client-go's and kube-controller-manager's."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @property
    def poll(self) -> float:
        """Between two looks of one who waits: often enough to know the last renewal to within a second."""
        return min(self.retry / 2, POLL)

    @property
    def limit(self) -> float:
        """A request may take a quarter of the time in which a renewal must succeed. With the default times: a renewal
        begins 2 s after the last one, over a connection whose peer is gone; 4.5 s after it begins the next try and 7 s
        after it another one, both over new connections, and both end before the 10 s are over."""
        return max(1.0, self.renew / 4)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who (`identity`) wants which Lease, and how it is kept. `shared`: `identity` is that of a group, all of whose
    members hold the lease together; else it is unique to this process. `labels` are what a new Lease gets."""

    namespace: str
    name: str
    identity: str
    times: LeaseTimes = LeaseTimes()
    shared: bool = False
    labels: dict[str, str] = field(default_factory=dict)


class LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """Who holds it since when; times are metav1.MicroTime and for people only."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    """What of the metadata is kept when a Lease is written: all that others may have put there but for owners."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Lease(msgspec.Struct, rename="camel"):
    """A Lease."""

    metadata: LeaseMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = API_VERSION
    kind: str = "Lease"

    @property
    def holder(self) -> str | None:
        """Who holds it by its word, None without a holder."""
        return self.spec.holder_identity or None


def is_earlier(lease: Lease, known: Lease) -> bool:
    """Whether `lease` is surely an earlier state than `known`: an object's versions only grow, unless etcd is restored
    from a backup."""
    try:
        return int(lease.metadata.resource_version) < int(known.metadata.resource_version)
    except ValueError:
        return False


class _Leases(msgspec.Struct):
    items: list[Lease] | None


_decode_lease = msgspec.json.Decoder(Lease).decode
_decode_leases = msgspec.json.Decoder(_Leases).decode


def _lease(response: bytes) -> Lease:
    lease = decoded(_decode_lease, response, "Lease")
    if not lease.metadata.resource_version:  # a write would be without condition
        raise Unreachable("Lease can't be read: no resource version")
    return lease


class LeaseApi:
    """The Leases of one namespace. Every write is conditional on what was read. All requests raise ApiError or
    Unreachable."""

    def __init__(self, transport: Transport, clock: Clock, namespace: str, limit: float) -> None:
        """`limit`: seconds that a request may take."""
        self._transport = transport
        self._clock = clock
        self._limit = limit
        self._namespace = namespace
        self._collection = api_path(API_VERSION) + path_of("namespaces", namespace, "leases")
        self._under_way: set[asyncio.Future[bytes]] = set()
        """Writes that were sent, with no response yet."""

    async def get(self, name: str, limit: float | None = None) -> Lease | None:
        """The Lease, or None where there is none."""
        try:
            path = self._collection + path_of(name)
            return _lease(await self._transport.request("GET", path, timeout=limit or self._limit))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, selector: str) -> list[Lease]:
        """All Leases that match a label selector, as they are at the time of asking (not as a cache has them)."""
        query = {"labelSelector": selector}
        path, limit = self._collection, self._limit
        found = await self._transport.request("GET", path, query, timeout=limit, verb="list")
        return decoded(_decode_leases, found, "Lease").items or []

    async def create(self, name: str, labels: dict[str, str], spec: LeaseSpec) -> Lease:
        """Make a Lease; 409 when there is one."""
        lease = Lease(LeaseMeta(name=name, namespace=self._namespace, labels=labels), spec)
        return await self._write("POST", self._collection, lease, "create")

    async def update(self, lease: Lease, spec: LeaseSpec) -> Lease:
        """Write `spec` into `lease`; 409 when it is another one by now."""
        path = self._collection + path_of(lease.metadata.name)
        return await self._write("PUT", path, Lease(lease.metadata, spec), "update")

    async def empty(self, lease: Lease) -> Lease:
        """Take the holder out of `lease`; 409 when it is another one by now."""
        now = self.now()
        return await self.update(lease, LeaseSpec("", 1, now, now, lease.spec.lease_transitions))

    async def delete(self, lease: Lease) -> None:
        """Delete `lease`; 409 when it is another one by now, and nothing when it is gone."""
        body = deletion(lease.metadata.uid, lease.metadata.resource_version)
        path = self._collection + path_of(lease.metadata.name)
        try:
            await self._transport.request("DELETE", path, None, body, self._limit)
        except ApiError as error:
            if error.status != 404:
                raise

    def now(self) -> str:
        """The current time as metav1.MicroTime: always six digits."""
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def taken(self, lease: Lease | None, identity: str, duration: float | None) -> LeaseSpec:
        """What stands in a Lease that `identity` has taken or renewed; `lease` as it was, `duration` in seconds."""
        now = self.now()
        spec = LeaseSpec(identity, None if duration is None else max(1, int(duration)), now, now, 0)
        if lease is not None and lease.holder == identity:
            spec.acquire_time = lease.spec.acquire_time or now
            spec.lease_transitions = lease.spec.lease_transitions
        elif lease is not None:
            spec.lease_transitions = (lease.spec.lease_transitions or 0) + 1
        return spec

    async def settled(self) -> None:
        """Wait until all writes have ended, those included whose caller was cancelled: what was sent can't be taken
        back, and one who gives everything up has to know what it has. Takes as long as a request may take."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _write(self, method: str, path: str, lease: Lease, verb: str) -> Lease:
        body = Body(msgspec.json.encode(lease))
        sent = asyncio.ensure_future(self._transport.request(method, path, None, body, self._limit, verb))
        self._under_way.add(sent)
        sent.add_done_callback(self._ended)
        return _lease(await asyncio.shield(sent))

    def _ended(self, write: asyncio.Future[bytes]) -> None:
        self._under_way.discard(write)
        if not write.cancelled():
            write.exception()  # so that it counts as seen, also when the caller was cancelled
