"""What can be in the way of a resize: each is reported with its reason, falls to the pod template where that is
allowed, and leaves pods and status in agreement. The tests are the kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import IN_PLACE, in_place
from tests.e2e.bare.admission import GROUP, IN_FORCE, KINDS
from tests.e2e.bare.conftest import NewScenario
from tests.e2e.bare.faults.test_writes import CASES, REFUSED, UNDISTURBED

OLD: Json = {"cpu": "500m", "memory": "500M"}
DECIDED: Json = {"cpu": "800m", "memory": "600M"}
RESIZE = "/pods/.*/resize$"
STATIC = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'


@pytest.fixture(scope="module", autouse=True)
def remote(plane: ControlPlane, line: Proxy, token: str) -> Iterator[Operator]:
    """An operator that reaches the API server through the proxy."""
    with Operator(plane, line.kubeconfig_for(token), "--log-level", "debug") as running:
        yield running


class Case:
    """A workload whose Hvpa resizes its pods in place, by a VPA alone."""

    def __init__(self, scenario: Scenario, count: int = 2, **changes: Any) -> None:
        self.one = scenario
        self.pods = Pods(scenario)
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
        condition = self.one.await_condition("Ready", "False", "PodsNotResized")
        assert message in condition["message"]
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


@pytest.mark.parametrize("name", [name for name in CASES if name != UNDISTURBED and name not in REFUSED])
def test_after_a_fault_of_each_write_all_are_made(line: Proxy, new_scenario: NewScenario, name: str) -> None:
    """Replicas by `scale`, the size of new pods, and the resizes: each fails once."""
    scenario = new_scenario(changes={**weight(50), **IN_PLACE, "mode": "Paused"})
    case, arm, space = Case(scenario), CASES[name], f"/namespaces/{scenario.namespace}"
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    scenario.soon(lambda: scenario.recommends(4, cpu="1", memory="1G"), "a recommendation")
    assert arm is not None
    faults = [
        arm(line, verb, space + path)
        for verb, path in (("patch", RESIZE), ("patch", "/deployments/.*/scale$"), ("create", "/hvpasizes$"))
    ]
    scenario.change({"mode": "Apply"})
    case.have(*case.names, cpu="1", memory="1G")
    scenario.await_replicas(4)
    size = {f"Deployment.apps/{scenario.name}": f"{scenario.name}; app 1:2 1G:2G"}

    def sizes() -> Json:
        return dict((scenario.api.find("HvpaSizes", "hvpa", scenario.namespace) or {}).get("sizes", {}))

    scenario.soon(lambda: sizes() == size, "the size of new pods")
    for pod in case.names:
        case.pods.resize(pod)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "2/2", "both pods resized")
    scenario.await_ready()
    assert [fault.matcher for fault in faults if fault.hits == 0] == []
    assert scenario.resources()["requests"] == OLD


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
    scenario = case.one
    scenario.api.delete(scenario.kind, scenario.name, scenario.namespace)
    scenario.await_condition("Ready", "False", "TargetNotFound")
    case.recommend()
    scenario.settled()
    for name in case.names:
        assert case.pods.requests(name, **OLD)


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


def test_a_kubelet_that_can_not_lower_a_memory_limit_is_reported_in_its_words(
    new_scenario: NewScenario,
) -> None:
    case = Case(new_scenario(changes=in_place(updateStrategy={"timeout": "2s"})))
    case.recommend()
    case.have(*case.names, **DECIDED)
    case.pods.resize(case.names[0])
    message = "attempting to set pod memory limit below current usage"
    case.pods.report(case.names[1], "PodResizeInProgress", "Error", message)
    case.one.soon(lambda: message in case.one.condition("Ready")["message"], "the kubelet's words")
    case.reports(message, "1/2")


def test_a_pod_without_any_resources_is_reported(new_scenario: NewScenario) -> None:
    """Its QoS class is fixed: the API server refuses the resize, for which it is not asked."""
    case = Case(new_scenario(changes=in_place()), containers=[{"name": "app", "image": "app"}])
    case.recommend()
    case.reports("BestEffort", "0/2")
    sized = {"spec": {"containers": [{"name": "app", "resources": {"requests": DECIDED}}]}}
    with pytest.raises(ApiError, match="QOS"):
        case.one.api.patch(
            "Pod", case.names[0], case.one.namespace, sized, type="strategic", subresource="resize"
        )


def test_a_budget_that_allows_no_disruption_holds_no_resize(case: Case) -> None:
    scenario = case.one
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": scenario.name}}}
    metadata = {"name": scenario.name, "namespace": scenario.namespace}
    scenario.api.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    )
    case.recommend()
    case.have(*case.names, **DECIDED)


def limit(scenario: Scenario) -> None:
    """The namespace may request 1400m of CPU, of which its pods have 1000m."""
    hard = {"requests.cpu": "1400m"}
    metadata = {"name": "quota", "namespace": scenario.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    scenario.api.create(quota)
    scenario.api.patch_status(
        "ResourceQuota", "quota", scenario.namespace, {"hard": hard, "used": {"requests.cpu": "1"}}
    )


def test_a_quota_with_room_for_one_of_two_pods(case: Case) -> None:
    """One pod gets its size; the other keeps what it has, and the pod template is not patched for it."""
    limit(case.one)
    case.recommend()
    resized = [partial(case.pods.requests, name, **DECIDED) for name in case.names]
    case.one.soon(lambda: [check() for check in resized].count(True) == 1, "one resize")
    case.reports("exceeded quota", "0/2")
    assert [case.pods.requests(name, **OLD) for name in case.names].count(True) == 1
    assert case.one.resources()["requests"] == OLD


def test_where_a_quota_has_no_room_for_all_the_template_is_patched(falling: Case) -> None:
    limit(falling.one)
    falling.recommend()
    falling.one.await_requests(**DECIDED)


def test_an_admission_policy_that_refuses_resizes_is_reported_in_its_words(case: Case) -> None:
    with refused_resizes(case, "no resizes on Fridays"):
        case.recommend()
        case.reports("no resizes on Fridays", "0/2")
        assert case.one.resources()["requests"] == OLD
        for name in case.names:
            assert case.pods.requests(name, **OLD)


def test_where_an_admission_policy_refuses_resizes_the_template_is_patched(falling: Case) -> None:
    with refused_resizes(falling, "no resizes on Fridays"):
        falling.recommend()
        falling.one.await_requests(**DECIDED)


@contextmanager
def refused_resizes(case: Case, message: str) -> Iterator[None]:
    """The API server refuses to resize pods of a case's namespace, in these words."""
    api, space = case.one.api, case.one.namespace
    name = f"resizes-{space}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/resize"]}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], **where},
        "validations": [{"expression": "false", "message": message}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    for kind, its in zip(KINDS, (spec, binding), strict=True):
        api.create({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": its})
    path = f"{api.path('Pod', space, case.names[0], 'resize')}?dryRun=All"

    def refusal() -> str:
        try:
            api.raw("PUT", path, case.pods.get(case.names[0]))
        except ApiError as error:
            return error.message
        return ""

    try:
        wait_for(lambda: message in refusal(), IN_FORCE, "the policy in force")
        yield
    finally:
        for kind in reversed(KINDS):
            api.delete(f"{GROUP}/{kind}", name)


NO_CPU = f"{STATIC}: on such a node, only new pods get another CPU size"
NO_MEMORY = "In-place resize of containers with swap is not supported"


def test_a_node_that_resizes_no_cpu_is_named(case: Case) -> None:
    """The pod of another node keeps the size."""
    first, second = case.names
    case.recommend()
    case.have(first, second, **DECIDED)
    case.pods.report(first, "PodResizePending", "Infeasible", STATIC, of_now=True)
    case.pods.resize(second)
    case.have(first, cpu=OLD["cpu"], memory=DECIDED["memory"])
    case.pods.resize(first)
    condition = case.one.await_condition("Ready", "False", "NodeForbidsResize")
    assert condition["message"] == f"pod {first}: {NO_CPU}"


def test_a_node_that_resizes_no_cpu_gets_no_other_cpu_size(case: Case) -> None:
    case.recommend()
    case.have(*case.names, **DECIDED)
    for name in case.names:
        case.pods.report(name, "PodResizePending", "Infeasible", STATIC, of_now=True)
    case.have(*case.names, cpu=OLD["cpu"], memory=DECIDED["memory"])
    for name in case.names:
        case.pods.resize(name)
    case.one.soon(lambda: NO_CPU in case.one.status.get("rolledBack", {}).get("message", ""), "the rollback")
    case.one.vpa_recommends(cpu="650m", memory="700M")
    case.have(*case.names, cpu=OLD["cpu"], memory="700M")
    case.one.await_blocked("RolledBack", "vertical", "up")


def test_with_swap_cpu_is_resized_and_pods_are_replaced_for_their_memory(falling: Case) -> None:
    falling.recommend()
    falling.have(*falling.names, **DECIDED)
    for name in falling.names:
        falling.pods.report(name, "PodResizePending", "Infeasible", f"{NO_MEMORY}.", of_now=True)
    falling.have(*falling.names, cpu=DECIDED["cpu"], memory=OLD["memory"])
    for name in falling.names:
        falling.pods.resize(name)
    falling.one.await_requests(**DECIDED)
