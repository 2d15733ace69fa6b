"""The clock that tests can shift."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from hvpa.kube.clock import SystemClock
from localcluster.operator.shifted_clock import VARIABLE, ShiftedClock, clock_of

TOLERANCE = dt.timedelta(seconds=30)


def shown(file: Path) -> dt.timedelta:
    """How far a clock that this file shifts is ahead."""
    return clock_of({VARIABLE: str(file)}).now() - dt.datetime.now(dt.UTC)


@pytest.mark.parametrize("environment", [{}, {VARIABLE: ""}])
def test_without_the_variable_it_is_the_systems_clock(environment: dict[str, str]) -> None:
    clock = clock_of(environment)
    assert isinstance(clock, SystemClock)
    assert abs(clock.now() - dt.datetime.now(dt.UTC)) < TOLERANCE
    assert clock.now().tzinfo is dt.UTC


def test_a_shifted_clock_jumps_whenever_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "offset"
    clock = clock_of({VARIABLE: str(file)})
    assert isinstance(clock, ShiftedClock)
    for seconds in (3600, -3600.5, 0):
        file.write_text(f"{seconds}\n")
        assert abs(shown(file) - dt.timedelta(seconds=seconds)) < TOLERANCE
    assert clock.now().tzinfo is dt.UTC


@pytest.mark.parametrize("content", [None, "", "an hour", "nan", "inf", "1e99"])
def test_what_is_no_number_of_seconds_shifts_nothing(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "offset"
    if content is not None:
        file.write_text(content)
    assert abs(shown(file)) < TOLERANCE
