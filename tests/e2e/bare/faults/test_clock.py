"""The operator's clock jumps by an hour and back (`shifted_clock.py`): nothing is scaled twice, and what an hour's
error left behind holds nothing up (docs/decisions/0008). The API server's and the tests' clocks go on as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import VARIABLE as FAULT_POINT
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.operator.shifted_clock import VARIABLE
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario, Start

HOUR = 3600
LEASE = 6
"""Seconds that a lease is good for."""
JUMPS = (HOUR, -HOUR, 0, HOUR, 0, -HOUR)
"""Where the clock goes, seen from the right time."""


class Clock:
    """The clock of an operator."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.env = {VARIABLE: str(file)}
        self.shows(0)

    def shows(self, offset: int) -> None:
        """From now on it is so many seconds ahead."""
        new = self._file.with_suffix(".new")
        new.write_text(str(offset))
        new.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "offset")


@pytest.fixture
def leader(plane: ControlPlane, account: Path, clock: Clock, space: str) -> Iterator[Operator]:
    """An operator with that clock, which holds a lease."""
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    lease = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", str(LEASE))
    with Operator(
        plane, account, "--namespace", space, "--log-level", "debug", *lease, env=clock.env
    ) as running:
        yield running


def decides(scenario: Scenario, number: int) -> None:
    """Have the Hvpa decided upon anew, by a change of its spec that says nothing (`number`: another each time)."""
    scenario.change({"hpa": {"scaleDown": {"stabilizationDuration": f"{number}s"}}})
    scenario.settled()


def test_stabilization_windows_end_by_the_clock_and_a_time_that_was_wrong_holds_nothing(
    plane: ControlPlane, leader: Operator, new_scenario: NewScenario, clock: Clock
) -> None:
    scenario = new_scenario(
        changes=merged(HORIZONTAL_ONLY, {"hpa": {"scaleUp": {"stabilizationDuration": "30m"}}})
    )

    def is_held(count: int) -> None:
        """A step to this count is wanted, and waits for its window, which the step before has begun."""
        scenario.hpa_wants(count)
        scenario.soon(lambda: scenario.status["recommended"]["replicas"] == count, f"{count} recommended")
        scenario.await_blocked("StabilizationWindow", "horizontal")

    scenario.hpa_wants(3)
    scenario.await_replicas(3)
    for count, offset in enumerate(JUMPS, 4):
        is_held(count)
        clock.shows(offset)
        decides(scenario, count)
        scenario.await_replicas(count)
    is_held(10)
    assert leader.metric("hvpa_leader") == 1
    scenario.soon(lambda: len(scenario.events("ScaledOut")) == 7, "an Event of each step")
    assert scenario.patches(plane.audit, USER) == [{"replicas": count} for count in range(3, 10)]


@pytest.mark.parametrize("offset", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_step_of_an_operator_that_died_with_a_wrong_clock_is_not_taken_again(
    plane: ControlPlane, start: Start, new_scenario: NewScenario, space: str, clock: Clock, offset: int
) -> None:
    scenario = new_scenario(create=False, changes=weight(50)).create(wait=False)
    clock.shows(offset)
    dying = start("--namespace", space, env={**clock.env, FAULT_POINT: "after-patch-deployments"}, wait=False)
    scenario.await_owned()
    scenario.vpa_is_content()
    scenario.hpa_wants(6)
    assert dying.process.wait(120) == -9
    assert "appliedFrom" not in scenario.status.get("axes", {}).get("horizontal", {}), (
        "it was to die before the status"
    )
    start("--namespace", space)
    scenario.soon(lambda: scenario.status["axes"]["horizontal"]["appliedFrom"], "the step in the status")
    decides(scenario, 1)
    assert scenario.replicas == 4
    assert len(scenario.patches(plane.audit, USER)) == 1
