"""The gates in their order (DESIGN 6.1, 6.2)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pytest
from msgspec.structs import replace

from builders import build
from builders.build import NOW, at
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
from hvpa.core.rules import GateFigures, Rules, rules_of
from hvpa.core.values.clock import Clock


def rules(mode: str = "Auto", stabilization: str = "0s") -> Rules:
    policy = {"updatePolicy": {"updateMode": mode}, "stabilizationDuration": stabilization}
    return rules_of(context({"hpa": {"scaleUp": policy}}).spec)["horizontal", "up"]


def context(
    spec: dict[str, Any] | None = None, is_settled: bool = True, settles_at: dt.datetime | None = None
) -> GateContext:
    parsed = build.hvpa(spec).spec
    assert parsed is not None
    return GateContext(Clock(NOW), parsed, is_settled, settles_at)


def scaled(minutes: float) -> Change:
    """A change of an axis that was scaled so long ago, and waits for three minutes after that."""
    return Change(rules(stabilization="3m"), at(minutes=-minutes))


def stabilized(minutes: float) -> Hold:
    """Held by the stabilization of `scaled` for so long."""
    figures = GateFigures(wait=dt.timedelta(minutes=3), source="hpa.scaleUp.stabilizationDuration")
    return Hold("StabilizationWindow", at(minutes=minutes), figures)


FREE: Final = Change(rules(), None)
DISRUPTIVE: Final = replace(FREE, disruptive=True)
IN_WINDOW: Final = Change(rules("MaintenanceWindow"), None)
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
    "unapproved_until": "Approval",
    "measured_at": "Measurement",
    "small_until": "MinChange",
}
"""What holds a change up to an instant, and the gate that it is."""


CASES: Final[dict[str, tuple[Change, GateContext, Hold | None]]] = {
    "nothing holds": (FREE, context(), None),
    "Paused: no clock opens it": (FREE, context({"mode": "Paused"}), Hold("Paused")),
    "Recommend is no gate": (FREE, context({"mode": "Recommend"}), None),
    "Weight: no weight": (replace(FREE, weightless=True), context(), Hold("Weight")),
    "UpdatePolicy: updateMode Off": (replace(FREE, rules=rules("Off")), context(), Hold("UpdatePolicy")),
    "StabilizationWindow: scaled a minute ago, three are asked for": (scaled(1), context(), stabilized(2)),
    "StabilizationWindow: three minutes are over": (scaled(3), context(), None),
    "StabilizationWindow: never scaled before": (replace(scaled(1), last_scale_time=None), context(), None),
    "StabilizationWindow: a clock that was wrong holds nothing": (scaled(-2), context(), None),
    "StabilizationWindow: a clock that is a little ahead holds it": (
        scaled(-0.5),
        context(),
        stabilized(3.5),
    ),
    "MaintenanceWindow: the next one opens at 22:00": (
        IN_WINDOW,
        context(CLOSED),
        Hold("MaintenanceWindow", at(hours=12)),
    ),
    "MaintenanceWindow: one is open": (IN_WINDOW, context(OPEN), None),
    "MaintenanceWindow: there is none at all": (IN_WINDOW, context(), Hold("MaintenanceWindow")),
    "MaintenanceWindow: updateMode Auto does not wait for one": (FREE, context(CLOSED), None),
    "Rollout: under way": (DISRUPTIVE, context(is_settled=False), Hold("Rollout")),
    "Rollout: up to its progress deadline": (
        DISRUPTIVE,
        context(is_settled=False, settles_at=at(minutes=3)),
        Hold("Rollout", at(minutes=3)),
    ),
    "Rollout: its progress deadline has passed": (DISRUPTIVE, context(settles_at=at(minutes=-3)), None),
    "Rollout: does not matter to replicas": (FREE, context(is_settled=False), None),
}


@pytest.mark.parametrize(("change", "now", "expected"), CASES.values(), ids=CASES)
def test_each_gate_holds_a_change_or_lets_it_pass(
    change: Change, now: GateContext, expected: Hold | None
) -> None:
    assert first_hold(change, now) == expected


@pytest.mark.parametrize(("field", "reason"), INSTANTS.items(), ids=INSTANTS.values())
def test_each_gate_with_an_instant_holds_a_change_until_then(field: str, reason: str) -> None:
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
    order = (
        "Paused Contested Weight UpdatePolicy Refused Canary RolledBack MinHistory OutOfMemory RecentRaise "
        "StabilizationWindow MaintenanceWindow Rollout SustainedDemand Measurement MinChange"
    )
    assert " ".join(GATES) == order.replace("Stab", "Approval Stab")
    held: dict[str, Any] = dict.fromkeys(INSTANTS, at(hours=1))
    off = Change(rules("Off", "1h"), NOW, disruptive=True, weightless=True, **held)
    late = replace(off, rules=rules("MaintenanceWindow", "1h"))
    paused, running = context({"mode": "Paused"}, is_settled=False), context(is_settled=False)
    passed: list[str] = []
    for change, now in [(off, paused), *[(off, running)] * 10, *[(late, running)] * 5]:
        hold = first_hold(change, now, frozenset(passed))
        assert hold is not None
        passed.append(hold.reason)
    assert " ".join(passed) == order
    assert first_hold(late, running, frozenset(passed)) is None


@pytest.mark.parametrize("field", ["worth_at", "small_until"])
def test_a_change_that_may_never_be_made_needs_no_approval(field: str) -> None:
    unapproved = replace(FREE, unapproved_until=NO_CLOCK)
    assert first_hold(unapproved, context()) == Hold("Approval")
    hold = first_hold(replace(unapproved, **{field: at(hours=1)}), context())
    assert hold is not None
    assert hold.reason == INSTANTS[field]
    assert first_hold(replace(unapproved, **{field: at(hours=-1)}), context()) == Hold("Approval")


def test_gates_that_starving_containers_and_counts_outside_bounds_pass() -> None:
    assert {"Weight", "StabilizationWindow", "Rollout", "MinChange"} == OVERRIDDEN  # 6.4, the memory
    assert {"StabilizationWindow", "MinChange"} == RELIEVED  # 6.4, what is beside it
    assert {"Weight", "StabilizationWindow", "Rollout", "Measurement", "MinChange"} == OUTSIDE_BOUNDS  # 6.5


def test_hold_text_names_the_gate_and_until_when() -> None:
    assert Hold("MinChange").text() == "MinChange"
    assert Hold("MinChange", NOW).text() == "MinChange until 2026-11-21T10:00:00Z"
