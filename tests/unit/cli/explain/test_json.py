"""`hvpa explain -o json`: decisions from files, and the contract that `docs/explain.schema.json` is."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition
from hvpa.cli.explain.json import to_json
from hvpa.core import Settings, observe
from hvpa.core.gates import gates
from hvpa.core.model import Blocked, Decision, ReplicaView, ResourceRequirements, WorkloadPatch
from hvpa.core.rules import GateFigures
from tests.unit.cli import schema
from tests.unit.cli.explain.test_text import ALL_DAY, CURRENT, EVENING, MORNING, SATURATED
from tests.unit.cli.resizing import LARGE, SMALL, deployment, hvpa, pod, vpa
from tests.unit.cli.support import DATA, NOW, Doc, Shell, changed, load, of_kind, without

APP = "resource-consumer"
JUST_NOW, OPEN_AT = "2026-11-21T09:59:00Z", "2026-11-21T10:01:00Z"
UNTIL_TEN = {"horizontal": {"lastScaleTime": JUST_NOW}, "vertical": {"lastScaleTime": JUST_NOW}}
NIGHTLY = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
IN_WINDOWS = {
    f"Hvpa__spec__{axis}__{direction}": NIGHTLY
    for axis in ("hpa", "vpa")
    for direction in ("scaleUp", "scaleDown")
}
EMPTY: Doc = {
    "replicas": None, "weights": None, "containers": {}, "recommended": {"replicas": None, "containers": {}},
    "changes": False, "blocked": [], "recheckAfterSeconds": None, "path": None, "patch": None, "scaleReplicas": None,
    "reported": {"conditions": [], "lastError": None, "refused": []}, "differences": [], "inModeApply": None,
    "resizes": [], "deletionCosts": [], "actuation": None, "replacing": None, "schedule": None,
    "forecast": None, "fastSignal": None, "operator": None, "gates": [],
}  # fmt: skip
"""What is explained where nothing can be decided."""


def test_gardeners_example_acts_as_the_design_says(shell: Shell, gardener: list[Doc]) -> None:
    # 3 + (6 - 3) x 0.4 = 4.2, so 5; cpu 500m + 1000m x 0.6; memory 1Gi + 1Gi x 0.6 in whole kilobytes.
    # Limits: the larger of 130 percent and the value on top, 1 core and 1G.
    resources = {
        "requests": {"cpu": "1100m", "memory": "1717987k"},
        "limits": {"cpu": "2100m", "memory": "2717987k"},
    }
    explained = shell.explain(gardener)
    assert explained.pop("conditions")[0]["reason"] == "Reconciled"
    assert explained.pop("patch")["spec"]["replicas"] == 5
    assert explained.pop("nextStatus")["vpaWeight"] == 60
    assert [gate["name"] for gate in explained["gates"]] == [
        "hpa.scaleUp", "hpa.scaleDown", "vpa.scaleUp", "vpa.scaleDown"]  # fmt: skip
    assert {**explained, "patch": None, "gates": []} == EMPTY | {
        "replicas": {"current": 3, "hpa": 6, "target": 5},
        "weights": {"hpa": 40, "vpa": 60},
        "containers": {APP: resources},
        "recommended": {"replicas": 5, "containers": {APP: resources}},
        "changes": True,
        "scaleReplicas": 6,
    }


def test_a_missing_target_is_a_condition(shell: Shell, gardener: list[Doc]) -> None:
    explained = shell.explain(without(gardener, "Deployment"))
    [ready, *_] = explained.pop("conditions")
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "TargetNotFound")
    del explained["nextStatus"]
    assert explained == EMPTY


# --- gates -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "reason", "until", "recheck"),
    [
        pytest.param({"Hvpa__spec__mode": "Paused"}, "Paused", None, None, id="the mode"),
        pytest.param(
            {"Hvpa__status": {"axes": UNTIL_TEN}}, "StabilizationWindow", OPEN_AT, 60.0, id="stabilization"
        ),
        pytest.param(
            {"Hvpa__status": {"lastScaling": {"lastScaleTime": JUST_NOW, "hpaStatus": {}}, "vpaWeight": 60}},
            "StabilizationWindow",
            OPEN_AT,
            60.0,
            id="gardener's last scale time counts for all directions",
        ),
        pytest.param(
            IN_WINDOWS, "MaintenanceWindow", "2026-11-21T22:00:00Z", 12 * 3600.0, id="a maintenance window"
        ),
    ],
)
def test_a_gate_blocks_all_axes_until_it_opens(
    shell: Shell, gardener: list[Doc], changes: Doc, reason: str, until: str | None, recheck: float | None
) -> None:
    documents = changed(gardener, **changes)
    explained = shell.explain(documents)
    assert [
        (hold["axis"], hold["resource"], hold["direction"], hold["reason"], hold["until"])
        for hold in explained["blocked"]
    ] == [
        (axis, resource, "up", reason, until)
        for axis, resource in (("horizontal", None), ("vertical", "cpu"), ("vertical", "memory"))
    ]
    assert (explained["changes"], explained["replicas"]["target"]) == (False, 3)
    assert (explained["recommended"]["replicas"], explained["recheckAfterSeconds"]) == (5, recheck)
    if until is not None:
        opened = shell.explain(documents, now=until)
        assert (opened["blocked"], opened["changes"]) == ([], True)


# --- errors ----------------------------------------------------------------------------------------------------------
def test_there_must_be_one_hvpa(shell: Shell, gardener: list[Doc]) -> None:
    other = {**of_kind(gardener, "Hvpa"), "metadata": {"name": "other", "namespace": "elsewhere"}}
    error = shell.refuses("explain", "-f", path := shell.file([*gardener, other]), code=2)
    assert error.startswith(
        f"hvpa: error: exactly one Hvpa can be explained, not 2: {path}:1: Hvpa hvpa-sample, "
    )
    assert error.endswith(": Hvpa elsewhere/other\n")
    path = shell.file(without(gardener, "Hvpa"))
    assert shell.refuses("explain", "-f", path) == f"hvpa: error: no Hvpa in {path}\n"


RESOURCES = "Deployment__spec__template__spec__containers__0__resources"
WRONG: list[tuple[Doc, str]] = [
    ({"Hvpa__spec__hpa__scaleUp__stabilizationDuration": "soon"}, "spec.hpa.scaleUp.stabilizationDuration: "),
    ({"Hvpa__spec__replica": 3}, "spec.replica: unknown field"),
    ({"Hvpa__spec__maintenanceWindows": [{"schedule": "never", "duration": "1h"}]},
     "spec.maintenanceWindows[0].schedule: "),
    ({"Hvpa__metadata__name": None, "Hvpa__metadata__generateName": "a-"}, "Hvpa: metadata.name: is required"),
    ({"Hvpa__spec__hpa__scaleUp__updatePolicy": {"updateMode": False}},
     "write it in quotes, such as \"Off\": without them YAML reads Off and On as false and true"),
]  # fmt: skip
SKIPPED: list[tuple[Doc, str]] = [
    ({"Deployment__spec__replicas": "3"},
     "Deployment resource-consumer: spec.replicas: must be a whole number, is text"),
    ({"Deployment__spec__replicas": -1}, "spec.replicas: must not be negative"),
    ({"Deployment__spec__replicas": 2**31}, "spec.replicas: must not be above 2147483647"),
    ({"Deployment__metadata": None}, "Deployment: metadata: must be an object"),
    ({"Deployment__metadata__name": 3}, "Deployment: metadata.name: must be a string"),
    ({"Deployment__apiVersion": "apps/v1beta1"}, "Deployment resource-consumer: apiVersion: must be apps/v1"),
    ({"Deployment__apiVersion": "extensions/v1beta1"}, "apiVersion: must be apps/v1"),
    ({f"{RESOURCES}__requests__cpu": "much"},
     "spec.template.spec.containers[0].resources.requests.cpu: 'much' is not a quantity"),
    ({f"{RESOURCES}__limits__memory": "-1Gi"},
     "spec.template.spec.containers[0].resources.limits.memory: -1Gi is negative"),
    ({"HPA__apiVersion": "autoscaling/v3"}, "apiVersion: must be autoscaling/v2"),
    ({"VPA__apiVersion": "autoscaling.k8s.io/v1beta1"}, "apiVersion: must be autoscaling.k8s.io/v1"),
    ({"HPA__spec__maxReplicas": "ten"}, "spec.maxReplicas: must be a whole number, is text"),
    ({"HPA__spec__metrics__0__resource__target__averageValue": "x"},
     "spec.metrics[0].resource.target.averageValue: 'x' is not a quantity"),
    ({"HPA__metadata__creationTimestamp": "2026-11-01T00:00:00"},
     "metadata.creationTimestamp: must be a timestamp with a time zone"),
    ({"HPA__metadata__creationTimestamp": "today"}, "metadata.creationTimestamp: invalid RFC3339 encoded datetime"),
    ({"VPA__spec__updatePolicy__updateMode": False},
     "VerticalPodAutoscaler hvpa-sample: spec.updatePolicy.updateMode: must be text, is true or false; write it in "
     "quotes"),
    ({"VPA__spec": [1]}, "VerticalPodAutoscaler hvpa-sample: spec: must be an object, is a list"),
    ({"Pod__status__conditions": {}}, "Pod resource-consumer-1: status.conditions: must be a list, is an object"),
    ({"Pod__metadata__labels": {"a": 1}},
     "Pod resource-consumer-1: metadata.labels[*]: must be text, is a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "error"), WRONG)
def test_a_wrong_object_is_reported_with_file_object_and_field(
    shell: Shell, gardener: list[Doc], changes: Doc, error: str
) -> None:
    path = shell.file(changed(gardener, **changes))
    reported = shell.refuses("explain", "-f", path)
    assert reported.removeprefix(f"hvpa: error: {path}:").partition(":")[0].isdigit()
    assert error in reported


@pytest.mark.parametrize(("changes", "error"), SKIPPED)
def test_an_object_that_cannot_be_used_is_skipped_with_one_line_and_ends_nothing(
    shell: Shell, gardener: list[Doc], changes: Doc, error: str
) -> None:
    path = shell.file(changed(gardener, **changes))
    ran = shell.run("explain", "-f", path)
    assert ran.code == 0
    assert ran.out.startswith("Hvpa ")
    lines = ran.err.splitlines()
    assert len(lines) == (3 if "Pod__status__conditions" in changes else 1)
    for line in lines:
        assert line.removeprefix(f"hvpa: skipped: {path}:").partition(":")[0].isdigit()
    assert error in lines[0]


def test_what_is_no_object_is_skipped_with_one_line(shell: Shell, gardener: list[Doc]) -> None:
    path = shell.file([{"kind": "List", "items": [3, {"metadata": {}}, *gardener]}])
    ran = shell.run("explain", "-f", path)
    assert (ran.code, ran.out.startswith("Hvpa ")) == (0, True)
    assert [line.partition("items")[2] for line in ran.err.splitlines()] == [
        "[0]: must be an object of Kubernetes, is a number",
        "[1].kind: is required",
    ]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("web", "-f", "a.yaml"), "not both"),
        (("-f", "a.yaml", "--kubeconfig", "b"), "can't be used with -f"),
        (("-f", "a.yaml", "--context", "b"), "can't be used with -f"),
        ((), "name an Hvpa"),
        (("-f", "a.yaml", "--now", "yesterday"), "'yesterday' is not a timestamp"),
        (("-f", "a.yaml", "--now", "9999-12-31T23:59:59Z"), "the year must be from 1970 to 2499"),
        (("-f", "a.yaml", "--hpa-tolerance", "1"), "not a fraction"),
        (("-f", "a.yaml", "--hpa-tolerance", "some"), "not a fraction"),
        (("-f", "a.yaml", "-o", "yaml"), "invalid choice"),
    ],
)
def test_wrong_usage_is_one_line(shell: Shell, flags: tuple[str, ...], error: str) -> None:
    assert error in shell.refuses("explain", *flags, code=2)


# --- flags and files -------------------------------------------------------------------------------------------------
def test_the_tolerance_can_be_set(shell: Shell, gardener: list[Doc]) -> None:
    used = "HPA__status__currentMetrics__1__resource__current__averageUtilization"
    documents = changed(gardener, HPA__status__desiredReplicas=4, **{used: 60})
    assert shell.explain(documents)["replicas"]["hpa"] == 4
    assert shell.explain(documents, "--hpa-tolerance", "0.2")["replicas"]["hpa"] == 3


def test_the_present_is_the_default_time(shell: Shell, gardener: list[Doc]) -> None:
    ran = shell.run("explain", "-f", shell.file(gardener), "-o", "json")
    assert ran.json["replicas"]["target"] == 5


def test_files_may_be_split_and_come_from_standard_input(shell: Shell, gardener: list[Doc]) -> None:
    whole = shell.explain(gardener)
    first = shell.file([of_kind(gardener, "Hvpa")], "hvpa.yaml")
    rest = json.dumps({"kind": "List", "items": without(gardener, "Hvpa")})
    ran = shell.run("explain", "-f", first, "-", "-f", first, "--now", NOW, "-o", "json", stdin=rest)
    assert ran.json == whole


# --- blend: Trajectory -----------------------------------------------------------------------------------------------
def test_the_path_is_there_field_by_field(shell: Shell, trajectory: list[Doc]) -> None:
    requests = {"app": {"cpu": "1200m"}}
    binding = {"container": "app", "resource": "cpu"}
    cpu = {
        "base": "1", "current": "1", "wanted": "1200m",
        "usual": "2400m", "usualFrom": "HPA: mean of its measurements", "usualReplicas": 2,
        "present": "3600m", "presentFrom": "HPA: cpu", "presentReplicas": 3,
    }  # fmt: skip
    memory = {
        "base": "512Mi", "current": "1Gi", "wanted": "1887437k",
        "usual": None, "usualFrom": "the VPA's target", "usualReplicas": None,
        "present": None, "presentFrom": None, "presentReplicas": None,
    }  # fmt: skip
    assert shell.explain(trajectory)["path"] == {
        "counts": {"min": 1, "max": 10},
        "containers": {"app": {"cpu": cpu, "memory": memory}},
        "usual": {"replicas": 2, "requests": requests, "binding": binding, "saturated": []},
        "wanted": {"replicas": 4, "requests": requests, "binding": binding, "saturated": []},
        "because": "cpu needs 4 replicas",
    }


def test_what_is_saturated_is_named(shell: Shell, trajectory: list[Doc]) -> None:
    explained = shell.explain(changed(trajectory, **SATURATED))
    assert explained["path"]["wanted"]["saturated"] == [{"container": "app", "resource": "cpu"}]
    assert explained["conditions"][0]["reason"] == "Saturated"


def test_without_a_vpa_there_is_no_point_of_a_usual_demand(shell: Shell, trajectory: list[Doc]) -> None:
    path = shell.explain(changed(trajectory, Hvpa__spec__vpa={}))["path"]
    assert (path["usual"], path["containers"]) == (None, {})
    assert path["wanted"] == {"replicas": 4, "requests": {}, "binding": None, "saturated": []}


# --- pods that are resized in place ----------------------------------------------------------------------------------
RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def test_the_json_has_what_is_resized_and_how_far_the_pods_are(shell: Shell) -> None:
    pods = [pod("a", SMALL, resizePolicy=RESTARTS), pod("b", SMALL, resizePolicy=RESTARTS), pod("c")]
    explained = shell.explain([hvpa(), deployment(3), vpa(), *pods])
    assert explained["resizes"] == [{"pod": "a", "containers": {"app": {"requests": LARGE, "limits": {}}}}]
    counts = {"pods": 3, "resized": 1, "inProgress": 0, "deferred": 0, "infeasible": 0, "waiting": 2}
    assert explained["actuation"]["counts"] == counts
    waits = {pod_state["name"]: pod_state["why"] for pod_state in explained["actuation"]["pods"]}
    assert waits["a"] == "is resized next"
    assert "maxUnavailable 25%" in waits["b"]


def test_the_resources_of_a_pod_itself_are_named_by_the_resize(shell: Shell) -> None:
    documents: list[Doc] = [hvpa(status={"desired": None}), deployment(1), vpa(), pod("a", SMALL)]
    documents[1]["spec"]["template"]["spec"]["resources"] = documents[3]["spec"]["resources"] = {
        "requests": SMALL
    }
    explained = shell.explain(documents)
    check(explained)
    written = {"requests": {"cpu": LARGE["cpu"]}, "limits": {}}
    assert explained["resizes"] == [{"pod": "a", "containers": {"app": written, "(pod)": written}}]
    documents[0]["spec"]["mode"] = "Recommend"
    (line,) = [text for text in shell.section(documents, "Result in mode Apply") if "is resized to" in text]
    assert line == "pod a is resized to app requests cpu 800m, (pod) requests cpu 800m"


def test_a_decision_of_now_is_what_the_pods_are_compared_with(shell: Shell) -> None:
    """Before anything was decided: the VPA's recommendation becomes the desired size at once."""
    new: dict[str, Any] = {"desired": None, "actuation": None, "conditions": []}
    manifest = hvpa(status=new, weightBasedScalingIntervals=[{"vpaWeight": 100}])
    explained = shell.explain([manifest, deployment(1), vpa(), pod("a", SMALL)])
    assert explained["actuation"]["desired"]["since"] == NOW
    assert [resize["pod"] for resize in explained["resizes"]] == ["a"]


def test_with_rollouts_there_are_neither_resizes_nor_an_actuation(shell: Shell) -> None:
    documents = [hvpa("Rollout"), deployment(1), vpa(), pod("a", SMALL)]
    assert shell.section(documents, "Resizes") == []
    explained = shell.explain(documents)
    assert (explained["resizes"], explained["actuation"]) == ([], None)


# --- the contract ----------------------------------------------------------------------------------------------------
REFUSED = {"count": 1, "time": NOW, "message": "denied", "changes": [{"current": 3, "wanted": 5}]}
REPORTED = {
    "conditions": [{"type": "Ready", "status": "False", "reason": "WriteFailed", "message": "denied"}],
    "lastError": {"description": "denied", "lastOperation": "PatchWorkload", "lastUpdateTime": NOW},
    "axes": {"horizontal": {"refused": REFUSED}},
}


def check(explained: Any) -> None:
    """The explanation follows the schema, key by key in this order."""
    contract = schema.schema_of("explain")
    schema.check(explained, contract)
    assert list(explained) == list(contract["$defs"]["Explanation"]["properties"])


def test_the_schema_names_every_gate() -> None:
    reason = schema.schema_of("explain")["$defs"]["BlockedChange"]["properties"]["reason"]["description"]
    named = set(re.findall(r"\b[A-Z]\w+", reason.partition(": ")[2]))
    assert named == {*gates.GATES, gates.POD_REPLACEMENT, gates.MAX_STEP}


def test_the_example_of_the_design_follows_the_schema() -> None:
    check(json.loads((DATA / "contract.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gardener.yaml", {}),
        ("gardener.yaml", {"Hvpa__spec__mode": "Paused"}),
        ("gardener.yaml", {"Hvpa__spec__weightBasedScalingIntervals": [{"vpaWeight": 33.3}]}),
        ("gardener.yaml", {"Hvpa__spec__targetRef__name": "gone"}),
        ("gardener.yaml", {"Hvpa__spec__hpa": {}}),
        ("gardener.yaml", {"Hvpa__spec__vpa": {}}),
        ("gardener.yaml", {"Deployment__spec__replicas": 0}),
        ("gardener.yaml", {"Hvpa__metadata__deletionTimestamp": NOW}),
        ("gardener.yaml", {"Hvpa__spec__vpa__scaleUp__minChange__memory": {"value": "2Gi"}}),
        ("gardener.yaml", {"Hvpa__status": REPORTED}),
        ("trajectory.yaml", {}),
        ("trajectory.yaml", {"Hvpa__spec__vpa": {}}),
        ("trajectory.yaml", {"Hvpa__spec__hpa": {}}),
        ("trajectory.yaml", {"HPA__status": {}}),
        ("trajectory.yaml", {"Hvpa__spec__targetRef__name": "gone"}),
        ("trajectory.yaml", {"Deployment__spec__replicas": 0}),
        ("trajectory.yaml", {"Hvpa__spec__hpa__schedule": [MORNING, ALL_DAY]}),
        ("trajectory.yaml", {"Hvpa__spec__hpa__schedule": [EVENING]}),
        ("trajectory.yaml", {f"{CURRENT}__averageValue": "9"}),
    ],
)
def test_explanations_follow_the_schema(shell: Shell, name: str, changes: Doc) -> None:
    check(shell.explain(changed(load(name), **changes)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"mode": "Paused"},
        {"mode": "Recommend", "status": {"desired": None}},
        {"kind": "InPlaceOrRollout"},
        {"kind": "Rollout"},
        {"targetRef": {"kind": "Deployment", "name": "gone"}},
    ],
)
def test_explanations_of_resizes_follow_the_schema(shell: Shell, change: Doc) -> None:
    pods = [pod("a", SMALL), pod("b", has=SMALL), pod("c"), pod("d", deletionTimestamp=NOW)]
    check(shell.explain([hvpa(**change), deployment(), vpa(), *pods]))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([MORNING, ALL_DAY], {
            "now": {"minReplicas": 5, "entry": 1, "from": None, "until": "2026-11-21T12:00:00Z"},
            "next": {"minReplicas": 2, "entry": 2, "from": "2026-11-21T12:00:00Z", "until": "2026-11-22T09:00:00Z"},
        }, id="one now, another one follows"),
        pytest.param([EVENING], {
            "now": None,
            "next": {"minReplicas": 3, "entry": 1, "from": "2026-11-21T18:00:00Z", "until": "2026-11-21T19:00:00Z"},
        }, id="none now"),
    ],
)  # fmt: skip
def test_scheduled_floors_are_in_the_json(
    shell: Shell, gardener: list[Doc], entries: list[Doc], expected: Doc
) -> None:
    scheduled = changed(gardener, Hvpa__spec__hpa__schedule=entries)
    assert shell.explain(scheduled)["schedule"] == expected
    assert shell.explain(without(scheduled, "Deployment"))["schedule"] is None


def test_a_forecast_is_in_the_json(shell: Shell, gardener: list[Doc]) -> None:
    forecast = shell.explain(changed(gardener, Hvpa__spec__forecast={}))["forecast"]
    assert (forecast["minReplicas"], forecast["offPercent"]) == (None, None)
    assert forecast["message"].startswith("not used yet: 0 quarters of an hour of the last 24 hours")


def test_each_field_of_a_decision_is_in_the_json() -> None:
    now = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 4}}
    odd = {"type": "Ready", "status": "odd", "reason": "R", "message": "M"}
    decision = Decision(
        status=HvpaStatus(conditions=(StatusCondition(**odd),)),
        workload_patch=WorkloadPatch("Deployment", "web", "7", body),
        scale_replicas=6,
        recheck_after=dt.timedelta(milliseconds=1500),
        replicas=ReplicaView(current=3, hpa=6, target=4, recommended=5),
        weight_ppm=333_000,
        containers={"app": ResourceRequirements({"cpu": 1500, "memory": 1024**3}, {})},
        recommended={"app": ResourceRequirements({"cpu": 2000}, {"memory": 1_100_000_000})},
        blocked=(
            Blocked("horizontal", "up", "MinChange", 3, 5, figures=GateFigures(least=2)),
            Blocked("vertical", "down", "Rollout", 2000, 500, container="app", resource="cpu", until=now),
        ),
    )
    explained = json.loads(to_json(observe(build.objects(build.hvpa()), now, Settings()), decision))
    check(explained)
    assert explained == EMPTY | {
        "replicas": {"current": 3, "hpa": 6, "target": 4},
        "weights": {"hpa": 66.7, "vpa": 33.3},
        "containers": {"app": {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {}}},
        "recommended": {
            "replicas": 5,
            "containers": {"app": {"requests": {"cpu": "2"}, "limits": {"memory": "1100M"}}},
        },
        "changes": True,
        "blocked": [
            {"axis": "horizontal", "direction": "up", "reason": "MinChange", "container": None, "resource": None,
             "current": 3, "wanted": 5, "until": None, "waitSeconds": None, "least": 2, "source": "default"},
            {"axis": "vertical", "direction": "down", "reason": "Rollout", "container": "app", "resource": "cpu",
             "current": "2", "wanted": "500m", "until": "2026-11-21T10:00:00Z",
             "waitSeconds": None, "least": None, "source": None},
        ],
        "conditions": [odd | {"status": "Unknown"}],
        "recheckAfterSeconds": 1.5,
        "patch": body,
        "nextStatus": {"conditions": [odd]},
        "scaleReplicas": 6,
    }  # fmt: skip
