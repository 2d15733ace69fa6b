"""The Deployment of the operator: its flags, its ports, what a restricted namespace asks of its pods, and its variants
`secure-metrics` and `sharded`. That these deploy and work, and that no right is missing, is shown end to end."""

from __future__ import annotations

import argparse
import subprocess
from typing import Any

import yaml

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.server.auth import ACCESS_REVIEWS, TOKEN_REVIEWS
from hvpa.kube.server.endpoints import parse_address
from hvpa.operator.settings import RunSettings
from tests.unit.config.folders import CONFIG, Json, objects, only, resources

DEPLOYMENT = only("manager", "Deployment", "hvpa")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
FLAGS = CONTAINER["args"][1:]
ARGUMENT = "/spec/template/spec/containers/0/args/-"


def _settings(arguments: list[str]) -> RunSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run_settings(parser.parse_args(arguments))


def _patch(folder: str) -> list[Json]:
    """The changes of the Deployment that a variant makes."""
    changes: list[Json] = yaml.safe_load((CONFIG / folder / "deployment_patch.yaml").read_text())
    return changes


def test_every_file_is_listed_in_its_kustomization() -> None:
    for folder in (
        "crd",
        "custom-kinds",
        "dashboard",
        "deletion-cost",
        "export",
        "hvpa-policy",
        "manager",
        "network-policy",
        "operator-policy",
        "policy",
        "rbac",
        "node-room",
        "rollback-metrics",
        "samples",
    ):
        files = {path.name for path in (CONFIG / folder).glob("*.yaml")}
        files -= {"kustomization.yaml", "configuration.yaml", "deployment_patch.yaml"}
        assert files == set(resources(folder)) - {"../default"}, folder


def test_the_default_has_crd_rights_and_operator() -> None:
    names = {(document["kind"], document["metadata"]["name"]) for document in objects("default")}
    assert ("CustomResourceDefinition", "hvpas.autoscaling.k8s.io") in names
    assert {("Namespace", "hvpa-system"), ("ClusterRole", "hvpa-operator"), ("Deployment", "hvpa")} <= names


def test_the_arguments_are_flags_of_hvpa_run_and_elect_a_leader() -> None:
    assert CONTAINER["args"][0] == "run"
    settings = _settings(FLAGS)
    assert settings.leader_elect
    assert settings.log_format == "json"


def test_ports_and_probes_are_those_that_the_operator_listens_on() -> None:
    settings = _settings(FLAGS)
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert parse_address(settings.health_address) == (None, ports["health"])
    assert parse_address(settings.metrics_address) == (None, ports["metrics"])
    probes = {
        CONTAINER[probe]["httpGet"]["path"]: CONTAINER[probe]["httpGet"]["port"]
        for probe in ("livenessProbe", "readinessProbe")
    }
    assert probes == {"/healthz": "health", "/readyz": "health"}
    (port,) = only("manager", "Service", "hvpa-metrics")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (ports["metrics"], "metrics")


def test_the_lease_of_the_role_is_the_one_that_is_elected_by() -> None:
    settings = _settings(FLAGS)
    rules = only("rbac", "Role", "hvpa-leader-election")["rules"]
    assert [settings.candidate.name] in [rule.get("resourceNames") for rule in rules]


def test_pods_meet_the_restricted_standard() -> None:
    labels = only("manager", "Namespace", "hvpa-system")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] > 0
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & POD.keys()


def test_two_replicas_survive_a_drained_node() -> None:
    selector = DEPLOYMENT["spec"]["selector"]
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert only("manager", "PodDisruptionBudget", "hvpa")["spec"] == {
        "maxUnavailable": 1,
        "selector": selector,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    assert all(constraint["labelSelector"] == selector for constraint in POD["topologySpreadConstraints"])
    assert CONTAINER["resources"].keys() == {"requests", "limits"}


def test_pods_that_are_not_ready_are_scraped_and_not_restarted() -> None:
    assert only("manager", "Service", "hvpa-metrics")["spec"]["publishNotReadyAddresses"] is True
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_pods_have_a_priority_that_any_namespace_may_use() -> None:
    name = POD["priorityClassName"]
    assert not name.startswith("system-")
    # Classes beyond this value are the system's.
    assert 0 < only("manager", "PriorityClass", name)["value"] <= 1_000_000_000


def test_the_network_policy_is_on_the_operator_s_pods_and_names_their_ports() -> None:
    spec = only("network-policy", "NetworkPolicy", "hvpa")["spec"]
    assert spec["podSelector"] == DEPLOYMENT["spec"]["selector"]
    assert spec["policyTypes"] == ["Ingress"]
    named = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
    assert named == {port["name"] for port in CONTAINER["ports"]}
    assert all(rule["from"] for rule in spec["ingress"]), "an absent or empty `from` lets everybody in"
    assert not [document for document in objects("default") if document["kind"] == "NetworkPolicy"]


def test_the_network_policy_of_the_dashboard_is_on_its_pod_and_names_its_port() -> None:
    spec = only("network-policy", "NetworkPolicy", "hvpa-dashboard")["spec"]
    deployment = only("dashboard", "Deployment", "hvpa-dashboard")["spec"]
    assert spec["podSelector"] == deployment["selector"]
    (container,) = deployment["template"]["spec"]["containers"]
    (rule,) = spec["ingress"]
    assert [port["port"] for port in rule["ports"]] == [port["name"] for port in container["ports"]]
    assert rule["from"]


def test_make_deploy_replaces_the_image_that_stands_here() -> None:
    def shown(*values: str) -> list[str]:
        command = ["make", "-n", "render", "KUBECTL=true", *values]
        return subprocess.run(command, cwd=CONFIG.parent, capture_output=True, text=True).stdout.splitlines()

    substitution = f"sed 's|image: {CONTAINER['image']}$|image: %s|'"
    assert shown()[-1].endswith(substitution % CONTAINER["image"])
    assert shown("IMG=example.com/a:1")[-1].endswith(substitution % "example.com/a:1")


# --- secure-metrics: the overlay that protects /metrics ---------------------------------------------------------
def test_the_operator_may_ask_for_reviews_and_nothing_more() -> None:
    rules = only("secure-metrics", "ClusterRole", "hvpa-metrics-auth")["rules"]
    requested = {(rule["apiGroups"][0], rule["resources"][0], tuple(rule["verbs"])) for rule in rules}
    paths = [path.split("/") for path in (TOKEN_REVIEWS, ACCESS_REVIEWS)]
    assert requested == {(group, resource, ("create",)) for _, _, group, _, resource in paths}
    binding = only("secure-metrics", "ClusterRoleBinding", "hvpa-metrics-auth")
    assert binding["subjects"] == only("rbac", "ClusterRoleBinding", "hvpa-operator")["subjects"]


def test_who_scrapes_may_get_the_metrics_and_nothing_more() -> None:
    rules = only("secure-metrics", "ClusterRole", "hvpa-metrics-reader")["rules"]
    assert rules == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    bound = {document["roleRef"]["name"] for document in objects("secure-metrics") if "roleRef" in document}
    assert "hvpa-metrics-reader" not in bound  # to whom is for the administrator to say


def test_the_flags_are_those_of_hvpa_run_and_the_certificate_is_where_they_say() -> None:
    patch = _patch("secure-metrics")
    settings = _settings([change["value"] for change in patch if change["path"] == ARGUMENT])
    added: dict[str, Any] = {change["path"].rpartition("/")[2]: change["value"] for change in patch}
    (mount,), (volume,) = added["volumeMounts"], added["volumes"]
    assert settings.metrics_secure
    assert settings.metrics_cert_dir == mount["mountPath"]
    assert mount["readOnly"] is True
    assert mount["name"] == volume["name"]
    assert volume["secret"]["defaultMode"] == 0o440


def test_by_default_the_metrics_are_open_and_no_review_is_allowed() -> None:
    assert not [document for document in objects("default") if "metrics-auth" in document["metadata"]["name"]]
    assert "--metrics-secure" not in FLAGS


# --- sharded: the default with replicas that share the work -----------------------------------------------------
def test_every_file_of_the_sharded_variant_is_used() -> None:
    folder = CONFIG / "sharded"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    named = {*kustomization["resources"], *(patch["path"] for patch in kustomization["patches"])}
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert named == files | {"../default"}


def test_the_sharded_variant_asks_for_more_shards_than_replicas() -> None:
    replicas, argument = _patch("sharded")
    assert (replicas["op"], replicas["path"]) == ("replace", "/spec/replicas")
    assert (argument["op"], argument["path"]) == ("add", ARGUMENT)
    settings = _settings([*FLAGS, argument["value"]])
    assert settings.leader_elect
    assert settings.shards >= 8 * replicas["value"]


def test_the_rights_of_the_sharded_variant_are_on_leases_of_its_own_namespace() -> None:
    role, binding = (
        document for document in objects("sharded") if document["metadata"]["name"] == "hvpa-shards"
    )
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "hvpa-system")
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == (["coordination.k8s.io"], ["leases"])
    assert "*" not in rule["verbs"]
    assert binding["roleRef"]["name"] == "hvpa-shards"
    assert binding["subjects"] == only("rbac", "RoleBinding", "hvpa-leader-election")["subjects"]


# --- hvpa-policy: the default with an operator that makes Hvpas ---------------------------------------------------
def test_the_operator_of_the_policy_variant_follows_policies() -> None:
    assert not _settings(FLAGS).policies
    (argument,) = _patch("hvpa-policy")
    assert argument["path"] == ARGUMENT
    assert _settings([*FLAGS, argument["value"]]).policies
