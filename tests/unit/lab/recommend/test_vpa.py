"""The model of the VPA recommender: what the recorded answers (`test_recorded.py`) do not show."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Condition, ContainerRecommendation, Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import QuantityError, parse_cpu, parse_memory
from hvpa_lab.recommend.vpa.estimate import lower_factor, upper_factor
from hvpa_lab.recommend.vpa.histogram import ZERO_TIME, BucketScheme, DecayingHistogram
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender
from hvpa_lab.recommend.vpa.samples import CPU_BUCKETS, MEMORY_BUCKETS, millicores, whole_amount

NOW = dt.datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=dt.UTC)
START = dt.datetime(2026, 11, 20, tzinfo=dt.UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0
MIB = 1024 * 1024
AMOUNTS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
MEASUREMENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 60 * 24 * 7), AMOUNTS, AMOUNTS), max_size=40
)


def vpa(*policies: dict[str, Any], conditions: list[Condition] | None = None) -> Vpa:
    """A VPA with these container policies."""
    spec = {"resourcePolicy": {"containerPolicies": list(policies)}}
    raw = msgspec.Raw(msgspec.json.encode(spec))
    return Vpa(metadata=VpaMeta(name="app"), raw_spec=raw, status=VpaStatusRead(conditions=conditions))


def found(status: VpaStatusRead) -> dict[str, ContainerRecommendation]:
    """The recommendations by container."""
    assert status.recommendation is not None
    return {
        recommendation.container_name: recommendation
        for recommendation in status.recommendation.container_recommendations or ()
    }


def used() -> VerticalRecommender:
    """A recommender that has measured one pod once."""
    recommender = VerticalRecommender()
    recommender.add_sample("pod", "app", START, 0.5, 1e9)
    return recommender


def test_an_oom_of_a_pod_or_container_that_is_not_known_is_discarded() -> None:
    recommender = VerticalRecommender()
    recommender.add_sample("pod", "app", START, None, None)
    recommender.record_oom("pod", "log", START, 512.0 * MIB)
    recommender.record_oom("gone", "app", START, 512.0 * MIB)
    assert found(recommender.recommend(vpa(), NOW))["app"].target["memory"] == "250Mi"


def test_an_oom_before_the_first_measurement_counts_where_that_was_read_first() -> None:
    recommender = used()
    recommender.record_oom("pod", "app", START - 60, 2000.0 * MIB)
    assert found(recommender.recommend(vpa(), NOW))["app"].target["memory"] == "2975900105"


@pytest.mark.parametrize(("hours", "memory"), [(-30.0, 2000.0 * MIB), (1.0, -1.0)], ids=["old", "negative"])
def test_an_old_or_negative_oom_is_discarded(hours: float, memory: float) -> None:
    recommender = used()
    before = recommender.recommend(vpa(), NOW)
    recommender.record_oom("pod", "app", START + hours * HOUR, memory)
    assert recommender.recommend(vpa(), NOW) is before


@pytest.mark.parametrize("kind", ["sample", "oom"])
def test_after_8_days_the_history_begins_anew_with_the_next_measurement_or_oom(kind: str) -> None:
    recommender = used()
    at = START + 8 * DAY
    after = dt.datetime.fromtimestamp(at, dt.UTC)
    assert set(found(recommender.recommend(vpa(), after - dt.timedelta(seconds=1)))) == {"app"}
    # What is too old is thrown away at most once an hour, after the recommendation.
    later = after + dt.timedelta(hours=1)
    assert set(found(recommender.recommend(vpa(), later))) == {"app"}
    assert found(recommender.recommend(vpa(), later)) == {}
    recommender.add_sample("pod", "app", at, None, None)
    assert found(recommender.recommend(vpa(), later)) == {}
    if kind == "sample":
        recommender.add_sample("pod", "app", at, 0.1, None)
    else:
        recommender.record_oom("pod", "app", at, 1e9)
    recommendation = found(recommender.recommend(vpa(), later))["app"]
    assert parse_cpu(recommendation.target["cpu"]) < 200
    assert (recommendation.target["memory"] == "250Mi") is (kind == "sample")


def test_a_quantity_that_is_none_is_refused() -> None:
    with pytest.raises(QuantityError):
        used().recommend(vpa({"containerName": "*", "minAllowed": {"cpu": "lots"}}), NOW)


def test_conditions_of_others_stay_but_those_about_the_target() -> None:
    others = [Condition(kind, "True") for kind in ("LowConfidence", "ConfigUnsupported", "ConfigDeprecated")]
    status = VerticalRecommender().recommend(vpa(conditions=others), NOW)
    names = [condition.type for condition in status.conditions or ()]
    assert names == ["LowConfidence", "NoPodsMatched", "RecommendationProvided"]


def test_light_samples_do_not_hide_the_others() -> None:
    histogram = DecayingHistogram(BucketScheme(maximum=1000.0, first=1.0, ratio=2.0, epsilon=1e-6), HOUR)
    for value, weight in ((20.0, 3e-6), (0.1, 3e-7), (999.9, 3e-7)):
        histogram.add(value, weight, START)
    assert [histogram.percentile_bucket(fraction) for fraction in (0.0, 0.5, 1.0)] == [4, 4, 4]


@pytest.mark.parametrize(("hours", "whole"), [(1000.4, 1000), (1000.5, 1001)])
def test_the_reference_time_is_rounded_to_whole_half_lives(hours: float, whole: int) -> None:
    histogram = DecayingHistogram(CPU_BUCKETS, HOUR)
    histogram.shift_reference(ZERO_TIME + hours * HOUR)
    assert histogram.reference == ZERO_TIME + whole * HOUR


def test_the_first_buckets_are_a_hundredth_of_a_core_and_ten_megabytes() -> None:
    for buckets, first in ((CPU_BUCKETS, 0.01), (MEMORY_BUCKETS, 1e7)):
        assert (buckets.find(0.99 * first), buckets.find(1.01 * first)) == (0, 1)
        assert len(buckets.starts) == 176


def test_without_history_the_upper_bound_has_no_end_and_the_lower_is_0() -> None:
    assert (upper_factor(0.0), upper_factor(0.5), upper_factor(5e-324)) == (math.inf, 3.0, math.inf)
    assert lower_factor(0.0) == 0.0
    assert lower_factor(5 / 1440) == pytest.approx(1.288**-2)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(-1.0, 0), (0.0, 0), (math.nan, 0), (1.999, 1), (1e14, 10**14), (math.inf, 10**14)],
)
def test_amounts_are_cut_off(amount: float, expected: int) -> None:
    assert whole_amount(amount) == expected


@given(AMOUNTS)
def test_a_started_millicore_counts_whole(cores: float) -> None:
    assert [millicores(amount) for amount in (0.29, 2.3, 0.0001, 1.0000001, 1e300)] == [
        290,
        2300,
        1,
        1001,
        10**14,
    ]
    assert min(cores, 1e11) * 1000 - 1e-6 <= millicores(cores) <= 10**14


@given(MEASUREMENTS)
def test_the_target_lies_between_the_bounds_and_nothing_is_raised(
    samples: list[tuple[str, int, float, float]],
) -> None:
    recommender = VerticalRecommender()
    for pod, minute, cores, memory in samples:
        recommender.add_sample(pod, "app", START + 60 * minute, cores, memory)
    for recommendation in found(recommender.recommend(vpa(), NOW)).values():
        for resource, parse, least in (("cpu", parse_cpu, 25), ("memory", parse_memory, 250 * MIB)):
            bounds = (
                parse(amounts[resource])
                for amounts in (recommendation.lower_bound, recommendation.target, recommendation.upper_bound)
            )
            lower, target, upper = bounds
            assert least <= lower <= target <= upper
