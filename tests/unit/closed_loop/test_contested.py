"""Another client takes replicas away, again and again: its pods are not measured for a while, and that ends no contest
(docs/decisions/0062)."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, TARGETS, plain
from tests.unit.closed_loop.loads import HOUR
from tests.unit.closed_loop.loop import Decided, Loop
from tests.unit.closed_loop.workload import Use

pytestmark = pytest.mark.long

LOAD = 2400
WAIT = 60.0
"""Seconds that more replicas wait when they were taken away for the second time."""


def status_and_reason(record: Decided, kind: str) -> tuple[str, str]:
    """A condition's status and reason."""
    condition = next(entry for entry in record.decision.status.conditions if entry.type == kind)
    return condition.status, condition.reason


def taken_away(loop: Loop, *, replaces: bool) -> list[Decided]:
    """What is decided in the minute after another client has set 2 replicas."""
    before = len(loop.decisions)
    loop.deployment.revert(2, loop.now, replaces=replaces)
    loop.run(loop.now + WAIT)
    return loop.decisions[before:]


@pytest.mark.parametrize("replaces", [False, True], ids=["pods stay", "pods are replaced"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blend", BLENDS)
def test_a_contest_lasts_until_its_retry_time(blend: str, target: str, *, replaces: bool) -> None:
    case = dataclasses.replace(plain(Use(), blend=blend, weight=0, load=LOAD), target=target)
    loop = case.loop(loads.constant(LOAD)).run(HOUR)
    count = loop.deployment.replicas
    # By `Trajectory` one more came while the first pods were saturated, and stays inside of the overlap.
    assert count == (9 if blend == "Trajectory" else 8)
    taken_away(loop, replaces=replaces)
    assert loop.deployment.replicas == count, "the first time they are set again at once"
    decided = taken_away(loop, replaces=replaces)
    assert len(decided) >= 2
    for record in decided:
        assert status_and_reason(record, "Contested") == ("True", "SetBack"), record.at
        assert status_and_reason(record, "Ready") == ("False", "Contested"), record.at
        assert record.decision.replicas is not None
        assert record.decision.replicas.recommended == count
    loop.run(loop.now + 1.0)
    assert 8 <= loop.deployment.replicas <= count, "and when the wait is over"
    assert "ScalingUnblocked" not in [event.reason for record in decided for event in record.decision.events]
