"""The work queue, in virtual time."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import (
    BURST,
    CONFLICT,
    COST_SHARE,
    FAILING_SPACING,
    FAILURE,
    SLOW_SHARE,
    SPACING,
    Backoff,
    Pace,
    WorkQueue,
)

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
A, B = Key("ns", "a"), Key("ns", "b")


STORIES = {
    "keys come out in the order in which they became due": "0 +b +a +c +a +b ?b ?a ?c ?",
    "one that is worked on comes again when it is done": "0 +a ?a 1 +a 2 +a ? 3 !a ?a 4 !a ?",
    "of several delays the earliest wins": "0 a@10 a@5 a@7 4.9 ? 5 ?a !a 100 ?",
    "an add makes a delayed key due and forgets the delay": "0 a@10 1 +a ?a !a 20 ?",
    "a delay that is over while the key is worked on counts then": "0 +a ?a a@5 6 ? !a ?a",
    "a hold outlasts everything that is added": "0 +a ?a 0.5 +a 1 a|10 !a 2 +a a@3 9.9 ? 10 ?a !a +a ?a",
    "an urgent add moves a key up and it is still queued once": "0 ~a ~b ~c 3 +c 4 ~c 5 ?c ?a ?b ?",
    "one that is not urgent and due soon becomes urgent then": "0 ~a ~b ~c c@0.1 a@0.1 0.05 ?a 0.2 ?c ?b ?",
    "one that comes back while it is worked on is not forgotten": "0 +a ?a x 1 +a 2 !a ?a",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_is_handed_out_when(story: str) -> None:
    """A number is the time; `+a` adds, `~a` adds what is not urgent, `a@5` adds for then, `a|5` holds until then, `?a`
    takes, `!a` is done, `x` discards all."""
    queue, now = WorkQueue(), 0.0
    for step in story.split():
        key = Key("ns", step[1:])
        match step[0]:
            case "+" | "~":
                queue.add(key, now, urgent=step[0] == "+")
            case "!":
                queue.done(key, now)
            case "?":
                assert queue.take(now) == (key if step[1:] else None), step
            case "x":
                queue.discard(lambda key: True)
            case "a" | "b" | "c":
                change = queue.add_at if step[1] == "@" else queue.hold
                change(Key("ns", step[0]), float(step[2:]), now)
            case _:
                now = float(step)


def test_what_is_urgent_goes_first_and_the_rest_has_a_share_all_the_same() -> None:
    queue = WorkQueue()
    slow = [Key(f"slow-{number}", "a") for number in range(3)]
    fast = [Key(f"fast-{number}", "a") for number in range(12)]
    for key in slow:
        queue.add(key, 0.0, urgent=False)
    for key in fast:
        queue.add(key, 1.0)
    assert (queue.depth(2.0), queue.oldest_age(2.0)) == (15, 2.0)
    order = [queue.take(2.0) for _ in range(15)]
    assert [key for key in order if key in fast] == fast
    assert [key for key in order if key in slow] == slow
    assert [order.index(key) for key in slow] == [SLOW_SHARE - 1, 2 * SLOW_SHARE - 1, 3 * SLOW_SHARE - 1]
    assert queue.take(2.0) is None


def constantly(queue: WorkQueue, seconds: int, fails: bool = False, later: float = 0.0) -> list[float]:
    """When a key is taken that changes 100 times a second, or is to be looked at again `later`."""
    taken = []
    for tick in range(100 * seconds + 1):
        now = tick / 100
        queue.add_at(A, now + later, now)
        if queue.take(now) is not None:
            taken.append(now)
            if fails:
                queue.retry(A, FAILURE, now)
            queue.done(A, now)
    return taken


def test_a_key_that_changes_all_the_time_is_spaced() -> None:
    taken = constantly(WorkQueue(), 10)
    assert taken[:BURST] == [0.0, 0.01, 0.02, 0.03, 0.04]
    assert len(taken) <= BURST + 10.0 / SPACING
    assert all(after - before < SPACING + 0.011 for before, after in itertools.pairwise(taken)), "not starved"
    assert len(constantly(WorkQueue(), 10, later=0.005)) <= BURST + 10.0 / SPACING, "nor by waits"


def test_a_key_that_changes_all_the_time_and_fails_is_spaced_further_and_mended_by_a_success() -> None:
    queue = WorkQueue()
    taken = constantly(queue, 20, fails=True)
    assert len(taken) <= BURST + 20.0 / FAILING_SPACING
    assert all(after - before <= FAILING_SPACING + 0.02 for before, after in itertools.pairwise(taken))
    queue.add(A, 30.0)
    assert queue.take(30.0) == A
    queue.succeeded(A, 0.0)
    queue.done(A, 30.0)
    queue.add(A, 30.0)
    assert queue.take(30.0) == A


def test_an_expensive_key_has_its_share_of_the_time_and_no_more() -> None:
    queue = WorkQueue()
    spent = now = 0.0
    while now < 100.0:
        queue.add(A, now)
        if queue.take(now) is not None:
            spent += 0.5
            now += 0.5
            queue.done(A, now, cost=0.5)
        now += 0.05
    assert 100.0 / COST_SHARE / 2 < spent < 100.0 / COST_SHARE * 1.2


def test_the_pace_of_keys_that_are_quiet_is_forgotten() -> None:
    pace = Pace()
    for number in range(100_000):
        pace.worked(Key("ns", str(number)), number / 10, 0.0, 0)
    assert len(pace._theoretical) < 3000


def test_keys_of_others_are_forgotten_wherever_they_are() -> None:
    queue = WorkQueue()
    keys = {name: Key("theirs", name) for name in ("fast", "slow", "later", "held", "failed", "working")}
    for name in ("held", "failed", "working"):
        queue.add(keys[name], 0.0)
        assert queue.take(0.0) == keys[name]
    queue.hold(keys["held"], 5.0, 0.0)
    queue.done(keys["held"], 0.0)
    queue.retry(keys["failed"], FAILURE, 0.0)
    queue.done(keys["failed"], 0.0)
    queue.add(keys["fast"], 0.0)
    queue.add(keys["slow"], 0.0, urgent=False)
    queue.add_at(keys["later"], 5.0, 0.0)
    queue.add(keys["working"], 0.0)
    queue.add(A, 0.0)

    def theirs(key: Key) -> bool:
        return key.namespace == "theirs"

    queue.discard(theirs)
    assert queue.working(theirs)
    queue.add_at(keys["working"], 1.0, 0.0)
    queue.done(keys["working"], 0.0)
    assert not queue.working(theirs)
    assert [queue.take(1000.0) for _ in range(2)] == [A, None]


def test_the_back_off_doubles_up_to_its_cap_and_a_success_resets_it() -> None:
    class Least(random.Random):
        def random(self) -> float:
            return 0.0  # the longest delay

    queue = WorkQueue(Least())
    backoff = Backoff(base=1.0, cap=10.0)
    assert [queue.retry(A, backoff, 0.0) for _ in range(5)] == [2.0, 4.0, 8.0, 10.0, 10.0]
    queue.succeeded(A, 0.0)
    assert queue.retry(A, backoff, 0.0) == 2.0


@CALM
@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_back_off_is_positive_and_capped(failures: int, seed: int) -> None:
    for backoff in (FAILURE, CONFLICT):
        assert 0.0 < backoff.delay(failures, random.Random(seed)) <= backoff.cap


def test_depth_and_age_are_those_of_the_keys_that_wait() -> None:
    queue = WorkQueue()
    assert (queue.depth(0.0), queue.oldest_age(0.0)) == (0, 0.0)
    queue.add(A, 1.0, urgent=False)
    queue.add_at(B, 2.0, 1.0)
    assert (queue.depth(1.5), queue.oldest_age(1.5)) == (1, 0.5)
    assert (queue.depth(4.0), queue.oldest_age(4.0)) == (2, 3.0)
    queue.add(A, 4.0)
    assert [queue.take(5.0) for _ in range(3)] == [B, A, None]
    assert queue.waited(A) == 4.0, "its age counts from when it was first due"


def test_many_changed_delays_do_not_pile_up() -> None:
    queue = WorkQueue()
    for step in range(10_000):
        queue.add_at(A, 20_000.0 - step, 0.0)
    assert len(queue._timers._heap) < 100
    assert queue.next_due() == 10_001.0


Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add slowly", "later", "retry", "hold", "take", "done"]),
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
        assert queue.depth(now) <= len(keys) - len(working), "nothing is queued twice"
        match action:
            case "add" | "add slowly":
                queue.add(key, now, urgent=action == "add")
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
