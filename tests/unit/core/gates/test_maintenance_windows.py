"""Maintenance windows (DESIGN 3.1, 3.2)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.gates.windows import WindowState, window_state


def utc(text: str) -> dt.datetime:
    """A time of the year 2026, such as 11-21T22:00."""
    return dt.datetime.fromisoformat(f"2026-{text}").replace(tzinfo=dt.UTC)


def daily(begin: str, end: str) -> dict[str, Any]:
    return {"maintenanceTimeWindow": {"begin": begin, "end": end}}


def cron(schedule: str, duration: str = "1h", zone: str = "UTC") -> dict[str, Any]:
    return {"maintenanceWindows": [{"schedule": schedule, "duration": duration, "timeZone": zone}]}


def spec_of(spec: dict[str, Any]) -> HvpaSpec:
    parsed = build.hvpa(spec).spec
    assert parsed is not None
    return parsed


def state(now: str, spec: dict[str, Any]) -> WindowState:
    return window_state(spec_of(spec), utc(now))


def opens(text: str) -> WindowState:
    return WindowState(False, utc(text))


OPEN: Final = WindowState(True)
NEVER: Final = WindowState(False, None)
NIGHT: Final = daily("220000-0000", "230000-0000")
LATE: Final = daily("230000+0000", "010000+0000")
EAST: Final = daily("220000+0100", "230000+0100")
TEN: Final = cron("0 10 * * *")
NOON_IN_BERLIN: Final = cron("0 12 * * *", zone="Europe/Berlin")
HALF_PAST_TWO: Final = cron("30 2 * * *", zone="Europe/Berlin")
BOTH: Final = NIGHT | TEN
HAVANA: Final = cron("@daily", "10m", "America/Havana")
CASES: Final[dict[str, tuple[str, dict[str, Any], WindowState]]] = {
    "without windows none ever opens": ("11-21T10:00", {}, NEVER),
    # daily
    "open from its first second": ("11-21T22:00", NIGHT, OPEN),
    "open to its last second": ("11-21T22:59:59", NIGHT, OPEN),
    "closed at its end": ("11-21T23:00", NIGHT, opens("11-22T22:00")),
    "closed before it": ("11-21T21:59:59", NIGHT, opens("11-21T22:00")),
    "crosses midnight: before": ("11-21T23:30", LATE, OPEN),
    "crosses midnight: after": ("11-21T00:30", LATE, OPEN),
    "crosses midnight: at its end": ("11-21T01:00", LATE, opens("11-21T23:00")),
    "22:00 in +0100 is 21:00": ("11-21T21:00", EAST, OPEN),
    "23:00 in +0100 is 22:00, and closed": ("11-21T22:00", EAST, opens("11-22T21:00")),
    "22:00 in -0530 is 03:30": ("11-21T03:30", daily("220000-0530", "230000-0530"), OPEN),
    # by cron expression
    "cron: open at the very start": ("11-21T10:00", TEN, OPEN),
    "cron: open within the first second": ("11-21T10:00:00.500000", TEN, OPEN),
    "cron: open to its last second": ("11-21T10:59:59", TEN, OPEN),
    "cron: closed at its end": ("11-21T11:00", TEN, opens("11-22T10:00")),
    "cron: closed before it": ("11-21T09:59:59", TEN, opens("11-21T10:00")),
    "cron: longer than a day": ("11-21T12:00", cron("0 10 * * 6", "48h"), OPEN),
    "cron: by day of the week": ("11-21T10:00", cron("0 2 * * MON"), opens("11-23T02:00")),
    "cron: a day that never comes": ("11-21T10:00", cron("0 0 30 2 *"), NEVER),
    "cron: noon in Berlin, summer": ("07-01T10:00", NOON_IN_BERLIN, OPEN),
    "cron: noon in Berlin, winter": ("12-01T11:00", NOON_IN_BERLIN, OPEN),
    "cron: an alias": ("11-21T00:10", cron("@daily"), OPEN),
    # In Berlin 2026 clocks go from 02:00 to 03:00 on 29 March and from 03:00 to 02:00 on 25 October, at 01:00 UTC.
    "a skipped start is at the end of the gap": ("03-29T00:59", HALF_PAST_TWO, opens("03-29T01:00")),
    "and the window is open then": ("03-29T01:00", HALF_PAST_TWO, OPEN),
    "a repeated hour: open in its first pass": ("10-25T00:30", HALF_PAST_TWO, OPEN),
    "to the end of its hour": ("10-25T01:29:59", HALF_PAST_TWO, OPEN),
    "not again in its second pass": ("10-25T01:30", HALF_PAST_TWO, opens("10-26T01:30")),
    "the next start is the first pass": ("10-25T00:00", HALF_PAST_TWO, opens("10-25T00:30")),
    "every hour: in both passes": ("10-25T01:45", cron("30 * * * *", zone="Europe/Berlin"), OPEN),
    "every other hour too": ("10-25T01:00", cron("0 */2 * * *", zone="Europe/Berlin"), OPEN),
    # Havana sets its clocks back from 01:00 to 00:00 on 1 November 2026: midnight is at 04:00 and at 05:00 UTC.
    "midnight happens twice: in its first pass": ("11-01T04:05", HAVANA, OPEN),
    "that starts one day": ("11-01T05:05", HAVANA, opens("11-02T05:00")),
    "but an hour each": ("11-01T05:05", cron("@hourly", "10m", "America/Havana"), OPEN),
    # both
    "cron windows add to the daily one": ("11-21T10:30", BOTH, OPEN),
    "and it to them": ("11-21T22:30", BOTH, OPEN),
    "the first to open counts: the daily one": ("11-21T12:00", BOTH, opens("11-21T22:00")),
    "the first to open counts: the other": ("11-21T08:00", BOTH, opens("11-21T10:00")),
}


@pytest.mark.parametrize(("now", "spec", "expected"), CASES.values(), ids=CASES)
def test_maintenance_window_is_open_or_says_when_the_next_one_opens(
    now: str, spec: dict[str, Any], expected: WindowState
) -> None:
    assert state(now, spec) == expected


@given(
    st.lists(st.integers(0, 3 * 24 * 3600), min_size=2, max_size=6), st.sampled_from(["Europe/Berlin", "UTC"])
)
def test_maintenance_window_state_does_not_depend_on_earlier_calls(seconds: list[int], zone: str) -> None:
    """What is remembered of one time holds at another: here around the change of clocks."""
    schedules = ("*/30 1-3 * * *", "0 2 * * *", "30 2 25 10 *", "0 */5 * * *")
    for schedule in schedules:
        kept = spec_of(cron(schedule, "20m", zone))
        for offset in seconds:
            now = utc("10-24T00:00") + dt.timedelta(seconds=offset)
            assert window_state(kept, now) == window_state(spec_of(cron(schedule, "20m", zone)), now)
