"""The form of cron expressions: the wrong field is named, and nothing is refused that croniter takes."""

from __future__ import annotations

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.schema.cron import COUNT_MESSAGE, FIELDS, SCHEDULE_RULES, schedule_fault

PARTS = (
    "*", "?", "0", "5", "7", "12", "13", "23", "24", "31", "32", "59", "60", "007", "-", "/", ",", "#", "L", "W",
    "MON", "fri", "JAN", "dec", "\u0663", "\t", "@", ".",
)  # fmt: skip
SOME_FIELD = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join)


@pytest.mark.parametrize(
    ("schedule", "index"),
    [
        ("60 0 * * *", 0),
        ("MON 0 * * *", 0),
        ("0 25 * * 1-5", 1),
        ("0 */0 * * *", 1),
        ("0 0 32 * *", 2),
        ("0 0 * 13 *", 3),
        ("0 0 * * 8", 4),
        ("0 0 * * 1,,2", 4),
    ],
)
def test_the_field_that_is_wrong_is_named(schedule: str, index: int) -> None:
    assert schedule_fault(schedule) == f"{FIELDS[index].message}; it is {schedule.split()[index]!r}"


@pytest.mark.parametrize("schedule", ["0 22 * *", "0 0 22 * * *", "", " ", "@never", "@daily 1", "@ 0 0 * *"])
def test_what_has_not_five_fields_is_refused(schedule: str) -> None:
    assert schedule_fault(schedule) == f"{COUNT_MESSAGE}; it is {schedule!r}"


@pytest.mark.parametrize(
    "schedule",
    [
        "0 22 * * *",
        " */15  1-5,7 * * MON-FRI ",
        "@DAILY",
        "0 0 L 1/2 FRI#2",
        "0 0 15W * ?",
        "0\t0 * * *",
        "00 007 * * 7",
    ],
)
def test_what_is_in_form_is_left_to_croniter(schedule: str) -> None:
    assert schedule_fault(schedule) is None


@given(st.tuples(*[st.sampled_from(["*"]) | SOME_FIELD] * 5).map(" ".join))
def test_nothing_that_croniter_takes_is_refused(schedule: str) -> None:
    if schedule_fault(schedule) is not None:
        assert not croniter.is_valid(schedule)


@given(st.text(alphabet=st.sampled_from("0159*/-,@#LW ?dailyMON\t"), max_size=20))
def test_no_text_that_croniter_takes_is_refused(schedule: str) -> None:
    if schedule_fault(schedule) is not None and len(schedule.split()) == len(FIELDS):
        assert not croniter.is_valid(schedule)


def test_each_field_has_a_rule_of_its_own() -> None:
    assert [rule["message"] for rule in SCHEDULE_RULES] == [
        COUNT_MESSAGE,
        *(field.message for field in FIELDS),
    ]
