"""Permits and writes, in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.limits import GROW_AFTER, SHORTEST_PAUSE, SPREAD, Limiter
from hvpa.reconcile.ports import Key, Overloaded
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.virtual import run_virtually

BUSY = ApiError(429, "", "Too many requests, please try again later.", 1.0)
A, B, C = (Key("ns", name) for name in "abc")
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200)


def now() -> float:
    return asyncio.get_running_loop().time()


class Least(random.Random):
    """Pauses are exactly as long as asked."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Recorded(Telemetry):
    def __init__(self) -> None:
        self.throttles = 0
        self.waits: list[float] = []

    def throttled(self) -> None:
        self.throttles += 1

    def permit_waited(self, seconds: float) -> None:
        self.waits.append(seconds)


class Harness:
    """Workers that note when they had their permit."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self.begun: list[tuple[str, float]] = []
        self.at_once = 0
        self.most_at_once = 0

    async def work(self, name: str, seconds: float) -> None:
        async with self.limiter.permit():
            self.begun.append((name, now()))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.at_once -= 1

    def start(self, *args: Any) -> asyncio.Task[None]:
        return asyncio.create_task(self.work(*args))

    def order(self) -> list[str]:
        return [name for name, _ in self.begun]


def refuse(limiter: Limiter, error: ApiError = BUSY, key: Key | None = None) -> None:
    with pytest.raises(ApiError), limiter.write(key):
        raise error


def succeed(limiter: Limiter, times: int) -> None:
    for _ in range(times):
        with limiter.write():
            pass


async def test_so_many_at_once_and_the_others_in_the_order_in_which_they_came() -> None:
    recorded = Recorded()
    harness = Harness(Limiter(2, telemetry=recorded))
    begin = now()
    await asyncio.gather(*(harness.start(str(number), 1.0) for number in range(5)))
    assert harness.begun == [(str(number), begin + number // 2) for number in range(5)]
    assert harness.most_at_once == 2
    assert recorded.waits == [1.0, 1.0, 2.0]


async def test_a_server_that_asks_to_wait_is_left_alone_for_as_long_and_asked_by_half_as_many_then() -> None:
    recorded = Recorded()
    limiter = Limiter(8, telemetry=recorded, rng=Least())
    harness = Harness(limiter)
    begin = now()
    under_way = limiter.write()
    under_way.__enter__()
    refuse(limiter)
    under_way.__exit__(ApiError, BUSY, None)  # what was under way gets the same: no further cut
    assert (limiter.limit, recorded.throttles) == (4, 2)
    await asyncio.gather(*(harness.start(str(number), 1.0) for number in range(6)))
    assert [time for _, time in harness.begun] == [begin + 1.0] * 4 + [begin + 2.0] * 2
    refuse(limiter)
    assert limiter.limit == 2


async def test_a_write_whose_permit_was_taken_before_the_server_asked_to_wait_is_not_sent() -> None:
    limiter = Limiter(8, rng=Least())
    async with limiter.permit():
        succeed(limiter, 1)
        refuse(limiter, ApiError(503, "", "shutting down", 7.0))
        await asyncio.sleep(2.0)
        with pytest.raises(Overloaded) as caught, limiter.write():
            pytest.fail("this would have been sent")
        assert caught.value.retry_after.total_seconds() == 5.0
        await asyncio.sleep(5.0)
        succeed(limiter, 1)


async def test_pauses_are_spread_and_a_server_that_asks_for_none_gets_a_short_one() -> None:
    limiter = Limiter()
    pauses = set()
    for _ in range(20):
        refuse(limiter)
        begin = now()
        async with limiter.permit():
            pauses.add(now() - begin)
    assert all(1.0 <= pause <= SPREAD + 1e-6 for pause in pauses)
    assert len(pauses) > 10
    refuse(limiter, ApiError(429, "", "", 0.0))
    begin = now()
    async with limiter.permit():
        assert now() - begin >= SHORTEST_PAUSE - 1e-6


async def test_the_cut_is_taken_back_step_by_step() -> None:
    limiter = Limiter(4, rng=Least())
    refuse(limiter)
    await asyncio.sleep(1.0)
    refuse(limiter)
    await asyncio.sleep(1.0)
    refuse(limiter)
    assert limiter.limit == 1, "never less"
    await asyncio.sleep(1.0)
    harness = Harness(limiter)
    tasks = [harness.start(str(number), 50.0) for number in range(3)]
    await asyncio.sleep(0)
    succeed(limiter, GROW_AFTER - 1)
    assert limiter.limit == 1
    refuse(limiter, ApiError(409, "Conflict", "changed"))  # an answer all the same
    assert limiter.limit == 2
    await asyncio.sleep(0)
    assert harness.order() == ["0", "1"], "the new permit is had at once"
    succeed(limiter, 3 * GROW_AFTER)
    assert limiter.limit == 4
    await asyncio.gather(*tasks)


async def test_a_refusal_that_is_about_one_object_holds_up_nobody_else() -> None:
    """An admission webhook may answer 429: as a metav1.Status, which the API server's own limits don't send."""
    recorded = Recorded()
    limiter = Limiter(8, telemetry=recorded)
    denied = ApiError(429, "TooManyRequests", "webhook denied the request", 30.0)
    for _ in range(10):
        refuse(limiter, denied, A)
    refuse(limiter, denied, B)
    succeed(limiter, 1)
    refuse(limiter, denied, C)
    begin = now()
    async with limiter.permit():
        assert now() == begin
    assert (limiter.limit, recorded.throttles) == (8, 0)
    refuse(limiter, denied, A)
    refuse(limiter, denied, B)  # three of them, and nobody else was answered: it is not about one
    assert (limiter.limit, recorded.throttles) == (4, 1)
    async with limiter.permit():
        assert now() >= begin + 30.0


async def test_writes_under_way_are_counted() -> None:
    limiter = Limiter()
    with limiter.write(), limiter.write():
        assert limiter.in_flight == 2
    refuse(limiter)
    assert limiter.in_flight == 0


Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "cancel", "sleep", "refuse", "cancel at once"]),
        st.integers(0, 20),
        st.floats(0.0, 2.0),
    ),
    max_size=40,
)


@CALM
@given(STEPS, st.integers(1, 4))
def test_whoever_is_cancelled_no_permit_is_lost_and_none_given_twice(steps: list[Step], most: int) -> None:
    async def test() -> None:
        limiter = Limiter(most)
        harness = Harness(limiter)
        tasks: list[asyncio.Task[None]] = []
        for number, (action, which, seconds) in enumerate(steps):
            await _do(harness, tasks, action, which, seconds, number)
            assert harness.at_once <= most
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(200.0)
        limit = limiter.limit
        late = [harness.start(f"late {number}", 1.0) for number in range(limit)]
        begin = now()
        await asyncio.gather(*late)
        assert now() - begin == pytest.approx(1.0), "all permits are to be had again"

    run_virtually(test())


async def _do(
    harness: Harness, tasks: list[asyncio.Task[None]], action: str, which: int, seconds: float, number: int
) -> None:
    match action:
        case "start":
            tasks.append(harness.start(str(number), seconds))
            await asyncio.sleep(0)
        case "cancel" | "cancel at once" if tasks:
            tasks[which % len(tasks)].cancel()
            if action == "cancel":
                await asyncio.sleep(0)
        case "sleep":
            await asyncio.sleep(seconds)
        case "refuse":
            harness.limiter.pause(seconds)
