"""How policies treat a workload, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from builders import build
from hvpa.api.objects.read_models import Workload
from hvpa.core.policies.explaining import explained
from hvpa.core.policies.model import ADOPT, OPT_OUT
from hvpa.core.policies.plan import plan
from tests.unit.core.policies.test_plan import foreign_hpa, foreign_vpa, worlds
from tests.unit.core.policies.world import SYSTEM, World, policy, workload

BATCH = {"matchLabels": {"tier": "batch"}}
WEB = workload(labels={"tier": "web"})


def lines(world: World, of: Workload | None = None) -> list[str]:
    return explained(world.input(), of or world.workloads[0])


def test_each_policy_is_explained_and_the_most_specific_comes_first() -> None:
    world = World(
        [
            policy("all", namespace=""),
            policy("b", spec={"stage": "Apply"}),
            policy("a", spec={"workloads": {"selector": BATCH}}),
            policy("broken", spec={"template": {"mode": "Apply"}}),
        ],
        [WEB],
    )
    world.settle()
    assert lines(world) == [
        "HvpaPolicy default/a: does not select it: workloads.selector does not match its labels",
        "HvpaPolicy default/b: selects it",
        "ClusterHvpaPolicy all: selects it, too, but HvpaPolicy default/b is more specific",
        "HvpaPolicy default/broken: does nothing, because its spec is not valid: spec.template.mode: is set by the "
        "policy, not by the template",
        "Hvpa web of HvpaPolicy default/b, in mode Apply",
    ]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"kinds": ["StatefulSet"]}, "workloads.kinds does not have its kind"),
        ({"exclude": {"names": ["web"]}}, "workloads.exclude.names has its name"),
        (
            {"exclude": {"selector": {"matchLabels": {"tier": "web"}}}},
            "workloads.exclude.selector matches its labels",
        ),
        ({"names": ["api"]}, "workloads.names does not have its name"),
    ],
)
def test_why_a_policy_does_not_select_a_workload(spec: dict[str, Any], why: str) -> None:
    world = World([policy(spec={"workloads": spec})], [WEB])
    world.settle()
    assert lines(world) == [
        f"HvpaPolicy default/team: does not select it: {why}",
        "No policy makes an Hvpa: none selects the workload",
    ]


@pytest.mark.parametrize(
    ("namespace", "spec", "why"),
    [
        ("default", {"selector": {"matchLabels": {"a": "b"}}}, "namespaces does not select its namespace"),
        ("default", {"all": True, "exclude": ["default"]}, "namespaces.exclude has its namespace"),
        (
            "kube-system",
            {"all": True},
            "namespaces.names does not have its namespace, as kube-system and the operator's namespace require",
        ),
        (
            SYSTEM,
            {"names": [SYSTEM]},
            "workloads.names does not have its name, as the operator's namespace requires",
        ),
    ],
)
def test_why_a_policy_does_not_select_a_namespace(namespace: str, spec: dict[str, Any], why: str) -> None:
    made = policy("all", namespace="", spec={"namespaces": spec})
    world = World([made], [workload(namespace=namespace)], {namespace: {}})
    assert lines(world)[0] == f"ClusterHvpaPolicy all: does not select it: {why}"


def test_policies_that_are_going_or_that_can_t_be_judged() -> None:
    going = {"deletionTimestamp": build.LONG_AGO}
    world = World([policy(metadata=going), policy("all", namespace=""), policy(namespace="lab")], [WEB], None)
    assert lines(world) == [
        "HvpaPolicy default/team: is being deleted",
        "HvpaPolicy lab/team: is of another namespace",
        "ClusterHvpaPolicy all: can't tell whether it selects the namespace, whose labels can't be read",
        "No policy makes an Hvpa: none selects the workload",
    ]


@pytest.mark.parametrize("how", ["RemovalHeld", "invalid", "going"])
def test_an_hvpa_that_another_policy_keeps_is_not_said_to_be_of_the_policy_that_selects_the_workload(
    how: str,
) -> None:
    world = World([policy(spec={"stage": "Apply"})], [WEB])
    world.settle()
    world.policies.append(policy("all", namespace=""))
    if how == "going":
        world.policies[0] = policy(metadata={"deletionTimestamp": build.LONG_AGO})
    else:
        changed = {"workloads": {"names": ["x"]}, "stage": "Apply"}
        world.replace(policy(spec=changed if how == "RemovalHeld" else {"template": {"mode": "Apply"}}))
    world.settle()
    assert lines(world)[-1] == (
        "Hvpa web is still that of HvpaPolicy team, in mode Apply, and ClusterHvpaPolicy all takes it over later: see "
        "the condition Ready of both"
    )


def test_who_opts_out_has_no_hvpa() -> None:
    world = World([policy()], [workload(annotations={OPT_OUT: "true"})])
    assert lines(world)[1:] == [f"No policy makes an Hvpa: the workload has the annotation {OPT_OUT}"]


def test_an_hvpa_that_somebody_wrote() -> None:
    world = World([policy()], [WEB])
    world.write("mine", "web")
    assert lines(world)[1:] == ["No policy makes an Hvpa: somebody wrote Hvpa mine"]


def test_an_hvpa_that_is_not_there_yet() -> None:
    world = World([policy()], [WEB])
    assert lines(world)[1:] == ["HvpaPolicy default/team makes its Hvpa next"]
    world.apply(replace(world.plan(), changes=()))
    (line,) = lines(world)[1:]
    assert line.startswith("HvpaPolicy default/team makes its Hvpa next (RollingOut: 1 Hvpas are missing")


def test_an_hvpa_that_stays_although_its_policy_no_longer_selects_the_workload() -> None:
    world = World([policy()], [WEB])
    world.settle()
    world.replace(policy(spec={"workloads": {"selector": BATCH}}))
    world.settle()
    assert lines(world)[1:] == [
        "Hvpa web of HvpaPolicy team stays although no policy selects the workload: see that policy's condition Ready"
    ]


def test_an_hpa_that_acts_holds_the_stage() -> None:
    world = World([policy(spec={"stage": "Apply"})], [workload()], hpas=[foreign_hpa()], vpas=[foreign_vpa()])
    world.settle()
    assert lines(world)[1:] == [
        "Hvpa web of HvpaPolicy default/team, in mode Recommend",
        "It stays in mode Recommend, because HPA web, VPA web acts on the workload: annotate the workload with "
        f"{ADOPT}=true, and the Hvpa takes over",
    ]
    assert len(lines(world, workload(annotations={ADOPT: "true"}))) == 2


@given(worlds())
def test_whatever_the_policies_the_explanation_agrees_with_the_plan(world: World) -> None:
    world.settle()
    for each in world.workloads:
        *verdicts, _ = [line for line in lines(world, each) if not line.startswith("It stays")]
        winners = [line.removesuffix(": selects it") for line in verdicts if line.endswith(": selects it")]
        alone = replace(world.input(), workloads=[each], hvpas=[])
        statuses = {policy.key: policy.status for policy in world.policies} | dict(
            plan(alone, build.NOW).statuses
        )
        assert winners == [str(key) for key, status in statuses.items() if status.selected]
