"""Histograms whose samples decay. Numbers from the Go tests of vertical-pod-autoscaler, and closed forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.recommend.vpa.histogram import BucketScheme, DecayingHistogram

HOUR = 3600.0
START = 1_234_566_000.0
"""A whole hour, so that the reference time of an hour's half-life is this very instant."""
DOUBLING = BucketScheme(maximum=1000.0, first=1.0, ratio=2.0, epsilon=1e-6)
"""Buckets 0..1, 1..3, 3..7, 7..15, 15..31, …"""
VALUES = st.floats(min_value=0.0, max_value=1e13, allow_nan=False)
WEIGHTS = st.floats(min_value=0.0, max_value=100.0, allow_nan=False)
TIMES = st.floats(min_value=START, max_value=START + 500 * HOUR, allow_nan=False)
SAMPLES = st.lists(st.tuples(VALUES, WEIGHTS, TIMES), max_size=30)


def hourly(*samples: tuple[float, float, float]) -> DecayingHistogram:
    histogram = DecayingHistogram(DOUBLING, HOUR)
    for value, weight, hours in samples:
        histogram.add(value, weight, START + hours * HOUR)
    return histogram


class TestBuckets:
    def test_edges_of_the_scheme_that_go_tests(self) -> None:
        scheme = BucketScheme(maximum=500.0, first=40.0, ratio=1.5, epsilon=0.001)
        assert scheme.starts == (0.0, 40.0, 100.0, 190.0, 325.0, 527.5)
        assert scheme.ends == (40.0, 100.0, 190.0, 325.0, 527.5, 527.5)
        found = [scheme.find(value) for value in (-1.0, 39.99, 40.0, 99.9, 100.0, 900.0)]
        assert found == [0, 0, 1, 1, 2, 5]

    @pytest.mark.parametrize("first", [0.01, 1e7])
    def test_the_recommenders_schemes_have_176_buckets_each_five_percent_wider(self, first: float) -> None:
        scheme = BucketScheme(maximum=first * 100_000, first=first, ratio=1.05, epsilon=0.0001)
        assert scheme.count == 176
        widths = [end - start for start, end in zip(scheme.starts, scheme.ends[:-1], strict=False)]
        assert widths == pytest.approx([first * 1.05**n for n in range(175)])
        assert scheme.starts[-2] < first * 100_000 <= scheme.starts[-1]

    @given(VALUES)
    def test_a_value_lies_in_its_bucket(self, value: float) -> None:
        bucket = DOUBLING.find(value)
        assert DOUBLING.starts[bucket] <= value * (1 + 1e-9)
        assert bucket == DOUBLING.count - 1 or value <= DOUBLING.ends[bucket] * (1 + 1e-9)

    @pytest.mark.parametrize("wrong", ["maximum", "first", "ratio", "epsilon"])
    def test_a_scheme_without_buckets_is_refused(self, wrong: str) -> None:
        good = {"maximum": 10.0, "first": 1.0, "ratio": 2.0, "epsilon": 0.1}
        with pytest.raises(ValueError, match="above 0"):
            BucketScheme(**{**good, wrong: 0.0})


class TestSubtracting:
    def test_what_is_less_than_epsilon_is_nothing(self) -> None:
        histogram = hourly((2.0, 2.5e-6, 0.0))
        seen = []
        for _ in range(2):
            histogram.subtract(2.0, 1e-6, START)
            seen.append(histogram.is_empty)
        assert seen == [False, True]
        assert histogram.total == 0.0

    def test_light_samples_do_not_hide_the_others(self) -> None:
        histogram = hourly((20.0, 3e-6, 0.0), (0.1, 3e-7, 0.0), (999.9, 3e-7, 0.0))
        assert not histogram.is_empty
        assert (histogram.low, histogram.high) == (4, 4)

    @given(SAMPLES, VALUES, st.floats(0.01, 10.0), TIMES)
    def test_adding_and_subtracting_a_sample_restores(
        self, samples: list[tuple[float, float, float]], value: float, weight: float, at: float
    ) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        for one in samples:
            histogram.add(*one)
        histogram.decay_factor(at)
        before, total = list(histogram.weights), histogram.total
        heaviest = max(total, weight * histogram.decay_factor(at))
        histogram.add(value, weight, at)
        histogram.subtract(value, weight, at)
        near = pytest.approx(before, abs=DOUBLING.epsilon + heaviest * 1e-12)
        assert histogram.weights == near
        assert histogram.total == pytest.approx(total, abs=DOUBLING.epsilon + heaviest * 1e-12)

    @given(SAMPLES, SAMPLES)
    def test_no_weight_gets_negative(
        self, added: list[tuple[float, float, float]], taken: list[tuple[float, float, float]]
    ) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        for one in added:
            histogram.add(*one)
        for one in taken:
            histogram.subtract(*one)
        assert histogram.total >= 0.0
        assert min(histogram.weights) >= 0.0

    def test_negative_weights_are_refused(self) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        with pytest.raises(ValueError, match="negative"):
            histogram.add(1.0, -1.0, START)
        with pytest.raises(ValueError, match="negative"):
            histogram.subtract(1.0, -1.0, START)


class TestMerging:
    def test_weights_add_up_whichever_is_older(self) -> None:
        for shifts in ((0.0, 200.0), (200.0, 0.0), (5.0, 5.0)):
            one = hourly((2.0, 1.0, shifts[0]), (5.0, 1.0, shifts[0]))
            other = hourly((5.0, 1.0, shifts[1]), (900.0, 1.0, shifts[1] + 1))
            one.merge(other)
            latest = max(shifts)
            expected = [0.0] * DOUBLING.count
            for value, hours, weight in (
                (2.0, shifts[0], 1.0),
                (5.0, shifts[0], 1.0),
                (5.0, shifts[1], 1.0),
                (900.0, shifts[1], 2.0),
            ):
                expected[DOUBLING.find(value)] += weight * 2 ** (hours - latest)
            assert one.weights == pytest.approx(expected)
            assert one.total == pytest.approx(sum(expected))
            assert one.reference == START + latest * HOUR

    def test_another_half_life_or_other_buckets_cannot_be_merged(self) -> None:
        one = hourly((2.0, 1.0, 0.0))
        with pytest.raises(ValueError, match="cannot be merged"):
            one.merge(DecayingHistogram(DOUBLING, 2 * HOUR))
        with pytest.raises(ValueError, match="cannot be merged"):
            one.merge(DecayingHistogram(BucketScheme(10.0, 1.0, 2.0, 0.1), HOUR))


class TestLoading:
    def test_shares_of_the_total_weight(self) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        histogram.load({0: 1, 1: 2}, 6.0, START)
        assert histogram.weights[:3] == [2.0, 4.0, 0.0]
        assert (histogram.total, histogram.low, histogram.high) == (6.0, 0, 1)
        assert histogram.decay_factor(START + HOUR) == 2.0

    def test_nothing_but_the_reference(self) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        histogram.load({}, 0.0, START)
        assert histogram.is_empty
        assert histogram.reference == START

    def test_a_share_that_rounds_below_epsilon_does_not_make_it_empty(self) -> None:
        histogram = DecayingHistogram(DOUBLING, HOUR)
        histogram.load({1: 1, 2: 10_000}, 1e-6 * 10_000, START)
        assert not histogram.is_empty
        assert histogram.low == 2

    @pytest.mark.parametrize(
        ("weights", "total"), [({-1: 1}, 1.0), ({99: 1}, 1.0), ({0: -1}, 1.0), ({}, -1.0)]
    )
    def test_what_no_recommender_writes_is_refused(self, weights: dict[int, int], total: float) -> None:
        with pytest.raises(ValueError, match=r"bucket|negative"):
            DecayingHistogram(DOUBLING, HOUR).load(weights, total, START)
