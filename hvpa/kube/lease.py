"""Leader election by a coordination.k8s.io/v1 Lease, by client-go's rules and default times.

Clocks of different machines are never compared: another holder's lease counts from when *we* last saw it change.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from hvpa.kube.errors import ApiError, Unreachable
from hvpa.kube.transport import Body, Transport
from hvpa.reconcile.ports import Clock

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

API_VERSION = "coordination.k8s.io/v1"
JITTER = 1.2
"""Tries are spread over RETRY to RETRY * JITTER (client-go's JitterFactor)."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. `duration`: after which others may take the lease; `renew`: after which a holder that could not renew
    gives up; `retry`: between tries. The defaults are client-go's and kube-controller-manager's."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class _LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Lease(msgspec.Struct, rename="camel"):
    metadata: _LeaseMeta
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)
    api_version: str = API_VERSION
    kind: str = "Lease"


_decode = msgspec.json.Decoder(_Lease).decode


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who (`identity`, unique to this process) wants which Lease, and how it is kept."""

    namespace: str
    name: str
    identity: str
    times: LeaseTimes = LeaseTimes()


class LeaderElector:
    """One candidate for one Lease."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        candidate: Candidate,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._namespace = candidate.namespace
        self._name = candidate.name
        self._identity = candidate.identity
        self._times = candidate.times
        self._monotonic = monotonic
        self._lease: _Lease | None = None
        """The Lease as it was last seen or written, and when that was first seen."""
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        """When the last renewal that succeeded was *sent*; None while we don't hold the lease."""

    def holds(self) -> bool:
        """Whether we may still write: our lease can't have run out in anybody's eyes. Checked before every write, so
        that a process that was stopped for a while writes nothing when it goes on."""
        return self._renewed_at is not None and self._monotonic() - self._renewed_at < self._times.duration

    async def acquire(self) -> None:
        """Return once we hold the lease."""
        log.info("waiting for the lease", lease=f"{self._namespace}/{self._name}", identity=self._identity)
        while not await self._try():
            await asyncio.sleep(self._times.retry * random.uniform(1.0, JITTER))
        log.info("lease acquired", lease=f"{self._namespace}/{self._name}", identity=self._identity)

    async def keep(self) -> None:
        """Renew the lease; returns when it is lost."""
        while self._renewed_at is not None:
            await asyncio.sleep(self._times.retry)
            left = self._renewed_at + self._times.renew - self._monotonic()
            try:
                async with asyncio.timeout(max(0.0, left)):
                    if not await self._try() and self._held_by_other():
                        break
            except TimeoutError:
                pass
            if self._monotonic() - self._renewed_at >= self._times.renew:
                break
        self._renewed_at = None
        log.error("lease lost", lease=f"{self._namespace}/{self._name}", identity=self._identity)

    async def release(self) -> None:
        """Give the lease back, so that the next one need not wait; never raises."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        now = self._now()
        try:
            lease = await self._get()  # a renewal that was cut off may have got through
            if lease is None or lease.spec.holder_identity != self._identity:
                return
            await self._put(_Lease(lease.metadata, _LeaseSpec("", 1, now, now, lease.spec.lease_transitions)))
        except (ApiError, Unreachable, msgspec.MsgspecError) as error:
            log.warning("lease not given back", error=str(error))
        else:
            log.info("lease given back", lease=f"{self._namespace}/{self._name}")

    async def _try(self) -> bool:
        """One try to get or renew the lease; False when that failed or somebody else holds it."""
        try:
            return await self._acquire_or_renew()
        except ApiError as error:
            if error.status not in (404, 409):
                log.warning("lease request failed", error=str(error))
            self._lease = None if error.status == 409 and self._renewed_at is not None else self._lease
            return False
        except (Unreachable, msgspec.MsgspecError) as error:
            log.warning("lease request failed", error=str(error))
            return False

    async def _acquire_or_renew(self) -> bool:
        sent = self._monotonic()
        lease = self._lease
        if (
            self._renewed_at is None or lease is None
        ):  # else we hold it, and a conflict will tell if it was taken
            lease = await self._get()
            if lease is not None:
                self._observe(lease)
                if not self._free(lease):
                    return False
        await self._take(lease, sent)
        return True

    def _free(self, lease: _Lease) -> bool:
        """Whether nobody else holds the lease, as far as we can tell."""
        holder = lease.spec.holder_identity
        if not holder or holder == self._identity:
            return True
        duration = lease.spec.lease_duration_seconds or self._times.duration
        return self._monotonic() - self._seen_at >= duration

    def _held_by_other(self) -> bool:
        return self._lease is not None and self._lease.spec.holder_identity not in ("", None, self._identity)

    def _observe(self, lease: _Lease) -> None:
        if self._lease is None or lease.metadata.resource_version != self._lease.metadata.resource_version:
            self._seen_at = self._monotonic()
        self._lease = lease

    async def _take(self, lease: _Lease | None, sent: float) -> None:
        now = self._now()
        spec = _LeaseSpec(self._identity, max(1, int(self._times.duration)), now, now, 0)
        if lease is None:
            fresh = _Lease(_LeaseMeta(name=self._name, namespace=self._namespace), spec)
            answer = await self._transport.request(
                "POST",
                self._path(None),
                body=Body(msgspec.json.encode(fresh)),
                timeout=self._limit(),
                verb="create",
            )
            self._lease = _decode(answer)
        else:
            if lease.spec.holder_identity == self._identity:
                spec.acquire_time = lease.spec.acquire_time or now
                spec.lease_transitions = lease.spec.lease_transitions
            else:
                spec.lease_transitions = (lease.spec.lease_transitions or 0) + 1
            self._lease = await self._put(_Lease(lease.metadata, spec))
        self._seen_at = self._monotonic()
        self._renewed_at = sent

    async def _get(self) -> _Lease | None:
        try:
            return _decode(
                await self._transport.request("GET", self._path(self._name), timeout=self._limit())
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _put(self, lease: _Lease) -> _Lease:
        body = Body(msgspec.json.encode(lease))
        path = self._path(self._name)
        return _decode(await self._transport.request("PUT", path, None, body, self._limit(), "update"))

    def _path(self, name: str | None) -> str:
        base = f"/apis/{API_VERSION}/namespaces/{self._namespace}/leases"
        return base if name is None else f"{base}/{name}"

    def _limit(self) -> float:
        """A request may take half the time in which a renewal must succeed (as client-go's)."""
        return max(1.0, self._times.renew / 2)

    def _now(self) -> str:
        """The present time as metav1.MicroTime: always six digits."""
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
