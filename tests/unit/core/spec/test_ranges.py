"""Remarks on bounds, thresholds and waits that leave a direction nothing to do, and none where something can move."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hvpa.core.spec.ranges import review_ranges, review_resizes
from hvpa.core.spec.review import review
from tests.unit.core.spec.remedies import faults
from tests.unit.core.spec.test_review import INTERVALS, TEMPLATE, interval, spec_of

POLICIES = "spec.vpa.template.spec.resourcePolicy.containerPolicies"
CPU, MEMORY = (f"{POLICIES}[0].maxAllowed[{resource}]" for resource in ("cpu", "memory"))
OFF = {"updateMode": "Off"}


def policies(**fields: Any) -> dict[str, Any]:
    return {POLICIES: [{"containerName": "*", **fields}]}


def cpu(least: str, most: str) -> dict[str, Any]:
    return policies(minAllowed={"cpu": least}, maxAllowed={"cpu": most})


def off(axis: str) -> dict[str, Any]:
    return {f"spec.{axis}.{name}.updatePolicy": OFF for name in ("scaleUp", "scaleDown")}


def change(name: str, **params: Any) -> dict[str, Any]:
    axis = "hpa" if "replicas" in params else "vpa"
    return {f"spec.{axis}.{name}.minChange": params}


UP, DOWN = "scaleUp", "scaleDown"
JOINT = {"spec.blend": "Trajectory"}
REPLACED = {"spec.updateStrategy.type": "Rollout"}
NO_WINDOWS = ("spec.maintenanceWindows", "spec.maintenanceTimeWindow")
NARROW = cpu("4", "4050m") | change(UP) | change(DOWN, cpu={"value": "50m"})
CASES: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "a request that has one value": (cpu("1", "1000m"), {CPU: [
        "minAllowed and maxAllowed are both 1: HVPA sets the cpu request to that once and never changes it"]}),
    "nothing but 0": (policies(maxAllowed={"memory": 0}), {MEMORY: ["minAllowed and maxAllowed are both 0"]}),
    "a range narrower than minChange's default": (
        cpu("100m", "250m") | change(UP), {CPU: [
            "requests range from 100m to 250m, but scaleUp.minChange is 200m: the cpu request is never raised before"
            " minChangeTimeout (10m) has passed",
            "requests range from 100m to 250m, but scaleDown.minChange is 200m: the cpu request is never lowered"]}),
    "a range in which no rise is large enough for the timeout either": (
        NARROW, {CPU: [
            "requests range from 4 to 4050m, but scaleUp.minChange is 200m: the cpu request is never raised"]}),
    "a large minChange": (
        policies(minAllowed={"memory": "1Gi"}, maxAllowed={"memory": "2Gi"}) | change(DOWN, memory={"value": "3Gi"}), {
            MEMORY: ["requests range from 1Gi to 2Gi, but scaleDown.minChange is 3Gi: the memory request is never"]}),
    "a percentage that no change reaches": (
        cpu("3", "4") | change(DOWN, cpu={"percentage": 50}), {
            CPU: ["requests range from 3 to 4, but scaleDown.minChange is 2: the cpu request is never lowered"]}),
    "on a path, requests may go along with others": (
        cpu("100m", "250m") | change(UP, cpu={"value": "10m"}) | change(DOWN, cpu={"value": "200m"}) | JOINT | REPLACED,
        {CPU: [
            "requests range from 100m to 250m, but scaleDown.minChange is 200m: the cpu request is never lowered"
            " alone"]}),
    "more replicas at once than there may be": (
        change(UP, replicas={"value": 20}) | change(DOWN, replicas={"percentage": 95}), {
            "spec.hpa.scaleUp.minChange.replicas": [
                "replicas range from 1 to 10, but minChange is 20: HVPA never adds a replica"],
            "spec.hpa.scaleDown.minChange.replicas": [
                "replicas range from 1 to 10, but minChange is 10: HVPA never removes a replica"],
        }),
    "an HPA whose behavior is Disabled": (
        {f"{TEMPLATE}.behavior": {name: {"selectPolicy": "Disabled"} for name in (UP, DOWN)}}, {
            f"{TEMPLATE}.behavior": ["selectPolicy is Disabled in both directions"]}),
    "waits of days": (
        {"spec.hpa.scaleDown.stabilizationDuration": "48h", "spec.vpa.scaleUp.stabilizationDuration": "25h",
         "spec.vpa.scaleUp.minChangeTimeout": "240h", "spec.vpa.scaleDown.stabilizationDuration": "720h",
         "spec.vpa.scaleDown.minHistory": "216h"}, {
            "spec.hpa.scaleDown.stabilizationDuration": ["HVPA removes no replica for 48h"],
            "spec.vpa.scaleUp.stabilizationDuration": ["HVPA raises no request for 25h"],
            "spec.vpa.scaleDown.stabilizationDuration": ["HVPA lowers no request for 720h"],
            "spec.vpa.scaleDown.minHistory": ["HVPA lowers no request in the first 216h"],
            "spec.vpa.scaleUp.minChangeTimeout": ["an increase below minChange waits for 240h"]}),
    "both axes Off": (off("hpa") | off("vpa"), {
        "spec": ["HVPA scales nothing: spec.hpa is Off in both directions, and spec.vpa is Off in both directions"]}),
    "weights of 0 beside an HPA that is Off": (off("hpa") | {INTERVALS: [interval(0)]}, {
        "spec": ["HVPA scales nothing: spec.hpa is Off in both directions, and the vertical weight is 0"]}),
    "weights of 100 beside a VPA that is Off": (off("vpa") | {INTERVALS: [interval(100)]}, {
        "spec": ["HVPA scales nothing: all weights are 100 percent vertical, and spec.vpa is Off"]}),
    "an HPA that is Off, alone": (off("hpa") | {"spec.vpa": {}}, {
        "spec": ["HVPA scales nothing: spec.hpa is Off in both directions, and no VPA is deployed or named"]}),
    "a VPA that is Off, alone": (off("vpa") | {"spec.hpa": {}}, {
        "spec": ["HVPA scales nothing: no HPA is deployed or named, and spec.vpa is Off in both directions"]}),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES.keys())
def test_what_leaves_a_direction_nothing_to_do_is_named(
    changes: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    remarks = review_ranges(spec_of(changes))
    assert [remark.path for remark in remarks] == [
        path for path, reasons in expected.items() for _ in reasons
    ]
    for remark, reason in zip(remarks, itertools.chain(*expected.values()), strict=True):
        assert remark.reason.startswith(reason)
        assert faults(remark.remedy) == []


def test_a_reason_says_no_more_than_is_true() -> None:
    (remark,) = review_ranges(spec_of(NARROW))
    assert remark.reason.endswith("never raised")


DISABLED = {"selectPolicy": "Disabled"}
SILENT: dict[str, dict[str, Any]] = {
    "a range as wide as minChange": cpu("100m", "300m"),
    "a percentage that makes minChange small": (
        cpu("100m", "250m") | change(UP, cpu={"percentage": 20}) | change(DOWN, cpu={"value": "1", "percentage": 20})),
    "one value, and a VPA that is Off": cpu("1", "1") | off("vpa"),
    "a narrow range, and no way down": (
        cpu("100m", "250m") | change(UP, cpu={"value": "50m"}) | {"spec.vpa.scaleDown.updatePolicy": OFF}),
    "a narrow range, and no way up": (
        cpu("100m", "250m") | change(DOWN, cpu={"value": "50m"}) | {"spec.vpa.scaleUp.updatePolicy": OFF}),
    "one value of a container that is left alone": policies(
        mode="Off", minAllowed={"cpu": 1}, maxAllowed={"cpu": 1}),
    "one value of a resource that is left alone": policies(
        controlledResources=["memory"], minAllowed={"cpu": 1}, maxAllowed={"cpu": 1}),
    "a lower end alone": policies(minAllowed={"cpu": "1"}),
    "no policies": {"spec.vpa.template.spec": {}},
    "a named VPA, whose policies are its own": {
        "spec.vpa": {"name": "mine", "template": {"spec": {"resourcePolicy": {"containerPolicies": []}}}}},
    "an HPA that is Disabled in one direction": {f"{TEMPLATE}.behavior": {DOWN: DISABLED}},
    "an HPA that is Disabled and Off": off("hpa") | {f"{TEMPLATE}.behavior": {UP: DISABLED, DOWN: DISABLED}},
    "a long wait of a direction that is Off": {
        "spec.hpa.scaleDown": {"updatePolicy": OFF, "stabilizationDuration": "999h"}},
    "a large minChange of a direction that is Off": {
        "spec.hpa.scaleUp": {"updatePolicy": OFF, "minChange": {"replicas": {"value": 99}}}},
    "both axes Off in mode Recommend": off("hpa") | off("vpa") | {"spec.mode": "Recommend"},
    "weights of 0 on a path": off("hpa") | {INTERVALS: [interval(0)]} | JOINT,
    "on a path, in place, which has no minChange by default": cpu("100m", "250m") | JOINT,
    "nothing deployed": {"spec.hpa": {}, "spec.vpa": {}},
}  # fmt: skip


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_what_may_move_or_is_switched_off_gets_no_remark(changes: dict[str, Any]) -> None:
    assert review_ranges(spec_of(changes)) == ()


def test_a_fixed_count_is_no_remark_where_the_hpa_is_off() -> None:
    fixed = {f"{TEMPLATE}.minReplicas": 10}
    path = f"{TEMPLATE}.minReplicas"
    assert path in [remark.path for remark in review(spec_of(fixed))]
    assert path not in [remark.path for remark in review(spec_of(fixed | off("hpa")))]


# --- resizes ---------------------------------------------------------------------------------------------------------
STRATEGY = "spec.updateStrategy"
RESIZES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "a rollout after a resize that was not waited for": (
        {"type": "InPlaceOrRollout", "timeout": "9s"}, {}, "timeout", "9s is shorter than a kubelet may take"
        " to report a resize: pods are replaced by a rollout"),
    "pods that count as stuck at once": (
        {"type": "InPlace", "timeout": "1s"}, {}, "timeout", "1s is shorter than a kubelet may take to report a"
        " resize: pods count as stuck"),
    "all pods in percent": ({"type": "InPlace", "maxUnavailable": "100%"}, {}, "maxUnavailable",
                            "100% allows all pods at once"),
    "all pods": ({"type": "InPlace", "maxUnavailable": 10}, {}, "maxUnavailable",
                 "10 allows all pods at once (maxReplicas 10)"),
    "a VPA that is off": ({"type": "InPlaceOrRollout"}, off("vpa"), "type", "InPlaceOrRollout resizes no pod"),
    "a timeout of rollouts": ({"timeout": "1m"}, {}, "timeout", "has no effect: with type Rollout"),
    "pods of rollouts": ({"maxUnavailable": 2}, {}, "maxUnavailable", "has no effect: with type Rollout"),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "changes", "field", "reason"), RESIZES.values(), ids=RESIZES.keys())
def test_a_remark_on_resizes_names_the_field_the_reason_and_a_remedy(
    strategy: dict[str, Any], changes: dict[str, Any], field: str, reason: str
) -> None:
    (remark,) = review_resizes(spec_of({STRATEGY: strategy, **changes}))
    assert remark.path == f"{STRATEGY}.{field}"
    assert remark.reason.startswith(reason)
    assert faults(remark.remedy) == []


SILENT_RESIZES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, {}, ()),
    "what the API server fills in": ({"type": "Rollout", "timeout": "5m", "maxUnavailable": "25%"}, {}, ()),
    "the shortest timeout": ({"type": "InPlaceOrRollout", "timeout": "10s"}, {}, ()),
    "fewer than all pods": ({"type": "InPlace", "maxUnavailable": 9}, {}, ()),
    "a single pod": ({"type": "InPlace", "maxUnavailable": 1}, {f"{TEMPLATE}.maxReplicas": 1}, ()),
    "a count without known bounds": ({"type": "InPlace", "maxUnavailable": 9}, {"spec.hpa": {"name": "h"}}, ()),
    "a VPA that is off in one direction": (
        {"type": "InPlace"}, {"spec.vpa.scaleDown.updatePolicy.updateMode": "Off"}, ()),
    "replicas alone, which need no right to change templates": ({"type": "InPlace"}, {}, ("spec.vpa",)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "changes", "removed"), SILENT_RESIZES.values(), ids=SILENT_RESIZES.keys()
)
def test_resizes_that_work_get_no_remark(
    strategy: dict[str, Any], changes: dict[str, Any], removed: tuple[str, ...]
) -> None:
    assert review_resizes(spec_of({STRATEGY: strategy, **changes}, removed)) == ()


UTILIZATION = "spec.hpa.template.spec.metrics"
FAST = {"spec.fastSignal": {"mode": "Raise"}, STRATEGY: {"type": "InPlace"}}


def of_cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {UTILIZATION: [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}


@pytest.mark.parametrize(
    ("changes", "path", "reason"),
    [
        (FAST | of_cpu(95), "spec.fastSignal.above", "90 is not above the HPA's target of 95 percent"),
        (FAST | {STRATEGY: {"type": "Rollout"}}, "spec.fastSignal", "has no effect: with type Rollout"),
    ],
    ids=["above its target", "replaced"],
)
def test_a_fast_signal_that_is_always_or_never_hot_is_named(
    changes: dict[str, Any], path: str, reason: str
) -> None:
    (remark,) = review_resizes(spec_of(changes))
    assert remark.path == path
    assert remark.reason.startswith(reason)
    assert faults(remark.remedy) == []


def test_a_fast_signal_above_the_target_is_not_named() -> None:
    assert review_resizes(spec_of(FAST | of_cpu(80))) == ()
