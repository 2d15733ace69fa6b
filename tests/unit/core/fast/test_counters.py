"""Usage comes from the counters' own times, and impossible counters are no usage."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.core.fast.counters import (
    LONGEST,
    MOST_BYTES,
    MOST_CORES,
    WINDOW,
    CpuCounter,
    Memory,
    Rate,
    Sample,
    newest,
)

ODD = st.floats(allow_nan=True, allow_infinity=True)


def rate_of(*samples: tuple[float, float]) -> Rate | None:
    counter = CpuCounter()
    for sample in samples:
        counter.add(Sample(*sample))
    return counter.rate()


def millicores(*samples: tuple[float, float]) -> int | None:
    rate = rate_of(*samples)
    return None if rate is None else rate.millicores


def test_the_usage_is_the_rise_between_two_samples() -> None:
    assert rate_of((100.0, 7.5), (115.0, 15.0)) == Rate(500, 115.0, 15.0)
    assert millicores((100.0, 7.5)) is None


def test_an_unchanged_time_is_no_news() -> None:
    counter = CpuCounter()
    assert [
        counter.add(Sample(*sample)) for sample in ((1.0, 0.5), (1.0, 0.5), (16.0, 8.0), (16.0, 8.0))
    ] == [
        True,
        False,
        True,
        False,
    ]
    assert counter.rate() == Rate(500, 16.0, 15.0)


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([(1.0, 90.5), (16.0, 0.5)], id="restarted"),
        pytest.param([(100.0, 1.5), (40.0, 2.5)], id="clock set back"),
        pytest.param([(1.0, 1.5), (2.0 + LONGEST, 2.5)], id="too long ago"),
        pytest.param([(1.0, 1.5), (2.0, 2.5 + MOST_CORES)], id="more cores than any node has"),
        pytest.param([(1.0, 1.5), (math.nan, 2.5)], id="no time"),
        pytest.param([(1.0, 1.5), (16.0, -1.0)], id="negative"),
        pytest.param([(1.0, 1.0), (3.0, 2.0)], id="whole seconds, close"),
        pytest.param([(1.0, 1.5), (1.5, 11.5)], id="closer than any kubelet samples"),
    ],
)
def test_impossible_counters_are_no_usage(samples: list[tuple[float, float]]) -> None:
    assert rate_of(*samples) is None


@pytest.mark.parametrize("gap", [1.0, 2.0, 7.0, 15.0, 20.0, 45.0])
def test_lasting_usage_is_that_of_a_minute(gap: float) -> None:
    """Half an hour of 300m; a jump to 3 cores then shows in part."""
    counter, count = CpuCounter(), int(1800 / gap)
    for number in range(count):
        lasting = counter.lasting()
        assert (lasting is None) == ((number - 1) * gap < 60)
        if lasting is not None:
            assert (lasting.millicores, 60 <= lasting.seconds <= 60 + max(20, 2 * gap)) == (300, True)
        counter.add(Sample(number * gap, 0.5 + 0.3 * number * gap))
    assert len(counter._samples) <= 10 / gap + 7
    counter.add(Sample(count * gap, 0.5 + 0.3 * count * gap + 2.7 * gap))
    jumped = counter.lasting()
    assert jumped is not None
    assert 300 < jumped.millicores < 3000


def test_after_a_restart_two_new_samples_are_needed() -> None:
    assert millicores((1.0, 90.5), (16.0, 0.5), (31.0, 3.5)) == 200


def test_whole_seconds_count_over_a_longer_time() -> None:
    """Up to a second too many: 5 of 11 seconds may be 4."""
    assert millicores((1.0, 1.0), (3.0, 2.0), (12.0, 6.0)) == 364
    assert millicores((1.0, 1.0), (11.0, 2.0)) == 0
    assert millicores((1.0, 4.0), (3.0, 4.0)) == 0


def test_samples_of_each_second_count_over_the_window() -> None:
    """A container that uses 1 core in every second second: the last second alone would be 0 or 1000m."""
    samples = [(float(second), second / 2 + 0.25 * (second % 2)) for second in range(30)]
    for count in range(10, 30):
        assert abs((millicores(*samples[:count]) or 0) - 500) <= 1000 * 0.5 / WINDOW


@pytest.mark.parametrize(
    ("samples", "grows"),
    [
        ([(1.0, 1e6), (16.0, 1.02e6)], True),
        ([(1.0, 1e6), (16.0, 1.005e6)], False),  # a percent or less
        ([(1.0, 1e6), (16.0, 2e6), (31.0, 2e6)], False),
        ([(100.0, 1e6), (40.0, 2e6)], False),  # the clock was set back
        ([(1.0, 1e6), (2.0 + LONGEST, 2e6)], False),  # too long ago
        ([(1.0, 1e6)], False),
    ],
)
def test_memory_grows_within_a_series(samples: list[tuple[float, float]], grows: bool) -> None:
    memory = Memory()
    assert all(memory.add(Sample(*sample)) for sample in samples)
    assert memory.grows == grows
    assert memory.last == Sample(*samples[-1])
    assert not memory.add(Sample(*samples[-1]))


@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0, 2 * MOST_BYTES])
def test_impossible_memory_is_no_sample(value: float) -> None:
    memory = Memory()
    assert memory.add(Sample(1.0, 1e6))
    assert not memory.add(Sample(16.0, value))
    assert memory.last == Sample(1.0, 1e6)


def test_the_newest_of_two_counters_counts() -> None:
    pod, container = Rate(900, 20.0, 15.0), Rate(400, 12.0, 14.0)
    assert newest(container, pod) == newest(pod, None) == pod
    assert newest(None, None) is None


@given(st.lists(st.tuples(ODD, ODD)))
def test_any_samples_give_a_usage_that_a_node_can_have_or_none(samples: list[tuple[float, float]]) -> None:
    rate = rate_of(*samples)
    assert rate is None or (0 <= rate.millicores <= MOST_CORES * 1000 and rate.seconds > 0)


@given(st.integers(0, 64000), st.lists(st.floats(1.01, 20), min_size=1, max_size=20), st.integers(0, 10**9))
def test_constant_usage_is_found_whenever_it_is_sampled(used: int, gaps: list[float], begun: int) -> None:
    time, samples = float(begun), [Sample(float(begun), 0.125)]
    for gap in gaps:
        time += gap
        samples.append(Sample(time, 0.125 + used / 1000 * (time - begun)))
    found = millicores(*samples)
    assert found is not None
    assert abs(found - used) <= 1 + used / 1000
