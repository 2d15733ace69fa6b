"""Flags of several commands, and argument types: each parses a text or raises `ArgumentTypeError`, which ends the
command with 2."""

from __future__ import annotations

import argparse
import datetime as dt
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from hvpa.api.values.duration import DurationError, parse_duration
from hvpa.api.values.prices import CPU_PRICE, MEMORY_PRICE, Prices, PricesError, read_prices
from hvpa.api.values.timestamp import TimestampError, parse_timestamp
from hvpa.cli.errors import CommandError
from hvpa.core.model import Settings
from hvpa.reconcile.ports import Key

DEFAULT_TOLERANCE_PPM = 100_000
"""kube-controller-manager's default, 0.1, in parts per million."""
DEFAULT_VPA_PERIOD = dt.timedelta(minutes=1)
"""The VPA recommender's default, `--recommender-interval`."""
YEARS = range(1970, 2500)
"""Valid years of `--now`: windows and time zones are defined there, and sums of times don't overflow."""
MAX_DIGITS = 18
"""Maximum digits of a number that fits into 64 bits with its sign."""

T = TypeVar("T")
Add = Callable[..., argparse.Action]
"""`ArgumentParser.add_argument`, or the same method of a group."""


# --- flags ----------------------------------------------------------------------------------------------------------
def add_cluster(add: Add) -> None:
    """Declare the flags that select a cluster: `--kubeconfig` and `--context`."""
    default = "default: $KUBECONFIG, ~/.kube/config, or the Pod's ServiceAccount"
    add("--kubeconfig", metavar="FILE", help=default)
    add("--context", help="kubeconfig context (default: the current context)")


def add_operator(add: Add) -> None:
    """Declare `--operator-lease`."""
    text = "Lease that shows whether the operator is alive (default: hvpa-system/hvpa)"
    add("--operator-lease", type=_lease, metavar="NAMESPACE/NAME", help=text)


def _lease(text: str) -> Key:
    namespace, slash, name = text.partition("/")
    if not slash or not all(
        re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", part) for part in (namespace, name)
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME of a Lease")
    return Key(namespace, name)


def add_hvpa(add: Add) -> None:
    """Declare the name and the namespace of the Hvpa to read from a cluster."""
    add("name", metavar="NAME", help="the Hvpa")
    add("-n", "--namespace", help="the Hvpa's namespace (default: the kubeconfig's)")


def add_files(add: Add, what: str, namespace: str) -> None:
    """Declare `-f` (read `what` from files instead of a cluster) and `-n`, which sets `namespace`."""
    text = f"read {what} from YAML or JSON files instead; - is standard input"
    add("-f", "--filename", nargs="+", action="extend", default=[], metavar="FILE", help=text)
    text = f"{namespace} (default: the kubeconfig's); with -f, the namespace of documents without metadata.namespace"
    add("-n", "--namespace", help=text)


def add_now(add: Add, default: str) -> None:
    """Declare `--now`; without it, decisions are as of now."""
    text = f"decide as of this RFC 3339 time (default: {default})"
    add("--now", type=instant, metavar="TIME", help=text)


def add_output(add: Add, default: str = "text", *others: str) -> None:
    """Declare `--output`: text for people (default), JSON, or one of `others`."""
    add("-o", "--output", choices=(default, "json", *others), default=default, help=f"default: {default}")


def add_recommenders(add: Add) -> None:
    """Declare `--hpa-tolerance` and `--vpa-recommender-interval`."""
    text = "kube-controller-manager's --horizontal-pod-autoscaler-tolerance (default 0.1)"
    add("--hpa-tolerance", type=tolerance, default=DEFAULT_TOLERANCE_PPM, metavar="FRACTION", help=text)
    text = "update interval of the VPA recommender; a recommendation older than three intervals is stale (default 1m)"
    flag = "--vpa-recommender-interval"
    add(flag, type=period, default=DEFAULT_VPA_PERIOD, metavar="DURATION", help=text)


def decision_settings(args: argparse.Namespace) -> Settings:
    """The settings from these two flags."""
    return Settings(hpa_tolerance_ppm=args.hpa_tolerance, vpa_period=args.vpa_recommender_interval)


def add_prices(add: Add) -> None:
    """Declare `--prices`, `--cpu-price` and `--memory-price`."""
    text = "file of prices in OpenCost's format (CPU and RAM, per hour); the two flags below take precedence"
    add("--prices", type=Path, metavar="FILE", help=text)
    source = "an on-demand price of general purpose machines in US dollars, OpenCost's default"
    for flag, unit, default in (
        ("--cpu-price", "core-hour", CPU_PRICE),
        ("--memory-price", "GiB-hour", MEMORY_PRICE),
    ):
        text = f"price of a {unit}, in any currency (default {default}: {source})"
        add(flag, type=price, metavar="PRICE", help=text)


def prices_of(args: argparse.Namespace) -> Prices:
    """The prices from these three flags. Raises CommandError if the file can't be read."""
    prices = Prices()
    if args.prices is not None:
        try:
            prices = read_prices(args.prices.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise CommandError(f"--prices: {args.prices} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CommandError(f"--prices: {args.prices} is not UTF-8 text") from None
        except PricesError as error:
            raise CommandError(f"--prices: {args.prices}: {error}") from None
    given = {"cpu": args.cpu_price, "memory": args.memory_price}
    return replace(prices, **{name: value for name, value in given.items() if value is not None})


# --- types ----------------------------------------------------------------------------------------------------------
def checked(text: str, read: Callable[[str], T], fits: Callable[[T], object], what: str) -> T:
    """The parsed text. Raises ArgumentTypeError, which reports that it is not `what`, if it can't be parsed or does
    not fit."""
    with suppress(ValueError, ArithmeticError):
        value = read(text)
        if fits(value):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not {what}")


def price(text: str) -> float:
    """A price: a finite number from 0 on."""
    what = "a price: a number of at least 0"
    return checked(text, float, lambda number: math.isfinite(number) and number >= 0, what) + 0.0


def tolerance(text: str) -> int:
    """`--hpa-tolerance` in parts per million: a fraction from 0 to below 1. Example: 0.1 is 100,000."""
    fraction = checked(text, Decimal, lambda number: 0 <= number < 1, "a fraction from 0 to below 1")
    return int(fraction * 1_000_000)


def period(text: str) -> dt.timedelta:
    """`--vpa-recommender-interval`: a duration of a second to a day."""
    try:
        interval = parse_duration(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not dt.timedelta(seconds=1) <= interval <= dt.timedelta(days=1):
        raise argparse.ArgumentTypeError(f"{text}: must be a duration from 1s to 24h")
    return interval


def percentage(text: str) -> int:
    """A whole number from 0 to 100."""
    return checked(text, count_from(0), lambda number: number <= 100, "a percentage from 0 to 100")


def instant(text: str) -> dt.datetime:
    """`--now`: an RFC 3339 timestamp."""
    try:
        timestamp = parse_timestamp(text)
    except TimestampError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if timestamp.year not in YEARS:
        years = f"{YEARS.start} to {YEARS.stop - 1}"
        raise argparse.ArgumentTypeError(f"{text}: the year must be from {years}")
    return timestamp


def html_file(text: str) -> Path:
    """`--plot` and `--html`: the name of an HTML file."""
    path = Path(text)
    if path.suffix.lower() != ".html":
        raise argparse.ArgumentTypeError(f"{text}: the file name must end in .html")
    return path


def count_from(least: int) -> Callable[[str], int]:
    """A type for whole numbers that are `least` or more."""

    def fits(text: str) -> bool:
        return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) >= least

    return lambda text: int(checked(text, str, fits, f"a whole number of at least {least}"))
