"""Leader election by a coordination.k8s.io/v1 Lease, by client-go's rules and default times. `LeaderElector.keep`
renews a lease and ends when it is lost; `holds` looks once more before each write. Shards are such leases, too
(`shard_manager.py`).

Clocks of different machines are never compared: another holder's lease counts from when *we* last saw it change, and
our own from when we *sent* the renewal that succeeded. A holder gives up after LeaseTimes.renew and others take over
after LeaseTimes.duration at the earliest: what lies between is for writes that were sent at the last.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.lease_api import Candidate, Lease, LeaseApi, Monotonic, awake_or_not, is_earlier
from hvpa.reconcile.ports import Clock
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.supervision import Supervisor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

SHORTEST = 0.8
"""Looks come after this part of LeaseTimes.poll, or later: those of several candidates don't stay together."""
RESTART = Backoff(base=0.1, cap=1.0)
"""Between an exception and the next renewal: several fit into the time after which a lease is lost."""
EPSILON = 0.001
"""Seconds after the end of a lease at which it is looked at."""


class LeaderElector:
    """One candidate for one Lease."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        candidate: Candidate,
        monotonic: Monotonic = awake_or_not,
    ) -> None:
        self._me = candidate
        self._times = candidate.times
        self._api = LeaseApi(transport, clock, candidate.namespace, candidate.times.limit)
        self._monotonic = monotonic
        self.on_set_back: Callable[[], None] = lambda: None
        """Called when the Lease is found in an earlier state than it had before: etcd was restored."""
        self._lease: Lease | None = None
        """The Lease as it was last seen or written."""
        self._seen_at = 0.0
        """When it was first seen like that."""
        self._requested_at = 0.0
        """When the request whose response it was had been sent."""
        self._renewed_at: float | None = None
        """When the last renewal that succeeded was *sent*; None while we don't hold the lease."""
        self._tried = False
        """Whether we ever asked for it: it may be ours without our knowing."""
        self._troubled = False
        self._log = log.bind(lease=f"{candidate.namespace}/{candidate.name}", identity=candidate.identity)

    def holds(self) -> bool:
        """Whether we may still write: our lease can't have run out in anybody's eyes, nor will it before a write that
        is sent now has arrived. Checked before every write, so that a process that was stopped for a while, or is
        suspended, writes nothing when it goes on."""
        return self._renewed_at is not None and self._monotonic() - self._renewed_at < self._times.renew

    async def run(self, supervisor: Supervisor, acquired: Callable[[], None] = lambda: None) -> None:
        """Get the lease, call `acquired`, and keep the lease; returns when it is lost. After an exception it goes on
        from where it was: a lease that is held is renewed again, and counts as lost when that comes too late."""
        is_reported = False

        async def hold() -> None:
            nonlocal is_reported
            if not is_reported:
                await self.acquire()
                acquired()
                is_reported = True
            await self.keep()

        await supervisor.keep(f"lease {self._me.name}", hold, backoff=RESTART)

    async def acquire(self) -> None:
        """Return once we hold the lease."""
        self._log.info("waiting for the lease")
        while not await self._try():
            await asyncio.sleep(self._pause())
        self._log.info("lease acquired")

    async def keep(self) -> None:
        """Renew the lease; returns when it is lost. What a try took that failed counts as waiting."""
        began = self._monotonic()
        while self._renewed_at is not None:
            await asyncio.sleep(max(0.0, began + self._times.retry - self._monotonic()))
            began = self._monotonic()
            left = self._renewed_at + self._times.renew - began
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._try()
            except TimeoutError:
                break
            if self._is_of_another(self._lease):
                break
        self._renewed_at = None
        self._log.error("lease lost")

    async def release(self, unless: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Give the lease back, so that the next one need not wait; never raises. Where `unless` finds that others of
        our group go on holding it, it stays; whoever joins while that is being found out keeps it, too, because joining
        is a write."""
        self._renewed_at = None
        if not self._tried:
            return
        await self._api.settled()
        try:
            # A renewal whose response was lost may have got through.
            lease = await self._api.get(self._me.name)
            if lease is None or lease.holder != self._me.identity:
                return
            if unless is not None and await unless():
                return
            await self._api.empty(lease)
        except (ApiError, Unreachable) as error:
            self._log.warning("lease not given back", error=str(error))
        else:
            self._log.info("lease given back")

    async def remove(self) -> None:
        """Delete the Lease, which only we use; never raises."""
        self._renewed_at = None
        await self._api.settled()
        try:
            lease = await self._api.get(self._me.name) if self._tried else None
            if lease is not None and lease.holder == self._me.identity:
                await self._api.delete(lease)
        except (ApiError, Unreachable) as error:
            self._log.warning("lease not deleted", error=str(error))

    # --- tries --------------------------------------------------------------------------------------------------------
    async def _try(self) -> bool:
        """One try to get or renew the lease; False when that failed or another client holds it."""
        try:
            done = await self._acquire_or_renew()
        except (ApiError, Unreachable) as error:
            write = self._log.debug if self._troubled else self._log.warning
            write("lease request failed", error=str(error))
            self._troubled = True
            return False
        self._troubled = False
        return done

    async def _acquire_or_renew(self) -> bool:
        sent = self._monotonic()
        is_ours = self._renewed_at is not None and self._lease is not None and not self._me.shared
        if is_ours and await self._take(self._lease, sent):
            return True  # without a look: a conflict shows if it isn't ours any more
        # One who waits looks again soon: a connection that hangs must not make it miss the end of the lease.
        limit = self._times.limit if self._renewed_at is not None else max(1.0, self._times.retry)
        for _ in range(2):  # the second time when another client wrote to it between our look and our write
            lease = await self._api.get(self._me.name, limit)
            if self._renewed_by_another(lease):
                self._renewed_at = max(self._renewed_at or 0.0, self._requested_at)
                if sent - self._renewed_at <= self._times.renew / 2:
                    self._observe(lease, sent)
                    return True  # else our last look was long ago, and what we know of that renewal is as old
            is_free = self._is_free(lease, sent)
            self._observe(lease, sent)
            if not is_free:
                return False
            if await self._take(lease, sent):
                return True
        return False

    def _renewed_by_another(self, lease: Lease | None) -> bool:
        """Whether a member of our group has renewed the lease since our last look: after that was sent, that is."""
        is_held = self._me.shared and self._renewed_at is not None and self._lease is not None
        is_ours = lease is not None and lease.holder == self._me.identity
        return is_held and is_ours and self._has_changed(lease)

    def _is_free(self, lease: Lease | None, sent: float) -> bool:
        """Whether no other member holds the lease, as far as is known. One that was there and is gone counts as if it
        still stood there: its holder may not have noticed."""
        if lease is not None and not self._is_of_another(lease):
            return True
        if self._has_changed(lease):
            return False
        known = self._lease
        return not self._is_of_another(known) or sent >= self._seen_at + self._duration(known)

    def _has_changed(self, lease: Lease | None) -> bool:
        version = None if self._lease is None else self._lease.metadata.resource_version
        return lease is not None and lease.metadata.resource_version != version

    def _observe(self, lease: Lease | None, sent: float) -> None:
        """`lease` is the response to a request sent at `sent`."""
        if self._has_changed(lease):
            known, self._lease, self._seen_at = self._lease, lease, self._monotonic()
            if known is not None and lease is not None and is_earlier(lease, known):
                self.on_set_back()
        self._requested_at = sent

    def _is_of_another(self, lease: Lease | None) -> bool:
        return lease is not None and lease.holder not in (None, self._me.identity)

    async def _take(self, lease: Lease | None, sent: float) -> bool:
        """Write ourselves into the lease; False where it is another one by now."""
        self._tried = True
        spec = self._api.taken(lease, self._me.identity, self._times.duration)
        try:
            if lease is None:
                self._lease = await self._api.create(self._me.name, self._me.labels, spec)
            else:
                self._lease = await self._api.update(lease, spec)
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        self._seen_at = self._monotonic()
        self._requested_at = self._renewed_at = sent
        return True

    # --- waiting ------------------------------------------------------------------------------------------------------
    def _duration(self, lease: Lease | None) -> float:
        return (lease and lease.spec.lease_duration_seconds) or self._times.duration

    def _pause(self) -> float:
        """Seconds to the next look of one who waits: soon, or when the lease that it waits for runs out."""
        pause = self._times.poll * random.uniform(SHORTEST, 1.0)
        if not self._is_of_another(self._lease):
            return pause
        left = self._seen_at + self._duration(self._lease) - self._monotonic()
        return min(pause, left + EPSILON) if left > 0 else pause
