"""Which Hvpas policies create, update, delete and leave alone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.api.policy.spec import merged
from hvpa.core.policies.model import ADOPT, APPLIED, APPLIED_AT, FIRST_SIZE, FROM_POLICY, OPT_OUT, PolicyPlan
from tests.unit.core.policies.world import SYSTEM, TEMPLATE, World, later, policy, workload

Json = dict[str, Any]


def foreign_hpa(name: str = "web", labels: Json | None = None, **change: Any) -> Hpa:
    metadata = {"name": name, "labels": {"of": None, **(labels or {})}, "ownerReferences": None}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return build.hpa(change={"metadata": metadata, "spec": {"scaleTargetRef": reference}, **change})


def foreign_vpa(mode: str | None = "Auto", labels: Json | None = None) -> Vpa:
    metadata = {"labels": {"of": None, **(labels or {})}, "ownerReferences": None}
    return build.vpa(change={"metadata": metadata, "spec": {"updatePolicy": mode and {"updateMode": mode}}})


def changes(world: World) -> list[tuple[str, str]]:
    return [(change.action, f"{change.namespace}/{change.name}") for change in world.step().changes]


def test_a_workload_gets_an_hvpa_that_the_policy_owns_and_then_nothing_is_written() -> None:
    world = World([policy()], [workload()])
    (create,) = world.step().changes
    metadata = create.body["metadata"]
    assert metadata["labels"] == {FROM_POLICY: "team"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "autoscaling.k8s.io/v1alpha1",
            "kind": "HvpaPolicy",
            "name": "team",
            "uid": "uid-HvpaPolicy-default-team",
            "controller": True,
        }
    ]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert create.body["spec"] == {**TEMPLATE, "mode": "Recommend", "targetRef": reference}
    world.settle()
    assert world.condition() == ("True", "UpToDate", "all selected workloads have their Hvpa")
    assert world.condition("Conflict")[0] == "False"
    assert not world.step(later(days=3)).changes


@pytest.mark.parametrize("stage", ["Review", "Apply"])
def test_a_later_stage_creates_in_recommend_and_then_changes_so_many_at_a_time(stage: str) -> None:
    spec = {"stage": stage, "rollout": {"maxConcurrent": 2}}
    world = World([policy(spec=spec)], [workload(f"w{number}") for number in range(5)])
    world.step()
    assert set(world.modes().values()) == {"Recommend"}
    applied = []
    for _ in range(3):
        made = world.step()
        applied.append([change.name for change in made.changes])
        assert made.is_rolling
    assert applied == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    assert not world.settle()[-1].is_rolling
    assert set(world.modes().values()) == {stage}


def test_the_next_workload_waits_until_the_operator_has_decided_with_the_new_spec() -> None:
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.step()
    world.step()
    world.edit("a", {"metadata": {"generation": 9}})
    world.apply(world.plan())
    assert world.modes() == {"default/a": "Apply", "default/b": "Recommend"}
    assert world.condition() == ("False", "RollingOut", "1 Hvpas have yet to change; waiting for a")
    world.edit("a", {"status": None})
    assert not world.plan().changes
    world.decide()
    assert changes(world) == [("patch", "default/b")]


def test_a_change_during_a_rollout_reaches_the_workload_that_changes_first_and_no_other() -> None:
    lacking = workload("b", change={"status": {"availableReplicas": 1}})
    rollout = {"rollout": {"maxConcurrent": 1}}
    world = World(
        [policy(spec={"stage": "Apply", **rollout})], [workload("a"), lacking, workload("c"), workload("d")]
    )
    world.step()
    assert changes(world) == [("patch", "default/a")]
    world.workloads[0] = workload("a", change={"status": {"availableReplicas": 1}})
    for blend in ("Additive", "Trajectory"):
        changed = {"stage": "Apply", **rollout, "template": {**TEMPLATE, "blend": blend}}
        world.replace(policy(spec=changed))
        assert changes(world) == [("patch", "default/a")]
        assert changes(world) == []
    world.replace(policy(spec={"stage": "Recommend", **rollout}))
    assert changes(world) == [("patch", "default/a")]
    assert set(world.modes().values()) == {"Recommend"}
    assert changes(world) == []
    assert world.condition()[1] == "UpToDate"


def test_a_workload_that_still_changes_goes_back_to_recommend_before_those_at_rest() -> None:
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 2}})], [workload("a"), workload("b")]
    )
    world.settle()
    world.workloads[1] = workload("b", change={"status": {"availableReplicas": 1}})
    world.replace(policy(spec={"stage": "Recommend", "rollout": {"maxConcurrent": 1}}))
    assert changes(world) == [("patch", "default/b")]
    assert changes(world) == [("patch", "default/a")]


@pytest.mark.parametrize("what", ["pods", "resizes"])
def test_the_next_workload_waits_for_the_pods_of_the_last_but_not_forever(what: str) -> None:
    broken = workload("a", change={"status": {"availableReplicas": 1}} if what == "pods" else {})
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.step()
    world.step()
    world.workloads[0] = broken
    if what == "resizes":
        world.edit("a", {"status": {"actuation": {"waiting": 1}}})
    assert not world.plan().changes
    assert [change.name for change in world.plan(later(hours=1)).changes] == ["b"]


def test_in_recommend_pods_don_t_matter() -> None:
    lacking = {"status": {"availableReplicas": 1}}
    world = World(
        [policy(spec={"rollout": {"maxConcurrent": 1}})],
        [workload("a", change=lacking), workload("b", change=lacking)],
    )
    world.settle()
    world.replace(
        policy(spec={"rollout": {"maxConcurrent": 1}, "template": {**TEMPLATE, "blend": "Additive"}})
    )
    assert [change.name for plan in world.settle() for change in plan.changes] == ["a", "b"]


def test_workloads_that_lack_pods_anyway_come_last() -> None:
    lacking = {"status": {"availableReplicas": 1}}
    spec = {"stage": "Apply", "rollout": {"maxConcurrent": 1}}
    world = World([policy(spec=spec)], [workload("a", change=lacking), workload("b")])
    world.step()
    assert changes(world) == [("patch", "default/b")]
    assert changes(world) == [("patch", "default/a")]


def test_a_change_of_the_template_is_written_as_a_difference() -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.edit("web", {"spec": {"replicas": 3}})
    changed = {"hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 9}}}, "blend": "Trajectory"}
    world.replace(policy(spec={"template": changed}))
    (patch,) = world.step().changes
    assert patch.body["spec"] == {
        "blend": "Trajectory",
        "hpa": {"template": {"spec": {"maxReplicas": 9, "minReplicas": None}}},
        "vpa": None,
    }
    assert world.hvpas["default", "web"]["spec"]["replicas"] == 3
    assert not world.settle()[-1].changes


def test_an_hvpa_that_somebody_wrote_is_left_alone() -> None:
    world = World([policy()], [workload(), workload("other")])
    world.write("mine", "web")
    before = dict(world.hvpas)
    assert changes(world) == [("create", "default/other")]
    world.settle()
    assert world.hvpas["default", "mine"]["metadata"] == before["default", "mine"]["metadata"]
    (status,) = [each.status for each in world.policies]
    assert (status.selected, status.generated, status.written_by_others) == (2, 1, 1)


def test_an_hvpa_that_somebody_writes_later_replaces_that_of_the_policy() -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.write("mine", "web")
    assert changes(world) == [("delete", "default/web")]


def test_who_removes_the_mark_takes_the_hvpa_over() -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.edit("web", {"metadata": {"labels": {FROM_POLICY: None}}})
    assert changes(world) == [("patch", "default/web")]
    metadata = world.hvpas["default", "web"]["metadata"]
    assert "ownerReferences" not in metadata
    assert metadata["annotations"] == {}
    world.replace(policy(spec={"template": {"vpa": {"deploy": True}}}))
    assert all(not plan.changes for plan in world.settle())


def test_a_release_keeps_other_owners() -> None:
    world = World([policy()], [workload()])
    world.settle()
    owners = world.hvpas["default", "web"]["metadata"]["ownerReferences"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    world.edit("web", {"metadata": {"labels": None, "ownerReferences": [other, *owners]}})
    world.step()
    assert world.hvpas["default", "web"]["metadata"]["ownerReferences"] == [{**other, "controller": False}]


def test_an_edited_hvpa_is_not_updated_and_the_policy_says_so() -> None:
    world = World([policy()], [workload(), workload("other")])
    world.settle()
    world.edit("web", {"spec": {"mode": "Apply"}})
    assert not world.step().changes
    world.replace(policy(spec={"template": {"vpa": {"deploy": True}}}))
    assert [change.name for plan in world.settle() for change in plan.changes] == ["other"]
    assert world.condition() == (
        "False",
        "Edited",
        "somebody changed these Hvpas, so the policy leaves them as they are; delete them, or remove their label to "
        "keep them: default/web",
    )
    assert world.plan().edited == {("default", "web")}
    world.edit("web", {"spec": {"mode": "Recommend"}})
    assert changes(world) == [("patch", "default/web")]
    world.settle()
    assert world.condition()[0] == "True"


@pytest.mark.parametrize("applied", ["no JSON", "[]", "{}", '{"mode":{}}', 20_000 * "[", None])
def test_a_wrong_note_of_what_was_applied_counts_as_edited(applied: str | None) -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.edit("web", {"metadata": {"annotations": {APPLIED: applied}}})
    assert not world.step().changes
    assert world.condition()[1] == "Edited"


def test_a_wrong_note_of_the_time_is_no_reason_to_wait() -> None:
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.step()
    world.step()
    world.edit("a", {"metadata": {"annotations": {f"{FROM_POLICY}-at": "?"}}, "status": None})
    assert [change.name for change in world.plan().changes] == ["b"]


def test_a_time_in_the_future_keeps_others_waiting_no_longer_than_any_other() -> None:
    """Whoever may edit an Hvpa may write it."""
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.step()
    world.step()
    at = "9999-12-31T23:59:59Z"
    world.edit("a", {"metadata": {"annotations": {f"{FROM_POLICY}-at": at}}, "status": None})
    assert [change.name for change in world.plan().changes] == ["b"]


def test_a_deleted_renamed_moved_or_excluded_workload_loses_its_hvpa() -> None:
    world = World([policy()], [workload("a"), workload("b"), workload("c", labels={"app": "c"})])
    world.settle()
    world.workloads = [
        workload("renamed"),
        workload("b", namespace="other"),
        workload("c", annotations={OPT_OUT: "true"}),
    ]
    assert sorted(changes(world)) == [
        ("create", "default/renamed"),
        ("delete", "default/a"),
        ("delete", "default/b"),
        ("delete", "default/c"),
    ]
    world.settle()
    assert world.policies[0].status.opted_out == 1
    world.workloads.append(workload("c", annotations={OPT_OUT: "false"}))
    del world.workloads[2]
    assert changes(world) == [("create", "default/c")]


def test_a_workload_that_is_being_deleted_loses_its_hvpa() -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.workloads = [workload(change={"metadata": {"deletionTimestamp": build.LONG_AGO}})]
    assert changes(world) == [("delete", "default/web")]


def test_workloads_of_a_kind_that_is_not_listed_yet_keep_their_hvpas() -> None:
    world = World([policy(spec={"workloads": {"kinds": ["DaemonSet"]}})], [workload(kind="DaemonSet")])
    world.settle()
    world.workloads, world.kinds = [], frozenset({"Deployment", "StatefulSet"})
    assert not world.plan().changes
    world.kinds |= {"DaemonSet"}
    assert changes(world) == [("delete", "default/web")]


@pytest.mark.parametrize("how", ["going", "invalid", "unknown"])
def test_hvpas_of_a_policy_that_is_going_or_invalid_or_unknown_stay(how: str) -> None:
    world = World([policy(), policy("all", namespace="")], [workload()])
    world.settle()
    if how == "going":
        world.replace(policy(metadata={"deletionTimestamp": build.LONG_AGO}))
    elif how == "invalid":
        world.replace(policy(spec={"template": {"mode": "Apply"}}))
    else:
        world.policies = world.policies[1:]
    assert not world.step().changes
    world.workloads = []
    assert not world.step().changes
    if how == "invalid":
        assert world.condition() == (
            "False",
            "InvalidSpec",
            "spec.template.mode: is set by the policy, not by the template",
        )


def test_a_policy_that_is_gone_leaves_its_workloads_to_the_next_policy() -> None:
    world = World([policy(), policy("all", namespace="")], [workload()])
    world.settle()
    world.policies = [each for each in world.policies if each.kind == "ClusterHvpaPolicy"]
    world.step()
    why = "1 workloads still have the Hvpa of another policy, which is invalid, being deleted or RemovalHeld"
    assert world.condition(name="all")[1:] == ("RollingOut", why)
    world.hvpas.clear()  # by the garbage collector
    assert changes(world) == [("create", "default/web")]
    assert world.hvpas["default", "web"]["metadata"]["ownerReferences"][0]["kind"] == "ClusterHvpaPolicy"


def test_an_hvpa_that_is_being_deleted_is_waited_for() -> None:
    world = World([policy()], [workload()])
    world.settle()
    world.edit("web", {"metadata": {"deletionTimestamp": build.LONG_AGO}})
    world.replace(policy(spec={"stage": "Apply"}))
    assert not world.step().changes


def test_a_more_specific_policy_takes_over_by_an_update_and_both_say_so() -> None:
    world = World(
        [policy("all", namespace="", spec={"rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.settle()
    world.policies.append(policy("team", spec={"rollout": {"maxConcurrent": 1}}))
    assert changes(world) == [("patch", "default/a")]
    assert changes(world) == [("patch", "default/b")]
    world.settle()
    owners = [document["metadata"]["ownerReferences"] for document in world.hvpas.values()]
    assert [[owner["name"] for owner in each] for each in owners] == [["team"], ["team"]]
    assert world.condition("Conflict", "team") == (
        "True",
        "Overlaps",
        "this policy wins 2 workloads over ClusterHvpaPolicy all",
    )
    assert world.condition("Conflict", "all") == (
        "True",
        "Overlaps",
        "2 workloads belong to HvpaPolicy default/team, which is more specific",
    )
    assert world.condition("Ready", "all") == (
        "False",
        "NothingSelected",
        "no workload belongs to this policy; 2 belong to more specific policies",
    )


def test_a_tie_is_decided_by_the_name() -> None:
    world = World([policy("b"), policy("a")], [workload()])
    world.settle()
    assert world.hvpas["default", "web"]["metadata"]["labels"] == {FROM_POLICY: "a"}
    assert world.condition("Conflict", "a")[0] == world.condition("Conflict", "b")[0] == "True"


def test_a_namespace_that_terminates_gets_no_new_hvpas() -> None:
    """The API server would refuse them. The namespace's Hvpas may go before its workloads."""
    world = World([policy("all", namespace="")], [workload(), workload(namespace="going")])
    world.settle()
    del world.hvpas["going", "web"]
    world.terminating = frozenset({"going"})
    assert all(not plan.changes for plan in world.settle())
    assert world.condition(name="all")[1] == "UpToDate"


def test_a_policy_that_selects_nothing_says_so() -> None:
    world = World([policy()], [workload(namespace="elsewhere")])
    assert not world.step().changes
    assert world.condition() == ("False", "NothingSelected", "no workload belongs to this policy")


def test_kube_system_and_the_operator_must_be_named() -> None:
    namespaces = {"kube-system", SYSTEM, "default"}
    world = World(
        [policy("all", namespace="")],
        [workload("dns", "kube-system"), workload("hvpa", SYSTEM), workload("web")],
        {name: {} for name in namespaces},
    )
    assert changes(world) == [("create", "default/web")]
    named = {"namespaces": {"names": ["kube-system", SYSTEM]}}
    world.replace(policy("all", namespace="", spec=named))
    assert changes(world) == [("create", "kube-system/dns"), ("delete", "default/web")]
    world.replace(policy("all", namespace="", spec={**named, "workloads": {"names": ["hvpa"]}}))
    assert changes(world) == [("create", f"{SYSTEM}/hvpa"), ("delete", "kube-system/dns")]


def test_cluster_policies_do_nothing_while_namespaces_can_t_be_read() -> None:
    world = World([policy("all", namespace="")], [workload()])
    world.settle()
    world.namespaces, world.workloads = None, []
    assert not world.step().changes
    assert world.condition(name="all")[1] == "NotPermitted"
    assert world.policies[0].status.generated == 1


def test_two_kinds_of_the_same_name_get_two_names_and_a_third_name_is_reported() -> None:
    world = World([policy()], [workload(), workload(kind="StatefulSet")])
    assert changes(world) == [("create", "default/web"), ("create", "default/web-statefulset")]
    world.settle()
    world.write("api", "something")
    world.write("api-deployment", "else")
    world.workloads.append(workload("api"))
    assert not world.step().changes
    assert world.condition() == (
        "False",
        "NameTaken",
        "Hvpas for other workloads have the names for default/api",
    )


def test_a_second_name_that_would_be_too_long_is_reported() -> None:
    longest = 253 * "a"
    world = World([policy()], [workload(longest), workload(longest, kind="StatefulSet")])
    assert changes(world) == [("create", f"default/{longest}")]
    assert not world.step().changes
    status, reason, message = world.condition()
    assert (status, reason) == ("False", "NameTaken")
    assert message.endswith(f"default/{longest}")


def test_a_failed_deletion_is_reported() -> None:
    world = World([policy()], [workload("a"), workload("b")])
    world.settle()
    del world.workloads[0]
    world.failures["default", "a"] = "denied by a webhook"
    assert [change.action for change in world.plan().changes] == ["delete"]
    world.apply(PolicyPlan((), world.plan().statuses, False))
    assert world.condition() == ("False", "WriteFailed", "default/a: denied by a webhook")


def test_a_failed_write_is_reported_and_comes_last() -> None:
    world = World(
        [policy(spec={"stage": "Apply", "rollout": {"maxConcurrent": 1}})], [workload("a"), workload("b")]
    )
    world.step()
    world.failures["default", "a"] = "denied by a quota"
    assert changes(world) == [("patch", "default/b")]
    assert world.condition() == ("False", "WriteFailed", "default/a: denied by a quota")


def test_a_failed_creation_is_reported() -> None:
    world = World([policy()], [workload()], failures={("default", "web"): "denied"})
    world.step()
    assert world.condition() == ("False", "WriteFailed", "default/web: denied")


def test_a_second_hvpa_of_a_policy_for_the_same_workload_is_deleted() -> None:
    world = World([policy()], [workload()])
    world.settle()
    double = build.merged(world.hvpas["default", "web"], {"metadata": {"name": "web-2", "uid": "x"}})
    world.hvpas["default", "web-2"] = double
    assert changes(world) == [("delete", "default/web-2")]


# --- HPAs and VPAs that act ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("recommender", [foreign_hpa(), foreign_vpa(), foreign_vpa(None)])
def test_an_hpa_or_vpa_that_acts_keeps_the_hvpa_in_recommend(recommender: Hpa | Vpa) -> None:
    hpas = [recommender] if isinstance(recommender, Hpa) else []
    vpas = [recommender] if isinstance(recommender, Vpa) else []
    world = World([policy(spec={"stage": "Apply"})], [workload()], hpas=hpas, vpas=vpas)
    world.settle()
    assert world.modes() == {"default/web": "Recommend"}
    assert world.policies[0].status.awaiting_adoption == 1
    for other in ("", "no", "False"):
        world.workloads = [workload(annotations={ADOPT: other})]
        assert all(not plan.changes for plan in world.settle())
    world.workloads = [workload(annotations={ADOPT: "true"})]
    world.settle()
    assert world.modes() == {"default/web": "Apply"}
    assert world.policies[0].status.awaiting_adoption == 0


def test_recommenders_that_only_recommend_don_t_matter() -> None:
    pointed = build.hpa()
    world = World([policy(spec={"stage": "Apply"})], [workload()], hpas=[pointed], vpas=[foreign_vpa("Off")])
    world.settle()
    assert world.modes() == {"default/web": "Apply"}


def test_an_hpa_that_appears_later_puts_the_hvpa_back_into_recommend() -> None:
    world = World([policy(spec={"stage": "Apply"})], [workload()])
    world.settle()
    world.hpas = [foreign_hpa()]
    world.settle()
    assert world.modes() == {"default/web": "Recommend"}


def test_adopted_are_the_hpa_and_vpa_with_their_labels_unless_the_template_says_otherwise() -> None:
    labels = {"app": "web"}
    world = World(
        [policy(spec={"stage": "Apply"})],
        [workload(annotations={ADOPT: "true"})],
        hpas=[foreign_hpa(labels=labels)],
        vpas=[foreign_vpa(labels=labels)],
    )
    world.settle()
    spec = world.hvpas["default", "web"]["spec"]
    assert spec["hpa"]["selector"] == spec["vpa"]["selector"] == {"matchLabels": labels}
    world.hpas, world.vpas = [], []
    world.settle()
    assert "selector" not in world.hvpas["default", "web"]["spec"]["hpa"]
    world.hpas = [foreign_hpa(labels=labels)]
    own = {"matchLabels": {"app": "own"}}
    world.replace(policy(spec={"stage": "Apply", "template": merged(TEMPLATE, {"hpa": {"selector": own}})}))
    world.settle()
    assert world.hvpas["default", "web"]["spec"]["hpa"]["selector"]["matchLabels"]["app"] == "own"


def test_the_order_in_which_hpas_arrive_does_not_matter() -> None:
    world = World([policy(spec={"stage": "Apply"})], [workload(annotations={ADOPT: "true"})])
    world.hpas = [foreign_hpa("one", labels={"a": "1"}), foreign_hpa("two", labels={"b": "2"})]
    world.settle()
    world.hpas.reverse()
    assert not world.plan().changes


# --- cases -----------------------------------------------------------------------------------------------------------
def test_the_first_case_that_a_workload_meets_changes_its_template() -> None:
    cases = [
        {"when": {"selector": {"matchLabels": {"tier": "batch"}}}, "patch": {"hpa": {"deploy": False}}},
        {
            "when": {"minCpu": "2", "minMemory": "1Gi"},
            "patch": {"hpa": {"template": {"spec": {"maxReplicas": 99}}}},
        },
        {"when": {"minMemory": "4Gi"}, "patch": {"blend": "Trajectory"}},
    ]
    world = World(
        [policy(spec={"cases": cases})],
        [
            workload("batch", labels={"tier": "batch"}, cpu="4"),
            workload("large", cpu="2", memory="8Gi"),
            workload("roomy", cpu="1", memory="8Gi"),
            workload("small", cpu="oops", memory="1Mi"),
        ],
    )
    world.settle()
    specs = {name: document["spec"] for (_, name), document in world.hvpas.items()}
    assert specs["batch"]["hpa"] == {**TEMPLATE["hpa"], "deploy": False}
    assert specs["large"]["hpa"]["template"]["spec"]["maxReplicas"] == 99
    assert specs["roomy"]["blend"] == "Trajectory"
    assert specs["small"]["hpa"] == TEMPLATE["hpa"]


def test_the_size_counts_that_a_workload_had_first_since_hvpa_changes_it() -> None:
    cases = [{"when": {"minCpu": "1"}, "patch": {"blend": "Trajectory"}}]
    world = World([policy(spec={"cases": cases})], [workload(cpu="2")])
    world.settle()
    world.workloads = [workload(cpu="200m")]
    assert not world.step().changes
    for size in ("?", f"{9:0>5000} 1"):
        world.edit("web", {"metadata": {"annotations": {f"{FROM_POLICY}-size": size}}})
        assert [change.name for change in world.plan().changes] == ["web"]


# --- in general ------------------------------------------------------------------------------------------------------
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*TEMPLATE, "mode", "template", "spec"]) | st.text(), inner, max_size=3
        )
    ),
)


@given(st.text() | anything.map(json.dumps), st.text(), st.text() | st.integers().map(lambda cpu: f"{cpu} 1"))
def test_whatever_the_notes_of_an_hvpa_say_plans_are_made(applied: str, at: str, size: str) -> None:
    world = World([policy(spec={"stage": "Apply"})], [workload(), workload("other")])
    world.settle()
    notes = {APPLIED: applied, APPLIED_AT: at, FIRST_SIZE: size}
    world.edit("web", {"metadata": {"annotations": notes}})
    world.replace(policy(spec={"stage": "Review"}))
    world.settle()
    assert world.modes()["default/other"] == "Review"


names = st.sampled_from(["a", "b", "c", "hvpa"])
spaces = st.sampled_from(["default", "other", "kube-system", SYSTEM])
label_sets = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)
selectors = label_sets.map(lambda labels: {"matchLabels": labels})


@st.composite
def policies(draw: st.DrawFn) -> Any:
    namespace = draw(st.sampled_from(["", "", "default", "other", SYSTEM]))
    spec: Json = {
        "stage": draw(st.sampled_from(["Recommend", "Review", "Apply"])),
        "workloads": {
            "kinds": draw(st.sampled_from([["Deployment"], ["Deployment", "StatefulSet"]])),
            "selector": draw(selectors),
            "names": draw(st.just([]) | st.lists(names, max_size=2)),
            "exclude": {"names": draw(st.lists(names, max_size=1)), "selector": draw(selectors)},
        },
        "rollout": {"maxConcurrent": draw(st.integers(1, 2)), "maxRemovals": draw(st.integers(0, 4))},
        "template": draw(st.sampled_from([TEMPLATE, {"vpa": {"deploy": True}}])),
    }
    if not namespace:
        spec["namespaces"] = draw(
            st.sampled_from(
                [
                    {"all": True},
                    {"names": ["kube-system", SYSTEM]},
                    {"selector": {"matchLabels": {"team": "x"}}},
                ]
            )
        )
    return policy(draw(names), spec, namespace)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    found = {each.key: each for each in draw(st.lists(policies(), max_size=3))}
    placed = st.tuples(spaces, st.sampled_from(["Deployment", "StatefulSet"]), names)
    made = [
        workload(
            name,
            namespace,
            kind,
            labels=draw(label_sets),
            annotations=draw(st.sampled_from([{}, {}, {OPT_OUT: "true"}, {ADOPT: "true"}])),
        )
        for namespace, kind, name in draw(st.sets(placed, max_size=6))
    ]
    team = {"team": draw(st.sampled_from(["x", "y"]))}
    world = World(list(found.values()), made, {"default": team, "other": {}, "kube-system": {}, SYSTEM: {}})
    for namespace, kind, name in draw(st.sets(placed, max_size=2)):
        world.write(f"own-{kind.lower()}-{name}", name, namespace, kind)
    return world


@given(worlds(), worlds(), st.randoms(use_true_random=False))
def test_whatever_the_policies_the_hvpas_come_to_rest_and_those_of_others_stay(
    world: World, changed: World, rng: random.Random
) -> None:
    own = {key: dict(document) for key, document in world.hvpas.items()}
    world.settle()
    statuses = {each.key: each.status for each in world.policies}
    world.policies = [
        type(each)(each.kind, each.metadata, each.spec, each.problems, statuses.get(each.key, each.status))
        for each in changed.policies
    ]
    known = {each.metadata.uid for each in world.policies}
    for key, document in list(world.hvpas.items()):  # as the garbage collector does
        if any(owner["uid"] not in known for owner in document["metadata"].get("ownerReferences", ())):
            del world.hvpas[key]
    room = {each.key.name: 0 for each in world.policies}
    for each in world.policies:
        assert each.spec is not None
        room[each.key.name] += each.spec.rollout.max_concurrent
    for made in world.settle():
        patched = [change for change in made.changes if change.action == "patch"]
        assert len(patched) <= sum(room.values())
    for key, document in own.items():
        assert world.hvpas[key]["metadata"] == document["metadata"]
        assert world.hvpas[key]["spec"] == document["spec"]
    for (namespace, _), document in world.hvpas.items():
        assert (
            namespace != SYSTEM or not document["metadata"].get("ownerReferences") or named(world, document)
        )
    targets = [
        (key[0], document["spec"]["targetRef"]["kind"], document["spec"]["targetRef"]["name"])
        for key, document in world.hvpas.items()
        if document["metadata"].get("ownerReferences")
    ]
    assert len(targets) == len(set(targets))
    present = {(each.metadata.namespace, each.kind, each.metadata.name) for each in world.workloads}
    assert set(targets) <= present
    before = world.plan()
    rng.shuffle(world.workloads)
    rng.shuffle(world.policies)
    assert world.plan() == before


def named(world: World, document: Json) -> bool:
    name = document["spec"]["targetRef"]["name"]
    return any(each.spec is not None and name in each.spec.workloads.names for each in world.policies)
