"""What the local copy keeps of objects."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import Hpa, Pod, Vpa, Workload
from hvpa.kube.cache.changes import pod_changed, vpa_changed
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, PODS, VPAS, ApiResource
from hvpa.kube.objects.slim import StoredHpa, StoredVpa


def decoded(resource: ApiResource[Any], name: str = "web", **parts: Any) -> Any:
    metadata = {"name": name, "namespace": "shop", "uid": name, **parts.pop("metadata", {})}
    return resource.decode(json.dumps({"metadata": metadata, **parts}).encode())


def workload(name: str) -> Workload:
    resources = {"requests": {"cpu": "1"}}
    owned: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    labels: dict[str, Any] = {"f:metadata": {"f:labels": {}}}
    entries = [
        {"manager": "scaler", "time": "2026-11-21T10:00:00Z", "fieldsV1": owned},
        {"manager": "labeller", "time": "2026-11-21T10:00:00Z", "fieldsV1": labels},
    ]
    spec = {"template": {"spec": {"containers": [{"name": "app", "resources": resources}]}}}
    metadata = {
        "managedFields": entries,
        "annotations": {"team": "shop", "hvpa.autoscaling.k8s.io/last-applied": "{}"},
    }
    deployment: Workload = decoded(DEPLOYMENTS, name, metadata=metadata, spec=spec)
    return deployment


def test_of_who_set_what_only_those_are_kept_that_set_what_we_set() -> None:
    _, deployment, other = workload("first"), workload("one"), workload("other")
    assert [entry.manager for entry in deployment.metadata.managed_fields] == ["scaler"]
    assert deployment.metadata.managed_fields[0].owns_replicas()
    assert deployment.metadata.managed_fields is other.metadata.managed_fields
    assert deployment.spec.template.spec is other.spec.template.spec
    assert deployment.metadata.annotations == {"hvpa.autoscaling.k8s.io/last-applied": "{}"}


def pod(**status: Any) -> Pod:
    slim_pod: Pod = decoded(PODS, metadata={"ownerReferences": [{"kind": "ReplicaSet"}]}, status=status)
    return slim_pod


def test_of_a_pod_s_annotations_only_its_deletion_cost_is_kept() -> None:
    cost = {"controller.kubernetes.io/pod-deletion-cost": "5"}
    without, other = [decoded(PODS, metadata={"annotations": {"a": "b"}}) for _ in range(2)]
    assert decoded(PODS, metadata={"annotations": {"a": "b", **cost}}).metadata.annotations == cost
    assert without.metadata.annotations == {}
    assert without.metadata.annotations is other.metadata.annotations


def test_of_a_pod_its_readiness_and_ended_containers_are_kept() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z"}
    terminated = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-11-21T10:00:00Z"}}
    running = {"name": "app", "state": {"running": {}}}
    slim_pod, other = [
        pod(
            phase="Running",
            conditions=[ready, {"type": "Initialized"}],
            containerStatuses=[running, {"name": "side", "lastState": terminated}],
        )
        for _ in range(3)
    ][1:]
    assert [entry.type for entry in slim_pod.status.conditions] == ["Ready"]
    assert [entry.name for entry in slim_pod.status.container_statuses] == ["app", "side"]
    last = slim_pod.status.container_statuses[1].last_state.terminated
    assert last is not None
    assert last.reason == "OOMKilled"
    assert slim_pod.status.container_statuses is other.status.container_statuses
    assert slim_pod.status.conditions is other.status.conditions
    assert slim_pod.metadata.owner_references == []
    failed = pod(phase="Failed", conditions=[{"type": "Ready"}, {"type": "DisruptionTarget"}])
    assert [entry.type for entry in failed.status.conditions] == ["Ready", "DisruptionTarget"]


def test_of_a_pod_it_is_kept_why_it_can_t_be_scheduled_or_started() -> None:
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    waiting = {
        "name": "app",
        "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "x" * 9999}},
    }
    starting = {"name": "side", "state": {"waiting": {"reason": "ContainerCreating"}}}
    slim_pod = pod(
        phase="Pending",
        conditions=[stuck],
        containerStatuses=[waiting, starting],
        initContainerStatuses=[waiting, starting],
    )
    assert [entry.message for entry in slim_pod.status.conditions] == ["no node"]
    first, second = slim_pod.status.container_statuses
    assert first.state.waiting is not None
    assert len(first.state.waiting.message) == 512
    assert second.state.waiting is None
    assert [entry.name for entry in slim_pod.status.init_container_statuses] == ["app"]
    scheduled = pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}])
    assert scheduled.status.conditions == []


def test_of_a_native_sidecar_its_resources_and_its_start_are_kept() -> None:
    """They show whether it has more CPU for its start."""
    inside = [{"name": "mesh", "restartPolicy": "Always"}, {"name": "init"}]
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}

    def beside(started: bool, ready: bool) -> Pod:
        statuses = [
            {
                "name": entry["name"],
                "started": started,
                "state": state,
                "resources": {"requests": {"cpu": "1"}},
            }
            for entry in inside
        ]
        conditions = [{"type": "Ready", "status": str(ready)}]
        change = {"initContainerStatuses": statuses, "conditions": conditions, "phase": "Running"}
        seen: Pod = decoded(PODS, spec={"initContainers": inside}, status=change)
        return seen

    [mesh] = beside(True, ready=False).status.init_container_statuses
    assert mesh.name == "mesh"
    assert mesh.resources is not None
    assert mesh.state.running is not None
    assert mesh.state.running.started_at is not None
    [later] = beside(True, ready=True).status.init_container_statuses
    assert later.state.running is None, "it is not needed any more"
    assert pod_changed(beside(False, ready=False), beside(True, ready=False))


def test_a_pod_that_can_t_be_scheduled_or_started_is_worth_a_look() -> None:
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting = {"name": "app", "state": {"waiting": {"reason": "ErrImagePull"}}}
    starting = {"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert not pod_changed(None, pod(phase="Pending", containerStatuses=[starting]))
    assert pod_changed(None, pod(phase="Pending", conditions=[stuck]))
    assert pod_changed(None, pod(phase="Pending", containerStatuses=[waiting]))
    assert pod_changed(None, pod(phase="Pending", initContainerStatuses=[waiting]))


def test_of_a_workloads_conditions_its_progress_and_its_failure_are_kept() -> None:
    failures = [{"type": "ReplicaFailure", "status": status} for status in ("True", "False")]
    conditions = [*failures, {"type": "Progressing"}, {"type": "Available"}]
    deployment: Workload = decoded(DEPLOYMENTS, status={"conditions": conditions})
    assert [(entry.type, entry.status) for entry in deployment.status.conditions] == [
        ("ReplicaFailure", "True"),
        ("Progressing", "Unknown"),
    ]


MINUTE = dt.timedelta(minutes=1)


def spoken(at: str, upper: str = "2Gi") -> Vpa:
    """A VPA whose status was last written at a minute of the hour."""
    written = {"manager": "recommender", "subresource": "status", "time": f"2026-11-21T10:{at}:00Z"}
    older = written | {"time": "2026-11-21T09:00:00Z"}
    entry = {"containerName": "app", "target": {"memory": "1Gi"}, "upperBound": {"cpu": "1", "memory": upper}}
    vpa: Vpa = decoded(
        VPAS,
        metadata={
            "creationTimestamp": "2026-11-21T08:00:00Z",
            "managedFields": [older, written, {"manager": "kubectl"}],
        },
        status={"recommendation": {"containerRecommendations": [entry]}},
    )
    return vpa


def test_of_a_vpa_it_is_kept_when_it_was_written_and_its_upper_bound() -> None:
    vpa = spoken("07")
    assert vpa.metadata.written_at() == dt.datetime(2026, 11, 21, 10, 7, tzinfo=dt.UTC)
    assert len(vpa.metadata.managed_fields) == 1
    recommendation = vpa.status.recommendation
    assert recommendation is not None
    assert recommendation.container_recommendations is not None
    assert recommendation.container_recommendations[0].upper_bound == {"cpu": "1", "memory": "2Gi"}
    silent: Vpa = decoded(VPAS)
    assert (silent.metadata.written_at(), silent.metadata.managed_fields) == (None, [])


def test_bounds_wake_no_hvpa_but_after_a_silence() -> None:
    assert not vpa_changed(spoken("07"), spoken("09", "2000Mi"), MINUTE)
    assert vpa_changed(spoken("07"), spoken("10", "2000Mi"), MINUTE)
    assert not vpa_changed(spoken("07"), spoken("10", "2000Mi"), 2 * MINUTE)
    assert vpa_changed(spoken("07"), spoken("08", "2000Mi"), MINUTE / 4)


def test_a_bound_that_shows_another_length_of_history_wakes() -> None:
    assert vpa_changed(spoken("07"), spoken("08", "200Gi"), MINUTE)


def test_a_bound_by_which_silence_begins_to_be_noticed_wakes_once() -> None:
    rounded, exact = spoken("07"), spoken("08", "2047483649")
    assert vpa_changed(rounded, exact, MINUTE), "a recommender that stops is noticed three periods from now"
    assert not vpa_changed(exact, spoken("09", "2047400001"), MINUTE)
    assert vpa_changed(exact, spoken("09", "2Gi"), MINUTE), "what was reported as stale no longer is"


def test_what_a_pod_requests_is_kept_once_for_all_pods_of_one_kind() -> None:
    """Native sidecars and requests of the pod itself count where the HPA adds up what pods request."""
    proxy = {
        "name": "proxy",
        "image": "proxy:1",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}},
    }
    spec = {
        "containers": [{"name": "app", "env": [{"name": "A", "value": "b"}]}],
        "initContainers": [proxy],
        "resources": {"requests": {"cpu": "2"}},
        "volumes": [{"name": "data"}],
    }
    _, slim_pod, other = [decoded(PODS, name, spec=spec) for name in ("first", "one", "other")]
    assert slim_pod.spec is other.spec
    assert slim_pod.spec.init_containers[0].restart_policy == "Always"
    assert slim_pod.spec.init_containers[0].resources.requests == {"cpu": "1"}
    assert slim_pod.spec.resources.requests == {"cpu": "2"}


def hpa(replicas: int = 1) -> Hpa:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    spec = {"maxReplicas": 5, "metrics": metrics}
    slim_hpa: Hpa = decoded(HPAS, spec=spec, status={"desiredReplicas": replicas})
    return slim_hpa


def test_an_hpas_spec_is_kept_decoded_with_its_metrics_held_once() -> None:
    old, new = hpa(1), hpa(2)
    assert new.spec is new.spec
    assert new.spec.metrics is old.spec.metrics


def test_of_a_vpa_the_lower_bound_is_dropped() -> None:
    amounts = {"cpu": "1"}
    entry = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    entries = [entry | {"uncappedTarget": amounts}, entry | {"uncappedTarget": {"cpu": "2"}}]
    vpa: Vpa = decoded(
        VPAS,
        spec={"targetRef": {"kind": "Deployment", "name": "web"}},
        status={"recommendation": {"containerRecommendations": entries}},
    )
    assert isinstance(vpa, StoredVpa)
    assert vpa.spec.target_ref.name == "web"
    assert vpa.status.recommendation is not None
    entries_left = vpa.status.recommendation.container_recommendations
    assert entries_left is not None
    recommendation, other = entries_left
    assert (recommendation.target, recommendation.uncapped_target) == (amounts, amounts)
    assert recommendation.uncapped_target is recommendation.target
    assert other.uncapped_target == {"cpu": "2"}
    assert (recommendation.lower_bound, recommendation.upper_bound) == ({}, amounts)
    assert isinstance(hpa(), StoredHpa)


@pytest.mark.parametrize("resource", [HPAS, VPAS])
def test_a_spec_that_can_not_be_decoded_shows_at_once(resource: ApiResource[Any]) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decoded(resource, spec={"targetRef": 1, "maxReplicas": "x"})


@pytest.mark.parametrize(
    ("resource", "kept"), [(HVPAS, {"team": "shop"}), (HPAS, {"team": "shop"}), (PODS, {})]
)
def test_of_annotations_those_are_kept_that_are_read(
    resource: ApiResource[Any], kept: dict[str, str]
) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"}
    assert decoded(resource, metadata={"annotations": applied}).metadata.annotations == kept


def test_the_size_of_a_pod_itself_is_kept_if_its_spec_has_one() -> None:
    """Kubelets report one for each pod."""
    small, large = {"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}
    spec = {"containers": [{"name": "app"}], "resources": large}
    before, after, other = [
        decoded(PODS, name, spec=spec, status={"phase": "Running", "resources": size})
        for name, size in (("a", small), ("a", large), ("b", large))
    ]
    assert pod_changed(before, after)
    assert after.status.resources is other.status.resources
    spec = {"containers": [{"name": "app"}]}
    assert decoded(PODS, spec=spec, status={"resources": large}).status.resources is None
