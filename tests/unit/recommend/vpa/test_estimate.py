"""Estimates: margins, confidence, minimum. Numbers of `logic/estimator_test.go` and `recommender_test.go`."""

from __future__ import annotations

import math

import pytest

from hvpa.recommend.vpa.estimate import Amounts, PodEstimator, lower_factor, upper_factor
from hvpa.recommend.vpa.samples import Aggregate, cpu_buckets, memory_buckets, whole_amount
from hvpa.recommend.vpa.settings import VpaSettings

DAY = 86_400.0
START = 1_700_006_400.0
"""A midnight."""
MIB = 1024 * 1024


def steady(days: float, every: float = 60.0) -> Aggregate:
    """A container that used one core and 1 GB in each minute of so many days."""
    aggregate = Aggregate(VpaSettings())
    for n in range(int(days * DAY / every) + 1):
        aggregate.add_cpu(1000, START + n * every)
    aggregate.memory.add(1e9, 1.0, START)
    return aggregate


CPU_END = cpu_buckets().ends[cpu_buckets().find(1.0)]
MEMORY_END = memory_buckets().ends[memory_buckets().find(1e9)]


def with_margin(amount: int) -> int:
    return amount + int(amount * 0.15)


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

    @pytest.mark.parametrize(
        ("days", "upper", "lower"), [(0.5, 3.0, 0.998**2), (1, 2.0, 0.998), (4, 1.25, 0.9995)]
    )
    def test_bounds_close_in_with_the_days(self, days: float, upper: float, lower: float) -> None:
        cpu, memory = PodEstimator(VpaSettings()).estimate(steady(days), 1)
        target = with_margin(int(CPU_END * 1000))
        assert cpu.target == target
        assert cpu.upper == pytest.approx(target * upper, rel=1e-3)
        assert cpu.lower == pytest.approx(target * lower, rel=1e-3)
        assert memory.target == with_margin(int(MEMORY_END))
        assert memory.upper == pytest.approx(memory.target * upper, rel=1e-3)
        assert memory.lower == pytest.approx(memory.target * lower, rel=1e-3)

    def test_after_one_sample_the_upper_bound_has_no_end_and_the_lower_is_the_minimum(self) -> None:
        cpu, memory = PodEstimator(VpaSettings()).estimate(steady(0.0), 1)
        assert (cpu.lower, cpu.upper) == (25, 10**14)
        assert (memory.lower, memory.upper) == (250 * MIB, 10**14)


class TestMinimum:
    @pytest.mark.parametrize(
        ("containers", "cpu", "memory"), [(1, 25, 262_144_000), (2, 12, 131_072_000), (3, 8, 87_381_333)]
    )
    def test_the_pods_minimum_is_shared(self, containers: int, cpu: int, memory: int) -> None:
        found = PodEstimator(VpaSettings()).estimate(Aggregate(VpaSettings()), containers)
        assert found == (Amounts(cpu, cpu, cpu), Amounts(memory, memory, memory))

    def test_it_is_a_setting(self) -> None:
        settings = VpaSettings(pod_min_cpu_millicores=100.0, pod_min_memory_mb=64.0)
        cpu, memory = PodEstimator(settings).estimate(Aggregate(settings), 1)
        assert (cpu.target, memory.target) == (100, 64 * MIB)


def test_each_amount_has_its_percentile() -> None:
    settings = VpaSettings(
        safety_margin=0.0,
        target_cpu_percentile=0.2,
        lower_bound_cpu_percentile=0.01,
        upper_bound_cpu_percentile=1.0,
        target_memory_percentile=0.5,
    )
    aggregate = Aggregate(settings)
    for n, cores in enumerate((1000, 2000, 3000)):
        aggregate.add_cpu(cores, START + n)
        aggregate.memory.add(cores * 1e6, 1.0, START)
    aggregate.first_sample = START - 1000 * DAY
    aggregate.samples = 10**8
    cpu, memory = PodEstimator(settings).estimate(aggregate, 1)
    assert cpu.target == pytest.approx(1000, rel=0.05)
    assert cpu.lower == pytest.approx(1000, rel=0.05)
    assert cpu.upper == pytest.approx(3000, rel=0.05)
    assert memory.target == pytest.approx(2e9, rel=0.05)


def test_rounding_up_to_multiples() -> None:
    settings = VpaSettings(round_cpu_millicores=50, round_memory_bytes=MIB)
    cpu, memory = PodEstimator(settings).estimate(steady(1.0), 1)
    plain_cpu, plain_memory = PodEstimator(VpaSettings()).estimate(steady(1.0), 1)
    assert cpu == Amounts(*(math.ceil(one / 50) * 50 for one in plain_cpu))
    assert memory == Amounts(*(math.ceil(one / MIB) * MIB for one in plain_memory))


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(-1.0, 0), (0.0, 0), (math.nan, 0), (1.999, 1), (1e14, 10**14), (math.inf, 10**14)],
)
def test_amounts_are_cut_off(amount: float, expected: int) -> None:
    assert whole_amount(amount) == expected
