"""`config/in-place`: the operator scales both ways without the right to change a workload."""

from __future__ import annotations

from functools import partial

import pytest
import yaml

from hvpa.api.objects.kinds import KINDS
from localcluster.client.api import ApiError, Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.workloads.bare_manifests import merged, weight
from tests.e2e.bare.accounts import api_of, bind_cluster_role, new_account
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.conftest import NewScenario, Start

ROLE = "hvpa-operator-in-place"
WORKLOADS = ("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers")


def role(plane: ControlPlane, profile: str) -> Json:
    """The operator's ClusterRole of a folder of `config/`."""
    output = plane.kubectl("kustomize", REPOSITORY / "config" / profile).stdout
    documents = [document for document in yaml.safe_load_all(output) if document]
    (cluster_role,) = [
        document
        for document in documents
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == "hvpa-operator"
    ]
    return dict(cluster_role)


def test_with_these_rights_both_axes_are_scaled_and_no_template_can_be_changed(
    plane: ControlPlane, space: str, new_scenario: NewScenario, start: Start
) -> None:
    given = role(plane, "in-place")
    given["metadata"] = {"name": ROLE}
    plane.api.create(given)
    user = new_account(plane, space, "confined")
    plane.circumstances.operators.add(user)
    plane.circumstances.meant.add(user)
    bind_cluster_role(plane, ROLE, space, "confined")
    start("--namespace", space, kubeconfig=plane.service_account_kubeconfig(space, "confined"))

    both: Json = merged(weight(50), {"mode": "Paused", "updateStrategy": {"type": "InPlace"}})
    scenarios = [new_scenario(kind=kind.name, changes=both) for kind in KINDS.values() if kind.has_replicas]
    started = [[Pods(scenario).start(name) for name in "01"] for scenario in scenarios]
    names = [pods[0] for pods in started]
    for scenario, pod in zip(scenarios, names, strict=True):
        scenario.hpa_wants(6)
        scenario.vpa_recommends(cpu="1500m", memory="1500M")
        scenario.soon(partial(scenario.recommends, 4), "a recommendation on both axes")
        scenario.change({"mode": "Apply"})
        scenario.await_replicas(4)
        scenario.soon(partial(Pods(scenario).requests, pod, cpu="1", memory="1G"), f"a resize of {pod}")

    falling = new_scenario(changes=in_place("InPlaceOrRollout"))
    pods = Pods(falling)
    name = pods.start("0")
    falling.vpa_recommends(cpu="800m", memory="600M")
    falling.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    pods.report(name, "PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu")
    missing = falling.await_condition("Ready", "False", "NotPermitted")["message"]
    assert 'cannot patch resource "deployments"' in missing

    for resource in WORKLOADS:
        written = plane.audit.requests(user=user, resource=resource, code=200)
        asked = {(request.verb, request.subresource) for request in written if request.is_write}
        assert asked == (set() if resource == "daemonsets" else {("patch", "scale")})
    confined = api_of(plane, space, "confined")
    for scenario in scenarios:
        change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "other"}]}}}}
        with pytest.raises(ApiError, match="403"):
            confined.patch(scenario.kind, scenario.name, space, change, type="strategic")
    with pytest.raises(ApiError, match="403"):
        confined.patch("Pod", names[0], space, {"spec": {"containers": [{"name": "app", "image": "other"}]}})


def test_nothing_else_is_left_out(plane: ControlPlane) -> None:
    everything, confined = role(plane, "default")["rules"], role(plane, "in-place")["rules"]
    differing = [(rule, other) for rule, other in zip(everything, confined, strict=True) if rule != other]
    assert [plural for before, _ in differing for plural in before["resources"]] == list(WORKLOADS)
    for before, after in differing:
        assert before["resources"] == after["resources"]
        assert set(before["verbs"]) - set(after["verbs"]) == {"patch"}
