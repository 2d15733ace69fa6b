"""The operator's clock jumps by an hour and back (`shifted_clock.py`): nothing is scaled twice, and what an hour's
error left behind holds nothing up (docs/decisions/0008). The API server's and the tests' clocks go on as ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import VARIABLE as FAULT_POINT
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.operator.shifted_clock import VARIABLE
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, ago, merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.conftest import USER, NewScenario, Start

HOUR = 3600
LEASE = 6
"""Seconds that a lease is good for."""
JUMPS = (HOUR, -HOUR, 0, HOUR, 0, -HOUR)
"""Where the clock goes, seen from the right time."""


class Clock:
    """The clock of one or more operators."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.env = {VARIABLE: str(file)}
        self.shows(0)

    def shows(self, offset: int) -> None:
        """From now on it is so many seconds ahead."""
        new = self._file.with_suffix(".new")
        new.write_text(str(offset))
        new.replace(self._file)


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock") / "offset")


@pytest.fixture(scope="module")
def space(plane: ControlPlane) -> str:
    """One namespace for all but those tests that need an operator of their own."""
    return new_namespace(plane.api, "clock")


@pytest.fixture(scope="module")
def leader(plane: ControlPlane, account: Path, clock: Clock, space: str) -> Iterator[Operator]:
    """An operator with that clock, which holds a lease."""
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    with Operator(plane, account, *flags(space), env=clock.env) as running:
        yield running


@pytest.fixture(autouse=True)
def _right_again(clock: Clock) -> Iterator[None]:
    yield
    clock.shows(0)


def flags(space: str) -> tuple[str, ...]:
    lease = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", str(LEASE))
    return ("--namespace", space, "--log-level", "debug", *lease)


def decides(scenario: Scenario, number: int) -> None:
    """Have the Hvpa decided upon anew, by a change of its spec that says nothing (`number`: another each time)."""
    scenario.change({"hpa": {"scaleDown": {"stabilizationDuration": f"{number}s"}}})
    scenario.settled()


def test_stabilization_windows_end_by_the_clock_and_a_time_that_was_wrong_holds_nothing(
    plane: ControlPlane, new_scenario: NewScenario, leader: Operator, clock: Clock
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
    assert scenario.patches(plane.audit, USER) == [{"replicas": count} for count in range(3, 10)]


def test_a_step_that_was_taken_is_not_taken_again_by_any_clock(
    plane: ControlPlane, new_scenario: NewScenario, leader: Operator, clock: Clock
) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.change({"mode": "Paused"})
    scenario.settled()
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    scenario.soon(lambda: scenario.recommends(4, cpu="1"), "both")
    clock.shows(HOUR)
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(4)
    for number, offset in enumerate(JUMPS):
        clock.shows(offset)
        decides(scenario, number + 1)
    assert (scenario.replicas, scenario.requests) == (4, {"cpu": "1", "memory": "1G"})
    assert len(scenario.patches(plane.audit, USER)) == 1


@pytest.mark.parametrize("offset", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_step_of_an_operator_that_died_with_a_wrong_clock_is_not_taken_again(
    plane: ControlPlane, start: Start, tmp_path: Path, offset: int
) -> None:
    space = new_namespace(plane.api, "clock")
    scenario = Scenario(plane.api, space, changes=weight(50)).create(wait=False)
    clock = Clock(tmp_path / "offset")
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
    scenario.delete()


def test_a_container_that_starves_is_helped_though_a_wrong_clock_recorded_the_last_step(
    new_scenario: NewScenario, leader: Operator, clock: Clock
) -> None:
    scenario = new_scenario(
        changes=merged(VERTICAL_ONLY, {"vpa": {"scaleUp": {"stabilizationDuration": "10m"}}})
    )
    clock.shows(HOUR)
    scenario.vpa_recommends(memory="800M")
    scenario.await_requests(memory="800M")
    clock.shows(0)
    killed = {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(minutes=5), "finishedAt": ago()}
    scenario.pod("a", container_status={"state": {"running": {}}, "lastState": {"terminated": killed}})
    scenario.await_requests(memory="960M")


def test_what_happens_again_is_reported_again_by_any_clock(
    new_scenario: NewScenario, leader: Operator, clock: Clock
) -> None:
    scenario = new_scenario()
    for offset in JUMPS:
        clock.shows(offset)
        for mode, status, reason in (("Paused", "True", "Paused"), ("Apply", "False", "NotPaused")):
            scenario.change({"mode": mode})
            scenario.await_condition("Paused", status, reason)

    def counted() -> int:
        return sum(int(one["count"]) for one in scenario.events("Paused"))

    scenario.soon(lambda: counted() == len(JUMPS), "all of them")


def test_a_lease_is_kept_and_not_taken_by_any_clock(
    plane: ControlPlane,
    start: Start,
    space: str,
    new_scenario: NewScenario,
    leader: Operator,
    clock: Clock,
    tmp_path: Path,
) -> None:
    ahead = Clock(tmp_path / "offset")
    ahead.shows(HOUR)
    other = start(*flags(space), env=ahead.env)

    def lease() -> Json:
        found: Json = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
        return found

    before = lease()
    renewals = set()
    end = time.monotonic() + LEASE + 2
    while time.monotonic() < end:
        for offset in JUMPS:
            clock.shows(offset)
            ahead.shows(-offset)
            time.sleep(0.2)
            renewals.add(lease()["renewTime"])
    after = lease()
    assert (after["holderIdentity"], after["leaseTransitions"]) == (
        before["holderIdentity"],
        before["leaseTransitions"],
    )
    assert len(renewals) > 2
    assert leader.metric("hvpa_leader") == 1
    assert other.metric("hvpa_leader") == 0
    scenario = new_scenario()
    scenario.hpa_wants(5)
    scenario.await_replicas(5)
