"""The forecast as a floor of replicas (docs/decisions/0036), as decided. NOW is 10:00 on a Saturday."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.hvpa.status import ForecastRecord, to_wire
from hvpa.api.objects.read_models import Hpa
from hvpa.core import Decision, Objects
from hvpa.core.gates.forecast import outlook_of
from hvpa.core.values.memo import Memo
from tests.unit.core.additive.test_replicas import hold, seen, target
from tests.unit.core.named import named
from tests.unit.core.trajectory.jointly import EXACT, count, one_core, requests

DAY: Final = 96
QUARTER: Final = dt.timedelta(minutes=15)
SPEC: Final[dict[str, Any]] = {"forecast": {}}
Load = Callable[[dt.datetime], int | None]


def nine_to_five(when: dt.datetime) -> int:
    """8 replicas from 9:00 to 17:00, 2 else."""
    return 8 if 9 <= when.hour < 17 else 2


def ten_to_five(when: dt.datetime) -> int:
    """8 replicas from 10:00 to 17:00, 2 else."""
    return 8 if 10 <= when.hour < 17 else 2


def text(values: Iterable[int | None]) -> str:
    return " ".join("-" if value is None else str(value) for value in values)


def status(load: Load, days: float = 4, until: dt.datetime = NOW) -> dict[str, Any]:
    """What is recorded of so many days up to `until`, but for the measurement of that instant."""
    values = [load(until - QUARTER * ago) for ago in range(int(days * DAY), 0, -1)]
    return {"forecast": {"time": stamp(until), "samples": [2], "values": text(values)}}


def objects(needed: int, replicas: int, spec: dict[str, Any] | None = None, **rest: Any) -> Objects:
    """Replicas of which the HPA wants `needed`."""
    return seen(needed, replicas, 0, build.merged(SPEC, spec or {}), **rest)


def record(decision: Decision) -> ForecastRecord:
    forecast = decision.status.forecast
    assert forecast is not None
    return forecast


# --- the floor -------------------------------------------------------------------------------------------------------
def test_forecast_sets_as_many_replicas_as_were_needed_at_this_time_of_day() -> None:
    decision = build.decided(objects(2, 2, status=status(ten_to_five)))
    assert (target(decision), decision.blocked, record(decision).replicas) == (8, (), 8)
    assert (
        record(decision).message
        == "used: in the last 24 hours it was off by 0 percent; it is used up to 20 percent"
    )
    assert (
        "replicas: 2 now, the HPA recommends 2; 8 at least until 2026-11-21T10:05:00Z, by spec.forecast"
        in decision.steps
    )
    assert "at least 8 until 2026-11-21T10:05:00Z, by spec.forecast" in decision.events[0].message


@pytest.mark.parametrize(
    ("minutes", "expected"),
    named(
        {
            "ten minutes before": (-10, 2),
            "five minutes before: pods have to start": (-5, 8),
            "to the end of it": (7 * 60 - 1, 8),
            "and no longer": (7 * 60, 2),
        }
    ),
)
def test_forecast_begins_a_start_up_time_ahead(minutes: int, expected: int) -> None:
    now = at(minutes=minutes)
    known = status(ten_to_five, until=now - dt.timedelta(minutes=now.minute % 15))
    assert record(build.decided(objects(2, 2, status=known), now)).replicas == expected


def scheduled(floor: int) -> dict[str, Any]:
    """A floor from 9:00 to 11:00."""
    return {"hpa": {"schedule": [{"schedule": "0 9 * * *", "duration": "2h", "minReplicas": floor}]}}


@pytest.mark.parametrize(
    ("spec", "needed", "expected", "forecast", "source"),
    named(
        {
            "demand above it counts": ({}, 9, 9, 8, "; 9 after weighting"),
            "never above maxReplicas": (
                {"hpa": {"template": {"spec": {"maxReplicas": 5}}}}, 2, 5, 5, "by spec.forecast"),
            "a larger floor of the schedule counts": (scheduled(9), 2, 9, 8, "by entry 1 of spec.hpa.schedule"),
            "so does an equal one": (scheduled(8), 2, 8, 8, "by entry 1 of spec.hpa.schedule"),
            "a smaller one does not": (scheduled(4), 2, 8, 8, "by spec.forecast"),
        }
    ),
)  # fmt: skip
def test_forecast_or_schedule_or_demand_the_largest_count_is_set(
    spec: dict[str, Any], needed: int, expected: int, forecast: int, source: str
) -> None:
    decision = build.decided(objects(needed, 2, spec, status=status(ten_to_five)))
    assert (target(decision), record(decision).replicas) == (expected, forecast)
    assert decision.steps[1].endswith(source)


@pytest.mark.parametrize(
    ("history", "quantile", "expected"),
    [("3d", 50, 4), ("3d", 0, 3), ("3d", 100, 9), ("2d", 50, 3), ("1d", 50, 3), ("1d", 100, 3)],
)
def test_forecast_quantile_says_which_day_counts(history: str, quantile: int, expected: int) -> None:
    """At 10:00, 3 replicas were needed yesterday, 4 on the day before, 9 before that."""
    unusual = {1: 3, 2: 4, 3: 9}

    def load(when: dt.datetime) -> int:
        return unusual.get((NOW - when).days, 2) if (when.hour, when.minute) == (10, 0) else 2

    spec = {"forecast": {"history": history, "quantile": quantile}}
    assert record(build.decided(objects(2, 2, spec, status=status(load)))).replicas == expected


def test_forecast_that_is_not_in_the_spec_keeps_no_record() -> None:
    decision = build.decided(seen(2, 2, 0, {}, status(ten_to_five)))
    assert (target(decision), decision.status.forecast, decision.recheck_after) == (2, None, None)


@pytest.mark.parametrize(("resizes", "needed"), [(False, 3), (True, 3)])
def test_forecast_with_trajectory_adds_replicas_and_keeps_sizes(resizes: bool, needed: int) -> None:
    known = status(ten_to_five)

    def decided(spec: dict[str, Any]) -> Decision:
        joint = one_core(1, "5", "5", {"trajectory": EXACT, **spec}, status=known)
        return build.decided(joint, at(minutes=5), resizes=resizes)

    without, floored = decided({}), decided(SPEC)
    assert (count(without), count(floored)) == (3 if resizes else 4, 8), (
        "one pod has 1 core until it is replaced"
    )
    assert requests(floored) == requests(without)
    assert record(floored).samples == (2, needed), "what the demand takes, without the floor"


# --- what holds it ---------------------------------------------------------------------------------------------------
def doubled_on_saturday(when: dt.datetime) -> int:
    return 8 if when.date() == NOW.date() else 4


def quiet_since(start: dt.datetime, load: Load = nine_to_five) -> Load:
    return lambda when: 1 if when >= start else load(when)


def off_by(count: int) -> Load:
    """10 replicas were needed in all quarters but the last ones, so many, in which 1 was."""

    def load(when: dt.datetime) -> int:
        ago = (NOW - when) // QUARTER
        return 1 if ago <= count else 10

    return load


@pytest.mark.parametrize(
    ("load", "days", "message"),
    named(
        {
            "it was wrong": (
                doubled_on_saturday, 4,
                "not used: in the last 24 hours it was off by 30 percent; it is used up to 20 percent"),
            "nothing is known": (
                nine_to_five, 0,
                "not used yet: 0 quarters of an hour of the last 24 hours were both forecast and measured; at"
                " least 48 are required"),
            "two days and ten hours are known": (
                nine_to_five, 2 + 40 / DAY,
                "not used yet: 40 quarters of an hour of the last 24 hours were both forecast and measured; at"
                " least 48 are required"),
            "this time of day is not known": (
                lambda when: None if (when.hour, when.minute) == (10, 0) else nine_to_five(when), 4,
                "not used now: the demand at this time of day is recorded for too few days; in the last 24 hours it"
                " was off by 0 percent"),
        }
    ),
)  # fmt: skip
def test_forecast_that_is_not_used_says_why(load: Load, days: float, message: str) -> None:
    decision = build.decided(objects(2, 2, status=status(load, days)))
    assert target(decision) == 2
    assert (record(decision).replicas, record(decision).message) == (None, message)


def test_a_forecast_from_the_memo_is_the_same_until_the_next_quarter_of_an_hour() -> None:
    inputs, memo = objects(2, 2, status=status(nine_to_five, 4)), Memo()
    instants = [NOW, at(minutes=14), at(minutes=15)]
    forecasts = [record(build.decided(inputs, now, memo=memo)) for now in instants]
    assert forecasts == [record(build.decided(inputs, now)) for now in instants]
    assert outlook_of.__wrapped__ in memo  # type: ignore[attr-defined]


def test_forecast_is_not_used_above_20_percent_error() -> None:
    """17 quarters of 9 replicas too many: 153 for 807 that were needed, 19 percent. One more: 21 percent."""
    last, beyond = (record(build.decided(objects(1, 1, status=status(off_by(count))))) for count in (17, 18))
    assert (last.off_percent, last.replicas) == (19, 10)
    assert (beyond.off_percent, beyond.replicas) == (21, None)


@pytest.mark.parametrize(
    ("spec", "reason"),
    named(
        {
            "Paused": ({"mode": "Paused"}, "Paused"),
            "adding is off": ({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}, "UpdatePolicy"),
        }
    ),
)
def test_forecast_is_held_by_paused_and_update_policy(spec: dict[str, Any], reason: str) -> None:
    decision = build.decided(objects(2, 2, spec, status=status(ten_to_five)))
    assert target(decision) == 2
    assert hold(decision)[:4] == (reason, "up", 2, 8)


FOREIGN: Final = build.hpa(
    change={
        "metadata": {"ownerReferences": [], "labels": {"of": "none"}},
        "spec": {"scaleTargetRef": build.SPEC["targetRef"]},
    }
)
"""An HPA that scales the workload itself."""


@pytest.mark.parametrize(
    ("spec", "hpa"),
    named({"no HPA": ({"hpa": {"deploy": False, "template": None}}, None), "a foreign HPA": ({}, FOREIGN)}),
)
def test_without_an_hpa_of_its_own_the_forecast_says_so_and_is_not_due_again(
    spec: dict[str, Any], hpa: Hpa | None
) -> None:
    decision = build.decided(objects(2, 2, spec, status=status(ten_to_five), horizontal=hpa))
    assert record(decision).message == "not used: no HPA scales the workload"
    assert (record(decision).replicas, decision.recheck_after) == (None, None)


def test_forecast_leaves_a_target_of_0_replicas_alone() -> None:
    decision = build.decided(replace(objects(2, 2, status=status(ten_to_five)), workload=build.workload(0)))
    assert target(decision) == 0
    assert record(decision).message == "not used: the target has 0 replicas"


def test_forecast_where_nothing_is_scaled_says_so_and_keeps_its_record() -> None:
    known = status(ten_to_five)
    forecast = record(build.decided(replace(objects(2, 2, status=known), workload=None)))
    assert (forecast.message, forecast.replicas) == ("not used: HVPA scales nothing", None)
    assert forecast.values == known["forecast"]["values"]


# --- what is recorded ------------------------------------------------------------------------------------------------
LAST: Final = at(minutes=-5)
"""The last measurement of the quarter before NOW."""


def recorded(samples: list[int], time: dt.datetime = LAST, values: str = "4 - 5") -> dict[str, Any]:
    return {"forecast": {"time": stamp(time), "samples": samples, "values": values}}


@pytest.mark.parametrize(
    ("before", "expected"),
    named(
        {
            "nothing yet": ({}, ((6,), "")),
            "a clock was ten minutes ahead": (recorded([5], at(minutes=10)), ((6,), "4 - 5")),
            "the median of the one that is over": (recorded([9, 3, 4]), ((6,), "4 - 5 4")),
            "a metric lied for a minute": (recorded([90, 3, 3]), ((6,), "4 - 5 3")),
            "the smaller one of two": (recorded([3, 90]), ((6,), "4 - 5 3")),
            "none was measured in it": (recorded([]), ((6,), "4 - 5 -")),
            "the operator was down for an hour": (recorded([3], at(hours=-1)), ((6,), "4 - 5 3 - - -")),
            "it was down for a year": (recorded([3], at(days=-365)), ((6,), text([None] * 4 * DAY))),
            "more samples than there can be": (recorded([9, 9, 9, 1, 2, 3]), ((6,), "4 - 5 2")),
            "a clock was two quarters ahead": (recorded([3], at(minutes=30)), ((6,), "4")),
            "a clock was days ahead": (recorded([3], at(days=9)), ((6,), "")),
            "a sample beyond 32 bits": (recorded([10**18]), ((6,), "4 - 5 2147483647")),
        }
    ),
)
def test_forecast_records_one_value_per_quarter_of_an_hour(
    before: dict[str, Any], expected: tuple[Any, str]
) -> None:
    forecast = record(build.decided(objects(6, 3, status=before)))
    assert (forecast.samples, forecast.values, forecast.time) == (*expected, NOW)


@pytest.mark.parametrize(
    "values", ["soon", "4 -  5", "-4", "4,5", "12345678901", "4\n5", "٣", "4 " * 9_000, "1e3", "NaN"]
)
def test_forecast_ignores_values_of_another_form(values: str) -> None:
    decision = build.decided(objects(6, 3, status=recorded([3], values=values)))
    assert (target(decision), record(decision).values) == (6, "")


def test_forecast_ignores_a_broken_record() -> None:
    for broken in ("text", {"samples": "3"}, {"time": "never"}, {"samples": [-1]}, ["list"]):
        decision = build.decided(objects(6, 3, status={"forecast": broken}))
        assert (target(decision), record(decision).samples) == (6, (6,))


def test_forecast_of_huge_values_is_bounded_by_max_replicas() -> None:
    known = status(lambda when: 2**31 - 1)
    assert target(build.decided(objects(2, 2, status=known))) == 10


def test_forecast_measures_an_instant_once_and_looks_again_in_five_minutes() -> None:
    first = build.decided(objects(6, 3))
    before = build.with_status(objects(6, 6).hvpa, first.status)
    again, later = (build.decided(replace(objects(3, 6), hvpa=before), at(minutes=more)) for more in (0, 5))
    assert (record(first).samples, record(again).samples, record(later).samples) == ((6,), (6,), (6, 3))
    assert again.recheck_after == dt.timedelta(minutes=5)


@pytest.mark.parametrize("spec", [{"mode": "Paused"}, {}])
def test_forecast_takes_no_sample_while_nothing_is_measured(spec: dict[str, Any]) -> None:
    silent = build.hpa(6, change={"status": {"currentMetrics": []}})
    measured = objects(6, 3, spec, status=recorded([4]))
    forecast = record(build.decided(measured if spec else replace(measured, hpas=(silent,))))
    assert (forecast.samples, forecast.values, forecast.time) == ((4,), "4 - 5", LAST)


def test_forecast_with_trajectory_takes_no_sample_without_metrics() -> None:
    joint = one_core(3, "5", "5", {"trajectory": EXACT, **SPEC}, status=recorded([2]))
    silent = build.hpa(3, change={"status": {"currentMetrics": []}})
    assert record(build.decided(joint)).samples == (4,), "15 cores are 4 x 3750m on the path"
    assert record(build.decided(replace(joint, hpas=(silent,)))).samples == (2,)


def test_forecast_measures_an_hpa_that_is_read_as_it_is() -> None:
    """Mode Recommend, with an HPA that scales the workload itself."""
    target_ref = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    own = build.hpa(6, 100, replicas=3, change={"metadata": {"ownerReferences": []}, "spec": target_ref})
    measured = objects(6, 3, {"mode": "Recommend", "hpa": {"deploy": False, "name": "web"}})
    assert record(build.decided(replace(measured, hpas=(own,)))).samples == (6,)


# --- over days -------------------------------------------------------------------------------------------------------
def lived(
    load: Callable[[dt.datetime], int],
    days: float,
    start: dt.datetime = NOW,
    known: dict[str, Any] | None = None,
) -> list[Decision]:
    """The decisions of these days, one in five minutes, of replicas that are always what was decided."""
    decisions: list[Decision] = []
    hvpa, replicas = build.hvpa({**SPEC, "weightBasedScalingIntervals": [{"vpaWeight": 0}]}, known), 2
    for index in range(int(days * DAY * 3)):
        now = start + index * dt.timedelta(minutes=5)
        decisions.append(build.decided(replace(objects(load(now), replicas), hvpa=hvpa), now))
        hvpa = build.with_status(hvpa, decisions[-1].status)
        replicas = target(decisions[-1])
    return decisions


def used(decisions: list[Decision]) -> list[bool]:
    return [record(decision).replicas is not None for decision in decisions]


def test_forecast_of_a_repeating_day_is_used_after_two_and_a_half_days() -> None:
    decisions = lived(nine_to_five, 0.5, known=status(nine_to_five, 2.25))
    assert used(decisions).index(True) == int(0.25 * DAY * 3)
    assert record(decisions[-1]).off_percent == 0
    last = decisions[-1].status
    again = lived(nine_to_five, 1 / DAY, at(days=0.5), {"forecast": _wire(last)})
    assert used(again) == [True, True, True], "a restart loses nothing"
    size = len(record(decisions[-1]).values)
    assert size < 600, f"{size} characters"


def _wire(status: Any) -> dict[str, Any]:
    forecast: dict[str, Any] = to_wire(status)["forecast"]
    return forecast


def test_forecast_is_no_longer_used_hours_after_the_load_stops() -> None:
    """8 replicas each quarter; at 10:00 no more than 1."""
    decisions = lived(lambda when: 1, 0.3, known=status(lambda when: 8))
    open_until = used(decisions).index(False) * 5 / 60
    assert 4 <= open_until <= 5
    assert not any(used(decisions)[5 * 12 :])
    assert target(decisions[-1]) == 1


def office_week(when: dt.datetime) -> int:
    """10 replicas in the day of weekdays, 2 at night, 4 on days of the weekend."""
    return (10 if when.weekday() < 5 else 4) if 8 <= when.hour < 18 else 2


@pytest.mark.parametrize(
    ("day", "used"),
    [
        ("Mon", False),
        ("Tue", False),
        ("Wed", False),
        ("Thu", True),
        ("Fri", True),
        ("Sat", True),
        ("Sun", False),
    ],
)
def test_forecast_is_not_used_after_a_weekend_until_three_days_are_alike(day: str, used: bool) -> None:
    """At 8:00. Until Saturday's day is measured, the forecast is right."""
    now = dt.datetime(
        2026, 11, 23 + ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun").index(day), 8, tzinfo=dt.UTC
    )
    forecast = record(build.decided(objects(2, 2, status=status(office_week, 4, now)), now))
    assert (forecast.replicas is not None) == used


def test_forecast_does_not_feed_itself() -> None:
    """The forecast holds 8 replicas, and half of them are enough from now on: that is what is recorded."""
    decisions = lived(lambda when: 4, 0.1, known=status(lambda when: 8))
    assert {target(decision) for decision in decisions} == {8}
    assert record(decisions[-1]).values.split()[-8:] == ["4"] * 8


def test_forecast_uses_the_other_days_where_one_has_a_gap() -> None:
    """Nothing was measured for two hours of the day before; two of three days are enough."""

    def load(when: dt.datetime) -> int | None:
        return None if at(days=-1) <= when < at(days=-1, hours=2) else nine_to_five(when)

    assert record(build.decided(objects(2, 2, status=status(load)))).replicas == 8


@pytest.mark.parametrize(
    "jump", [dt.timedelta(days=-2), dt.timedelta(hours=-1), dt.timedelta(days=3), dt.timedelta(days=400)]
)
def test_forecast_survives_a_clock_that_jumps(jump: dt.timedelta) -> None:
    """Forwards leaves a gap, backwards drops what is of the future; both may close the forecast and raise nothing."""
    known = status(lambda when: 5)
    decision = build.decided(objects(2, 2, status=known), NOW + jump)
    assert target(decision) in (2, 5)
    assert len(record(decision).values.split()) <= 4 * DAY
    assert record(decision).time == NOW + jump


@given(
    st.text("0123456789- x", max_size=40),
    st.lists(st.integers(0, 2**63 - 1), max_size=5),
    st.integers(-10_000_000, 10_000_000),
)
def test_forecast_keeps_the_count_in_bounds_whatever_is_recorded(
    values: str, samples: list[int], minutes: int
) -> None:
    record_of = {"time": stamp(at(minutes=minutes)), "samples": samples, "values": values}
    decision = build.decided(objects(4, 2, status={"forecast": record_of}))
    assert target(decision) == 4, "so few values are no history"
    again = build.with_status(build.hvpa(SPEC), decision.status)
    assert again.status.forecast == decision.status.forecast
