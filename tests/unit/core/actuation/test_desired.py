"""The size that was decided, and what is written to the workload for it: `hvpa.core.actuation.desired`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    pod,
    stamp,
    vpa,
    with_status,
    workload,
)
from hvpa.api.hvpa.status import CanaryRun, DesiredSize, RecommendedContainer
from hvpa.core.actuation.desired import size_of_new_pods
from hvpa.core.model import Decision
from tests.unit.core.actuation.test_pods import OWNER, running

IN_PLACE: dict[str, Any] = {
    "updateStrategy": {"type": "InPlace"},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
}
HORIZONTAL: dict[str, Any] = merged(IN_PLACE, {"weightBasedScalingIntervals": [{"vpaWeight": 0}]})
TARGET = {"app": {"cpu": "2", "memory": "2G"}}


def desired(replicas: int = 3, generation: int = 1, **requests: str) -> dict[str, Any]:
    containers = [{"name": "app", "requests": requests}] if requests else []
    since = stamp(at(hours=-1))
    return {
        "desired": {"replicas": replicas, "containers": containers, "since": since, "generation": generation}
    }


def vertical(
    status: Mapping[str, Any] | None = None, spec: Mapping[str, Any] | None = None, **rest: Any
) -> Decision:
    """A decision under a VPA that wants 2 cores and 2G of a container that has 1 of each."""
    one = hvpa(merged(merged(IN_PLACE, {"hpa": {"deploy": False}}), spec or {}), status)
    pods = [running(f"web-{number}") for number in range(3)]
    return decided(
        objects(one, rest.pop("target", workload()), None, vpa(TARGET), rest.pop("pods", pods), **rest)
    )


def test_a_size_is_decided_without_a_write_to_the_workload() -> None:
    found = vertical()
    assert found.workload_patch is None
    assert found.status.desired is not None
    assert found.status.desired.model_dump(by_alias=True, mode="json") == {
        "replicas": 3,
        "containers": [{"name": "app", "requests": {"cpu": "2", "memory": "2G"}, "limits": {}}],
        "since": stamp(NOW),
        "generation": 1,
    }
    assert len(found.resizes) == 3
    assert found.applied == (("vertical", "up"),)


def test_what_was_decided_counts_as_the_present_size() -> None:
    found = vertical(desired(cpu="2", memory="2G"))
    assert not found.applied
    assert found.containers["app"].requests == {"cpu": 2000, "memory": 2 * 10**9}
    assert found.status.desired is not None
    assert found.status.desired.since == at(hours=-1)  # nothing new was decided
    assert len(found.resizes) == 3  # the pods still have to get there


def test_a_container_that_nobody_scales_is_not_named() -> None:
    two = workload(containers=[container(), container("log", {"cpu": "100m"})])
    found = vertical(target=two)
    assert found.status.desired is not None
    assert [one.name for one in found.status.desired.containers] == ["app"]


def test_a_resource_that_nobody_scales_is_left_to_the_template() -> None:
    """Its user may change it later."""
    found = decided(
        objects(
            hvpa(merged(IN_PLACE, {"hpa": {"deploy": False}})),
            None,
            None,
            vpa({"app": {"cpu": "2"}}),
            [running()],
        )
    )
    assert found.status.desired is not None
    assert found.status.desired.containers[0].requests == {"cpu": "2"}


def test_with_rollout_the_status_forgets_it() -> None:
    found = vertical(desired(cpu="2", memory="2G"), {"updateStrategy": {"type": "Rollout"}})
    assert found.status.desired is None
    assert found.status.actuation is None
    assert found.workload_patch is not None
    assert not found.workload_patch.is_scale


def horizontal(status: Mapping[str, Any] | None = None, target: Any = None, **rest: Any) -> Decision:
    """A decision under an HPA that wants 6 replicas."""
    one = hvpa(merged(HORIZONTAL, {"replicas": 6}), status)
    return decided(objects(one, target or workload(3), hpa(6, 100), vpa(), None, **rest))


def test_replicas_are_written_by_the_scale_subresource() -> None:
    patch = horizontal().workload_patch
    assert patch is not None
    assert patch.is_scale
    assert patch.body == {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 6}}


def test_replicas_that_were_decided_and_not_written_are_written() -> None:
    """The operator was killed in between: the workload still has the generation that they were decided on."""
    found = horizontal(
        {**desired(6), "axes": horizontal().status.model_dump(by_alias=True, mode="json")["axes"]}
    )
    assert not found.applied
    assert found.workload_patch is not None
    assert found.workload_patch.body["spec"] == {"replicas": 6}


def test_replicas_that_somebody_else_has_set_since_count() -> None:
    later = workload(4, change={"metadata": {"generation": 2}, "status": {"observedGeneration": 2}})
    found = horizontal(desired(6), later)
    assert found.replicas is not None
    assert found.replicas.current == 4


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no"}
STUCK = [
    running(f"web-{number}", {"cpu": "2", "memory": "2G"}, {}, conditions=[INFEASIBLE]) for number in range(3)
]
OR_ROLLOUT = {"updateStrategy": {"type": "InPlaceOrRollout"}}
ROLLING = {"status": {"updatedReplicas": 1}}


@pytest.mark.parametrize(
    ("spec", "target", "patched"),
    [
        ({}, workload(), False),
        (OR_ROLLOUT, workload(), True),
        (OR_ROLLOUT, workload(change=ROLLING), False),
        (OR_ROLLOUT, workload(containers=[container(requests={"cpu": "2", "memory": "2G"})]), False),
    ],
    ids=["InPlace", "InPlaceOrRollout", "a rollout is under way", "the template has the size"],
)
def test_the_template_is_patched_where_pods_can_not_be_resized(
    spec: Mapping[str, Any], target: Any, patched: bool
) -> None:
    found = vertical(desired(cpu="2", memory="2G"), spec, target=target, pods=STUCK)
    assert (found.workload_patch is not None) == patched
    if found.workload_patch is not None:
        template = {"spec": {"containers": [{"name": "app", "resources": {"requests": TARGET["app"]}}]}}
        assert found.workload_patch.body["spec"] == {"replicas": 3, "template": template}
        assert not found.workload_patch.is_scale


def test_a_container_that_is_gone_from_the_template_is_forgotten() -> None:
    status = merged(desired(), {"desired": {"containers": [{"name": "old", "requests": {"cpu": "2"}}]}})
    found = vertical(status)
    assert found.status.desired is not None
    assert [one.name for one in found.status.desired.containers] == ["app"]


def test_the_same_is_decided_again_from_what_was_written() -> None:
    one = hvpa(merged(IN_PLACE, {"hpa": {"deploy": False}}))
    pods = [pod(f"web-{number}", change={"metadata": OWNER}) for number in range(3)]
    first = decided(objects(one, workload(), None, vpa(TARGET), pods))
    again = decided(objects(with_status(one, first.status), workload(), None, vpa(TARGET), pods))
    assert again.resizes == first.resizes
    assert again.status == first.status
    assert not again.applied


def test_new_pods_have_the_desired_size_or_while_it_is_tried_the_one_before() -> None:
    app = RecommendedContainer(name="app", requests={"cpu": "2"})
    before = RecommendedContainer(name="app", requests={"cpu": "1"})
    size = DesiredSize(replicas=3, containers=(app,), since=NOW)
    tried = size.model_copy(update={"canary": CanaryRun(previous=(before,))})
    found = [size_of_new_pods(one) for one in (None, size, tried)]
    assert [one and one["app"].requests for one in found] == [{}, {"cpu": 2000}, {"cpu": 1000}]
