"""What part of the work is this process's: all of it (alone, or as the leader), or the shards that it holds; and what
happens to the work queue when that changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from hvpa.core.values.memo import forget
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import shard_of
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate, awake_or_not
from hvpa.kube.leases.shard_manager import ShardKeeper, ShardListener
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Clock, Key
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry

ALL = frozenset({0})
"""The shards of one who does everything."""
SETTLE = 0.1
"""Seconds from a change until its Hvpa is looked at: recommendations, conditions and pods that change together lead to
one patch, so to one rollout."""
AFTERMATH = 15.0
"""Seconds after a write to a workload until its Hvpa is looked at, if nothing else brings it back before: its
controller reports the rollout within milliseconds, and the HPA speaks every 15 seconds."""
REMEMBERED = 2.0
"""Lease durations for which one who doesn't work on an Hvpa remembers that it changed."""
MOST_REMEMBERED = 1000
"""Hvpas that are remembered; of more, those that changed last."""


class Leader:
    """Does everything while it holds the Lease; without an elector, for ever."""

    def __init__(self, elector: LeaderElector | None) -> None:
        self._elector = elector
        self.shards: frozenset[int] = frozenset()

    def serves(self, shard: int) -> bool:
        """Whether reconciles of this shard's Hvpas may begin."""
        return shard in self.shards

    def may_write(self, shard: int) -> bool:
        """Whether this shard's Hvpas may be written to right now."""
        return shard in self.shards if self._elector is None else self._elector.holds()

    def on_set_back(self, call: Callable[[], None]) -> None:
        """Have `call` called when the Lease is found in an earlier state than it had before."""
        if self._elector is not None:
            self._elector.on_set_back = call

    async def run(self, listener: ShardListener, supervisor: Supervisor) -> None:
        """Get the Lease and keep it; returns when it is lost."""

        def begin() -> None:
            self.shards = ALL
            listener.gained(ALL)

        if self._elector is not None:
            await self._elector.run(supervisor, begin)
        else:
            begin()
            await asyncio.Event().wait()

    def close(self) -> None:
        """Nothing: it takes no second lease."""

    async def leave(self) -> None:
        """Give the Lease back, once `run` was cancelled and all work has ended; never raises."""
        if self._elector is not None:
            await self._elector.release()


Role = Leader | ShardKeeper
"""What this process may do, by number of shard; 0 is the only one where the work is not divided."""


def role_of(transport: Transport, clock: Clock, candidate: Candidate | None, shards: int) -> Role:
    """The role of a process; `candidate` is None for one that is alone."""
    if candidate is not None and shards > 1:
        return ShardKeeper(transport, clock, candidate, shards)
    return Leader(None if candidate is None else LeaderElector(transport, clock, candidate))


class Share:
    """The work that is this process's, for its queue: `hvpa.kube.leases.shard_manager.ShardListener`."""

    def __init__(self, role: Role, shards: int, duration: float, telemetry: Telemetry) -> None:
        """`shards`: how many there are; `duration`: of a lease, in seconds."""
        self._role = role
        self._shards = shards
        self._telemetry = telemetry
        self._remembers = REMEMBERED * duration
        self._recent: OrderedDict[Key, float] = OrderedDict()
        """When Hvpas changed that are not ours, the last one at the end: who had them may not have come to it."""
        self._work: WorkLoop | None = None
        self._local: LocalCluster

    def open(self, work: WorkLoop, local: LocalCluster) -> None:
        """From now on `local` holds all Hvpas (the caches are filled), and what is ours goes to `work`."""
        self._recent.clear()
        self._work, self._local = work, local

    def serves(self, key: Key) -> bool:
        """Whether a reconcile of this Hvpa may begin."""
        return self._role.serves(shard_of(key, self._shards))

    def may_write(self, key: Key) -> bool:
        """Whether this Hvpa and its objects may be written to right now."""
        return self._role.may_write(shard_of(key, self._shards))

    def changed(self, key: Key) -> None:
        """An Hvpa, or something that it depends on, has changed: work for us, or to be remembered in case it becomes
        ours."""
        self._note(key, SETTLE)

    def changed_by_us(self, key: Key) -> None:
        """We have written to an Hvpa's workload: what follows wakes us, and time does where nothing follows."""
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
        """See `ShardListener`. What changed lately comes first: whoever had it before may not have come to it."""
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
                forget((key.namespace, key.name))
                self._telemetry.forgotten(key)

    def is_busy(self, shard: int) -> bool:
        """See `ShardListener`."""
        assert self._work is not None
        return self._work.working(lambda key: shard_of(key, self._shards) == shard)
