"""Leader election by a coordination.k8s.io/v1 Lease, with client-go's rules and default times.

`LeaderElector.keep` renews a lease and returns when it is lost; `holds` checks again before each write. Shards use
the same class (`shard_manager.py`).

Clocks of different machines are never compared: another holder's lease counts from when *we* last saw it change, our
own from when we *sent* the renewal that succeeded. A holder gives up after LeaseTimes.renew, and others take over
after LeaseTimes.duration at the earliest. The time between is for writes that were sent last.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.lease_api import Candidate, Lease, LeaseApi, Monotonic, awake_or_not, is_earlier
from hvpa.reconcile.ports import TimeSource
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.supervision import Supervisor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

SHORTEST = 0.8
"""Polls wait a random time between this fraction of LeaseTimes.poll and all of it, so that candidates don't stay in
step."""
RESTART = Backoff(base=0.1, cap=1.0)
"""Back-off between an exception and the next renewal: several attempts fit before the lease is lost."""
EPSILON = 0.001
"""Seconds after the end of a lease at which it is read."""


class LeaderElector:
    """A candidate for a Lease."""

    def __init__(
        self,
        transport: Transport,
        clock: TimeSource,
        candidate: Candidate,
        monotonic: Monotonic = awake_or_not,
    ) -> None:
        self._me = candidate
        self._times = candidate.times
        self._api = LeaseApi(transport, clock, candidate.namespace, candidate.times.limit)
        self._monotonic = monotonic
        self.on_set_back: Callable[[], None] = lambda: None
        """Called when the Lease is in an earlier state than before: etcd was restored."""
        self._lease: Lease | None = None
        """The Lease as last seen or written."""
        self._seen_at = 0.0
        """When the Lease was first seen in this version."""
        self._requested_at = 0.0
        """When the last request that read or wrote the Lease was sent."""
        self._renewed_at: float | None = None
        """When the last successful renewal was *sent*; None while we don't hold the lease."""
        self._tried = False
        """Whether we ever tried to write the lease: we may then hold it without seeing the response."""
        self._troubled = False
        self._log = log.bind(lease=f"{candidate.namespace}/{candidate.name}", identity=candidate.identity)

    def holds(self) -> bool:
        """Whether we may still write: no other candidate can take our lease before a write sent now arrives.

        This is checked before every write, so that a process that was stopped or suspended writes nothing when it
        continues.
        """
        return self._renewed_at is not None and self._monotonic() - self._renewed_at < self._times.renew

    async def run(self, supervisor: Supervisor, acquired: Callable[[], None] = lambda: None) -> None:
        """Get the lease, call `acquired`, and keep the lease; returns when it is lost.

        After an exception it continues in its state: a held lease is renewed again, and counts as lost if that is too
        late.
        """
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
        """Renew the lease; returns when it is lost. The time of a failed attempt counts as waiting time."""
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
        """Give the lease back, so that the next candidate need not wait; never raises.

        If `unless` finds that other members of our group still hold it, it stays. A member that joins during the
        check keeps it as well, because joining is a write.
        """
        self._renewed_at = None
        if not self._tried:
            return
        await self._api.settled()
        try:
            # A renewal whose response was lost may have succeeded.
            lease = await self._api.get(self._me.name)
            if lease is None or lease.holder != self._me.identity:
                return
            if unless is not None and await unless():
                return
            await self._api.empty(lease)
        except (ApiError, Unreachable) as error:
            self._log.warning("lease not released", error=str(error))
        else:
            self._log.info("lease released")

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

    # --- attempts -----------------------------------------------------------------------------------------------------
    async def _try(self) -> bool:
        """Try once to get or renew the lease; returns False if that failed or another client holds it."""
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
            return True  # without a read: a conflict shows that it isn't ours any more
        # A waiting candidate reads again soon: a connection that hangs must not make it miss the end of the lease.
        limit = self._times.limit if self._renewed_at is not None else max(1.0, self._times.retry)
        for _ in range(2):  # the second time if another client wrote between our read and our write
            lease = await self._api.get(self._me.name, limit)
            if self._renewed_by_another(lease):
                self._renewed_at = max(self._renewed_at or 0.0, self._requested_at)
                if sent - self._renewed_at <= self._times.renew / 2:
                    self._observe(lease, sent)
                    return True  # otherwise the last read, and with it the renewal, is too old
            is_free = self._is_free(lease, sent)
            self._observe(lease, sent)
            if not is_free:
                return False
            if await self._take(lease, sent):
                return True
        return False

    def _renewed_by_another(self, lease: Lease | None) -> bool:
        """Whether a member of our group has renewed the lease since our last read was sent."""
        is_held = self._me.shared and self._renewed_at is not None and self._lease is not None
        is_ours = lease is not None and lease.holder == self._me.identity
        return is_held and is_ours and self._has_changed(lease)

    def _is_free(self, lease: Lease | None, sent: float) -> bool:
        """Whether no other member holds the lease, as far as known.

        A Lease that was deleted counts as if it still existed: its holder may not have noticed.
        """
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
        """Store `lease`, the response to a request sent at `sent`."""
        if self._has_changed(lease):
            known, self._lease, self._seen_at = self._lease, lease, self._monotonic()
            if known is not None and lease is not None and is_earlier(lease, known):
                self.on_set_back()
        self._requested_at = sent

    def _is_of_another(self, lease: Lease | None) -> bool:
        return lease is not None and lease.holder not in (None, self._me.identity)

    async def _take(self, lease: Lease | None, sent: float) -> bool:
        """Write ourselves into the lease; returns False if the lease has changed since."""
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
        """Seconds until a waiting candidate reads again: LeaseTimes.poll, or less if the lease ends earlier."""
        pause = self._times.poll * random.uniform(SHORTEST, 1.0)
        if not self._is_of_another(self._lease):
            return pause
        left = self._seen_at + self._duration(self._lease) - self._monotonic()
        return min(pause, left + EPSILON) if left > 0 else pause
