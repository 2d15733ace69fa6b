"""Scheduled floors: which one there is at an instant, up to when, and what follows (docs/decisions/0033)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pytest

from builders import build
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.gates.floors import FloorState, floor_state, next_floor
from tests.unit.core.named import named


def utc(text: str) -> dt.datetime:
    """A time of the year 2026, such as 11-21T22:00."""
    return dt.datetime.fromisoformat(f"2026-{text}").replace(tzinfo=dt.UTC)


def spec_of(*entries: dict[str, Any]) -> HvpaSpec:
    parsed = build.hvpa({"hpa": {"schedule": list(entries)}}).spec
    assert parsed is not None
    return parsed


def entry(schedule: str, duration: str, replicas: int, zone: str = "UTC") -> dict[str, Any]:
    return {"schedule": schedule, "duration": duration, "minReplicas": replicas, "timeZone": zone}


def floor(replicas: int, number: int, until: str) -> FloorState:
    return FloorState(replicas, number, utc(until))


def none_until(until: str) -> FloorState:
    return FloorState(0, None, utc(until))


NINE: Final = entry("0 9 * * *", "9h", 5)
ALL_DAY: Final = entry("0 6 * * *", "16h", 2)
NOON: Final = entry("0 12 * * *", "1h", 8)
EVENING: Final = entry("0 18 * * *", "2h", 5)
BERLIN: Final = entry("0 9 * * *", "9h", 5, "Europe/Berlin")
GAP: Final = entry("30 2 * * *", "1h", 5, "Europe/Berlin")
OFTEN: Final = entry("* * * * *", "1h", 3)
NEVER: Final = entry("0 0 30 2 *", "1h", 3)


@pytest.mark.parametrize(
    ("now", "entries", "expected"),
    named(
        {
            "none is scheduled": ("11-21T10:00", (), FloorState(0, None, None)),
            "before it begins": ("11-21T08:59:59.999999", (NINE,), none_until("11-21T09:00")),
            "from its very begin": ("11-21T09:00", (NINE,), floor(5, 1, "11-21T18:00")),
            "to its last second": ("11-21T17:59:59", (NINE,), floor(5, 1, "11-21T18:00")),
            "at its end it is over": ("11-21T18:00", (NINE,), none_until("11-22T09:00")),
            "the largest counts, up to its end": ("11-21T10:00", (ALL_DAY, NINE), floor(5, 2, "11-21T18:00")),
            "then the smaller one": ("11-21T18:00", (ALL_DAY, NINE), floor(2, 1, "11-21T22:00")),
            "until a larger one begins": ("11-21T10:00", (NINE, NOON), floor(5, 1, "11-21T12:00")),
            "a smaller one that begins changes nothing": (
                "11-21T05:00",
                (entry("0 4 * * *", "4h", 5), ALL_DAY),
                floor(5, 1, "11-21T08:00"),
            ),
            "of two that are the same the one that lasts": (
                "11-21T10:00",
                (entry("0 9 * * *", "3h", 5), NINE),
                floor(5, 2, "11-21T18:00"),
            ),
            "the first to begin ends a time without": (
                "11-21T23:00",
                (NINE, ALL_DAY),
                none_until("11-22T06:00"),
            ),
            "one that begins again before it ends goes on": (
                "11-21T10:00:30",
                (OFTEN,),
                floor(3, 1, "11-21T11:01"),
            ),
            "or when it ends": ("11-21T10:00", (entry("@hourly", "1h", 3),), floor(3, 1, "11-21T12:00")),
            "a day that never comes": ("11-21T10:00", (NEVER,), FloorState(0, None, None)),
            "nine in Berlin, summer": ("07-01T07:00", (BERLIN,), floor(5, 1, "07-01T16:00")),
            "nine in Berlin, winter": ("12-01T07:00", (BERLIN,), none_until("12-01T08:00")),
            # Clocks go from 02:00 to 03:00 on 29 March, at 01:00 UTC.
            "a begin that is skipped is at the end of the gap": (
                "03-29T01:00",
                (GAP,),
                floor(5, 1, "03-29T02:00"),
            ),
            "the day after the clocks were set": ("03-28T23:00", (BERLIN,), none_until("03-29T07:00")),
            "an hour that happens twice begins it once": ("10-25T01:30", (GAP,), none_until("10-26T01:30")),
        }
    ),
)
def test_schedule_floor_of_an_instant(
    now: str, entries: tuple[dict[str, Any], ...], expected: FloorState
) -> None:
    assert floor_state(spec_of(*entries), utc(now)) == expected


def after(now: str, *entries: dict[str, Any]) -> tuple[dt.datetime, FloorState] | None:
    spec = spec_of(*entries)
    return next_floor(spec, floor_state(spec, utc(now)))


def test_schedule_floor_that_follows() -> None:
    assert after("11-21T08:00", NINE) == (utc("11-21T09:00"), floor(5, 1, "11-21T18:00"))
    assert after("11-21T10:00", NINE) == (utc("11-22T09:00"), floor(5, 1, "11-22T18:00")), "tomorrow's"
    assert after("11-21T10:00", NINE, NOON) == (utc("11-21T12:00"), floor(8, 2, "11-21T13:00")), (
        "a larger one"
    )
    assert after("11-21T12:30", NINE, NOON) == (utc("11-21T13:00"), floor(5, 1, "11-21T18:00")), (
        "a smaller one"
    )
    assert after("11-21T10:00", NINE, EVENING) == (utc("11-21T18:00"), floor(5, 2, "11-21T20:00")), "the same"
    assert after("11-21T10:00", NEVER) is None
    assert after("11-21T10:00") is None


def test_schedule_floor_stays_the_same_up_to_its_end() -> None:
    """At each quarter of an hour around both changes of clocks."""
    spec = spec_of(NINE, ALL_DAY, NOON, EVENING, BERLIN, GAP, entry("0 */5 * * *", "7h", 4, "Europe/Berlin"))
    for day in ("03-28T00:00", "10-24T00:00"):
        quarters = [utc(day) + dt.timedelta(minutes=15 * number) for number in range(4 * 24 * 3)]
        states = [floor_state(spec, quarter) for quarter in quarters]
        for index, state in enumerate(states):
            assert state.until is not None
            assert state.until > quarters[index]
            later = [
                later_state.replicas
                for at, later_state in zip(quarters, states, strict=True)
                if quarters[index] < at < state.until
            ]
            assert set(later) <= {state.replicas}
