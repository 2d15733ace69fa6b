"""What requests cost, and how money is written."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.prices import Prices, PricesError, money, read_prices


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


# --- files of prices -------------------------------------------------------------------------------------------------
OPENCOST = {"provider": "custom", "CPU": "0.02", "spotCPU": "0.006655", "RAM": "0.003", "GPU": "0.95"}


def test_a_file_of_opencost_has_the_prices_of_cpu_and_memory() -> None:
    assert read_prices(json.dumps(OPENCOST)) == Prices(0.02, 0.003)
    assert read_prices("CPU: 1.25\nRAM: 0.5\ncurrencyCode: EUR\ndiscount: 0.0%\n") == Prices(1.25, 0.5, "EUR")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be one object"),
        ("[]", "must be one object"),
        ("CPU: 1\nRAM: 1\n---\nCPU: 1\n", "must be one object"),
        ("{", "line "),
        ("a:\n\t- b", "line 2: "),
        ('{"RAM": "1"}', "CPU: is required: the price of a core-hour"),
        ('{"CPU": "1"}', "RAM: is required: the price of a GiB-hour"),
        ('{"CPU": "free", "RAM": "1"}', "CPU: must be a number of at least 0, such as 0.031611"),
        ('{"CPU": "", "RAM": "1"}', "CPU: must be a number of at least 0"),
        ('{"CPU": "1", "RAM": -0.1}', "RAM: must be a number of at least 0, such as 0.004237"),
        ('{"CPU": "1", "RAM": "inf"}', "RAM: must be a number of at least 0"),
        ('{"CPU": true, "RAM": "1"}', "CPU: must be a number of at least 0"),
        ('{"CPU": [], "RAM": "1"}', "CPU: must be a number of at least 0"),
        ('{"CPU": "1", "RAM": "1", "discount": "30%"}', "discount: is not supported"),
        ('{"CPU": "1", "RAM": "1", "negotiatedDiscount": 0.1}', "negotiatedDiscount: is not supported"),
        ('{"CPU": "1", "RAM": "1", "currencyCode": 1}', "currencyCode: must be a short text"),
        ('{"CPU": "1", "RAM": "1", "currencyCode": "EUROPEAN EURO"}', "currencyCode: must be a short text"),
    ],
)
def test_a_file_without_usable_prices_is_refused_with_its_field(text: str, message: str) -> None:
    with pytest.raises(PricesError, match=message.replace("(", r"\(")):
        read_prices(text)


VALUES = st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.lists(st.integers())
FIELDS = st.sampled_from(("CPU", "RAM", "discount", "negotiatedDiscount", "currencyCode", "GPU"))


@given(st.text() | st.dictionaries(FIELDS, VALUES).map(json.dumps))
def test_whatever_a_file_holds_makes_prices_or_one_error(text: str) -> None:
    with suppress(PricesError):
        prices = read_prices(text)
        assert min(prices.cost(1, 0), prices.cost(0, 1)) >= 0
