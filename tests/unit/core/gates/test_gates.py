"""The gates in their order (DESIGN 6.1, 6.2)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pytest
from msgspec.structs import replace

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.scaling import ScaleType
from hvpa.core.gates.gates import (
    GATES,
    NO_CLOCK,
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


def scaled(minutes: float, wait: dt.timedelta | None = None) -> Change:
    """A change of an axis that was scaled so long ago, and waits for three minutes after that, or for `wait`."""
    return Change(policy(stabilization="3m"), at(minutes=-minutes), wait=wait)


FREE: Final = Change(policy(), None)
DISRUPTIVE: Final = replace(FREE, disruptive=True)
IN_WINDOW: Final = Change(policy("MaintenanceWindow"), None)
CLOSED: Final = {"maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
OPEN: Final = {"maintenanceTimeWindow": {"begin": "093000+0000", "end": "103000+0000"}}
INSTANTS: Final = {
    "contested_until": "Contested",
    "refused_until": "Refused",
    "canary_until": "Canary",
    "rolled_back_until": "RolledBack",
    "young_until": "MinHistory",
    "kept_until": "OutOfMemory",
    "raised_until": "RecentRaise",
    "worth_at": "SustainedDemand",
    "measured_at": "Measurement",
    "small_until": "MinChange",
}
"""What holds a change up to an instant, and the gate that it is."""


@pytest.mark.parametrize(
    ("change", "now", "expected"),
    [
        pytest.param(FREE, context(), None, id="nothing holds"),
        pytest.param(FREE, context({"mode": "Paused"}), Hold("Paused"), id="Paused: no clock opens it"),
        pytest.param(FREE, context({"mode": "Recommend"}), None, id="Recommend is no gate"),
        pytest.param(replace(FREE, weightless=True), context(), Hold("Weight"), id="no weight"),
        pytest.param(replace(FREE, policy=policy("Off")), context(), Hold("UpdatePolicy"), id="mode Off"),
        pytest.param(
            scaled(1),
            context(),
            Hold("StabilizationWindow", at(minutes=2)),
            id="the axis was scaled a minute ago, three are asked for",
        ),
        pytest.param(scaled(3), context(), None, id="three minutes are over"),
        pytest.param(Change(policy(stabilization="3m"), None), context(), None, id="never scaled before"),
        pytest.param(scaled(-2), context(), None, id="a clock that was wrong holds nothing"),
        pytest.param(
            scaled(-0.5),
            context(),
            Hold("StabilizationWindow", at(minutes=3.5)),
            id="a clock that is a little ahead does",
        ),
        pytest.param(
            scaled(4, wait=dt.timedelta(minutes=6)),
            context(),
            Hold("StabilizationWindow", at(minutes=2)),
            id="its own wait counts in place of the policy's",
        ),
        pytest.param(scaled(1, wait=dt.timedelta()), context(), None, id="a wait of nothing, too"),
        pytest.param(
            IN_WINDOW,
            context(CLOSED),
            Hold("MaintenanceWindow", at(hours=12)),
            id="no window is open, the next one at 22:00",
        ),
        pytest.param(IN_WINDOW, context(OPEN), None, id="a window is open"),
        pytest.param(IN_WINDOW, context(), Hold("MaintenanceWindow"), id="there is no window at all"),
        pytest.param(FREE, context(CLOSED), None, id="mode Auto does not wait for a window"),
        pytest.param(DISRUPTIVE, context(is_settled=False), Hold("Rollout"), id="a rollout is under way"),
        pytest.param(
            DISRUPTIVE,
            context(is_settled=False, settles_at=at(minutes=3)),
            Hold("Rollout", at(minutes=3)),
            id="a rollout is under way, up to its progress deadline",
        ),
        pytest.param(
            DISRUPTIVE, context(settles_at=at(minutes=-3)), None, id="its progress deadline has passed"
        ),
        pytest.param(FREE, context(is_settled=False), None, id="it does not matter to replicas"),
    ],
)
def test_each_gate(change: Change, now: GateContext, expected: Hold | None) -> None:
    assert first_hold(change, now) == expected


@pytest.mark.parametrize(("field", "reason"), INSTANTS.items(), ids=INSTANTS.values())
def test_an_instant_holds_a_change_until_then(field: str, reason: str) -> None:
    for until, expected in (
        (at(hours=1), Hold(reason, at(hours=1))),
        (NO_CLOCK, Hold(reason)),
        (NOW, None),
        (at(hours=-1), None),
    ):
        now = context()
        assert first_hold(replace(FREE, **{field: until}), now) == expected
        assert now.clock.changes_at == (until if until == at(hours=1) else None)


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
    assert list(GATES) == order
    held: dict[str, Any] = dict.fromkeys(INSTANTS, at(hours=1))
    off = Change(policy("Off", "1h"), NOW, disruptive=True, weightless=True, **held)
    late = replace(off, policy=policy("MaintenanceWindow", "1h"))
    paused, running = context({"mode": "Paused"}, is_settled=False), context(is_settled=False)
    passed: set[str] = set()
    for change, now in [(off, paused), *[(off, running)] * 10, *[(late, running)] * 5]:
        hold = first_hold(change, now, frozenset(passed))
        assert hold is not None
        assert hold.reason == order[len(passed)]
        passed.add(hold.reason)
    assert first_hold(late, running, frozenset(passed)) is None


def test_what_passes_which_gate() -> None:
    assert {"Weight", "StabilizationWindow", "Rollout", "MinChange"} == OVERRIDDEN  # 6.4, the memory
    assert {"StabilizationWindow", "MinChange"} == RELIEVED  # 6.4, what is beside it
    assert {"Weight", "StabilizationWindow", "Rollout", "Measurement", "MinChange"} == OUTSIDE_BOUNDS  # 6.5


def test_a_hold_in_words() -> None:
    assert Hold("MinChange").text() == "MinChange"
    assert Hold("MinChange", NOW).text() == "MinChange until 2026-11-21T10:00:00Z"
