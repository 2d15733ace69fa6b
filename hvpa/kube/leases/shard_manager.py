"""A member of a group of replicas that share the work: it keeps its Leases, watches the other members, and takes and
gives up shards.

Three conditions must hold while it writes to an Hvpa: its own Lease is fresh, the group's Lease is fresh, and the
shard's Lease names it. Only the first two are renewed. A shard's Lease is written when the shard moves, and is valid
as long as its holder's own Lease is. So the traffic at rest does not depend on the number of shards.

The group's Lease is the Lease that a single leader would hold. While the group holds it, in the name of its number of
shards, no single leader works and no replicas with another number of shards do.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import LABEL_SHARDS, Members, Names, plan
from hvpa.kube.leases.election import EPSILON, RESTART, SHORTEST, LeaderElector
from hvpa.kube.leases.lease_api import Candidate, Lease, LeaseApi, Monotonic, awake_or_not
from hvpa.reconcile.ports import TimeSource
from hvpa.reconcile.supervision import Supervisor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

DRAIN_TIMEOUT = 5.0
"""Seconds in which reconciles of a shard that is given up may still start a write."""
LOOK = 0.01
"""Seconds between two checks whether the reconciles of a shard that is given up have ended."""
_Trouble = (ApiError, Unreachable)


class ShardListener(Protocol):
    """Receives the changes of the shards to work on."""

    def gained(self, shards: frozenset[int]) -> None:
        """The Hvpas of these shards are ours now."""
        ...

    def given_up(self, shards: frozenset[int]) -> None:
        """Start no more reconciles of the Hvpas of these shards."""
        ...

    def is_busy(self, shard: int) -> bool:
        """Whether a reconcile of any of the shard's Hvpas is in progress."""
        ...


class ShardKeeper:
    """A member, in a single event loop. `run` it, then `close`, then `leave`."""

    def __init__(
        self,
        transport: Transport,
        clock: TimeSource,
        candidate: Candidate,
        shards: int,
        monotonic: Monotonic = awake_or_not,
    ) -> None:
        """`candidate`: this process and the main Lease, which it shares with the other members."""
        self._names = names = Names(candidate.name, shards)
        self._me = candidate.identity
        self._times = times = candidate.times
        self._monotonic = monotonic
        self._api = LeaseApi(transport, clock, candidate.namespace, times.limit)
        own = replace(candidate, name=names.member(self._me), labels=names.labels)
        group = replace(candidate, identity=names.group, shared=True)
        self._own = LeaderElector(transport, clock, own, monotonic)
        self._group = LeaderElector(transport, clock, group, monotonic)
        self._members = Members(names, times.duration)
        self._held: dict[int, Lease] = {}
        """Leases of the shards that we may write to."""
        self._leaving: dict[int, asyncio.Task[None]] = {}
        """Shards that we are giving up."""
        self._closing = False

    @property
    def shards(self) -> frozenset[int]:
        """The shards whose Hvpas we reconcile."""
        return frozenset(self._held.keys() - self._leaving.keys())

    def serves(self, shard: int) -> bool:
        """Whether reconciles of this shard's Hvpas may begin."""
        return shard in self._held and shard not in self._leaving

    def may_write(self, shard: int) -> bool:
        """Whether we may write to this shard's Hvpas right now."""
        return shard in self._held and self._own.holds() and self._group.holds()

    def on_set_back(self, call: Callable[[], None]) -> None:
        """Set `call`, which runs when a Lease is in an earlier state than before."""
        self._own.on_set_back = self._group.on_set_back = call

    async def run(self, listener: ShardListener, supervisor: Supervisor) -> None:
        """Take part in the group; returns when other members may no longer count us as alive."""
        joined = asyncio.Event()

        async def share() -> None:
            await joined.wait()
            await self._share(listener)

        # While we wait for the group's Lease, we already watch the members: it takes time to see that a member is
        # dead.
        own = self._own.run(supervisor, joined.set)
        parts = (own, self._keep_group(joined, supervisor), supervisor.keep("shards", share, backoff=RESTART))
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Take no more shards."""
        self._closing = True

    async def leave(self) -> None:
        """Give up all shards and the membership, once `run` was cancelled and all work has ended; never raises."""
        await asyncio.gather(*self._leaving.values(), return_exceptions=True)
        await self._api.settled()
        named = await self._named()
        self._held = {}
        await asyncio.gather(*(self._empty(shard, lease) for shard, lease in named.items()))
        await self._own.remove()
        await self._group.release(unless=self._others)

    async def _named(self) -> dict[int, Lease]:
        """The Leases of shards that name us: the held Leases, and Leases that arrived too late for their task."""
        try:
            leases = {lease.metadata.name: lease for lease in await self._api.list(self._names.selector)}
        except _Trouble as error:
            log.warning("members can't be listed", error=str(error))
            return self._held
        leases_by_shard = [
            (shard, leases.get(self._names.shard(shard))) for shard in range(self._names.shards)
        ]
        return {
            shard: lease for shard, lease in leases_by_shard if lease is not None and lease.holder == self._me
        }

    async def _keep_group(self, joined: asyncio.Event, supervisor: Supervisor) -> None:
        await joined.wait()
        await self._group.run(supervisor)

    # --- rounds -------------------------------------------------------------------------------------------------------
    async def _share(self, listener: ShardListener) -> None:
        """List the members, and take or give up shards; forever."""
        while True:
            sent, leaving = self._monotonic(), frozenset(self._leaving)
            try:
                leases = await self._api.list(self._names.selector)
            except _Trouble as error:
                log.warning("members can't be listed", error=str(error))
            else:
                self._members.look(leases, sent, self._monotonic())
                await self._act(leases, leaving, listener)
                await self._clean(leases)
            await asyncio.sleep(self._pause())

    async def _act(self, leases: list[Lease], leaving: frozenset[int], listener: ShardListener) -> None:
        """Act on the Leases. `leaving` are the shards that were being given up when the Leases were requested."""
        by_name = {lease.metadata.name: lease for lease in leases}
        settled = set(range(self._names.shards)) - leaving
        known = {shard: by_name.get(self._names.shard(shard)) for shard in settled}
        holders = {shard: self._holder(lease) for shard, lease in known.items()}
        step = plan(self._me, self._members.live(), holders, self.shards)
        for shard in step.lost:
            log.error("shard lost", shard=shard)
            del self._held[shard]
        leases_of = {shard: lease for shard, lease in known.items() if lease is not None}
        for shard in step.leave:
            self._leaving[shard] = asyncio.ensure_future(self._give_up(shard, leases_of[shard], listener))
        if gone := step.lost | step.leave:
            listener.given_up(gone)
        taken = await asyncio.gather(*(self._take(shard, known[shard]) for shard in sorted(step.take)))
        gained = frozenset(shard for shard in taken if shard is not None)
        if gained:
            log.info("shards taken", shards=sorted(gained), held=len(self.shards))
            listener.gained(gained)

    def _holder(self, lease: Lease | None) -> str | None:
        holder = None if lease is None else lease.holder
        return None if holder is None or (holder != self._me and self._members.is_dead(holder)) else holder

    async def _take(self, shard: int, lease: Lease | None) -> int | None:
        """Take the Lease of a shard; None if another member was faster or the request failed."""
        if self._closing or not (self._own.holds() and self._group.holds()):
            return None
        spec = self._api.taken(lease, self._me, None)
        try:
            if lease is None:
                taken = await self._api.create(self._names.shard(shard), self._names.labels, spec)
            else:
                taken = await self._api.update(lease, spec)
        except _Trouble as error:
            log.debug("shard not taken", shard=shard, error=str(error))
            return None
        self._held[shard] = taken
        return shard

    async def _give_up(self, shard: int, lease: Lease, listener: ShardListener) -> None:
        """End the work on a shard, then free its Lease."""
        try:
            try:
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    while listener.is_busy(shard):
                        await asyncio.sleep(LOOK)
            except TimeoutError:
                log.warning("slow writes delay the move of a shard", shard=shard)
            lease = self._held.pop(shard, lease)  # from here on its writes are refused
            while listener.is_busy(shard):  # writes in flight end by their own timeout
                await asyncio.sleep(LOOK)
            await self._empty(shard, lease)
        finally:
            self._leaving.pop(shard, None)

    async def _empty(self, shard: int, lease: Lease) -> None:
        try:
            await self._api.empty(lease)
        except _Trouble as error:  # retried while we are alive; counts as ours until we are dead
            log.warning("shard not given up", shard=shard, error=str(error))
        else:
            log.info("shard given up", shard=shard)

    async def _clean(self, leases: list[Lease]) -> None:
        """Delete the Leases of long-dead members and of other numbers of shards; only a single member does this."""
        if self._closing or min(self._members.live() | {self._me}) != self._me or not self._group.holds():
            return
        number = str(self._names.shards)
        shards = [lease for lease in leases if self._names.is_shard(lease.metadata.name)]
        old = [lease for lease in shards if lease.metadata.labels.get(LABEL_SHARDS) != number]
        for lease in (*self._members.forgotten(), *old):
            try:
                await self._api.delete(lease)
            except _Trouble as error:
                log.debug("old lease not deleted", name=lease.metadata.name, error=str(error))

    async def _others(self) -> bool:
        """Whether other members of this group are alive."""
        sent = self._monotonic()
        self._members.look(await self._api.list(self._names.selector), sent, self._monotonic())
        return bool(self._members.live() - {self._me})

    def _pause(self) -> float:
        """Seconds until the next list: LeaseTimes.poll, or less if a live member would be dead earlier."""
        pause = self._times.poll * random.uniform(SHORTEST, 1.0)
        end = self._members.next_end()
        return pause if end is None else min(pause, max(0.0, end - self._monotonic()) + EPSILON)
