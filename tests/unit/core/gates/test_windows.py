"""Maintenance windows (DESIGN 3.1, 3.2)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.core.gates import windows
from hvpa.core.gates.windows import WindowState, window_state

NIGHT = {"begin": "220000-0000", "end": "230000-0000"}


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def state(now: str, daily: dict[str, str] | None = None, *windows: dict[str, Any]) -> WindowState:
    spec = build.hvpa({"maintenanceTimeWindow": daily, "maintenanceWindows": list(windows)}).spec
    assert spec is not None
    return window_state(spec, utc(now))


def cron(schedule: str, duration: str = "1h", zone: str = "UTC") -> dict[str, Any]:
    return {"schedule": schedule, "duration": duration, "timeZone": zone}


OPEN = WindowState(True)


def opens(text: str) -> WindowState:
    return WindowState(False, utc(text))


def test_without_windows_none_ever_opens() -> None:
    assert state("2026-11-21T10:00:00") == WindowState(False, None)


@pytest.mark.parametrize(
    ("now", "window", "expected"),
    [
        pytest.param("2026-11-21T22:00:00", NIGHT, OPEN, id="open from its first second"),
        pytest.param("2026-11-21T22:59:59", NIGHT, OPEN, id="open to its last"),
        pytest.param("2026-11-21T23:00:00", NIGHT, opens("2026-11-22T22:00:00"), id="closed at its end"),
        pytest.param("2026-11-21T21:59:59", NIGHT, opens("2026-11-21T22:00:00"), id="closed before it"),
        pytest.param(
            "2026-11-21T23:30:00",
            {"begin": "230000+0000", "end": "010000+0000"},
            OPEN,
            id="crosses midnight: before",
        ),
        pytest.param(
            "2026-11-21T00:30:00",
            {"begin": "230000+0000", "end": "010000+0000"},
            OPEN,
            id="crosses midnight: after",
        ),
        pytest.param(
            "2026-11-21T01:00:00",
            {"begin": "230000+0000", "end": "010000+0000"},
            opens("2026-11-21T23:00:00"),
            id="crosses midnight: at its end",
        ),
        pytest.param(
            "2026-11-21T21:00:00",
            {"begin": "220000+0100", "end": "230000+0100"},
            OPEN,
            id="22:00 in +0100 is 21:00",
        ),
        pytest.param(
            "2026-11-21T22:00:00",
            {"begin": "220000+0100", "end": "230000+0100"},
            opens("2026-11-22T21:00:00"),
            id="23:00 in +0100 is 22:00, and closed",
        ),
        pytest.param(
            "2026-11-21T03:30:00",
            {"begin": "220000-0530", "end": "230000-0530"},
            OPEN,
            id="22:00 in -0530 is 03:30",
        ),
    ],
)
def test_the_daily_window(now: str, window: dict[str, str], expected: WindowState) -> None:
    assert state(now, window) == expected


@pytest.mark.parametrize(
    ("now", "window", "expected"),
    [
        pytest.param("2026-11-21T10:00:00", cron("0 10 * * *"), OPEN, id="open at the very start"),
        pytest.param(
            "2026-11-21T10:00:00.500000", cron("0 10 * * *"), OPEN, id="open within the first second"
        ),
        pytest.param("2026-11-21T10:59:59", cron("0 10 * * *"), OPEN, id="open to its last second"),
        pytest.param(
            "2026-11-21T11:00:00", cron("0 10 * * *"), opens("2026-11-22T10:00:00"), id="closed at its end"
        ),
        pytest.param(
            "2026-11-21T09:59:59", cron("0 10 * * *"), opens("2026-11-21T10:00:00"), id="closed before it"
        ),
        pytest.param("2026-11-21T12:00:00", cron("0 10 * * 6", "48h"), OPEN, id="longer than a day"),
        pytest.param(
            "2026-11-21T10:00:00", cron("0 2 * * MON"), opens("2026-11-23T02:00:00"), id="by day of the week"
        ),
        pytest.param(
            "2026-11-21T10:00:00", cron("0 0 30 2 *"), WindowState(False, None), id="a day that never comes"
        ),
        pytest.param(
            "2026-07-01T10:00:00", cron("0 12 * * *", zone="Europe/Berlin"), OPEN, id="noon in Berlin, summer"
        ),
        pytest.param(
            "2026-12-01T11:00:00", cron("0 12 * * *", zone="Europe/Berlin"), OPEN, id="noon in Berlin, winter"
        ),
        pytest.param("2026-11-21T00:10:00", cron("@daily"), OPEN, id="an alias"),
    ],
)
def test_windows_by_cron_expression(now: str, window: dict[str, Any], expected: WindowState) -> None:
    assert state(now, None, window) == expected


# In Berlin 2026 clocks go from 02:00 to 03:00 on 29 March and from 03:00 to 02:00 on 25 October, both at 01:00 UTC.
@pytest.mark.parametrize(
    ("now", "schedule", "expected"),
    [
        pytest.param(
            "2026-03-29T00:59:00",
            "30 2 * * *",
            opens("2026-03-29T01:00:00"),
            id="a skipped start is at the end of the gap",
        ),
        pytest.param("2026-03-29T01:00:00", "30 2 * * *", OPEN, id="and the window is open then"),
        pytest.param("2026-10-25T00:30:00", "30 2 * * *", OPEN, id="a repeated hour: open in its first pass"),
        pytest.param("2026-10-25T01:29:59", "30 2 * * *", OPEN, id="to the end of its hour"),
        pytest.param(
            "2026-10-25T01:30:00",
            "30 2 * * *",
            opens("2026-10-26T01:30:00"),
            id="not again in its second pass",
        ),
        pytest.param(
            "2026-10-25T00:00:00",
            "30 2 * * *",
            opens("2026-10-25T00:30:00"),
            id="the next start is the first pass",
        ),
        pytest.param(
            "2026-10-25T01:45:00", "30 * * * *", OPEN, id="a schedule of every hour starts in both passes"
        ),
        pytest.param("2026-10-25T01:00:00", "0 */2 * * *", OPEN, id="a schedule of every other hour too"),
    ],
)
def test_windows_on_the_days_when_clocks_change(now: str, schedule: str, expected: WindowState) -> None:
    assert state(now, None, cron(schedule, zone="Europe/Berlin")) == expected


def test_midnight_that_happens_twice_starts_one_day() -> None:
    # Havana sets its clocks back from 01:00 to 00:00 on 1 November 2026: midnight is at 04:00 and at 05:00 UTC.
    window = cron("@daily", "10m", "America/Havana")
    assert state("2026-11-01T04:05:00", None, window) == OPEN
    assert state("2026-11-01T05:05:00", None, window) == opens("2026-11-02T05:00:00")
    assert state("2026-11-01T05:05:00", None, cron("@hourly", "10m", "America/Havana")) == OPEN


def test_cron_windows_add_to_the_daily_one_and_the_first_to_open_counts() -> None:
    assert state("2026-11-21T22:30:00", NIGHT, cron("0 10 * * *")) == OPEN
    assert state("2026-11-21T10:30:00", NIGHT, cron("0 10 * * *")) == OPEN
    assert state("2026-11-21T12:00:00", NIGHT, cron("0 10 * * *")) == opens("2026-11-21T22:00:00")
    assert state("2026-11-21T08:00:00", NIGHT, cron("0 10 * * *")) == opens("2026-11-21T10:00:00")


def test_no_more_schedules_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "REMEMBERED", 3)
    monkeypatch.setattr(windows, "_known", {})
    every = [cron(f"{minute} * * * *", "1m") for minute in range(30, 50)]
    expected = opens("2026-11-21T10:30:00")
    assert state("2026-11-21T10:00:00", None, *every) == expected
    assert state("2026-11-21T10:00:00", None, *every) == expected
    assert len(windows._known) <= 3


@given(
    st.lists(st.integers(0, 3 * 24 * 3600), min_size=2, max_size=6), st.sampled_from(["Europe/Berlin", "UTC"])
)
def test_a_window_is_the_same_whatever_was_asked_before(seconds: list[int], zone: str) -> None:
    """What is remembered of one time holds at another: here around the change of clocks."""
    schedules = [
        cron(one, "20m", zone) for one in ("*/30 1-3 * * *", "0 2 * * *", "30 2 25 10 *", "0 */5 * * *")
    ]
    begin = utc("2026-10-24T00:00:00")
    asked = [(begin + dt.timedelta(seconds=one)).replace(tzinfo=None).isoformat() for one in seconds]
    warm = [state(now, None, one) for now in asked for one in schedules]
    cold = []
    for now in asked:
        for one in schedules:
            windows._known.clear()
            cold.append(state(now, None, one))
    assert warm == cold
