"""`hvpa report -f`: what is reported of workloads, with and without Hvpas, is what `hvpa.core` decides."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.schema import DOCS
from tests.unit.cli.support import DATA, NOW, Doc, Shell, changed, load, with_fields, without
from tests.unit.lab.report.documents import AGENT, AGENT_VPA, CANARY, ROLLOUT, of, reported


def hvpa(blend: str, kind: str, name: str, *, weight: float | None = 0.5, **parts: Any) -> Doc:
    """An Hvpa that only looks at a workload of the shop, as a user would write it."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    spec: Doc = {"mode": "Recommend", "blend": blend, "targetRef": target, **parts}
    if weight is not None:
        spec["weightBasedScalingIntervals"] = [{"vpaWeight": weight}]
    meta = {"name": f"{name}-{blend.lower()}", "namespace": "shop"}
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": meta, "spec": spec}


def recommended(view: Any) -> Any:
    """What a blend recommends, as `hvpa explain` has it."""
    return {key: view["recommended"][key] for key in ("replicas", "containers")}


# --- the table -------------------------------------------------------------------------------------------------------
def test_the_table_of_a_namespace(shell: Shell) -> None:
    ran = shell.run("report", "-f", str(DATA / "shop.yaml"), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (DATA / "shop.txt").read_text()


def test_the_page_in_docs_shows_this_table() -> None:
    assert (DATA / "shop.txt").read_text() in (DOCS / "report.md").read_text()


@pytest.mark.parametrize("name", ["gardener.yaml", "trajectory.yaml"])
def test_a_report_follows_the_schema_and_the_default_prices(shell: Shell, name: str) -> None:
    prices = reported(shell, load(name))["prices"]
    assert prices == {"coreHour": 0.031611, "gibHour": 0.004237, "hoursPerMonth": 730, "currency": ""}


def test_what_others_wrote_moves_no_cursor(shell: Shell, shop: list[Doc]) -> None:
    message = {"status.conditions.0.message": "\x1b[2Jred\u202e"}
    path = shell.file(with_fields(shop, "HPA", "keda-hpa-database", message))
    for output in ("text", "json"):
        assert shell.run("report", "-f", path, "-o", output).out.replace("\n", "").isprintable()


def test_no_line_is_wider_than_100_columns(shell: Shell, shop: list[Doc]) -> None:
    long = "w" * 60
    documents = with_fields(shop, "Deployment", "web", {"metadata.name": long})
    fields = {"spec.scaleTargetRef.name": long, "spec.maxReplicas": 6}
    documents = with_fields(documents, "HPA", "web", fields)
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW)
    assert max(map(len, ran.out.splitlines())) <= 100


def test_the_largest_difference_in_money_comes_first_up_or_down(shell: Shell, shop: list[Doc]) -> None:
    def names(*flags: str) -> list[str]:
        return [workload["name"] for workload in reported(shell, shop, *flags)["workloads"]]

    assert names() == ["web", "worker", "database"]
    assert names("--cpu-price", "0") == ["worker", "web", "database"]


# --- the decision is the operator's ----------------------------------------------------------------------------------
@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@pytest.mark.parametrize(
    ("kind", "name", "weight", "parts"),
    [
        ("Deployment", "web", 0.5, {"hpa": {"name": "web"}, "vpa": {"name": "web"}}),
        ("StatefulSet", "worker", None, {"vpa": {"name": "worker"}}),
        ("Deployment", "database", None, {"hpa": {"name": "keda-hpa-database"}}),
    ],
)
def test_without_an_hvpa_it_is_what_an_hvpa_that_only_looks_would_recommend(
    shell: Shell, shop: list[Doc], blend: str, kind: str, name: str, weight: float | None, parts: Doc
) -> None:
    written = hvpa(blend, kind, name, weight=weight, **parts)
    explained = shell.explain([*shop, written])
    view = of(reported(shell, shop), name)["blends"][blend]
    assert recommended(view) == explained["recommended"]
    assert view["own"] is False


def test_with_an_hvpa_it_is_what_that_recommends(shell: Shell, gardener: list[Doc]) -> None:
    (workload,) = reported(shell, gardener)["workloads"]
    assert recommended(workload["blends"]["Additive"]) == shell.explain(gardener)["recommended"]
    trajectory = shell.explain(changed(gardener, Hvpa__spec__blend="Trajectory"))
    assert recommended(workload["blends"]["Trajectory"]) == trajectory["recommended"]
    own = {name: blend["own"] for name, blend in workload["blends"].items()}
    assert own == {"Additive": True, "Trajectory": False}
    assert workload["hvpas"] == [{"name": "hvpa-sample", "mode": "Apply"}]


def test_the_other_blend_remembers_no_step_of_the_present_one(shell: Shell, gardener: list[Doc]) -> None:
    replaced = {"Hvpa__spec__updateStrategy": {"type": "Rollout"}}
    joint = changed(gardener, Hvpa__spec__blend="Trajectory", **replaced)
    explained = shell.explain(joint)
    last = {"Deployment__metadata__annotations": explained["patch"]["metadata"]["annotations"]}
    stepped = changed(joint, Hvpa__status=explained["nextStatus"], **last)
    additive = reported(shell, stepped)["workloads"][0]["blends"]["Additive"]
    assert recommended(additive) == shell.explain(gardener)["recommended"]


def test_a_path_that_is_written_out_has_the_weight_of_the_flag_when_steps_are_added(
    shell: Shell, gardener: list[Doc]
) -> None:
    intervals = [{"maxReplicas": 10, "maxResources": {"cpu": "4", "memory": "8Gi"}}]
    path = {"Hvpa__spec__trajectory": {"intervals": intervals}}
    written = changed(gardener, Hvpa__spec__weightBasedScalingIntervals=None, **path)
    by_weight = changed(gardener, Hvpa__spec__weightBasedScalingIntervals=[{"vpaWeight": 0.25}])
    blends = reported(shell, written, "--vpa-weight", "25")["workloads"][0]["blends"]
    assert recommended(blends["Additive"]) == shell.explain(by_weight)["recommended"]
    assert recommended(blends["Trajectory"]) == shell.explain(written)["recommended"]
    assert (blends["Additive"]["own"], blends["Trajectory"]["own"]) == (False, True)


def test_each_blend_is_that_of_its_own_hvpa_and_one_in_mode_apply_counts_first(
    shell: Shell, gardener: list[Doc]
) -> None:
    looks = changed(gardener, Hvpa__spec__mode="Recommend", Hvpa__metadata__name="a-second")
    second = changed(looks, Hvpa__spec__blend="Trajectory")[0]
    third = changed(looks, Hvpa__metadata__name="a-third", Hvpa__spec__weightBasedScalingIntervals=None)[0]
    (workload,) = reported(shell, [*gardener, second, third])["workloads"]
    assert [hvpa["name"] for hvpa in workload["hvpas"]] == ["hvpa-sample", "a-second", "a-third"]
    assert [blend["own"] for blend in workload["blends"].values()] == [True, True]
    assert recommended(workload["blends"]["Additive"]) == shell.explain(gardener)["recommended"]


def test_nothing_is_decided_where_two_hvpas_would_apply(shell: Shell, gardener: list[Doc]) -> None:
    rival = changed(gardener, Hvpa__metadata__name="rival")[0]
    report = reported(shell, [*gardener, rival])
    (workload,) = report["workloads"]
    for view in workload["blends"].values():
        assert view["recommended"] is view["difference"] is None
        assert "is also the target of Hvpa" in view["why"]
    assert workload["risks"][0]["reason"] == "TargetShared"
    assert report["totals"]["blends"]["Additive"] == report["totals"]["current"]
    text = shell.run("report", "-f", shell.file([*gardener, rival]))
    assert "  Additive: not decided: Deployment resource-consumer is also the target" in text.out


# --- weights and prices ----------------------------------------------------------------------------------------------
def test_the_weight_is_a_percentage_even_where_it_is_1(shell: Shell, shop: list[Doc]) -> None:
    def pods(weight: str) -> int:
        blends = of(reported(shell, shop, "--vpa-weight", weight), "web")["blends"]
        return int(blends["Additive"]["recommended"]["replicas"])

    assert (pods("0"), pods("1"), pods("50"), pods("100")) == (9, 9, 8, 6)


def test_money_is_requests_at_the_prices_that_are_given(shell: Shell, shop: list[Doc]) -> None:
    report = reported(shell, shop, "--cpu-price", "0.03", "--memory-price", "0.004")
    web = of(report, "web")
    # 6 pods of 500m and 1Gi: 730 x (3 x 0.03 + 6 x 0.004)
    assert web["current"]["total"] == {"cores": 3.0, "memoryGib": 6.0, "costPerMonth": 83.22}
    assert report["prices"] == {"coreHour": 0.03, "gibHour": 0.004, "hoursPerMonth": 730, "currency": ""}
    for blend in ("Additive", "Trajectory"):
        difference = web["blends"][blend]["difference"]["costPerMonth"]
        total = web["blends"][blend]["recommended"]["total"]["costPerMonth"]
        assert difference == pytest.approx(total - 83.22, abs=0.011)


def test_what_costs_nothing_differs_by_nothing(shell: Shell, shop: list[Doc]) -> None:
    ran = shell.run("report", "-f", shell.file(shop), "--now", NOW, "--cpu-price", "0", "--memory-price", "0")
    assert "-0.00" not in ran.out


# --- what is not in the table ----------------------------------------------------------------------------------------
def test_what_has_no_recommender_and_what_points_nowhere_is_listed(shell: Shell, shop: list[Doc]) -> None:
    astray = with_fields(shop, "VPA", "worker", {"spec.targetRef.name": "nobody"})
    report = reported(shell, astray)
    assert [workload["name"] for workload in report["withoutRecommender"]] == ["cache", "worker"]
    assert {omission["name"]: omission["why"] for omission in report["leftOut"]} == {
        "canary": "its target Rollout canary does not exist",
        "worker": "its target StatefulSet nobody does not exist",
    }


def rows(report: Any) -> dict[tuple[str, str], tuple[int, float]]:
    """Replicas and cores that each workload has now."""
    return {
        (workload["kind"], workload["name"]): (
            workload["current"]["replicas"],
            workload["current"]["total"]["cores"],
        )
        for workload in report["workloads"]
    }


@pytest.mark.parametrize("pods", [CANARY[1:], []], ids=["with its pods", "without pods"])
def test_workloads_of_all_kinds_are_in_the_table(shell: Shell, shop: list[Doc], pods: list[Doc]) -> None:
    report = reported(shell, [*shop, AGENT, AGENT_VPA, ROLLOUT, *pods])
    assert rows(report)["DaemonSet", "agent"] == (4, 2.0)
    assert rows(report)["Rollout", "canary"] == (3, 1.5)
    assert report["leftOut"] == []
    (rollout,) = (workload for workload in report["workloads"] if workload["kind"] == "Rollout")
    assert all(blend["recommended"] is not None for blend in rollout["blends"].values()), (
        "its pods are resized"
    )
    assert "UnsupportedTarget" not in {risk["reason"] for risk in rollout["risks"]}


def test_a_workload_of_a_custom_kind_alone_is_one_without_a_recommender(shell: Shell) -> None:
    (without,) = reported(shell, [ROLLOUT])["withoutRecommender"]
    assert (without["kind"], without["name"]) == ("Rollout", "canary")


def test_a_deployments_replica_sets_are_not_listed(shell: Shell, shop: list[Doc]) -> None:
    old: Doc = {**AGENT, "kind": "ReplicaSet", "spec": {**AGENT["spec"], "replicas": 0}}
    assert reported(shell, [*shop, old]) == reported(shell, shop)


def test_where_nothing_recommends_the_table_is_empty(shell: Shell, shop: list[Doc]) -> None:
    ran = shell.run("report", "-f", shell.file(without(shop, "HPA", "VPA")), "--now", NOW)
    assert "No workload has an HPA, a VPA or an Hvpa." in ran.out
    assert "All " not in ran.out
    assert "No recommender (4;" in ran.out


def test_one_workload_is_not_called_all(shell: Shell, gardener: list[Doc]) -> None:
    ran = shell.run("report", "-f", shell.file(gardener), "--now", NOW)
    assert "This workload" in ran.out
    assert "Deployment default/resource-consumer (Hvpa hvpa-sample: Additive, mode Apply" in ran.out


def test_a_workload_that_is_going_is_none(shell: Shell, shop: list[Doc]) -> None:
    going = with_fields(shop, "Deployment", "web", {"metadata.deletionTimestamp": NOW})
    assert [workload["name"] for workload in reported(shell, going)["workloads"]] == ["worker", "database"]


def test_workloads_of_several_namespaces_are_kept_apart(shell: Shell, shop: list[Doc]) -> None:
    there = [{**document, "metadata": {**document["metadata"], "namespace": "market"}} for document in shop]
    report = reported(shell, [*shop, *there])
    assert {(workload["namespace"], workload["name"]) for workload in report["workloads"]} == {
        (namespace, name) for namespace in ("shop", "market") for name in ("web", "worker", "database")
    }
    assert report["totals"]["current"]["cores"] == 2 * reported(shell, shop)["totals"]["current"]["cores"]


def test_documents_without_a_namespace_are_in_the_one_that_is_given(shell: Shell, shop: list[Doc]) -> None:
    nowhere = [
        changed([document], **{f"{document['kind']}__metadata__namespace": None})[0] for document in shop
    ]
    assert {workload["namespace"] for workload in reported(shell, nowhere)["workloads"]} == {"default"}
    assert {workload["namespace"] for workload in reported(shell, nowhere, "-n", "market")["workloads"]} == {
        "market"
    }


def test_a_workload_written_by_hand_counts_as_rolled_out(shell: Shell, shop: list[Doc]) -> None:
    bare = with_fields(shop, "Deployment", "web", {"status": None})
    reasons = [risk["reason"] for risk in of(reported(shell, bare), "web")["risks"]]
    assert "RolloutIncomplete" not in reasons
    assert recommended(of(reported(shell, bare), "web")["blends"]["Additive"])["replicas"] == 8


# --- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-f", "x.yaml", "-A"), "can't be used with -f"),
        (("-f", "x.yaml", "--kubeconfig", "x"), "can't be used with -f"),
        (("-f", "x.yaml", "--context", "x"), "can't be used with -f"),
        (("-n", "shop", "-A"), "not both"),
        (("--vpa-weight", "101"), "'101' is not a percentage from 0 to 100"),
        (("--vpa-weight", "0.5"), "'0.5' is not a whole number of at least 0"),
        (("web",), "unrecognized arguments: web"),
    ],
)
def test_a_wrong_command_line_exits_2(shell: Shell, flags: tuple[str, ...], message: str) -> None:
    assert message in shell.refuses("report", *flags, code=2)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "free", ""])
def test_a_price_is_a_number_from_zero_on(shell: Shell, text: str) -> None:
    error = shell.refuses("report", f"--cpu-price={text}", code=2)
    assert f"{text!r} is not a price: a number of at least 0" in error


def test_files_without_a_workload_exit_1(shell: Shell, shop: list[Doc]) -> None:
    path = shell.file(without(shop, "Deployment", "StatefulSet"))
    error = f"hvpa: error: no workload in {path}\n"
    assert shell.refuses("report", "-f", path) == error


def test_an_invalid_hvpa_of_a_file_is_skipped_with_one_line(shell: Shell, gardener: list[Doc]) -> None:
    ran = shell.run("report", "-f", shell.file(changed(gardener, Hvpa__spec__mode="Sometimes")))
    (line,) = ran.err.splitlines()
    assert "Hvpa hvpa-sample: spec.mode" in line
    assert ran.code == 0
    assert "resource-consumer" in ran.out
