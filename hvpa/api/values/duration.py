"""Go durations (`3m`, `1h30m`, `1.5h`), as in Kubernetes manifests. Parsed durations are never negative and are rounded
up to microseconds, so that no positive duration becomes zero."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import Final

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
"""Seconds."""

MAX_LENGTH: Final = 64
"""Maximum length of a text that is read as a duration."""

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, micro sign
    "μs": 10**3,  # U+03BC, Greek letter mu: Go reads both
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LONGEST_NS: Final = 2**63 - 1
"""Go stores a duration as nanoseconds in 64 bits and rejects longer durations."""

PATTERN: Final = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""The form of a Go duration, as a regular expression for both Python and RE2."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION: Final = re.compile(PATTERN.replace("$", r"\Z"), re.ASCII)


class DurationError(ValueError):
    """The text is not a Go duration, or the duration is negative or longer than Go can store (292 years)."""


def parse_duration(text: str) -> dt.timedelta:
    """Returns the duration that a Go program would read. Raises `DurationError`."""
    if len(text) > MAX_LENGTH or _DURATION.match(text) is None:
        raise DurationError(f"{text[:MAX_LENGTH]!r} is not a duration (such as 90s, 3m or 1h30m)")
    nanoseconds = sum(
        (Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), start=Fraction(0)
    )
    if nanoseconds > _LONGEST_NS:
        raise DurationError(f"{text!r} is too long a duration (292 years at most)")
    if text.startswith("-") and nanoseconds > 0:
        raise DurationError(f"{text!r} is a negative duration")
    return dt.timedelta(microseconds=-(-nanoseconds // 1000))


def format_duration(duration: dt.timedelta) -> str:
    """Returns the shortest exact Go duration in hours, minutes and seconds: `1h30m`, `3m`, `1.5s`, `0s`."""
    if duration < dt.timedelta(0):
        return f"-{format_duration(-duration)}"
    seconds, microseconds = divmod(duration // dt.timedelta(microseconds=1), 10**6)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
    if seconds or microseconds or not text:
        fraction = f".{microseconds:06d}".rstrip("0") if microseconds else ""
        text += f"{seconds}{fraction}s"
    return text


def readable_duration(duration: dt.timedelta) -> str:
    """Returns a duration for people: whole seconds, rounded up, in its two largest units: `14m 7s`, `2h 5m`, `3d`,
    `0s`."""
    seconds = -(-duration // dt.timedelta(seconds=1)) if duration > dt.timedelta(0) else 0
    days, hours = seconds // 86_400, seconds // 3600 % 24
    counts = {"d": days, "h": hours, "m": seconds // 60 % 60, "s": seconds % 60}
    first = next((index for index, count in enumerate(counts.values()) if count), 0)
    return (
        " ".join([f"{count}{unit}" for unit, count in [*counts.items()][first : first + 2] if count]) or "0s"
    )
