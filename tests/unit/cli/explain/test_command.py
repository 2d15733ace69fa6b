"""`hvpa explain -f`: decisions from files, as the JSON contract tells them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.unit.cli.support import DATA, NOW, Doc, Shell, changed, load, of_kind

APP = "resource-consumer"
KEYS = [
    "replicas",
    "weights",
    "containers",
    "recommended",
    "changes",
    "blocked",
    "conditions",
    "recheckAfterSeconds",
    "path",
    "patch",
    "nextStatus",
    "scaleReplicas",
    "reported",
    "differences",
    "inModeApply",
]
JUST_NOW = "2026-11-21T09:59:00Z"
OPEN_AT = "2026-11-21T10:01:00Z"
ANNOTATION = "hvpa.autoscaling.k8s.io/last-applied"


def held(explained: Any) -> dict[tuple[str, str | None], tuple[str, str, Any]]:
    """What is blocked: direction, reason and until by axis and resource."""
    return {
        (one["axis"], one["resource"]): (one["direction"], one["reason"], one["until"])
        for one in explained["blocked"]
    }


def conditions(explained: Any) -> dict[str, tuple[str, str]]:
    """Status and reason by condition."""
    return {one["type"]: (one["status"], one["reason"]) for one in explained["conditions"]}


def with_direction(documents: list[Doc], **policy: Any) -> list[Doc]:
    """The same policy in all four directions."""
    result = documents
    for recommender in ("hpa", "vpa"):
        for direction in ("scaleUp", "scaleDown"):
            result = changed(result, **{f"Hvpa__spec__{recommender}__{direction}": policy})
    return result


def test_gardeners_example_acts_as_the_design_says(shell: Shell) -> None:
    ran = shell.run("explain", "-f", str(DATA / "gardener.yaml"), "--now", NOW, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    # 3 + (6 - 3) x 0.4 = 4.2, so 5; cpu 500m + 1000m x 0.6; memory 1Gi + 1Gi x 0.6 in whole kilobytes.
    # Limits: the larger of 130 percent and the value on top, 1 core and 1G.
    resources = {
        "requests": {"cpu": "1100m", "memory": "1717987k"},
        "limits": {"cpu": "2100m", "memory": "2717987k"},
    }
    explained = ran.json
    assert explained.pop("conditions")[0]["reason"] == "Reconciled"
    assert explained.pop("patch")["spec"]["replicas"] == 5
    assert explained.pop("nextStatus")["vpaWeight"] == 60
    assert explained == {
        "replicas": {"current": 3, "hpa": 6, "target": 5},
        "weights": {"hpa": 40, "vpa": 60},
        "containers": {APP: resources},
        "recommended": {"replicas": 5, "containers": {APP: resources}},
        "changes": True,
        "blocked": [],
        "recheckAfterSeconds": None,
        "path": None,
        "scaleReplicas": 6,
        "reported": {"conditions": [], "lastError": None, "refused": []},
        "differences": [],
        "inModeApply": None,
        "resizes": [],
        "actuation": None,
    }


# --- each gate -------------------------------------------------------------------------------------------------------
AXES = (("horizontal", None), ("vertical", "cpu"), ("vertical", "memory"))


def all_axes(reason: str, until: str | None) -> dict[tuple[str, str | None], tuple[str, str, str | None]]:
    return dict.fromkeys(AXES, ("up", reason, until))


def test_paused_blocks_everything(shell: Shell, gardener: list[Doc]) -> None:
    explained = shell.explain(changed(gardener, Hvpa__spec__mode="Paused"))
    assert held(explained) == all_axes("Paused", None)
    assert conditions(explained)["Paused"] == ("True", "Paused")
    assert (explained["changes"], explained["replicas"]["target"]) == (False, 3)
    assert explained["recommended"]["replicas"] == 5


def test_stabilization_blocks_until_it_is_over(shell: Shell, gardener: list[Doc]) -> None:
    axes = {"horizontal": {"lastScaleTime": JUST_NOW}, "vertical": {"lastScaleTime": JUST_NOW}}
    explained = shell.explain(changed(gardener, Hvpa__status={"axes": axes}))
    assert held(explained) == all_axes("StabilizationWindow", OPEN_AT)
    assert explained["recheckAfterSeconds"] == 60.0
    opened = shell.explain(changed(gardener, Hvpa__status={"axes": axes}), now=OPEN_AT)
    assert (opened["blocked"], opened["changes"]) == ([], True)


def test_a_window_blocks_until_it_opens(shell: Shell, gardener: list[Doc]) -> None:
    documents = with_direction(gardener, updatePolicy={"updateMode": "MaintenanceWindow"})
    explained = shell.explain(documents)
    assert held(explained) == all_axes("MaintenanceWindow", "2026-11-21T22:00:00Z")
    assert explained["recheckAfterSeconds"] == 12 * 3600.0
    assert shell.explain(documents, now="2026-11-21T22:00:00Z")["blocked"] == []


# --- statuses that gardener's controller wrote -----------------------------------------------------------------------
def test_gardeners_last_scale_time_counts_for_all_directions(shell: Shell, gardener: list[Doc]) -> None:
    legacy = {"lastScaling": {"lastScaleTime": JUST_NOW, "hpaStatus": {}}, "hpaWeight": 40, "vpaWeight": 60}
    explained = shell.explain(changed(gardener, Hvpa__status=legacy))
    assert held(explained) == all_axes("StabilizationWindow", OPEN_AT)


# --- what is missing -------------------------------------------------------------------------------------------------
def without(documents: list[Doc], *kinds: str) -> list[Doc]:
    return [one for one in documents if one["kind"] not in kinds]


def test_a_missing_target_is_a_condition(shell: Shell, gardener: list[Doc]) -> None:
    explained = shell.explain(without(gardener, "Deployment"))
    assert conditions(explained)["Ready"] == ("False", "TargetNotFound")
    assert (explained["replicas"], explained["weights"], explained["containers"]) == (None, None, {})
    assert explained["recommended"] == {"replicas": None, "containers": {}}
    assert (explained["changes"], explained["blocked"], explained["recheckAfterSeconds"]) == (False, [], None)


# --- errors ----------------------------------------------------------------------------------------------------------
def test_two_hvpas_are_wrong_usage(shell: Shell, gardener: list[Doc]) -> None:
    other = {**of_kind(gardener, "Hvpa"), "metadata": {"name": "other", "namespace": "elsewhere"}}
    path = shell.file([*gardener, other])
    ran = shell.run("explain", "-f", path)
    assert (ran.code, ran.out) == (2, "")
    told = rf"{re.escape(path)}:1: Hvpa hvpa-sample, {re.escape(path)}:\d+: Hvpa elsewhere/other"
    assert re.fullmatch(f"hvpa: error: exactly one Hvpa can be explained, not 2: {told}\n", ran.err)


def test_no_hvpa_is_wrong(shell: Shell, gardener: list[Doc]) -> None:
    path = shell.file(without(gardener, "Hvpa"))
    ran = shell.run("explain", "-f", path)
    assert (ran.code, ran.err) == (1, f"hvpa: error: no Hvpa in {path}\n")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"Hvpa__spec__hpa__scaleUp__stabilizationDuration": "soon"},
            "spec.hpa.scaleUp.stabilizationDuration: ",
        ),
        ({"Hvpa__spec__replica": 3}, "spec.replica: unknown field"),
        (
            {"Hvpa__spec__maintenanceWindows": [{"schedule": "never", "duration": "1h"}]},
            "spec.maintenanceWindows[0].schedule: ",
        ),
        (
            {"Hvpa__metadata__name": None, "Hvpa__metadata__generateName": "a-"},
            "Hvpa: metadata.name: is required",
        ),
        (
            {"Deployment__spec__replicas": "3"},
            "Deployment resource-consumer: spec.replicas: must be a whole number, is text",
        ),
        ({"Deployment__spec__replicas": -1}, "spec.replicas: must not be negative"),
        ({"Deployment__spec__replicas": 2**31}, "spec.replicas: must not be above 2147483647"),
        ({"Deployment__metadata": None}, "Deployment: metadata: must be an object"),
        ({"Deployment__metadata__name": 3}, "Deployment: metadata.name: must be a string"),
        (
            {"Deployment__apiVersion": "apps/v1beta1"},
            "Deployment resource-consumer: apiVersion: must be apps/v1",
        ),
        ({"Deployment__apiVersion": "extensions/v1beta1"}, "apiVersion: must be apps/v1"),
        (
            {"Deployment__spec__template__spec__containers__0__resources__requests__cpu": "much"},
            "spec.template.spec.containers[0].resources.requests.cpu: 'much' is not a quantity",
        ),
        (
            {"Deployment__spec__template__spec__containers__0__resources__limits__memory": "-1Gi"},
            "spec.template.spec.containers[0].resources.limits.memory: -1Gi is negative",
        ),
        ({"HorizontalPodAutoscaler__apiVersion": "autoscaling/v1"}, "apiVersion: must be autoscaling/v2"),
        (
            {"HorizontalPodAutoscaler__spec__maxReplicas": "ten"},
            "spec.maxReplicas: must be a whole number, is text",
        ),
        (
            {"HorizontalPodAutoscaler__spec__metrics__0__resource__target__averageValue": "x"},
            "spec.metrics[0].resource.target.averageValue: 'x' is not a quantity",
        ),
        (
            {"HorizontalPodAutoscaler__metadata__creationTimestamp": "2026-11-01T00:00:00"},
            "metadata.creationTimestamp: must be a timestamp with a time zone",
        ),
        (
            {"HorizontalPodAutoscaler__metadata__creationTimestamp": "today"},
            "metadata.creationTimestamp: invalid RFC3339 encoded datetime",
        ),
        (
            {"VerticalPodAutoscaler__spec__updatePolicy__updateMode": False},
            "VerticalPodAutoscaler hvpa-sample: spec.updatePolicy.updateMode: must be text, is true or false",
        ),
        (
            {"VerticalPodAutoscaler__spec": [1]},
            "VerticalPodAutoscaler hvpa-sample: spec: must be an object, is a list",
        ),
        (
            {"Pod__status__conditions": {}},
            "Pod resource-consumer-1: status.conditions: must be a list, is an object",
        ),
        (
            {"Pod__metadata__labels": {"a": 1}},
            "Pod resource-consumer-1: metadata.labels[*]: must be text, is a whole number",
        ),
    ],
)
def test_a_wrong_object_is_told_with_file_object_and_field(
    shell: Shell, gardener: list[Doc], changes: Doc, told: str
) -> None:
    path = shell.file(changed(gardener, **changes))
    ran = shell.run("explain", "-f", path)
    assert (ran.code, ran.out) == (1, "")
    assert re.match(rf"hvpa: error: {re.escape(path)}:\d+: ", ran.err)
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("web", "-f", "a.yaml"), "not both"),
        (("-f", "a.yaml", "--kubeconfig", "b"), "no meaning with -f"),
        (("-f", "a.yaml", "--context", "b"), "no meaning with -f"),
        ((), "name an Hvpa"),
        (("-f", "a.yaml", "--now", "yesterday"), "'yesterday' is not a timestamp"),
        (("-f", "a.yaml", "--now", "9999-12-31T23:59:59Z"), "only years 1970 to 2499"),
        (("-f", "a.yaml", "--hpa-tolerance", "1"), "not a fraction"),
        (("-f", "a.yaml", "--hpa-tolerance", "some"), "not a fraction"),
        (("-f", "a.yaml", "-o", "yaml"), "invalid choice"),
    ],
)
def test_wrong_usage_is_told_in_one_line(shell: Shell, flags: tuple[str, ...], told: str) -> None:
    ran = shell.run("explain", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_tolerance_can_be_set(shell: Shell, gardener: list[Doc]) -> None:
    measured = {
        "HorizontalPodAutoscaler__status__currentMetrics__1__resource__current__averageUtilization": 60
    }
    documents = changed(gardener, **measured, HorizontalPodAutoscaler__status__desiredReplicas=4)
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


def test_all_of_it_is_told_in_words(shell: Shell) -> None:
    documents = changed(load("gardener.yaml"), Hvpa__status={"lastScaling": {"lastScaleTime": JUST_NOW}})
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "Hvpa default/hvpa-sample, target Deployment resource-consumer, mode Apply, at 2026-11-21T10:00:00Z",
        "  HPA hvpa-sample: asks for 6 replicas",
        "    Resource cpu: 100 %, target 50 %",
        "    these metrics call for 6; using 6",
        "    container resource-consumer: cpu 1500m, memory 2Gi",
        "  weights: horizontal 40 percent, vertical 60 percent",
        "  hpa.scaleUp: Auto, last step 2026-11-21T09:59:00Z, stabilization 2m (until 2026-11-21T10:01:00Z (in 1m)), "
        "minChange none",
        "  replicas 3 -> 5: StabilizationWindow until 2026-11-21T10:01:00Z (in 1m)",
        "  resource-consumer cpu 500m -> 1100m: StabilizationWindow until 2026-11-21T10:01:00Z (in 1m)",
        "  replicas: 3 (no change); recommended before gates: 5",
        "  no change",
        "  at 2026-11-21T10:01:00Z (in 1m), or when something changes",
    ):
        assert f"\n{line}\n" in f"\n{ran.out}", ran.out


def test_the_patch_is_shown_as_yaml(shell: Shell, gardener: list[Doc]) -> None:
    ran = shell.run("explain", "-f", shell.file(gardener), "--now", NOW)
    assert "\n            requests:\n              cpu: 1100m\n              memory: 1717987k\n" in ran.out
    assert "\n  spec.replicas of the Hvpa, which the HPA reads, is set to 6\n" in ran.out
    assert "\n  apply HorizontalPodAutoscaler hvpa-sample\n" in ran.out


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ({"Hvpa__spec__targetRef__name": "gone"}, "  Deployment gone does not exist"),
        ({"Hvpa__spec__hpa": {}, "Hvpa__spec__vpa": {}}, "  HPA: none is configured"),
        ({"HorizontalPodAutoscaler__status": {}}, "  HPA: not used, "),
        ({"VerticalPodAutoscaler__status": {}}, "  VPA: not used, NoRecommendation: "),
        (
            {
                "Pod__status__containerStatuses": [
                    {
                        "name": APP,
                        "lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": JUST_NOW}},
                    }
                ]
            },
            f"  container {APP} ran out of memory at {JUST_NOW}: scaling up does not wait",
        ),
        (
            {
                "HorizontalPodAutoscaler__spec__metrics": [
                    {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": "rps"},
                            "target": {"type": "AverageValue", "averageValue": "10"},
                        },
                    }
                ],
                "HorizontalPodAutoscaler__status__currentMetrics": [
                    {"type": ""},
                    {
                        "type": "Pods",
                        "pods": {"metric": {"name": "rps"}, "current": {"averageValue": "500m"}},
                    },
                ],
            },
            "    Pods rps: 0.5 per pod, target 10 per pod",
        ),
        ({"Hvpa__metadata__deletionTimestamp": NOW}, "  the Hvpa is being deleted: "),
        (
            {"Hvpa__status": {"overrideScaleUpStabilization": True}},
            "  status.overrideScaleUpStabilization is set: ",
        ),
        (
            {"Deployment__status": None},
            "Note: the status of Deployment resource-consumer is not its controller's",
        ),
    ],
)
def test_what_is_out_of_the_ordinary_is_told_in_words(
    shell: Shell, gardener: list[Doc], documents: Doc, told: str
) -> None:
    ran = shell.run("explain", "-f", shell.file(changed(gardener, **documents)), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    assert f"\n{told}" in ran.out, ran.out


# --- what was refused ------------------------------------------------------------------------------------------------
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
    axes = {"vertical": {"refused": requests}, "horizontal": {"refused": replicas}}
    documents = changed(gardener, Hvpa__status={"axes": axes})
    explained = shell.explain(documents)
    assert held(explained) == {
        ("vertical", "cpu"): ("up", "Refused", OPEN_AT),
        ("vertical", "memory"): ("up", "Refused", OPEN_AT),
    }, "of the replicas the wait is over"
    assert message in next(one["message"] for one in explained["conditions"] if one["type"] == "Ready")
    assert explained["patch"]["spec"] == {"replicas": 5}
    text = shell.run("explain", "-f", shell.file(documents), "--now", NOW).out
    requests_line = f"{APP} cpu 500m -> 1100m, {APP} memory 1Gi -> 1638Mi: {message}"
    assert f"refused at {JUST_NOW}, 2 times in a row: {requests_line}" in text
    assert f"refused at {JUST_NOW}: replicas 3 -> 5: no" in text
