"""Go durations."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.duration import DurationError, format_duration, parse_duration, readable_duration

LONGEST_MICROSECONDS = (2**63 - 1) // 1000

FORMS = {
    "zero without a unit": ("0", dt.timedelta(0)),
    "zero with a sign": ("+0", dt.timedelta(0)),
    "negative zero": ("-0s", dt.timedelta(0)),
    "hours": ("2h", dt.timedelta(hours=2)),
    "hours and minutes": ("1h30m", dt.timedelta(minutes=90)),
    "a fraction": ("1.5h", dt.timedelta(minutes=90)),
    "no digits before the point": (".5s", dt.timedelta(milliseconds=500)),
    "no digits after the point": ("1.s", dt.timedelta(seconds=1)),
    "milliseconds": ("250ms", dt.timedelta(milliseconds=250)),
    "microseconds": ("3us", dt.timedelta(microseconds=3)),
    "microseconds with the micro sign": ("3\u00b5s", dt.timedelta(microseconds=3)),
    "microseconds with the Greek letter": ("3\u03bcs", dt.timedelta(microseconds=3)),
    "nanoseconds, rounded up": ("1ns", dt.timedelta(microseconds=1)),
    "nanoseconds that make a whole": ("2000ns", dt.timedelta(microseconds=2)),
    "a sign": ("+5m", dt.timedelta(minutes=5)),
    "units in any order, repeated": ("1s1h1s", dt.timedelta(hours=1, seconds=2)),
    "every unit": ("1h1m1s1ms1us1ns", dt.timedelta(hours=1, minutes=1, seconds=1, microseconds=1002)),
    "the longest that Go holds": (
        "2562047h47m16.854775807s",
        dt.timedelta(microseconds=LONGEST_MICROSECONDS + 1),
    ),
}


@pytest.mark.parametrize(("text", "duration"), FORMS.values(), ids=FORMS.keys())
def test_every_form_of_a_duration_is_read(text: str, duration: dt.timedelta) -> None:
    assert parse_duration(text) == duration


NO_DURATIONS = {
    "nothing": "",
    "a number without a unit": "3",
    "a unit without a number": "m",
    "a point": ".s",
    "an unknown unit": "3d",
    "a space": "1h 30m",
    "a line break at the end": "3m\n",
    "a sign in the middle": "1h-1m",
    "an exponent": "1e3s",
    "a negative duration": "-3m",
    "digits of another script": "٣m",
    "one nanosecond too long": "2562047h47m16.854775808s",
    "far too long": "9" * 60 + "h",
    "too many characters": "1s" * 100,
}


@pytest.mark.parametrize("text", NO_DURATIONS.values(), ids=NO_DURATIONS.keys())
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


TEXTS = {
    "nothing": (dt.timedelta(0), "0s"),
    "seconds": (dt.timedelta(seconds=42), "42s"),
    "whole minutes": (dt.timedelta(minutes=3), "3m"),
    "hours and minutes": (dt.timedelta(minutes=90), "1h30m"),
    "hours and seconds": (dt.timedelta(seconds=3601), "1h1s"),
    "a fraction": (dt.timedelta(milliseconds=1500), "1.5s"),
    "less than a second": (dt.timedelta(microseconds=250), "0.00025s"),
    "days": (dt.timedelta(days=2), "48h"),
    "a negative one": (dt.timedelta(minutes=-3), "-3m"),
}


@pytest.mark.parametrize(("duration", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_a_duration_is_written_in_few_units(duration: dt.timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.integers(0, LONGEST_MICROSECONDS).map(lambda n: dt.timedelta(microseconds=n)))
def test_a_duration_survives_being_written_and_read(duration: dt.timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5.0, "0s"),
        (0.0, "0s"),
        (0.2, "1s"),
        (59.9, "1m"),
        (846.73632, "14m 7s"),
        (3600.0, "1h"),
        (7500.0, "2h 5m"),
        (7509.0, "2h 5m"),
        (3605.0, "1h"),
        (3 * 86400.0 + 7205, "3d 2h"),
    ],
)
def test_a_duration_for_people_has_two_units_at_most(seconds: float, expected: str) -> None:
    assert readable_duration(dt.timedelta(seconds=seconds)) == expected
