"""Samples of containers: CPU, memory peaks per window, OOMs. Scenarios of `model/container_test.go`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.recommend.vpa.samples import Aggregate, ContainerHistory, cpu_buckets, memory_buckets, millicores
from hvpa.recommend.vpa.settings import VpaSettings

DAY = 86_400.0
START = 1_492_536_905.0
MB = 1024 * 1024


def container(settings: VpaSettings = VpaSettings()) -> tuple[ContainerHistory, Aggregate]:  # noqa: B008
    aggregate = Aggregate(settings)
    return ContainerHistory(aggregate, settings), aggregate


def test_the_first_buckets_are_a_hundredth_of_a_core_and_ten_megabytes() -> None:
    for buckets, first in ((cpu_buckets, 0.01), (memory_buckets, 1e7)):
        buckets.cache_clear()  # made once in a process, perhaps by another test
        assert (buckets().find(0.99 * first), buckets().find(1.01 * first)) == (0, 1)


class TestCpu:
    def test_valid_samples_all_weigh_the_same(self) -> None:
        history, aggregate = container()
        for at, cores in ((0.0, 3.14), (0.5, 6.28), (1.0, 1.57)):
            history.add_cpu(cores, START + at * DAY)
        factor = aggregate.cpu.decay_factor(START)
        for at, cores in ((0.0, 3.14), (0.5, 6.28), (1.0, 1.57)):
            weight = aggregate.cpu.weights[cpu_buckets().find(cores)]
            assert weight == pytest.approx(0.1 * factor * 2**at)
        assert (aggregate.samples, aggregate.first_sample, aggregate.last_sample) == (3, START, START + DAY)

    @pytest.mark.parametrize(("cores", "at"), [(1.0, START), (1.0, START - 1), (-1.0, START + 60)])
    def test_negative_and_old_samples_are_discarded(self, cores: float, at: float) -> None:
        history, aggregate = container()
        history.add_cpu(1.0, START)
        before = list(aggregate.cpu.weights)
        history.add_cpu(cores, at)
        assert (aggregate.samples, aggregate.cpu.weights) == (1, before)

    def test_another_container_may_be_behind(self) -> None:
        history, aggregate = container()
        history.add_cpu(1.0, START)
        ContainerHistory(aggregate, VpaSettings()).add_cpu(1.0, START - 60)
        assert (aggregate.samples, aggregate.first_sample, aggregate.last_sample) == (2, START - 60, START)

    @pytest.mark.parametrize(
        ("cores", "expected"),
        [
            (0.0, 0),
            (0.1, 100),
            (0.29, 290),
            (1.001, 1001),
            (2.3, 2300),
            (0.0001, 1),
            (1.0000001, 1001),
            (1e300, 10**14),
        ],
    )
    def test_a_started_millicore_counts_whole(self, cores: float, expected: int) -> None:
        assert millicores(cores) == expected


class TestAggregate:
    def test_merging_widens_the_time_and_adds_the_samples(self) -> None:
        one, other = Aggregate(VpaSettings()), Aggregate(VpaSettings())
        one.merge(other)
        assert (one.first_sample, one.last_sample, one.samples) == (None, None, 0)
        one.add_cpu(100, START)
        other.add_cpu(200, START - 60)
        other.add_cpu(200, START + 60)
        one.merge(other)
        assert (one.first_sample, one.last_sample, one.samples) == (START - 60, START + 60, 3)

    def test_confidence_is_days_or_samples_whichever_is_less(self) -> None:
        aggregate = Aggregate(VpaSettings())
        assert aggregate.confidence(DAY) == 0.0
        for n in range(9):
            aggregate.add_cpu(1000, START + 120 * n)
        assert aggregate.confidence(DAY) == 0.00625
        assert aggregate.confidence(18 * 60.0) == 0.5
        aggregate.add_cpu(1000, START + 961)
        aggregate.samples = 10_000
        assert aggregate.confidence(DAY) == 961 / DAY

    @given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 500), st.floats(0, 1e12)), max_size=20))
    def test_the_order_of_pods_does_not_matter(self, samples: list[tuple[int, float, float]]) -> None:
        seen = []
        for order in (samples, samples[::-1]):
            aggregate = Aggregate(VpaSettings())
            for minute, cores, memory in order:
                pod = ContainerHistory(aggregate, VpaSettings())
                pod.add_cpu(cores, START + 60 * minute)
                pod.add_memory(memory, START + 60 * minute)
            aggregate.cpu.shift_reference(START)
            aggregate.memory.shift_reference(START)
            seen.append(aggregate)
        one, other = seen
        assert (one.first_sample, one.last_sample) == (other.first_sample, other.last_sample)
        assert one.cpu.weights == pytest.approx(other.cpu.weights, rel=1e-9)
        assert one.memory.weights == pytest.approx(other.memory.weights, rel=1e-9)


@pytest.mark.parametrize(("hours", "memory"), [(-30.0, 2000.0 * MB), (1.0, -1.0)])
def test_old_and_negative_ooms_are_discarded(hours: float, memory: float) -> None:
    history, aggregate = container()
    history.add_memory(1000 * MB, START)
    before = list(aggregate.memory.weights)
    history.record_oom(memory, START + hours * 3600)
    assert aggregate.memory.weights == before
