"""A kind of its own CRD, as Argo Rollouts' is: both axes are scaled with rights on its `scale` subresource alone."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import yaml

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, serves_mutating_policies
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.accounts import bind_cluster_role, new_account
from tests.e2e.bare.actuation.pods import HASH, Pods
from tests.e2e.bare.actuation.test_profile import role
from tests.e2e.bare.conftest import Start

ROLE = "hvpa-operator-custom-kind"
GROUP, KIND = "argoproj.io", "Rollout"
CRD = f"rollouts.{GROUP}"
RULES = yaml.safe_load((REPOSITORY / "config/custom-kinds/operator_role.yaml").read_text())["rules"]


def test_with_rights_on_the_scale_alone_both_axes_are_scaled(
    plane: ControlPlane, space: str, rollout: Scenario, start: Start
) -> None:
    scenario, given = rollout, role(plane, "in-place")
    given["metadata"] = {"name": ROLE}
    plane.api.create(given)
    user = new_account(plane, space, "confined")
    plane.circumstances.operators.add(user)
    plane.circumstances.meant.add(user)
    bind_cluster_role(plane, ROLE, space, "confined")
    start("--namespace", space, kubeconfig=plane.service_account_kubeconfig(space, "confined"))
    condition = scenario.await_condition("Ready", "False", "TargetUnreadable")
    assert 'cannot get resource "rollouts/scale" in API group "argoproj.io"' in condition["message"]

    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "scales", "namespace": space},
    }
    plane.api.create({**binding, "kind": "Role", "rules": RULES})
    subject = {"kind": "ServiceAccount", "name": "confined", "namespace": space}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scales"}
    plane.api.create({**binding, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    scenario.await_owned()
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    scenario.soon(lambda: scenario.recommends(4), "a recommendation on both axes")
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(4)
    for name in names:
        scenario.soon(partial(pods.requests, name, cpu="1", memory="1G"), f"a resize of {name}")

    if serves_mutating_policies(plane):
        key = f"ReplicaSet.apps/{scenario.name}-{HASH}"
        scenario.soon(
            lambda: scenario.api.get("HvpaSizes", "hvpa", space)["sizes"].get(key), "a size of new pods"
        )
        fresh = (
            pods.start(f"fresh-{number}") for number in itertools.count()
        )  # policies see a copy of the sizes
        scenario.soon(lambda: pods.requests(next(fresh), cpu="1", memory="1G"), "a new pod of this size")
    asked = plane.audit.requests(user=user, resource="rollouts")
    assert {(request.verb, request.subresource) for request in asked} == {
        ("get", "scale"),
        ("patch", "scale"),
    }
    kinds = {entry["involvedObject"]["kind"] for entry in scenario.events() if entry["reason"] == "ScaledUp"}
    assert kinds <= {KIND, "Hvpa"}


def test_explain_reads_the_scale(plane: ControlPlane, rollout: Scenario) -> None:
    argv = [sys.executable, "-m", "hvpa", "explain", rollout.name, "-n", rollout.namespace, "-o", "json"]
    argv += ["--kubeconfig", str(plane.kubeconfig)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    assert ended.returncode == 0, ended.stderr
    explained = json.loads(ended.stdout)
    reasons = {condition["type"]: condition["reason"] for condition in explained["conditions"]}
    assert reasons["HpaActive"] == "HpaCreated"
    assert explained["nextStatus"]["recommended"]["replicas"] == 2


def test_a_crd_that_is_deleted_and_made_again_ends_neither_leader_nor_standby(
    plane: ControlPlane, space: str, new_rollout: Callable[[], Scenario], start: Start
) -> None:
    """Several reads of the kind are in flight and get 404."""
    several = [new_rollout() for _ in range(5)]
    flags = ("--namespace", space, "--leader-elect", "--lease-namespace", space)
    replicas = [start(*flags, name=name, kubeconfig=plane.kubeconfig) for name in ("leader", "standby")]

    def await_read() -> None:
        for scenario in several:
            scenario.soon(partial(is_read, scenario), "the workload is read")

    await_read()
    crd = plane.api.get("CustomResourceDefinition", CRD)
    made = {key: crd[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": CRD}}
    for _ in range(3):
        plane.api.delete("CustomResourceDefinition", CRD)
        wait_for(lambda: plane.api.find("CustomResourceDefinition", CRD) is None, 90, "it is gone")
        for scenario in several:
            scenario.await_condition("Ready", "False", "TargetUnreadable")
        plane.apply_all([made])
        for scenario in several:
            plane.api.create(scenario.workload)
            plane.api.patch_status(
                scenario.kind, scenario.name, scenario.namespace, {"selector": f"app={scenario.name}"}
            )
        await_read()
    for replica in replicas:
        assert replica.process.alive
        assert not replica.metric("hvpa_task_failures_total")


def is_read(scenario: Scenario) -> bool:
    """Whether the operator has reported on the workload as it is."""
    reasons = {condition["type"]: condition["reason"] for condition in scenario.status.get("conditions", ())}
    return "Ready" in reasons and reasons["Ready"] not in ("TargetUnreadable", "TargetNotFound")
