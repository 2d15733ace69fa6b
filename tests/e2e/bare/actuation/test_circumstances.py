"""What can be in the way of a resize: each is reported with its reason, falls to the pod template where that is
allowed, and leaves pods and status in agreement. The tests are the kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.conftest import NewScenario

OLD: Json = {"cpu": "500m", "memory": "500M"}
DECIDED: Json = {"cpu": "800m", "memory": "600M"}
RESIZE = "/resize$"
ROOM: Json = {"cpu": "4", "memory": "8Gi", "pods": "110"}
STATIC = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'


@pytest.fixture(scope="module", autouse=True)
def remote(plane: ControlPlane, line: Proxy, token: str) -> Iterator[Operator]:
    """An operator that reaches the API server through the proxy."""
    with Operator(plane, line.kubeconfig_for(token), "--log-level", "debug") as running:
        yield running


class Case:
    """A workload whose Hvpa resizes its pods in place, by a VPA alone."""

    def __init__(self, one: Scenario, count: int = 2, **changes: Json) -> None:
        self.one = one
        self.pods = Pods(one)
        self.names = [self.pods.start(str(number), **changes) for number in range(count)]

    def recommend(self) -> None:
        self.one.vpa_recommends(**DECIDED)

    def have(self, *names: str, **requests: str) -> None:
        """Wait until these pods are to have these requests."""
        for name in names:
            what = partial(self.pods.requests, name, **requests)
            self.one.soon(what, f"{requests} of {name}")

    def reports(self, message: str, count: str) -> None:
        """Wait until `Ready` reports what is in the way, and check that the status counts the pods."""
        found = self.one.await_condition("Ready", "False", "PodsNotResized")
        assert message in found["message"]
        assert self.one.status["actuation"]["resized"] == count


@pytest.fixture
def case(new_scenario: NewScenario) -> Case:
    return Case(new_scenario(changes=in_place()))


@pytest.fixture
def falling(new_scenario: NewScenario) -> Case:
    """Whose template may be patched as well."""
    return Case(new_scenario(changes=in_place("InPlaceOrRollout")))


def test_an_api_server_without_the_subresource_is_reported(line: Proxy, case: Case) -> None:
    line.fail(404, times=None, verb="patch", path=RESIZE)
    case.recommend()
    case.reports("no subresource pods/resize", "0/2")
    assert case.one.resources()["requests"] == OLD


def test_without_the_subresource_the_template_is_patched(line: Proxy, falling: Case) -> None:
    line.fail(404, times=None, verb="patch", path=RESIZE)
    falling.recommend()
    falling.one.await_requests(**DECIDED)


@pytest.mark.parametrize(("code", "wait"), [(409, None), (429, 1), (500, None), (503, 1)])
def test_what_passes_is_tried_again(line: Proxy, case: Case, code: int, wait: int | None) -> None:
    line.fail(code, times=3, verb="patch", path=RESIZE, retry_after=wait)
    case.recommend()
    case.have(*case.names, **DECIDED)
    for name in case.names:
        case.pods.resize(name)
    case.one.soon(lambda: case.one.status["actuation"]["resized"] == "2/2", "both pods resized")
    case.one.await_ready()


def test_pods_of_another_owner_are_left_alone(case: Case) -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "other",
        "uid": "other",
        "controller": True,
    }
    foreign = case.pods.start("foreign")
    case.one.api.patch("Pod", foreign, case.one.namespace, {"metadata": {"ownerReferences": [owner]}})
    case.recommend()
    case.have(*case.names, **DECIDED)
    assert case.pods.requests(foreign, **OLD)
    assert case.one.status["actuation"]["pods"] == 2


def test_the_pods_of_a_paused_deployment_are_resized(falling: Case) -> None:
    """Paused are its rollouts. A size that pods can't have waits for it to be resumed."""
    falling.one.change_workload({"paused": True})
    falling.recommend()
    falling.have(*falling.names, **DECIDED)
    falling.pods.report(falling.names[0], "PodResizePending", "Infeasible", STATIC)
    falling.one.await_condition("Ready", "False", "DeploymentPaused")
    assert falling.one.resources()["requests"] == OLD
    falling.one.change_workload({"paused": False})
    falling.one.rollout_completes()
    falling.one.await_requests(**DECIDED)


def test_the_pods_of_a_workload_that_is_gone_are_left_alone(case: Case) -> None:
    one = case.one
    one.api.delete(one.kind, one.name, one.namespace)
    one.await_condition("Ready", "False", "TargetNotFound")
    case.recommend()
    one.settled()
    for name in case.names:
        assert case.pods.requests(name, **OLD)


@pytest.mark.parametrize("message", [STATIC, "Node didn't have enough capacity: cpu, requested: 800"])
def test_where_a_kubelet_will_never_resize_the_template_is_patched(falling: Case, message: str) -> None:
    falling.recommend()
    falling.have(*falling.names, **DECIDED)
    assert falling.one.resources()["requests"] == OLD
    falling.pods.report(falling.names[0], "PodResizePending", "Infeasible", message)
    falling.one.await_requests(**DECIDED)


def test_a_kubelet_that_does_not_answer_is_reported(new_scenario: NewScenario) -> None:
    case = Case(new_scenario(changes=in_place(updateStrategy={"timeout": "2s"})))
    case.recommend()
    case.have(*case.names, **DECIDED)
    case.pods.resize(case.names[0])
    case.reports(case.names[1], "1/2")
    case.pods.resize(case.names[1])
    case.one.await_ready()


def test_where_a_kubelet_does_not_answer_the_template_is_patched(new_scenario: NewScenario) -> None:
    case = Case(new_scenario(changes=in_place("InPlaceOrRollout", updateStrategy={"timeout": "2s"})))
    case.recommend()
    case.have(*case.names, **DECIDED)
    case.one.await_requests(**DECIDED)


def test_a_node_that_vanishes_in_the_middle(new_scenario: NewScenario) -> None:
    """The API server refuses to resize pods of a node that is not there; those of other nodes get their size."""
    one = new_scenario(changes=in_place("InPlaceOrRollout"))
    one.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": one.name}})
    one.api.patch_status("Node", one.name, None, {"capacity": ROOM, "allocatable": ROOM})
    case = Case(one, count=1)
    lost = case.pods.start("lost", nodeName=one.name)  # type: ignore[arg-type]
    one.api.delete("Node", one.name)
    case.recommend()
    case.have(*case.names, **DECIDED)
    assert case.pods.requests(lost, **OLD)
    one.await_requests(**DECIDED)


def test_a_budget_that_allows_no_disruption_holds_no_resize(case: Case) -> None:
    one = case.one
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": one.name}}}
    metadata = {"name": one.name, "namespace": one.namespace}
    one.api.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    )
    case.recommend()
    case.have(*case.names, **DECIDED)


def test_a_quota_with_room_for_one_of_two_pods(new_scenario: NewScenario) -> None:
    """One pod gets its size; the other keeps what it has, and the pod template is not patched for it."""
    case = Case(new_scenario(changes=in_place()))
    one, hard = case.one, {"requests.cpu": "1400m"}
    metadata = {"name": "quota", "namespace": one.namespace}
    one.api.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    )
    used = {"hard": hard, "used": {"requests.cpu": "1"}}
    one.api.patch_status("ResourceQuota", "quota", one.namespace, used)
    case.recommend()
    case.one.soon(
        lambda: [case.pods.requests(name, **DECIDED) for name in case.names].count(True) == 1, "one resize"
    )
    case.reports("exceeded quota", "0/2")
    assert [case.pods.requests(name, **OLD) for name in case.names].count(True) == 1
    assert one.resources()["requests"] == OLD
