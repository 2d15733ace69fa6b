"""Faults between the operator and the API server: each is followed by convergence, and by no step too many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.etcd import compact
from localcluster.operator.operator import Operator
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario

pytestmark = pytest.mark.usefixtures("remote")
IMAGE = {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}


@pytest.fixture(scope="module")
def remote(plane: ControlPlane, line: Proxy, token: str) -> Iterator[Operator]:
    """An operator that reaches the API server through the proxy."""
    with Operator(plane, line.kubeconfig_for(token), "--log-level", "debug") as running:
        yield running


def patches(line: Proxy, scenario: Scenario) -> list[int]:
    """The codes that patches of a scenario's workload were answered with."""
    path = f"/namespaces/{scenario.namespace}/deployments/{scenario.name}"
    return [
        request.code for request in line.answered if request.verb == "patch" and request.path.endswith(path)
    ]


def test_a_change_between_read_and_write_is_kept_and_decided_upon_afresh(
    line: Proxy, new_scenario: NewScenario
) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    hold = line.hold(verb="patch", path=f"/deployments/{scenario.name}$")
    scenario.hpa_wants(6)
    hold.wait()
    scenario.change_workload({**IMAGE, "replicas": 3}, "rollout-tool")
    hold.release()
    scenario.await_replicas(5)  # 3 + (6 - 3) / 2 rounded up; the first decision was 4
    scenario.soon(
        lambda: patches(line, scenario) == [409, 200], "one write that was refused and one that was not"
    )
    assert scenario.target["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"


def test_the_api_server_is_killed_in_the_middle_of_a_step(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    """One step has been taken before, of one the answer is on its way. Afterwards etcd has forgotten the past as well,
    so that no watch can go on where it was."""
    done, midway = new_scenario(changes=weight(50)), new_scenario(changes=weight(50))
    for scenario in (done, midway):
        scenario.vpa_is_content()
    done.hpa_wants(6)
    done.await_replicas(4)
    # The step is over when the status has it: what comes after the mark would be a second one.
    done.soon(lambda: done.status["axes"]["horizontal"].get("appliedFrom"), "the step in the status")
    mark = plane.audit.mark()
    hold = line.hold(verb="patch", path=f"/deployments/{midway.name}$", answered=True)
    midway.hpa_wants(6)
    hold.wait()
    expired = remote.metric("hvpa_watch_restarts_total", reason="expired")
    midway.vpa_recommends(memory="1G")  # a later revision than any that the watches have seen
    plane.stop_apiserver(graceful=False)
    compact(plane)
    hold.drop()
    plane.start_apiserver()
    other = new_scenario()
    other.scales()
    midway.await_replicas(4)
    midway.soon(lambda: midway.status["axes"]["horizontal"].get("appliedFrom"), "the step in the status")
    midway.soon(lambda: "lastError" not in midway.status, "no error any more")
    assert remote.process.alive
    assert remote.probe("healthz") == 200
    wait_for(lambda: remote.probe("readyz") == 200, 60, "it is ready")
    assert (done.replicas, midway.replicas) == (4, 4)
    requests = plane.audit.requests(mark, user=USER, writes=True, resource="deployments", code=200)
    assert [request.name for request in requests if request.name in (done.name, midway.name)] == [midway.name]
    wait_for(lambda: remote.metric("hvpa_watch_restarts_total", reason="expired") > expired, 60, "a new list")


def test_an_operator_that_starts_while_the_api_server_is_away_waits_for_it(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    scenario = new_scenario()
    remote.kill()
    with line.refused():
        remote.start(wait=False)
        wait_for(
            lambda: any("can't be reached" in str(entry.get("event", "")) for entry in remote.log_lines()),
            60,
            "it says so",
        )
    remote.await_ready()
    scenario.scales()


def test_a_kind_that_cant_be_listed_is_reported_and_tried_again(
    line: Proxy, new_scenario: NewScenario
) -> None:
    line.fail(403, times=None, verb="list", path="/daemonsets$")
    scenario = new_scenario(kind="DaemonSet", changes=VERTICAL_ONLY, create=False)
    scenario.create(wait=False)
    condition = scenario.await_condition("Ready", "False", "TargetUnreadable")
    why = f"DaemonSet {scenario.name} can't be read: the list of daemonsets fails: 403 Forbidden"
    assert condition["message"].startswith(why)
    new_scenario().scales()
    line.clear()
    scenario.await_owned()
    scenario.vpa_recommends(cpu="800m", memory="600M")
    scenario.await_requests(cpu="800m", memory="600M")
