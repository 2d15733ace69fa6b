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


def peaks(aggregate: Aggregate) -> dict[int, float]:
    """Weights by bucket, in units of the weight of a sample at the first window's end."""
    histogram = aggregate.memory
    one = histogram.decay_factor(START + DAY)
    return {
        bucket: round(weight / one, 9) for bucket, weight in enumerate(histogram.weights) if weight >= 1e-4
    }


def bucket(amount: float) -> int:
    return memory_buckets().find(amount)


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


class TestMemory:
    def test_one_peak_per_window(self) -> None:
        history, aggregate = container()
        history.add_memory(50e6, START)
        assert peaks(aggregate) == {bucket(50e6): 1.0}
        history.add_memory(100e6, START + DAY / 2)
        assert peaks(aggregate) == {bucket(100e6): 1.0}
        history.add_memory(20e6, START + DAY)
        assert peaks(aggregate) == {bucket(100e6): 1.0, bucket(20e6): 2.0}

    @pytest.mark.parametrize(("used", "at"), [(200e6, START - 1), (-1.0, START + 60), (50e6, START + 60)])
    def test_old_negative_and_smaller_samples_change_nothing(self, used: float, at: float) -> None:
        history, aggregate = container()
        history.add_memory(100e6, START)
        history.add_memory(used, at)
        assert peaks(aggregate) == {bucket(100e6): 1.0}

    def test_of_two_at_the_same_time_the_larger_counts(self) -> None:
        history, aggregate = container()
        history.add_memory(100e6, START)
        history.add_memory(200e6, START)
        assert peaks(aggregate) == {bucket(200e6): 1.0}

    def test_a_peak_of_nothing_is_never_replaced_in_its_window(self) -> None:
        """As in Go, where a peak of 0 is taken for none."""
        history, aggregate = container()
        history.add_memory(0.0, START)
        history.add_memory(100e6, START + 60)
        assert peaks(aggregate) == {0: 1.0}

    def test_windows_that_were_missed_are_skipped(self) -> None:
        hour = 3600.0
        history, aggregate = container(VpaSettings(memory_aggregation_interval=hour, memory_half_life=hour))
        history.add_memory(50e6, START)
        history.add_memory(100e6, START + 2.5 * hour)
        factor = aggregate.memory.decay_factor(START + hour)
        assert aggregate.memory.weights[bucket(50e6)] == pytest.approx(factor)
        assert aggregate.memory.weights[bucket(100e6)] == pytest.approx(4 * factor)


class TestOom:
    @pytest.mark.parametrize(("requested", "needed"), [(1000, 1200), (1, 101), (500, 600)])
    def test_the_larger_of_a_fifth_and_100_mebibytes_is_added(self, requested: int, needed: int) -> None:
        history, aggregate = container()
        history.record_oom(requested * MB, START)
        assert peaks(aggregate) == {bucket(needed * MB): 1.0}

    def test_smaller_ooms_do_not_run_away(self) -> None:
        history, aggregate = container()
        for requested in (1000, 999, 999):
            history.record_oom(requested * MB, START)
        assert peaks(aggregate) == {bucket(1200 * MB): 1.0}
        history.record_oom(2000 * MB, START)
        assert peaks(aggregate) == {bucket(2400 * MB): 1.0}

    def test_usage_above_the_request_is_taken(self) -> None:
        history, aggregate = container()
        history.add_memory(3000 * MB, START)
        history.record_oom(1000 * MB, START)
        assert peaks(aggregate) == {bucket(3600 * MB): 1.0}

    def test_a_peak_above_the_oom_replaces_it(self) -> None:
        history, aggregate = container()
        history.record_oom(1000 * MB, START)
        history.add_memory(1100 * MB, START + 60)
        assert peaks(aggregate) == {bucket(1200 * MB): 1.0}
        history.add_memory(1300 * MB, START + 120)
        assert peaks(aggregate) == {bucket(1300 * MB): 1.0}

    @pytest.mark.parametrize(("hours", "memory"), [(-30.0, 2000.0 * MB), (1.0, -1.0)])
    def test_old_and_negative_ooms_are_discarded(self, hours: float, memory: float) -> None:
        history, aggregate = container()
        history.add_memory(1000 * MB, START)
        history.record_oom(memory, START + hours * 3600)
        assert peaks(aggregate) == {bucket(1000 * MB): 1.0}

    def test_in_a_new_window_it_still_builds_on_the_last_peak(self) -> None:
        history, aggregate = container()
        history.add_memory(2000 * MB, START)
        history.record_oom(1000 * MB, START + 2 * DAY)
        assert peaks(aggregate) == {bucket(2000 * MB): 1.0, bucket(2400 * MB): 4.0}

    def test_after_an_oom_older_measurements_do_not_count(self) -> None:
        history, aggregate = container()
        history.record_oom(1000 * MB, START)
        history.add_memory(5000 * MB, START - 1)
        assert peaks(aggregate) == {bucket(1200 * MB): 1.0}

    def test_ratio_and_minimum_are_settings(self) -> None:
        history, aggregate = container(VpaSettings(oom_bump_up_ratio=2.0, oom_min_bump_up=0.0))
        history.record_oom(100 * MB, START)
        assert peaks(aggregate) == {bucket(200 * MB): 1.0}


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
