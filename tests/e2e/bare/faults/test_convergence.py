"""Faults between the operator and the API server: each is followed by convergence, and by no step too many."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
WATCHES = 7
"""Hvpas, Deployments, StatefulSets, HPAs, VPAs, pods, sizes of new pods."""
IMAGE = {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}


@pytest.fixture(scope="module")
def remote(plane: ControlPlane, line: Proxy, token: str) -> Iterator[Operator]:
    """An operator that reaches the API server through the proxy."""
    with Operator(plane, line.kubeconfig_for(token), "--log-level", "debug") as running:
        yield running


def patches(line: Proxy, scenario: Scenario) -> list[int]:
    """The codes that patches of a scenario's workload were answered with."""
    path = f"/namespaces/{scenario.namespace}/deployments/{scenario.name}"
    return [seen.code for seen in line.seen if seen.verb == "patch" and seen.path.endswith(path)]


def watching(line: Proxy) -> None:
    wait_for(lambda: len(line.open_watches) == WATCHES, 90, lambda: f"watches, not {line.open_watches}")


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


def test_a_step_that_another_client_took_meanwhile_is_not_taken_again(
    line: Proxy, new_scenario: NewScenario
) -> None:
    scenario = new_scenario(changes=VERTICAL_ONLY)
    hold = line.hold(verb="patch", path=f"/deployments/{scenario.name}$")
    scenario.vpa_recommends(cpu="1")
    hold.wait()
    mine = scenario.set_requests("rollout-tool", cpu="1")
    hold.release()
    scenario.soon(lambda: patches(line, scenario) == [409], "a conflict")
    scenario.await_condition("VpaActive", "True", "Recommending")
    assert patches(line, scenario) == [409]
    assert scenario.target["metadata"]["resourceVersion"] == mine["metadata"]["resourceVersion"]


def test_conflicts_that_repeat_are_reported_while_conditions_go_on(
    line: Proxy, new_scenario: NewScenario
) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    fault = line.fail(409, times=None, verb="patch", path=f"/deployments/{scenario.name}$")
    scenario.hpa_wants(6)
    scenario.await_condition("Ready", "False", "WriteFailed")
    assert scenario.condition("HpaActive")["status"] == "True"
    scenario.await_event("WriteFailed", "PatchWorkload: conflicts repeat")
    assert scenario.replicas == 2
    scenario.vpa_recommends(others={"gone": {"cpu": "1"}}, **scenario.requests)
    scenario.await_condition("VpaActive", "True", "UnknownContainer")
    assert scenario.condition("Ready")["reason"] == "WriteFailed"
    fault.remove()
    scenario.await_replicas(4)
    scenario.soon(lambda: "lastError" not in scenario.status, "no more error")
    assert len(scenario.events("WriteFailed")) == 1


@pytest.mark.parametrize("answered", [False, True], ids=["on its way there", "on its way back"])
def test_one_lost_patch_leads_to_one_step_and_to_no_error(
    line: Proxy, new_scenario: NewScenario, remote: Operator, answered: bool
) -> None:
    """It is sent again at once. Where it had been carried out, that is a conflict, and what is read then says so."""
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    failures = remote.metric("hvpa_write_failures_total", operation="PatchWorkload", outcome="failed")
    hold = line.hold(verb="patch", path=f"/deployments/{scenario.name}$", answered=answered)
    scenario.hpa_wants(6)
    hold.wait()
    hold.drop()
    scenario.await_replicas(4)
    scenario.soon(lambda: scenario.status["axes"]["horizontal"].get("appliedFrom"), "the step in the status")
    scenario.soon(
        lambda: scenario.status["axes"]["horizontal"] == scenario.record["horizontal"], "the same in both"
    )
    generation = scenario.target["metadata"]["generation"]
    assert patches(line, scenario)[: 1 + answered] == ([200, 409] if answered else [200])
    assert 200 not in patches(line, scenario)[1 + answered :]
    scenario.rollout_completes()  # which is looked at once more
    scenario.soon(lambda: scenario.status["replicas"] == 4, "a look at it")
    assert "lastError" not in scenario.status
    assert scenario.condition("Ready")["reason"] != "WriteFailed"
    assert scenario.events("WriteFailed") == []
    assert (scenario.replicas, scenario.target["metadata"]["generation"]) == (4, generation)
    assert remote.metric("hvpa_write_failures_total", operation="PatchWorkload", outcome="failed") == failures


def test_watches_that_are_cut_are_resumed_and_expired_ones_begin_with_a_list(
    line: Proxy, new_scenario: NewScenario
) -> None:
    scenario = new_scenario()
    scenario.scales()
    for end, lists in ((line.cut_watches, 0), (line.expire_watches, WATCHES)):
        watching(line)
        begin = len(line.seen)
        assert end() == WATCHES
        scenario.scales()
        watching(line)
        wait_for(partial(_lists, line, begin, lists), 60, f"{lists} lists")


def _lists(line: Proxy, begin: int, wanted: int) -> bool:
    return sum(seen.verb == "list" for seen in line.seen[begin:]) == wanted


def test_an_expired_resource_version_leads_to_a_new_list(
    line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    scenario = new_scenario()
    watching(line)
    before = remote.metric("hvpa_watch_restarts_total", resource="horizontalpodautoscalers", reason="expired")
    line.fail(410, verb="watch", path="/horizontalpodautoscalers$")
    line.cut_watches()
    scenario.scales()
    after = remote.metric("hvpa_watch_restarts_total", resource="horizontalpodautoscalers", reason="expired")
    assert after == before + 1


def test_what_changes_while_the_watches_are_down_is_seen_afterwards(
    line: Proxy, new_scenario: NewScenario
) -> None:
    scenario = new_scenario()
    watching(line)
    with line.refused():
        scenario.hpa_wants(5)
    scenario.await_replicas(5)


def test_a_429_is_obeyed_for_as_long_as_it_asks(
    line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    scenario = new_scenario()
    path = f"/deployments/{scenario.name}$"
    line.fail(429, verb="patch", path=path, retry_after=2)
    scenario.hpa_wants(6)
    scenario.await_replicas(6)
    first, second = (seen for seen in line.seen if seen.path.endswith(path[:-1]) and seen.verb == "patch")
    assert (first.code, second.code) == (429, 200)
    assert 1.9 < (second.time - first.time).total_seconds() < 30
    assert "lastError" not in scenario.status
    assert remote.metric("hvpa_write_failures_total", outcome="overloaded") >= 1


@pytest.mark.parametrize("code", [500, 503])
def test_a_write_that_fails_is_reported_in_the_status_tried_again_and_then_forgotten(
    line: Proxy, new_scenario: NewScenario, code: int
) -> None:
    scenario, other = new_scenario(), new_scenario()
    fault = line.fail(code, times=None, verb="patch", path=f"/deployments/{scenario.name}$")
    scenario.hpa_wants(6)
    error = scenario.soon(lambda: scenario.status.get("lastError"), "lastError") or {}
    assert error["lastOperation"] == "PatchWorkload"
    assert f"fault {code}" in error["description"]
    scenario.soon(lambda: fault.hits >= 3, "further tries")
    other.scales()
    assert scenario.replicas == 2
    fault.remove()
    scenario.await_replicas(6)
    scenario.soon(lambda: "lastError" not in scenario.status, "no error any more")


def test_a_failure_of_any_other_write_is_made_good(line: Proxy, new_scenario: NewScenario) -> None:
    """Status, scale_replicas, owned objects and Events, each refused once."""
    scenario = new_scenario(create=False)
    paths = (
        "/hvpas/[^/]+/status$",
        "/hvpas/[^/]+$",
        "/horizontalpodautoscalers/",
        "/verticalpodautoscalers/",
    )
    faults = [line.fail(500, verb="patch", path=path) for path in paths]
    faults.append(line.fail(500, verb="create", path="/events$"))
    scenario.create()
    scenario.scales()
    scenario.vpa_recommends(cpu="1")
    scenario.await_blocked("Weight", "vertical")
    scenario.soon(lambda: "lastError" not in scenario.status, "no error any more")
    scenario.soon(lambda: all(fault.hits == fault.times for fault in faults), "that every fault has hit")
    assert 1 <= scenario.hvpa["spec"]["replicas"] <= 10


def test_lists_and_watches_that_fail_are_tried_again(
    line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    remote.restart()  # its back-off has grown by what the other tests did
    scenario = new_scenario()
    watching(line)
    line.fail(503, times=2, verb="watch", path="/horizontalpodautoscalers$", retry_after=1)
    line.fail(500, times=2, verb="list", path="/verticalpodautoscalers$")
    line.fail(429, times=1, verb="list", path="/pods$", retry_after=1)
    line.expire_watches()
    scenario.scales()
    watching(line)


@pytest.mark.parametrize("graceful", [True, False], ids=["in order", "by SIGKILL"])
def test_the_api_server_is_restarted_in_the_middle_of_a_step(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, remote: Operator, graceful: bool
) -> None:
    """One step has been taken before, of one the answer (or, in order, the request) is on its way. After a SIGKILL etcd
    has forgotten the past as well, so that no watch can go on where it was."""
    done, midway = new_scenario(changes=weight(50)), new_scenario(changes=weight(50))
    for scenario in (done, midway):
        scenario.vpa_is_content()
    done.hpa_wants(6)
    done.await_replicas(4)
    # The step is over when the status has it: what comes after the mark would be a second one.
    done.soon(lambda: done.status["axes"]["horizontal"].get("appliedFrom"), "the step in the status")
    mark = plane.audit.mark()
    hold = line.hold(verb="patch", path=f"/deployments/{midway.name}$", answered=not graceful)
    midway.hpa_wants(6)
    hold.wait()
    expired = remote.metric("hvpa_watch_restarts_total", reason="expired")
    if graceful:  # it stops listening, and serves the watches for a minute: we end it sooner
        plane.processes["kube-apiserver"].terminate(3)
    else:
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
    assert [one.name for one in requests if one.name in (done.name, midway.name)] == [midway.name]
    if not graceful:
        wait_for(
            lambda: remote.metric("hvpa_watch_restarts_total", reason="expired") > expired, 60, "a new list"
        )


def test_an_operator_that_starts_while_the_api_server_is_away_waits_for_it(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, remote: Operator
) -> None:
    scenario = new_scenario()
    remote.kill()
    with line.refused():
        remote.start(wait=False)
        wait_for(
            lambda: any("can't be reached" in str(one.get("event", "")) for one in remote.log_lines()),
            60,
            "it says so",
        )
    remote.await_ready()
    scenario.scales()


def test_a_kind_that_cant_be_listed_is_reported_and_tried_again(
    line: Proxy, new_scenario: NewScenario
) -> None:
    """Comes last: the operator watches one kind more afterwards."""
    line.fail(403, times=None, verb="list", path="/daemonsets$")
    one = new_scenario(kind="DaemonSet", changes=VERTICAL_ONLY, create=False)
    one.create(wait=False)
    found = one.await_condition("Ready", "False", "TargetUnreadable")
    why = f"DaemonSet {one.name} can't be read: the list of daemonsets fails: 403 Forbidden"
    assert found["message"].startswith(why)
    new_scenario().scales()
    line.clear()
    one.await_owned()
    one.vpa_recommends(cpu="800m", memory="600M")
    one.await_requests(cpu="800m", memory="600M")
