"""HvpaPolicy and ClusterHvpaPolicy on a real API server. (That their Hvpas go with them: `tests/e2e/full`.)"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, Operator, install_policies
from localcluster.workloads.bare_manifests import deployment
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.conftest import USER, Start

API = "autoscaling.k8s.io/v1alpha1"
POLICY, CLUSTER_POLICY = f"{API}/HvpaPolicy", f"{API}/ClusterHvpaPolicy"
FROM_POLICY = "hvpa.autoscaling.k8s.io/from-policy"
TEMPLATE: Json = {
    "hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 5}}},
    "vpa": {"deploy": True},
    "blend": "Trajectory",
}


@pytest.fixture(scope="module", autouse=True)
def operator(plane: ControlPlane, account: object) -> Iterator[Operator]:
    install_policies(plane)
    with Operator(plane, account, "--policies", "--lease-namespace", NAMESPACE) as running:  # type: ignore[arg-type]
        yield running


def policy(name: str, namespace: str = "", **spec: object) -> Json:
    kind = "HvpaPolicy" if namespace else "ClusterHvpaPolicy"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": {"template": TEMPLATE, **spec}}


def workload(plane: ControlPlane, name: str, space: str, kind: str = "Deployment", **labels: str) -> Json:
    manifest = deployment(name, space, kind=kind)
    manifest["metadata"]["labels"] = labels
    return plane.api.create(manifest)


def hvpas(plane: ControlPlane, space: str) -> dict[str, str]:
    """Mode of the Hvpas that policies made, by name."""
    found = plane.api.list(f"{API}/Hvpa", space, FROM_POLICY)
    return {each["metadata"]["name"]: each["spec"]["mode"] for each in found}


def await_hvpas(plane: ControlPlane, space: str, **modes: str) -> None:
    wanted = {name.replace("_", "-"): mode for name, mode in modes.items()}
    wait_for(lambda: hvpas(plane, space) == wanted, 30, lambda: f"{hvpas(plane, space)} instead of {wanted}")


def await_condition(plane: ControlPlane, made: Json, kind: str, status: str, reason: str) -> Json:
    meta = made["metadata"]
    which = f"{API}/{made['kind']}"

    def condition() -> Json | None:
        status_of = plane.api.get(which, meta["name"], meta.get("namespace")).get("status", {})
        found = [each for each in status_of.get("conditions", ()) if each["type"] == kind]
        return found[0] if found and (found[0]["status"], found[0]["reason"]) == (status, reason) else None

    found = wait_for(condition, 30, lambda: str(plane.api.get(which, meta["name"], meta.get("namespace"))))
    assert found is not None
    return found


def await_field(plane: ControlPlane, kind: str, name: str, space: str, path: str, wanted: object) -> None:
    def present() -> object:
        found = plane.api.get(kind, name, space or None)
        for field in path.split("."):
            found = found.get(field, {})
        return found

    wait_for(lambda: present() == wanted, 30, lambda: f"{path} is {present()} instead of {wanted}")


def writes(plane: ControlPlane, space: str, mark: object) -> list[str]:
    """The writes to Hvpas and policies of a namespace since the mark, other than to Hvpas' statuses."""
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=space)  # type: ignore[arg-type]
    return [
        str(request)
        for request in requests
        if request.resource == "hvpapolicies" or (request.resource == "hvpas" and not request.subresource)
    ]


def test_each_workload_gets_an_hvpa_except_where_somebody_wrote_one(
    plane: ControlPlane, space: str, start: Start
) -> None:
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        workload(plane, kind.lower(), space, kind)
    workload(plane, "written", space)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "written"}
    own = {"targetRef": reference, "mode": "Recommend", "vpa": {"deploy": True}}
    metadata = {"name": "mine", "namespace": space}
    written = plane.api.create({"apiVersion": API, "kind": "Hvpa", "metadata": metadata, "spec": own})
    made = plane.api.create(
        policy("team", space, workloads={"kinds": ["Deployment", "StatefulSet", "DaemonSet"]})
    )
    await_hvpas(plane, space, deployment="Recommend", statefulset="Recommend", daemonset="Recommend")
    await_condition(plane, made, "Ready", "True", "UpToDate")
    hvpa = plane.api.get(f"{API}/Hvpa", "deployment", space)
    assert hvpa["metadata"]["labels"] == {FROM_POLICY: "team"}
    (owner,) = hvpa["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("HvpaPolicy", made["metadata"]["uid"], True)
    assert hvpa["spec"]["targetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment"}
    columns = plane.api.columns(POLICY, "team", space)
    assert (columns["SELECTED"], columns["HVPAS"], columns["UP-TO-DATE"]) == ("4", "3", "3")
    assert plane.api.get(f"{API}/Hvpa", "mine", space)["spec"] == written["spec"]
    mark = plane.audit.mark()
    start("--policies", "--namespace", space)  # a restarted operator finds nothing to write
    time.sleep(3)
    assert writes(plane, space, mark) == []
    # One opts out, one is gone, and one is taken over.
    plane.api.patch("apps/v1/StatefulSet", "statefulset", space, noted(**{"opt-out": "true"}))
    plane.api.delete("apps/v1/DaemonSet", "daemonset", space)
    await_hvpas(plane, space, deployment="Recommend")
    plane.api.patch(f"{API}/Hvpa", "deployment", space, {"metadata": {"labels": {FROM_POLICY: None}}})
    wait_for(lambda: "ownerReferences" not in plane.api.get(f"{API}/Hvpa", "deployment", space)["metadata"])


def noted(**values: str | None) -> Json:
    return {
        "metadata": {
            "annotations": {f"hvpa.autoscaling.k8s.io/{key}": value for key, value in values.items()}
        }
    }


def test_a_change_reaches_so_many_at_a_time_and_leaves_edited_hvpas_alone(
    plane: ControlPlane, space: str
) -> None:
    for name in "abcd":
        workload(plane, name, space)
    made = plane.api.create(policy("team", space, rollout={"maxConcurrent": 1}))
    await_hvpas(plane, space, a="Recommend", b="Recommend", c="Recommend", d="Recommend")
    plane.api.patch(f"{API}/Hvpa", "b", space, {"spec": {"blend": "Additive"}})
    mark = plane.audit.mark()
    plane.api.patch(
        POLICY,
        "team",
        space,
        {"spec": {"template": {"vpa": None, "hpa": {"scaleUp": {"maxStep": {"factor": 2}}}}}},
    )
    found = await_condition(plane, made, "Ready", "False", "Edited")
    assert found["message"].endswith(f"{space}/b")
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=space, resource="hvpas")
    updates = [
        index
        for index, request in enumerate(requests)
        if "ownerReferences" in request.body["metadata"] and request.code < 300
    ]
    assert [requests[index].name for index in updates] == ["a", "c", "d"]
    between = requests[updates[0] : updates[1]]
    assert [each for each in between if (each.name, each.subresource) == ("a", "status")], "c waited for a"
    spec = plane.api.get(f"{API}/Hvpa", "a", space)["spec"]
    assert "vpa" not in spec
    assert spec["hpa"]["scaleUp"]["maxStep"]["factor"] == 2
    assert spec["replicas"] >= 1


def test_a_change_during_a_rollout_reaches_no_other_workload(plane: ControlPlane, space: str) -> None:
    """Here no controller makes pods, so a workload that may change keeps the others waiting."""
    for name in "ab":
        workload(plane, name, space)
    made = plane.api.create(policy("team", space, stage="Apply", rollout={"maxConcurrent": 1}))
    await_hvpas(plane, space, a="Apply", b="Recommend")
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    complete = {**dict.fromkeys(counts, 2), "observedGeneration": 1}
    plane.api.patch_status("apps/v1/Deployment", "b", space, complete)

    def rolling() -> str:
        return str(await_condition(plane, made, "Ready", "False", "RollingOut")["message"])

    for step in (2, 3):
        change = {"spec": {"template": {"hpa": {"scaleUp": {"maxStep": {"factor": step}}}}}}
        generation = plane.api.patch(POLICY, "team", space, change)["metadata"]["generation"]
        await_field(plane, f"{API}/Hvpa", "a", space, "spec.hpa.scaleUp.maxStep.factor", step)
        await_field(plane, POLICY, "team", space, "status.observedGeneration", generation)
        wait_for(lambda: rolling().endswith("waiting for a"), 30, rolling)
        await_hvpas(plane, space, a="Apply", b="Recommend")


def test_notes_that_somebody_broke_stop_no_other_policy(plane: ControlPlane, space: str) -> None:
    other = new_namespace(plane.api)
    for where in (space, other):
        workload(plane, "web", where)
        plane.api.create(policy("team", where))
        await_hvpas(plane, where, web="Recommend")
    plane.api.patch(f"{API}/Hvpa", "web", space, noted(**{"from-policy-size": f"{9:0>5000} 1"}))
    workload(plane, "second", other)
    await_hvpas(plane, other, web="Recommend", second="Recommend")
    plane.api.patch(f"{API}/Hvpa", "web", space, noted(**{"from-policy-spec": 20_000 * "["}))
    workload(plane, "third", other)
    await_hvpas(plane, other, web="Recommend", second="Recommend", third="Recommend")


def test_the_longest_names_have_hvpas_and_a_second_name_is_taken(plane: ControlPlane, space: str) -> None:
    longest = 253 * "a"
    for kind in ("DaemonSet", "Deployment"):
        manifest = deployment("web", space, kind=kind)
        manifest["metadata"]["name"] = longest
        plane.api.create(manifest)
    made = plane.api.create(policy("team", space, workloads={"kinds": ["Deployment", "DaemonSet"]}))
    found = await_condition(plane, made, "Ready", "False", "NameTaken")
    assert found["message"].endswith(f"{space}/{longest}")
    await_hvpas(plane, space, **{longest: "Recommend"})
    conditions = wait_for(
        lambda: plane.api.get(f"{API}/Hvpa", longest, space).get("status", {}).get("conditions"), 30
    )
    assert conditions


def test_a_namespace_that_terminates_gets_no_new_hvpas(plane: ControlPlane, space: str) -> None:
    """Here no controller empties the namespace, so its workload stays."""
    workload(plane, "web", space)
    selector = {"matchLabels": {"wave": space}}
    plane.api.patch("Namespace", space, None, {"metadata": {"labels": selector["matchLabels"]}})
    made = plane.api.create(policy(f"all-{space}", namespaces={"selector": selector}))
    try:
        await_hvpas(plane, space, web="Recommend")
        plane.api.delete("Namespace", space)
        mark = plane.audit.mark()
        plane.api.delete(f"{API}/Hvpa", "web", space)
        await_field(plane, CLUSTER_POLICY, f"all-{space}", "", "status.generated", 0)
        await_condition(plane, made, "Ready", "True", "UpToDate")
        assert writes(plane, space, mark) == []
    finally:
        plane.api.delete(CLUSTER_POLICY, f"all-{space}")


def test_an_hpa_that_acts_keeps_recommend_until_the_owner_lets_it_be_adopted(
    plane: ControlPlane, space: str
) -> None:
    workload(plane, "web", space)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "by-hand", "namespace": space, "labels": {"app": "web"}}
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
    created = plane.api.create({**hpa, "spec": {"scaleTargetRef": reference, "maxReplicas": 3}})
    made = plane.api.create(policy("team", space, stage="Apply"))
    await_hvpas(plane, space, web="Recommend")
    await_condition(plane, made, "Ready", "True", "UpToDate")
    assert plane.api.get(POLICY, "team", space)["status"]["awaitingAdoption"] == 1
    hpas = "autoscaling/v2/HorizontalPodAutoscaler"
    assert plane.api.get(hpas, "by-hand", space)["spec"] == created["spec"]
    plane.api.patch("apps/v1/Deployment", "web", space, noted(adopt="true"))
    await_hvpas(plane, space, web="Apply")
    adopted = wait_for(
        lambda: (
            found := plane.api.get(hpas, "by-hand", space),
            found["spec"]["scaleTargetRef"]["kind"] == "Hvpa",
        )[1],
        30,
        "the HPA is adopted",
    )
    assert adopted
    await_condition(plane, made, "Ready", "True", "UpToDate")
    assert [each["metadata"]["name"] for each in plane.api.list(hpas, space)] == ["by-hand"]


def test_a_mistake_in_a_selector_removes_no_hvpas_until_the_owner_confirms_it(
    plane: ControlPlane, space: str, start: Start
) -> None:
    for name in "abcd":
        workload(plane, name, space, **({"tier": "batch"} if name == "d" else {}))
    made = plane.api.create(policy("team", space, rollout={"maxRemovals": 2}))
    everything = dict.fromkeys("abcd", "Recommend")
    await_hvpas(plane, space, **everything)
    await_condition(plane, made, "Ready", "True", "UpToDate")
    mark = plane.audit.mark()

    def select(tier: str, most: int) -> int:
        chosen = {"workloads": {"selector": {"matchLabels": {"tier": tier}}}}
        change = {"spec": {**chosen, "rollout": {"maxRemovals": most}}}
        return int(plane.api.patch(POLICY, "team", space, change)["metadata"]["generation"])

    def held() -> str:
        return str(await_condition(plane, made, "Ready", "False", "RemovalHeld")["message"])

    select("batch", 2)
    assert held().endswith("or set rollout.maxRemovals to 3 to remove them")
    assert plane.api.get(POLICY, "team", space)["status"]["awaitingRemoval"] == 3
    generation = select("bacth", 100)
    await_field(plane, POLICY, "team", space, "status.observedGeneration", generation)
    assert "since it selects no workload at all" in held()
    generation = select("batch", 2)
    await_field(plane, POLICY, "team", space, "status.observedGeneration", generation)
    restarted = start("--policies", "--namespace", space)  # it removes nothing either
    time.sleep(3)
    assert hvpas(plane, space) == everything
    wait_for(
        lambda: restarted.metric("hvpa_policy_problem", namespace=space, reason="RemovalHeld") == 1,
        30,
        "the metric names the policy",
    )
    restarted.terminate()
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=space, resource="hvpas")
    assert [each for each in requests if each.verb == "delete"] == []
    select("batch", 3)
    await_hvpas(plane, space, d="Recommend")
    await_condition(plane, made, "Ready", "True", "UpToDate")
    await_field(plane, POLICY, "team", space, "status.removed", 3)
    wait_for(
        lambda: events(plane, made) >= {"HvpasCreated", "RemovalHeld", "HvpasRemoved", "UpToDate"},
        30,
        lambda: str(events(plane, made)),
    )


def events(plane: ControlPlane, made: Json) -> set[str]:
    """The reasons of a policy's Events."""
    found = plane.api.list("v1/Event", made["metadata"].get("namespace", "default"))
    return {each["reason"] for each in found if each["involvedObject"]["uid"] == made["metadata"]["uid"]}


def test_hvpas_removed_one_after_another_count_together(plane: ControlPlane, space: str) -> None:
    for name in "abcd":
        workload(plane, name, space)
    exclude = {"exclude": {"selector": {"matchLabels": {"tier": "batch"}}}}
    made = plane.api.create(policy("team", space, workloads=exclude, rollout={"maxRemovals": 2}))
    await_hvpas(plane, space, **dict.fromkeys("abcd", "Recommend"))
    batch = {"metadata": {"labels": {"tier": "batch"}}}
    for number, name in enumerate("ab", start=1):
        plane.api.patch("apps/v1/Deployment", name, space, batch)
        await_field(plane, POLICY, "team", space, "status.removed", number)
    plane.api.patch("apps/v1/Deployment", "c", space, batch)
    found = await_condition(plane, made, "Ready", "False", "RemovalHeld")
    assert found["message"].endswith("and 2 were made; they are removed when the hour is over")
    await_hvpas(plane, space, c="Recommend", d="Recommend")


def test_the_most_specific_policy_wins_and_both_say_so(plane: ControlPlane, space: str) -> None:
    workload(plane, "web", space)
    workload(plane, "batch", space, tier="batch")
    selector = {"matchLabels": {"wave": space}}
    everywhere = plane.api.create(policy(f"all-{space}", namespaces={"selector": selector}))
    try:
        await_condition(plane, everywhere, "Ready", "False", "NothingSelected")
        plane.api.patch("Namespace", space, None, {"metadata": {"labels": {"wave": space}}})
        await_hvpas(plane, space, web="Recommend", batch="Recommend")
        team = plane.api.create(
            policy("team", space, workloads={"selector": {"matchLabels": {"tier": "batch"}}})
        )
        lost = await_condition(plane, everywhere, "Conflict", "True", "Overlaps")
        assert lost["message"] == f"1 workloads belong to HvpaPolicy {space}/team, which is more specific"
        won = await_condition(plane, team, "Conflict", "True", "Overlaps")
        assert won["message"] == f"this policy wins 1 workloads over ClusterHvpaPolicy all-{space}"

        def owners() -> list[str]:
            found = [plane.api.get(f"{API}/Hvpa", name, space) for name in ("batch", "web")]
            return [each["metadata"]["ownerReferences"][0]["kind"] for each in found]

        wait_for(lambda: owners() == ["HvpaPolicy", "ClusterHvpaPolicy"], 30, "the Hvpa is handed over")
        wait_for(lambda: "HvpasCreated" in events(plane, everywhere), 30, "the cluster's policy has Events")
    finally:
        plane.api.delete(CLUSTER_POLICY, f"all-{space}")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"stage": "Delete"}, 'spec.stage: Unsupported value: "Delete"'),
        ({"template": {**TEMPLATE, "mode": "Apply"}}, 'unknown field "spec.template.mode"'),
        ({"template": {"hpa": {"deploy": True}}}, "is required and must be greater than 0 if deploy is true"),
        ({"cases": [{"when": {}, "patch": {}}]}, "has no condition: set selector, minCpu or minMemory"),
        ({"rollout": {"maxConcurrent": 0}}, "spec.rollout.maxConcurrent"),
        ({"workloads": {"kinds": ["Pod"]}}, 'spec.workloads.kinds[0]: Unsupported value: "Pod"'),
    ],
)
def test_the_api_server_refuses_a_bad_policy(
    plane: ControlPlane, space: str, spec: Json, problem: str
) -> None:
    with pytest.raises(ApiError) as caught:
        plane.api.create(policy("bad", space, **spec))
    assert problem in str(caught.value)


def test_a_cluster_policy_must_select_namespaces(plane: ControlPlane) -> None:
    with pytest.raises(ApiError) as caught:
        plane.api.create(policy("bad", namespaces={"exclude": ["a"]}))
    assert "selects no namespace: set all, names or selector" in str(caught.value)


def test_what_only_the_operator_can_check_is_in_the_status(plane: ControlPlane, space: str) -> None:
    workload(plane, "web", space)
    case = {"when": {"minCpu": "100m"}, "patch": {"hpa": {"template": {"spec": {"maxReplicas": 0}}}}}
    made = plane.api.create(policy("team", space, cases=[case]))
    found = await_condition(plane, made, "Ready", "False", "InvalidSpec")
    assert found["message"] == (
        "spec.cases[0].patch: hpa.template.spec.maxReplicas: is required and must be greater than 0 if deploy is true"
    )
    cron = {"maintenanceWindows": [{"schedule": "0 0 30 2 *", "duration": "1h"}]}
    plane.api.patch(POLICY, "team", space, {"spec": {"cases": None, "template": cron}})
    wait_for(
        lambda: (
            "spec.template.maintenanceWindows[0].schedule"
            in str(plane.api.get(POLICY, "team", space)["status"])
        ),
        30,
        "the schedule is reported",
    )
    assert hvpas(plane, space) == {}
    case["patch"] = {"hpa": {"deploy": False}}
    plane.api.patch(
        POLICY, "team", space, {"spec": {"cases": [case], "template": {"maintenanceWindows": None}}}
    )
    await_hvpas(plane, space, web="Recommend")
    assert plane.api.get(f"{API}/Hvpa", "web", space)["spec"]["hpa"]["deploy"] is False


def test_a_write_that_a_policy_of_the_cluster_refuses_is_reported(plane: ControlPlane, space: str) -> None:
    """By a quota: its Hvpas are countable."""
    workload(plane, "web", space)
    quota = {"hard": {"count/hvpas.autoscaling.k8s.io": "0"}}
    metadata = {"name": "none", "namespace": space}
    plane.api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota})
    plane.api.patch_status("ResourceQuota", "none", space, quota)
    made = plane.api.create(policy("team", space))
    found = await_condition(plane, made, "Ready", "False", "WriteFailed")
    assert f"{space}/web" in found["message"]
    plane.api.delete("ResourceQuota", "none", space)
    await_hvpas(plane, space, web="Recommend")
    await_condition(plane, made, "Ready", "True", "UpToDate")


def test_explain_says_why_a_workload_has_its_hvpa_or_none(plane: ControlPlane, space: str) -> None:
    workload(plane, "web", space)
    workload(plane, "daemon", space, "DaemonSet")
    made = plane.api.create(policy("team", space))
    await_hvpas(plane, space, web="Recommend")
    await_condition(plane, made, "Ready", "True", "UpToDate")
    plane.api.create(policy(f"all-{space}", namespaces={"selector": {"matchLabels": {"wave": "none"}}}))
    try:
        everywhere = (
            "- ClusterHvpaPolicy all-{0}: does not select it: namespaces does not select its namespace"
        )
        assert explain(plane, "deploy/web", space) == [
            f"Deployment {space}/web",
            f"- HvpaPolicy {space}/team: selects it",
            everywhere.format(space),
            f"- Hvpa web of HvpaPolicy {space}/team, in mode Recommend",
        ]
        assert explain(plane, "daemonset/daemon", space) == [
            f"DaemonSet {space}/daemon",
            f"- HvpaPolicy {space}/team: does not select it: workloads.kinds does not have its kind",
            everywhere.format(space),
            "- No policy makes an Hvpa: none selects the workload",
        ]
        (missing,) = explain(plane, "sts/none", space)
        assert missing.endswith(f"StatefulSet {space}/none does not exist")
    finally:
        plane.api.delete(CLUSTER_POLICY, f"all-{space}")


def explain(plane: ControlPlane, name: str, space: str) -> list[str]:
    """The lines of `hvpa explain` about a workload."""
    command = ["explain", name, "-n", space, "--kubeconfig", str(plane.kubeconfig)]
    run = subprocess.run(
        [sys.executable, "-m", "hvpa", *command], capture_output=True, text=True, timeout=60, check=False
    )
    return (run.stdout or run.stderr).splitlines()


def test_without_the_flag_nothing_is_watched(plane: ControlPlane, space: str, start: Start) -> None:
    mark = plane.audit.mark()
    start("--namespace", space)
    requests = plane.audit.requests(mark)
    agents = [
        each for each in requests if each.resource in ("hvpapolicies", "namespaces") and space in each.uri
    ]
    assert agents == []
