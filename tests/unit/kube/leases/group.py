"""Members of a group that shares the work, as processes in virtual time: they join, write, leave, crash."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, cast

from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import Names, winner
from hvpa.kube.leases.lease_api import Candidate, LeaseTimes
from hvpa.kube.leases.shard_manager import ShardKeeper
from hvpa.reconcile.supervision import Supervisor
from tests.unit.kube.virtual import LeaseServer, Line, VirtualClock, run_virtually

SHARDS = 12
TIMES = LeaseTimes()
BEAT = 0.1
"""Seconds between two looks at who may write."""


class Member:
    """One process: its keeper, its connection, and writes that take their time."""

    def __init__(self, harness: Harness, number: int, shards: int) -> None:
        self.identity = f"host_{number}"
        self.line = Line(harness.server, harness.rng)
        self.names = Names("hvpa", shards)
        candidate = Candidate("ns", "hvpa", self.identity, TIMES)
        monotonic = asyncio.get_running_loop().time
        transport = cast(Transport, self.line)
        self.keeper = ShardKeeper(transport, VirtualClock(), candidate, shards, monotonic)
        self.gains: list[frozenset[int]] = []
        self.losses: list[frozenset[int]] = []
        self.writing: dict[int, float] = {}
        """Shards with a write under way, and when that ends."""
        self.stopping = False
        self._rng = harness.rng
        self._longest = harness.longest_write
        self.task = asyncio.create_task(self.keeper.run(self, Supervisor()))

    def gained(self, shards: frozenset[int]) -> None:
        assert all(self.keeper.serves(shard) for shard in shards)
        self.gains.append(shards)

    def given_up(self, shards: frozenset[int]) -> None:
        assert not any(self.keeper.serves(shard) for shard in shards)
        self.losses.append(shards)

    def is_busy(self, shard: int) -> bool:
        return self.writing.get(shard, 0.0) > now()

    def work(self) -> None:
        """Begin writes where that is allowed."""
        if self.stopping:
            return
        for shard in range(self.names.shards):
            begins = self.keeper.serves(shard) and self.keeper.may_write(shard) and not self.is_busy(shard)
            if begins and self._rng.random() < 0.3:
                self.writing[shard] = now() + self._rng.uniform(0, self._longest)

    def touches(self) -> set[int]:
        """Shards that it may write to, or is writing to."""
        numbers = range(self.names.shards)
        return {shard for shard in numbers if self.keeper.may_write(shard) or self.is_busy(shard)}

    async def stop(self) -> None:
        """As at SIGTERM."""
        self.stopping = True
        self.keeper.close()
        while any(self.is_busy(shard) for shard in range(self.names.shards)):
            await asyncio.sleep(BEAT)
        await end(self.task)
        await self.keeper.leave()

    async def crash(self) -> None:
        """As at SIGKILL."""
        self.line.cut = True
        await end(self.task)


class Harness:
    def __init__(self, seed: int = 0, longest_write: float = TIMES.duration - TIMES.renew) -> None:
        self.server = LeaseServer()
        self.rng = random.Random(seed)
        self.longest_write = longest_write
        self.members: list[Member] = []
        self._number = 0

    def join(self, shards: int = SHARDS) -> Member:
        self._number += 1
        member = Member(self, self._number, shards)
        self.members.append(member)
        return member

    async def start(self, members: int) -> list[Member]:
        """So many more, which have divided the shards."""
        joined = [self.join() for _ in range(members)]
        await self.settled(2 if members == 1 else 20)
        return joined

    async def close(self) -> None:
        for member in self.alive:
            await end(member.task)

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if not member.task.done()]

    async def pass_by(self, seconds: float) -> None:
        """Let time go by, and see that each shard is touched by one member at most, all of one number of shards."""
        end = now() + seconds
        while now() < end:
            await asyncio.sleep(BEAT)
            for member in self.alive:
                member.work()
            self.check()

    def check(self) -> None:
        touched = [(member.names.shards, shard) for member in self.members for shard in member.touches()]
        assert len(touched) == len(set(touched))
        assert len({shards for shards, _ in touched}) <= 1

    def is_settled(self) -> bool:
        """Whether every shard is with its winner, among those who run."""
        alive = {member.identity: member for member in self.alive}
        return all(
            alive[cast(str, winner(shard, alive.keys()))].keeper.serves(shard) for shard in range(SHARDS)
        )

    async def settled(self, within: float) -> float:
        """Wait until it is; how long it took (seconds)."""
        began = now()
        while not self.is_settled():
            assert now() - began < within
            await self.pass_by(BEAT)
        return now() - began


def now() -> float:
    return asyncio.get_running_loop().time()


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def run_scenario(happens: Callable[[Harness], Coroutine[Any, Any, None]], seed: int) -> None:
    """Let something happen in a harness and a time of its own."""

    async def all_of_it() -> None:
        harness = Harness(seed)
        await happens(harness)
        await harness.close()

    run_virtually(all_of_it())
