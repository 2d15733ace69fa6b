"""No request beyond the largest node that the pods may use (`spec.vpa.maxAllowed: LargestNode`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_node_room
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged
from tests.e2e.bare.conftest import NewScenario

POOL = "pool.example.com"
NODES: dict[str, tuple[Json, Json, list[Json]]] = {
    "small": ({POOL: "web"}, {"cpu": "2", "memory": "4Gi"}, []),
    "large": ({POOL: "web"}, {"cpu": "3", "memory": "8Gi"}, []),
    "of-others": ({}, {"cpu": "64", "memory": "256Gi"}, []),
    "tainted": ({POOL: "web"}, {"cpu": "16", "memory": "64Gi"}, [{"key": "gpu", "effect": "NoSchedule"}]),
}
"""Labels, allocatable resources and taints, by name."""


@pytest.fixture(scope="module", autouse=True)
def nodes(plane: ControlPlane) -> Iterator[None]:
    install_node_room(plane)
    for name, (labels, size, taints) in NODES.items():
        manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        status = {"allocatable": size, "capacity": size}
        plane.api.create({**manifest, "spec": {"taints": taints}, "status": status})
    yield
    for name in NODES:
        plane.api.delete("Node", name)


@pytest.mark.parametrize("tolerates", [False, True])
def test_no_request_is_raised_beyond_the_largest_node(
    new_scenario: NewScenario, operator: Operator, tolerates: bool
) -> None:
    scenario = new_scenario(
        create=False, changes=merged(VERTICAL_ONLY, {"vpa": {"maxAllowed": "LargestNode"}})
    )
    pod = scenario.workload["spec"]["template"]["spec"]
    pod["nodeSelector"] = {POOL: "web"}
    pod["containers"].append(
        {"name": "side", "image": "side", "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}}}
    )
    if tolerates:
        pod["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    scenario.create()
    scenario.vpa_recommends(cpu="12", memory="2G")
    scenario.await_requests(cpu="12" if tolerates else "2800m", memory="2G")
    if not tolerates:
        message = scenario.await_condition("VpaActive", "True", "LargestNode")["message"]
        assert "app cpu: 12 recommended, 2800m at most" in message
