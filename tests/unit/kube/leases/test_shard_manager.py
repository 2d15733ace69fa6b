"""Replicas that share the work, in virtual time: no shard is ever two members', whatever becomes of members, requests
and answers; and what is nobody's is soon somebody's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.assignment import Names
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate
from tests.unit.kube.leases.group import SHARDS, TIMES, Harness, Member, end, now, run_scenario
from tests.unit.kube.virtual import Line, VirtualClock

seeds = st.integers(0, 2**32)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = Harness()
    yield harness
    await harness.close()


async def test_members_divide_the_shards_and_a_new_one_gets_its_share_at_once(harness: Harness) -> None:
    (first,) = await harness.start(1)
    assert first.keeper.shards == set(range(SHARDS))
    second = harness.join()
    await harness.settled(2 + TIMES.duration - TIMES.renew)
    moved = second.keeper.shards
    assert 0 < len(moved) < SHARDS
    assert frozenset().union(*first.losses) == moved == frozenset().union(*second.gains)


async def test_a_crash_costs_less_than_two_seconds_beyond_the_lease(harness: Harness) -> None:
    await harness.start(3)
    await harness.members[0].crash()
    assert TIMES.renew < await harness.settled(60) < TIMES.duration + 2


async def test_who_leaves_hands_over_within_about_a_second(harness: Harness) -> None:
    await harness.start(3)
    await harness.members[0].stop()
    assert await harness.settled(10) < 1.3
    assert harness.server.holder("hvpa") == "shards-12"
    assert Names("hvpa", SHARDS).member("host_1") not in harness.server.leases


async def test_the_last_one_leaves_everything_free(harness: Harness) -> None:
    await harness.start(2)
    for member in harness.members:
        await member.stop()
    assert not any(map(harness.server.holder, harness.server.leases))
    assert len(harness.server.leases) == SHARDS + 1


@settings(max_examples=20, deadline=None)
@given(seed=seeds, waits=st.lists(st.floats(0, 6), min_size=3, max_size=3))
def test_who_leaves_in_the_middle_of_its_requests_leaves_nothing_behind(
    seed: int, waits: list[float]
) -> None:
    async def scenario(harness: Harness) -> None:
        for _ in waits:
            harness.join().line.slow = 0.4
        for member, wait in zip(harness.members, waits, strict=True):
            await harness.pass_by(wait)
            await member.stop()
        assert not any(map(harness.server.holder, harness.server.leases))
        assert not any(map(Names("hvpa", SHARDS).is_member, harness.server.leases))

    run_scenario(scenario, seed)


async def test_who_is_cut_off_gives_up_before_others_take_over(harness: Harness) -> None:
    await harness.start(3)
    cut = harness.members[0]
    cut.line.cut = True
    await harness.pass_by(TIMES.renew + 0.1)
    assert cut.task.done()
    assert not cut.keeper.may_write(0)
    await harness.settled(TIMES.duration - TIMES.renew + 2)


async def test_requests_at_rest_don_t_depend_on_the_number_of_shards(harness: Harness) -> None:
    rest = 60.0
    await harness.start(3)
    await harness.pass_by(5)
    before = len(harness.server.requests)
    await harness.pass_by(rest)
    requests = harness.server.requests[before:]
    assert {method for method, _ in requests} == {"GET", "PUT"}
    # Each member: a list a second, and every two seconds a look at the group's Lease and a renewal of its own.
    assert len(requests) <= 3 * rest * (1 / 0.8 + 0.5 + 0.5) + rest / 2 + 10
    assert not [name for method, name in requests if method == "PUT" and "-shard-" in name]


async def test_a_shard_s_lease_that_another_client_deletes_or_takes_is_given_up(harness: Harness) -> None:
    (only,) = await harness.start(1)
    names = Names("hvpa", SHARDS)
    del harness.server.leases[names.shard(0)]
    stolen = harness.server.leases[names.shard(1)]
    thief = {**stolen, "spec": {"holderIdentity": "thief"}}
    thief["metadata"] = {**stolen["metadata"], "resourceVersion": "x"}
    harness.server.leases[names.shard(1)] = thief
    await harness.pass_by(1.2)
    assert only.losses == [frozenset({0, 1})]
    assert only.keeper.serves(0)
    assert not only.keeper.may_write(1)
    await harness.settled(TIMES.duration + 2)  # no member has seen the thief


async def test_who_finds_the_group_s_lease_with_another_client_writes_nothing_more(harness: Harness) -> None:
    (only,) = await harness.start(1)
    lease = harness.server.leases["hvpa"]
    metadata = {**lease["metadata"], "resourceVersion": "x"}
    harness.server.leases["hvpa"] = {**lease, "metadata": metadata, "spec": {"holderIdentity": "thief"}}
    await harness.pass_by(TIMES.retry + 0.2)
    assert only.task.done()
    assert not any(map(only.keeper.may_write, range(SHARDS)))


async def test_leases_of_the_dead_and_of_other_numbers_of_shards_are_deleted(harness: Harness) -> None:
    other = harness.join(shards=3)
    await harness.pass_by(5)
    assert len(other.keeper.shards) == 3
    await other.crash()
    harness.join()
    await harness.settled(TIMES.duration + 2)
    assert Names("hvpa", 3).member("host_1") in harness.server.leases
    await harness.pass_by(5 * TIMES.duration)
    names = Names("hvpa", SHARDS)
    wanted = {"hvpa", names.member("host_2"), *map(names.shard, range(SHARDS))}
    assert harness.server.leases.keys() == wanted


async def test_another_number_of_shards_waits_until_the_last_of_the_former_has_left(harness: Harness) -> None:
    old = [harness.join(shards=3), harness.join(shards=3)]
    await harness.pass_by(10)
    harness.join()
    await harness.pass_by(30)
    await old[0].stop()
    await harness.pass_by(30)
    assert old[1].keeper.shards == {0, 1, 2}
    await old[1].stop()
    assert await harness.settled(10) < 3.5


@pytest.mark.parametrize("leader_first", [True, False])
async def test_one_leader_and_members_wait_for_one_another(harness: Harness, leader_first: bool) -> None:
    line = cast(Transport, Line(harness.server, harness.rng))
    candidate = Candidate("ns", "hvpa", "single_1", TIMES)
    leader = LeaderElector(line, VirtualClock(), candidate, asyncio.get_running_loop().time)
    if leader_first:
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        harness.join()
        await harness.pass_by(30)
        assert not harness.members[0].touches()
        await end(keeping)
        await leader.release()
        assert not leader.holds()
        await harness.settled(2.5)
    else:
        await harness.start(1)
        waiting = asyncio.create_task(leader.acquire())
        await harness.pass_by(30)
        assert not waiting.done()
        await harness.members[0].stop()
        stopped = now()
        await waiting
        assert now() - stopped < 1.1


events = st.lists(
    st.tuples(
        st.sampled_from(["join", "join", "stop", "crash", "cut", "heal", "lossy", "slow", "other"]),
        st.integers(0, 9),
        st.floats(0.2, 20),
    ),
    max_size=14,
)


async def happens(harness: Harness, member: Member, event: str, number: int) -> asyncio.Task[None] | None:
    """Let something happen; what goes on in the background."""
    match event:
        case "join" | "other":
            harness.join(4 if event == "other" else SHARDS)
        case "stop":
            return asyncio.create_task(member.stop())
        case "crash":
            await member.crash()
        case "cut" | "heal":
            member.line.cut = event == "cut"
        case "lossy":
            member.line.losses = number / 10
        case "slow":
            member.line.slow = number / 2 + 0.01
    return None


@pytest.mark.long
@given(seed=seeds, events=events)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_no_shard_is_ever_two_members_and_all_are_somebody_s_in_the_end(
    seed: int, events: list[tuple[str, int, float]]
) -> None:
    async def scenario(harness: Harness) -> None:
        for _ in range(3):
            harness.join()
        tasks: list[asyncio.Task[None]] = []
        for event, number, pause in events:
            alive = harness.alive
            member = alive[number % len(alive)] if alive else harness.join()
            task = await happens(harness, member, event, number)
            tasks += [task] if task is not None else []
            await harness.pass_by(pause)
        for member in harness.members:  # calm
            member.line.cut, member.line.losses, member.line.slow = False, 0.0, 0.01
            if member.names.shards != SHARDS and not member.task.done():
                tasks.append(asyncio.create_task(member.stop()))
        await harness.pass_by(30)
        await asyncio.gather(*tasks)
        harness.join()
        await harness.settled(TIMES.duration + 5)

    run_scenario(scenario, seed)
