"""`hpa.scaleUp.maxStep`: a count far out is reached step by step, 15 seconds apart, though the HPA says nothing new."""

from __future__ import annotations

import datetime as dt

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, merged
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play, Start

PERIOD = dt.timedelta(seconds=15)
"""The least time between two steps."""
WINDOW = dt.timedelta(seconds=25)
"""A stabilization duration that holds longer than that."""
WISH, FIRST = 7, 4
"""From 2 replicas to 7, by 4."""


def changes(**scale_up: object) -> Json:
    """Of an Hvpa: horizontal only, and a step out to four replicas or twice as many."""
    return merged(
        HORIZONTAL_ONLY, {"hpa": {"scaleUp": {"maxStep": {"factor": 2, "minimum": FIRST}, **scale_up}}}
    )


def first_step(stage: Stage) -> tuple[dt.datetime, str]:
    """The HPA wants 7 and says so once, the first step is made: when, and the version of the HPA."""
    stage.hpa_wants(WISH)
    said = stage.hpa["metadata"]["resourceVersion"]
    stage.await_replicas(FIRST)
    assert stage.record["horizontal"]["spent"] == {
        "replicas": FIRST,
        "wish": WISH,
        "weight": 0,
        "goal": WISH,
    }
    assert stage.hvpa["spec"]["replicas"] == WISH, "the mailbox is the HPA's"
    return stage.last_scale_time("horizontal"), said


def the_rest(stage: Stage, plane: ControlPlane, said: str) -> dt.datetime:
    """Wait for the second step, which is the last, and say when it was made."""
    stage.await_replicas(WISH)
    stage.soon(
        lambda: (
            stage.status["axes"]["horizontal"]["spent"]
            == stage.record["horizontal"]["spent"]
            == {"replicas": WISH, "wish": WISH, "weight": 0}
        ),
        "the last step in the status",
    )
    stage.soon(lambda: len(told := stage.events("ScaledOut")) == 2 and told, "an event for each step")
    stage.await_unblocked()
    assert stage.status["recommended"]["replicas"] == WISH
    assert stage.hvpa["spec"]["replicas"] == WISH
    assert stage.hpa["metadata"]["resourceVersion"] == said, "the HPA has said nothing new"
    assert patches(stage, plane) == ["patch", "patch"], "one for each step"
    return stage.last_scale_time("horizontal")


def patches(stage: Stage, plane: ControlPlane) -> list[str]:
    """The operator's writes to the workload that went through."""
    done = plane.audit.requests(user=USER, resource="deployments", namespace=stage.namespace, code=200)
    return [one.verb for one in done if one.is_write]


def own(start: Start, stage: Stage, name: str = "operator") -> Operator:
    """An operator for this stage alone, so that it can be killed."""
    return start("--namespace", stage.namespace, name=name)


def test_the_rest_of_a_step_follows_a_period_later_though_the_hpa_says_nothing_new(
    plane: ControlPlane, play: Play, start: Start
) -> None:
    stage = play(create=False, changes=changes())
    own(start, stage)
    stage.create()
    begun, said = first_step(stage)
    stage.rollout_completes()
    stage.soon(lambda: stage.status["replicas"] == FIRST, "the step in the status")
    status = stage.status
    assert status["axes"]["horizontal"] == stage.record["horizontal"]
    assert status["axes"]["horizontal"]["spent"]["goal"] == WISH
    assert stage.await_blocked("MaxStep", "horizontal")["wanted"] == str(WISH)
    stage.await_condition("Ready", "True", "HeldBack")
    assert (stage.replicas, stage.hvpa["spec"]["replicas"]) == (FIRST, WISH)
    assert the_rest(stage, plane, said) - begun >= PERIOD


def test_a_longer_stabilization_duration_holds_the_rest(
    plane: ControlPlane, play: Play, start: Start
) -> None:
    stage = play(create=False, changes=changes(stabilizationDuration=f"{WINDOW.seconds}s"))
    operator = own(start, stage)
    stage.create()
    begun, said = first_step(stage)
    with stage.held(operator, "StabilizationWindow", "horizontal"):
        stage.rollout_completes()
    held = stage.blocked("StabilizationWindow")
    assert held, "it was held when looked at a moment ago"
    assert (held["current"], held["wanted"]) == (str(FIRST), str(WISH))
    assert dt.datetime.fromisoformat(held["until"]) == begun + WINDOW
    assert the_rest(stage, plane, said) - begun >= WINDOW


def test_after_a_sigkill_between_two_steps_the_rest_follows_once(
    plane: ControlPlane, play: Play, start: Start
) -> None:
    stage = play(create=False, changes=changes())
    victim = own(start, stage, "victim")
    stage.create()
    begun, said = first_step(stage)
    stage.soon(lambda: stage.events("ScaledOut"), "the first step's event")
    victim.kill()
    assert patches(stage, plane) == ["patch"]
    stage.rollout_completes()
    own(start, stage, "survivor")
    stage.soon(lambda: stage.status["replicas"] == FIRST, "the survivor has seen the first step")
    found, seen_at = stage.replicas, dt.datetime.now(dt.UTC)
    assert found == FIRST or seen_at - begun >= PERIOD, "it waits for the period's end"
    assert the_rest(stage, plane, said) - begun >= PERIOD
