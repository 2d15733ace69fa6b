"""`hvpa report` on a cluster: one list of each kind, with and without the CRDs, and what it says where a right is
missing."""

from __future__ import annotations

import pytest

from tests.unit.cli.api_server import NEXT_VERSION, PLURALS, Api
from tests.unit.cli.support import NOW, Doc, Live, Shell, with_fields, without
from tests.unit.lab.report.documents import AGENT, AGENT_VPA, CANARY, STALE, reported

HVPA_API, VPA_API = "/apis/autoscaling.k8s.io/v1alpha1", "/apis/autoscaling.k8s.io/v1"


@pytest.fixture
def report(live: Live) -> Live:
    """Reports on what the server has."""
    return lambda *flags: live("report", "--now", NOW, "-o", "json", *flags)


def test_the_live_objects_are_reported_as_files_are(
    shell: Shell, report: Live, api: Api, shop: list[Doc]
) -> None:
    shop = with_fields(shop, "VPA", "web", STALE)
    api.put(shop, "shop")
    api.serve_rollouts()
    ran = report("-n", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == reported(shell, shop)
    assert "RecommendationStale" in ran.out
    lists = [(plural, "list") for plural in (*PLURALS.values(), "podmetrics")]
    scale = [("/apis/argoproj.io/v1alpha1", "discovery"), ("rollouts", "get")]
    assert sorted(api.asked) == sorted([*lists, *scale, ("/api/v1", "discovery")])


def test_other_kinds_are_read_where_something_names_them(report: Live, api: Api, shop: list[Doc]) -> None:
    api.put([*shop, AGENT, AGENT_VPA, *CANARY], "shop")
    api.serve_rollouts()
    answer = report("-n", "shop").json
    rows = {
        (workload["kind"], workload["name"]): workload["current"]["replicas"]
        for workload in answer["workloads"]
    }
    assert rows["DaemonSet", "agent"] == 4
    assert rows["Rollout", "canary"] == 3
    assert answer["leftOut"] == []
    assert ("replicasets", "list") not in api.asked


@pytest.mark.parametrize(
    ("plural", "why"),
    [
        ("daemonsets", "its target DaemonSet agent: no right to list daemonsets"),
        ("rollouts", "its target Rollout canary: its scale can't be read: no rollouts for you"),
    ],
)
def test_a_kind_that_may_not_be_read_is_left_out_and_ends_nothing(
    report: Live, api: Api, shop: list[Doc], plural: str, why: str
) -> None:
    api.put([*shop, AGENT, AGENT_VPA, *CANARY], "shop")
    api.serve_rollouts()
    api.fail[plural] = 403
    ran = report("-n", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert [omission["why"] for omission in ran.json["leftOut"]] == [why]


def test_a_server_that_fails_for_another_kind_ends_the_report(
    report: Live, api: Api, shop: list[Doc]
) -> None:
    api.put([*shop, AGENT, AGENT_VPA], "shop")
    api.serve_rollouts()
    api.fail["daemonsets"] = 500
    assert report("-n", "shop").code == 3


def test_all_namespaces_or_that_of_the_context(report: Live, api: Api, shop: list[Doc]) -> None:
    api.put(shop, "shop")
    api.put(shop, "market")

    def found(*flags: str) -> set[str]:
        return {workload["namespace"] for workload in report(*flags).json["workloads"]}

    assert (found("-A"), found("--context", "shop"), found()) == ({"shop", "market"}, {"shop"}, set())


@pytest.mark.parametrize("code", [404, 403])
def test_without_the_crds_it_works_whatever_rights_there_are(
    report: Live, api: Api, shop: list[Doc], code: int
) -> None:
    api.put(without(shop, "VPA"), "shop")
    api.fail = {"hvpas": code, "verticalpodautoscalers": code}
    api.unserved = {HVPA_API, VPA_API}
    ran = report("-n", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert {workload["name"] for workload in ran.json["workloads"]} == {"web", "database"}


@pytest.mark.parametrize("code", [404, 403])
def test_hvpas_of_another_version_are_not_taken_for_absent(
    report: Live, api: Api, shop: list[Doc], code: int
) -> None:
    api.put(shop, "shop")
    api.serve_next_version()
    api.fail["hvpas"] = code
    ran = report("-n", "shop")
    assert (ran.code, ran.out, NEXT_VERSION in ran.err) == (1, "", True), ran.err


@pytest.mark.parametrize("plural", PLURALS.values())
def test_a_missing_right_is_reported_with_its_resource(
    report: Live, api: Api, shop: list[Doc], plural: str
) -> None:
    api.put(shop, "shop")
    api.fail = {plural: 403}
    ran = report("-n", "shop")
    error = f"hvpa: error: no right to list {plural}: no {plural} for you; hvpa report needs the verb list"
    assert (ran.code, ran.err) == (1, f"{error}\n")
    assert report("-A").err == f"{error}, or -n NAMESPACE for a single namespace\n"


@pytest.mark.parametrize(("code", "exit_code"), [(401, 3), (500, 3), (400, 1)])
def test_other_answers_are_reported(report: Live, api: Api, code: int, exit_code: int) -> None:
    api.fail = {"pods": code}
    ran = report()
    assert ran.code == exit_code
    assert f"responds {code}: no pods for you" in ran.err


def test_discovery_that_fails_is_reported(report: Live, api: Api) -> None:
    api.fail = {"hvpas": 403}
    api.discovered[HVPA_API] = (500, b'{"message": "out of order"}')
    ran = report()
    assert (ran.code, "out of order" in ran.err) == (3, True)
    api.discovered[HVPA_API] = (200, b"[")
    ran = report()
    assert ran.code == 3
    assert f"{HVPA_API} can't be read" in ran.err


def test_a_group_that_serves_other_things_serves_no_hvpas(report: Live, api: Api) -> None:
    api.fail = {"hvpas": 403}
    api.discovered[HVPA_API] = (200, b'{"resources": [{"name": "verticalpodautoscalers"}]}')
    assert report().code == 0


def test_a_spec_that_the_server_should_have_refused_is_reported(
    live: Live, report: Live, api: Api, gardener: list[Doc]
) -> None:
    api.put(with_fields(gardener, "Hvpa", "hvpa-sample", {"spec.mode": "Sometimes"}))
    ran = report()
    assert ran.code == 0
    (workload,) = ran.json["workloads"]
    assert workload["hvpas"] == [{"name": "hvpa-sample", "mode": None}]
    assert workload["risks"][0]["reason"] == "InvalidSpec"
    assert workload["blends"]["Additive"]["recommended"] is None
    text = live("report").out
    assert "Deployment default/resource-consumer (Hvpa hvpa-sample, VPA hvpa-sample)" in text


def test_an_object_that_can_not_be_read_is_left_out(report: Live, api: Api, shop: list[Doc]) -> None:
    api.put(shop, "shop")
    api.objects["shop", "pods"] = [{"metadata": {"name": "x", "namespace": "shop"}, "spec": 3}]
    for flags in (("-n", "shop"), ("-A",)):
        ran = report(*flags)
        assert (ran.code, len(ran.json["workloads"])) == (0, 3)
        left_out = {
            omission["name"]: omission["why"] for omission in ran.json["leftOut"] if omission["kind"] == "Pod"
        }
        assert left_out == {"x": "it can't be read: Expected `object`, got `int` - at `$.spec`"}
