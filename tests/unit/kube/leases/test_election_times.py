"""Leader election in virtual time: how soon it goes on after a crash or a release, and that no two ever lead, whatever
becomes of requests and responses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate, LeaseTimes
from tests.unit.kube.fake_server import background
from tests.unit.kube.virtual import LeaseServer, Line, VirtualClock, run_virtually

pytestmark = pytest.mark.long

TIMES = LeaseTimes()
seeds = st.integers(0, 2**32)


class Candidates:
    def __init__(self, seed: int = 1, shared: bool = False) -> None:
        self.server = LeaseServer()
        self.rng = random.Random(seed)
        self.shared = shared
        self.lines: list[Line] = []
        self.electors: list[LeaderElector] = []
        self.groups: list[str] = []

    def join(self, identity: str = "") -> LeaderElector:
        line = Line(self.server, self.rng)
        identity = identity or f"one-{len(self.lines)}"
        candidate = Candidate("ns", "hvpa", identity, TIMES, self.shared, labels={"a": "b"})
        monotonic = asyncio.get_running_loop().time
        elector = LeaderElector(cast(Transport, line), VirtualClock(), candidate, monotonic)
        self.lines.append(line)
        self.electors.append(elector)
        self.groups.append(identity)
        return elector

    @property
    def line(self) -> Line:
        """The first one's."""
        return self.lines[0]

    @property
    def holder(self) -> str | None:
        return self.server.holder("hvpa")

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.server.requests]

    async def holding(self, *identities: str) -> list[LeaderElector]:
        """Candidates that all hold the lease."""
        joined = [self.join(identity) for identity in identities or ("",)]
        for elector in joined:
            await elector.acquire()
        return joined


async def lead(elector: LeaderElector) -> None:
    await elector.acquire()
    await elector.keep()


def now() -> float:
    return asyncio.get_running_loop().time()


@given(seed=seeds, age=st.floats(0, 10))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_crash_costs_less_than_two_seconds_beyond_the_lease(seed: int, age: float) -> None:
    async def test() -> tuple[float, int]:
        harness = Candidates(seed)
        first, second = harness.join(), harness.join()
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        async with background(first.keep()):
            await asyncio.sleep(age)
        crashed, before = now(), len(harness.methods)
        harness.line.cut = True
        await waiting
        assert not first.holds()
        assert harness.server.leases["hvpa"]["spec"]["leaseTransitions"] == 1
        return now() - crashed, len(harness.methods) - before

    took, requests = run_virtually(test())
    assert TIMES.duration - TIMES.retry - 0.1 < took < TIMES.duration + 2
    assert requests <= 25  # looks at one object, about one a second


@given(seed=seeds)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_what_is_given_back_is_taken_within_a_second(seed: int) -> None:
    async def test() -> float:
        harness = Candidates(seed)
        (first,), second = await harness.holding(), harness.join()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(5)
        await first.release()
        released = now()
        await waiting
        return now() - released

    assert run_virtually(test()) < 1.1


@pytest.mark.parametrize("groups", [["", "", ""], ["a", "a", "b", "b"]], ids=["single ones", "groups"])
@given(seed=seeds, losses=st.floats(0, 0.9), slow=st.floats(0.01, 6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_two_hold_whatever_is_lost_or_late(
    groups: list[str], seed: int, losses: float, slow: float
) -> None:
    async def test() -> int:
        harness, tasks = Candidates(seed, shared=groups[0] != ""), list[asyncio.Task[None]]()
        held = set()

        def join(group: str) -> None:
            tasks.append(asyncio.create_task(lead(harness.join(group)), name=group or None))
            harness.lines[-1].losses, harness.lines[-1].slow = losses, slow

        for group in groups:
            join(group)
        for _ in range(600):
            await asyncio.sleep(0.1)
            who = {
                group
                for group, elector in zip(harness.groups, harness.electors, strict=True)
                if elector.holds()
            }
            assert len(who) <= 1
            held |= who
            for task in [
                task for task in tasks if task.done()
            ]:  # it has lost the lease, and is started again
                tasks.remove(task)
                join(task.get_name() if harness.shared else "")
        for task in tasks:
            task.cancel()
        return len(held)

    assert run_virtually(test()) >= (1 if losses < 0.3 and slow < 0.5 else 0)


@pytest.mark.parametrize("shared", [False, True])
@given(seed=seeds)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_after_a_request_over_a_dead_connection_a_second_one_may_be_lost(shared: bool, seed: int) -> None:
    async def test() -> tuple[bool, bool]:
        harness = Candidates(seed, shared)
        (first,) = await harness.holding("group")
        async with background(first.keep()) as keeping:
            await asyncio.sleep(harness.rng.uniform(0, 20))
            harness.line.dead = 2
            await asyncio.sleep(20)
            return first.holds(), keeping.done()

    assert run_virtually(test()) == (True, False)


async def test_a_response_that_is_lost_does_not_cost_the_lease() -> None:
    harness = Candidates()
    (first,) = await harness.holding()
    async with background(first.keep()):
        await asyncio.sleep(1)
        harness.line.deaf = True
        await asyncio.sleep(3)  # it is renewed meanwhile, and does not learn of it
        harness.line.deaf = False
        before = len(harness.methods)
        await asyncio.sleep(8)
        # A conflict, a look, and it is renewed all the same.
        assert harness.methods[before : before + 3] == ["PUT", "GET", "PUT"]
        assert first.holds()


async def test_a_lease_that_is_deleted_is_left_to_its_holder_and_made_again() -> None:
    harness = Candidates()
    (first,), second = await harness.holding(), harness.join()
    async with background(first.keep()), background(second.acquire()):
        await asyncio.sleep(5)
        del harness.server.leases["hvpa"]
        await asyncio.sleep(10)
        assert (first.holds(), second.holds(), harness.holder) == (True, False, "one-0")


async def test_what_stands_in_the_lease_and_what_others_wrote_into_it_stays() -> None:
    harness = Candidates()
    elector = harness.join()
    assert not elector.holds()
    await elector.acquire()
    taken = harness.server.leases["hvpa"]
    spec = taken["spec"]
    taken["metadata"]["annotations"] = {"note": "mine"}
    assert elector.holds()
    await elector.release()
    assert not elector.holds()
    assert spec.pop("acquireTime") == spec.pop("renewTime")
    assert spec == {"holderIdentity": "one-0", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    metadata = harness.server.leases["hvpa"]["metadata"]
    assert (metadata["annotations"], metadata["labels"]) == ({"note": "mine"}, {"a": "b"})


async def test_a_holder_that_cannot_renew_loses_the_lease_and_short_trouble_does_not_cost_it() -> None:
    harness = Candidates()
    (elector,) = await harness.holding()
    async with background(elector.keep()) as keeping:
        await asyncio.sleep(5)
        harness.line.cut = True
        await asyncio.sleep(6)
        harness.line.cut = False
        harness.server.leases["hvpa"]["metadata"]["resourceVersion"] = (
            "x"  # touched by somebody: it is still ours
        )
        await asyncio.sleep(20)
        assert elector.holds()
        harness.line.cut = True
        began = now()
        await keeping
    assert not elector.holds()
    assert TIMES.renew - TIMES.retry - 0.1 < now() - began <= TIMES.renew


async def test_a_lease_that_another_client_took_is_lost_and_not_given_back() -> None:
    harness = Candidates()
    (elector,) = await harness.holding()
    lease = harness.server.leases["hvpa"]
    lease["metadata"]["resourceVersion"], lease["spec"]["holderIdentity"] = "x", "two"
    await elector.keep()
    assert not elector.holds()
    await elector.release()
    assert harness.holder == "two"


async def test_a_process_that_was_stopped_for_too_long_may_not_write() -> None:
    """No other process has the lease before 115, when what was sent at the last has arrived."""
    elector, time = Candidates().join(), 100.0
    elector._monotonic = lambda: time
    await elector.acquire()
    time = 109.9
    assert elector.holds()
    time = 110.0
    assert not elector.holds()


@pytest.mark.parametrize("tried", [True, False])
async def test_who_is_stopped_while_it_acquires_leaves_the_lease_free(tried: bool) -> None:
    harness = Candidates()
    first = harness.join()
    async with background(first.acquire()):
        while tried and harness.holder is None:
            await asyncio.sleep(0.0001)
    await first.release()  # the response is still on the way
    assert harness.holder is None


# --- a lease that a group shares -------------------------------------------------------------------------------------
async def test_who_looked_long_ago_does_not_live_on_what_another_one_renewed() -> None:
    first, second = await Candidates(shared=True).holding("group", "group")
    await asyncio.sleep(TIMES.renew * 0.6)
    for elector in (
        first,
        second,
    ):  # each sees a renewal of which it knows only that it was after its last look
        assert await elector._try()
    await asyncio.sleep(TIMES.renew * 0.6)
    assert first.holds()
    assert second.holds()


async def test_a_group_keeps_its_lease_with_the_writes_of_one() -> None:
    harness = Candidates(shared=True)
    tasks = [asyncio.create_task(lead(harness.join("group"))) for _ in range(4)]
    await asyncio.sleep(10)
    before = harness.methods.count("PUT")
    await asyncio.sleep(60)
    assert all(elector.holds() for elector in harness.electors)
    assert 60 / (2 * TIMES.retry) <= harness.methods.count("PUT") - before <= 60 / TIMES.retry + 4
    for task in tasks:
        task.cancel()


def will_be(others: bool) -> Callable[[], Awaitable[bool]]:
    async def are_others() -> bool:
        return others

    return are_others


async def test_the_last_one_of_a_group_gives_the_lease_back() -> None:
    harness = Candidates(shared=True)
    first, second = await harness.holding("group", "group")
    await first.release(unless=will_be(True))
    assert harness.holder == "group"
    await second.release(unless=will_be(False))
    assert harness.holder is None


async def test_who_joins_while_the_last_one_leaves_keeps_the_lease() -> None:
    harness = Candidates(shared=True)
    (first,), second = await harness.holding("group"), harness.join("group")

    async def meanwhile() -> bool:
        await second.acquire()
        return False

    await first.release(unless=meanwhile)
    assert harness.holder == "group"
