"""`config/sharded`: the default with replicas that share the work.

That its rights are needed, and that none is missing, is shown end to end."""

from __future__ import annotations

import argparse

import yaml

from hvpa.cli.run import add_arguments, run_settings
from tests.unit.config.folders import CONFIG, Json, objects, only

FOLDER = CONFIG / "sharded"
PATCH: list[Json] = yaml.safe_load((FOLDER / "deployment_patch.yaml").read_text())


def test_every_file_is_used() -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    named = {*kustomization["resources"], *(one["path"] for one in kustomization["patches"])}
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert named == files | {"../default"}


def test_the_patch_asks_for_more_shards_than_replicas() -> None:
    deployment = only("manager", "Deployment", "hvpa")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    replicas, argument = PATCH
    assert (replicas["op"], replicas["path"]) == ("replace", "/spec/replicas")
    assert (argument["op"], argument["path"]) == ("add", "/spec/template/spec/containers/0/args/-")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    settings = run_settings(parser.parse_args([*container["args"][1:], argument["value"]]))
    assert settings.leader_elect
    assert settings.shards >= 8 * replicas["value"]


def test_its_rights_are_on_leases_of_its_own_namespace() -> None:
    role, binding = (one for one in objects("sharded") if one["metadata"]["name"] == "hvpa-shards")
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "hvpa-system")
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == (["coordination.k8s.io"], ["leases"])
    assert "*" not in rule["verbs"]
    assert binding["roleRef"]["name"] == "hvpa-shards"
    assert binding["subjects"] == only("rbac", "RoleBinding", "hvpa-leader-election")["subjects"]
