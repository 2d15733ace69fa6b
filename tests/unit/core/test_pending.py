"""Since when a change has been wanted: by direction, in the status, as long as it is wanted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.core import Objects
from hvpa.core.model import Decision
from tests.unit.core.trajectory.jointly import app, requests, state, value

GIB = build.GIB
CPU = [value("cpu", "1", "1")]


def smaller(direction: str = "", since: dt.datetime | None = None, memory: str = "1Gi") -> Objects:
    """Memory of 4Gi, which no metric measures, and a target below it; `direction`: pending `since`."""
    entry = {"container": "app", "resource": "memory", "direction": direction, "since": stamp(since or at())}
    status: Any = {"axes": {"vertical": {"pending": [entry] if direction else []}}}
    return state(3, [app("1", "4Gi")], CPU, {"app": {"cpu": "1", "memory": memory}}, status=status)


def pending(decision: Decision) -> list[tuple[str, str, dt.datetime]]:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return [
        (change.resource, change.direction, change.since) for change in decision.status.axes.vertical.pending
    ]


def test_sustained_demand_is_counted_from_when_a_smaller_size_is_wanted() -> None:
    decision = build.decided(smaller())
    assert pending(decision) == [("memory", "down", at())]
    assert "app" not in decision.containers or requests(decision)["memory"] == 4 * GIB


@pytest.mark.parametrize(
    ("direction", "since", "expected"),
    [
        ("down", at(hours=-2), at(hours=-2)),
        pytest.param("down", at(hours=2), at(), id="of a clock that was wrong"),
        pytest.param("up", at(hours=-2), at(), id="of the other direction, as versions before had"),
    ],
)
def test_sustained_demand_goes_on_as_long_as_the_same_is_wanted(
    direction: str, since: dt.datetime, expected: dt.datetime
) -> None:
    assert pending(build.decided(smaller(direction, since))) == [("memory", "down", expected)]


def test_sustained_demand_is_over_after_six_hours() -> None:
    decision = build.decided(smaller("down", at(hours=-6)))
    assert requests(decision)["memory"] == 1_073_742_000  # 1Gi in whole kilobytes
    assert pending(decision) == []


def test_sustained_demand_is_forgotten_when_it_ends() -> None:
    assert pending(build.decided(smaller("down", at(hours=-5), memory="4Gi"))) == []
