"""Leader election in virtual time: how soon it goes on after a crash or a release, and that no two ever lead, whatever
becomes of requests and answers."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease import Candidate, LeaseTimes
from tests.unit.kube.virtual import LeaseServer, Line, VirtualClock, play

TIMES = LeaseTimes()
seeds = st.integers(0, 2**32)


class Candidates:
    def __init__(self, seed: int, shared: bool = False) -> None:
        self.server = LeaseServer()
        self.rng = random.Random(seed)
        self.shared = shared
        self.lines: list[Line] = []
        self.electors: list[LeaderElector] = []

    def join(self, identity: str = "") -> LeaderElector:
        line = Line(self.server, self.rng)
        candidate = Candidate(
            "ns", "hvpa", identity or f"one-{len(self.lines)}", TIMES, self.shared, labels={"a": "b"}
        )
        monotonic = asyncio.get_running_loop().time
        elector = LeaderElector(cast(Transport, line), VirtualClock(), candidate, monotonic)
        self.lines.append(line)
        self.electors.append(elector)
        return elector


async def lead(elector: LeaderElector) -> None:
    await elector.acquire()
    await elector.keep()


def now() -> float:
    return asyncio.get_running_loop().time()


@given(seed=seeds, age=st.floats(0, 10))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_crash_costs_less_than_two_seconds_beyond_the_lease(seed: int, age: float) -> None:
    async def story() -> tuple[float, int]:
        world = Candidates(seed)
        first, second = world.join(), world.join()
        await first.acquire()
        keeping, waiting = asyncio.create_task(first.keep()), asyncio.create_task(second.acquire())
        await asyncio.sleep(age)
        keeping.cancel()
        crashed, asked = now(), len(world.server.requests)
        world.lines[0].cut = True
        await waiting
        assert not first.holds()
        assert world.server.leases["hvpa"]["spec"]["leaseTransitions"] == 1
        return now() - crashed, len(world.server.requests) - asked

    took, asked = play(story())
    assert TIMES.duration - TIMES.retry - 0.1 < took < TIMES.duration + 2
    assert asked <= 25  # looks at one object, about one a second


@given(seed=seeds)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_what_is_given_back_is_taken_within_a_second(seed: int) -> None:
    async def story() -> float:
        world = Candidates(seed)
        first, second = world.join(), world.join()
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(5)
        await first.release()
        released = now()
        await waiting
        return now() - released

    assert play(story()) < 1.1


def test_who_looked_long_ago_does_not_live_on_what_another_one_renewed() -> None:
    async def story() -> bool:
        world = Candidates(1, shared=True)
        first, second = world.join("group"), world.join("group")
        for one in (first, second):
            await one.acquire()
        await asyncio.sleep(TIMES.renew * 0.6)
        for one in (
            first,
            second,
        ):  # each sees a renewal of which it knows only that it was after its last look
            assert await one._try()
        await asyncio.sleep(TIMES.renew * 0.6)
        return first.holds() and second.holds()

    assert play(story())


@given(seed=seeds, losses=st.floats(0, 0.9), slow=st.floats(0.01, 6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_two_lead_whatever_is_lost_or_late(seed: int, losses: float, slow: float) -> None:
    async def story() -> int:
        world = Candidates(seed)
        tasks = [asyncio.create_task(lead(world.join())) for _ in range(3)]
        for line in world.lines:
            line.losses, line.slow = losses, slow
        leaders: set[LeaderElector] = set()
        for _ in range(600):
            await asyncio.sleep(0.1)
            holding = [one for one in world.electors if one.holds()]
            assert len(holding) <= 1
            leaders.update(holding)
            for task in [one for one in tasks if one.done()]:  # it has lost the lease, and is started again
                tasks.remove(task)
                tasks.append(asyncio.create_task(lead(world.join())))
        for task in tasks:
            task.cancel()
        return len(leaders)

    assert play(story()) >= (1 if losses < 0.3 and slow < 0.5 else 0)


@pytest.mark.parametrize("shared", [False, True])
@given(seed=seeds)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_after_a_request_over_a_dead_connection_a_second_one_may_be_lost(shared: bool, seed: int) -> None:
    async def story() -> tuple[bool, bool]:
        world = Candidates(seed, shared)
        first = world.join("group")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        await asyncio.sleep(world.rng.uniform(0, 20))
        world.lines[0].dead = 2
        await asyncio.sleep(20)
        return first.holds(), keeping.done()

    assert play(story()) == (True, False)


def test_an_answer_that_is_lost_does_not_cost_the_lease() -> None:
    async def story() -> tuple[bool, list[str]]:
        world = Candidates(1)
        first = world.join()
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        await asyncio.sleep(1)
        world.lines[0].deaf = True
        await asyncio.sleep(3)  # it is renewed meanwhile; nobody learns of it
        world.lines[0].deaf = False
        asked = len(world.server.requests)
        await asyncio.sleep(8)
        keeping.cancel()
        return first.holds(), [method for method, _ in world.server.requests[asked:]]

    holds, requests = play(story())
    assert holds
    assert requests[:3] == ["PUT", "GET", "PUT"]  # a conflict, a look, and it is renewed all the same


def test_a_lease_that_is_deleted_is_left_to_its_holder_and_made_again() -> None:
    async def story() -> str | None:
        world = Candidates(1)
        first, second = world.join(), world.join()
        await first.acquire()
        tasks = [asyncio.create_task(first.keep()), asyncio.create_task(second.acquire())]
        await asyncio.sleep(5)
        del world.server.leases["hvpa"]
        await asyncio.sleep(10)
        assert first.holds()
        assert not second.holds()
        for task in tasks:
            task.cancel()
        return world.server.holder("hvpa")

    assert play(story()) == "one-0"


def test_what_stands_in_the_lease_and_what_others_wrote_into_it_stays() -> None:
    async def story() -> list[dict[str, Any]]:
        world = Candidates(1)
        one = world.join()
        assert not one.holds()
        await one.acquire()
        taken = world.server.leases["hvpa"]
        taken["metadata"]["annotations"] = {"note": "mine"}
        assert one.holds()
        await one.release()
        assert not one.holds()
        return [taken["spec"], world.server.leases["hvpa"]["metadata"]]

    spec, metadata = play(story())
    assert spec.pop("acquireTime") == spec.pop("renewTime")
    assert spec == {"holderIdentity": "one-0", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    assert (metadata["annotations"], metadata["labels"]) == ({"note": "mine"}, {"a": "b"})


def test_a_holder_that_cannot_renew_loses_the_lease_and_short_trouble_does_not_cost_it() -> None:
    async def story() -> float:
        world = Candidates(1)
        one = world.join()
        await one.acquire()
        keeping = asyncio.create_task(one.keep())
        await asyncio.sleep(5)
        world.lines[0].cut = True
        await asyncio.sleep(6)
        world.lines[0].cut = False
        world.server.leases["hvpa"]["metadata"]["resourceVersion"] = (
            "x"  # somebody touched it: it is still ours
        )
        await asyncio.sleep(20)
        assert one.holds()
        world.lines[0].cut = True
        began = now()
        await keeping
        assert not one.holds()
        return now() - began

    assert TIMES.renew - TIMES.retry - 0.1 < play(story()) <= TIMES.renew


def test_a_lease_that_somebody_else_took_is_lost_and_not_given_back() -> None:
    async def story() -> str | None:
        world = Candidates(1)
        one = world.join()
        await one.acquire()
        lease = world.server.leases["hvpa"]
        lease["metadata"]["resourceVersion"], lease["spec"]["holderIdentity"] = "x", "two"
        await one.keep()
        assert not one.holds()
        await one.release()
        return world.server.holder("hvpa")

    assert play(story()) == "two"


def test_a_process_that_was_stopped_for_too_long_may_not_write() -> None:
    async def story() -> list[bool]:
        one, time = Candidates(1).join(), [100.0]
        one._monotonic = lambda: time[0]
        await one.acquire()
        held = []
        for time[0] in (
            109.9,
            110.0,
        ):  # nobody else has it before 115, when what was sent at the last has arrived
            held.append(one.holds())
        return held

    assert play(story()) == [True, False]


@pytest.mark.parametrize("tried", [True, False])
def test_who_is_told_to_stop_while_it_acquires_leaves_the_lease_free(tried: bool) -> None:
    async def story() -> str | None:
        world = Candidates(1)
        first = world.join()
        acquiring = asyncio.create_task(first.acquire())
        while tried and world.server.holder("hvpa") is None:
            await asyncio.sleep(0.0001)
        acquiring.cancel()  # its answer is still on the way
        await asyncio.gather(acquiring, return_exceptions=True)
        await first.release()
        return world.server.holder("hvpa")

    assert play(story()) is None


# --- a lease that a group shares -------------------------------------------------------------------------------------
def test_a_group_keeps_its_lease_with_the_writes_of_one() -> None:
    async def story() -> tuple[bool, int]:
        world = Candidates(1, shared=True)
        tasks = [asyncio.create_task(lead(world.join("group"))) for _ in range(4)]
        await asyncio.sleep(10)
        before = len([method for method, _ in world.server.requests if method == "PUT"])
        await asyncio.sleep(60)
        writes = len([method for method, _ in world.server.requests if method == "PUT"]) - before
        holding = all(one.holds() for one in world.electors)
        for task in tasks:
            task.cancel()
        return holding, writes

    holding, writes = play(story())
    assert holding
    assert 60 / (2 * TIMES.retry) <= writes <= 60 / TIMES.retry + 4


@given(seed=seeds, losses=st.floats(0, 0.9), slow=st.floats(0.01, 6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_two_groups_hold_whatever_is_lost_or_late(seed: int, losses: float, slow: float) -> None:
    async def story() -> None:
        world = Candidates(seed, shared=True)
        groups: list[tuple[str, LeaderElector]] = []
        tasks: list[asyncio.Task[None]] = []

        def join(group: str) -> None:
            groups.append((group, world.join(group)))
            world.lines[-1].losses, world.lines[-1].slow = losses, slow
            tasks.append(asyncio.create_task(lead(groups[-1][1]), name=group))

        for group in ("a", "a", "b", "b"):
            join(group)
        for _ in range(600):
            await asyncio.sleep(0.1)
            assert len({group for group, one in groups if one.holds()}) <= 1
            for task in [one for one in tasks if one.done()]:
                tasks.remove(task)
                join(task.get_name())
        for task in tasks:
            task.cancel()

    play(story())


def test_the_last_one_of_a_group_gives_the_lease_back() -> None:
    async def story() -> list[str | None]:
        world = Candidates(1, shared=True)
        first, second = world.join("group"), world.join("group")
        await first.acquire()
        await second.acquire()
        others = [True, False]

        async def are_others() -> bool:
            return others.pop(0)

        holders = []
        for one in (first, second):
            await one.release(unless=are_others)
            holders.append(world.server.holder("hvpa"))
        return holders

    assert play(story()) == ["group", None]


def test_who_joins_while_the_last_one_leaves_keeps_the_lease() -> None:
    async def story() -> str | None:
        world = Candidates(1, shared=True)
        first, second = world.join("group"), world.join("group")
        await first.acquire()

        async def meanwhile() -> bool:
            await second.acquire()
            return False

        await first.release(unless=meanwhile)
        return world.server.holder("hvpa")

    assert play(story()) == "group"
