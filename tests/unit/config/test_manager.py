"""The Deployment of the operator: its flags, its ports, and what a restricted namespace asks of its pods."""

from __future__ import annotations

import argparse

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.server.endpoints import parse_address
from tests.unit.config.folders import CONFIG, objects, only, resources

DEPLOYMENT = only("manager", "Deployment", "hvpa")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def _settings(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_every_file_is_listed_in_its_kustomization() -> None:
    for folder in ("crd", "manager", "network-policy", "operator-policy", "policy", "rbac", "samples"):
        files = {path.name for path in (CONFIG / folder).glob("*.yaml")}
        files -= {"kustomization.yaml", "configuration.yaml"}
        assert files == set(resources(folder)), folder


def test_the_default_has_crd_rights_and_operator() -> None:
    found = {(one["kind"], one["metadata"]["name"]) for one in objects("default")}
    assert ("CustomResourceDefinition", "hvpas.autoscaling.k8s.io") in found
    assert {("Namespace", "hvpa-system"), ("ClusterRole", "hvpa-operator"), ("Deployment", "hvpa")} <= found


def test_the_arguments_are_flags_of_hvpa_run_and_elect_a_leader() -> None:
    command, *flags = CONTAINER["args"]
    assert command == "run"
    settings = run_settings(_settings(flags))
    assert settings.leader_elect
    assert settings.log_format == "json"


def test_ports_and_probes_are_those_that_the_operator_listens_on() -> None:
    settings = run_settings(_settings(CONTAINER["args"][1:]))
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
    settings = run_settings(_settings(CONTAINER["args"][1:]))
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
    assert all(one["labelSelector"] == selector for one in POD["topologySpreadConstraints"])
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
    assert not [one for one in objects("default") if one["kind"] == "NetworkPolicy"]


def test_make_deploy_replaces_the_image_that_stands_here() -> None:
    makefile = (CONFIG.parent / "Makefile").read_text()
    assert f"image: {CONTAINER['image']}$$".replace(".", r"\.") in makefile
    assert f"IMG ?= {CONTAINER['image']}\n" in makefile
