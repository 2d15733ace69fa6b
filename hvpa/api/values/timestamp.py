"""RFC 3339 timestamps as Kubernetes reads and writes them. Instants are always aware and in UTC."""

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
    """A text that is no RFC 3339 timestamp, or names no instant of years 1 to 9999."""


def parse_timestamp(text: str) -> dt.datetime:
    """The instant that an RFC 3339 text names, cut to the microsecond. Raises `TimestampError`."""
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
    """The instant in UTC, `…Z`, with microseconds only when there are some; the calendar's end where it is beyond.
    Raises `ValueError` for a naive one, which would be read as local time."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant} has no time zone")
    try:
        utc = instant.astimezone(dt.UTC)
    except OverflowError:  # before year 1 or after year 9999 in UTC
        utc = _LAST if instant.year > 1 else _FIRST
    return utc.isoformat().replace("+00:00", "Z")


def readable_timestamp(instant: dt.datetime) -> str:
    """The instant for people: as `format_timestamp`, rounded up to whole seconds, so that what waits until then no
    longer waits at it. Raises `ValueError` for a naive one."""
    if instant.tzinfo is not None and instant.microsecond and instant < _LAST - _SECOND:
        instant = instant.replace(microsecond=0) + _SECOND
    return format_timestamp(instant)
