"""The part of the work that this process does: all of it (alone, or as the leader), or the shards that it holds.
Updates the work queue when that changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import shard_of
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate, awake_or_not
from hvpa.kube.leases.shard_manager import ShardKeeper, ShardListener
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key, TimeSource
from hvpa.reconcile.supervision import Supervisor

ALL = frozenset({0})
"""The shards of a process that does all the work."""
SETTLE = 0.1
"""Seconds from a change until its Hvpa is reconciled. Recommendations, conditions and pods that change together then
lead to a single patch, and so to a single rollout."""
AFTERMATH = 15.0
"""Seconds from a write to a workload until its Hvpa is reconciled, if nothing else triggers it. The workload's
controller reports the rollout within milliseconds, and the HPA syncs every 15 seconds."""
REMEMBERED = 2.0
"""Lease durations for which a process stores changes of Hvpas that it does not work on."""
MOST_REMEMBERED = 1000
"""Maximum number of such changes; the latest are kept."""


class Leader:
    """Does all the work while it holds the Lease. Without an elector, it always does."""

    def __init__(self, elector: LeaderElector | None) -> None:
        self._elector = elector
        self.shards: frozenset[int] = frozenset()

    def serves(self, shard: int) -> bool:
        """Whether reconciles of this shard's Hvpas may begin."""
        return shard in self.shards

    def may_write(self, shard: int) -> bool:
        """Whether writes for this shard's Hvpas are allowed now."""
        return shard in self.shards if self._elector is None else self._elector.holds()

    def on_set_back(self, call: Callable[[], None]) -> None:
        """Sets the callback for a Lease that is found in an earlier state than before."""
        if self._elector is not None:
            self._elector.on_set_back = call

    async def run(self, listener: ShardListener, supervisor: Supervisor) -> None:
        """Acquires and keeps the Lease. Returns when it is lost."""

        def begin() -> None:
            self.shards = ALL
            listener.gained(ALL)

        if self._elector is not None:
            await self._elector.run(supervisor, begin)
        else:
            begin()
            await asyncio.Event().wait()

    def close(self) -> None:
        """Does nothing: there is no second lease."""

    async def leave(self) -> None:
        """Releases the Lease, after `run` was cancelled and all work has ended. Never raises."""
        if self._elector is not None:
            await self._elector.release()


Role = Leader | ShardKeeper
"""The permissions of this process, by number of shard. If the work is not divided, the only shard is 0."""


def role_of(transport: Transport, clock: TimeSource, candidate: Candidate | None, shards: int) -> Role:
    """Returns the role of a process. `candidate` is None for a process that runs alone."""
    if candidate is not None and shards > 1:
        return ShardKeeper(transport, clock, candidate, shards)
    return Leader(None if candidate is None else LeaderElector(transport, clock, candidate))


class QueueShare:
    """The work of this process, for its queue: `hvpa.kube.leases.shard_manager.ShardListener`."""

    def __init__(self, role: Role, shards: int, duration: float) -> None:
        """`shards` is the total number of shards; `duration` is the duration of a lease in seconds."""
        self._role = role
        self._shards = shards
        self._remembers = REMEMBERED * duration
        self._recent: OrderedDict[Key, float] = OrderedDict()
        """Times of changes of Hvpas that belong to other processes, the latest at the end. The other process may not
        have handled them yet when it loses the shard."""
        self._work: WorkLoop | None = None
        self._local: LocalCluster
        self._forget: Callable[[Key], None]

    def open(self, work: WorkLoop, local: LocalCluster, forget: Callable[[Key], None]) -> None:
        """Starts the work: `local` has all Hvpas (the caches are filled), and the Hvpas of this process go to `work`.
        `forget` is called for each Hvpa that another process takes over."""
        self._recent.clear()
        self._work, self._local, self._forget = work, local, forget

    def serves(self, key: Key) -> bool:
        """Whether a reconcile of this Hvpa may begin."""
        return self._role.serves(shard_of(key, self._shards))

    def may_write(self, key: Key) -> bool:
        """Whether writes to this Hvpa and its objects are allowed now."""
        return self._role.may_write(shard_of(key, self._shards))

    def changed(self, key: Key) -> None:
        """An Hvpa, or an object that it depends on, has changed. Queues it, or stores the change in case the Hvpa comes
        to this process."""
        self._note(key, SETTLE)

    def changed_by_us(self, key: Key) -> None:
        """This process has written to an Hvpa's workload. The resulting changes trigger a reconcile; if there are none,
        a timer does."""
        self._note(key, AFTERMATH)

    def _note(self, key: Key, seconds: float) -> None:
        if self._work is not None and self.serves(key):
            self._work.enqueue_in(key, seconds)
            return
        self._recent[key] = awake_or_not()
        self._recent.move_to_end(key)
        if len(self._recent) > MOST_REMEMBERED:
            self._recent.popitem(last=False)

    def gained(self, shards: frozenset[int]) -> None:
        """See `ShardListener`. Recent changes come first, because the previous owner may not have handled them."""
        assert self._work is not None
        oldest = awake_or_not() - self._remembers
        ours = dict.fromkeys(key for key in self._local.known() if shard_of(key, self._shards) in shards)
        for key, changed_at in self._recent.items():
            if changed_at >= oldest and key in ours:
                self._work.enqueue(key)
        for key in self._local.changed_last(ours):
            self._work.enqueue(key, urgent=False)

    def given_up(self, shards: frozenset[int]) -> None:
        """See `ShardListener`."""
        assert self._work is not None
        self._work.discard(lambda key: shard_of(key, self._shards) in shards)
        for key in self._local.hvpas:
            if shard_of(key, self._shards) in shards:
                self._forget(key)

    def is_busy(self, shard: int) -> bool:
        """See `ShardListener`."""
        assert self._work is not None
        return self._work.working(lambda key: shard_of(key, self._shards) == shard)
