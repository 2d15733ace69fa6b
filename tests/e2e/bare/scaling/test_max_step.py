"""`hpa.scaleUp.maxStep`: a far count is reached in steps, 15 seconds apart, from one recommendation of the HPA."""

from __future__ import annotations

import datetime as dt

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, merged
from tests.e2e.bare.conftest import USER, NewScenario, Start

PERIOD = dt.timedelta(seconds=15)
"""The least time between two steps."""
DESIRED, FIRST = 7, 4
"""From 2 replicas to 7, by 4."""
LIMITED = {"hpa": {"scaleUp": {"maxStep": {"factor": 2, "minimum": FIRST}}}}
"""A step out to four replicas or twice as many."""


def test_after_a_sigkill_between_two_steps_the_rest_follows_once(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    """Though the HPA recommends nothing new."""
    scenario = new_scenario(create=False, changes=merged(HORIZONTAL_ONLY, LIMITED))
    victim = start("--namespace", scenario.namespace, name="victim")
    scenario.create()
    scenario.hpa_wants(DESIRED)
    version = scenario.hpa["metadata"]["resourceVersion"]
    scenario.await_replicas(FIRST)
    begun, first = scenario.last_scale_time("horizontal"), scenario.record["horizontal"]["appliedFrom"]
    assert first == {"replicas": FIRST, "desired": DESIRED, "weight": 0, "goal": DESIRED}
    assert scenario.hvpa["spec"]["replicas"] == DESIRED, "the scale replicas are the HPA's"
    scenario.soon(lambda: scenario.events("ScaledOut"), "the first step's event")
    victim.kill()
    assert len(scenario.patches(plane.audit, USER)) == 1
    scenario.rollout_completes()
    start("--namespace", scenario.namespace, name="survivor")
    scenario.soon(lambda: scenario.status["replicas"] == FIRST, "the survivor has seen the first step")
    replicas, seen_at = scenario.replicas, dt.datetime.now(dt.UTC)
    assert replicas == FIRST or seen_at - begun >= PERIOD, "it waits for the period's end"

    scenario.await_replicas(DESIRED)
    scenario.soon(
        lambda: (
            scenario.status["axes"]["horizontal"]["appliedFrom"]
            == scenario.record["horizontal"]["appliedFrom"]
            == {"replicas": DESIRED, "desired": DESIRED, "weight": 0}
        ),
        "the last step in the status",
    )
    scenario.soon(
        lambda: len(events := scenario.events("ScaledOut")) == 2 and events, "an event for each step"
    )
    scenario.await_unblocked()
    assert scenario.status["recommended"]["replicas"] == DESIRED
    assert scenario.hvpa["spec"]["replicas"] == DESIRED
    assert scenario.hpa["metadata"]["resourceVersion"] == version, "the HPA has recommended nothing new"
    assert len(scenario.patches(plane.audit, USER)) == 2, "one for each step"
    assert scenario.last_scale_time("horizontal") - begun >= PERIOD
