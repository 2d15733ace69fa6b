"""The flags that set prices."""

from __future__ import annotations

import argparse

import pytest

from hvpa.api.values.prices import Prices
from hvpa.cli.arguments import add_prices, prices_of


def parsed(*arguments: str) -> Prices:
    parser = argparse.ArgumentParser()
    add_prices(parser.add_argument)
    return prices_of(parser.parse_args(arguments))


def test_prices_have_defaults() -> None:
    assert parsed() == Prices(0.031611, 0.004237)


def test_prices_are_set_by_flags() -> None:
    assert parsed("--cpu-price", "0.05", "--memory-price=0") == Prices(0.05, 0.0)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "free", ""])
def test_a_price_is_a_number_from_zero_on(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--cpu-price={text}")
    assert f"{text!r} is not a price: a number from 0 on" in capsys.readouterr().err
