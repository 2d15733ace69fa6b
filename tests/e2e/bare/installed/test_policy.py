"""The samples of `config/policy` at work: an Hvpa's author needs rights on the workload, and stays within the bounds of
the namespace; the HPA controller, the operator and deletions are not held up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY, SERVICE_ACCOUNT, Operator
from localcluster.workloads.bare_manifests import deployment, hvpa, merged
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.accounts import api_of, new_account, rule
from tests.e2e.bare.conftest import NewScenario

GROUP = "hvpa.autoscaling.k8s.io"
HVPAS = rule("autoscaling.k8s.io", ["hvpas", "hvpas/scale"], ["create", "get", "update", "patch", "delete"])
POLICIES = ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy")


@dataclass(frozen=True, slots=True)
class Users:
    """Clients of one namespace: who may write Hvpas only; who may patch the workloads `mine` and `set` as well."""

    namespace: str
    stranger: KubeApi
    owner: KubeApi


@pytest.fixture(scope="module")
def policies(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The samples as they stand, in force."""
    rendered = plane.kubectl("kustomize", REPOSITORY / "config/policy").stdout
    documents = [document for document in yaml.safe_load_all(rendered) if document]
    namespaces = [new_namespace(plane.api, "canary") for _ in range(2)]
    bounded = {"metadata": {"annotations": {f"{GROUP}/max-replicas": "3"}}}
    plane.api.patch("Namespace", namespaces[0], None, bounded)
    try:
        for document in documents:
            plane.api.apply(document)
        wait_for(lambda: _both_refuse(plane.api, *namespaces), 60, "both policies are in force")
        yield plane
    finally:
        for kind in POLICIES:
            for document in documents:
                if document["kind"] == kind:
                    plane.api.delete(f"{document['apiVersion']}/{kind}", document["metadata"]["name"])


def _both_refuse(api: KubeApi, bounded: str, free: str) -> bool:
    """An administrator, who may patch everything, is refused for the bound and for the kind of the target."""
    odd = hvpa("a", free, {"targetRef": {"kind": "Job"}})
    return "at most 3" in refusal(api, hvpa("a", bounded)) and "can't scale a Job" in refusal(api, odd)


@pytest.fixture(scope="module")
def users(policies: ControlPlane) -> Users:
    namespace = new_namespace(policies.api, "policy")
    patches = [
        rule("apps", ["deployments"], ["patch"], ["mine"]),
        rule("apps", ["statefulsets"], ["patch"], ["set"]),
        rule("argoproj.io", ["rollouts"], ["patch"], ["mine"]),
    ]
    new_account(policies, namespace, "stranger", HVPAS)
    new_account(policies, namespace, "owner", HVPAS, *patches)
    for workload in (deployment("mine", namespace), deployment("other", namespace)):
        policies.api.create(workload)
    stranger, owner = (api_of(policies, namespace, name) for name in ("stranger", "owner"))
    return Users(namespace, stranger, owner)


def refusal(api: KubeApi, manifest: Json) -> str:
    """What creating the manifest is refused with; empty where it would be taken. Nothing is stored."""
    path = api.path("Hvpa", manifest["metadata"]["namespace"])
    return _refusal_of(lambda: api.raw("POST", f"{path}?dryRun=All", manifest))


def _refusal_of(ask: Callable[[], object]) -> str:
    try:
        ask()
    except ApiError as error:
        if error.status in (403, 422):
            return error.message
        raise
    return ""


def changed(api: KubeApi, name: str, namespace: str, spec: Json) -> str:
    """What a change of an Hvpa's spec is refused with; empty where it is taken."""
    return _refusal_of(lambda: api.patch("Hvpa", name, namespace, {"spec": spec}))


def test_who_may_write_hvpas_only_can_have_nothing_scaled(users: Users) -> None:
    text = refusal(users.stranger, hvpa("a", users.namespace) | _named("mine", users.namespace))
    user = f"system:serviceaccount:{users.namespace}:stranger"
    assert f"{user} may not patch deployments mine in namespace {users.namespace}" in text
    assert "so may not have it scaled by an Hvpa" in text


def _named(target: str, namespace: str, kind: str = "Deployment", changes: Json | None = None) -> Json:
    """The usual Hvpa `a` for this target."""
    manifest = hvpa("a", namespace, changes, kind)
    manifest["spec"]["targetRef"]["name"] = target
    if kind == "Rollout":
        manifest["spec"]["targetRef"]["apiVersion"] = "argoproj.io/v1alpha1"
    return manifest


@pytest.mark.parametrize(
    ("kind", "target", "refused"),
    [
        ("Deployment", "mine", ""),
        ("StatefulSet", "set", ""),
        ("Deployment", "other", "may not patch deployments other"),
        ("StatefulSet", "mine", "may not patch statefulsets mine"),
        ("Deployment", "set", "may not patch deployments set"),
        ("DaemonSet", "mine", "may not patch daemonsets mine"),
        ("ReplicationController", "mine", "may not patch replicationcontrollers mine"),
        ("Job", "mine", "an Hvpa can't scale a Job"),
        ("Rollout", "mine", ""),
        ("Rollout", "other", "may not patch rollouts other"),
    ],
)
def test_who_may_patch_the_workload_may_have_it_scaled(
    users: Users, kind: str, target: str, refused: str
) -> None:
    text = refusal(users.owner, _named(target, users.namespace, kind))
    assert (refused in text) if refused else text == ""


CHANGES: dict[str, Json] = {
    "targetRef": {"targetRef": {"name": "other"}},
    "mode": {"mode": "Paused"},
    "hpa": {"hpa": {"template": {"spec": {"maxReplicas": 50}}}},
    "vpa": {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}},
    "blend": {"blend": "Trajectory"},
    "trajectory": {"blend": "Trajectory", "trajectory": {"overlap": {"cpu": {"percentage": 5}}}},
    "weightBasedScalingIntervals": {"weightBasedScalingIntervals": [{"vpaWeight": 30}]},
    "maintenanceTimeWindow": {"maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
    "maintenanceWindows": {"maintenanceWindows": [{"schedule": "0 1 * * *", "duration": "1h"}]},
}
"""Field of the spec, and a change of it."""


def test_every_change_of_what_is_scaled_or_how_needs_the_right(policies: ControlPlane, users: Users) -> None:
    api, namespace = policies.api, users.namespace
    api.create(_named("mine", namespace) | {"metadata": {"name": "changing", "namespace": namespace}})
    try:
        for field, change in CHANGES.items():
            assert "may not patch deployments" in changed(users.stranger, "changing", namespace, change), (
                field
            )
        assert "may not patch deployments other" in changed(
            users.owner, "changing", namespace, CHANGES["targetRef"]
        )
        for field, change in CHANGES.items():
            if field != "targetRef":
                assert changed(users.owner, "changing", namespace, change) == "", field
        # What is the same, or says nothing of scaling, needs no right.
        assert changed(users.stranger, "changing", namespace, CHANGES["blend"]) == ""
        labels = {"metadata": {"labels": {"team": "a"}, "finalizers": ["example.test/later"]}}
        users.stranger.patch("Hvpa", "changing", namespace, labels)
        users.stranger.patch("Hvpa", "changing", namespace, {"metadata": {"finalizers": None}})
    finally:
        users.stranger.delete("Hvpa", "changing", namespace, missing_ok=False)
    assert api.find("Hvpa", "changing", namespace) is None


def test_spec_replicas_is_set_right_and_statuses_are_not_judged(policies: ControlPlane, users: Users) -> None:
    """Even for one without the right: the HPA controller has none on workloads."""
    api, namespace = policies.api, users.namespace
    api.create(_named("mine", namespace) | {"metadata": {"name": "by-hand", "namespace": namespace}})
    bounded = {"metadata": {"annotations": {f"{GROUP}/max-replicas": "1"}}}
    api.patch("Namespace", namespace, None, bounded)  # from now on the Hvpa itself would be refused
    try:
        wait_for(lambda: "at most 1" in refusal(users.owner, _named("mine", namespace)), 30, "the bound")
        users.stranger.patch("Hvpa", "by-hand", namespace, {"spec": {"replicas": 5}}, subresource="scale")
        users.stranger.patch("Hvpa", "by-hand", namespace, {"spec": {"replicas": 6}})
        api.patch_status("Hvpa", "by-hand", namespace, {"replicas": 2})
        manifest = api.get("Hvpa", "by-hand", namespace)
        assert (manifest["spec"]["replicas"], manifest["status"]["replicas"]) == (6, 2)
        assert "at most 1" in changed(users.owner, "by-hand", namespace, CHANGES["hpa"])
    finally:
        api.patch("Namespace", namespace, None, {"metadata": {"annotations": None}})
        users.stranger.delete("Hvpa", "by-hand", namespace, missing_ok=False)


def policy(container: str, **fields: Any) -> Json:
    return {"containerName": container, **fields}


def vpa(*policies: Json) -> Json:
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": list(policies)}}}}}


def hpa(most: int) -> Json:
    return {"hpa": {"template": {"spec": {"maxReplicas": most}}}}


FITS = {"cpu": "4", "memory": "8Gi"}
CPU, MEMORY, COUNT = "of at most 4 cpu", "of at most 8Gi memory", "maxReplicas: at most 20"
INTERVALS = [{"maxReplicas": count, "maxResources": {"cpu": "1", "memory": "1G"}} for count in (5, 21)]


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        (merged(hpa(20), vpa(policy("*", maxAllowed=FITS))), ""),
        (merged(hpa(21), vpa(policy("*", maxAllowed=FITS))), f"spec.hpa.template.spec.{COUNT}"),
        ({"vpa": None}, ""),
        ({"vpa": {"deploy": False}}, ""),
        ({}, CPU),
        (vpa(policy("app", maxAllowed=FITS)), CPU),  # and what of another container?
        (vpa(policy("app"), policy("*", maxAllowed=FITS)), CPU),
        (vpa(policy("*", maxAllowed={"cpu": "4001m", "memory": "8Gi"})), CPU),
        (vpa(policy("*", maxAllowed={"cpu": 5, "memory": "8Gi"})), CPU),
        (vpa(policy("*", maxAllowed={"cpu": 4, "memory": "8193Mi"})), MEMORY),
        (vpa(policy("*", maxAllowed={"cpu": 4})), MEMORY),
        (vpa(policy("*", maxAllowed={"cpu": "4000m"}, controlledResources=["cpu"])), ""),
        (vpa(policy("*", mode="Off")), ""),
        (vpa(policy("side", mode="Off"), policy("*", maxAllowed={"cpu": 4, "memory": 1})), ""),
        ({"vpa": {"deploy": False, "name": "theirs"}}, "may not name another VPA"),
        (merged({"hpa": {"deploy": False, "name": "theirs"}}, {"vpa": None}), "may not name another HPA"),
        (
            merged(
                {"blend": "Trajectory", "trajectory": {"intervals": INTERVALS}},
                vpa(policy("*", maxAllowed=FITS)),
            ),
            f"spec.trajectory.intervals[].{COUNT}",
        ),
    ],
)
def test_an_hvpa_stays_within_the_bounds_of_its_namespace(
    bounded: str, users: Users, policies: ControlPlane, changes: Json, refused: str
) -> None:
    text = refusal(policies.api, hvpa("a", bounded, changes))
    assert (refused in text) if refused else text == ""
    assert refusal(policies.api, hvpa("a", users.namespace, changes)) == ""  # which has no bounds


@pytest.fixture(scope="module")
def bounded(policies: ControlPlane) -> str:
    """A namespace with all three bounds, in force."""
    namespace = new_namespace(policies.api, "bounded")
    bounds = {"max-replicas": "20", "max-cpu": "4", "max-memory": "8Gi"}
    annotations = {f"{GROUP}/{name}": value for name, value in bounds.items()}
    policies.api.patch("Namespace", namespace, None, {"metadata": {"annotations": annotations}})
    wait_for(lambda: "of at most" in refusal(policies.api, hvpa("a", namespace)), 30, "the bounds")
    return namespace


def test_a_bound_that_can_not_be_read_lets_nothing_pass(policies: ControlPlane) -> None:
    namespace = new_namespace(policies.api, "unreadable")
    unreadable = {"metadata": {"annotations": {f"{GROUP}/max-replicas": "many"}}}
    policies.api.patch("Namespace", namespace, None, unreadable)
    wait_for(lambda: refusal(policies.api, hvpa("a", namespace)), 30, "a refusal")


def test_the_operator_scales_on(
    policies: ControlPlane, operator: Operator, new_scenario: NewScenario, space: str
) -> None:
    """It owns HPA and VPA, reads the HPA's desired replicas, and corrects `spec.replicas`, as without policies."""
    scenario: Scenario = new_scenario()
    scenario.hpa_wants(4)
    scenario.await_replicas(4)
    scenario.rollout_completes()
    current = {"averageUtilization": 100, "averageValue": "500m"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    scenario.hpa_wants(9, currentMetrics=metrics)  # which no measurement bears out
    scenario.soon(lambda: scenario.hvpa["spec"]["replicas"] == 4, "spec.replicas set right")
    user = f"{NAMESPACE}:{SERVICE_ACCOUNT}"
    refused = [
        request
        for request in policies.audit.requests(user=user, namespace=space)
        if request.code in (403, 422)
    ]
    assert refused == []
