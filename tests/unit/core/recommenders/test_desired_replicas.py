"""How far the HPA's desired replicas are trusted, and what `spec.replicas` holds (DESIGN 4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, to_wire
from hvpa.api.objects.read_models import Hpa
from hvpa.core import Decision, Objects, Settings
from hvpa.core.recommenders.desired_replicas import metered
from tests.unit.core.trajectory.jointly import Reading, external, hpa, utilization, value


def objects(
    hpa: Hpa | None = None,
    replicas: int = 3,
    scale_replicas: int | None = 3,
    status: HvpaStatus | None = None,
    spec: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """An Hvpa without a VPA, whose `spec.replicas` is `scale_replicas`."""
    horizontal = {"weightBasedScalingIntervals": None, "vpa": {"deploy": False}}
    hvpa = build.hvpa({"replicas": scale_replicas, **horizontal, **(spec or {})})
    hvpa = build.with_status(hvpa, status) if status is not None else hvpa
    return build.objects(hvpa, build.workload(replicas), hpa, **rest)


def decide(hpa: Hpa | None = None, *args: Any, **rest: Any) -> Decision:
    return build.decided(objects(hpa, *args, **rest))


def view(decision: Decision) -> int | None:
    return build.counts(decision).hpa


def warnings(decision: Decision) -> list[str]:
    return [event.reason for event in decision.events if event.type == "Warning"]


TRUSTED: dict[str, tuple[int, int, int, int]] = {
    "the count is what the metrics call for: 100/50 x 3 = 6": (6, 100, 3, 6),
    "between r = 3 and e = 6 it is trusted": (5, 100, 3, 5),
    "beyond e = 6 the nearer of the two counts": (9, 100, 3, 6),
    "on the other side of r, r counts": (2, 100, 3, 3),
    "a stale count: all metrics are within tolerance, so e = r": (7, 50, 3, 3),
    "10 percent above the target is within tolerance": (7, 55, 3, 3),
    "10 percent below the target is within tolerance": (7, 45, 3, 3),
    "12 percent above is not: e = ceil(1.12 x 3) = 4": (7, 56, 3, 4),
    "in: e = ceil(0.4 x 4) = 2, and not further": (1, 20, 4, 2),
    "in, but less than the metrics allow: trusted": (3, 20, 4, 3),
    "everything is clamped to maxReplicas": (99, 500, 3, 10),
    "no use at all: e = 0, clamped to minReplicas": (1, 0, 3, 1),
    "an HPA that has not decided yet wants what there is": (0, 100, 3, 3),
}


@pytest.mark.parametrize(("asked", "utilization", "replicas", "trusted"), TRUSTED.values(), ids=TRUSTED)
def test_desired_replicas_are_trusted_between_the_count_and_the_estimate(
    asked: int, utilization: int, replicas: int, trusted: int
) -> None:
    hpa = build.hpa(asked, utilization, replicas=replicas)
    assert view(decide(hpa, replicas, min(asked, 10))) == trusted


def metric(
    kind: str, source: Mapping[str, Any], target: Mapping[str, Any], current: Mapping[str, Any] | None
) -> Any:
    """A metric as (spec entry, status entry); without a value the HPA leaves an empty entry."""
    field = kind[0].lower() + kind[1:]
    asked = {"type": kind, field: {**source, "target": target}}
    measured = {"type": kind, field: {**source, "current": current}} if current is not None else {"type": ""}
    return asked, measured


def with_metrics(asked: int, metrics: Sequence[Any], **change: Any) -> Hpa:
    change = {
        "spec": {"metrics": [entry for entry, _ in metrics], **change.pop("spec", {})},
        "status": {"currentMetrics": [measured for _, measured in metrics], **change.pop("status", {})},
    }
    return build.hpa(asked, change=change)


CPU = {"name": "cpu"}


def cpu(percent: int) -> Any:
    """CPU at so many percent of its requests, with a target of 50."""
    return metric("Resource", CPU, {"averageUtilization": 50}, {"averageUtilization": percent})


def queue(value: str | None, selector: str = "", target: str = "100") -> Any:
    """An External metric with a target of 100 for all pods."""
    name = {"name": "queue", **({"selector": {"a": selector}} if selector else {})}
    return metric(
        "External", {"metric": name}, {"value": target}, None if value is None else {"value": value}
    )


QUEUE = {"metric": {"name": "queue"}}
INGRESS = {
    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
    "metric": {"name": "hits"},
}
ONE_UNREADY = [build.pod("a"), build.pod("b"), build.pod("c", ready=False)]


ESTIMATES: dict[str, tuple[list[Any], int | None]] = {
    "CPU counts the two ready pods: 3 x 2": ([cpu(150)], 6),
    "memory counts the three running pods: 3 x 3": (
        [metric("Resource", {"name": "memory"}, {"averageUtilization": 50}, {"averageUtilization": 150})], 9),
    "average value: 2.5 x 2": ([metric("Resource", CPU, {"averageValue": "500m"}, {"averageValue": "1250m"})], 5),
    "one container's CPU: 2 x 2": (
        [metric("ContainerResource", {**CPU, "container": "app"},
                {"averageUtilization": 50}, {"averageUtilization": 100})], 4),
    "a pod metric: 2 x 3 running": ([metric("Pods", QUEUE, {"averageValue": "10"}, {"averageValue": "20"})], 6),
    "an object's value: 3.5 x 2 ready": ([metric("Object", INGRESS, {"value": "100"}, {"value": "350"})], 7),
    "an object's average value: 1.5 x 3 replicas, rounded up": (
        [metric("Object", INGRESS, {"averageValue": "100"}, {"averageValue": "150"})], 5),
    "external value: 2 x 2 ready": ([queue("200")], 4),
    "external average value: 2 x 3 replicas": (
        [metric("External", QUEUE, {"averageValue": "1k"}, {"averageValue": "2e3"})], 6),
    "the largest proposal wins: 2.5 x 2": ([cpu(10), queue("250")], 5),
    "a metric without a value forbids scaling in": ([cpu(10), queue(None)], 3),
    "but not out": ([cpu(100), queue(None)], 4),
    "metrics that differ by their selector alone go by their place: 3 x 2": ([queue("100", "1"), queue("300", "2")], 6),
    "a target of zero has no ratio": ([queue("300", target="0")], None),
    "nor has one that does not parse": ([queue("300", target="many")], None),
    "a utilization is not derived from a value": (
        [metric("Resource", CPU, {"averageUtilization": 50}, {"averageValue": "1"})], None),
    "a type of metric that is not known": ([({"type": "Later"}, {"type": "Later"})], None),
}  # fmt: skip


@pytest.mark.parametrize(("metrics", "expected"), ESTIMATES.values(), ids=ESTIMATES)
def test_the_estimate_by_metric(metrics: Sequence[Any], expected: int | None) -> None:
    hpa = with_metrics(10 if expected is None or expected > 3 else 1, metrics)
    assert view(decide(hpa, pods=ONE_UNREADY)) == expected


def test_measurements_in_another_order_are_distinguished_by_what_they_are_of() -> None:
    # A status from before the spec's metrics were put in another order.
    hits = metric("External", QUEUE, {"averageValue": "10"}, {"averageValue": "20"})  # calls for 2 x 3
    turned = with_metrics(6, [cpu(50), hits], status={"currentMetrics": [hits[1], cpu(50)[1]]})
    assert view(decide(turned, scale_replicas=6)) == 6


def test_an_hpa_without_metrics_goes_by_cpu_at_80_percent() -> None:
    hpa = build.hpa(6, 160, change={"spec": {"metrics": []}})
    assert view(decide(hpa)) == 6


def test_not_more_pods_are_counted_than_there_were_when_the_hpa_measured() -> None:
    # The HPA saw 3 pods at 100 percent and wanted 6; 5 are ready by now, and 100 percent of 5 would call for 10.
    assert view(decide(build.hpa(8, 100, replicas=3), 5, 8)) == 6


def test_where_no_pod_is_known_the_status_says_how_many_there_are() -> None:
    hpa = build.hpa(6, 100, change={"status": {"currentReplicas": 0}})
    assert view(decide(hpa, pods=[])) == 6
    unknown = build.workload(3, change={"status": {"replicas": 0, "readyReplicas": 0}})
    assert view(build.decided(replace(objects(hpa, pods=[]), workload=unknown))) == 6


TOLERANCES: dict[str, tuple[dict[str, Any], int, int]] = {
    "a wider one up: 30 percent above is within": ({"scaleUp": {"tolerance": "0.3"}}, 65, 3),
    "it does not widen the other direction": ({"scaleUp": {"tolerance": "0.3"}}, 30, 2),
    "a wider one down": ({"scaleDown": {"tolerance": "500m"}}, 30, 3),
    "none at all: ceil(1.02 x 3)": ({"scaleUp": {"tolerance": "0"}}, 51, 4),
    "one that does not parse counts as unset": ({"scaleUp": {"tolerance": "?"}}, 56, 4),
    "unset: 0.1": ({"scaleUp": {}}, 55, 3),
}


@pytest.mark.parametrize(("behavior", "utilization", "expected"), TOLERANCES.values(), ids=TOLERANCES)
def test_the_tolerance_is_the_behaviors(behavior: Mapping[str, Any], utilization: int, expected: int) -> None:
    hpa = build.hpa(4 if utilization > 50 else 2, utilization, change={"spec": {"behavior": behavior}})
    assert view(decide(hpa)) == expected


def test_the_tolerance_is_a_setting_of_the_controller_manager() -> None:
    inputs = objects(build.hpa(5, 65))
    assert view(build.decided(inputs)) == 4
    assert view(build.decided(inputs, settings=Settings(hpa_tolerance_ppm=300_000))) == 3


# --- an HPA that can't be used ---------------------------------------------------------------------------------------
def inactive(reason: str, status: str = "False", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": "ScalingActive", "status": status, "reason": reason, **more}]}


INACTIVE = inactive("FailedGetResourceMetric")
UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "ScalingActive is False": (INACTIVE, "FailedGetResourceMetric"),
    "it is switched off": (inactive("ScalingDisabled"), "ScalingDisabled"),
    "ScalingActive is Unknown": (inactive("", "Unknown"), "ScalingInactive"),
    "no currentMetrics": ({"currentMetrics": None}, "NoMetrics"),
    "currentMetrics without a value": ({"currentMetrics": [{"type": ""}]}, "NoMetrics"),
}


@pytest.mark.parametrize(("status", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_hpa_that_cannot_be_used_changes_no_replicas(status: Mapping[str, Any], reason: str) -> None:
    hpa = build.hpa(1, 10, change={"status": status})
    decision = decide(hpa, 5)
    assert view(decision) is None
    assert build.counts(decision).target == 5, "replicas don't fall for it"
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", reason)
    assert (reason in warnings(decision)) is (reason != "NoMetrics"), (
        "an event, unless it is as at every start"
    )
    outside = decide(hpa, 12)
    assert build.counts(outside).target == 10, "it still brings the count inside [min, max]"


@pytest.mark.parametrize(
    ("reason", "seconds", "reported"),
    [
        ("FailedGetResourceMetric", 59, "NoMetrics"),
        ("FailedGetResourceMetric", 60, "FailedGetResourceMetric"),
        ("FailedGetPodsMetric", 0, "NoMetrics"),
        ("FailedGetScale", 0, "FailedGetScale"),
        ("InvalidMetricSourceType", 0, "InvalidMetricSourceType"),
    ],
)
@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_metrics_are_missing_for_a_minute_before_another_client_has_to_act(
    mode: str, reason: str, seconds: int, reported: str
) -> None:
    since = build.stamp(build.NOW - dt.timedelta(seconds=seconds))
    silent = inactive(reason, message="no metrics", lastTransitionTime=since)
    decision = decide(build.hpa(1, 10, change={"status": silent}), 5, spec={"mode": mode})
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", reported)
    if reported == "NoMetrics":
        assert active.message == f"no metrics for less than a minute ({reason}: no metrics)"
        assert warnings(decision) == []
        assert decision.recheck_after == dt.timedelta(seconds=60 - seconds), "then it is a warning"
    else:
        assert (active.message, warnings(decision)) == ("no metrics", [reported])


def test_an_hpa_with_too_many_metrics_has_no_say() -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    decision = decide(build.hpa(1, 10, change={"spec": {"metrics": [metric] * 101}}), replicas=5)
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", "TooManyMetrics")
    assert view(decision) is None


def test_the_other_axis_goes_on_without_it() -> None:
    hpa = build.hpa(1, 10, change={"status": INACTIVE})
    inputs = build.objects(horizontal=hpa, vertical=build.vpa({"app": {"cpu": "3", "memory": "1Gi"}}))
    assert build.decided(inputs).containers["app"].requests["cpu"] == 2000  # 1 + (3 - 1) x 0.5


# --- `spec.replicas` -------------------------------------------------------------------------------------------------
WRITTEN: dict[str, tuple[int | None, int, int, int | None]] = {
    "absent: the count, or scale would fail": (None, 3, 50, 3),
    "0 would switch the HPA off": (0, 3, 50, 3),
    "beyond maxReplicas: the trusted count": (11, 6, 100, 6),
    "a count that is trusted is left alone": (6, 6, 100, None),
    "at rest nothing is written": (3, 3, 50, None),
    "a stale count is corrected": (7, 7, 50, 3),
    "a count beyond the estimate is corrected to the nearer of r and e": (9, 9, 100, 6),
    "a count on the other side of r is corrected to r": (2, 2, 100, 3),
    "the HPA has written anew and its status is still to follow": (7, 6, 50, None),
    "corrected already: the HPA has yet to see it": (3, 7, 50, None),
}


@pytest.mark.parametrize(("scale_replicas", "asked", "utilization", "written"), WRITTEN.values(), ids=WRITTEN)
def test_spec_replicas_is_set_right(
    scale_replicas: int | None, asked: int, utilization: int, written: int | None
) -> None:
    assert decide(build.hpa(asked, utilization), 3, scale_replicas).scale_replicas == written


def test_a_stale_count_is_corrected_at_min_replicas_too() -> None:
    """The HPA's count of 7 is within its tolerance of the count in `spec.replicas`, and would stay for ever."""
    assert decide(build.hpa(7, 50), 1, 7).scale_replicas == 1


def test_spec_replicas_is_corrected_at_most_twice_for_the_same_status_of_the_hpa() -> None:
    stale, status = build.hpa(7, 50), HvpaStatus()
    for count in (1, 2):  # another client sets it back, and the HPA's status stays as it is
        decision = decide(stale, 3, 7, status)
        assert decision.scale_replicas == 3
        status = decision.status
        assert to_wire(status)["axes"]["horizontal"]["correction"]["count"] == count
    decision = decide(stale, 3, 7, status)
    assert decision.scale_replicas is None
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("True", "StaleDesiredReplicas")
    assert warnings(decision) == ["StaleDesiredReplicas"]
    assert view(decision) == 3, "it is not believed for that"
    status = decision.status
    rewritten = build.hpa(7, 50, change={"metadata": {"resourceVersion": "101"}})
    assert decide(rewritten, 3, 7, status).scale_replicas is None, "it asks for the same"
    assert decide(build.hpa(8, 50), 3, 8, status).scale_replicas == 3, "it asks for another count"
    calm = decide(build.hpa(3, 50), 3, 3, status)
    assert decide(stale, 3, 7, calm.status).scale_replicas == 3, "it had given in meanwhile"


@pytest.mark.parametrize(
    ("hpa", "replicas", "scale_replicas", "written"),
    [
        pytest.param(None, 3, None, 3, id="before there is an HPA it holds the count"),
        pytest.param(None, 3, 0, 3, id="before there is an HPA, 0 is none"),
        pytest.param(None, 3, 4, None, id="before there is an HPA, a count inside the bounds stays"),
        pytest.param(None, 40, None, 10, id="every write to it is clamped"),
        pytest.param(build.hpa(1, 10, {"status": INACTIVE}), 3, 0, 3, id="also beside an unusable HPA"),
        pytest.param(build.hpa(1, 10, {"status": INACTIVE}), 3, 4, None, id="which does not correct it"),
        pytest.param(build.hpa(7, 50), 0, 7, None, id="at 0 replicas it is not corrected"),
        pytest.param(build.hpa(7, 50), 0, 0, 1, id="at 0 replicas it is kept in bounds"),
    ],
)
def test_spec_replicas_holds_a_count_inside_the_bounds(
    hpa: Hpa | None, replicas: int, scale_replicas: int | None, written: int | None
) -> None:
    assert decide(hpa, replicas, scale_replicas).scale_replicas == written


def test_without_an_hpa_of_ours_spec_replicas_is_left_alone() -> None:
    hvpa = build.hvpa({"replicas": None, "hpa": {"deploy": False}})
    assert build.decided(build.objects(hvpa)).scale_replicas is None


NAMED = {"hpa": {"deploy": False, "name": "other"}}


def named(desired: int, utilization: int | None = 50, **change: Any) -> Hpa:
    metadata = {"metadata": {"name": "other", "ownerReferences": []}}
    return build.hpa(desired, utilization, metadata | change)


def test_a_named_hpa_has_its_own_bounds() -> None:
    hpa = named(9, 200, spec={"minReplicas": 2, "maxReplicas": 8})
    assert build.counts(decide(hpa, spec=NAMED)).target == 8
    assert decide(spec=NAMED).replicas is not None


@pytest.mark.parametrize(
    ("replicas", "jobs", "before", "blend", "expected"),
    [
        pytest.param(3, 0, 3, "Additive", 0, id="it is followed there"),
        pytest.param(0, 20, 0, "Additive", 4, id="and back"),
        pytest.param(0, 20, 3, "Additive", 0, id="another client scaled it to 0"),
        pytest.param(3, 0, 3, "Trajectory", 3, id="a path has no place for no pods at all"),
    ],
)
def test_an_hpa_may_scale_to_zero(replicas: int, jobs: int, before: int, blend: str, expected: int) -> None:
    asked, current = metric("External", {"metric": {"name": "jobs"}}, {"value": "5"}, {"value": str(jobs)})
    spec, status = {"minReplicas": 0, "metrics": [asked]}, {"currentMetrics": [current]}
    hpa = named(jobs // 5, spec=spec, status=status)
    applied_from = {"replicas": before, "desired": before, "weight": 0}
    axes = HvpaStatus.model_validate({"axes": {"horizontal": {"appliedFrom": applied_from}}})
    decision = decide(hpa, replicas, jobs // 5, axes, spec={"blend": blend, **NAMED})
    assert build.counts(decision).target == expected


def test_at_0_replicas_spec_replicas_is_brought_below_max_replicas() -> None:
    asked, current = metric("External", {"metric": {"name": "jobs"}}, {"value": "5"}, {"value": "20"})
    hpa = named(4, spec={"minReplicas": 0, "metrics": [asked]}, status={"currentMetrics": [current]})
    applied_from = {"replicas": 0, "desired": 0, "weight": 0}
    axes = HvpaStatus.model_validate({"axes": {"horizontal": {"appliedFrom": applied_from}}})
    assert decide(hpa, 0, 99, axes, spec=NAMED).scale_replicas == 4


SCALED_OBJECT = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "name": "web",
    "uid": "k",
    "controller": True,
}


def keda(desired: int = 3, **change: Any) -> Hpa:
    return named(desired, metadata={"name": "other", "ownerReferences": [SCALED_OBJECT]}, **change)


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@pytest.mark.parametrize(
    ("current", "wanted", "before", "expected"),
    [
        pytest.param(3, 0, 3, 0, id="to 0, though minReplicas is 1"),
        pytest.param(0, 0, 0, 0, id="it stays there"),
        pytest.param(0, 1, 0, 1, id="and back"),
        pytest.param(0, 99, 0, 10, id="within the bounds"),
        pytest.param(0, 3, 3, 0, id="another client scaled it to 0"),
        pytest.param(2, 0, 0, 0, id="another client scaled it out meanwhile"),
    ],
)
def test_keda_scales_to_zero_and_back(
    current: int, wanted: int, before: int, expected: int, blend: str
) -> None:
    """Past its HPA, by `spec.replicas`, which is left as it is; the HPA is off at 0 and says what it said before."""
    applied_from = {"replicas": before, "desired": before, "weight": 0}
    axes = HvpaStatus.model_validate({"axes": {"horizontal": {"appliedFrom": applied_from}}})
    decision = decide(keda(), current, wanted, axes, spec={"blend": blend, **NAMED})
    assert (build.counts(decision).target, decision.scale_replicas) == (expected, None)
    ready, active = build.condition(decision, "Ready"), build.condition(decision, "HpaActive")
    if wanted == current == 0:
        assert (ready.reason, ready.message) == (
            "Reconciled",
            "the HPA or KEDA has scaled the target to 0 replicas",
        )
        assert (active.reason, warnings(decision), decision.workload_patch) == ("NoPods", [], None)
    else:
        assert ready.reason == ("ScaledToZero" if expected == current == 0 else "Reconciled")


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_what_keda_asks_for_passes_all_gates_but_those_that_nothing_passes(blend: str) -> None:
    down = {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}
    spec = {"blend": blend, "hpa": {**NAMED["hpa"], **down}}
    assert build.counts(decide(keda(), 3, 0, spec=spec)).target == 3
    spec["hpa"] = {**NAMED["hpa"], "scaleDown": {"stabilizationDuration": "1h"}}
    assert build.counts(decide(keda(), 3, 0, spec=spec)).target == 0


@pytest.mark.parametrize(
    "controller", [None, {**SCALED_OBJECT, "kind": "Hvpa"}, {**SCALED_OBJECT, "apiVersion": "x/v1"}]
)
def test_another_hpa_does_not_scale_to_zero_below_its_minimum(controller: dict[str, Any] | None) -> None:
    metadata = {"name": "other", "ownerReferences": [controller] if controller else []}
    decision = decide(named(3, metadata=metadata), 3, 0, spec=NAMED)
    assert (build.counts(decision).target, decision.scale_replicas) == (3, 3)


@pytest.mark.parametrize(("scale_replicas", "expected"), [(None, 3), (5, None)])
def test_keda_finds_a_scale_before_it_creates_the_hpa(
    scale_replicas: int | None, expected: int | None
) -> None:
    assert decide(None, 3, scale_replicas, spec=NAMED).scale_replicas == expected


# --- an HPA that scales to 0 itself ----------------------------------------------------------------------------------
JOBS = metric("External", {"metric": {"name": "jobs"}}, {"type": "Value", "value": "5"}, {"value": "15"})
OWN = {"hpa": {"template": {"spec": {"minReplicas": 0, "metrics": [JOBS[0]]}}}}
SWITCHED = {"type": "ScaledToZero", "status": "True", "reason": "ScaledToZero"}
DISABLED = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}


def own(desired: int, *conditions: dict[str, Any]) -> Hpa:
    """The HPA that HVPA has made of the template `OWN`."""
    status = {"currentMetrics": [JOBS[1]], "conditions": list(conditions)}
    return build.hpa(desired, None, {"spec": {"minReplicas": 0, "metrics": [JOBS[0]]}, "status": status})


def since(before: int) -> HvpaStatus:
    applied_from = {"replicas": before, "desired": before, "weight": 0}
    return HvpaStatus.model_validate({"axes": {"horizontal": {"appliedFrom": applied_from}}})


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@pytest.mark.parametrize(
    ("current", "wanted", "before", "conditions", "expected"),
    [
        pytest.param(3, 0, 3, [SWITCHED], (0, None), id="it is followed to 0"),
        pytest.param(3, 0, 3, [], (3, None), id="the HPA has yet to report that it wrote the 0"),
        pytest.param(
            3, 0, 3, [DISABLED], (3, 3), id="another client wrote the 0, which switches the HPA off"
        ),
        pytest.param(0, 0, 0, [SWITCHED], (0, None), id="it stays at 0"),
        pytest.param(0, 0, 0, [DISABLED], (0, 1), id="a new HPA can't leave 0 by itself"),
        pytest.param(0, 1, 0, [DISABLED], (1, None), id="a new HPA is helped out of 0"),
        pytest.param(0, 3, 0, [{**SWITCHED, "status": "False"}], (3, None), id="it is followed from 0"),
        pytest.param(0, 3, 0, [SWITCHED], (3, None), id="the HPA has yet to report that it left 0"),
        pytest.param(0, 99, 0, [], (0, 1), id="an HPA writes no count outside the bounds"),
        pytest.param(0, 3, 3, [SWITCHED], (0, None), id="another client scaled the workload to 0"),
    ],
)
def test_an_own_hpa_scales_to_zero_and_back(
    current: int,
    wanted: int,
    before: int,
    conditions: list[Any],
    expected: tuple[int, int | None],
    blend: str,
) -> None:
    decision = decide(own(3, *conditions), current, wanted, since(before), spec={"blend": blend, **OWN})
    assert (build.counts(decision).target, decision.scale_replicas) == expected


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@pytest.mark.parametrize(
    ("weight", "vpa_off"),
    [
        pytest.param(30, False, id="in the same write, and at full weight"),
        pytest.param(30, True, id="unless the policy forbids it"),
        pytest.param(0, False, id="unless the weight is 0, which changes no request"),
    ],
)
def test_pods_that_are_switched_on_again_have_the_size_that_the_vpa_recommends(
    blend: str, weight: int, vpa_off: bool
) -> None:
    """The template still has the size of the last pods."""
    off = {"updatePolicy": {"updateMode": "Off"}}
    spec: dict[str, Any] = {"blend": blend, "updateStrategy": {"type": "Rollout"}, **OWN}
    spec["vpa"] = {"deploy": True, "scaleUp": off if vpa_off else {}}
    spec |= {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    vpa = build.vpa({"app": {"cpu": "3", "memory": "3G"}})
    found = objects(own(3, {**SWITCHED, "status": "False"}), 0, 3, since(0), spec=spec)
    decision = build.decided(replace(found, vpas=(vpa,)))
    assert decision.workload_patch is not None
    written: Any = decision.workload_patch.body["spec"]
    assert written["replicas"] == 3
    if vpa_off or not weight:
        assert "template" not in written
    else:
        (container,) = written["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == {"cpu": "3", "memory": "3G"}


def test_the_average_of_no_pods_is_not_reported() -> None:
    """The HPA divides by 0: its status then has the smallest number of 64 bits."""
    garbage = metric("External", {"metric": {"name": "jobs"}}, {}, {"averageValue": f"{-(2**63)}m"})[1]
    hpa = build.hpa(
        3, None, {"spec": OWN["hpa"]["template"]["spec"], "status": {"currentMetrics": [garbage]}}
    )
    decision = decide(hpa, 0, 3, since(0), spec=OWN)
    step = next(event.message for event in decision.events if event.type == "Normal")
    assert step == "replicas 0 -> 3; 0 is outside minReplicas 1 and maxReplicas 10; HPA: using 3"


def test_pods_that_are_resized_in_place_are_created_with_that_size() -> None:
    spec = {"updateStrategy": {"type": "InPlace"}, "vpa": {"deploy": True}, **OWN}
    spec |= {"weightBasedScalingIntervals": [{"vpaWeight": 30}]}
    found = objects(own(3, {**SWITCHED, "status": "False"}), 0, 3, since(0), spec=spec)
    decision = build.decided(replace(found, vpas=(build.vpa({"app": {"cpu": "3", "memory": "3G"}}),)))
    size = decision.status.desired
    assert size is not None
    assert (size.replicas, dict(size.containers[0].requests)) == (3, {"cpu": "3", "memory": "3G"})


@given(
    st.integers(0, 12),
    st.none() | st.integers(0, 99),
    st.integers(0, 12),
    st.lists(st.sampled_from([SWITCHED, {**SWITCHED, "status": "False"}, DISABLED]), max_size=2),
    st.sampled_from(["Additive", "Trajectory"]),
)
def test_zero_is_entered_and_left_only_as_the_hpa_reports(
    current: int, wanted: int | None, before: int, conditions: list[Any], blend: str
) -> None:
    decision = decide(own(3, *conditions), current, wanted, since(before), spec={"blend": blend, **OWN})
    target = build.counts(decision).target
    if current > 0 and target == 0:
        assert (wanted, SWITCHED in conditions) == (0, True)
    if current == 0 and target > 0:
        assert (before, target) == (0, wanted)
    assert decision.scale_replicas != 0


# --- which resources the metrics measure -----------------------------------------------------------------------------
METERED: dict[str, tuple[list[Reading], tuple[tuple[str, str], ...]]] = {
    "of the pod and of a container, with a value and without": (
        [utilization("cpu", 50, 50, None), value("memory", "1Gi", None, "app")],
        (("cpu", ""), ("memory", "app")),
    ),
    "no other metric": ([external("1", "1")], ()),
    "the API server's default where none is named": ([], (("cpu", ""),)),
}


@pytest.mark.parametrize(("readings", "expected"), METERED.values(), ids=METERED)
def test_which_resources_the_metrics_measure(
    readings: list[Reading], expected: tuple[tuple[str, str], ...]
) -> None:
    assert metered(hpa(3, *readings)) == expected


def test_metrics_of_other_resources_or_without_a_source_measure_nothing() -> None:
    target = {"type": "Utilization", "averageUtilization": 50}
    storage = {"type": "Resource", "resource": {"name": "ephemeral-storage", "target": target}}
    assert metered(build.hpa(change={"spec": {"metrics": [storage, {"type": "Resource"}]}})) == ()
