"""The work queue, in virtual time."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import CONFLICT, FAILURE, Backoff, WorkQueue

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


def test_keys_come_out_in_the_order_in_which_they_became_due() -> None:
    queue = WorkQueue()
    for key in (B, A, C, A, B):
        queue.add(key, 0.0)
    assert [queue.take(0.0) for _ in range(4)] == [B, A, C, None]


def test_a_key_that_is_worked_on_comes_again_only_when_it_is_done() -> None:
    queue = WorkQueue()
    queue.add(A, 0.0)
    assert queue.take(0.0) == A
    queue.add(A, 1.0)
    queue.add(A, 2.0)
    assert queue.take(2.0) is None
    queue.done(A, 3.0)
    assert queue.take(3.0) == A
    queue.done(A, 4.0)
    assert queue.take(4.0) is None


def test_of_several_delays_the_earliest_wins() -> None:
    queue = WorkQueue()
    for due in (10.0, 5.0, 7.0):
        queue.add_at(A, due, 0.0)
    assert queue.next_due() == 5.0
    assert queue.take(4.9) is None
    assert queue.take(5.0) == A
    queue.done(A, 5.0)
    assert queue.next_due() is None
    assert queue.take(100.0) is None


def test_an_add_makes_a_delayed_key_due_at_once_and_forgets_the_delay() -> None:
    queue = WorkQueue()
    queue.add_at(A, 10.0, 0.0)
    queue.add(A, 1.0)
    assert queue.take(1.0) == A
    queue.done(A, 1.0)
    assert queue.take(20.0) is None


def test_a_delay_that_is_over_while_the_key_is_worked_on_counts_when_it_is_done() -> None:
    queue = WorkQueue()
    queue.add(A, 0.0)
    assert queue.take(0.0) == A
    queue.add_at(A, 5.0, 0.0)
    assert queue.take(6.0) is None
    queue.done(A, 6.0)
    assert queue.take(6.0) == A


def test_a_hold_outlasts_everything_that_is_added() -> None:
    queue = WorkQueue()
    queue.add(A, 0.0)
    queue.take(0.0)
    queue.add(A, 0.5)
    queue.hold(A, 10.0, 1.0)
    queue.done(A, 1.0)
    queue.add(A, 2.0)
    queue.add_at(A, 3.0, 2.0)
    assert queue.take(9.9) is None
    assert queue.take(10.0) == A
    queue.done(A, 10.0)
    queue.add(A, 10.0)
    assert queue.take(10.0) == A


def test_the_back_off_doubles_up_to_its_cap_and_a_success_resets_it() -> None:
    class Least(random.Random):
        def random(self) -> float:
            return 0.0  # the longest delay

    queue = WorkQueue(Least())
    backoff = Backoff(base=1.0, cap=10.0)
    assert [queue.retry(A, backoff, 0.0) for _ in range(5)] == [2.0, 4.0, 8.0, 10.0, 10.0]
    queue.forget(A)
    assert queue.retry(A, backoff, 0.0) == 2.0


@CALM
@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_back_off_is_positive_and_capped(failures: int, seed: int) -> None:
    for backoff in (FAILURE, CONFLICT):
        assert 0.0 < backoff.delay(failures, random.Random(seed)) <= backoff.cap


def test_depth_and_age_tell_of_the_keys_that_wait() -> None:
    queue = WorkQueue()
    assert (queue.depth(0.0), queue.oldest_age(0.0)) == (0, 0.0)
    queue.add(A, 1.0)
    queue.add_at(B, 2.0, 1.0)
    assert (queue.depth(1.5), queue.oldest_age(1.5)) == (1, 0.5)
    assert (queue.depth(4.0), queue.oldest_age(4.0)) == (2, 3.0)


def test_many_changed_delays_do_not_pile_up() -> None:
    queue = WorkQueue()
    for step in range(10_000):
        queue.add_at(A, 20_000.0 - step, 0.0)
    assert len(queue._timers) < 100
    assert queue.next_due() == 10_001.0


Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "later", "retry", "hold", "take", "done"]),
        st.integers(0, 4),
        st.floats(0.0, 10.0),
    ),
    max_size=60,
)


@CALM
@given(STEPS, st.integers(0, 2**32))
def test_no_key_is_handed_out_twice_and_none_is_lost(steps: list[Step], seed: int) -> None:  # noqa: C901
    keys = [Key("ns", str(number)) for number in range(5)]
    queue = WorkQueue(random.Random(seed))
    working: set[Key] = set()
    wanted: dict[Key, float] = {}  # keys that must come out, at the latest after this time
    holds: dict[Key, float] = {}
    now = 0.0
    for action, number, amount in steps:
        key = keys[number]
        now += amount / 10
        match action:
            case "add":
                queue.add(key, now)
                wanted[key] = now
            case "later":
                queue.add_at(key, now + amount, now)
                wanted.setdefault(key, now + amount)
            case "retry":
                queue.retry(key, FAILURE, now)
                wanted.setdefault(key, now + FAILURE.cap)
            case "hold" if key in working:
                queue.hold(key, now + amount, now)
                wanted[key] = now + amount
                holds[key] = now + amount
            case "take":
                taken = queue.take(now)
                if taken is not None:
                    assert taken not in working
                    assert now >= holds.pop(taken, 0.0)
                    working.add(taken)
                    wanted.pop(taken, None)
            case "done" if key in working:
                working.discard(key)
                queue.done(key, now)
    for key in working:
        queue.done(key, now)
    end = now + 1000.0
    left = set()
    while (taken := queue.take(end)) is not None:
        left.add(taken)
    assert set(wanted) <= left
