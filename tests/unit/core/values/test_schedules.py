"""Cron expressions by arithmetic, compared with what croniter finds when it searches."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterBadDateError, CroniterError, croniter
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.windows import MOST_WINDOWS, MaintenanceWindow
from hvpa.core.values import schedules
from hvpa.core.values.schedules import Schedule, ScheduleError, parsed_schedule

UTC = ZoneInfo("UTC")


def at(text: str, zone: str = "UTC") -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def numbers(least: int, most: int) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    ranges = st.tuples(number, number, st.integers(1, 5)).map(
        lambda parts: f"{min(parts[:2])}-{max(parts[:2])}/{parts[2]}"
    )
    lists = st.lists(number.map(str), min_size=1, max_size=4).map(",".join)
    return st.one_of(st.just("*"), lists, ranges)


EXPRESSIONS = st.tuples(
    numbers(0, 59),
    numbers(0, 23),
    st.one_of(numbers(1, 31), st.sampled_from(["29", "30", "31", "L", "15W", "31W", "1W", "LW", "*/2"])),
    st.one_of(numbers(1, 12), st.sampled_from(["2", "2,4,6,9,11", "JAN"])),
    st.one_of(numbers(0, 7), st.sampled_from(["MON-FRI", "sun#5", "fri#2", "L1", "mon#1,tue#4", "*/2"])),
).map(" ".join)
ORIGINS = st.integers(0, 73 * 365 * 86_400).map(
    lambda seconds: dt.datetime(2026, 1, 1, tzinfo=UTC) + dt.timedelta(seconds=seconds)
)


def searched(text: str, origin: dt.datetime, *, forward: bool) -> dt.datetime | None:
    """What croniter finds within 50 years."""
    steps = croniter(text, origin)
    try:
        start: dt.datetime = steps.get_next(dt.datetime) if forward else steps.get_prev(dt.datetime)
    except CroniterBadDateError:
        return None
    return start


@given(EXPRESSIONS, ORIGINS)
def test_a_schedule_starts_when_croniter_finds_it_starts(text: str, origin: dt.datetime) -> None:
    try:
        schedule = Schedule(text)
    except ScheduleError:
        with pytest.raises(CroniterError):
            croniter(text, origin).get_next()
        return
    for forward in (True, False):
        assert schedule.start(origin, forward=forward) == searched(text, origin, forward=forward)


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "7 3 31 2,4,6,9,11 *",
        "0 3 30,31 2 *",
        "0 3 1 1 mon#5",  # the fifth Monday is the 29th at the earliest
        "0 3 31 2 sun#5",
        "0 3 15W 2 sat#5",
    ],
)
def test_a_day_that_never_comes_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match="must match at some time"):
        Schedule(text)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("0 3 29 2 *", "2028-02-29"),
        ("0 3 31 2 mon", "2027-02-01"),  # the 31st or a Monday, of February
        ("0 3 29 2 sun#5", "2032-02-29"),
        ("0 3 * * L1", "2026-11-30"),  # the last Monday
    ],
)
def test_a_day_that_comes_at_some_time_is_found(text: str, day: str) -> None:
    start = Schedule(text).start(at("2026-11-21T10:00"), forward=True)
    assert start == at(f"{day}T03:00")


def test_29_february_around_2100_is_eight_years_away() -> None:
    leap = Schedule("0 3 29 2 *")
    assert leap.start(at("2097-01-01T00:00"), forward=True) == at("2104-02-29T03:00")
    assert leap.start(at("2103-01-01T00:00"), forward=False) == at("2096-02-29T03:00")
    weekday = Schedule("0 3 29 2 sun#5")
    assert weekday.start(at("2088-03-01T00:00"), forward=True) == at("2128-02-29T03:00")


def test_a_schedule_has_no_start_beyond_the_calendar() -> None:
    assert Schedule("0 3 29 2 *").start(at("9997-01-01T00:00"), forward=True) is None
    assert Schedule("0 3 29 2 *").start(at("0003-01-01T00:00"), forward=False) is None


def test_past_the_last_start_of_a_day_the_next_one_may_be_years_away() -> None:
    leap = Schedule("0 3 29 2 *")
    assert leap.start(at("2028-02-29T03:00"), forward=True) == at("2032-02-29T03:00")
    assert leap.start(at("2028-02-29T03:00"), forward=False) == at("2024-02-29T03:00")


def test_a_fixed_hour_that_happens_twice_counts_once_both_ways() -> None:
    """In Berlin clocks go from 03:00 to 02:00 on 25 October 2026, at 01:00 UTC."""
    each_minute = Schedule("* 2 * * *")
    second = dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Berlin"))
    assert second.fold == 1
    assert each_minute.start(second, forward=False) == at("2026-10-25T00:59")
    assert each_minute.start(second, forward=True) == at("2026-10-26T01:00")


# --- work -----------------------------------------------------------------------------------------------------------
class Counted:
    """Counts croniter's searches and its steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches = self.parses = 0
        real_calc, real_expand = croniter._calc, croniter._expand.__func__  # type: ignore[attr-defined]

        def calc(steps: Any, *args: Any) -> Any:
            self.searches += 1
            return real_calc(steps, *args)

        def expand(cls: Any, *args: Any, **kwargs: Any) -> Any:
            self.parses += 1
            return real_expand(cls, *args, **kwargs)

        monkeypatch.setattr(croniter, "_calc", calc)
        monkeypatch.setattr(croniter, "_expand", classmethod(expand))


@pytest.mark.parametrize("text", ["7 3 31 2,4,6,9,11 *", "0 3 1 1 mon#5", "0 3 31 2 sun#5"])
def test_a_day_that_never_comes_is_not_searched_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    with pytest.raises(ScheduleError):
        Schedule(text)
    assert counted.searches == 0
    assert counted.parses == 1


@pytest.mark.parametrize("text", ["7 3 31 2,4,6,9,11 *", "0 3 29 2 *", "0 22 * * *"])
def test_a_schedule_is_read_and_searched_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window = MaintenanceWindow.model_validate({"schedule": text, "duration": "1h"})
    now = at("2026-11-21T10:00")
    first = parsed_schedule(window).occurrences
    if first is not None:
        first.around(now)
    counted = Counted(monkeypatch)
    for _ in range(3):
        again = parsed_schedule(window).occurrences
        assert again is first
        if again is not None:
            again.around(now)
    assert counted.searches == counted.parses == 0


def test_one_tenants_schedules_displace_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MaintenanceWindow.model_validate({"schedule": "0 22 * * *", "duration": "1h"})
    now = at("2026-11-21T10:00")
    occurrences = parsed_schedule(honest).occurrences
    assert occurrences is not None
    occurrences.around(now)
    for number in range(40 * MOST_WINDOWS):
        text = f"{number % 60} {number // 60} 29 2 *"
        parsed_schedule(MaintenanceWindow.model_validate({"schedule": text, "duration": "1h"}))
    counted = Counted(monkeypatch)
    assert parsed_schedule(honest).occurrences is occurrences
    occurrences.around(now)
    assert counted.searches == counted.parses == 0


def test_what_has_no_further_start_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_YEARS", 1)
    window = MaintenanceWindow.model_validate({"schedule": "0 3 29 2 *", "duration": "1h"})
    occurrences = parsed_schedule(window).occurrences
    assert occurrences is not None
    assert occurrences.around(at("2030-01-01T00:00")) == (None, None)
    assert occurrences.around(at("2030-06-01T00:00")) == (None, None)
    previous, following = occurrences.around(at("2032-01-01T00:00"))
    assert previous is None
    assert following == at("2032-02-29T03:00")
