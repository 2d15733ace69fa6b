"""What a process works on, and in which order it comes to what it takes over."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest
from msgspec import structs

from hvpa.api.objects.read_models import Meta
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import shard_of
from hvpa.kube.leases.lease_api import Candidate
from hvpa.kube.leases.shard_manager import ShardKeeper
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.objects.stored_hvpa import StoredHvpa
from hvpa.operator import roles
from hvpa.operator.roles import ALL, Leader, QueueShare, role_of
from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.reconciler import ReconcileResult
from hvpa.reconcile.supervision import Supervisor
from tests.unit.kube.fake_server import background
from tests.unit.kube.virtual import LeaseServer, VirtualClock
from tests.unit.reconcile.fakes import FakeTelemetry

SHARDS = 2
KEYS = [Key("ns", f"app-{number:02}") for number in range(12)]
MINE = [key for key in KEYS if shard_of(key, SHARDS) == 0]
OTHERS = [key for key in KEYS if shard_of(key, SHARDS) == 1]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "SETTLE", 0.0)


def hvpa(key: Key) -> StoredHvpa:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": key.name, "resourceVersion": "5"}
    return HVPAS.decode(json.dumps({"metadata": metadata}).encode())


class Harness:
    def __init__(self) -> None:
        self.role = Leader(None)
        self.telemetry = FakeTelemetry()
        self.share = QueueShare(self.role, SHARDS, 15.0)
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        self.worked: list[Key] = []
        self.forgotten: list[Key] = []
        self.going_on = asyncio.Event()
        self.work = WorkLoop(WorkQueue(), self._reconcile, self.telemetry, workers=1)
        for key in KEYS:
            self.local.hvpas.put(hvpa(key))

    async def _reconcile(self, key: Key) -> ReconcileResult:
        self.worked.append(key)
        await self.going_on.wait()
        return ReconcileResult("done")

    def opened(self) -> Harness:
        """The caches are filled."""
        self.share.open(self.work, self.local, self.forgotten.append)
        return self

    def gain(self, *shards: int) -> None:
        self.role.shards |= set(shards)
        self.share.gained(frozenset(shards))

    def give_up(self, *shards: int) -> None:
        self.role.shards -= set(shards)
        self.share.given_up(frozenset(shards))

    async def works(self) -> list[Key]:
        """Let it work until nothing is left to do; what it did."""
        self.going_on.set()
        running = asyncio.create_task(self.work.run())
        while self.work.depth():
            await asyncio.sleep(0.001)
        self.work.stop()
        await running
        return self.worked


async def test_what_changed_while_it_stood_by_comes_first() -> None:
    harness = Harness()
    harness.share.changed(KEYS[0])  # the list that fills the caches is no news
    harness.share.open(harness.work, harness.local, harness.forgotten.append)
    late = [MINE[3], MINE[1], OTHERS[0]]
    for key in late:
        harness.share.changed(key)
    gone = Key("ns", "gone")
    harness.share.changed(gone)
    assert harness.work.depth() == 0
    harness.gain(0)
    assert harness.work.depth() == len(MINE)
    worked = await harness.works()
    assert worked[:2] == late[:2]
    assert sorted(worked) == MINE


@pytest.mark.parametrize(("most", "first"), [(1000, [MINE[3], MINE[1]]), (1, [MINE[1]])])
async def test_of_what_changed_while_it_stood_by_only_the_latest_comes_first(
    most: int, first: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(roles, "awake_or_not", lambda: now)
    monkeypatch.setattr(roles, "MOST_REMEMBERED", most)
    harness = Harness().opened()
    for key in (MINE[2], MINE[3], MINE[1]):
        harness.share.changed(key)
        now += 11.0
    harness.gain(0)  # two lease durations are 30 s
    assert await harness.works() == first + [key for key in MINE if key not in first]


async def test_what_changed_before_it_started_comes_first_too() -> None:
    harness = Harness().opened()
    harness.local.hvpas.put(structs.replace(hvpa(MINE[4]), metadata=Meta(MINE[4].name, "ns", "uid", "9")))
    harness.gain(0, 1)
    assert (await harness.works())[0] == MINE[4]


async def test_only_what_is_ours_is_worked_on() -> None:
    harness = Harness().opened()
    harness.gain(0)
    assert all(map(harness.share.serves, MINE))
    assert all(map(harness.share.may_write, MINE))
    assert not any(map(harness.share.serves, OTHERS))
    assert not any(map(harness.share.may_write, OTHERS))
    harness.share.changed(OTHERS[0])
    assert sorted(await harness.works()) == MINE


async def test_what_we_changed_ourselves_is_looked_at_in_a_while_and_by_a_successor_first() -> None:
    harness = Harness().opened()
    harness.share.changed_by_us(MINE[3])  # not ours (any more): remembered, as anything else that changes
    harness.gain(0)
    assert (await harness.works())[0] == MINE[3]
    harness.worked.clear()
    harness.share.changed_by_us(MINE[1])
    assert harness.work.depth() == 0


async def test_what_changes_together_is_looked_at_once_and_not_before_it_has_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(roles, "SETTLE", 0.05)
    harness = Harness().opened()
    harness.role.shards = frozenset({0})
    now = asyncio.get_running_loop().time
    harness.going_on.set()
    async with background(harness.work.run()):
        began = now()
        while not harness.worked:
            harness.share.changed(MINE[0])  # again and again does not put it off
            assert now() < began + 10
            await asyncio.sleep(0.01)
        assert now() >= began + 0.05
    assert harness.worked == [MINE[0]]


async def test_what_is_given_up_is_dropped_but_for_what_is_under_way() -> None:
    harness = Harness().opened()
    harness.gain(0, 1)
    for key in MINE[:2]:
        harness.share.changed(key)
    running = asyncio.create_task(harness.work.run())
    while not harness.worked:
        await asyncio.sleep(0)
    assert harness.share.is_busy(0)
    assert not harness.share.is_busy(1)
    harness.give_up(0)
    harness.going_on.set()
    while harness.work.depth():
        await asyncio.sleep(0.001)
    assert not harness.share.is_busy(0)
    harness.work.stop()
    await running
    assert [key for key in harness.worked if key in MINE] == MINE[:1]
    assert sorted(key for key in harness.worked if key in OTHERS) == OTHERS
    assert set(MINE) <= set(harness.forgotten)


async def test_roles() -> None:
    transport, clock = cast(Transport, LeaseServer()), VirtualClock()
    candidate = Candidate("ns", "hvpa", "host_1")
    leader = role_of(transport, clock, candidate, 1)
    assert isinstance(leader, Leader)
    assert (leader.shards, leader.serves(0), leader.may_write(0)) == (frozenset(), False, False)
    assert isinstance(role_of(transport, clock, candidate, 2), ShardKeeper)
    alone = role_of(transport, clock, None, 1)
    async with background(alone.run(Harness().opened().share, Supervisor())) as task:
        await asyncio.sleep(0)
        assert alone.shards == ALL
        assert alone.may_write(0)
        assert not task.done()
