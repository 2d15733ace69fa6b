"""The recommender as a whole: samples and a VPA in, its status out."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Condition, VpaStatusRead
from hvpa.api.values.quantity import QuantityError, parse_cpu, parse_memory
from hvpa.recommend.vpa.recommender import VerticalRecommender
from hvpa.recommend.vpa.samples import millicores
from tests.unit.recommend.vpa.world import LATER, NOW, START, conditions, found, vpa

DAY = 86_400.0
MIB = 1024 * 1024
AMOUNTS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
MEASUREMENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 60 * 24 * 7), AMOUNTS, AMOUNTS), max_size=40
)


class TestTarget:
    def test_an_oom_of_a_pod_or_container_that_is_not_known_is_discarded(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, None, None)
        recommender.record_oom("pod", "log", START, 512.0 * MIB)
        recommender.record_oom("gone", "app", START, 512.0 * MIB)
        assert found(recommender.recommend(vpa(), NOW))["app"].target["memory"] == "250Mi"


class TestForgetting:
    AFTER = dt.datetime.fromtimestamp(START + 8 * DAY, dt.UTC)
    BEFORE = dt.datetime.fromtimestamp(START + 8 * DAY - 1, dt.UTC)

    def used(self, memory_only: bool = False) -> VerticalRecommender:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, None if memory_only else 0.5, 1e9)
        return recommender

    def test_history_is_thrown_away_after_8_days_without_cpu(self) -> None:
        for memory_only in (False, True):
            recommender = self.used(memory_only)
            for moment in (self.BEFORE, self.AFTER, self.AFTER + dt.timedelta(hours=1)):
                assert set(found(recommender.recommend(vpa(), moment))) == {"app"}
            assert found(recommender.recommend(vpa(), self.AFTER + dt.timedelta(hours=1))) == {}

    def test_it_begins_anew_with_the_next_measurement_or_oom(self) -> None:
        for tell in ("sample", "oom"):
            recommender = self.used()
            recommender.recommend(vpa(), self.AFTER)
            at = START + 8 * DAY
            recommender.add_sample("pod", "app", at, None, None)
            assert found(recommender.recommend(vpa(), self.AFTER)) == {}
            if tell == "sample":
                recommender.add_sample("pod", "app", at, 0.1, None)
            else:
                recommender.record_oom("pod", "app", at, 1e9)
            one = found(recommender.recommend(vpa(), self.AFTER))["app"]
            assert parse_cpu(one.target["cpu"]) < 200
            assert (one.target["memory"] == "250Mi") is (tell == "sample")


class TestPolicies:
    def test_a_new_policy_and_a_new_container_count_at_once(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.001, 1e6)
        assert found(recommender.recommend(vpa(), NOW))["app"].target["cpu"] == "25m"
        higher = vpa({"containerName": "app", "minAllowed": {"cpu": "2"}})
        assert found(recommender.recommend(higher, NOW))["app"].target["cpu"] == "2"
        recommender.add_sample("pod", "log", START, 0.001, 1e6)
        assert set(found(recommender.recommend(higher, NOW))) == {"app", "log"}

    def test_a_quantity_that_is_none_is_told(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.001, 1e6)
        with pytest.raises(QuantityError):
            recommender.recommend(vpa({"containerName": "*", "minAllowed": {"cpu": "lots"}}), NOW)


class TestConditions:
    def test_without_pods(self) -> None:
        status = VerticalRecommender().recommend(vpa(), NOW)
        assert status.conditions is not None
        message = "No pods match this VPA object"
        since = NOW.replace(microsecond=0)
        assert status.conditions == [
            Condition("NoPodsMatched", "True", "NoPodsMatched", message, since),
            Condition("RecommendationProvided", "False", "NoPodsMatched", message, since),
        ]

    def test_a_recommendation_outlives_its_pods(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.5, 1e9)
        before = recommender.recommend(vpa(), NOW)
        recommender.forget("pod")
        recommender.forget("another")
        after = recommender.recommend(vpa(status=before), LATER)
        assert after.recommendation == before.recommendation
        assert conditions(after) == [
            ("NoPodsMatched", "True", "NoPodsMatched"),
            ("RecommendationProvided", "True", ""),
        ]
        recommender.add_sample("pod-2", "app", START + 60, 0.5, 1e9)
        assert conditions(recommender.recommend(vpa(status=after), LATER)) == [
            ("RecommendationProvided", "True", "")
        ]

    def test_the_time_of_the_transition_stays_until_the_status_changes(self) -> None:
        recommender = VerticalRecommender()
        first = recommender.recommend(vpa(), NOW)
        recommender.add_sample("pod", "log", START, None, None)
        off = vpa({"containerName": "*", "mode": "Off"}, status=first)
        second = recommender.recommend(off, LATER)
        assert second.conditions == [
            Condition("RecommendationProvided", "False", "", "", NOW.replace(microsecond=0))
        ]
        third = recommender.recommend(vpa(status=second), LATER)
        assert third.conditions == [
            Condition("RecommendationProvided", "True", "", "", LATER.replace(microsecond=0))
        ]

    def test_others_stay_but_those_about_the_target(self) -> None:
        others = [
            Condition(kind, "True") for kind in ("LowConfidence", "ConfigUnsupported", "ConfigDeprecated")
        ]
        status = VerticalRecommender().recommend(vpa(status=VpaStatusRead(conditions=others)), NOW)
        assert [kind for kind, _, _ in conditions(status)] == [
            "LowConfidence",
            "NoPodsMatched",
            "RecommendationProvided",
        ]


class TestProperties:
    @given(MEASUREMENTS)
    def test_the_target_lies_between_the_bounds_and_nothing_is_raised(
        self, samples: list[tuple[str, int, float, float]]
    ) -> None:
        recommender = VerticalRecommender()
        for pod, minute, cores, memory in samples:
            recommender.add_sample(pod, "app", START + 60 * minute, cores, memory)
        for one in found(recommender.recommend(vpa(), NOW)).values():
            for resource, parse, least in (("cpu", parse_cpu, 25), ("memory", parse_memory, 250 * MIB)):
                lower, target, upper = (
                    parse(amounts[resource]) for amounts in (one.lower_bound, one.target, one.upper_bound)
                )
                assert least <= lower <= target <= upper

    @given(AMOUNTS)
    def test_millicores_are_whole_and_bounded(self, cores: float) -> None:
        found = millicores(cores)
        assert 0 <= found <= 10**14
        assert found >= min(cores, 1e11) * 1000 - 1e-6
