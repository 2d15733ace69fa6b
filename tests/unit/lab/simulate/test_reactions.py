"""Rises of a load, and the phases of the reaction to each."""

from __future__ import annotations

import math
import random
from array import array
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.reactions import Reactions, Rise, find_rises


def rises(*values: float, step: float = 10.0) -> list[Rise]:
    return find_rises(array("d", values), step)


def test_a_load_that_never_moves_has_no_rise() -> None:
    assert rises(5, 5, 5, 5) == []
    assert rises() == []
    assert rises(0, 0) == []


def test_a_rise_goes_from_the_end_of_the_low_to_the_peak() -> None:
    assert rises(90, 90, 90, 90, 120, 200, 200, 200, 200, 150) == [Rise(40, 80)]


def test_a_rise_that_lasts_to_the_end_is_one() -> None:
    assert rises(10, 10, 10, 10, 20, 30) == [Rise(40, 50)]


def test_small_movements_are_noise() -> None:
    assert rises(100, 110, 110, 110, 100, 100, 115, 115) == []
    assert rises(1, 1, 1, 5, 5, 1, 1, 1000, 1000) == [Rise(70, 80)], "five is little beside a thousand"


def test_each_rise_after_a_fall_is_one_of_its_own() -> None:
    held = [value for value in (10, 100, 10, 100, 20, 90) for _ in range(3)]
    assert rises(*held) == [Rise(30, 50), Rise(90, 110), Rise(150, 170)]


def test_noise_is_no_rise_however_long_it_lasts() -> None:
    draw = random.Random(1)
    noisy = [draw.gauss(100.0, 5.0) for _ in range(20_000)]
    assert rises(*noisy) == []
    wave = [(200 + 150 * math.sin(i / 1000)) * value / 100 for i, value in enumerate(noisy)]
    assert len(rises(*wave)) == 4, "one for each period that goes up"


def test_a_noisy_rise_begins_where_it_leaves_the_noise() -> None:
    draw = random.Random(2)
    noisy = [draw.gauss(100.0, 3.0) * (1 if i < 500 else 4) for i in range(800)]
    (rise,) = rises(*noisy)
    assert rise.start == 5000, "not at the lowest value of the noise before"


@given(st.lists(st.floats(0, 1e6), max_size=60))
def test_rises_are_in_order_and_go_up(values: list[float]) -> None:
    all_rises = rises(*values, step=1.0)
    for rise in all_rises:
        assert rise.start <= rise.end
        assert values[int(rise.start) - 1] < values[int(rise.end)]
    for rise, other in pairwise(all_rises):
        assert rise.end < other.start


def test_phases_of_a_reaction_add_up_to_the_total() -> None:
    reactions = Reactions([Rise(10, 30), Rise(100, 120)], 0.1)
    for now in range(0, 200, 5):
        reactions.step(float(now), 5.0, 15 <= now < 40)
        if now == 20 or now == 25:
            reactions.used(float(now), 130.0, 100.0)
        if now == 30:
            reactions.hpa_synced(30.0, 25.0, wants_out=True)
            reactions.grew(35.0)
        if now == 60:
            reactions.settled(60.0)
    reactions.finish()
    first, second = reactions.completed
    assert (first.start, first.end) == (10, 30)
    assert (first.tolerance, first.metric_age, first.hpa_period, first.gates) == (10, 5, 5, 5)
    assert first.start_up == 25
    assert first.total == 25
    assert first.unmet_seconds == 25
    assert (second.total, second.tolerance, second.unmet_seconds) == (None, None, 0)


def covered(*unmet: bool, rises: tuple[Rise, ...] = (Rise(0, 10),)) -> list[tuple[float, bool]]:
    """Until demand was covered in each rise, and whether it was; a step takes 10 s."""
    reactions = Reactions(list(rises), 0.1)
    for at, is_unmet in enumerate(unmet):
        reactions.step(10.0 * at, 10.0, is_unmet)
    reactions.finish()
    return [(reaction.cover_seconds, reaction.covered) for reaction in reactions.completed]


def test_demand_that_never_outgrows_the_pods_is_covered_at_once() -> None:
    assert covered(False, False) == [(0.0, True)]


def test_demand_is_covered_when_the_longest_time_without_a_break_ends() -> None:
    assert covered(False, True, True, True, False, True, False) == [(30.0, True)]
    assert covered(True, False, True, True, False) == [(20.0, True)], (
        "a slow wave: its parts are not added up"
    )


def test_what_was_not_covered_in_the_end_is_reported_as_that() -> None:
    assert covered(False, True, True) == [(20.0, False)]
    assert covered(True, True, False, True) == [(20.0, True)], "the longest had ended"


def test_each_rise_is_covered_for_itself() -> None:
    rises = (Rise(0, 10), Rise(30, 40))
    assert covered(True, True, True, True, False, rises=rises) == [(30.0, False), (10.0, True)]


def test_usage_at_the_tolerance_is_not_beyond_it() -> None:
    reactions = Reactions([Rise(0, 10)], 0.1)
    reactions.step(0.0, 1.0, False)
    reactions.used(1.0, 110.0, 100.0)
    reactions.hpa_synced(3.0, 2.0, wants_out=True)
    reactions.finish()
    assert reactions.completed[0].tolerance is None
    assert reactions.completed[0].hpa_period == 1


def test_a_look_that_asks_for_no_more_ends_no_phase() -> None:
    reactions = Reactions([Rise(0, 10)], 0.1)
    reactions.step(0.0, 1.0, False)
    reactions.hpa_synced(3.0, 2.0, wants_out=False)
    reactions.grew(5.0)
    reactions.hpa_synced(6.0, 2.0, wants_out=True)
    reactions.finish()
    assert reactions.completed[0].hpa_period is None
    assert reactions.completed[0].total == 5
