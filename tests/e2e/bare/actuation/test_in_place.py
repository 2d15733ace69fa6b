"""`spec.updateStrategy` InPlace: sizes reach running pods by their `resize` subresource, and the template stays as it
is. The tests are the kubelet."""

from __future__ import annotations

from functools import partial

import pytest

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, weight
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")
IN_PLACE: Json = {"updateStrategy": {"type": "InPlace"}}
SIZE = {"requests": {"cpu": "500m", "memory": "500M"}, "limits": {"cpu": "1", "memory": "1G"}}


def test_running_pods_get_their_size_and_the_template_keeps_its_own(new_scenario: NewScenario) -> None:
    scenario = new_scenario(changes=merged(merged(VERTICAL_ONLY, weight(100)), IN_PLACE))
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    scenario.vpa_recommends(cpu="800m", memory="600M")

    for name in names:
        scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), f"a resize of {name}")
        assert pods.spec(name)["limits"] == {"cpu": "1600m", "memory": "1200M"}
    assert scenario.resources() == SIZE
    desired = scenario.status["desired"]
    assert desired["containers"][0]["requests"] == {"cpu": "800m", "memory": "600M"}
    scenario.soon(lambda: scenario.status["actuation"].get("inProgress") == 2, "two resizes in progress")

    for name in names:
        pods.resize(name)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "2/2", "both pods resized")


def in_place(kind: str = "InPlace", **changes: Json) -> Json:
    """A change of an Hvpa's spec: resized in place by a VPA alone, unless `changes` say otherwise."""
    return merged(merged(merged(VERTICAL_ONLY, weight(100)), {"updateStrategy": {"type": kind}}), changes)


def test_a_size_that_a_node_can_not_take_is_taken_back_and_another_one_is_tried(
    new_scenario: NewScenario,
) -> None:
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    name = pods.start("0")
    scenario.vpa_recommends(cpu="800m", memory="600M")
    scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    pods.report(name, "PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu")
    scenario.soon(partial(pods.requests, name, cpu="500m", memory="500M"), "the size that the pod has")
    scenario.await_event("RolledBack", f"pod {name}: Node didn't have enough capacity: cpu")
    scenario.await_blocked("RolledBack", "vertical", "up")
    pods.resize(name)
    scenario.vpa_recommends(cpu="700m", memory="500M")
    scenario.soon(partial(pods.requests, name, cpu="700m", memory="500M"), "another resize")
    pods.resize(name)
    scenario.await_ready()


def test_the_pod_that_ran_out_of_memory_is_raised_first_and_the_others_once_it_has_its_size(
    new_scenario: NewScenario,
) -> None:
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(3)]
    scenario.vpa_recommends(cpu="500m", memory="500M")
    scenario.await_ready()
    pods.ran_out_of_memory(names[1])
    scenario.soon(partial(pods.requests, names[1], cpu="500m", memory="604858k"), "a resize of that pod")
    why = (
        f"pod {names[0]} (and 1 more pods): pod {names[1]}, which ran out of memory, gets its new size first"
    )
    scenario.soon(lambda: scenario.status["actuation"].get("message") == why, "the others wait")
    assert all(pods.requests(name, cpu="500m", memory="500M") for name in (names[0], names[2]))
    pods.resize(names[1])
    for name in (names[0], names[2]):
        scenario.soon(partial(pods.requests, name, cpu="500m", memory="604858k"), f"a resize of {name}")
    assert scenario.resources() == SIZE


def test_a_size_beyond_the_node_of_a_pod_is_taken_back_at_once_and_memory_is_raised(
    new_scenario: NewScenario,
) -> None:
    """The API server refuses what no room of the node can ever be (403 with the cause `NodeCapacity`)."""
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    name = pods.start("0")
    scenario.vpa_recommends(cpu="8", memory="600M")
    scenario.soon(partial(pods.requests, name, cpu="500m", memory="600M"), "a resize of its memory")
    pods.resize(name)
    scenario.await_blocked("RolledBack", "vertical", "up")
    assert "node didn't have enough allocatable resources: cpu" in scenario.status["rolledBack"]["message"]
    scenario.await_ready()


def test_where_pods_can_not_be_resized_the_template_is_patched(new_scenario: NewScenario) -> None:
    scenario = new_scenario(changes=in_place("InPlaceOrRollout"))
    pods = Pods(scenario)
    name = pods.start("0")
    scenario.vpa_recommends(cpu="800m", memory="600M")
    scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    assert scenario.resources() == SIZE
    pods.report(name, "PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu")
    scenario.await_requests(cpu="800m", memory="600M")
    scenario.rollout_completes()
    scenario.soon(lambda: "replacing" in scenario.status, "pods that are replaced for a day")
    scenario.api.delete("Pod", name, scenario.namespace)
    pods.start("1")
    scenario.await_ready()
    assert scenario.status["replacing"]["message"] == f"pod {name}: Node didn't have enough capacity: cpu"
    assert (scenario.status["updateStrategy"], scenario.status.get("desired")) == ("Rollout", None)


def test_pods_of_a_joint_hvpa_are_resized_by_default(new_scenario: NewScenario) -> None:
    scenario = new_scenario(changes=merged(weight(50), {"blend": "Trajectory"}))
    pods = Pods(scenario)
    name = pods.start("0")
    scenario.vpa_recommends(cpu="500m", memory="700M")
    scenario.soon(lambda: pods.spec(name)["requests"]["memory"] == "700M", "a resize")
    assert scenario.status["updateStrategy"] == "InPlaceOrRollout"
    assert scenario.resources() == SIZE


def test_a_node_that_vanishes_in_the_middle(new_scenario: NewScenario) -> None:
    """The API server refuses to resize pods of a node that is not there; those of other nodes get their size."""
    scenario = new_scenario(changes=in_place("InPlaceOrRollout"))
    pods, node = Pods(scenario), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": scenario.name}}
    scenario.api.create(node)
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    scenario.api.patch_status("Node", scenario.name, None, {"capacity": room, "allocatable": room})
    name, lost = pods.start("0"), pods.start("lost", nodeName=scenario.name)
    scenario.api.delete("Node", scenario.name)
    scenario.vpa_recommends(cpu="800m", memory="600M")
    scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    assert pods.requests(lost, cpu="500m", memory="500M")
    scenario.await_requests(cpu="800m", memory="600M")


def test_a_quota_with_room_for_one_of_two_pods(new_scenario: NewScenario) -> None:
    """One pod gets its size; the other keeps what it has, and the pod template is not patched for it."""
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    hard = {"requests.cpu": "1400m"}
    metadata = {"name": "quota", "namespace": scenario.namespace}
    scenario.api.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    )
    used = {"hard": hard, "used": {"requests.cpu": "1"}}
    scenario.api.patch_status("ResourceQuota", "quota", scenario.namespace, used)

    def have(**requests: str) -> int:
        return [pods.requests(name, **requests) for name in names].count(True)

    scenario.vpa_recommends(cpu="800m", memory="600M")
    scenario.soon(lambda: have(cpu="800m", memory="600M") == 1, "one resize")
    message = scenario.await_condition("Ready", "False", "PodsNotResized")["message"]
    assert "exceeded quota" in message
    assert scenario.status["actuation"]["resized"] == "0/2"
    assert have(cpu="500m", memory="500M") == 1
    assert scenario.resources() == SIZE
