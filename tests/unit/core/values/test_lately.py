"""What metrics called for of late (DESIGN 5.4, sentence 10)."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import NOW, at
from hvpa.core.values.clock import Clock
from hvpa.core.values.lately import Lately
from hvpa.core.values.tuning import JUMP_PERCENT

WINDOW = dt.timedelta(minutes=5)
Seen = list[tuple[float, int]]
"""Seconds since NOW, and what was called for from then on."""


def seen(called_for: Seen) -> Lately:
    lately = Lately(NOW)
    for seconds, amount in called_for:
        lately = lately.then({"cpu": amount}, at(seconds=seconds), WINDOW)
    return lately


def counted(called_for: Seen, seconds: float, amount: int) -> int:
    return seen(called_for).counted("cpu", amount, Clock(at(seconds=seconds)), WINDOW)


def test_the_measurements_of_a_minute_count_with_their_mean() -> None:
    called_for: Seen = [(0, 1000), (15, 1080), (30, 1020)]
    assert counted(called_for, 45, 1100) == 1050
    assert counted([*called_for, (45, 1100), (60, 900)], 61, 900) == 1050, "the minute is over"


def test_one_that_is_far_above_the_largest_minute_counts_by_itself() -> None:
    assert counted([(0, 1000), (15, 1080), (30, 1020)], 45, 1300) == 1300
    assert counted([], 0, 1300) == 1300, "nothing is known before"
    # (1000 + 1200) / 2: 1200 is 9 percent more than that
    assert counted([(0, 1000)], 15, 1200) == 1100


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(3600, 1000), (3615, 1000), (3660, 1000), (3899, 1000), (3900, 500)],
)
def test_what_stood_for_long_counts_as_long_as_the_window(seconds: float, expected: int) -> None:
    """1000 stood for an hour: it is not averaged with what comes after."""
    called_for: Seen = [(0, 1000), (3600, 500)]
    if seconds == 3600:
        called_for.pop()
    assert counted(called_for, seconds, 500) == expected


def test_what_stands_now_is_a_minute_of_its_own_after_one() -> None:
    assert counted([(0, 1000), (15, 1100)], 74, 1100) == 1050
    assert counted([(0, 1000), (15, 1100)], 75, 1100) == 1100


def test_a_metric_that_is_gone_is_forgotten_and_one_that_is_new_begins() -> None:
    both = Lately(NOW).then({"cpu": 1, "memory": 2}, NOW, WINDOW).then({"memory": 3}, at(minutes=2), WINDOW)
    assert (both.now, set(both.before)) == ({"memory": 3}, {"memory"})
    new = both.then({"cpu": 7, "memory": 3}, at(minutes=3), WINDOW)
    assert new.before["cpu"] == ()
    assert new.counted("cpu", 7, Clock(at(minutes=3)), WINDOW) == 7


def test_what_stays_is_the_same_object() -> None:
    lately = seen([(0, 5)])
    assert lately.then({"cpu": 5}, at(minutes=9), WINDOW) is lately


def test_after_the_start_it_is_short_for_the_window() -> None:
    assert Lately(NOW).is_short(Clock(at(minutes=4)), WINDOW) == at(minutes=5)
    assert Lately(NOW).is_short(Clock(at(minutes=5)), WINDOW) is None


def test_without_a_window_a_minute_counts_until_it_is_over() -> None:
    lately = (
        Lately(NOW).then({"cpu": 9}, NOW, dt.timedelta()).then({"cpu": 5}, at(seconds=30), dt.timedelta())
    )
    assert lately.counted("cpu", 5, Clock(at(seconds=59)), dt.timedelta()) == 7
    assert lately.counted("cpu", 5, Clock(at(seconds=60)), dt.timedelta()) == 5


def test_it_looks_again_when_a_minute_leaves_the_window() -> None:
    clock = Clock(at(seconds=3661))
    assert seen([(0, 1000), (3600, 500)]).counted("cpu", 500, clock, WINDOW) == 1000
    assert clock.changes_at == at(seconds=3900)


AMOUNTS = st.integers(0, 10**6)
STEPS = st.lists(st.tuples(st.integers(1, 200), AMOUNTS), max_size=40)


def timed(steps: list[tuple[int, int]]) -> Seen:
    """From steps of so many seconds."""
    now, measurements = 0, []
    for seconds, amount in steps:
        now += seconds
        measurements.append((float(now), amount))
    return measurements


@given(STEPS, st.integers(0, 600), AMOUNTS)
def test_what_counts_is_not_far_below_the_present_and_nothing_that_was_not_called_for(
    steps: list[tuple[int, int]], later: int, amount: int
) -> None:
    called_for = timed(steps)
    end = called_for[-1][0] if called_for else 0
    counted_amount = counted(called_for, end + later, amount)
    assert counted_amount * JUMP_PERCENT >= amount * 100
    values = [value for _, value in called_for] + [amount]
    assert min(values) <= counted_amount <= max(values)


@given(st.permutations([900, 1000, 1050, 1100]), st.integers(0, 9))
def test_the_order_of_a_minutes_measurements_is_irrelevant(order: list[int], later: int) -> None:
    called_for: Seen = [(15.0 * index, amount) for index, amount in enumerate(order)]
    assert counted(called_for, 54 + later / 2, order[-1]) == sum(order) // 4


@given(STEPS)
def test_no_more_is_kept_than_the_minutes_of_the_window(steps: list[tuple[int, int]]) -> None:
    lately = seen(timed(steps))
    assert all(len(minutes) <= 7 for minutes in lately.before.values())


@given(STEPS, st.integers(0, 600), AMOUNTS, st.floats(0, 0.999_999))
def test_until_it_looks_again_the_same_counts(
    steps: list[tuple[int, int]], later: int, amount: int, part: float
) -> None:
    called_for = timed(steps)
    start = at(seconds=(called_for[-1][0] if called_for else 0) + later)
    clock, lately = Clock(start), seen(called_for)
    first = lately.counted("cpu", amount, clock, WINDOW)
    if clock.changes_at is not None:
        again = Clock(start + (clock.changes_at - start) * part)
        assert lately.counted("cpu", amount, again, WINDOW) == first
