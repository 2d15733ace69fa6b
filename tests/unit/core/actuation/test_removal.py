"""Which pods are deleted first at a scale-in: `hvpa.core.actuation.removal`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import at, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.objects.kinds import api_version_of
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.removal import CANNOT, LACKS
from hvpa.core.model import DELETION_COST, Decision
from tests.unit.core.actuation.sized_pods import LARGER, infeasible, running, size_status

BY_SIZE: Final = {"type": "InPlace", "podDeletionCost": "BySize"}
PENDING: Final = {"status": {"phase": "Pending", "conditions": []}}


def cost(value: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {DELETION_COST: value}}}


def created(day: int) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": f"2026-11-{day:02}T00:00:00Z"}}


def fits(name: str, **more: Any) -> Pod:
    return running(name, LARGER, **more)


def lacks(name: str, **more: Any) -> Pod:
    return running(name, **more)


def scaled_in(
    pods: Sequence[Pod],
    to: int,
    strategy: Mapping[str, Any] = BY_SIZE,
    spec: Mapping[str, Any] | None = None,
    kind: str = "Deployment",
) -> Decision:
    """The decision that writes the decided number of replicas, `to`; nothing else changes."""
    document = merged({"updateStrategy": strategy, "hpa": {"deploy": False}}, spec or {})
    document = merged(document, {"targetRef": {"apiVersion": api_version_of(kind), "kind": kind}})
    of_hvpa = hvpa(document, size_status(to, {"app": {"requests": LARGER}}))
    target = workload(len(pods), kind=kind)
    return decided(objects(of_hvpa, target, None, vpa({"app": LARGER}), pods))


def costs(decision: Decision) -> dict[str, str | None]:
    return {write.pod: write.cost for write in decision.costs}


@pytest.mark.parametrize(
    ("pods", "to", "wanted"),
    [
        ([fits("a"), lacks("b"), infeasible("c")], 2, {"c": CANNOT}),
        ([fits("a"), lacks("b"), infeasible("c")], 1, {"b": LACKS, "c": CANNOT}),
        ([fits("a"), fits("b"), lacks("c")], 1, {"c": LACKS}),
        ([fits("a"), fits("b"), fits("c")], 1, {}),
        ([lacks("a"), lacks("b"), lacks("c")], 1, {}),
        ([fits("a"), lacks("b")], 0, {}),
        ([fits("a"), lacks("b")], 2, {}),
        ([lacks("a", ready=False), fits("b"), lacks("c"), fits("d")], 3, {}),
        ([lacks("a", ready=False), fits("b"), lacks("c"), fits("d")], 2, {"c": LACKS}),
        ([lacks("a", ready=False), fits("b", ready=False), fits("c")], 2, {"a": LACKS}),
        ([fits("a", change=PENDING), infeasible("b", ready=False), fits("c", ready=False)], 2, {}),
        ([lacks("a", change=created(1)), lacks("b", change=created(2)), fits("c")], 2, {"b": LACKS}),
    ],
    ids=[
        "a pod that can't have the size goes first",
        "then a pod that does not have it yet",
        "pods that have it are not marked",
        "all have it",
        "all are alike",
        "all go",
        "no replica goes",
        "the pod that is not ready goes without a mark",
        "then the choice is among ready pods",
        "the choice is among pods that are not ready",
        "the choice is among Pending pods",
        "of equal pods the newest",
    ],
)
def test_pods_of_the_wrong_size_are_marked(pods: Sequence[Pod], to: int, wanted: dict[str, str]) -> None:
    assert costs(scaled_in(pods, to)) == wanted


def test_a_mark_needs_the_version_of_the_pod_that_was_read() -> None:
    (write,) = scaled_in([fits("a"), lacks("b", change={"metadata": {"resourceVersion": "12"}})], 1).costs
    assert (write.uid, write.resource_version) == ("b", "12")


def test_a_marked_pod_is_not_marked_again_and_goes_before_equal_pods() -> None:
    pods = [lacks("a"), lacks("b", change=cost(LACKS)), fits("c")]
    assert costs(scaled_in(pods, 2)) == {}
    assert costs(scaled_in(pods, 1)) == {"a": LACKS}
    assert costs(scaled_in([infeasible("a", change=cost(LACKS)), fits("b")], 1)) == {"a": CANNOT}


def test_a_pod_that_has_the_size_loses_its_mark_and_others_keep_theirs() -> None:
    pods = [fits("a", change=cost(CANNOT)), lacks("b", change=cost(LACKS)), fits("c")]
    assert costs(scaled_in(pods, 3)) == {"a": None}


@pytest.mark.parametrize(
    ("strategy", "spec", "others"),
    [
        ({"type": "InPlace"}, {}, {}),
        (BY_SIZE, {"mode": "Recommend"}, {}),
        (BY_SIZE, {}, cost("100")),
        (BY_SIZE, {}, cost("-1")),
    ],
    ids=["switched off", "Recommend", "a cost of another client", "a negative cost of another client"],
)
def test_no_pod_is_marked(
    strategy: Mapping[str, Any], spec: Mapping[str, Any], others: Mapping[str, Any]
) -> None:
    pods = [fits("a", change=others), lacks("b"), fits("c")]
    assert costs(scaled_in(pods, 1, strategy, spec)) == {}


@pytest.mark.parametrize("others", [{}, cost("0")], ids=["switched off", "another client sets costs"])
def test_marks_are_removed_when_they_no_longer_count(others: Mapping[str, Any]) -> None:
    strategy = BY_SIZE if others else {"type": "InPlace"}
    pods = [fits("a", change=others), lacks("b", change=cost(LACKS)), lacks("c")]
    assert costs(scaled_in(pods, 1, strategy)) == {"b": None}


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_the_controllers_that_delete_pods_by_their_cost(kind: str) -> None:
    owner = {"kind": kind, "name": "web", "uid": "w", "controller": True}
    pods = [
        fits("a", change={"metadata": {"ownerReferences": [owner]}}),
        lacks("b", change={"metadata": {"ownerReferences": [owner]}}),
    ]
    assert costs(scaled_in(pods, 1, kind=kind)) == {"b": LACKS}


def test_a_stateful_set_deletes_the_highest_ordinal_whatever_the_cost() -> None:
    owner = {"kind": "StatefulSet", "name": "web", "uid": "w", "controller": True}
    pods = [
        fits("web-1", change={"metadata": {"ownerReferences": [owner]}}),
        lacks("web-0", change={"metadata": {"ownerReferences": [owner]}}),
    ]
    assert costs(scaled_in(pods, 1, kind="StatefulSet")) == {}


def test_in_a_rollout_the_deployment_decides_which_replica_set_loses_pods() -> None:
    def of(replica_set: str) -> dict[str, Any]:
        owner = {"kind": "ReplicaSet", "name": f"web-{replica_set}", "uid": replica_set, "controller": True}
        return {"metadata": {"ownerReferences": [owner], "labels": {"pod-template-hash": replica_set}}}

    pods = [fits("a", change=of("old")), lacks("b", change=of("new"))]
    assert costs(scaled_in(pods, 1)) == {}
    pods = [fits("a", change=of("new")), lacks("b", change=of("new"))]
    assert costs(scaled_in(pods, 1)) == {"b": LACKS}


def test_a_template_that_is_patched_replaces_all_pods() -> None:
    decision = scaled_in([infeasible("a"), fits("b")], 1, {**BY_SIZE, "type": "InPlaceOrRollout"})
    assert decision.workload_patch is not None
    assert not decision.workload_patch.is_scale
    assert costs(decision) == {}


def test_more_cpu_for_the_start_is_no_wrong_size() -> None:
    boost = {"startupBoost": [{"container": "app", "cpu": {"factor": 3}, "after": "1h"}]}
    more = {**LARGER, "cpu": "6"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(seconds=-20))}
    start = {"status": {"startTime": stamp(at(seconds=-60)), "conditions": [ready]}}
    pods = [fits("a"), running("b", more, change=merged(created(21), start)), lacks("c")]
    assert costs(scaled_in(pods, 2, spec=boost)) == {"c": LACKS}
    assert costs(scaled_in(pods[:2], 1, spec=boost)) == {}


OWN_OR_OTHER: Final = st.sampled_from([None, CANNOT, LACKS, "7", "-7"])


@st.composite
def some_pods(draw: st.DrawFn) -> list[Pod]:
    pods = []
    for number in range(draw(st.integers(1, 6))):
        build = draw(st.sampled_from([fits, lacks, infeasible]))
        value = draw(OWN_OR_OTHER)
        change = merged({} if value is None else cost(value), created(draw(st.integers(1, 3))))
        pods.append(build(f"web-{number}", ready=draw(st.booleans()), change=change))
    return pods


@given(pods=some_pods(), data=st.data())
def test_at_most_the_pods_that_go_are_marked_and_no_other_client_s_cost_changes(
    pods: list[Pod], data: st.DataObject
) -> None:
    to = data.draw(st.integers(0, len(pods)))
    had = {pod.metadata.name: pod.metadata.annotations.get(DELETION_COST) for pod in pods}
    writes = costs(scaled_in(pods, to))
    marks = {name for name, value in writes.items() if value is not None}
    assert len(marks) <= len(pods) - to
    assert all(had[name] in (None, CANNOT, LACKS) for name in writes)
    if not set(had.values()) <= {None, CANNOT, LACKS}:
        assert not marks
    assert costs(scaled_in(data.draw(st.permutations(pods)), to)) == writes


@given(pods=some_pods(), data=st.data())
def test_once_they_are_written_nothing_is_left_to_write(pods: list[Pod], data: st.DataObject) -> None:
    to = data.draw(st.integers(0, len(pods)))
    for write in scaled_in(pods, to).costs:
        for pod in pods:
            if pod.metadata.name == write.pod:
                pod.metadata.annotations.pop(DELETION_COST, None)
                pod.metadata.annotations.update({} if write.cost is None else {DELETION_COST: write.cost})
    assert costs(scaled_in(pods, to)) == {}
