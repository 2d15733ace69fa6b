"""What requests cost, and how money is written."""

from __future__ import annotations

import pytest

from hvpa.api.values.prices import Prices, money


def test_a_cost_is_core_hours_and_gib_hours_at_their_prices() -> None:
    assert Prices(cpu=0.03, memory=0.004).cost(100, 250) == pytest.approx(4.0)


def test_by_default_a_core_costs_seven_and_a_half_gib() -> None:
    prices = Prices()
    assert prices.cost(1, 0) / prices.cost(0, 1) == pytest.approx(7.46, abs=0.01)


@pytest.mark.parametrize(
    ("cost", "written"),
    [
        (0, "0"),
        (0.04017, "0.0402"),
        (4.0, "4.000"),
        (12.345, "12.35"),
        (-12.345, "-12.35"),
        (1234.56, "1,234.6"),
        (1234567.8, "1,234,568"),
    ],
)
def test_money_has_the_decimals_that_its_size_deserves(cost: float, written: str) -> None:
    assert money(cost) == written


def test_in_a_column_all_have_the_decimals_of_the_largest() -> None:
    assert [money(cost, 12.345) for cost in (12.345, 0.04017, 0)] == ["12.35", "0.04", "0"]
