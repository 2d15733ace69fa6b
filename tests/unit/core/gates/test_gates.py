"""The gates in their order (DESIGN 6.1, 6.2)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.scaling import ScaleType
from hvpa.core.gates.gates import (
    GATES,
    OUTSIDE_BOUNDS,
    OVERRIDDEN,
    RELIEVED,
    Change,
    GateContext,
    Hold,
    first_hold,
)
from hvpa.core.values.clock import Clock


def policy(mode: str = "Auto", stabilization: str = "0s") -> ScaleType:
    return ScaleType.model_validate(
        {"updatePolicy": {"updateMode": mode}, "stabilizationDuration": stabilization}
    )


def context(
    spec: dict[str, Any] | None = None, is_settled: bool = True, settles_at: dt.datetime | None = None
) -> GateContext:
    parsed = build.hvpa(spec).spec
    assert parsed is not None
    return GateContext(Clock(NOW), parsed, is_settled, settles_at)


FREE = Change(policy(), None)
WINDOW = {"maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
IN_WINDOW = {"maintenanceTimeWindow": {"begin": "093000+0000", "end": "103000+0000"}}


@pytest.mark.parametrize(
    ("change", "now", "expected"),
    [
        pytest.param(FREE, context(), None, id="nothing holds"),
        pytest.param(FREE, context({"mode": "Paused"}), Hold("Paused"), id="Paused: no clock opens it"),
        pytest.param(FREE, context({"mode": "Recommend"}), None, id="Recommend is no gate"),
        pytest.param(
            replace(FREE, contested_until=at(minutes=5)),
            context(),
            Hold("Contested", at(minutes=5)),
            id="Contested until",
        ),
        pytest.param(replace(FREE, contested_until=NOW), context(), None, id="Contested is over at its end"),
        pytest.param(replace(FREE, weightless=True), context(), Hold("Weight"), id="no weight"),
        pytest.param(replace(FREE, policy=policy("Off")), context(), Hold("UpdatePolicy"), id="mode Off"),
        pytest.param(
            Change(policy(stabilization="3m"), at(minutes=-1)),
            context(),
            Hold("StabilizationWindow", at(minutes=2)),
            id="the axis was scaled a minute ago, three are asked for",
        ),
        pytest.param(
            Change(policy(stabilization="3m"), at(minutes=-3)), context(), None, id="three minutes are over"
        ),
        pytest.param(Change(policy(stabilization="3m"), None), context(), None, id="never scaled before"),
        pytest.param(
            Change(policy(stabilization="3m"), at(minutes=2)),
            context(),
            None,
            id="a clock that was wrong holds nothing",
        ),
        pytest.param(
            Change(policy(stabilization="3m"), at(seconds=30)),
            context(),
            Hold("StabilizationWindow", at(minutes=3, seconds=30)),
            id="a clock that is a little ahead does",
        ),
        pytest.param(
            Change(policy("MaintenanceWindow"), None),
            context(WINDOW),
            Hold("MaintenanceWindow", at(hours=12)),
            id="no window is open, the next one at 22:00",
        ),
        pytest.param(
            Change(policy("MaintenanceWindow"), None), context(IN_WINDOW), None, id="a window is open"
        ),
        pytest.param(
            Change(policy("MaintenanceWindow"), None),
            context(),
            Hold("MaintenanceWindow"),
            id="there is no window at all",
        ),
        pytest.param(FREE, context(WINDOW), None, id="mode Auto does not wait for a window"),
        pytest.param(
            replace(FREE, disruptive=True),
            context(is_settled=False),
            Hold("Rollout"),
            id="a rollout is under way",
        ),
        pytest.param(
            replace(FREE, disruptive=True),
            context(is_settled=False, settles_at=at(minutes=3)),
            Hold("Rollout", at(minutes=3)),
            id="a rollout is under way, up to its progress deadline",
        ),
        pytest.param(
            replace(FREE, disruptive=True),
            context(settles_at=at(minutes=-3)),
            None,
            id="its progress deadline has passed",
        ),
        pytest.param(FREE, context(is_settled=False), None, id="it does not matter to replicas"),
        pytest.param(replace(FREE, unmeasured=True), context(), Hold("Measurement"), id="not measured yet"),
        pytest.param(
            replace(FREE, unmeasured=True, measured_at=at(minutes=1)),
            context(),
            Hold("Measurement", at(minutes=1)),
            id="measured in a minute",
        ),
        pytest.param(replace(FREE, unmeasured=True, measured_at=NOW), context(), None, id="measured now"),
        pytest.param(
            replace(FREE, disruptive=True, worth_at=at(minutes=1)),
            context(),
            Hold("SustainedDemand", at(minutes=1)),
            id="demand has not lasted yet",
        ),
        pytest.param(replace(FREE, disruptive=True, worth_at=NOW), context(), None, id="demand has lasted"),
        pytest.param(
            replace(FREE, young_until=at(hours=1)),
            context(),
            Hold("MinHistory", at(hours=1)),
            id="the VPA's history is young",
        ),
        pytest.param(replace(FREE, young_until=NOW), context(), None, id="the VPA's history is old enough"),
        pytest.param(
            replace(FREE, is_kept=True), context(), Hold("OutOfMemory"), id="it ran out of memory just now"
        ),
        pytest.param(
            replace(FREE, is_kept=True, kept_until=at(hours=1)),
            context(),
            Hold("OutOfMemory", at(hours=1)),
            id="it ran out of memory lately",
        ),
        pytest.param(
            replace(FREE, is_kept=True, kept_until=NOW), context(), None, id="it ran out of memory long ago"
        ),
        pytest.param(
            replace(FREE, raised_until=at(minutes=6)),
            context(),
            Hold("RecentRaise", at(minutes=6)),
            id="its memory was raised four minutes ago",
        ),
        pytest.param(replace(FREE, raised_until=NOW), context(), None, id="it was raised ten minutes ago"),
        pytest.param(
            Change(policy(stabilization="3m"), at(minutes=-4), wait=dt.timedelta(minutes=6)),
            context(),
            Hold("StabilizationWindow", at(minutes=2)),
            id="its own wait counts in place of the policy's",
        ),
        pytest.param(
            Change(policy(stabilization="3m"), at(minutes=-1), wait=dt.timedelta()),
            context(),
            None,
            id="a wait of nothing, too",
        ),
        pytest.param(replace(FREE, too_small=True), context(), Hold("MinChange"), id="too small"),
        pytest.param(
            replace(FREE, too_small=True, small_until=at(minutes=1)),
            context(),
            Hold("MinChange", at(minutes=1)),
            id="too small for another minute",
        ),
        pytest.param(
            replace(FREE, too_small=True, small_until=NOW),
            context(),
            None,
            id="small, and wanted for long enough",
        ),
    ],
)
def test_each_gate(change: Change, now: GateContext, expected: Hold | None) -> None:
    assert first_hold(change, now) == expected


def test_gates_are_asked_in_order_and_the_first_that_blocks_is_reported() -> None:
    order = [
        "Paused",
        "Contested",
        "Weight",
        "UpdatePolicy",
        "Refused",
        "Canary",
        "RolledBack",
        "MinHistory",
        "OutOfMemory",
        "RecentRaise",
        "StabilizationWindow",
        "MaintenanceWindow",
        "Rollout",
        "SustainedDemand",
        "Measurement",
        "MinChange",
    ]
    assert [name for name, _ in GATES] == order
    off = Change(
        policy("Off", "1h"),
        NOW,
        contested_until=at(hours=1),
        refused_until=at(hours=1),
        weightless=True,
        disruptive=True,
        too_small=True,
    )
    late = Change(
        policy("MaintenanceWindow", "1h"),
        NOW,
        disruptive=True,
        unmeasured=True,
        too_small=True,
        worth_at=at(hours=1),
        is_kept=True,
        young_until=at(hours=1),
        raised_until=at(hours=1),
        is_after_canary=True,
        rolled_back_until=at(hours=1),
    )
    paused, running = context({"mode": "Paused"}, is_settled=False), context(is_settled=False)
    passed: set[str] = set()
    reported = []
    for change, now in [(off, paused), *[(off, running)] * 4, *[(late, running)] * 11]:
        hold = first_hold(change, now, frozenset(passed))
        assert hold is not None
        reported.append(hold.reason)
        passed.add(hold.reason)
    assert reported == order


def test_what_passes_which_gate() -> None:
    assert {"Weight", "StabilizationWindow", "Rollout", "MinChange"} == OVERRIDDEN  # 6.4, the memory
    assert {"StabilizationWindow", "MinChange"} == RELIEVED  # 6.4, what is beside it
    assert {"Weight", "StabilizationWindow", "Rollout", "Measurement", "MinChange"} == OUTSIDE_BOUNDS  # 6.5


def test_a_hold_in_words() -> None:
    assert Hold("MinChange").told() == "MinChange"
    assert Hold("MinChange", NOW).told() == "MinChange until 2026-11-21T10:00:00Z"
