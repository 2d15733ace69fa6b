"""What an HPA beside a VPA would have had under the demo's load, and what a course is worth."""

from __future__ import annotations

import pytest

from demo.rivals import State, hpa_beside_vpa, used, worth
from demo.scenario import Scenario
from demo.snapshot import Resources

LOAD = Scenario()


def test_an_hpa_beside_a_vpa_follows_the_load_and_requests_less_than_is_used() -> None:
    course = hpa_beside_vpa(LOAD, 360)
    first, last = course[0], course[-1]
    assert (first[0], last[0]) == (-60, 359)
    assert (first[1].replicas, first[1].requests.cpu) == (2, 250)
    assert max(state.replicas for _, state in course) == 6
    assert last[1].replicas == 2
    found = worth(course, used(LOAD), 360)
    assert found.end == last[1]
    assert found.requested < sum(used(LOAD)(second, 6) for second in range(360)) / 1000
    assert found.short > 0


def test_a_course_is_worth_what_it_requests_and_what_is_used_above_it() -> None:
    """2 × 250m for 10 s, then 4 × 250m for 5 s; 800m are used: 300m of them above the requests for 10 s."""
    course = [
        (-5.0, State(2, Resources(250, 1))),
        (10.0, State(4, Resources(250, 1))),
    ]
    found = worth(course, lambda second, pods: 800.0, 15)
    assert (found.requested, found.short) == pytest.approx((10.0, 3.0))
    assert found.end.replicas == 4


def test_memory_that_was_rounded_to_whole_kilobytes_is_the_same() -> None:
    start = State(2, Resources(250, 192 * 2**20))
    assert State(2, Resources(250, 201_327_000)).is_as(start)
    assert not State(2, Resources(250, 202_000_000)).is_as(start)
    assert not State(3, Resources(250, 192 * 2**20)).is_as(start)
    assert not State(2, Resources(251, 192 * 2**20)).is_as(start)
