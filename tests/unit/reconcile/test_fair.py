"""Shares of namespaces: turns, windows and budgets, in virtual time."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from hvpa.reconcile import fair
from hvpa.reconcile.fair import (
    ALLOWANCE,
    FIRST_WINDOW,
    NAMESPACE_SHARE,
    USUAL,
    Overdrawn,
    TimeBudget,
    WaitingLine,
    Window,
)
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue

HONEST = Key("honest", "web")
BOMBS = [Key("evil", str(number)) for number in range(40)]
HEAVY = 0.06
"""Seconds of computing of a decision that is as expensive as may be."""


def test_namespaces_take_turns() -> None:
    queue = WorkQueue()
    for key in BOMBS[:3]:
        queue.add(key, 0.0)
    queue.add(HONEST, 1.0)
    assert [queue.take(2.0) for _ in range(3)] == [BOMBS[0], HONEST, BOMBS[1]]


def test_an_honest_hvpa_comes_second_however_many_wait_before_it() -> None:
    """Counted in decisions that are made before it: none but those that had begun."""
    queue, now = WorkQueue(), 0.0
    for key in BOMBS:
        queue.add(key, now)
    begun = [queue.take(now) for _ in range(16)]
    assert len([key for key in begun if key is not None]) == FIRST_WINDOW
    queue.add(HONEST, now)
    assert queue.take(now) == HONEST


def test_an_expensive_namespace_is_worked_on_one_key_at_a_time() -> None:
    queue, now = WorkQueue(), 0.0
    for key in BOMBS:
        queue.add(key, now)
    for taken in [queue.take(now) for _ in range(FIRST_WINDOW)]:
        assert taken is not None
        queue.done(taken, now, HEAVY)
    assert queue.take(now) is not None
    assert queue.take(now) is None


def test_a_cheap_namespace_is_worked_on_with_all_workers() -> None:
    queue, now = WorkQueue(), 0.0
    keys = [Key("all", str(number)) for number in range(200)]
    for key in keys:
        queue.add(key, now)
    for _ in range(20):
        taken = queue.take(now)
        assert taken is not None
        queue.done(taken, now, USUAL / 2)
    assert None not in [queue.take(now) for _ in range(16)]


def work(queue: WorkQueue, costs: dict[str, float], until: float) -> tuple[Counter[str], dict[str, float]]:
    """One worker for so long; each key comes back at once. How many decisions each namespace got, and how long its keys
    waited at most."""
    done, waited, now = Counter[str](), dict.fromkeys(costs, 0.0), 0.0
    while now < until:
        key = queue.take(now)
        if key is None:
            due = queue.next_due()
            assert due is not None
            now = max(due, now + 0.0001)
            continue
        if not queue.postponed(key):
            waited[key.namespace] = max(waited[key.namespace], queue.waited(key))
        cost = costs[key.namespace]
        now += cost
        queue.add(key, now)
        queue.done(key, now, cost)
        done[key.namespace] += 1
    return done, waited


def test_forty_bombs_that_always_come_back_get_one_part_in_five_of_the_time() -> None:
    queue = WorkQueue()
    for key in [*BOMBS, HONEST]:
        queue.add(key, 0.0)
    done, waited = work(queue, {"evil": HEAVY, "honest": 0.005}, until=60.0)
    assert (done["evil"] - 1) * (HEAVY - USUAL) <= 60.0 / NAMESPACE_SHARE + ALLOWANCE
    assert done["honest"] >= 0.95 * 60.0 / 0.1, "as often as its pace allows"
    assert waited["honest"] <= HEAVY + 0.001, "for the one decision that is being made"


def test_what_waits_for_its_namespace_is_postponed_and_counted() -> None:
    queue, now = WorkQueue(), 0.0
    for key in BOMBS:
        queue.add(key, now)
    while (taken := queue.take(now)) is not None:
        assert queue.postponed(taken) == 0.0
        now += HEAVY
        queue.done(taken, now, HEAVY)
    waiting = queue.waiting_for_budget(now)
    assert waiting > 0
    assert (queue.depth(now), queue.oldest_age(now)) == (0, 0.0), "no worker can help them"
    due = queue.next_due()
    assert due is not None
    late = queue.take(due)
    assert late is not None
    assert queue.postponed(late) == due
    assert queue.waiting_for_budget(due) == 0
    queue.done(late, due)
    assert queue.postponed(late) == 0.0


def test_a_usual_cost_is_free_and_debts_are_forgotten() -> None:
    budget = TimeBudget()
    for _ in range(1000):
        budget.spent("ns", 0.0, USUAL)
    assert budget.first("ns", 0.0) == 0.0
    for number in range(3000):
        budget.spent(str(number), float(number), 2 * USUAL)
    assert len(budget._theoretical) < 1100


def test_windows_are_bounded_in_number() -> None:
    window = Window()
    for number in range(3 * fair.MOST_REMEMBERED):
        window.began(str(number))
        window.ended(str(number), 0.0)
    assert len(window._size) <= fair.MOST_REMEMBERED
    assert window._working == {}


def test_only_so_many_namespaces_are_remembered_to_have_been_over_budget() -> None:
    overdrawn = Overdrawn()
    for number in range(fair.MOST_REMEMBERED + 5):
        overdrawn.put(str(number), 1.0)
        overdrawn.put(str(number), 2.0)  # it has spent more since
    assert overdrawn.pop(1.0) is None
    let_go = [overdrawn.pop(2.0) for _ in range(fair.MOST_REMEMBERED + 5)]
    assert None not in let_go
    assert overdrawn.next() is None
    assert overdrawn.postponed(str(let_go[-1]), since=0.0)
    assert not overdrawn.postponed(str(let_go[0]), since=0.0)


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "pop", "take", "hold", "release", "discard"]), st.integers(0, 8)),
    max_size=60,
)


@given(STEPS)
def test_a_line_loses_and_doubles_nothing(steps: list[tuple[str, int]]) -> None:
    line, clock = WaitingLine(), count()
    keys: dict[Key, float] = {}
    held: set[str] = set()
    for step, number in steps:
        key, namespace = Key(f"ns-{number % 3}", f"web-{number}"), f"ns-{number % 3}"
        match step:
            case "put":
                since = float(next(clock))
                line.put(key, since)
                keys.setdefault(key, since)
            case "pop":
                assert line.pop(key, -1.0) == keys.pop(key, -1.0)
            case "take":
                taken = line.take()
                free = {key: since for key, since in keys.items() if key.namespace not in held}
                if taken is None:
                    assert not free
                else:
                    own = {key: since for key, since in free.items() if key.namespace == taken[0].namespace}
                    assert taken == min(own.items(), key=lambda item: item[1])
                    del keys[taken[0]]
            case "hold":
                line.hold(namespace)
                held.add(namespace)
            case "release":
                line.release(namespace)
                held.discard(namespace)
            case "discard":
                line.discard(lambda key, namespace=namespace: key.namespace == namespace)  # type: ignore[misc]
                keys = {key: since for key, since in keys.items() if key.namespace != namespace}
        free = {key: since for key, since in keys.items() if key.namespace not in held}
        assert len(line) == len(free)
        assert set(line) == keys.keys()
        assert line.oldest() == min(free.values(), default=None)
        assert all((single_key in line) == (single_key in keys) for single_key in [key])
        assert line.waiting(namespace) == sum(key.namespace == namespace for key in keys)
