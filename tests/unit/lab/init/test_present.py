"""What is found of a workload and of what scales it."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from hvpa.cli.errors import CommandError
from hvpa_lab.init.source.present import Present, TargetName, present, target_name
from hvpa_lab.simulate.history.table import UsageShare
from tests.unit.cli.support import Doc
from tests.unit.lab.init.documents import APP, CPU_70, TARGET, hpa, keda, meta, rollout, vpa, workload

WEB = TargetName("Deployment", "web")


def found(*documents: Doc, minor: int | None = None) -> Present:
    return present(documents or [workload()], WEB, "shop", minor)


def pod(ready_after: int, *, label: str = "web") -> Doc:
    condition = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": f"2026-01-05T00:{ready_after:02}:00Z",
    }
    state = {"startTime": "2026-01-05T00:00:00Z", "conditions": [condition]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta("web-1", labels={"app": label}),
        "status": state,
    }


@pytest.mark.parametrize(
    ("text", "kind", "group"),
    [
        ("deployment/web", "Deployment", ""),
        ("Deploy/web", "Deployment", ""),
        ("sts/web", "StatefulSet", ""),
        ("replicasets/web", "ReplicaSet", ""),
        ("rc/web", "ReplicationController", ""),
        ("Rollouts.argoproj.io/web", "rollouts", "argoproj.io"),
    ],
)
def test_a_workload_is_named_as_kubectl_does(text: str, kind: str, group: str) -> None:
    assert target_name(text) == (kind, "web", group)
    assert str(target_name(text)) == f"{kind}{group and f'.{group}'} web"


@pytest.mark.parametrize("kind", ["ReplicaSet", "Deployment", "StatefulSet"])
def test_a_workload_that_has_replicas_is_found_by_its_kind(kind: str) -> None:
    now = present([workload(kind=kind), hpa(CPU_70)], TargetName(kind, "web"), "shop", 33)
    assert now.workload.kind == kind
    assert now.in_place


def test_a_deployments_replica_sets_are_not_meant_unless_named() -> None:
    owner = {"kind": "Deployment", "name": "web", "controller": True}
    made = {**workload(kind="ReplicaSet"), "metadata": meta("web-1", ownerReferences=[owner])}
    assert present([workload(), made], None, "shop", None).name == "web"
    assert present([workload(), made], TargetName("ReplicaSet", "web-1"), "shop", None).name == "web-1"


@pytest.mark.parametrize(
    "wanted", [None, *map(target_name, ("rollout.argoproj.io/web", "rollouts.argoproj.io/web"))]
)
def test_a_custom_kind_is_found_and_its_pods_are_resized_in_place(wanted: TargetName | None) -> None:
    now = present([rollout(), hpa(CPU_70)], wanted, "shop", None)
    assert (now.workload.kind, now.workload.api_version) == ("Rollout", "argoproj.io/v1alpha1")
    assert (now.is_custom, now.in_place, list(now.containers)) == (True, True, ["app"])


def test_a_custom_kind_without_a_template_has_the_containers_of_its_newest_pod() -> None:
    bare = rollout()
    del bare["spec"]["template"]
    running = {**pod(30), "spec": {"containers": [APP]}}
    assert list(present([bare, running], target_name("rollout.argoproj.io/web"), "shop", 36).containers) == [
        "app"
    ]


def test_what_no_hvpa_can_be_drafted_for_is_refused() -> None:
    with pytest.raises(CommandError, match="a DaemonSet has no replica count"):
        present([workload(kind="DaemonSet")], None, "shop", 36)
    with pytest.raises(
        CommandError, match=r"resizes the pods of a custom kind while they run, which Kubernetes 1\.32"
    ):
        present([rollout()], None, "shop", 32)


def test_a_group_that_kubernetes_does_not_accept_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="can't be the name of an API group"):
        target_name("rollouts.argo?x=0/web")


@pytest.mark.parametrize(
    "text", [".x/web", "rollout/web", "web", "deployment", "deployment/", "/web", "pod/web", ""]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not deployment/NAME"):
        target_name(text)


@pytest.mark.parametrize("name", ["../web", "a/b", "c/d", 'w"}', "w\n", "W", "a%2f"])
def test_a_name_that_kubernetes_does_not_accept_is_refused(name: str) -> None:
    """It would stand in the name of a folder, and in queries."""
    with pytest.raises(argparse.ArgumentTypeError, match="can't be the name of a Deployment"):
        target_name(f"deployment/{name}")
    for metadata in ({"name": name}, {"namespace": name}):
        manifest = workload()
        manifest["metadata"] |= metadata
        with pytest.raises(CommandError, match="is not a valid Kubernetes name"):
            present([manifest], None, manifest["metadata"]["namespace"], None)
    with pytest.raises(CommandError, match=r"Deployment: containers: .* is not a valid Kubernetes name"):
        found(workload({**APP, "name": name}))


@pytest.mark.parametrize(
    ("documents", "scaled_by", "mode"),
    [
        ([], "nothing", "Off"),
        ([hpa(CPU_70)], "HPA web", "Off"),
        ([vpa(None)], "VPA web (Auto)", "Recreate"),
        ([vpa("InPlaceOrRecreate")], "VPA web (InPlaceOrRecreate)", "InPlaceOrRecreate"),
        ([hpa(CPU_70), vpa("Off")], "HPA web and VPA web (Off)", "Off"),
        ([vpa("Initial")], "VPA web (Initial)", "Off"),
        ([hpa(CPU_70, name="keda-hpa-web"), keda(minReplicaCount=2)], "KEDA's ScaledObject web", "Off"),
    ],
)
def test_what_scales_it_is_found_by_its_target(documents: list[Doc], scaled_by: str, mode: str) -> None:
    current = found(workload(), *documents)
    assert (current.scaled_by, current.vpa_mode, current.title) == (scaled_by, mode, "Deployment shop/web")


def test_objects_of_others_are_left_alone() -> None:
    elsewhere = hpa(CPU_70)
    elsewhere["metadata"]["namespace"] = "market"
    other = vpa("Recreate")
    other["spec"]["targetRef"] = {**TARGET, "name": "other"}
    foreign = {**hpa(CPU_70), "apiVersion": "example.com/v1"}
    assert found(workload(), elsewhere, other, foreign).scaled_by == "nothing"


@pytest.mark.parametrize(
    ("document", "note"),
    [
        (vpa("Initial"), "updateMode Initial of VPA web is not simulated: it counts as Off"),
        (keda(), "ScaledObject web scales to 0 when idle: that is not simulated"),
    ],
)
def test_what_is_not_simulated_is_said(document: Doc, note: str) -> None:
    assert found(workload(), hpa(minReplicas=0)).notes == ("HPA web scales to 0: that is not simulated",)
    assert found(workload(), hpa(CPU_70), document).notes == (note,)


OWN = {
    "apiVersion": "autoscaling.k8s.io/v1alpha1",
    "kind": "Hvpa",
    "metadata": meta("own"),
    "spec": {"targetRef": TARGET},
}


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([], "Deployment shop/web does not exist"),
        ([workload(), keda()], "the HPA that KEDA makes of it is missing: give it too .kubectl get hpa keda-hpa-web"),
        ([workload(), vpa(), vpa()], "2 objects of kind VerticalPodAutoscaler scale Deployment web: web, web"),
        ([workload(), OWN],
         "Hvpa own scales Deployment web already"),
        ([workload(), hpa({"type": "Resource"})],
         r"HorizontalPodAutoscaler web: spec.metrics.0..resource: "),
        ([workload(), hpa(maxReplicas=0)], "HorizontalPodAutoscaler web: spec.maxReplicas: is required"),
        ([workload(), vpa("Off", {"containerName": "app", "mode": "On"})],
         "VerticalPodAutoscaler web: spec.resourcePolicy.containerPolicies.0..mode: "),
        ([workload(template={"spec": {"containers": []}})], "Deployment shop/web has no containers"),
    ],
)  # fmt: skip
def test_what_can_not_be_taken_over_is_refused(documents: list[Doc], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        present(documents, WEB, "shop", None)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [([], None), ([pod(1), pod(3), pod(2)], 120), ([pod(3, label="other")], None)],
)
def test_the_time_until_ready_is_that_of_the_workloads_pods(pods: list[Doc], expected: Any) -> None:
    assert found(workload(), *pods).start_up == expected


def test_a_pod_of_a_job_with_the_workloads_labels_shows_no_start_up() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "import", "uid": "j", "controller": True}
    other = pod(3)
    other["metadata"] = {**other["metadata"], "ownerReferences": [job]}
    assert found(workload(), other).start_up is None
    assert found(workload(), other, pod(1)).start_up == 60.0


def test_containers_share_by_their_requests() -> None:
    proxy = {"name": "proxy", "resources": {"requests": {"cpu": "250m"}}}
    assert found(workload(APP, proxy)).shares() == {
        "app": UsageShare(0.8, 1.0),
        "proxy": UsageShare(0.2, 0.0),
    }
    bare = [{"name": "a"}, {"name": "b"}]
    assert found(workload(*bare)).shares() == {"a": UsageShare(0.5, 0.5), "b": UsageShare(0.5, 0.5)}


@pytest.mark.parametrize(("minor", "in_place"), [(None, False), (32, False), (33, True), (40, True)])
def test_pods_are_resized_from_1_33_on(minor: int | None, in_place: bool) -> None:
    assert found(minor=minor).in_place is in_place


def test_the_metrics_that_speak_of_the_load() -> None:
    target = {"type": "AverageValue", "averageValue": "5"}
    pods = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}
    external = {"type": "External", "external": {"metric": {"name": "s0-queue"}, "target": target}}
    assert found(workload(), hpa(CPU_70, pods, pods, external)).load_metrics == ["rps", "s0-queue"]
    assert found(workload()).load_metrics == []
