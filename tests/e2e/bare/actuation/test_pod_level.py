"""Resources of the pod itself (`spec.resources`) on a real API server, which lets them be resized since Kubernetes
1.36: the pod template, running pods, and new pods. The tests are the kubelet."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
import yaml

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, serves_mutating_policies
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, ago, condition, merged
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_creation import has_entry
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")

PAGE = REPOSITORY / "docs/pod-level-resources.md"
OWN: Json = {"requests": {"cpu": "1", "memory": "1G"}, "limits": {"cpu": "2", "memory": "1G"}}
SIZE: Json = {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}}
SIZED: Json = {"requests": {"cpu": "900m"}, "limits": {"cpu": "1800m"}}
OWN_SIZED: Json = {"requests": {"cpu": "1", "memory": "2500M"}, "limits": {"cpu": "2", "memory": "2500M"}}
"""app needs 900m and 2000M, side 100m and 500M, which it shares with app as far as app has no request of its own."""


@pytest.fixture(autouse=True)
def resizable(plane: ControlPlane) -> None:
    """Skips where the API server is older than 1.36, the first with either feature."""
    if not serves_mutating_policies(plane):
        pytest.skip("the API server does not resize resources of pods")


def scenario_of(new_scenario: NewScenario, changes: Json, resources: Json = OWN) -> Scenario:
    """An app with a CPU request of its own and a sidecar without any, in a pod with resources of its own."""
    scenario = new_scenario(create=False, changes=changes)
    spec = scenario.workload["spec"]["template"]["spec"]
    spec["resources"] = resources
    spec["containers"] = [
        {"name": "app", "image": "app", "resources": SIZE},
        {"name": "side", "image": "side"},
    ]
    return scenario.create()


def recommend(scenario: Scenario) -> None:
    scenario.vpa_recommends(cpu="900m", memory="2G", others={"side": {"cpu": "100m", "memory": "500M"}})


def declare(scenario: Scenario, node: str = "node") -> None:
    """The kubelet of a node: it can resize the resources of a pod itself. Without this, the API server refuses any
    resize of such pods."""
    features = {"declaredFeatures": ["InPlacePodLevelResourcesVerticalScaling"]}
    scenario.api.patch_status("Node", node, None, features)


def template(scenario: Scenario) -> Any:
    spec = scenario.target["spec"]["template"]["spec"]
    return spec["resources"], [container.get("resources", {}) for container in spec["containers"]]


def test_the_template_of_replaced_pods_gets_the_total_that_its_containers_need(
    new_scenario: NewScenario,
) -> None:
    scenario = scenario_of(new_scenario, VERTICAL_ONLY)
    recommend(scenario)
    scenario.soon(lambda: template(scenario) == (OWN_SIZED, [SIZED, {}]), "a step")
    assert "lastError" not in scenario.status


def test_a_limit_alone_keeps_the_api_servers_default_of_the_request(new_scenario: NewScenario) -> None:
    scenario = scenario_of(new_scenario, VERTICAL_ONLY, {"limits": {"memory": "1G"}})
    recommend(scenario)
    sized, of_side = {"limits": {"memory": "2500M"}}, {"requests": {"cpu": "100m"}}
    scenario.soon(lambda: template(scenario) == (sized, [SIZED, of_side]), "a step")
    made = Pods(scenario).start("0")
    assert Pods(scenario).get(made)["spec"]["resources"]["requests"] == {"cpu": "1", "memory": "2500M"}


def test_running_pods_and_new_ones_have_the_size_and_the_template_stays(
    new_scenario: NewScenario,
) -> None:
    scenario = scenario_of(new_scenario, in_place())
    pods = Pods(scenario)
    declare(scenario)
    first = pods.start("0")
    recommend(scenario)
    sizes = partial(sizes_of, pods)
    scenario.soon(lambda: sizes(first) == (OWN_SIZED, [SIZED, {}]), "a resize")
    pods.resize(first)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "1/1", "a resized pod")
    assert template(scenario) == (OWN, [SIZE, {}])
    with pytest.raises(ApiError, match="must be greater than or equal to aggregate container requests"):
        pods.api.patch(
            "Pod",
            first,
            scenario.namespace,
            {"spec": {"resources": {"requests": {"cpu": "899m"}}}},
            subresource="resize",
        )
    scenario.soon(lambda: has_entry(scenario), "an entry")

    def created() -> bool:  # the API server's policies look at a copy of the object, too
        name = pods.start("1")
        is_sized = bool(sizes(name) == (OWN_SIZED, [SIZED, {}]))
        if not is_sized:
            scenario.api.delete("Pod", name, scenario.namespace, grace=0)
        return is_sized

    scenario.soon(created, "a new pod of the size that was decided")


def test_where_the_node_can_not_do_that_the_template_is_patched(new_scenario: NewScenario) -> None:
    scenario = scenario_of(new_scenario, in_place("InPlaceOrRollout"))
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    scenario.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": scenario.name}})
    scenario.api.patch_status("Node", scenario.name, None, {"capacity": room, "allocatable": room})
    Pods(scenario).start("0", nodeName=scenario.name)
    recommend(scenario)
    scenario.soon(lambda: template(scenario) == (OWN_SIZED, [SIZED, {}]), "a step")
    why = "requires features InPlacePodLevelResourcesVerticalScaling which are not available on node"
    scenario.rollout_completes()
    scenario.soon(lambda: why in scenario.status["replacing"]["message"], "pods that are replaced for a day")


def test_what_only_some_containers_have_targets_for_stays(new_scenario: NewScenario) -> None:
    scenario = scenario_of(new_scenario, VERTICAL_ONLY)
    scenario.vpa_recommends(cpu="900m", memory="2G")
    message = scenario.await_condition("VpaActive", "True", "PodLevelResources")["message"]
    assert "memory: app, side share the pod's request" in message
    scenario.soon(lambda: template(scenario)[1] == [SIZED, {}], "a step of app's own request")
    assert template(scenario)[0]["requests"] == {"cpu": "1600m", "memory": "1G"}


@pytest.mark.parametrize(
    ("boosted", "app", "own"),
    [
        ("app", {"requests": {"cpu": "900m"}, "limits": {"cpu": "1800m"}}, ("1600m", "3200m")),
        ("side", SIZE, ("2400m", "4800m")),
    ],
)
def test_the_pod_has_room_for_more_cpu_at_the_start_of_its_containers(
    new_scenario: NewScenario, boosted: str, app: Json, own: tuple[str, str]
) -> None:
    """app requests 300m of the pod's 1 core, and side shares the rest."""
    boost = {"container": boosted, "cpu": {"factor": 3}, "atMost": "1h"}
    scenario = scenario_of(new_scenario, in_place())
    pods = Pods(scenario)
    declare(scenario)
    larger = {"requests": {"cpu": own[0], "memory": "1G"}, "limits": {"cpu": own[1], "memory": "1G"}}
    usual, bigger = (OWN, [SIZE, {}]), (larger, [app, {}])
    first, boosts = pods.begin("0"), [boost]
    started = {"startTime": ago(), "conditions": [condition("Ready", "False", "")]}
    pods.api.patch_status("Pod", first, scenario.namespace, {"phase": "Running", **started})
    assert sizes_of(pods, first) == usual
    scenario.change({"startupBoost": boosts})
    scenario.soon(lambda: sizes_of(pods, first) == bigger, "the boost of a running pod")
    pods.run(first, startTime=ago(minutes=2))
    scenario.soon(lambda: sizes_of(pods, first) == usual, "the usual size")
    pods.resize(first)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "1/1", "a resized pod")
    scenario.soon(lambda: has_entry(scenario), "an entry")

    def created() -> bool:  # the API server's policies look at a copy of the object, too
        name = pods.begin("1")
        is_boosted = bool(sizes_of(pods, name) == bigger)
        if not is_boosted:
            scenario.api.delete("Pod", name, scenario.namespace, grace=0)
        return is_boosted

    scenario.soon(created, "a new pod with the boost")
    second = f"{scenario.name}-1"
    pods.run(second, startTime=ago(minutes=2))
    scenario.soon(lambda: sizes_of(pods, second) == usual, "the usual size of the new pod")
    assert pods.get(second)["metadata"]["generation"] == 2  # one resize
    assert template(scenario) == usual


def sizes_of(pods: Pods, name: str) -> Any:
    spec = pods.get(name)["spec"]
    return spec["resources"], [container.get("resources", {}) for container in spec["containers"]]


def test_the_example_of_the_docs_does_what_they_say(plane: ControlPlane) -> None:
    api, namespace = plane.api, new_namespace(plane.api, "docs")
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for manifest in yaml.safe_load_all(text):
        api.create(merged(manifest, {"metadata": {"namespace": namespace}}))
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    api.patch_status("Deployment", "web", namespace, {"observedGeneration": 1, **counts})
    wait_for(lambda: api.find("VerticalPodAutoscaler", "web", namespace), 60, "the VPA of the Hvpa")
    recommended = [
        {"containerName": name, "target": target}
        for name, target in (
            ("app", {"cpu": "900m", "memory": "2G"}),
            ("logs", {"cpu": "100m", "memory": "500M"}),
        )
    ]
    provided = condition("RecommendationProvided", "True", "", ago(hours=2))
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": recommended}}
    api.patch_status("VerticalPodAutoscaler", "web", namespace, status)

    def spec() -> Json:
        return dict(api.get("Deployment", "web", namespace)["spec"]["template"]["spec"])

    wait_for(lambda: spec()["resources"] == OWN_SIZED, 60, lambda: f"the pod's size: {spec()}")
    app, logs = [container.get("resources", {}) for container in spec()["containers"]]
    assert (app, logs) == ({"requests": {"cpu": "900m"}}, {})
