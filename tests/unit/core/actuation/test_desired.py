"""The size that was decided, and what is written to the workload for it: `hvpa.core.actuation.desired`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from builders.build import (
    NOW,
    at,
    container,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    stamp,
    vpa,
    with_status,
    workload,
)
from hvpa.api.hvpa.progress import CanaryRun, DesiredSize, RecommendedContainer
from hvpa.core.actuation.desired import size_of_new_pods
from hvpa.core.model import Decision
from hvpa.core.report.remedies import REMEDIES
from tests.unit.core.actuation.sized_pods import desired, infeasible, patches_template, running, size_status

IN_PLACE: Final[dict[str, Any]] = {
    "updateStrategy": {"type": "InPlace"},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
}
SIZE: Final = {"cpu": "2", "memory": "2G"}
DECIDED: Final = {"desired": size_status(3, {"app": {"requests": SIZE}}, at(hours=-1))["desired"]}
PODS: Final = [running(f"web-{number}") for number in range(3)]


def vertical(
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    targets: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """A decision under a VPA that wants 2 cores and 2G of a container that has 1 of each."""
    vertical_hvpa = hvpa(merged({**IN_PLACE, "hpa": {"deploy": False}}, spec or {}), status)
    target, pods = rest.get("target", workload()), rest.get("pods", PODS)
    return decided(objects(vertical_hvpa, target, None, vpa(targets or {"app": SIZE}), pods))


def test_a_size_is_decided_without_a_write_to_the_workload() -> None:
    decision = vertical()
    assert decision.workload_patch is None
    assert desired(decision).model_dump(by_alias=True, mode="json") == {
        "replicas": 3,
        "containers": [{"name": "app", "requests": SIZE, "limits": {}}],
        "since": stamp(NOW),
        "generation": 1,
    }
    assert len(decision.resizes) == 3
    assert decision.applied == (("vertical", "up"),)


def test_what_was_decided_counts_as_the_present_size() -> None:
    decision = vertical(DECIDED)
    assert not decision.applied
    assert decision.containers["app"].requests == {"cpu": 2000, "memory": 2 * 10**9}
    assert desired(decision).since == at(hours=-1)  # nothing new was decided
    assert len(decision.resizes) == 3  # the pods still have to get there


@pytest.mark.parametrize(
    "found",
    [
        vertical(target=workload(containers=[container(), container("log", {"cpu": "100m"})])),
        vertical({"desired": size_status(3, {"old": {"requests": {"cpu": "2"}}})["desired"]}),
    ],
    ids=["one without a recommender", "one that is gone from the template"],
)
def test_a_container_is_not_named(found: Decision) -> None:
    assert [container.name for container in desired(found).containers] == ["app"]


def test_a_resource_without_a_recommender_is_left_to_the_template() -> None:
    """Its user may change it later."""
    assert desired(vertical(targets={"app": {"cpu": "2"}})).containers[0].requests == {"cpu": "2"}


def test_update_strategy_type_rollout_removes_desired_from_the_status() -> None:
    decision = vertical(DECIDED, {"updateStrategy": {"type": "Rollout"}})
    assert decision.status.desired is None
    assert decision.status.actuation is None
    assert patches_template(decision)


def horizontal(status: Mapping[str, Any] | None = None, target: Any = None) -> Decision:
    """A decision under an HPA that wants 6 replicas."""
    spec = {**IN_PLACE, "replicas": 6, "weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    return decided(objects(hvpa(spec, status), target or workload(3), hpa(6, 100), vpa(), None))


def test_replicas_are_written_by_the_scale_subresource() -> None:
    patch = horizontal().workload_patch
    assert patch is not None
    assert patch.is_scale
    assert patch.body == {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 6}}


def test_replicas_that_were_decided_and_not_written_are_written() -> None:
    """The operator was killed in between: the workload still has the generation that they were decided on."""
    axes = horizontal().status.model_dump(by_alias=True, mode="json")["axes"]
    decision = horizontal({**size_status(6, {}), "axes": axes})
    assert not decision.applied
    assert decision.workload_patch is not None
    assert decision.workload_patch.body["spec"] == {"replicas": 6}


def test_replicas_that_another_client_has_set_since_count() -> None:
    later = workload(4, change={"metadata": {"generation": 2}, "status": {"observedGeneration": 2}})
    decision = horizontal({"desired": size_status(6, {})["desired"]}, later)
    assert decision.replicas is not None
    assert decision.replicas.current == 4


OR_ROLLOUT: Final = {"updateStrategy": {"type": "InPlaceOrRollout"}}
STUCK: Final = [infeasible(f"web-{number}", SIZE) for number in range(3)]


@pytest.mark.parametrize(
    ("spec", "target", "patched"),
    [
        (OR_ROLLOUT, workload(), True),
        (OR_ROLLOUT, workload(change={"status": {"updatedReplicas": 1}}), False),
        (OR_ROLLOUT, workload(containers=[container(requests=SIZE)]), False),
    ],
    ids=["InPlaceOrRollout", "a rollout is under way", "the template has the size"],
)
def test_the_template_is_patched_where_pods_can_not_be_resized(
    spec: Mapping[str, Any], target: Any, patched: bool
) -> None:
    decision = vertical(DECIDED, spec, target=target, pods=STUCK)
    assert patches_template(decision) == patched
    [remedy] = [event.message for event in decision.events if event.reason == "PodsNotResized"]
    assert remedy.endswith(f" {REMEDIES['PodsNotResized']}.")
    if decision.workload_patch is not None:
        template = {"spec": {"containers": [{"name": "app", "resources": {"requests": SIZE}}]}}
        assert decision.workload_patch.body["spec"] == {"replicas": 3, "template": template}


def test_the_same_is_decided_again_from_what_was_written() -> None:
    first = vertical()
    updated_hvpa = with_status(hvpa({**IN_PLACE, "hpa": {"deploy": False}}), first.status)
    again = decided(objects(updated_hvpa, workload(), None, vpa({"app": SIZE}), PODS))
    assert (again.resizes, again.status) == (first.resizes, first.status)
    assert not again.applied


def test_canary_new_pods_have_the_size_before_else_the_desired_one() -> None:
    app = RecommendedContainer(name="app", requests={"cpu": "2"})
    before = RecommendedContainer(name="app", requests={"cpu": "1"})
    size = DesiredSize(replicas=3, containers=(app,), since=NOW)
    tried = size.model_copy(update={"canary": CanaryRun(previous=(before,))})
    sizes = [size_of_new_pods(desired_size) for desired_size in (None, size, tried)]
    assert [pod_size and pod_size["app"].requests for pod_size in sizes] == [{}, {"cpu": 2000}, {"cpu": 1000}]
