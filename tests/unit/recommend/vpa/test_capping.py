"""Policies of containers."""

from __future__ import annotations

import pytest

from hvpa.api.objects.read_models import Quantity, ResourceList, VpaContainerPolicy
from hvpa.recommend.vpa.capping import ContainerCap
from hvpa.recommend.vpa.estimate import Amounts
from hvpa.recommend.vpa.settings import VpaSettings

CPU = Amounts(500, 200, 4000)
MEMORY = Amounts(2_000_000_001, 1_000_000_001, 4_000_000_001)


def capped(
    least: ResourceList | None = None,
    most: ResourceList | None = None,
    settings: VpaSettings = VpaSettings(),  # noqa: B008
) -> list[ResourceList]:
    policy = VpaContainerPolicy(min_allowed=least or {}, max_allowed=most or {})
    found = ContainerCap(policy, settings).recommendation("app", CPU, MEMORY)
    return [found.target, found.lower_bound, found.upper_bound, found.uncapped_target]


UNCAPPED = [
    {"cpu": "500m", "memory": "2000000001"},
    {"cpu": "200m", "memory": "1000000001"},
    {"cpu": "4", "memory": "4000000001"},
    {"cpu": "500m", "memory": "2000000001"},
]


class TestCaps:
    def test_without_a_policy_nothing_changes(self) -> None:
        assert capped() == UNCAPPED

    def test_min_allowed_raises_all_but_the_uncapped_target(self) -> None:
        target, lower, upper, uncapped = capped({"cpu": "1", "memory": "1500M"})
        assert (target["cpu"], lower["cpu"], upper["cpu"], uncapped["cpu"]) == ("1", "1", "4", "500m")
        assert (target["memory"], lower["memory"]) == ("2000000001", "1500M")

    def test_max_allowed_lowers_all_but_the_uncapped_target(self) -> None:
        target, lower, upper, uncapped = capped(None, {"cpu": "0.3", "memory": "1024Mi"})
        assert (target["cpu"], lower["cpu"], upper["cpu"], uncapped["cpu"]) == (
            "300m",
            "200m",
            "300m",
            "500m",
        )
        assert (target["memory"], lower["memory"], upper["memory"]) == ("1Gi", "1000000001", "1Gi")

    @pytest.mark.parametrize("nothing", ["0", 0, "0m"])
    def test_a_bound_of_0_is_none(self, nothing: Quantity) -> None:
        assert capped({"cpu": nothing}, {"cpu": nothing, "memory": nothing}) == UNCAPPED

    def test_the_most_counts_where_the_least_is_above_it(self) -> None:
        target, lower, upper, _ = capped({"cpu": "3"}, {"cpu": "2"})
        assert (target["cpu"], lower["cpu"], upper["cpu"]) == ("2", "2", "2")

    def test_a_bound_between_two_millicores(self) -> None:
        target, _, upper, _ = capped({"cpu": "499.5m"}, {"cpu": "500.5m"})
        assert (target["cpu"], upper["cpu"]) == ("500m", "500500u")
        target, *_ = capped({"cpu": "500.5m"})
        assert target["cpu"] == "500500u"

    def test_the_recommenders_own_maximum_counts_where_the_policy_has_none(self) -> None:
        settings = VpaSettings(max_allowed_cpu="1", max_allowed_memory="1Gi")
        _, _, upper, uncapped = capped(None, {"cpu": "2"}, settings)
        assert upper == {"cpu": "2", "memory": "1Gi"}
        assert uncapped["memory"] == "2000000001"

    @pytest.mark.parametrize(
        ("controlled", "expected"),
        [(["memory"], {"memory"}), (["memory", "cpu"], {"cpu", "memory"}), ([], set()), (["gpu"], set())],
    )
    def test_only_controlled_resources(self, controlled: list[str], expected: set[str]) -> None:
        found = ContainerCap(
            VpaContainerPolicy(controlled_resources=controlled), VpaSettings()
        ).recommendation("app", CPU, MEMORY)
        for amounts in (found.target, found.lower_bound, found.upper_bound, found.uncapped_target):
            assert set(amounts) == expected
