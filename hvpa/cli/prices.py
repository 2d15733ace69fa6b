"""The flags that set prices, the same for each command that compares costs (`hvpa simulate`, `hvpa report`)."""

from __future__ import annotations

import argparse
import math

from hvpa.api.values.prices import CPU_PRICE, MEMORY_PRICE, Prices


def add_price_flags(parser: argparse.ArgumentParser) -> None:
    """Declare `--cpu-price` and `--memory-price`."""
    source = "an on-demand price of general purpose machines in US dollars, OpenCost's default"
    for flag, unit, default in (
        ("--cpu-price", "core-hour", CPU_PRICE),
        ("--memory-price", "GiB-hour", MEMORY_PRICE),
    ):
        parser.add_argument(
            flag,
            type=price,
            default=default,
            metavar="PRICE",
            help=f"price of a {unit}, in any currency (default {default}: {source})",
        )


def prices_of(args: argparse.Namespace) -> Prices:
    """The prices that the flags give."""
    return Prices(args.cpu_price, args.memory_price)


def price(text: str) -> float:
    """A price: a finite number from 0 on. Raises ArgumentTypeError, which ends the command with 2."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a price: a number from 0 on")
    return value + 0.0
