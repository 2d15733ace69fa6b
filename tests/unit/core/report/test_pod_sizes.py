"""`Ready` is judged by the pods: whether they have the size that was decided (docs/decisions/0061)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.objects.kinds import api_version_of
from hvpa.core import Decision

SMALL, LARGE = {"cpu": "500m", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi"}
TARGETS = {"app": LARGE}
FOLLOWS = "the workload follows its recommendations"


def ready(decision: Decision) -> tuple[str, str, str]:
    condition = build.condition(decision, "Ready")
    return condition.status, condition.reason, condition.message


def decided(
    old: int,
    *,
    kind: str = "Deployment",
    target: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    pods: int = 3,
    targets: Mapping[str, Any] = TARGETS,
    status: Mapping[str, Any] | None = None,
) -> Decision:
    """A decision on a workload of 3 pods whose template has the recommended size, of which `old` have another."""
    reference = {"targetRef": {"apiVersion": api_version_of(kind), "kind": kind, "name": "web"}}
    hvpa = build.hvpa({**reference, **(spec or {})}, status)
    workload = build.workload(3, [build.container(requests=LARGE)], change=target, kind=kind)
    sizes = [SMALL if number < old else LARGE for number in range(pods)]
    made = [
        build.pod(f"web-{number}", containers=[build.container(requests=size)])
        for number, size in enumerate(sizes)
    ]
    vpa = build.vpa(targets, {"spec": reference})
    return build.decided(build.objects(hvpa, workload, build.hpa(3, 50), vpa, made))


ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete"}}}
PARTITION = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}
KEPT: dict[str, tuple[str, Mapping[str, Any], str, str]] = {
    "a StatefulSet with OnDelete": (
        "StatefulSet",
        ON_DELETE,
        "PodsNotReplaced",
        "updateStrategy is OnDelete",
    ),
    "a StatefulSet with a partition": ("StatefulSet", PARTITION, "PodsNotReplaced", "its partition is 2"),
    "a ReplicaSet": ("ReplicaSet", {}, "PodsNotReplaced", "a ReplicaSet replaces no pod by itself"),
    "a ReplicationController": ("ReplicationController", {}, "PodsNotReplaced", "replaces no pod by itself"),
    "a paused Deployment": ("Deployment", {"spec": {"paused": True}}, "DeploymentPaused", "(spec.paused)"),
}


@pytest.mark.parametrize(("kind", "target", "reason", "why"), KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("old", [1, 3])
def test_pods_that_nothing_replaces_are_counted_and_the_cause_is_named(
    kind: str, target: Mapping[str, Any], reason: str, why: str, old: int
) -> None:
    status, actual_reason, message = ready(decided(old, kind=kind, target=target))
    assert (status, actual_reason) == ("False", reason)
    assert message.startswith(f"{3 - old} of 3 pods have the size of the pod template of {kind} web: ")
    assert why in message
    assert ready(decided(0, kind=kind, target=target)) == ("True", "Reconciled", FOLLOWS)


@pytest.mark.parametrize(("kind", "target", "reason", "why"), KEPT.values(), ids=KEPT)
def test_a_change_that_will_reach_no_pod_is_reported_with_the_change(
    kind: str, target: Mapping[str, Any], reason: str, why: str
) -> None:
    decision = decided(0, kind=kind, target=target, targets={"app": {"cpu": "3"}})
    assert decision.workload_patch is not None
    status, actual_reason, message = ready(decision)
    assert (status, actual_reason) == ("False", reason)
    assert message.startswith("0 of 3 pods have the size")


def test_without_pods_that_are_seen_the_count_of_the_controller_is_reported() -> None:
    target = build.merged(ON_DELETE, {"status": {"updatedReplicas": 1}})
    condition = ready(decided(0, kind="StatefulSet", target=target, pods=0))
    assert condition[:2] == ("False", "PodsNotReplaced")
    assert condition[2].startswith("1 of 3 pods have the size")
    assert ready(decided(0, kind="StatefulSet", target=ON_DELETE, pods=0))[1] == "Reconciled"


@pytest.mark.parametrize("updated", [1, 3])
def test_while_pods_are_replaced_nothing_claims_that_they_follow(updated: int) -> None:
    target = {"status": {"updatedReplicas": updated}}
    status = {"axes": {"vertical": {"lastScaleTime": stamp(at(seconds=-30))}}}
    expected = "Deployment web replaces pods: not all have their new size yet"
    assert ready(decided(2, target=target, status=status)) == ("True", "Reconciled", expected)
    changed = decided(0, targets={"app": {"cpu": "3"}})
    assert ready(changed)[2].endswith(expected)


def test_pods_to_which_another_client_gives_another_size_are_counted() -> None:
    condition = ready(decided(2))
    assert condition[:2] == ("False", "PodsNotReplaced")
    assert condition[2].startswith(
        "1 of 3 pods have the size of the pod template of Deployment web, although"
    )


@pytest.mark.parametrize("sizes", [{"memory": "1Gi"}, {}])
def test_what_no_hvpa_governs_is_not_judged(sizes: Mapping[str, str]) -> None:
    policy = {"containerName": "app", "controlledResources": list(sizes)}
    spec = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    hvpa_spec = {**spec, "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}
    workload = build.workload(3, [build.container(requests=LARGE)], change=ON_DELETE, kind="StatefulSet")
    cpu = build.container(requests={"cpu": "500m", "memory": "1Gi"})
    pods = [build.pod(f"web-{number}", containers=[cpu]) for number in range(3)]
    vpa = build.vpa(TARGETS, {"spec": {"targetRef": hvpa_spec["targetRef"]}})
    decision = build.decided(build.objects(build.hvpa(hvpa_spec), workload, build.hpa(3, 50), vpa, pods))
    assert ready(decision)[:2] == ("True", "Reconciled")


def test_without_a_vpa_sizes_are_not_judged() -> None:
    condition = ready(decided(3, kind="StatefulSet", target=ON_DELETE, spec={"vpa": {"deploy": False}}))
    assert condition == ("True", "Reconciled", FOLLOWS)


def test_a_pod_that_lacks_a_container_has_another_size() -> None:
    pods = [build.pod(f"web-{number}", containers=[build.container("app", LARGE)]) for number in range(3)]
    workload = build.workload(
        3, [build.container("app", LARGE), build.container("new", LARGE)], ON_DELETE, kind="StatefulSet"
    )
    reference = {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}
    vpa = build.vpa({"new": LARGE}, {"spec": reference})
    objects = build.objects(build.hvpa(reference), workload, build.hpa(3, 50), vpa, pods)
    assert ready(build.decided(objects))[2].startswith("0 of 3 pods")


def test_a_rollout_that_the_operator_holds_is_named_with_its_count() -> None:
    record = {"generation": 1, "since": stamp(NOW), "up": True, "held": True}
    target = {
        "metadata": {"annotations": {"hvpa.autoscaling.k8s.io/rollout": json.dumps(record)}},
        "spec": {"paused": True},
        "status": {"updatedReplicas": 1},
    }
    closed = {"begin": "220000+0000", "end": "230000+0000"}
    mode = {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}
    condition = ready(decided(2, target=target, spec={"vpa": mode, "maintenanceTimeWindow": closed}))
    assert condition[:2] == ("True", "HeldBack")
    assert "rollout held by MaintenanceWindow until" in condition[2]
    assert "1 of 3 pods are replaced" in condition[2]


def test_in_place_the_pods_that_have_the_desired_size_are_counted() -> None:
    owner = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}
    made = [build.container(requests=LARGE)]
    pods = [build.pod(f"web-{number}", containers=made, change={"metadata": owner}) for number in range(3)]
    hvpa = build.hvpa({"updateStrategy": {"type": "InPlace"}})
    workload = build.workload(3, made)
    objects = build.objects(hvpa, workload, build.hpa(3, 50), build.vpa({"app": {"cpu": "3"}}), pods)
    assert ready(build.decided(objects)) == ("True", "Reconciled", "0/3 pods have the desired size")
    objects = build.objects(hvpa, workload, build.hpa(3, 50), build.vpa(TARGETS), pods)
    assert ready(build.decided(objects)) == ("True", "Reconciled", FOLLOWS)


def test_in_mode_recommend_pods_are_not_judged() -> None:
    condition = ready(decided(3, kind="StatefulSet", target=ON_DELETE, spec={"mode": "Recommend"}))
    assert condition[:2] == ("True", "Recommend")
