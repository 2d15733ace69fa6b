"""`hpa.scaleUp.maxStep`: a far count is reached in steps, 15 seconds apart, from one recommendation of the HPA."""

from __future__ import annotations

import datetime as dt

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, merged
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario, Start

PERIOD = dt.timedelta(seconds=15)
"""The least time between two steps."""
WINDOW = dt.timedelta(seconds=25)
"""A stabilization duration that holds longer than that."""
DESIRED, FIRST = 7, 4
"""From 2 replicas to 7, by 4."""


def changes(**scale_up: object) -> Json:
    """Of an Hvpa: horizontal only, and a step out to four replicas or twice as many."""
    return merged(
        HORIZONTAL_ONLY, {"hpa": {"scaleUp": {"maxStep": {"factor": 2, "minimum": FIRST}, **scale_up}}}
    )


def first_step(scenario: Scenario) -> tuple[dt.datetime, str]:
    """The HPA recommends 7 once, the first step is made: when, and the version of the HPA."""
    scenario.hpa_wants(DESIRED)
    version = scenario.hpa["metadata"]["resourceVersion"]
    scenario.await_replicas(FIRST)
    assert scenario.record["horizontal"]["appliedFrom"] == {
        "replicas": FIRST,
        "desired": DESIRED,
        "weight": 0,
        "goal": DESIRED,
    }
    assert scenario.hvpa["spec"]["replicas"] == DESIRED, "the scale replicas are the HPA's"
    return scenario.last_scale_time("horizontal"), version


def the_rest(scenario: Scenario, plane: ControlPlane, version: str) -> dt.datetime:
    """Wait for the second step, which is the last, and say when it was made."""
    scenario.await_replicas(DESIRED)
    scenario.soon(
        lambda: (
            scenario.status["axes"]["horizontal"]["appliedFrom"]
            == scenario.record["horizontal"]["appliedFrom"]
            == {"replicas": DESIRED, "desired": DESIRED, "weight": 0}
        ),
        "the last step in the status",
    )
    scenario.soon(lambda: len(found := scenario.events("ScaledOut")) == 2 and found, "an event for each step")
    scenario.await_unblocked()
    assert scenario.status["recommended"]["replicas"] == DESIRED
    assert scenario.hvpa["spec"]["replicas"] == DESIRED
    assert scenario.hpa["metadata"]["resourceVersion"] == version, "the HPA has recommended nothing new"
    assert len(scenario.patches(plane.audit, USER)) == 2, "one for each step"
    return scenario.last_scale_time("horizontal")


def own(start: Start, scenario: Scenario, name: str = "operator") -> Operator:
    """An operator for this scenario alone, so that it can be killed."""
    return start("--namespace", scenario.namespace, name=name)


def test_the_rest_of_a_step_follows_a_period_later_though_the_hpa_says_nothing_new(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    scenario = new_scenario(create=False, changes=changes())
    own(start, scenario)
    scenario.create()
    begun, version = first_step(scenario)
    scenario.rollout_completes()
    scenario.soon(lambda: scenario.status["replicas"] == FIRST, "the step in the status")
    status = scenario.status
    assert status["axes"]["horizontal"] == scenario.record["horizontal"]
    assert status["axes"]["horizontal"]["appliedFrom"]["goal"] == DESIRED
    assert scenario.await_blocked("MaxStep", "horizontal")["wanted"] == str(DESIRED)
    scenario.await_condition("Ready", "True", "HeldBack")
    assert (scenario.replicas, scenario.hvpa["spec"]["replicas"]) == (FIRST, DESIRED)
    assert the_rest(scenario, plane, version) - begun >= PERIOD


def test_a_longer_stabilization_duration_holds_the_rest(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    scenario = new_scenario(create=False, changes=changes(stabilizationDuration=f"{WINDOW.seconds}s"))
    operator = own(start, scenario)
    scenario.create()
    begun, version = first_step(scenario)
    with scenario.held(operator, "StabilizationWindow", "horizontal"):
        scenario.rollout_completes()
    held = scenario.blocked("StabilizationWindow")
    assert held, "it was held when looked at a moment ago"
    assert (held["current"], held["wanted"]) == (str(FIRST), str(DESIRED))
    assert dt.datetime.fromisoformat(held["until"]) == begun + WINDOW
    assert the_rest(scenario, plane, version) - begun >= WINDOW


def test_after_a_sigkill_between_two_steps_the_rest_follows_once(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    scenario = new_scenario(create=False, changes=changes())
    victim = own(start, scenario, "victim")
    scenario.create()
    begun, version = first_step(scenario)
    scenario.soon(lambda: scenario.events("ScaledOut"), "the first step's event")
    victim.kill()
    assert len(scenario.patches(plane.audit, USER)) == 1
    scenario.rollout_completes()
    own(start, scenario, "survivor")
    scenario.soon(lambda: scenario.status["replicas"] == FIRST, "the survivor has seen the first step")
    found, seen_at = scenario.replicas, dt.datetime.now(dt.UTC)
    assert found == FIRST or seen_at - begun >= PERIOD, "it waits for the period's end"
    assert the_rest(scenario, plane, version) - begun >= PERIOD
