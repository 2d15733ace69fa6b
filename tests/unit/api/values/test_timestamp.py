"""RFC 3339 timestamps."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.timestamp import TimestampError, format_timestamp, parse_timestamp, readable_timestamp

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)

FORMS = {
    "in UTC": ("2026-11-21T12:00:00Z", NOON),
    "in another zone": ("2026-11-21T13:30:00+01:30", NOON),
    "west of Greenwich": ("2026-11-21T07:00:00-05:00", NOON),
    "with microseconds": ("2026-11-21T12:00:00.000001Z", NOON.replace(microsecond=1)),
    "with few digits": ("2026-11-21T12:00:00.5Z", NOON.replace(microsecond=500_000)),
    "with nanoseconds, cut": ("2026-11-21T12:00:00.123456789Z", NOON.replace(microsecond=123_456)),
}


@pytest.mark.parametrize(("text", "instant"), FORMS.values(), ids=FORMS.keys())
def test_a_timestamp_is_read_as_an_instant_in_utc(text: str, instant: dt.datetime) -> None:
    assert parse_timestamp(text) == instant
    assert parse_timestamp(text).tzinfo is dt.UTC


NO_TIMESTAMPS = {
    "nothing": "",
    "a day": "2026-11-21",
    "no zone": "2026-11-21T12:00:00",
    "a space": "2026-11-21 12:00:00Z",
    "a thirteenth month": "2026-13-21T12:00:00Z",
    "an hour too many": "2026-11-21T25:00:00Z",
    "an instant before the year 1": "0001-01-01T00:00:00+01:00",
    "a line break at the end": "2026-11-21T12:00:00Z\n",
}


@pytest.mark.parametrize("text", NO_TIMESTAMPS.values(), ids=NO_TIMESTAMPS.keys())
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(TimestampError):
        parse_timestamp(text)


def test_an_instant_is_written_in_utc_with_microseconds_only_when_there_are_some() -> None:
    assert format_timestamp(NOON.astimezone(dt.timezone(dt.timedelta(hours=5)))) == "2026-11-21T12:00:00Z"
    assert format_timestamp(NOON) == "2026-11-21T12:00:00Z"
    assert format_timestamp(NOON.replace(microsecond=5)) == "2026-11-21T12:00:00.000005Z"


def test_an_instant_beyond_the_calendar_in_utc_is_written_as_its_end() -> None:
    east, west = (dt.timezone(dt.timedelta(hours=hours)) for hours in (5, -5))
    assert format_timestamp(dt.datetime.min.replace(tzinfo=east)) == "0001-01-01T00:00:00Z"
    assert format_timestamp(dt.datetime.max.replace(tzinfo=west)) == "9999-12-31T23:59:59.999999Z"


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_an_instant_survives_being_written_and_read(instant: dt.datetime) -> None:
    assert parse_timestamp(format_timestamp(instant)) == instant


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (dt.datetime(2026, 11, 21, 10, 0, tzinfo=dt.UTC), "2026-11-21T10:00:00Z"),
        (dt.datetime(2026, 11, 21, 9, 59, 59, 1, tzinfo=dt.UTC), "2026-11-21T10:00:00Z"),
        (dt.datetime.max.replace(tzinfo=dt.UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_an_instant_for_people_is_rounded_up_to_whole_seconds(instant: dt.datetime, expected: str) -> None:
    assert readable_timestamp(instant) == expected


def test_an_instant_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        readable_timestamp(NOON.replace(tzinfo=None, microsecond=5))
