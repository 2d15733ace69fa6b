"""What the operator and users may do. That each right is needed, and none is missing, is shown end to end."""

from __future__ import annotations

import pytest

from hvpa.kube.objects.resources import ON_DEMAND, WATCHED
from tests.unit.config.folders import Json, objects, only

DASHBOARD = only("dashboard", "ClusterRole", "hvpa-dashboard")
OF_CUSTOM_KINDS = only("custom-kinds", "ClusterRole", "hvpa-dashboard-custom-kinds")
ROLES = [
    role
    for role in objects("secure-metrics") + objects("dashboard") + objects("custom-kinds")
    if role["kind"] in ("Role", "ClusterRole")
]
"""Those of the default, those of its options, and those of the dashboard."""


def _rights(role: Json) -> dict[tuple[str, str], set[str]]:
    rights: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role["metadata"]["name"]))
def test_no_role_has_wildcards_secrets_or_a_way_to_more_rights(role: Json) -> None:
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs"}
        assert "nonResourceURLs" not in rule or rule["nonResourceURLs"] == ["/metrics"]
        named = {*rule.get("apiGroups", ()), *rule.get("resources", ()), *rule["verbs"]}
        assert "*" not in named
        assert not named & {"secrets", "configmaps", "impersonate", "bind", "escalate"}
        assert "rbac.authorization.k8s.io" not in named


def test_the_operator_may_watch_what_it_watches_and_nothing_else() -> None:
    rights = _rights(only("rbac", "ClusterRole", "hvpa-operator"))
    watched = set()
    for resource in (*WATCHED, *ON_DEMAND):
        _, prefix, *group = resource.api.split("/")
        watched.add((group[0] if prefix == "apis" else "", resource.plural))
    for group_resource in watched:
        assert rights[group_resource] >= {"list", "watch"}
    measured = ("metrics.k8s.io", "pods")
    assert rights[measured] == {"list"}
    reading = {group_resource for group_resource, verbs in rights.items() if verbs & {"get", "list", "watch"}}
    assert reading == {*watched, measured}


def test_the_operator_may_create_and_delete_recommenders_and_create_sizes_only() -> None:
    rights = _rights(only("rbac", "ClusterRole", "hvpa-operator"))
    assert {group_resource for group_resource, verbs in rights.items() if "delete" in verbs} == {
        ("autoscaling", "horizontalpodautoscalers"),
        ("autoscaling.k8s.io", "verticalpodautoscalers"),
    }
    assert {group_resource for group_resource, verbs in rights.items() if "create" in verbs} == {
        ("autoscaling", "horizontalpodautoscalers"),
        ("autoscaling.k8s.io", "verticalpodautoscalers"),
        ("autoscaling.k8s.io", "hvpasizes"),
        ("", "events"),
    }


def test_the_operator_may_use_its_own_lease_only() -> None:
    role = only("rbac", "Role", "hvpa-leader-election")
    assert role["metadata"]["namespace"] == "hvpa-system"
    for rule in role["rules"]:
        assert rule["resources"] == ["leases"]
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["hvpa"]


def test_the_dashboard_changes_nothing() -> None:
    reviews = {"tokenreviews", "subjectaccessreviews"}
    for (_, resource), verbs in _rights(DASHBOARD).items():
        assert verbs == {"create"} if resource in reviews else verbs <= {"get", "list", "watch"}
    assert _rights(OF_CUSTOM_KINDS) == {("argoproj.io", "rollouts/scale"): {"get"}}


def test_bindings_give_the_operators_roles_to_its_service_account() -> None:
    account = only("manager", "ServiceAccount", "hvpa")["metadata"]
    all_bindings = [document for document in objects("rbac") if document["kind"].endswith("Binding")]
    bindings = [binding for binding in all_bindings if binding["metadata"]["name"] != "hvpa-lease-viewer"]
    assert {binding["roleRef"]["name"] for binding in bindings} == {"hvpa-operator", "hvpa-leader-election"}
    for binding in bindings:
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]


def test_every_user_may_read_whether_the_operator_is_alive_and_nothing_else() -> None:
    users = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]
    bound = [
        document
        for document in (*objects("rbac"), *objects("sharded"), *objects("dashboard"))
        if document.get("subjects") == users
    ]
    assert {binding["roleRef"]["name"] for binding in bound} == {"hvpa-lease-viewer", "hvpa-shards-viewer"}
    for folder, name in (("rbac", "hvpa-lease-viewer"), ("sharded", "hvpa-shards-viewer")):
        (rule,) = only(folder, "Role", name)["rules"]
        assert (rule["apiGroups"], rule["resources"], rule["verbs"]) == (
            ["coordination.k8s.io"],
            ["leases"],
            ["get"],
        )
    assert only("rbac", "Role", "hvpa-lease-viewer")["rules"][0]["resourceNames"] == ["hvpa"]


def test_users_roles_add_up_with_the_built_in_ones() -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    labels = {
        role["metadata"]["name"]: {
            key.removeprefix(prefix) for key in role["metadata"]["labels"] if prefix in key
        }
        for role in ROLES
    }
    assert labels["hvpa-viewer"] == {"view"}
    assert labels["hvpa-editor"] == {"edit", "admin"}
    assert not labels["hvpa-operator"]
    status = _rights(only("rbac", "ClusterRole", "hvpa-editor"))[("autoscaling.k8s.io", "hvpas/status")]
    assert status == {"get"}
