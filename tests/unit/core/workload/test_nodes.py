"""The largest node that pods may use: `hvpa.core.workload.nodes`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.objects.read_models import Node, Pod, TemplateSpec
from hvpa.api.values.quantity import Resource
from hvpa.core.model import Decision, LargestNode
from hvpa.core.workload.nodes import largest_node
from tests.unit.core.workload.test_governed import FIXED

GPU: Final = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
LARGE: Final[Mapping[Resource, int]] = {"cpu": 64_000, "memory": 64 * 2**30}
SMALL: Final[Mapping[Resource, int]] = {"cpu": 4_000, "memory": 16 * 2**30}


def node(
    name: str = "large",
    cpu: str = "64",
    memory: str = "64Gi",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Node:
    document = {
        "metadata": {"name": name, "labels": {"zone": "a", "cores": "64", **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }
    return msgspec.json.decode(json.dumps(document), type=Node)


def pod(**spec: Any) -> TemplateSpec:
    return msgspec.json.decode(json.dumps(spec), type=TemplateSpec)


def required(*expressions: Mapping[str, Any], fields: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A spec with a required node affinity of one term, after a term that no node meets."""
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]},
        {"matchExpressions": list(expressions), "matchFields": list(fields)},
    ]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": affinity}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": {}}, True),
        ({"affinity": {"nodeAffinity": {}}}, True),
        (required(expression("zone", "In", "a", "b")), True),
        (required(expression("zone", "In", "b")), False),
        (required(expression("zone", "NotIn", "b")), True),
        (required(expression("disk", "NotIn", "b")), True),
        (required(expression("zone", "NotIn", "a")), False),
        (required(expression("zone", "Exists")), True),
        (required(expression("disk", "Exists")), False),
        (required(expression("disk", "DoesNotExist")), True),
        (required(expression("cores", "Gt", "63")), True),
        (required(expression("cores", "Gt", "64")), False),
        (required(expression("cores", "Lt", "65")), True),
        (required(expression("cores", "Lt", "64")), False),
        (required(expression("zone", "Gt", "1")), False),
        (required(expression("disk", "Lt", "1")), False),
        (required(expression("cores", "Gt")), False),
        (required(expression("cores", "Unknown", "1")), False),
        (required(expression("cores", "Gt", "6_0")), False),
        (required(expression("zone", "Exists"), expression("zone", "In", "b")), False),
        (required(), False),
        (required(fields=[expression("metadata.name", "In", "large")]), True),
        (required(fields=[expression("metadata.name", "In", "small")]), False),
    ],
)
def test_which_nodes_a_pod_may_use_by_their_labels(spec: Mapping[str, Any], may: bool) -> None:
    assert (not largest_node([node()], pod(**spec)).problem) is may


@pytest.mark.parametrize(
    ("taint", "tolerations", "may"),
    [
        (GPU, [], False),
        ({**GPU, "effect": "NoExecute"}, [], False),
        ({**GPU, "effect": "PreferNoSchedule"}, [], True),
        ({**GPU, "key": "node.kubernetes.io/unschedulable"}, [], True),
        ({**GPU, "key": "ToBeDeletedByClusterAutoscaler"}, [], True),
        (GPU, [{"key": "gpu", "operator": "Gt", "value": "yes"}], False),
        (GPU, [{"operator": "Exists"}], True),
        (GPU, [{"key": "gpu", "operator": "Exists"}], True),
        (GPU, [{"key": "gpu", "value": "yes"}], True),
        (GPU, [{"key": "gpu", "value": "no"}], False),
        (GPU, [{"value": "yes"}], False),
        (GPU, [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], False),
        (GPU, [{"key": "disk", "operator": "Exists"}], False),
    ],
)
def test_which_nodes_a_pod_may_use_by_their_taints(
    taint: Mapping[str, str], tolerations: Sequence[Mapping[str, str]], may: bool
) -> None:
    found = largest_node([node(taints=[taint])], pod(tolerations=list(tolerations)))
    assert (not found.problem) is may


def test_cpu_and_memory_may_be_of_two_nodes() -> None:
    nodes = [node("a", "4", "64Gi"), node("b", "64", "16Gi"), node("c", "1", "1Gi")]
    assert largest_node(nodes, pod()) == LargestNode(LARGE)


def test_without_a_node_or_its_size_nothing_is_known() -> None:
    unsized = node(cpu="many")
    for nodes in ([], [unsized], [node(taints=[GPU])]):
        assert largest_node(nodes, pod()) == LargestNode(problem="there is no node that the pods may use")


@given(st.permutations([node("a", "4", "64Gi"), node("b", "64", "16Gi"), node("c", taints=[GPU])]))
def test_the_order_of_nodes_changes_nothing(nodes: Sequence[Node]) -> None:
    assert largest_node(nodes, pod()) == LargestNode(LARGE)


# --- the bound of a request ------------------------------------------------------------------------------------------
SPEC: Final = {
    "hpa": {"deploy": False},
    "vpa": {"maxAllowed": "LargestNode"},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
}


def decided(target: Mapping[str, str], largest: LargestNode | None) -> Decision:
    inputs = build.objects(
        build.hvpa(SPEC),
        build.workload(2, containers=[build.container(requests={"cpu": "1", "memory": "1Gi"})]),
        None,
        build.vpa({"app": target}),
        largest_node=largest,
    )
    return build.decided(inputs)


def test_a_request_ends_at_the_largest_node() -> None:
    decision = decided({"cpu": "8", "memory": "2G"}, LargestNode(SMALL))
    assert decision.containers["app"].requests == {"cpu": 4000, "memory": 2 * 10**9}
    active = build.condition(decision, "VpaActive")
    assert (active.reason, active.message) == (
        "LargestNode",
        "the largest node is too small (vpa.maxAllowed): app cpu: 8 recommended, 4 at most",
    )
    assert build.condition(decision, "Ready").reason == "Saturated"


def test_nothing_is_lowered_to_the_largest_node() -> None:
    tiny = LargestNode({"cpu": 500, "memory": 2**20})
    assert decided({"cpu": "8", "memory": "2Gi"}, tiny).workload_patch is None


def test_until_the_nodes_are_listed_no_request_rises() -> None:
    awaited = LargestNode(problem="the nodes are not listed yet", is_awaited=True)
    decision = decided({"cpu": "8", "memory": "2Gi"}, awaited)
    assert decision.workload_patch is None
    assert "the nodes are being listed" in build.condition(decision, "VpaActive").message


def test_without_the_right_to_read_nodes_none_bounds_requests() -> None:
    unknown = LargestNode(problem="the operator may not read nodes (config/node-room)")
    decision = decided({"cpu": "8", "memory": "2Gi"}, unknown)
    assert decision.containers["app"].requests["cpu"] == 8000
    active = build.condition(decision, "VpaActive")
    assert active.reason == "NodesUnknown"
    assert active.message.startswith("the operator may not read nodes (config/node-room), so no node bounds")


def test_the_pods_own_resources_may_be_smaller_than_the_node() -> None:
    inputs = build.objects(
        build.hvpa(build.merged(SPEC, FIXED)),
        build.workload(
            2,
            containers=[build.container(requests={"cpu": "1", "memory": "1Gi"})],
            change={"spec": {"template": {"spec": {"resources": {"limits": {"cpu": "2"}}}}}},
        ),
        None,
        build.vpa({"app": {"cpu": "8", "memory": "32Gi"}}),
        largest_node=LargestNode(SMALL),
    )
    decision = build.decided(inputs)
    assert decision.containers["app"].requests == {"cpu": 2000, "memory": 16 * 2**30}
    assert build.condition(decision, "VpaActive").reason == "PodLevelResources"


def shared(
    target: Mapping[str, Mapping[str, str]],
    weight: int = 100,
    killed: str = "",
    pods: Sequence[Pod] | None = None,
) -> dict[str, int]:
    """The memory that app (4Gi) and side (1Gi) get on a node of 16Gi."""
    containers = [
        build.container("app", {"cpu": "1", "memory": "4Gi"}),
        build.container("side", {"cpu": "1", "memory": "1Gi"}),
    ]
    if killed:
        pods = [build.oom_killed(build.at(minutes=-1), of=killed, containers=containers)]
    inputs = build.objects(
        build.hvpa({**SPEC, "weightBasedScalingIntervals": [{"vpaWeight": weight}]}),
        build.workload(1, containers=containers),
        None,
        build.vpa(target),
        pods,
        largest_node=LargestNode({"cpu": 4000, "memory": 16 * 2**30}),
    )
    decision = build.decided(inputs)
    return {name: size.requests["memory"] for name, size in decision.containers.items()}


def test_a_container_that_ran_out_of_memory_is_served_first() -> None:
    """Its neighbour's target is larger than the node."""
    targets = {"app": {"memory": "4Gi"}, "side": {"memory": "20Gi"}}
    assert shared(targets)["app"] == 4 * 2**30
    sizes = shared(targets, killed="app")
    assert sizes["app"] > 4 * 2**30
    assert sum(sizes.values()) <= 16 * 2**30
    assert shared(targets, weight=0, killed="app")["app"] > 4 * 2**30


def test_an_oom_at_the_largest_node_is_reported() -> None:
    full = [build.container(requests={"cpu": "1", "memory": "16Gi"})]
    inputs = build.objects(
        build.hvpa(SPEC),
        build.workload(1, containers=full),
        None,
        build.vpa({"app": {"memory": "16Gi"}}),
        [build.oom_killed(build.at(minutes=-1), containers=full)],
        largest_node=LargestNode(SMALL),
    )
    assert "the largest node allows no more" in build.condition(build.decided(inputs), "Ready").message


def test_requests_that_others_have_given_count_too() -> None:
    """The template has no CPU request, and a LimitRange has given 2 cores."""
    bare = [build.container(requests={"memory": "1Gi"})]
    given = [build.container(requests={"cpu": "2", "memory": "1Gi"})]
    inputs = build.objects(
        build.hvpa(SPEC),
        build.workload(1, containers=bare),
        None,
        build.vpa({"app": {"cpu": "32"}}),
        [build.pod("web-0", containers=given)],
        largest_node=LargestNode(SMALL),
    )
    assert build.decided(inputs).containers["app"].requests["cpu"] == 4000
