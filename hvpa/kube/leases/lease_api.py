"""Leases of coordination.k8s.io/v1: their used fields, and the requests. `election.py` detects the loss of a lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.paths import api_path, escaped_path
from hvpa.kube.client.transport import Body, Transport, deletion
from hvpa.reconcile.ports import TimeSource

API_VERSION = "coordination.k8s.io/v1"
POLL = 1.0
"""Maximum seconds between two reads of a candidate that waits for a lease."""

Monotonic = Callable[[], float]
"""Seconds since any fixed time, unaffected by settings of the clock."""


def awake_or_not() -> float:
    """Seconds since the system started, including suspended time (CLOCK_BOOTTIME, if the system has it).

    For a lease it makes no difference whether its holder was suspended or busy.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times in seconds. The defaults are those of client-go and kube-controller-manager."""

    duration: float = 15.0
    """After this, others may take the lease."""
    renew: float = 10.0
    """After this, a holder that could not renew gives up."""
    retry: float = 2.0
    """Between attempts."""

    @property
    def poll(self) -> float:
        """Between two reads of a waiting candidate: short enough to date the last renewal to within a second."""
        return min(self.retry / 2, POLL)

    @property
    def limit(self) -> float:
        """Timeout of a request: a quarter of `renew`.

        Example with the default times, over a connection whose peer is dead: a renewal begins 2 s after the last
        renewal, the next attempt after 4.5 s, another after 7 s, both over new connections. Both end before the 10 s
        are over.
        """
        return max(1.0, self.renew / 4)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A process that may hold a Lease, and how it keeps the Lease."""

    namespace: str
    name: str
    identity: str
    """Unique to this process, or to the group if `shared`."""
    times: LeaseTimes = LeaseTimes()
    shared: bool = False
    """Whether all members of a group hold the lease together, under the same identity."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of a new Lease."""


class LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """The holder of a Lease since when; times are metav1.MicroTime and only for people."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    """The metadata that is kept when a Lease is written: all that others may have set, except owners."""

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
        """The holder according to the Lease; None without a holder."""
        return self.spec.holder_identity or None


def is_earlier(lease: Lease, known: Lease) -> bool:
    """Whether `lease` is certainly an earlier state than `known`: versions only grow, unless etcd is restored from a
    backup."""
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
    if not lease.metadata.resource_version:  # a write would be unconditional
        raise Unreachable("Lease can't be read: no resource version")
    return lease


class LeaseApi:
    """The Leases of a namespace. Every write requires the version that was read. All requests raise ApiError or
    Unreachable."""

    def __init__(self, transport: Transport, clock: TimeSource, namespace: str, limit: float) -> None:
        """`limit`: timeout of a request, in seconds."""
        self._transport = transport
        self._clock = clock
        self._limit = limit
        self._namespace = namespace
        self._collection = api_path(API_VERSION) + escaped_path("namespaces", namespace, "leases")
        self._under_way: set[asyncio.Future[bytes]] = set()
        """Writes without a response yet."""

    async def get(self, name: str, limit: float | None = None) -> Lease | None:
        """The Lease, or None if it does not exist."""
        try:
            path = self._collection + escaped_path(name)
            return _lease(await self._transport.request("GET", path, timeout=limit or self._limit))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, selector: str) -> list[Lease]:
        """All Leases that match a label selector, in their current state (not from a cache)."""
        query = {"labelSelector": selector}
        path, limit = self._collection, self._limit
        response = await self._transport.request("GET", path, query, timeout=limit, verb="list")
        return decoded(_decode_leases, response, "Lease").items or []

    async def create(self, name: str, labels: dict[str, str], spec: LeaseSpec) -> Lease:
        """Create a Lease; 409 if it exists."""
        lease = Lease(LeaseMeta(name=name, namespace=self._namespace, labels=labels), spec)
        return await self._write("POST", self._collection, lease, "create")

    async def update(self, lease: Lease, spec: LeaseSpec) -> Lease:
        """Write `spec` into `lease`; 409 if the lease has changed since."""
        path = self._collection + escaped_path(lease.metadata.name)
        return await self._write("PUT", path, Lease(lease.metadata, spec), "update")

    async def empty(self, lease: Lease) -> Lease:
        """Remove the holder from `lease`; 409 if the lease has changed since."""
        now = self.now()
        return await self.update(lease, LeaseSpec("", 1, now, now, lease.spec.lease_transitions))

    async def delete(self, lease: Lease) -> None:
        """Delete `lease`; 409 if the lease has changed since, no error if it does not exist."""
        body = deletion(lease.metadata.uid, lease.metadata.resource_version)
        path = self._collection + escaped_path(lease.metadata.name)
        try:
            await self._transport.request("DELETE", path, None, body, self._limit)
        except ApiError as error:
            if error.status != 404:
                raise

    def now(self) -> str:
        """The current time as metav1.MicroTime: always six digits."""
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def taken(self, lease: Lease | None, identity: str, duration: float | None) -> LeaseSpec:
        """The spec of a Lease that `identity` has taken or renewed; `lease` is its previous state, `duration` in
        seconds."""
        now = self.now()
        spec = LeaseSpec(identity, None if duration is None else max(1, int(duration)), now, now, 0)
        if lease is not None and lease.holder == identity:
            spec.acquire_time = lease.spec.acquire_time or now
            spec.lease_transitions = lease.spec.lease_transitions
        elif lease is not None:
            spec.lease_transitions = (lease.spec.lease_transitions or 0) + 1
        return spec

    async def settled(self) -> None:
        """Wait until all writes have ended, also those whose caller was cancelled; at most the timeout of a request.

        A sent write can't be taken back, and a member that gives everything up must first know its leases.
        """
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
            write.exception()  # mark as retrieved, also if the caller was cancelled
