"""RFC 3339 timestamps as Kubernetes reads and writes them. Instants are always timezone-aware and in UTC."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

_TIMESTAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)", re.ASCII
)

_SECOND: Final = dt.timedelta(seconds=1)
_FIRST: Final = dt.datetime.min.replace(tzinfo=dt.UTC)
_LAST: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


class TimestampError(ValueError):
    """The text is not an RFC 3339 timestamp, or the year is not in 1 to 9999."""


def parse_timestamp(text: str) -> dt.datetime:
    """Returns the instant of an RFC 3339 text, truncated to microseconds. Raises `TimestampError`."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise TimestampError(f"{text[:64]!r} is not a timestamp (such as 2026-11-21T10:15:00Z)")
    seconds, fraction, zone = match.groups()
    micros = (fraction or "").ljust(6, "0")[:6]
    try:
        return dt.datetime.fromisoformat(f"{seconds}.{micros}{zone}").astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        raise TimestampError(f"{text!r} is not a timestamp: {error}") from None


def format_timestamp(instant: dt.datetime) -> str:
    """Returns the instant in UTC, `…Z`, with microseconds only if they are not 0. Instants beyond the calendar become
    its end. Raises `ValueError` for a naive instant, which Python would treat as local time."""
    return _in_utc(instant).isoformat().replace("+00:00", "Z")


def readable_timestamp(instant: dt.datetime) -> str:
    """Returns the instant for people: as `format_timestamp`, but rounded up to whole seconds, so that a wait has ended
    at the printed time. Raises `ValueError` for a naive instant."""
    utc = _in_utc(instant)
    if utc.microsecond and utc < _LAST - _SECOND:
        utc = utc.replace(microsecond=0) + _SECOND
    return format_timestamp(utc)


def _in_utc(instant: dt.datetime) -> dt.datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{instant} has no time zone")
    try:
        return instant.astimezone(dt.UTC)
    except OverflowError:  # before year 1 or after year 9999 in UTC
        return _LAST if instant.year > 1 else _FIRST
