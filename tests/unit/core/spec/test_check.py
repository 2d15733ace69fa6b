"""What no schema can check (DESIGN 3.2)."""

from __future__ import annotations

import pytest

from builders import build
from hvpa.api.schema.cron import FIELDS
from hvpa.core.spec.check import spec_problems
from hvpa.core.values.schedules import Schedule, ScheduleError, zone_of


@pytest.mark.parametrize(
    "schedule",
    ["0 22 * * *", "*/15 * * * *", "0 2 * * MON-FRI", "0 0 1 1,7 *", "@daily", "@hourly", "0 3 * * FRI#2"],
)
def test_cron_expressions_of_five_fields_and_aliases_are_schedules(schedule: str) -> None:
    Schedule(schedule)


ZONES = ("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5")
NO_ZONES = ("Europe/Atlantis", "CEST+1x/", "../etc/passwd", "Europe", "", "America/", "Europe/Bérlin")


@pytest.mark.parametrize("name", [*ZONES, *NO_ZONES])
def test_names_of_the_iana_database_are_time_zones(name: str) -> None:
    assert (zone_of(name) is not None) is (name in ZONES)


NO_FIVE_FIELDS = ("0 22 * *", "0\u00a00 * * *", "0 0 22 * * *", "0 0 22 * * * 2026", "every day")


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("0 25 * * 1-5", FIELDS[1].message),
        ("0 0 1 MAI *", FIELDS[3].message),
        ("0 0 \u0663 * *", FIELDS[2].message),
        ("0 0 * * MON,FRI#2", FIELDS[4].message),
        ("0 0 30 2 *", "must match at some time"),
        ("60 22 * * *", FIELDS[0].message),
        *((text, "must be a cron expression of five fields") for text in NO_FIVE_FIELDS),
        ("@never", ""),
        ("@daily 1", ""),
        ("R 0 * * *", FIELDS[0].message),
        ("R(0-10) 1 * * *", ""),
        ("H 1 * * *", ""),
        ("0 0 R * *", "must be a fixed time"),
    ],
)
def test_the_reason_names_the_field_that_is_wrong(schedule: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        Schedule(schedule)
    assert str(refused.value).startswith(reason)


def test_problems_name_their_field() -> None:
    windows = [
        {"schedule": "0 22 * * *", "duration": "1h"},
        {"schedule": "0 0 1 MAI *", "duration": "1h", "timeZone": "Mars/Olympus"},
    ]
    spec = build.hvpa({"maintenanceWindows": windows}).spec
    assert spec is not None
    assert [str(problem) for problem in spec_problems(spec)] == [
        f"spec.maintenanceWindows[1].schedule: {FIELDS[3].message}; it is 'MAI'",
        "spec.maintenanceWindows[1].timeZone: must be the name of a time zone in the IANA database, such as"
        " Europe/Berlin or UTC; it is 'Mars/Olympus'",
    ]
    floor = {"schedule": "0 0 31 2 *", "duration": "1h", "timeZone": "Mars/Olympus", "minReplicas": 2}
    spec = build.hvpa({"hpa": {"schedule": [floor, {**floor, "schedule": "@daily", "timeZone": "UTC"}]}}).spec
    assert spec is not None
    assert [str(problem) for problem in spec_problems(spec)] == [
        "spec.hpa.schedule[0].schedule: must match at some time: '0 0 31 2 *' names a day that no month has",
        "spec.hpa.schedule[0].timeZone: must be the name of a time zone in the IANA database, such as"
        " Europe/Berlin or UTC; it is 'Mars/Olympus'",
    ]
    good = build.hvpa().spec
    assert good is not None
    assert spec_problems(good) == ()
