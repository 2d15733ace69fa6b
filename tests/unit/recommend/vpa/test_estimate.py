"""Estimates: margins, confidence, minimum. Numbers of `logic/estimator_test.go` and `recommender_test.go`."""

from __future__ import annotations

import math

import pytest

from hvpa.recommend.vpa.estimate import PodEstimator, lower_factor, upper_factor
from hvpa.recommend.vpa.samples import Aggregate, whole_amount
from hvpa.recommend.vpa.settings import VpaSettings

START = 1_700_006_400.0
"""A midnight."""
MIB = 1024 * 1024


class TestConfidence:
    @pytest.mark.parametrize(
        ("confidence", "expected"),
        [(0.0, math.inf), (0.5, 3.0), (1.0, 2.0), (7.0, 8 / 7), (5e-324, math.inf)],
    )
    def test_the_upper_bound(self, confidence: float, expected: float) -> None:
        assert upper_factor(confidence) == expected

    @pytest.mark.parametrize(
        ("minutes", "expected"),
        [(0.0, 0.0), (5.0, 1.288**-2), (30.0, 1.048**-2), (60.0, 1.024**-2), (1440.0, 1.001**-2)],
    )
    def test_the_lower_bound(self, minutes: float, expected: float) -> None:
        assert lower_factor(minutes / 1440) == pytest.approx(expected)

    def test_after_one_sample_the_upper_bound_has_no_end_and_the_lower_is_the_minimum(self) -> None:
        aggregate = Aggregate(VpaSettings())
        aggregate.add_cpu(1000, START)
        aggregate.memory.add(1e9, 1.0, START)
        cpu, memory = PodEstimator(VpaSettings()).estimate(aggregate, 1)
        assert (cpu.lower, cpu.upper) == (25, 10**14)
        assert (memory.lower, memory.upper) == (250 * MIB, 10**14)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(-1.0, 0), (0.0, 0), (math.nan, 0), (1.999, 1), (1e14, 10**14), (math.inf, 10**14)],
)
def test_amounts_are_cut_off(amount: float, expected: int) -> None:
    assert whole_amount(amount) == expected
