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
    one = new_scenario(changes=merged(merged(VERTICAL_ONLY, weight(100)), IN_PLACE))
    pods = Pods(one)
    names = [pods.start(str(number)) for number in range(2)]
    one.vpa_recommends(cpu="800m", memory="600M")

    for name in names:
        one.soon(partial(pods.requests, name, cpu="800m", memory="600M"), f"a resize of {name}")
        assert pods.spec(name)["limits"] == {"cpu": "1600m", "memory": "1200M"}
    assert one.resources() == SIZE
    desired = one.status["desired"]
    assert desired["containers"][0]["requests"] == {"cpu": "800m", "memory": "600M"}
    one.soon(lambda: one.status["actuation"].get("inProgress") == 2, "two resizes in progress")

    for name in names:
        pods.resize(name)
    one.soon(lambda: one.status["actuation"]["resized"] == "2/2", "both pods resized")


def in_place(kind: str = "InPlace", **changes: Json) -> Json:
    """A change of an Hvpa's spec: resized in place by a VPA alone, unless `changes` say otherwise."""
    return merged(merged(merged(VERTICAL_ONLY, weight(100)), {"updateStrategy": {"type": kind}}), changes)


def test_a_size_that_a_node_can_not_take_is_taken_back_and_another_one_is_tried(
    new_scenario: NewScenario,
) -> None:
    one = new_scenario(changes=in_place())
    pods = Pods(one)
    name = pods.start("0")
    one.vpa_recommends(cpu="800m", memory="600M")
    one.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    pods.report(name, "PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu")
    one.soon(partial(pods.requests, name, cpu="500m", memory="500M"), "the size that the pod has")
    one.await_event("RolledBack", f"pod {name}: Node didn't have enough capacity: cpu")
    one.await_blocked("RolledBack", "vertical", "up")
    pods.resize(name)
    one.vpa_recommends(cpu="700m", memory="500M")
    one.soon(partial(pods.requests, name, cpu="700m", memory="500M"), "another resize")
    pods.resize(name)
    one.await_ready()


def test_the_pod_that_ran_out_of_memory_is_raised_first_and_the_others_once_it_has_its_size(
    new_scenario: NewScenario,
) -> None:
    one = new_scenario(changes=in_place())
    pods = Pods(one)
    names = [pods.start(str(number)) for number in range(3)]
    one.vpa_recommends(cpu="500m", memory="500M")
    one.await_ready()
    pods.ran_out_of_memory(names[1])
    one.soon(partial(pods.requests, names[1], cpu="500m", memory="604858k"), "a resize of that pod")
    why = (
        f"pod {names[0]} (and 1 more pods): pod {names[1]}, which ran out of memory, gets its new size first"
    )
    one.soon(lambda: one.status["actuation"].get("message") == why, "the others wait")
    assert all(pods.requests(name, cpu="500m", memory="500M") for name in (names[0], names[2]))
    pods.resize(names[1])
    for name in (names[0], names[2]):
        one.soon(partial(pods.requests, name, cpu="500m", memory="604858k"), f"a resize of {name}")
    assert one.resources() == SIZE


def test_a_size_beyond_the_node_of_a_pod_is_taken_back_at_once_and_memory_is_raised(
    new_scenario: NewScenario,
) -> None:
    """The API server refuses what no room of the node can ever be (403 with the cause `NodeCapacity`)."""
    one = new_scenario(changes=in_place())
    pods = Pods(one)
    name = pods.start("0")
    one.vpa_recommends(cpu="8", memory="600M")
    one.soon(partial(pods.requests, name, cpu="500m", memory="600M"), "a resize of its memory")
    pods.resize(name)
    one.await_blocked("RolledBack", "vertical", "up")
    assert "node didn't have enough allocatable resources: cpu" in one.status["rolledBack"]["message"]
    one.await_ready()


def test_where_pods_can_not_be_resized_the_template_is_patched(new_scenario: NewScenario) -> None:
    one = new_scenario(changes=in_place("InPlaceOrRollout"))
    pods = Pods(one)
    name = pods.start("0")
    one.vpa_recommends(cpu="800m", memory="600M")
    one.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    assert one.resources() == SIZE
    pods.report(name, "PodResizePending", "Infeasible", "Node didn't have enough capacity: cpu")
    one.await_requests(cpu="800m", memory="600M")
    one.rollout_completes()
    one.soon(lambda: "replacing" in one.status, "pods that are replaced for a day")
    one.api.delete("Pod", name, one.namespace)
    pods.start("1")
    one.await_ready()
    assert one.status["replacing"]["message"] == f"pod {name}: Node didn't have enough capacity: cpu"
    assert (one.status["updateStrategy"], one.status.get("desired")) == ("Rollout", None)


def test_pods_of_a_joint_hvpa_are_resized_by_default(new_scenario: NewScenario) -> None:
    one = new_scenario(changes=merged(weight(50), {"blend": "Trajectory"}))
    pods = Pods(one)
    name = pods.start("0")
    one.vpa_recommends(cpu="500m", memory="700M")
    one.soon(lambda: pods.spec(name)["requests"]["memory"] == "700M", "a resize")
    assert one.status["updateStrategy"] == "InPlaceOrRollout"
    assert one.resources() == SIZE


def test_a_node_that_vanishes_in_the_middle(new_scenario: NewScenario) -> None:
    """The API server refuses to resize pods of a node that is not there; those of other nodes get their size."""
    one = new_scenario(changes=in_place("InPlaceOrRollout"))
    pods, node = Pods(one), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": one.name}}
    one.api.create(node)
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    one.api.patch_status("Node", one.name, None, {"capacity": room, "allocatable": room})
    name, lost = pods.start("0"), pods.start("lost", nodeName=one.name)
    one.api.delete("Node", one.name)
    one.vpa_recommends(cpu="800m", memory="600M")
    one.soon(partial(pods.requests, name, cpu="800m", memory="600M"), "a resize")
    assert pods.requests(lost, cpu="500m", memory="500M")
    one.await_requests(cpu="800m", memory="600M")


def test_a_quota_with_room_for_one_of_two_pods(new_scenario: NewScenario) -> None:
    """One pod gets its size; the other keeps what it has, and the pod template is not patched for it."""
    one = new_scenario(changes=in_place())
    pods = Pods(one)
    names = [pods.start(str(number)) for number in range(2)]
    hard = {"requests.cpu": "1400m"}
    metadata = {"name": "quota", "namespace": one.namespace}
    one.api.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    )
    used = {"hard": hard, "used": {"requests.cpu": "1"}}
    one.api.patch_status("ResourceQuota", "quota", one.namespace, used)

    def have(**requests: str) -> int:
        return [pods.requests(name, **requests) for name in names].count(True)

    one.vpa_recommends(cpu="800m", memory="600M")
    one.soon(lambda: have(cpu="800m", memory="600M") == 1, "one resize")
    message = one.await_condition("Ready", "False", "PodsNotResized")["message"]
    assert "exceeded quota" in message
    assert one.status["actuation"]["resized"] == "0/2"
    assert have(cpu="500m", memory="500M") == 1
    assert one.resources() == SIZE
