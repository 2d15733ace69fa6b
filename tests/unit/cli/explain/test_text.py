"""`hvpa explain` in words: what was reported, demand, path, gates, waits, resizes, what is set, and what to do."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from hvpa.api.hvpa.status import ROLLOUT
from hvpa.cli.explain.pods import STATES
from hvpa.core.actuation.pod import ResizeProgress
from hvpa.core.report.remedies import REMEDIES
from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import SMALL, deployment, hvpa, pod, resizing, vpa
from tests.unit.cli.schema import DOCS, check, schema_of
from tests.unit.cli.support import NOW, Doc, Shell, changed

APP = "resource-consumer"
EARLIER, JUST_NOW = "2026-11-21T09:40:00Z", "2026-11-21T09:59:00Z"
OFF = {"updatePolicy": {"updateMode": "Off"}}
SILENT = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "none"}
UNSURE = {"type": "LowConfidence", "status": "True", "reason": "few", "message": "too few samples"}
KILLED = {"terminated": {"reason": "OOMKilled", "finishedAt": JUST_NOW}}
REPORTED, DIFFERS = "Reported by the operator", "Differences from the operator's report"
APPLY = "Result in mode Apply"


def condition(kind: str, status: str, reason: str, message: str = "as it was", **rest: Any) -> Doc:
    time = {"lastTransitionTime": EARLIER}
    return {"type": kind, "status": status, "reason": reason, "message": message, **time, **rest}


def axes(**axis_states: Any) -> Doc:
    return {"Hvpa__status": {"axes": axis_states}}


def measured(kind: str, source: Doc) -> Doc:
    """The HPA has measured this, and nothing else."""
    field = kind[:1].lower() + kind[1:]
    return {"HPA__status__currentMetrics": [{"type": ""}, {"type": kind, field: source}]}


def of_cpu(**fields: Any) -> Doc:
    """An entry of `appliedFrom`."""
    return {"container": APP, "resource": "cpu", "request": "500m", "target": "1500m", "weight": 60, **fields}


def unready(since: str) -> Doc:
    """The first pod of the example, which has not been ready since it was created; the others are as before."""
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": since}
    return {
        **axes(horizontal={"lastScaleTime": "2026-11-21T09:50:00Z",
                           "appliedFrom": {"replicas": 3, "desired": 4, "weight": 60}}),
        "Deployment__status__readyReplicas": 2,
        "Deployment__status__availableReplicas": 2,
        "Pod__metadata__creationTimestamp": since,
        "Pod__status": {"phase": "Running", "conditions": [ready]},
    }  # fmt: skip


RPS = {
    "type": "Pods",
    "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
HELD = json.dumps({"generation": 5, "since": "2026-11-21T09:58:00Z", "held": True,
                   "previous": [{"name": APP, "requests": {"cpu": "1"}}]})  # fmt: skip
"""A size that is tried on the first pods."""
MEASURED = "next measurement: used 60 seconds after the last change, once the rollout is complete"
TWO_STEPS = axes(
    vertical={
        "lastScaleTime": EARLIER,
        "appliedFrom": [
            of_cpu(),
            of_cpu(resource="memory", request="1Gi", target="2Gi"),
            of_cpu(container="gone", request="1", target="2"),
            of_cpu(container="gone", resource="memory", request="?", target="2"),
        ],
    },
    horizontal={"lastScaleTime": EARLIER, "appliedFrom": {"replicas": 3, "desired": 6, "weight": 60}},
)
MORNING: Doc = {"schedule": "0 9 * * *", "duration": "3h", "minReplicas": 5}
ALL_DAY: Doc = {"schedule": "0 8 * * *", "duration": "24h", "minReplicas": 2}
EVENING: Doc = {"schedule": "0 19 * * *", "duration": "1h", "minReplicas": 3, "timeZone": "Europe/Berlin"}


def forecast_of(values: str) -> Doc:
    """An Hvpa with a forecast, and what was needed up to 10:00."""
    record = {"time": "2026-11-21T10:00:00Z", "samples": [2], "values": values}
    return {"Hvpa__spec__forecast": {}, "Hvpa__status__forecast": record}


CASES: dict[str, tuple[Doc, str, list[str]]] = {
    # --- demand ---
    "the target is gone": (
        {"Hvpa__spec__targetRef__name": "gone"}, "Demand", ["Deployment gone does not exist"]),
    "no HPA": ({"Hvpa__spec__hpa": {}}, "Demand", ["HPA: not configured"]),
    "no VPA": ({"Hvpa__spec__vpa": {}}, "Demand", ["VPA: not configured"]),
    "an HPA that has measured nothing": (
        {"HPA__status": {}}, "Demand", ["HPA: not used, NoMetrics: the HPA has measured none of its metrics yet"]),
    "a VPA that recommends nothing": ({"VPA__status": {}}, "Demand", [
        "VPA: not used, NoRecommendation: VerticalPodAutoscaler hvpa-sample has no recommendation yet"]),
    "a container ran out of memory": (
        {"Pod__status__containerStatuses": [{"name": APP, "lastState": KILLED}]}, "Demand",
        [f"container {APP} ran out of memory at {JUST_NOW}: HVPA scales up without delay"]),
    "the Hvpa is being deleted": (
        {"Hvpa__metadata__deletionTimestamp": NOW}, "Demand",
        ["the Hvpa is being deleted; the workload is not changed"]),
    "gardener's override": (
        {"Hvpa__status": {"overrideScaleUpStabilization": True}}, "Demand",
        ["status.overrideScaleUpStabilization is set: HVPA scales up without delay"]),
    "a VPA's recommendation that is not used": (
        {"VPA__status__conditions": [UNSURE]}, "Demand",
        ["VPA: not used, LowConfidence: too few samples", "VPA hvpa-sample: last recommendation, not used:"]),
    "an HPA's replicas that are not used": (
        {"HPA__status__conditions": [SILENT]}, "Demand",
        ["HPA: not used, FailedGetResourceMetric: none",
         "HPA hvpa-sample: last desired 6 replicas, not used"]),
    "memory per pod": (
        measured("Resource", {"name": "memory", "current": {"averageValue": "380258472"}}), "Demand",
        ["  Resource memory: 363Mi per pod, target 50 %"]),
    "a negative amount": (
        measured("Resource", {"name": "memory", "current": {"averageValue": "-1"}}), "Demand",
        ["  Resource memory: -1 per pod, target 50 %"]),
    "CPU per pod": (
        measured("Resource", {"name": "cpu", "current": {"averageValue": "324m"}}), "Demand",
        ["  Resource cpu: 324m per pod, target 50 %"]),
    "a metric of pods": (
        {**measured("Pods", {"metric": {"name": "rps"}, "current": {"averageValue": "500m"}}),
         "HPA__spec__metrics": [RPS]}, "Demand",
        ["  Pods rps: 0.5 per pod, target 10 per pod"]),
    **{f"a metric of {value}": (
        measured("External", {"metric": {"name": "queue"}, "current": {"value": value}}), "Demand",
        [f"  External queue: {shown}"])
       for value, shown in {"2500": "2,500", "500m": "0.5", "3": "3", "1e9": "1,000,000,000"}.items()},
    # --- schedule ---
    "a floor, and the one that follows": ({"Hvpa__spec__hpa__schedule": [MORNING, ALL_DAY]}, "Gates", [
        "schedule: at least 5 replicas until 2026-11-21T12:00:00Z (entry 1); "
        "next: 2 from 2026-11-21T12:00:00Z (entry 2)"]),
    "no floor now": ({"Hvpa__spec__hpa__schedule": [EVENING]}, "Gates", [
        "schedule: no floor now; next: 3 from 2026-11-21T18:00:00Z (entry 1)"]),
    "a floor that is the reason": ({"Hvpa__spec__hpa__schedule": [{**MORNING, "minReplicas": 7}]}, "Blend", [
        "replicas: 3 now, the HPA recommends 6; 7 at least until 2026-11-21T12:00:00Z, by entry 1 of "
        "spec.hpa.schedule"]),
    # --- forecast ---
    "a forecast that is not used": (forecast_of("2 " * 320 + "9 " * 63 + "9"), "Gates", [
        "forecast: not used: in the last 24 hours it was off by 70 percent; it is used up to 20 percent"]),
    "a forecast that is used": (forecast_of("4 " * 383 + "4"), "Gates", [
        "forecast: at least 4 replicas now; used: in the last 24 hours it was off by 0 percent; it is used up to 20"
        " percent"]),
    # --- waits ---
    "a rollout that goes on": (unready("2026-11-21T09:55:00Z"), "Gates", [
        "last rollout: not complete: 2 of 3 pods are available",
        "  not ready: resource-consumer-1",
        "  HVPA waits until its progress deadline 2026-11-21T10:05:00Z (in 5m)",
        MEASURED]),
    "what the last step was applied from": (unready("2026-11-21T09:55:00Z"), "Applied from", [
        "replicas: 3 applied for the HPA's desired replicas of 4, at weight 60, 2026-11-21T09:50:00Z"]),
    "a rollout past its progress deadline": (unready("2026-11-21T09:49:30Z"), "Gates", [
        "  HVPA no longer waits: its progress deadline was 2026-11-21T09:59:30Z",
        f"{MEASURED}: the rollout passed its progress deadline at 2026-11-21T09:59:30Z"]),
    "a rollout without a deadline": (
        {"Deployment__metadata__generation": 5, "Deployment__status__updatedReplicas": 2,
         "Deployment__status__replicas": 4}, "Gates",
        ["last rollout: not complete: its controller has not seen the latest spec; 4 pods exist instead of 3; "
         "2 of 3 pods are updated",
         "  HVPA waits until it is complete"]),
    "a rollout that is held": (
        {"Hvpa__spec__updateStrategy": {"canary": {}}, "Deployment__metadata__generation": 5,
         "Deployment__metadata__annotations": {ROLLOUT: HELD}, "Deployment__spec__paused": True,
         "Deployment__status__updatedReplicas": 1}, "Gates",
        ["last rollout held by Canary: 1 of 3 pods are replaced; HVPA tries the new size on them first"]),
    "a small step": (
        axes(vertical={"appliedFrom": [of_cpu(target="1", smallSteps=2)]}), "Applied from",
        [f"{APP} cpu: 500m applied from target 1 at weight 60, small step 2 in a row"]),
    "recommendations that had their step": (TWO_STEPS, "Blend", [
        f"{APP} cpu: 500m now, 1500m recommended; HVPA made the step for this recommendation at weight 60, "
        f"{EARLIER}; the next step follows when the recommendation changes by minChange"]),
    "what the last steps were applied from": (TWO_STEPS, "Applied from", [
        f"replicas: 3 applied for the HPA's desired replicas of 6, at weight 60, {EARLIER}",
        f"{APP} memory: 1Gi applied from target 2Gi at weight 60"]),
    # --- the operator's report, and what to do ---
    "without a report": ({}, REPORTED, [
        "nothing yet: is the operator running, and does it watch this namespace?"]),
    "the fast signal": (
        {"Hvpa__status": {"fastSignal": {"nodes": 3, "silent": 1, "samplingSeconds": 15, "lastSampleTime": EARLIER}}},
        REPORTED, [
        "nothing yet: is the operator running, and does it watch this namespace?",
        "fast signal: samples of /metrics/resource from 2 of 3 nodes' kubelets, a new one every 15 s; "
        f"the newest arrived at {EARLIER}"]),
    "a fast signal without samples": (
        {"Hvpa__status": {"fastSignal": {"nodes": 1}}}, REPORTED, [
        "nothing yet: is the operator running, and does it watch this namespace?",
        "fast signal: samples of /metrics/resource from 1 of 1 nodes' kubelets; none has arrived"]),
    "an error without a time": (
        {"Hvpa__status": {"lastError": {"description": "?"}}}, REPORTED, ["last error: a write: ?"]),
    "a condition that needs action": (
        {"Hvpa__spec__targetRef__name": "gone"}, "Conditions",
        ["Ready False TargetNotFound: Deployment gone does not exist", f"  to do: {REMEDIES['TargetNotFound']}."]),
    # --- modes ---
    "Recommend leaves the workload alone": (
        {"Hvpa__spec__mode": "Recommend"}, "Result", ["mode Recommend: the workload is not changed"]),
    "what Apply would set": ({"Hvpa__spec__mode": "Recommend"}, APPLY, [
        "replicas: 3 -> 5", f"{APP} requests cpu: 500m -> 1100m", f"{APP} limits cpu: 1 -> 2100m",
        f"{APP} requests memory: 1Gi -> 1638Mi", f"{APP} limits memory: 2Gi -> 2592Mi"]),
    "what Apply would hold back": (
        {"Hvpa__spec__mode": "Paused", "Hvpa__spec__hpa__scaleUp": OFF}, APPLY,
        ["replicas: 3 (no change); recommended before gates: 5", "held back: replicas 3 -> 5: UpdatePolicy"]),
    "where Apply would not scale": (
        {"Hvpa__spec__mode": "Recommend", "Hvpa__spec__targetRef__name": "gone"}, APPLY,
        ["TargetNotFound: Deployment gone does not exist"]),
    "which axis Apply could not scale": (
        {"Hvpa__spec__mode": "Recommend", "HPA__status__conditions": [SILENT]}, APPLY,
        ["FailedGetResourceMetric: none", "replicas: 3 (no change)", f"{APP} requests cpu: 500m -> 1100m"]),
}  # fmt: skip
"""By name: what is changed of the example, a section, and lines of it."""


@pytest.mark.parametrize("name", CASES)
def test_a_section_has_these_lines(shell: Shell, gardener: list[Doc], name: str) -> None:
    changes, heading, lines = CASES[name]
    shown = shell.section(changed(gardener, **changes), heading)
    assert [line for line in shown if line in lines] == lines, shown


def test_all_of_it_is_described(shell: Shell, gardener: list[Doc]) -> None:
    status = {"lastScaling": {"lastScaleTime": JUST_NOW}}
    text = shell.text(changed(gardener, Hvpa__status=status, Deployment__status=None))
    for line in (
        "Hvpa default/hvpa-sample, target Deployment resource-consumer, mode Apply, at 2026-11-21T10:00:00Z",
        "Note: the status of Deployment resource-consumer was not written by its controller: HVPA treats the "
        "rollout as complete",
        "  HPA hvpa-sample: 6 replicas desired",
        "    Resource cpu: 100 %, target 50 %",
        "    these metrics require 6; using 6",
        "    container resource-consumer: cpu 1500m, memory 2Gi",
        "  weights: horizontal 40 percent, vertical 60 percent",
        "  hpa.scaleUp: Auto, last step 2026-11-21T09:59:00Z, stabilization 2m (until 2026-11-21T10:01:00Z (in 1m)), "
        "minChange none",
        "  replicas 3 -> 5: StabilizationWindow until 2026-11-21T10:01:00Z (in 1m), "
        "wait 2m (hpa.scaleUp.stabilizationDuration)",
        "  resource-consumer cpu 500m -> 1100m: StabilizationWindow until 2026-11-21T10:01:00Z (in 1m), "
        "wait 2m (vpa.scaleUp.stabilizationDuration)",
        "  replicas: 3 (no change); recommended before gates: 5",
        "  no change",
        "  at 2026-11-21T10:01:00Z (in 1m), or when something changes",
    ):
        assert f"\n{line}\n" in f"\n{text}", text


def test_the_patch_is_shown_as_yaml(shell: Shell, gardener: list[Doc]) -> None:
    text = shell.text(gardener)
    assert "\n            requests:\n              cpu: 1100m\n              memory: 1717987k\n" in text
    assert "\n  set spec.replicas of the Hvpa, which the HPA reads, to 6\n" in text
    assert "\n  apply HorizontalPodAutoscaler hvpa-sample\n" in text
    assert DIFFERS not in text


def test_a_write_that_failed_stands_beside_what_is_decided_now(shell: Shell, gardener: list[Doc]) -> None:
    denied = "denied by policy small"
    error = {"description": denied, "lastOperation": "PatchWorkload", "lastUpdateTime": EARLIER}
    failed = condition("Ready", "False", "WriteFailed", f"PatchWorkload: {denied}")
    documents = changed(gardener, Hvpa__status={"conditions": [failed], "lastError": error})
    assert shell.section(documents, REPORTED) == [
        f"Ready False since {EARLIER}, WriteFailed: PatchWorkload: {denied}",
        f"last error: PatchWorkload at {EARLIER}: {denied}",
    ]
    assert shell.section(documents, DIFFERS) == [
        "Ready was reported False WriteFailed and is now True Reconciled: a write of the operator failed; explain "
        "writes nothing, so only the operator's next attempt shows if it still fails",
        f"  to do: {REMEDIES['WriteFailed']}.",
    ]
    explained = shell.explain(documents)
    del failed["lastTransitionTime"]
    assert explained["reported"] == {
        "conditions": [{**failed, "since": EARLIER}],
        "lastError": {"operation": "PatchWorkload", "time": EARLIER, "description": denied},
        "refused": [],
    }
    [difference] = explained["differences"]
    del difference["why"]
    assert difference == {"type": "Ready", "reported": "False WriteFailed", "decided": "True Reconciled"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"Hvpa__metadata__generation": 4}, "the operator has not processed the latest spec yet"),
        ({"Hvpa__metadata__generation": 3}, "the operator has not made the writes above yet"),
        (
            {"Hvpa__metadata__generation": 3, "Hvpa__spec__targetRef__name": "gone"},
            "something changed after the operator's last reconcile; if this persists, the operator is not running",
        ),
    ],
)
def test_why_a_report_may_differ(shell: Shell, gardener: list[Doc], change: Doc, why: str) -> None:
    active = condition("HpaActive", "False", "FailedGetResourceMetric", observedGeneration=3)
    documents = changed(gardener, Hvpa__status={"conditions": [active]}, **change)
    [difference, remedy] = shell.section(documents, DIFFERS)
    assert difference.startswith("HpaActive was reported False FailedGetResourceMetric and is now ")
    assert difference.endswith(f": {why}")
    assert remedy.startswith("  to do: Check that metrics are served")


def test_a_report_that_is_still_true_has_no_section_of_its_own(shell: Shell, gardener: list[Doc]) -> None:
    ready = {"conditions": [condition("Ready", "True", "Reconciled"), condition("Unheard", "True", "X")]}
    assert shell.section(changed(gardener, Hvpa__status=ready), DIFFERS) == []


def test_an_axis_that_waits_for_the_target_has_no_remedy_of_its_own(
    shell: Shell, gardener: list[Doc]
) -> None:
    lines = shell.section(changed(gardener, Hvpa__spec__targetRef__name="gone"), "Conditions")
    assert [line for line in lines if line.startswith("  ")] == [f"  to do: {REMEDIES['TargetNotFound']}."]


def test_what_the_api_server_refused_earlier_is_shown_with_its_message(
    shell: Shell, gardener: list[Doc]
) -> None:
    message = "ValidatingAdmissionPolicy 'small' denied request: at most 1 core"
    changes = [
        {"container": APP, "resource": "cpu", "current": 500, "wanted": 1100},
        {"container": APP, "resource": "memory", "current": 1024**3, "wanted": 1717987000},
    ]
    requests = {"count": 2, "time": JUST_NOW, "message": message, "changes": changes}
    replicas = {"count": 1, "time": JUST_NOW, "message": "no", "changes": [{"current": 3, "wanted": 5}]}
    refused = axes(vertical={"refused": requests}, horizontal={"refused": replicas})
    documents = changed(gardener, **refused)
    explained = shell.explain(documents)
    assert {(hold["resource"], hold["reason"], hold["until"]) for hold in explained["blocked"]} == {
        ("cpu", "Refused", "2026-11-21T10:01:00Z"),
        ("memory", "Refused", "2026-11-21T10:01:00Z"),
    }, "of the replicas the wait is over"
    assert message in next(
        condition["message"] for condition in explained["conditions"] if condition["type"] == "Ready"
    )
    assert explained["patch"]["spec"] == {"replicas": 5}
    requests_line = f"{APP} cpu 500m -> 1100m, {APP} memory 1Gi -> 1638Mi: {message}"
    lines = shell.section(documents, REPORTED)
    assert f"refused at {JUST_NOW}, 2 times in a row: {requests_line}" in lines
    assert f"refused at {JUST_NOW}: replicas 3 -> 5: no" in lines


# --- gates -----------------------------------------------------------------------------------------------------------
LESS = {
    "VPA__status__recommendation__containerRecommendations__0__target": {"cpu": "300m", "memory": "400Mi"}
}
ROLLOUT_ONLY = {"Hvpa__spec__updateStrategy": {"type": "Rollout"}}
IN_PLACE = {"Hvpa__spec__updateStrategy": {"type": "InPlace"}}
DOWN = "Hvpa__spec__vpa__scaleDown"
RULES: dict[str, tuple[Doc, str]] = {
    "replaced, by default": (
        ROLLOUT_ONLY,
        "Auto, last step never, lower requests once wanted for 6h (default), "
        "minChange cpu 200m or 20 % (default) and memory 200M or 20 % (default)"),
    "replaced, the user's duration": (
        {**ROLLOUT_ONLY, DOWN: {"stabilizationDuration": "1h", "minChange": {"cpu": {"percentage": 20}}}},
        "Auto, last step never, stabilization 1h (over), lower requests once wanted for 1h, "
        "minChange cpu 20 % and memory 200M or 20 % (default)"),
    "in place, by default": (
        IN_PLACE,
        "Auto, last step never, lower requests once wanted for 6h (default); requests with a metric: by the highest "
        "demand of the last 5m (default), minChange cpu none and memory none"),
    "in place, the user's": (
        {**IN_PLACE, DOWN: {"stabilizationDuration": "2h", "minChange": {"cpu": {"value": "50m", "percentage": 5}}}},
        "Auto, last step never, stabilization 2h (over), lower requests once wanted for 2h; requests with a metric: "
        "by the highest demand of the last 1h, minChange cpu 50m or 5 % and memory none"),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_the_waits_and_min_change_of_lower_requests_are_those_of_the_decision(
    shell: Shell, trajectory: list[Doc], name: str
) -> None:
    changes, line = RULES[name]
    assert f"vpa.scaleDown: {line}" in shell.section(changed(trajectory, **changes), "Gates")


def test_a_rise_for_the_present_demand_alone_waits_by_default(shell: Shell, trajectory: list[Doc]) -> None:
    up = next(
        line for line in shell.section(changed(trajectory, **ROLLOUT_ONLY), "Gates") if "vpa.scaleUp" in line
    )
    assert ", more CPU for present demand alone once wanted for 5m (default), " in up


def test_a_lower_request_is_held_by_the_wait_that_its_gate_shows(shell: Shell, trajectory: list[Doc]) -> None:
    documents = changed(trajectory, **ROLLOUT_ONLY, **LESS)
    held = "app cpu 1 -> 600m: SustainedDemand until 2026-11-21T16:00:00Z (in 6h), wait 6h (default)"
    assert held in shell.section(documents, "Held back")
    entry = next(hold for hold in shell.explain(documents)["blocked"] if hold["resource"] == "cpu")
    assert (entry["waitSeconds"], entry["least"], entry["source"]) == (6 * 3600, None, "default")


def test_a_small_change_is_held_by_the_min_change_that_its_gate_shows(
    shell: Shell, gardener: list[Doc]
) -> None:
    least = {"minChange": {"cpu": {"value": "800m"}, "replicas": {"value": "3"}}}
    documents = changed(gardener, Hvpa__spec__vpa__scaleUp=least, Hvpa__spec__hpa__scaleUp=least)
    assert shell.section(documents, "Held back") == [
        "replicas 3 -> 5: MinChange, least 3 (hpa.scaleUp.minChange.replicas)",
        "resource-consumer cpu 500m -> 1100m: MinChange until 2026-11-21T10:15:00Z (in 15m), least 800m, wait 15m "
        "(vpa.scaleUp.minChange.cpu)",
    ]


# --- blend: Trajectory -----------------------------------------------------------------------------------------------
MAX = "Hvpa__spec__hpa__template__spec__maxReplicas"
CURRENT = "HPA__status__currentMetrics__0__resource__current"
SATURATED = {
    MAX: 2,
    CURRENT: {"averageUtilization": 300, "averageValue": "3"},
    "HPA__status__desiredReplicas": 2,
}
REQUESTS = "Deployment__spec__template__spec__containers__0__resources__requests"
INTERVALS = [
    {"maxReplicas": 2, "maxResources": {"cpu": "1", "memory": "2Gi"}},
    {"maxReplicas": 8, "maxResources": {"cpu": "4", "memory": "8Gi"}},
]
WRITTEN = {
    "Hvpa__spec__weightBasedScalingIntervals": None,
    "Hvpa__spec__trajectory": {"intervals": INTERVALS, "baseResourcesPerReplica": {"cpu": {"value": "100m"}}},
}
ALL_WANTED = "wanted: 4 replicas of app cpu 1200m"
PATHS: dict[str, tuple[Doc, list[str]]] = {
    # Pods must not change: more of those that are there serve what is needed.
    "what is held back, and what is done instead": (
        {"Hvpa__spec__vpa__scaleUp": OFF, "Hvpa__spec__vpa__scaleDown": OFF},
        [ALL_WANTED,
         "held back: app cpu 1 -> 1200m: UpdatePolicy",
         "held back: app memory 1Gi -> 1800Mi: UpdatePolicy",
         "for now: 4 replicas of app cpu 1, memory 1Gi"]),
    "the gate of a held count, with its time": (
        {"Hvpa__spec__hpa__scaleUp": {"stabilizationDuration": "3m"},
         **axes(horizontal={"lastScaleTime": JUST_NOW})},
        ["held back: replicas 2 -> 4: StabilizationWindow until 2026-11-21T10:02:00Z (in 2m), "
         "wait 3m (hpa.scaleUp.stabilizationDuration)",
         "for now: 2 replicas of app cpu 1200m, memory 1800Mi"]),
    "a request that is near enough": (
        {REQUESTS: {"cpu": "1150m", "memory": "1Gi"}},
         ["app cpu: request 1150m, unchanged (close enough to 1200m)"]),
    "intervals that are written out, and base usage": (WRITTEN, [
        "sets the replicas; demand is expressed as requests of all pods together, without the base usage of each pod",
        "replicas may be 1 to 10"]),
    "saturation": (SATURATED, [
        "because: cpu needs 7 replicas; the maximum is 2",
        "app cpu: needs about 12 cores, but 2 replicas (maxReplicas) of 2 cores (maxAllowed) serve 4 "
        "cores"]),
    "replicas alone, without a VPA": (
        {"Hvpa__spec__vpa": {}},
        ["requests are not scaled: there is no usable VPA recommendation", "wanted: 4 replicas"]),
}  # fmt: skip
"""By name: what is changed of the example, and lines of the section Path."""


@pytest.mark.parametrize("name", PATHS)
def test_the_path_is_described(shell: Shell, trajectory: list[Doc], name: str) -> None:
    changes, lines = PATHS[name]
    shown = shell.section(changed(trajectory, **changes), "Path")
    assert [line for line in shown if line in lines] == lines, shown


def test_demand_by_resource_and_source_and_both_points_are_described(
    shell: Shell, trajectory: list[Doc]
) -> None:
    assert shell.section(trajectory, "Path")[2:] == [
        "replicas may be 1 to 10; at 2 replicas, 50 percent of an increase goes into larger pods, the rest into "
        "more pods",
        "app cpu: request 1 now, 1200m wanted",
        "  usually 2400m (HPA: mean of its measurements): 2 replicas on the path",
        "  now 3600m (HPA: cpu): 3 replicas of 1200m",
        "app memory: request 1Gi now, 1800Mi wanted",
        "  now: no HPA metric measures it",
        "usual demand is served by: 2 replicas of app cpu 1200m",
        ALL_WANTED,
        "because: cpu needs 4 replicas",
        "replicas: 2 now, the HPA recommends 4; 4 needed by the demand",
    ]
    assert shell.section(trajectory, "Blend") == []


def test_what_a_mode_does_not_apply_is_not_described_as_done(shell: Shell, trajectory: list[Doc]) -> None:
    lines = shell.section(changed(trajectory, Hvpa__spec__mode="Recommend"), "Path")
    assert ALL_WANTED in lines
    assert not any(line.startswith("for now") for line in lines)


def test_memory_that_ran_out_is_described(shell: Shell, trajectory: list[Doc]) -> None:
    killed = [{"name": "app", "lastState": KILLED}]
    lines = shell.section(changed(trajectory, Pod__status__containerStatuses=killed), "Path")
    assert any(line.startswith("app memory: 1Gi now") and "ran out of memory" in line for line in lines)


def test_pods_that_are_not_measured_yet_are_counted(shell: Shell, trajectory: list[Doc]) -> None:
    for document in trajectory:
        if document["kind"] == "Pod":
            document["status"]["startTime"] = "2026-11-21T09:59:00Z"
            document["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-21T09:59:50Z"
    measured = "the 2 ready pods are not measured yet, until 2026-11-21T10:00:20Z"
    assert f"  {measured}; using 2" in shell.section(trajectory, "Demand")


# --- pods that are resized in place ----------------------------------------------------------------------------------
DEFERRED = resizing("PodResizePending", "Deferred", "no room")
NO = resizing("PodResizePending", "Infeasible", "too large")
BOTH = "(app requests cpu 500m -> 800m, app requests memory 500M -> 600M)"
STRATEGY = "InPlace, timeout 5m, maxUnavailable 25%"


def test_every_state_has_its_meaning_here_and_on_the_page() -> None:
    assert set(get_args(ResizeProgress)) <= STATES.keys()
    table = (DOCS / "in-place.md").read_text().partition("| STATE |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {name.replace(" ", "_") for name in re.findall(r"`([a-z ]+)`", "".join(cells))} == STATES.keys()


def test_the_desired_size_and_what_each_pod_waits_for(shell: Shell) -> None:
    pods = [pod("done"), pod("full", has=SMALL, condition=DEFERRED), pod("small", SMALL)]
    assert shell.section([hvpa(), deployment(), vpa(), *pods], "Resizes") == [
        STRATEGY,
        "desired since 2026-11-21T09:57:00Z: 4 replicas, app requests cpu 800m memory 600M",
        "1 of 3 pods have this size",
        f"full: deferred: no room {BOTH}",
        f"small: waiting: is resized next {BOTH}",
    ]


FALL = {"since": "2026-11-21T09:00:00Z", "message": "pod a: the node is too small"}


def test_pods_that_are_replaced_for_a_day_are_explained_with_the_reason_and_the_end(shell: Shell) -> None:
    manifest = hvpa("InPlaceOrRollout", status={"desired": None, "actuation": None, "replacing": FALL})
    documents = [manifest, deployment(1), vpa(), pod("a", SMALL)]
    until = "InPlaceOrRollout uses rollouts until 2026-11-22T09:00:00Z (in 23h)"
    assert shell.section(documents, "Resizes") == [f"pods could not be resized; {until}: {FALL['message']}"]
    explained = shell.explain(documents)
    assert explained["replacing"] == {"until": "2026-11-22T09:00:00Z", "message": FALL["message"]}
    check(explained, schema_of("explain"))
    ended = {"since": "2026-11-20T09:00:00Z", "message": "too small"}
    documents[0] = hvpa("InPlaceOrRollout", status={"replacing": ended})
    assert shell.explain(documents)["replacing"] is None
    documents[0] = hvpa("Rollout", status={"replacing": ended})
    assert shell.explain(documents)["replacing"] is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("InPlace", "PodsNotResized, InPlace"), ("InPlaceOrRollout", "PodsNotResized")],
)
def test_the_remedy_of_pods_that_are_not_resized_fits_the_strategy(
    shell: Shell, kind: str, reason: str
) -> None:
    manifest = hvpa(updateStrategy={"type": kind, "timeout": "1s"})
    documents = [manifest, deployment(1), vpa(), pod("full", has=SMALL, condition=DEFERRED)]
    assert f"  to do: {REMEDIES[reason]}." in shell.section(documents, "Conditions")


def test_live_objects_are_explained_the_same(shell: Shell, api: Api, kubeconfig: str) -> None:
    api.put([hvpa(), deployment(2), vpa(), pod("a", SMALL), pod("b", has=SMALL, condition=DEFERRED)])
    ran = shell.run("explain", "web", "--kubeconfig", kubeconfig, "--now", NOW)
    assert ran.code == 0
    assert f"\n  0 of 2 pods have this size\n  a: waiting: is resized next {BOTH}\n" in ran.out
    assert f"\n  b: deferred: no room {BOTH}\n" in ran.out


def test_in_other_modes_the_resizes_of_apply_are_shown(shell: Shell) -> None:
    documents = [hvpa(mode="Paused"), deployment(4), vpa(), pod("a", SMALL)]
    assert "pod a is resized to app requests cpu 800m memory 600M" in shell.section(documents, APPLY)
    assert f"a: waiting: mode Paused: no pod is resized {BOTH}" in shell.section(documents, "Resizes")
    explained = shell.explain(documents)
    assert explained["resizes"] == []
    assert [resize["pod"] for resize in explained["inModeApply"]["resizes"]] == ["a"]


def test_the_pods_that_go_first_at_a_scale_in_are_shown(shell: Shell) -> None:
    marked = {"controller.kubernetes.io/pod-deletion-cost": "-1213616193"}
    pods = [pod("a"), pod("b", annotations=marked), pod("c"), pod("d"), pod("full", has=SMALL, condition=NO)]
    strategy = {"type": "InPlace", "podDeletionCost": "BySize"}
    documents = [hvpa(updateStrategy=strategy), deployment(5), vpa(), *pods]
    lines = [
        "pod b no longer goes first: it has its size again",
        "pod full goes first at this scale-in: it can't have its size",
    ]
    assert shell.section(documents, "Resizes")[-2:] == lines
    explained = shell.explain(documents)
    check(explained, schema_of("explain"))
    assert explained["deletionCosts"] == [
        {"pod": "b", "cost": None, "why": "has its size again"},
        {"pod": "full", "cost": "-1213616193", "why": "can't have its size"},
    ]
    documents[0] = hvpa(mode="Paused", updateStrategy=strategy)
    assert set(lines) <= set(shell.section(documents, APPLY))
    explained = shell.explain(documents)
    assert explained["deletionCosts"] == []
    assert [entry["pod"] for entry in explained["inModeApply"]["deletionCosts"]] == ["b", "full"]


def test_replicas_are_set_through_the_scale(shell: Shell) -> None:
    [first, *_] = shell.section([hvpa(), deployment(2), vpa()], "Patch of the workload")
    assert first == "# merge patch of the scale of Deployment web"


def test_where_no_size_is_decided_that_is_reported(shell: Shell) -> None:
    manifest = hvpa(status={"desired": None}, targetRef={"kind": "Deployment", "name": "gone"})
    none = [STRATEGY, "no size has been decided yet", "0 of 0 pods have this size"]
    assert shell.section([manifest], "Resizes") == none


def test_a_limit_that_falls_step_by_step_is_shown(shell: Shell) -> None:
    size = {"name": "app", "requests": SMALL, "limits": {"memory": "1G"}}
    desired = {"replicas": 1, "containers": [size], "since": "2026-11-21T09:57:00Z", "generation": 1}
    limited = pod("a", SMALL)
    for resources in (limited["spec"]["containers"][0], limited["status"]["containerStatuses"][0]):
        resources["resources"] = {"requests": SMALL, "limits": {"memory": "2G"}}
    documents = [hvpa(status={"desired": desired}), deployment(1), vpa(SMALL), limited]
    lines = shell.section(documents, "Resizes")
    assert lines[1].endswith("1 replica, app requests cpu 500m memory 500M limits memory 1G")
    assert lines[-1] == "a: waiting: is resized next (app limits memory 2G -> 1G)"
