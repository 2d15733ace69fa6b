"""The recommender as a whole: samples and a VPA in, its status out."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Condition, Recommendation, VpaStatusRead
from hvpa.api.values.quantity import QuantityError, parse_cpu, parse_memory
from hvpa.recommend.vpa.recommender import VerticalRecommender
from hvpa.recommend.vpa.samples import cpu_buckets, memory_buckets, millicores
from tests.unit.recommend.vpa.world import LATER, NOW, START, conditions, found, vpa

DAY = 86_400.0
MIB = 1024 * 1024
AMOUNTS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
MEASUREMENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 60 * 24 * 7), AMOUNTS, AMOUNTS), max_size=40
)


class TestTarget:
    @pytest.mark.parametrize(("cores", "memory"), [(0.3, 5e8), (2.0, 1.5e10), (1e6, 1e15)])
    def test_constant_usage_gives_the_buckets_end_and_the_margin(self, cores: float, memory: float) -> None:
        recommender = VerticalRecommender()
        for minute in range(600):
            recommender.add_sample("pod", "app", START + 60 * minute, cores, memory)
        one = found(recommender.recommend(vpa(), NOW))["app"]
        cpu_end = int(cpu_buckets().ends[cpu_buckets().find(cores)] * 1000)
        memory_end = int(memory_buckets().ends[memory_buckets().find(memory)])
        assert parse_cpu(one.target["cpu"]) == cpu_end + int(cpu_end * 0.15)
        assert parse_memory(one.target["memory"]) == memory_end + int(memory_end * 0.15)
        assert one.uncapped_target == one.target

    def test_a_pod_that_was_not_measured_gets_the_minimum(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, None, None)
        least = {"cpu": "25m", "memory": "250Mi"}
        one = found(recommender.recommend(vpa(), NOW))["app"]
        assert (one.target, one.lower_bound, one.upper_bound) == (least, least, least)

    def test_containers_share_the_minimum_and_come_by_name(self) -> None:
        recommender = VerticalRecommender()
        for name in ("web", "app", "log"):
            recommender.add_sample("pod", name, START, 0.001, 1e6)
        containers = found(recommender.recommend(vpa(), NOW))
        assert list(containers) == ["app", "log", "web"]
        assert {one.target["cpu"] for one in containers.values()} == {"11m"}
        assert {one.target["memory"] for one in containers.values()} == {"87381333"}

    def test_an_oom_raises_memory(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, None, 400.0 * MIB)
        before = parse_memory(found(recommender.recommend(vpa(), NOW))["app"].target["memory"])
        recommender.record_oom("pod", "app", START + 60, 512.0 * MIB)
        after = parse_memory(found(recommender.recommend(vpa(), NOW))["app"].target["memory"])
        assert before < 512 * MIB < 614 * MIB < after < 614 * MIB * 1.05 * 1.15 + 1e7

    def test_an_oom_may_come_before_the_first_measurement(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, None, None)
        recommender.record_oom("pod", "app", START, 512.0 * MIB)
        status = recommender.recommend(vpa(), NOW)
        assert parse_memory(found(status)["app"].target["memory"]) > 612 * MIB
        assert conditions(status) == [("RecommendationProvided", "True", "")]

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

    def test_what_is_empty_goes_with_its_pod(self) -> None:
        recommender = self.used(memory_only=True)
        recommender.forget("pod")
        early = dt.datetime.fromtimestamp(START, dt.UTC)
        assert set(found(recommender.recommend(vpa(), early))) == {"app"}
        assert found(recommender.recommend(vpa(), early)) == {}


class TestPolicies:
    def test_a_container_that_is_off_gets_none_and_takes_no_share(self) -> None:
        recommender = VerticalRecommender()
        for name in ("app", "log"):
            recommender.add_sample("pod", name, START, 0.001, 1e6)
        status = recommender.recommend(vpa({"containerName": "log", "mode": "Off"}), NOW)
        assert {name: one.target["cpu"] for name, one in found(status).items()} == {"app": "25m"}

    def test_its_own_policy_comes_before_that_of_all(self) -> None:
        recommender = VerticalRecommender()
        for name in ("app", "log"):
            recommender.add_sample("pod", name, START, 0.001, 1e6)
        policies = (
            {"containerName": "*", "minAllowed": {"cpu": "1"}},
            {"containerName": "log", "minAllowed": {"cpu": "50m"}, "controlledResources": ["cpu"]},
        )
        one = found(recommender.recommend(vpa(*policies), NOW))
        assert one["app"].target == {"cpu": "1", "memory": "125Mi"}
        assert one["log"].target == {"cpu": "50m"}
        assert one["log"].uncapped_target == {"cpu": "12m"}

    def test_a_new_policy_and_a_new_container_count_at_once(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.001, 1e6)
        assert found(recommender.recommend(vpa(), NOW))["app"].target["cpu"] == "25m"
        higher = vpa({"containerName": "app", "minAllowed": {"cpu": "2"}})
        assert found(recommender.recommend(higher, NOW))["app"].target["cpu"] == "2"
        recommender.add_sample("pod", "log", START, 0.001, 1e6)
        assert set(found(recommender.recommend(higher, NOW))) == {"app", "log"}

    def test_all_off_is_no_recommendation(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.001, 1e6)
        status = recommender.recommend(vpa({"containerName": "*", "mode": "Off"}), NOW)
        assert status.recommendation == Recommendation(container_recommendations=None)
        assert conditions(status) == [("RecommendationProvided", "False", "")]

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
        assert after.recommendation is before.recommendation
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


class TestSameObject:
    def test_while_nothing_changes(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.5, 1e9)
        first = recommender.recommend(vpa(), NOW)
        assert recommender.recommend(vpa(status=first), LATER) is first

    def test_a_policy_that_changes_nothing_gives_it_too(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START, 0.5, 1e9)
        first = recommender.recommend(vpa(), NOW)
        same = vpa({"containerName": "app", "minAllowed": {"cpu": "1m"}}, status=first)
        assert recommender.recommend(same, LATER) is first

    def test_of_a_container_whose_amounts_stay(self) -> None:
        recommender = VerticalRecommender()
        for name in ("app", "log"):
            recommender.add_sample("pod", name, START, 0.5, 1e9)
        first = recommender.recommend(vpa(), NOW)
        recommender.add_sample("pod", "app", START + 60, 0.5, 1e9)
        second = recommender.recommend(vpa(status=first), LATER)
        assert second is not first
        assert found(second)["log"] is found(first)["log"]
        assert found(second)["app"] != found(first)["app"]


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
