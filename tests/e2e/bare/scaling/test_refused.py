"""What a policy of the cluster refuses on one axis does not hold up the other one (DESIGN 8)."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.admission import FEW, Policy
from tests.e2e.bare.conftest import USER, Play


def wants_a_core(spec: Json) -> None:
    """A spec that asks for more CPU than is allowed."""
    resources = spec["template"]["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"] = resources["limits"]["cpu"] = "1"


SMALL = Policy(
    "object.spec.template.spec.containers.all(c, "
    "quantity(c.resources.requests['cpu']).compareTo(quantity('800m')) <= 0)",
    "at most 800m of CPU",
    wants_a_core,
)


def patches(plane: ControlPlane, stage: Stage, mark: Mark) -> list[tuple[set[str], int]]:
    """Which parts of the spec the operator patched since, and how each patch was answered."""
    found = plane.audit.requests(
        mark, user=USER, namespace=stage.namespace, resource="deployments", writes=True
    )
    return [(set((one.body or {})["spec"]), one.code) for one in found if one.verb == "patch"]


def recommended(stage: Stage, replicas: int, cpu: str) -> bool:
    told = stage.status["recommended"]
    return bool(told["replicas"] == replicas and told["containers"][0]["requests"]["cpu"] == cpu)


def wants_both(stage: Stage) -> None:
    """Both recommenders want more, and one decision is to change both axes: to 4 replicas of 1 core."""
    stage.hpa_wants(6)
    stage.vpa_recommends(cpu="1500m")
    stage.soon(lambda: recommended(stage, 4, "1"), "what is wanted")
    stage.change({"mode": "Apply"})


BOTH, REPLICAS, REQUESTS = {"replicas", "template"}, {"replicas"}, {"template"}


@pytest.fixture
def paused(play: Play) -> Stage:
    """Two replicas of 500m, and nothing is applied yet."""
    return play(changes={**weight(50), "mode": "Paused"})


def test_a_policy_that_refuses_requests_does_not_hold_up_replicas(
    plane: ControlPlane, operator: Operator, paused: Stage
) -> None:
    stage = paused
    with SMALL.imposed(stage) as name:
        mark = plane.audit.mark()
        wants_both(stage)
        stage.await_replicas(4)
        told = stage.await_condition("Ready", "False", "Refused")["message"]
        assert "the API server refused to change requests" in told
        assert name in told
        assert "at most 800m of CPU" in told
        stage.await_event("Refused", name)
        assert name in stage.status["lastError"]["description"]
        assert stage.record["vertical"] == {}, "nothing was written on this axis"
        assert stage.requests["cpu"] == "500m"
        stage.rollout_completes()
        stage.hpa_wants(9)
        stage.await_replicas(7)  # 4 + (9 - 4) / 2 rounded up
        stage.rollout_completes()
        assert patches(plane, stage, mark) == [(BOTH, 422), (REPLICAS, 200), (REPLICAS, 200)]
        stage.await_blocked("Refused", "vertical")
        stage.hpa_wants(7)
        # When it is time, the requests are tried once more, and then not for two minutes.
        stage.later(minutes=1)
        stage.soon(lambda: stage.status["axes"]["vertical"]["refused"]["count"] == 2, "a second refusal")
        assert patches(plane, stage, mark)[3:] == [(REQUESTS, 422)]
    stage.later(minutes=2)
    stage.await_requests(cpu="1")
    stage.rollout_completes()
    stage.await_ready()
    assert "lastError" not in stage.status
    assert "refused" not in stage.status["axes"]["vertical"]
    assert [code for _, code in patches(plane, stage, mark)] == [422, 200, 200, 422, 200]
    assert stage.replicas == 7


def test_a_policy_that_refuses_replicas_does_not_hold_up_requests(
    plane: ControlPlane, operator: Operator, paused: Stage
) -> None:
    stage = paused
    with FEW.imposed(stage) as name:
        mark = plane.audit.mark()
        wants_both(stage)
        stage.await_requests(cpu="1")
        told = stage.await_condition("Ready", "False", "Refused")["message"]
        assert "the API server refused to change replicas" in told
        assert name in told
        assert stage.replicas == 2
        assert stage.record["horizontal"] == {}
        assert patches(plane, stage, mark) == [(BOTH, 422), (REPLICAS, 422), (REQUESTS, 200)]
        stage.rollout_completes()
        stage.vpa_recommends(cpu="2")
        stage.await_requests(cpu="1250m")  # 1 + (2 - 1.5) / 2
        assert patches(plane, stage, mark)[3:] == [(REQUESTS, 200)]
    stage.rollout_completes()
    stage.later(minutes=2)
    stage.await_replicas(4)
    stage.rollout_completes()
    stage.await_ready()


def test_what_is_refused_is_not_tried_again_by_a_new_operator(
    plane: ControlPlane, operator: Operator, paused: Stage
) -> None:
    stage = paused
    with SMALL.imposed(stage):
        wants_both(stage)
        stage.await_condition("Ready", "False", "Refused")
        stage.await_replicas(4)
        stage.rollout_completes()
        mark = plane.audit.mark()
        operator.restart()
        stage.hpa_wants(9)
        stage.await_replicas(7)
        assert patches(plane, stage, mark) == [(REPLICAS, 200)]
