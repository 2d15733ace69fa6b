"""Means that fade: a value weighs by how long it lasted, and half of that a day later (DESIGN 5.4)."""

from __future__ import annotations

import math

import pytest

from builders.build import NOW, at
from hvpa.core.trajectory.means import GRAIN, Mean, weight_since
from hvpa.core.values.tuning import HALF_LIFE

DAY = HALF_LIFE.total_seconds()
ALWAYS = DAY / math.log(2)
"""What a value weighs that has always been there: the integral of 2 ** (-t / day), in seconds."""


def test_what_has_always_been_there_weighs_one_and_a_half_days() -> None:
    assert weight_since(None, NOW) == pytest.approx(ALWAYS)
    assert weight_since(at(days=-1), NOW) == pytest.approx(ALWAYS / 2)
    assert weight_since(at(days=-2), NOW) == pytest.approx(ALWAYS * 3 / 4)
    assert weight_since(NOW, NOW) == weight_since(at(hours=1), NOW) == 0


@pytest.mark.parametrize(("days", "mean"), [(0, 1000), (1, 1500), (2, 1750), (3, 1875), (30, 2000)])
def test_a_mean_goes_half_of_the_way_in_a_day(days: int, mean: float) -> None:
    later_mean = Mean(1000, ALWAYS, NOW, 2000).at(at(days=days))
    assert later_mean.mean == pytest.approx(mean)
    assert later_mean.weight == pytest.approx(ALWAYS)
    assert (later_mean.time, later_mean.value) == (at(days=days), 2000)


def test_a_young_mean_moves_faster_and_one_without_a_weight_is_its_value() -> None:
    # an hour of 1000, then an hour of 2000: each as long, and the later one is fresher
    mean = Mean(1000, 3600, NOW, 2000).at(at(hours=1))
    assert 1500 < mean.mean < 1520
    assert mean.weight == pytest.approx(7200, rel=0.03)
    assert Mean(1000, 0, NOW, 2000).at(NOW).mean == 2000
    assert Mean(1000, -5, NOW, 2000).at(at(hours=1)).mean == pytest.approx(2000)


def test_counts_weigh_as_many_samples_as_they_have_pods() -> None:
    # a day of 1 replica, then a day of 3: the first day weighs 1 x 1/4, the second 3 x 1/2 of what a full one does
    mean = Mean(1, weight_since(at(days=-1), NOW), NOW, 3, 3.0).at(at(days=1))
    assert mean.mean == pytest.approx((1 * 0.25 + 3 * 1.5) / 1.75)


def test_two_steps_are_as_one() -> None:
    mean = Mean(1000, 5000, NOW, 3000, 2.0)
    twice, once = mean.at(at(hours=5)).at(at(hours=9)), mean.at(at(hours=9))
    assert twice.mean == pytest.approx(once.mean)
    assert twice.weight == pytest.approx(once.weight)


def test_a_time_in_the_future_counts_as_now() -> None:
    mean = Mean(1000, ALWAYS, at(days=5), 2000).at(NOW)
    assert (mean.mean, mean.time) == (1000, NOW)
    assert mean.weight == pytest.approx(ALWAYS)


# --- reporting it --------------------------------------------------------------------------------------------------
def test_a_mean_that_is_where_it_goes_never_moves() -> None:
    for value in (1000, 1005, 995):  # what is nearer than a step is there
        assert Mean(1000, ALWAYS, NOW, value).in_steps(at(days=1)) == (value, None)
    nothing, moves_at = Mean(0, ALWAYS, NOW, 0).in_steps(NOW)
    assert (nothing, moves_at) == (0.001, None)


@pytest.mark.parametrize("steps", [1, 2, 3, 70])
def test_a_value_that_is_whole_steps_away_is_not_waited_for(steps: int) -> None:
    for start, value in ((1000.0, 1000 * GRAIN**steps), (1000 * GRAIN**steps, 1000.0)):
        mean = Mean(start, ALWAYS, NOW, value)  # it comes as near as one likes, and never there
        reported, moves_at = mean.in_steps(at(days=40))
        assert moves_at is None
        assert reported == pytest.approx(value, rel=0.0101)
        assert mean.in_steps(NOW)[0] == pytest.approx(start if steps > 1 else value)


@pytest.mark.parametrize("value", [2000, 500])
def test_a_mean_is_reported_in_steps_of_one_percent_up_and_down(value: int) -> None:
    mean, grain = Mean(1000, ALWAYS, NOW, value), GRAIN if value > 1000 else 1 / GRAIN
    reported, moves_at = mean.in_steps(NOW)
    assert reported == 1000
    steps = 0
    while moves_at is not None:
        before = moves_at
        assert mean.in_steps(at(seconds=(before - NOW).total_seconds() - 1.5))[0] == reported
        reported, moves_at = mean.in_steps(before)
        steps += 1
        assert moves_at is None or moves_at > before
        assert reported == pytest.approx(1000 * grain**steps)
    assert steps == 69  # ln 2 / ln 1.01 = 69.66
    assert reported == pytest.approx(value, rel=0.01)


def test_what_is_reported_is_never_beyond_the_mean_by_more_than_a_step() -> None:
    mean = Mean(1000, 7200, NOW, 4000)
    for hours in (0, 1, 2, 5, 12, 24, 48, 500):
        reported, _ = mean.in_steps(at(hours=hours))
        exact = mean.at(at(hours=hours)).mean
        assert exact / GRAIN * 0.9999 <= reported <= exact * 1.0001


def test_nothing_is_asked_again_before_the_next_step() -> None:
    _, moves_at = Mean(1000, ALWAYS, NOW, 2000).in_steps(at(hours=1))
    assert moves_at is not None
    assert moves_at > at(hours=1)
