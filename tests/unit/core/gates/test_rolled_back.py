"""Sizes that failed: `hvpa.core.gates.rolled_back`."""

from __future__ import annotations

import datetime as dt

import pytest

from builders.build import NOW, at
from hvpa.api.hvpa.status import FailedChange, RolledBack
from hvpa.core.gates.rolled_back import count_after, rolled_back_until, wait_of
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock

CPU = ResourceKey("app", "cpu")
RECORD = RolledBack(
    count=1,
    time=at(hours=-1),
    changes=(
        FailedChange(container="app", resource="memory", previous=1, failed=2),
        FailedChange(container="app", resource="cpu", previous=1000, failed=600),
    ),
)


@pytest.mark.parametrize(
    ("key", "wanted", "waits"),
    [
        (CPU, 600, True),
        (CPU, 640, True),
        (CPU, 641, False),
        (CPU, 100, True),
        (CPU, 2000, False),
        (ResourceKey("app", "memory"), 2, True),
        (ResourceKey("app", "memory"), 0, False),
        (ResourceKey("side", "cpu"), 600, False),
    ],
)
def test_what_failed_or_goes_further_waits(key: ResourceKey, wanted: int, waits: bool) -> None:
    found = rolled_back_until(RECORD, Clock(NOW), wanted, key)
    assert found == (at(hours=23) if waits else None)


def test_without_a_record_nothing_waits() -> None:
    assert rolled_back_until(None, Clock(NOW), 600, CPU) is None


@pytest.mark.parametrize(("count", "days"), [(0, 1), (1, 1), (2, 2), (3, 4), (5, 16), (99, 16)])
def test_the_wait_doubles(count: int, days: int) -> None:
    assert wait_of(count) == dt.timedelta(days=days)


def test_a_size_that_fails_much_later_fails_for_the_first_time_again() -> None:
    assert count_after(None, Clock(NOW)) == 1
    assert count_after(RECORD, Clock(at(hours=40))) == 2
    assert count_after(RECORD, Clock(at(hours=48))) == 1
