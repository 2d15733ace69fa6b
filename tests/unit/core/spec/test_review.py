"""Remarks on what is valid and probably not meant: each where it is true, and none where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.spec.review import Remark, holes, review
from tests.manifests import base, changed
from tests.unit.core.spec.remedies import faults

INTERVALS = "spec.weightBasedScalingIntervals"
TEMPLATE = "spec.hpa.template.spec"
CPU = {"type": "Resource", "resource": {"name": "cpu", "targetAverageValue": "300m"}}
UTILIZATION = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 70}}
QUIET: dict[str, Any] = {f"{TEMPLATE}.metrics": [CPU], INTERVALS: [{"vpaWeight": 50}]}
"""Changes that make the complete manifest one without remarks."""
ROLLOUT = {"spec.targetRef.kind": "Rollout", "spec.targetRef.apiVersion": "argoproj.io/v1alpha1"}


def spec_of(changes: dict[str, Any], removed: tuple[str, ...] = ()) -> HvpaSpec:
    """The complete spec without remarks, changed."""
    manifest = changed(base(), {**QUIET, **changes}, removed)
    spec, problems = parse_spec(manifest["spec"])
    assert spec is not None, problems
    return spec


def interval(weight: float, start: int | None = None, last: int | None = None) -> dict[str, Any]:
    return {"vpaWeight": weight, "startReplicaCount": start, "lastReplicaCount": last}


def test_what_works_as_it_is_written_gets_no_remark() -> None:
    assert review(spec_of({})) == ()
    assert review(spec_of({**ROLLOUT, "spec.updateStrategy": {"type": "InPlace"}})) == ()


def floors(*counts: int) -> list[dict[str, Any]]:
    return [{"schedule": "0 9 * * *", "duration": "8h", "minReplicas": count} for count in counts]


NO_HPA: dict[str, Any] = {"spec.hpa": {"schedule": floors(3)}, "spec.trajectory": {}}
STEPS = [{"maxReplicas": 5, "maxResources": {"cpu": "2", "memory": "2Gi"}}]
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, str]]] = {
    "nothing that recommends": ({}, ("spec.hpa", "spec.vpa", "spec.maintenanceWindows", "spec.maintenanceTimeWindow"), {
        "spec": "neither spec.hpa nor spec.vpa is deployed or named",
    }),
    "templates that are not deployed": ({"spec.hpa.deploy": False, "spec.vpa.deploy": False}, (), {
        "spec.hpa.template": "has no effect: deploy is not true",
        "spec.vpa.template": "has no effect: deploy is not true",
        "spec": "neither spec.hpa",
        "spec.maintenanceWindows": "has no effect",
    }),
    "fields that HVPA does not know, with names like those of known fields": ({
        f"{TEMPLATE}.minreplica": 2, f"{TEMPLATE}.recommenders": [],
        "spec.vpa.template.spec": {"resourcePolicies": {}, "recommenders": [{"name": "fast"}]},
    }, (), {
        f"{TEMPLATE}.minreplica": "HVPA does not know this field, and passes it on to the HPA",
        "spec.vpa.template.spec.resourcePolicies": "HVPA does not know this field, and passes it on to the VPA",
    }),
    "a kind that is not scaled": ({"spec.targetRef.kind": "Job"}, (), {
        "spec.targetRef.kind": "a Job is not scaled",
    }),
    "a custom kind's template": (ROLLOUT, (), {
        "spec.updateStrategy.type": "the pod template of a Rollout can't be changed",
    }),
    "deletion costs of pods that are replaced": (
        {"spec.updateStrategy": {"type": "Rollout", "podDeletionCost": "BySize"}}, (), {
        "spec.updateStrategy.podDeletionCost": "has no effect: with updateStrategy.type Rollout",
    }),
    "deletion costs of a StatefulSet": (
        {"spec.targetRef.kind": "StatefulSet",
         "spec.updateStrategy": {"type": "InPlace", "podDeletionCost": "BySize"}}, (), {
        "spec.updateStrategy.podDeletionCost": "has no effect: a StatefulSet does not choose pods by their cost",
    }),
    "a count that never changes": ({f"{TEMPLATE}.minReplicas": 10}, (), {
        f"{TEMPLATE}.minReplicas": "minReplicas and maxReplicas are both 10",
    }),
    "one replica at most": ({f"{TEMPLATE}.maxReplicas": 1}, (f"{TEMPLATE}.minReplicas",), {
        f"{TEMPLATE}.maxReplicas": "minReplicas and maxReplicas are both 1",
    }),
    "an overlap": ({INTERVALS: [interval(0, 1, 6), interval(50, 3, 10)]}, (), {
        f"{INTERVALS}[1]": "overlaps entry 0 of the list at 3 to 6 replicas: the first matching entry applies",
    }),
    "an overlap in another order": ({INTERVALS: [interval(50, 3, 10), interval(0, 1, 6)]}, (), {
        f"{INTERVALS}[1]": "overlaps entry 0 of the list at 3 to 6 replicas",
    }),
    "an overlap of intervals without an end": ({INTERVALS: [interval(0, 1, 2), interval(50, 2), interval(60, 4)]}, (), {
        f"{INTERVALS}[2]": "overlaps entry 1 of the list from 4 replicas on",
    }),
    "an overlap without an end": ({INTERVALS: [interval(60, 5), interval(50, 2)],
                                   "spec.hpa": {}, "spec.hpa.name": "other"},
                                  ("spec.maintenanceWindows", "spec.maintenanceTimeWindow"), {
        f"{INTERVALS}[1]": "overlaps entry 0 of the list from 5 replicas on",
    }),
    "neighbours in any order": ({INTERVALS: [interval(60, 7, 10), interval(40, 1, 3), interval(50, 3, 7)]}, (), {}),
    "a hole between intervals in another order": ({INTERVALS: [interval(50, 5, 10), interval(0, 1, 3)]}, (), {
        INTERVALS: "no interval contains 4 replicas",
    }),
    "a hole": ({INTERVALS: [interval(0, 1, 3), interval(50, 5, 10)]}, (), {
        INTERVALS: "no interval contains 4 replicas",
    }),
    "intervals out of the bounds": ({INTERVALS: [interval(5, 1, 1), interval(50, 1, 20), interval(5, 20, 30)],
                                     f"{TEMPLATE}.minReplicas": 2}, (), {
        f"{INTERVALS}[0].lastReplicaCount": "1 is below minReplicas (2): it never applies",
        f"{INTERVALS}[1].lastReplicaCount": "20 is above maxReplicas (10): the count is never that high",
        f"{INTERVALS}[2].startReplicaCount": "20 is above maxReplicas (10): it never applies",
    }),
    "a VPA without weights": ({INTERVALS: []}, (), {"spec.vpa": "there are no intervals, so the weight is 0"}),
    "a VPA with weights of 0": ({INTERVALS: [interval(0)]}, (), {INTERVALS: "all weights are 0"}),
    "an HPA with weights of 100": ({INTERVALS: [interval(100)]}, (), {INTERVALS: "all weights are 100 percent"}),
    "a utilization beside a VPA": ({f"{TEMPLATE}.metrics": [CPU, UTILIZATION]}, (), {
        f"{TEMPLATE}.metrics[1]": "the HPA follows the utilization of cpu",
    }),
    "a container's utilization beside a VPA that leaves one container alone": (
        {f"{TEMPLATE}.metrics": [{"type": "ContainerResource", "containerResource": {
            "name": "memory", "container": "app", "targetAverageUtilization": 60}}],
         "spec.vpa.template.spec.resourcePolicy.containerPolicies": [{"containerName": "log", "mode": "Off"}]}, (), {
            f"{TEMPLATE}.metrics[0]": "the HPA follows the utilization of memory",
        }),
    "the HPA's own metric beside a VPA": ({f"{TEMPLATE}.metrics": []}, ("spec.vpa.template.spec",), {
        TEMPLATE: "the HPA follows the utilization of cpu",
    }),
    "a window that never opens": ({}, ("spec.maintenanceWindows", "spec.maintenanceTimeWindow"), {
        "spec.hpa.scaleDown.updatePolicy.updateMode": "waits for a maintenance window, but none is configured",
    }),
    "windows that nothing waits for": ({"spec.hpa.scaleDown.updatePolicy.updateMode": "Auto"},
                                       ("spec.maintenanceWindows",), {
        "spec.maintenanceTimeWindow": "has no effect: no direction waits for a window",
    }),
    "floors out of the bounds": ({"spec.hpa.schedule": floors(1, 2, 10, 11)}, (), {
        "spec.hpa.schedule[0].minReplicas": "1 is not above the HPA's minReplicas (1): it has no effect",
        "spec.hpa.schedule[3].minReplicas": "11 is above maxReplicas (10), which takes precedence",
    }),
    "floors without an HPA": (NO_HPA, ("spec.maintenanceWindows", "spec.maintenanceTimeWindow"), {
        "spec.hpa.schedule": "has no effect: no HPA is deployed or named",
    }),
    "floors that nothing is added for": (
        {"spec.hpa.schedule": floors(3), "spec.hpa.scaleUp.updatePolicy.updateMode": "Off"}, (), {
            "spec.hpa.schedule": "adds no replicas: spec.hpa.scaleUp.updatePolicy.updateMode is Off",
        }),
    "a fallback without an HPA": (
        {"spec.hpa": {"fallback": {"replicas": 3}}, "spec.trajectory": {}},
        ("spec.maintenanceWindows", "spec.maintenanceTimeWindow"),
        {"spec.hpa.fallback": "has no effect: no HPA is deployed or named"}),
    "a fallback that changes nothing": ({"spec.hpa.fallback": {}}, (), {
        "spec.hpa.fallback.replicas": "Current is what HVPA does without a fallback: the replicas stay",
    }),
    "a fallback that nothing is added for": (
        {"spec.hpa.fallback": {"replicas": 3}, "spec.hpa.scaleUp.updatePolicy.updateMode": "Off"}, (), {
            "spec.hpa.fallback": "adds no replicas: spec.hpa.scaleUp.updatePolicy.updateMode is Off",
        }),
    "a fallback above maxReplicas": ({"spec.hpa.fallback": {"replicas": 11}}, (), {
        "spec.hpa.fallback.replicas": "11 is above maxReplicas (10), which takes precedence",
    }),
    "approvals without a VPA": ({"spec.mode": "Review", INTERVALS: []}, ("spec.vpa",), {
        "spec.mode": "only requests wait for an approval, and no VPA is deployed or named",
    }),
    "a runtime of which nothing is known": (
        {"spec.runtimes": [{"container": "app", "kind": "Java"}, {"container": "log", "kind": "Other"}]}, (), {
            "spec.runtimes[1]": "has no effect: HVPA knows neither this runtime nor its heap",
        }),
    "a forecast without an HPA": (
        {"spec.hpa": {}, "spec.forecast": {}, "spec.trajectory": {}},
        ("spec.maintenanceWindows", "spec.maintenanceTimeWindow"),
        {"spec.forecast": "has no effect: no HPA is deployed or named"}),
    "a forecast that nothing is added for": (
        {"spec.forecast": {}, "spec.hpa.scaleUp.updatePolicy.updateMode": "Off"}, (), {
            "spec.forecast": "adds no replicas: spec.hpa.scaleUp.updatePolicy.updateMode is Off",
        }),
    "a forecast that adds replicas": ({"spec.forecast": {"history": "7d", "quantile": 90}}, (), {}),
    "a target of 7 for 70": ({f"{TEMPLATE}.metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 7}}}],
        INTERVALS: [interval(100, 1, 2), interval(0, 2, 10)]}, (), {
        f"{TEMPLATE}.metrics[0]": "a target of 7 percent: pods request 14 times their usage",
    }),
    "a bound of replicas that bounds nothing": ({f"{TEMPLATE}.maxReplicas": 1000}, (), {
        f"{TEMPLATE}.maxReplicas": "1000 is too high to be a limit",
    }),
    "a path without an end": ({"spec.blend": "Trajectory"}, ("spec.vpa.template.spec",), {
        "spec.vpa.template.spec.resourcePolicy": "no maxAllowed for cpu and memory",
    }),
    "a path with an end for one resource": ({"spec.blend": "Trajectory",
        "spec.vpa.template.spec.resourcePolicy.containerPolicies": [
            {"containerName": "app", "maxAllowed": {"cpu": "4"}}]}, (), {
        "spec.vpa.template.spec.resourcePolicy": "no maxAllowed for memory",
    }),
    "scaling out that waits for an hour": ({"spec.hpa.scaleUp.stabilizationDuration": "1h30m"}, (), {
        "spec.hpa.scaleUp.stabilizationDuration": "HVPA adds no replica for 1h30m",
    }),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "removed", "expected"), CASES.values(), ids=CASES.keys())
def test_a_remark_names_the_field_the_reason_and_a_remedy(
    changes: dict[str, Any], removed: tuple[str, ...], expected: dict[str, str]
) -> None:
    remarks = {remark.path: remark for remark in review(spec_of(changes, removed))}
    assert remarks.keys() == expected.keys()
    for path, reason in expected.items():
        assert remarks[path].reason.startswith(reason)
        assert faults(remarks[path].remedy) == []


SOME_VERTICAL = f"set a vpaWeight above 0 in {INTERVALS}, or remove spec.vpa"
SOME_HORIZONTAL = (
    "set a vpaWeight below 100 at the counts at which HVPA should scale replicas, or remove spec.hpa"
)


@pytest.mark.parametrize(
    ("weights", "remedy", "followed", "removed"),
    [
        ([], SOME_VERTICAL, [10], "spec.vpa"),
        ([0], SOME_VERTICAL, [10], "spec.vpa"),
        ([100], SOME_HORIZONTAL, [90], "spec.hpa"),
    ],
)
def test_a_vpa_weight_that_excludes_a_recommender_is_mended_by_its_remedy(
    weights: list[int], remedy: str, followed: list[int], removed: str
) -> None:
    excluding, mended = (
        {INTERVALS: [interval(weight) for weight in vpa_weights]} for vpa_weights in (weights, followed)
    )
    assert [remark.remedy for remark in review(spec_of(excluding))] == [remedy]
    assert review(spec_of(mended)) == ()
    alone = {**excluding, "spec.vpa.scaleDown.updatePolicy.updateMode": "MaintenanceWindow"}
    assert review(spec_of(excluding if removed == "spec.vpa" else alone, (removed,))) == ()


ALONE: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a utilization on a path": ({f"{TEMPLATE}.metrics": [UTILIZATION], "spec.blend": "Trajectory"}, ()),
    "a utilization where one axis is scaled at a time": (
        {f"{TEMPLATE}.metrics": [UTILIZATION], INTERVALS: [interval(100, 1, 2), interval(0, 2, 10)]}, ()),
    "a utilization of what the VPA does not control": (
        {f"{TEMPLATE}.metrics": [UTILIZATION],
         "spec.vpa.template.spec.resourcePolicy.containerPolicies": [
             {"containerName": "*", "controlledResources": ["memory"]}]}, ()),
    "a utilization beside a VPA that is off": (
        {f"{TEMPLATE}.metrics": [UTILIZATION],
         "spec.vpa.template.spec.resourcePolicy.containerPolicies": [{"containerName": "*", "mode": "Off"}]}, ()),
    "a metric of another kind": ({f"{TEMPLATE}.metrics": [
        {"type": "External", "external": {"metricName": "queue", "targetValue": 30}}]}, ()),
    "a weight of 100 with a hole, where replicas are scaled": (
        {INTERVALS: [interval(100, 1, 9)], "spec.blend": "Trajectory"}, ()),
    "floors of a path that is written out, without an HPA": (
        {"spec.hpa": {"schedule": floors(3)}, INTERVALS: [], "spec.trajectory": {"intervals": STEPS}},
        ("spec.maintenanceWindows", "spec.maintenanceTimeWindow")),
    "many replicas, of which there are always some": (
        {f"{TEMPLATE}.minReplicas": 20, f"{TEMPLATE}.maxReplicas": 1000}, ()),
    "a path whose end each container has, of what is recommended for it": (
        {"spec.blend": "Trajectory", "spec.vpa.template.spec.resourcePolicy.containerPolicies": [
            {"containerName": "app", "controlledResources": ["cpu"], "maxAllowed": {"cpu": "4"}},
            {"containerName": "log", "mode": "Off"}]}, ()),
    "a fallback": ({"spec.hpa.fallback": {"replicas": 10}}, ()),
    "approvals": ({"spec.mode": "Review"}, ()),
    "a runtime whose heap is known": (
        {"spec.runtimes": [{"container": "app", "kind": "Other", "heapPercent": 60}]}, ()),
    "deletion costs": ({"spec.updateStrategy": {"type": "InPlace", "podDeletionCost": "BySize"}}, ()),
    "a target of 20 percent": ({f"{TEMPLATE}.metrics": [{"type": "Resource", "resource": {
        "name": "cpu", "targetAverageUtilization": 20}}], INTERVALS: [interval(100, 1, 2), interval(0, 2, 10)]}, ()),
    "floors of a named HPA": (
        {"spec.hpa": {"name": "h", "schedule": floors(1, 100),
                      "scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}, ()),
    "a named HPA, whose bounds are not known": (
        {"spec.hpa": {"name": "h", "scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
         INTERVALS: [interval(50, 2, 20)]}, ()),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "removed"), ALONE.values(), ids=ALONE.keys())
def test_there_are_no_false_alarms(changes: dict[str, Any], removed: tuple[str, ...]) -> None:
    assert review(spec_of(changes, removed)) == ()


@pytest.mark.parametrize(
    ("intervals", "changes", "found"),
    [
        ([], {}, []),
        ([interval(5)], {}, []),
        ([interval(5, 3, 4)], {}, [(1, 2), (5, 10)]),
        ([interval(5, 3, 4), interval(5, 15)], {}, [(1, 2), (5, 10)]),
        ([interval(5, 1, 12), interval(5, 15)], {}, []),
        ([interval(5, 3, 9)], {"spec.blend": "Trajectory"}, [(1, 2)]),
        ([interval(5, 3, 4), interval(5, 7, 9)], {"spec.hpa": {"name": "h"}}, [(5, 6)]),
    ],
)
def test_weight_based_scaling_intervals_holes_are_counted_within_known_bounds(
    intervals: list[dict[str, Any]], changes: dict[str, Any], found: list[tuple[int, int]]
) -> None:
    assert holes(spec_of({INTERVALS: intervals, **changes})) == found


def test_a_remark_is_one_line() -> None:
    assert str(Remark("spec.x", "is wrong", "mend it")) == "spec.x: is wrong; mend it"
