"""Remarks on bounds, thresholds and waits that leave a direction nothing to do, and none where something can move."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.spec.ranges import review_ranges
from hvpa.core.spec.review import review
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
NO_WINDOWS = ("spec.maintenanceWindows", "spec.maintenanceTimeWindow")
CASES: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "a request that has one value": (cpu("1", "1000m"), {CPU: [
        "minAllowed and maxAllowed are both 1: the cpu request is set to that once and never changes"]}),
    "nothing but 0": (policies(maxAllowed={"memory": 0}), {MEMORY: ["minAllowed and maxAllowed are both 0"]}),
    "a range narrower than minChange's default": (
        cpu("100m", "250m") | change(UP), {CPU: [
            "requests may be 100m to 250m, and scaleUp.minChange is 200m: the cpu request is never raised before"
            " minChangeTimeout (10m) is over",
            "requests may be 100m to 250m, and scaleDown.minChange is 200m: the cpu request is never lowered"]}),
    "a range in which no rise is large enough for the timeout either": (
        cpu("4", "4050m") | change(UP) | change(DOWN, cpu={"value": "50m"}), {CPU: [
            "requests may be 4 to 4050m, and scaleUp.minChange is 200m: the cpu request is never raised"]}),
    "a large minChange": (
        policies(minAllowed={"memory": "1Gi"}, maxAllowed={"memory": "2Gi"}) | change(DOWN, memory={"value": "3Gi"}), {
            MEMORY: ["requests may be 1Gi to 2Gi, and scaleDown.minChange is 3Gi: the memory request is never"]}),
    "a percentage that no change reaches": (
        cpu("3", "4") | change(DOWN, cpu={"percentage": 50}), {
            CPU: ["requests may be 3 to 4, and scaleDown.minChange is 2: the cpu request is never lowered"]}),
    "on a path, requests may go along with others": (
        cpu("100m", "250m") | change(UP, cpu={"value": "10m"}) | {"spec.blend": "Trajectory"}, {CPU: [
            "requests may be 100m to 250m, and scaleDown.minChange is 200m: the cpu request is never lowered alone"]}),
    "more replicas at once than there may be": (
        change(UP, replicas={"value": 20}) | change(DOWN, replicas={"percentage": 95}), {
            "spec.hpa.scaleUp.minChange.replicas": ["replicas may be 1 to 10, and minChange comes to 20: none"],
            "spec.hpa.scaleDown.minChange.replicas": ["replicas may be 1 to 10, and minChange comes to 10: none"],
        }),
    "an HPA whose behavior is Disabled": (
        {f"{TEMPLATE}.behavior": {name: {"selectPolicy": "Disabled"} for name in (UP, DOWN)}}, {
            f"{TEMPLATE}.behavior": ["selectPolicy is Disabled in both directions"]}),
    "waits of days": (
        {"spec.hpa.scaleDown.stabilizationDuration": "48h", "spec.vpa.scaleUp.stabilizationDuration": "25h",
         "spec.vpa.scaleUp.minChangeTimeout": "240h", "spec.vpa.scaleDown.stabilizationDuration": "720h",
         "spec.vpa.scaleDown.minHistory": "216h"}, {
            "spec.hpa.scaleDown.stabilizationDuration": ["no replica is taken away for 48h"],
            "spec.vpa.scaleUp.stabilizationDuration": ["no request is raised for 25h"],
            "spec.vpa.scaleDown.stabilizationDuration": ["no request is lowered for 720h"],
            "spec.vpa.scaleDown.minHistory": ["no request is lowered in the first 216h"],
            "spec.vpa.scaleUp.minChangeTimeout": ["a rise that is smaller than minChange waits for 240h"]}),
    "both axes Off": (off("hpa") | off("vpa"), {
        "spec": ["nothing is scaled: spec.hpa is Off in both directions, and spec.vpa is Off in both directions"]}),
    "weights of 0 beside an HPA that is Off": (off("hpa") | {INTERVALS: [interval(0)]}, {
        "spec": ["nothing is scaled: spec.hpa is Off in both directions, and the vertical weight is 0"]}),
    "weights of 100 beside a VPA that is Off": (off("vpa") | {INTERVALS: [interval(100)]}, {
        "spec": ["nothing is scaled: all weights are 100 percent vertical, and spec.vpa is Off"]}),
    "an HPA that is Off, alone": (off("hpa") | {"spec.vpa": {}}, {
        "spec": ["nothing is scaled: spec.hpa is Off in both directions, and no VPA is deployed or named"]}),
    "a VPA that is Off, alone": (off("vpa") | {"spec.hpa": {}}, {
        "spec": ["nothing is scaled: no HPA is deployed or named, and spec.vpa is Off in both directions"]}),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "told"), CASES.values(), ids=CASES.keys())
def test_what_leaves_a_direction_nothing_to_do_is_named(
    changes: dict[str, Any], told: dict[str, list[str]]
) -> None:
    remarks = review_ranges(spec_of(changes))
    expected = [(path, reason) for path, reasons in told.items() for reason in reasons]
    assert [one.path for one in remarks] == [path for path, _ in expected]
    for one, (_, reason) in zip(remarks, expected, strict=True):
        assert one.reason.startswith(reason)
        assert one.remedy


def test_a_reason_says_no_more_than_is_true() -> None:
    (remark,) = review_ranges(spec_of(cpu("4", "4050m") | change(UP) | change(DOWN, cpu={"value": "50m"})))
    assert remark.reason.endswith("never raised")


SILENT: dict[str, dict[str, Any]] = {
    "a range as wide as minChange": cpu("100m", "300m"),
    "a percentage that makes minChange small": cpu("100m", "250m")
    | change(UP, cpu={"percentage": 20})
    | change(DOWN, cpu={"value": "1", "percentage": 20}),
    "one value, and a VPA that is Off": cpu("1", "1") | off("vpa"),
    "a narrow range, and no way down": cpu("100m", "250m")
    | change(UP, cpu={"value": "50m"})
    | {"spec.vpa.scaleDown.updatePolicy": OFF},
    "a narrow range, and no way up": cpu("100m", "250m")
    | change(DOWN, cpu={"value": "50m"})
    | {"spec.vpa.scaleUp.updatePolicy": OFF},
    "one value of a container that is left alone": policies(
        mode="Off", minAllowed={"cpu": 1}, maxAllowed={"cpu": 1}
    ),
    "one value of a resource that is left alone": policies(
        controlledResources=["memory"], minAllowed={"cpu": 1}, maxAllowed={"cpu": 1}
    ),
    "a lower end alone": policies(minAllowed={"cpu": "1"}),
    "no policies": {"spec.vpa.template.spec": {}},
    "a named VPA, whose policies are its own": {
        "spec.vpa": {"name": "mine", "template": {"spec": {"resourcePolicy": {"containerPolicies": []}}}}
    },
    "an HPA that is Disabled in one direction": {
        f"{TEMPLATE}.behavior": {"scaleDown": {"selectPolicy": "Disabled"}}
    },
    "an HPA that is Disabled and Off": off("hpa")
    | {f"{TEMPLATE}.behavior": {name: {"selectPolicy": "Disabled"} for name in (UP, DOWN)}},
    "a long wait of a direction that is Off": {
        "spec.hpa.scaleDown": {"updatePolicy": OFF, "stabilizationDuration": "999h"}
    },
    "a large minChange of a direction that is Off": {
        "spec.hpa.scaleUp": {"updatePolicy": OFF, "minChange": {"replicas": {"value": 99}}}
    },
    "both axes Off in mode Recommend": off("hpa") | off("vpa") | {"spec.mode": "Recommend"},
    "weights of 0 on a path": off("hpa") | {INTERVALS: [interval(0)], "spec.blend": "Trajectory"},
    "nothing deployed": {"spec.hpa": {}, "spec.vpa": {}},
}


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_what_may_move_or_is_switched_off_gets_no_remark(changes: dict[str, Any]) -> None:
    assert review_ranges(spec_of(changes)) == ()


def test_a_fixed_count_is_no_remark_where_the_hpa_is_off() -> None:
    fixed = {f"{TEMPLATE}.minReplicas": 10}
    path = f"{TEMPLATE}.minReplicas"
    assert path in [one.path for one in review(spec_of(fixed))]
    assert path not in [one.path for one in review(spec_of(fixed | off("hpa")))]
