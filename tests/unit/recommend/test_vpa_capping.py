"""Policies of containers, and quantities as Go prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects import Quantity, ResourceList, VpaContainerPolicy
from hvpa.api.quantity import parse_cpu, parse_memory
from hvpa.recommend.vpa_capping import ContainerCap, cpu_text, memory_text, quantity_text
from hvpa.recommend.vpa_estimate import Amounts
from hvpa.recommend.vpa_settings import VpaSettings

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


class TestQuantities:
    @pytest.mark.parametrize(
        ("amount", "text"),
        [(0, "0"), (25, "25m"), (1500, "1500m"), (2000, "2"), (2_000_000, "2k"), (10**14, "100G")],
    )
    def test_cpu(self, amount: int, text: str) -> None:
        assert cpu_text(amount) == text

    @pytest.mark.parametrize(
        ("amount", "text"),
        [
            (0, "0"),
            (1000, "1k"),
            (1023, "1023"),
            (262_144_000, "250Mi"),
            (274_357_142, "274357142"),
            (10**14, "97656250000Ki"),
            (2**70, "1024Ei"),
        ],
    )
    def test_memory(self, amount: int, text: str) -> None:
        assert memory_text(amount) == text

    @pytest.mark.parametrize(
        ("quantity", "text"),
        [
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.5", "500m"),
            (2, "2"),
            (0.25, "250m"),
            ("1000m", "1"),
            ("1e3", "1e3"),
            ("1E", "1E"),
            ("100e-3", "100e-3"),
            ("5e0", "5"),
            ("1500M", "1500M"),
            ("0.1n", "1n"),
            ("1000E", "1000E"),
            ("1000.0001Ki", "1024000102400u"),
        ],
    )
    def test_what_somebody_wrote(self, quantity: Quantity, text: str) -> None:
        assert quantity_text(quantity) == text

    @given(st.integers(0, 10**14))
    def test_nothing_is_lost(self, amount: int) -> None:
        assert parse_cpu(cpu_text(amount)) == amount
        assert parse_memory(memory_text(amount)) == amount
        assert parse_memory(quantity_text(f"{amount}Ki")) == amount * 1024
