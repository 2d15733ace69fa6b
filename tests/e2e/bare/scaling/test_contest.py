"""What somebody else writes: never lost, and not fought over for ever (DESIGN 8)."""

from __future__ import annotations

import datetime as dt

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, condition, merged, trajectory, weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play


def set_back(stage: Stage, axis: str) -> None:
    """Somebody else undoes a step."""
    if axis == "horizontal":
        stage.change_workload({"replicas": 2}, "gitops")
    else:
        stage.set_requests("gitops", cpu="500m")
        stage.rollout_completes()


def redone(stage: Stage, axis: str) -> None:
    """The operator makes its step (again)."""
    if axis == "horizontal":
        stage.await_replicas(4)
    else:
        stage.await_requests(cpu="1")
        stage.rollout_completes()


@pytest.mark.parametrize("axis", ["horizontal", "vertical"])
def test_what_is_set_back_twice_is_contested_and_the_other_axis_goes_on(
    play: Play, operator: Operator, axis: str
) -> None:
    stage = play(changes=weight(50))
    if axis == "horizontal":
        stage.vpa_is_content()
        stage.hpa_wants(6)
    else:
        stage.vpa_recommends(cpu="1500m")
    redone(stage, axis)
    set_back(stage, axis)
    redone(stage, axis)
    with stage.held(operator, "Contested", axis, idle=False):
        set_back(stage, axis)
    told = stage.await_condition("Contested", "True", "SetBack")
    assert "gitops keeps reverting" in told["message"]
    stage.await_event("SetBack", "gitops")
    held = stage.blocked("Contested")
    assert held
    wait = dt.datetime.fromisoformat(held["until"]) - stage.last_scale_time(axis)
    assert dt.timedelta(minutes=1) <= wait < dt.timedelta(minutes=3)

    stage.rollout_completes()
    if axis == "horizontal":
        stage.vpa_recommends(cpu="1500m")
        stage.await_requests(cpu="1")
        assert stage.replicas == 2
        stage.change_workload({"replicas": 4}, "gitops")
    else:
        stage.hpa_wants(6)
        stage.await_replicas(4)
        assert stage.requests["cpu"] == "500m"
        stage.set_requests("gitops", cpu="1")
    stage.await_condition("Contested", "False", "NotContested")


def test_pods_that_are_not_measured_yet_end_no_contest(play: Play, operator: Operator) -> None:
    """Another client takes two of four pods away, and replaces the others: what pods used is no demand of theirs."""
    stage = play(changes=merged(trajectory(), weight(0)))
    stage.vpa_is_content()
    stage.hpa_wants(4)
    redone(stage, "horizontal")
    stage.rollout_completes()
    stage.hpa_wants(4)  # at its target, so that the measurement alone calls for two of two pods
    set_back(stage, "horizontal")
    redone(stage, "horizontal")
    with stage.held(operator, "Contested", "horizontal", idle=False):
        set_back(stage, "horizontal")
    held = stage.blocked("Contested")
    for name in ("a", "b"):
        stage.pod(name, conditions=[condition("Ready", "True", "", ago())])
    stage.rollout_completes()
    stage.settled()
    stage.await_condition("Contested", "True", "SetBack")
    assert held is not None
    assert stage.blocked("Contested") == held
    assert (stage.replicas, stage.status["recommended"]["replicas"]) == (2, 4)
    assert stage.condition("Ready")["reason"] == "Contested"
    stage.later(minutes=1)
    redone(stage, "horizontal")


def test_deleting_the_hvpa_leaves_the_workload_as_it_is(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(50))
    stage.vpa_is_content()
    stage.hpa_wants(6)
    stage.await_replicas(4)
    stage.rollout_completes()
    stage.vpa_recommends(cpu="1500m")
    stage.await_requests(cpu="1")
    owners = [*stage.hpa["metadata"]["ownerReferences"], *stage.vpa["metadata"]["ownerReferences"]]
    uid = stage.hvpa["metadata"]["uid"]
    # What they say is what the garbage collector goes by.
    assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in owners] == [
        ("Hvpa", uid, True)
    ] * 2
    for reason in ("ScaledOut", "ScaledUp"):
        stage.await_event(reason)
    stage.rollout_completes()
    stage.hpa_wants(4)
    stage.vpa_is_content()
    stage.settled()
    stage.await_unblocked()
    before = stage.target
    mark = plane.audit.mark()
    stage.delete()
    other = play()  # by the time that its HPA is there, the deletion has been seen
    other.hpa_wants(4)
    other.await_replicas(4)
    assert stage.target == before
    assert plane.audit.requests(mark, user=USER, namespace=stage.namespace, name=stage.name) == []


def test_recommend_mode_patches_nothing_and_tells_what_would_be_set(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(changes={**weight(50), "mode": "Recommend"})
    before = stage.target["metadata"]["generation"]
    stage.vpa_recommends(cpu="1500m", memory="1500M")
    stage.hpa_wants(6)
    stage.soon(lambda: stage.status["recommended"]["replicas"] == 4, "a recommended count")
    container = {
        "name": "app",
        "requests": {"cpu": "1", "memory": "1G"},
        "limits": {"cpu": "2", "memory": "2G"},
    }
    stage.soon(lambda: stage.status["recommended"]["containers"] == [container], "recommended resources")
    stage.await_condition("Ready", "True", "Recommend")
    assert stage.target["metadata"]["generation"] == before
    assert plane.audit.requests(user=USER, resource="deployments", name=stage.name) == []
    stage.change({"mode": "Apply"})
    stage.await_replicas(4)
    stage.await_requests(cpu="1", memory="1G")
