"""An Hvpa with a fault says so, is not scaled, and harms no other."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play

FAULTY = {
    "a cron expression that never comes true": (
        {"maintenanceWindows": [{"schedule": "0 3 30 2 *", "duration": "1h"}]},
        "spec.maintenanceWindows[0].schedule",
    ),
    "a time zone that the database lacks": (
        {"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h", "timeZone": "Mars/Utopia"}]},
        "spec.maintenanceWindows[0].timeZone",
    ),
}


def untouched(plane: ControlPlane, stage: Stage) -> bool:
    """Whether the operator never tried to write to a stage's workload."""
    requests = plane.audit.requests(user=USER, resource="deployments", namespace=stage.namespace)
    return not [one for one in requests if one.name == stage.name]


def goes_on(stage: Stage) -> None:
    """A valid Hvpa is scaled."""
    wanted = stage.replicas + 2
    stage.hpa_wants(wanted)
    stage.await_replicas(wanted)


@pytest.mark.parametrize(("changes", "path"), FAULTY.values(), ids=FAULTY)
def test_what_no_schema_can_catch_is_told_and_a_valid_hvpa_beside_it_is_scaled(
    plane: ControlPlane, play: Play, operator: Operator, changes: Json, path: str
) -> None:
    faulty = play(create=False, changes=changes).create(wait=False)
    valid = play()
    told = faulty.await_condition("Ready", "False", "InvalidSpec")
    assert path in told["message"]
    assert path in faulty.await_event("InvalidSpec")["message"]
    assert faulty.events("InvalidSpec")[0]["type"] == "Warning"
    goes_on(valid)
    assert plane.api.find("HorizontalPodAutoscaler", faulty.name, faulty.namespace) is None
    faulty.change({"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h"}]})
    faulty.await_reason_gone("InvalidSpec")
    faulty.await_owned()
    goes_on(faulty)


def test_a_target_of_an_unsupported_kind_is_told(play: Play, operator: Operator) -> None:
    stage = play(create=False, changes={"targetRef": {"kind": "DaemonSet"}}).create(wait=False)
    told = stage.await_condition("Ready", "False", "UnsupportedTarget")
    assert "DaemonSet" in told["message"]
    stage.await_event("UnsupportedTarget")


def test_a_missing_target_is_told_and_scaled_once_it_is_there(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(create=False)
    plane.api.create(stage.manifest)
    stage.await_condition("Ready", "False", "TargetNotFound")
    stage.await_event("TargetNotFound", stage.name)
    plane.api.create(stage.workload)
    stage.rollout_completes()
    stage.await_owned()
    goes_on(stage)
    plane.api.delete("Deployment", stage.name, stage.namespace)
    stage.await_condition("Ready", "False", "TargetNotFound")


def test_a_target_of_two_hvpas_is_scaled_by_neither_and_both_say_so(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    first, second = play(), play(create=False)
    second.manifest["spec"]["targetRef"]["name"] = first.name
    plane.api.create(second.manifest)
    for one, other in ((first, second), (second, first)):
        told = one.await_condition("Ready", "False", "TargetShared")
        assert other.name in told["message"]
        one.await_event("TargetShared", other.name)
    first.hpa_wants(6)
    bystander = play()
    goes_on(bystander)
    assert untouched(plane, first)
    second.delete()
    first.await_reason_gone("TargetShared")
    first.await_replicas(6)


def test_a_target_at_0_is_left_alone_and_its_mailbox_stays_usable(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(replicas=0)
    stage.await_condition("Ready", "True", "ScaledToZero")
    stage.hpa_wants(4)
    stage.vpa_recommends(cpu="1")
    stage.soon(lambda: stage.hvpa["spec"]["replicas"] == 4, "the wish")
    goes_on(play())
    assert stage.replicas == 0
    assert stage.requests["cpu"] == "500m"
    assert untouched(plane, stage)
    stage.change_workload({"replicas": 1})
    stage.rollout_completes()
    stage.hpa_wants(3)
    stage.await_replicas(3)
