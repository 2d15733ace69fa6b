"""Which changes make a new plan necessary; without policies, none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from builders import build
from hvpa.core.policies.model import ADOPT, APPLIED, FROM_POLICY, OPT_OUT
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import (
    CLUSTER_POLICIES,
    DEPLOYMENTS,
    HPAS,
    HVPA_POLICIES,
    HVPAS,
    NAMESPACES,
    VPAS,
    WORKLOADS,
    ApiResource,
)

Json = dict[str, Any]
TEMPLATE = {"vpa": {"deploy": True}}
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
META = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 1}
OBJECTS: dict[str, tuple[ApiResource[Any], Json]] = {
    "hvpa": (HVPAS, {"metadata": META, "spec": {"targetRef": REFERENCE}, "status": {}}),
    "workload": (DEPLOYMENTS, {"metadata": META, "spec": {}, "status": {}}),
    "hpa": (HPAS, {"metadata": META, "spec": {"scaleTargetRef": REFERENCE}, "status": {}}),
    "vpa": (VPAS, {"metadata": META, "spec": {"targetRef": REFERENCE}, "status": {}}),
    "policy": (HVPA_POLICIES, {"metadata": META, "spec": {"template": TEMPLATE}, "status": {}}),
    "namespace": (NAMESPACES, {"metadata": {**META, "namespace": ""}}),
}
POLICY = {**OBJECTS["policy"][1], "metadata": {**META, "name": "team"}}


def local() -> LocalCluster:
    return LocalCluster((ALL_NAMESPACES,), lambda key: None)


def put(cluster: LocalCluster, resource: ApiResource[Any], document: Mapping[str, Any]) -> None:
    cluster.store(resource).put(resource.decode(msgspec.json.encode(document)))


def news(cluster: LocalCluster, change: Callable[[], None]) -> bool:
    cluster.policies.changed.clear()
    change()
    return cluster.policies.changed.is_set()


@pytest.mark.parametrize("kind", ["hvpa", "workload", "hpa", "vpa"])
def test_objects_count_only_if_there_is_a_policy(kind: str) -> None:
    cluster, (resource, document) = local(), OBJECTS[kind]
    assert not news(cluster, lambda: put(cluster, resource, document))
    put(cluster, HVPA_POLICIES, POLICY)
    gone = {"metadata": {"resourceVersion": "2", "deletionTimestamp": build.LONG_AGO}}
    assert news(cluster, lambda: put(cluster, resource, build.merged(document, gone)))


@pytest.mark.parametrize(
    ("kind", "change", "is_news"),
    [
        ("hvpa", {"status": {"replicas": 3}}, False),
        ("hvpa", {"spec": {"replicas": 3}, "metadata": {"generation": 2}}, False),
        ("hvpa", {"spec": {"targetRef": {"name": "other"}}}, True),
        ("hvpa", {"spec": {"mode": "Recommend"}}, True),
        ("hvpa", {"metadata": {"labels": {FROM_POLICY: "team"}}}, True),
        ("hvpa", {"metadata": {"annotations": {APPLIED: "{}"}}}, True),
        ("workload", {"status": {"replicas": 3}}, False),
        ("workload", {"spec": {"replicas": 3}, "metadata": {"generation": 2}}, False),
        ("workload", {"metadata": {"annotations": {"hvpa.autoscaling.k8s.io/last-applied": "{}"}}}, False),
        ("workload", {"metadata": {"labels": {"tier": "web"}}}, True),
        ("workload", {"metadata": {"annotations": {OPT_OUT: "true"}}}, True),
        ("workload", {"metadata": {"annotations": {ADOPT: "true"}}}, True),
        ("hpa", {"status": {"desiredReplicas": 3}}, False),
        ("hpa", {"spec": {"scaleTargetRef": {"name": "other"}}}, True),
        ("vpa", {"status": {"recommendation": {}}}, False),
        ("vpa", {"spec": {"updatePolicy": {"updateMode": "Off"}}}, True),
        ("vpa", {"metadata": {"labels": {"a": "b"}}}, True),
        ("policy", {"status": {"selected": 3}}, False),
        ("policy", {"metadata": {"generation": 2}}, True),
        ("namespace", {"metadata": {"annotations": {"a": "b"}}}, False),
        ("namespace", {"metadata": {"labels": {"a": "b"}}}, True),
    ],
)
def test_what_a_plan_reads_is_news(kind: str, change: Json, is_news: bool) -> None:
    cluster, (resource, document) = local(), OBJECTS[kind]
    put(cluster, HVPA_POLICIES, POLICY)
    put(cluster, resource, document)
    changed = build.merged(build.merged(document, change), {"metadata": {"resourceVersion": "2"}})
    assert news(cluster, lambda: put(cluster, resource, changed)) is is_news


def test_specs_of_hvpas_count_that_somebody_edited() -> None:
    cluster, (resource, document) = local(), OBJECTS["hvpa"]
    put(cluster, HVPA_POLICIES, POLICY)
    put(cluster, resource, document)
    cluster.policies.edited = {("default", "web")}
    status = {"status": {"replicas": 3}, "metadata": {"resourceVersion": "2"}}
    assert not news(cluster, lambda: put(cluster, resource, build.merged(document, status)))
    changed = {"spec": {"blend": "Additive"}, "metadata": {"resourceVersion": "3"}}
    assert news(cluster, lambda: put(cluster, resource, build.merged(document, changed)))


@pytest.mark.parametrize("kind", ["hvpa", "workload"])
def test_progress_counts_while_hvpas_wait_for_their_turn(kind: str) -> None:
    cluster, (resource, document) = local(), OBJECTS[kind]
    put(cluster, HVPA_POLICIES, POLICY)
    put(cluster, resource, document)
    cluster.policies.is_rolling = True
    changed = build.merged(document, {"status": {"replicas": 3}, "metadata": {"resourceVersion": "2"}})
    assert news(cluster, lambda: put(cluster, resource, changed))


def test_policies_say_which_resources_they_need() -> None:
    cluster, wanted = local(), list[ApiResource[Any]]()
    cluster.policies.on_wanted = wanted.append
    put(cluster, HVPA_POLICIES, {"metadata": {**META, "name": "invalid"}, "spec": {}})
    cluster.policies.read()
    assert wanted == []
    kinds = {"workloads": {"kinds": ["DaemonSet"]}}
    put(cluster, HVPA_POLICIES, build.merged(POLICY, {"spec": kinds}))
    cluster.policies.read()
    assert wanted == [WORKLOADS["DaemonSet"]]
    everywhere = {"metadata": {**META, "name": "all", "namespace": ""}}
    spec = {"template": TEMPLATE, "namespaces": {"all": True}, **kinds}
    put(cluster, CLUSTER_POLICIES, {**everywhere, "spec": spec})
    assert [policy.metadata.name for policy in cluster.policies.read()] == ["invalid", "team", "all"]
    assert wanted[2:] == [NAMESPACES, WORKLOADS["DaemonSet"]]


def test_a_policy_is_parsed_again_only_if_its_spec_has_changed() -> None:
    cluster = local()
    put(cluster, HVPA_POLICIES, POLICY)
    (first,) = cluster.policies.read()
    status = {"metadata": {"resourceVersion": "2"}, "status": {"selected": 3}}
    put(cluster, HVPA_POLICIES, build.merged(POLICY, status))
    (second,) = cluster.policies.read()
    assert second.spec is first.spec
    assert (second.metadata.resource_version, second.status.selected) == ("2", 3)
    changed = {"metadata": {"resourceVersion": "3", "generation": 2}, "spec": {"stage": "Apply"}}
    put(cluster, HVPA_POLICIES, build.merged(POLICY, changed))
    (third,) = cluster.policies.read()
    assert third.spec is not None
    assert third.spec.stage == "Apply"


def test_a_schedule_of_a_template_that_can_never_be_is_reported() -> None:
    cluster = local()
    window = {"schedule": "0 0 30 2 *", "duration": "1h"}
    put(
        cluster, HVPA_POLICIES, build.merged(POLICY, {"spec": {"template": {"maintenanceWindows": [window]}}})
    )
    (policy,) = cluster.policies.read()
    assert policy.spec is None
    assert [problem.path for problem in policy.problems] == ["spec.template.maintenanceWindows[0].schedule"]


def test_the_applied_spec_is_stored_once() -> None:
    cluster, applied = local(), '{"note":"' + 300 * "x" + '"}'
    for name in ("a", "b"):
        metadata = {**META, "name": name, "annotations": {APPLIED: applied}}
        put(cluster, HVPAS, {**OBJECTS["hvpa"][1], "metadata": metadata})
    first, second = (hvpa for key in cluster.hvpas if (hvpa := cluster.hvpas.get(key)) is not None)
    assert first.metadata.annotations[APPLIED] is second.metadata.annotations[APPLIED]
