"""`hvpa explain` of `blend: Trajectory`: demand, the path and what bound it, in words and in the JSON contract."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.support import NOW, Doc, Shell, changed, load

MEASURED = "HorizontalPodAutoscaler__status__currentMetrics__0__resource__current"
WISHED = "HorizontalPodAutoscaler__status__desiredReplicas"
MAX = "Hvpa__spec__hpa__template__spec__maxReplicas"
JUST_NOW = "2026-11-21T09:59:00Z"
OFF = {"updatePolicy": {"updateMode": "Off"}}
INTERVALS = [
    {"maxReplicas": 2, "maxResources": {"cpu": "1", "memory": "2Gi"}},
    {"maxReplicas": 8, "maxResources": {"cpu": "4", "memory": "8Gi"}},
]
WRITTEN: dict[str, Any] = {
    "Hvpa__spec__weightBasedScalingIntervals": None,
    "Hvpa__spec__trajectory": {
        "intervals": INTERVALS,
        "baseResourcesPerReplica": {"cpu": {"value": "100m"}},
    },
}


@pytest.fixture
def shop() -> list[Doc]:
    """An Hvpa whose load has just risen. Both pods use 90 percent of 1 core, and 50 are wanted: 3600m are needed."""
    return load("trajectory.yaml")


def path_told(shell: Shell, documents: list[Doc], **changes: Any) -> list[str]:
    """The lines of the section Path."""
    ran = shell.run("explain", "-f", shell.file(changed(documents, **changes)), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    section = ran.out.partition("\nPath\n")[2].partition("\n\n")[0]
    return [line.removeprefix("  ") for line in section.splitlines()]


# --- in words --------------------------------------------------------------------------------------------------------
def test_demand_by_resource_and_source_and_both_points_are_told(shell: Shell, shop: list[Doc]) -> None:
    assert path_told(shell, shop)[2:] == [
        "replicas may be 1 to 10; at 2 replicas, 50 percent of an increase goes into larger pods, "
        "the rest into more of them",
        "app cpu: request 1 now, 800m wanted",
        "  usually 2400m (HPA: mean of what it measured): 3 replicas on the path",
        "  now 3600m (HPA: cpu): 5 replicas of 800m",
        "app memory: request 1Gi now, 1200Mi wanted",
        "  usually 3600Mi (VPA: 1800Mi each of 2.00 pods): 3 replicas on the path",
        "  now: no metric of the HPA measures it",
        "usual demand is served by: 3 replicas of app cpu 800m, memory 1200Mi",
        "wanted: 5 replicas of app cpu 800m, memory 1200Mi",
        "because: cpu asks for 5 replicas",
        "replicas: 2 now, the HPA asks for 4; 5 needed by the demand",
    ]


def test_there_is_no_section_of_a_blend_beside_it(shell: Shell, shop: list[Doc]) -> None:
    ran = shell.run("explain", "-f", shell.file(shop), "--now", NOW)
    assert "\nBlend\n" not in ran.out


def test_what_is_held_and_what_is_done_instead_is_told(shell: Shell, shop: list[Doc]) -> None:
    # Pods must not change: more of those that are there serve what is needed.
    told = path_told(shell, shop, Hvpa__spec__vpa__scaleUp=OFF, Hvpa__spec__vpa__scaleDown=OFF)
    assert "wanted: 5 replicas of app cpu 800m, memory 1200Mi" in told
    assert told[-3:] == [
        "held back: app cpu 1 -> 800m: UpdatePolicy",
        "held back: app memory 1Gi -> 1200Mi: UpdatePolicy",
        "for now: 4 replicas of app cpu 1, memory 1Gi",
    ]


def test_the_gate_of_a_held_count_is_told_with_its_time(shell: Shell, shop: list[Doc]) -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": JUST_NOW}}}
    told = path_told(
        shell, shop, Hvpa__status=status, Hvpa__spec__hpa__scaleUp={"stabilizationDuration": "3m"}
    )
    assert any(
        line.startswith("held back: replicas 2 -> ") and "StabilizationWindow" in line for line in told
    )
    assert told[-1].startswith("for now: 2 replicas of app ")


def test_what_a_mode_does_not_apply_is_not_told_as_done(shell: Shell, shop: list[Doc]) -> None:
    told = path_told(shell, shop, Hvpa__spec__mode="Recommend")
    assert "wanted: 5 replicas of app cpu 800m, memory 1200Mi" in told
    assert not any(line.startswith("for now") for line in told)


def test_a_request_that_is_near_enough_stays_and_says_so(shell: Shell, shop: list[Doc]) -> None:
    request = "Deployment__spec__template__spec__containers__0__resources__requests"
    told = path_told(shell, shop, **{request: {"cpu": "850m", "memory": "1258292k"}})
    assert any(line.startswith("app cpu: request 850m, which stays (near enough to ") for line in told)


def test_written_intervals_and_base_usage_are_told(shell: Shell, shop: list[Doc]) -> None:
    told = path_told(shell, shop, **WRITTEN)
    assert told[1].endswith(", without what each pod uses before it does any work")
    assert told[2] == "replicas may be 1 to 10"


def test_saturation_is_told(shell: Shell, shop: list[Doc]) -> None:
    told = path_told(
        shell, shop, **{MAX: 2, MEASURED: {"averageUtilization": 300, "averageValue": "3"}, WISHED: 2}
    )
    assert "because: cpu asks for 6 replicas, and there may be no more than 2" in told
    assert any(
        "about 12 cores needed, and 2 replicas (maxReplicas) of 2 cores (the largest size allowed)" in line
        for line in told
    )


def test_without_a_vpa_only_replicas_are_told(shell: Shell, shop: list[Doc]) -> None:
    told = path_told(shell, shop, Hvpa__spec__vpa={})
    assert "no request is scaled: there is no VPA recommendation to use" in told
    assert "wanted: 4 replicas" in told


def test_memory_that_ran_out_is_told(shell: Shell, shop: list[Doc]) -> None:
    terminated = {"terminated": {"reason": "OOMKilled", "finishedAt": JUST_NOW}}
    killed = [{"name": "app", "lastState": terminated}]
    told = path_told(shell, shop, Pod__status__containerStatuses=killed)
    assert any(line.startswith("app memory: 1Gi now") and "ran out of memory" in line for line in told)


# --- as JSON ---------------------------------------------------------------------------------------------------------
def test_the_path_is_told_field_by_field(shell: Shell, shop: list[Doc]) -> None:
    requests = {"app": {"cpu": "800m", "memory": "1258292k"}}
    cpu = {"container": "app", "resource": "cpu"}
    assert shell.explain(shop)["path"] == {
        "usualReplicas": 2.0,
        "counts": {"min": 1, "max": 10},
        "containers": {
            "app": {
                "cpu": {
                    "base": "500m",
                    "current": "1",
                    "wanted": "800m",
                    "usual": "2400m",
                    "usualFrom": "HPA: mean of what it measured",
                    "usualReplicas": 3,
                    "present": "3600m",
                    "presentFrom": "HPA: cpu",
                    "presentReplicas": 5,
                },
                "memory": {
                    "base": "512Mi",
                    "current": "1Gi",
                    "wanted": "1258292k",
                    "usual": "3600Mi",
                    "usualFrom": "VPA: 1800Mi each of 2.00 pods",
                    "usualReplicas": 3,
                    "present": None,
                    "presentFrom": None,
                    "presentReplicas": None,
                },
            }
        },
        "usual": {"replicas": 3, "requests": requests, "binding": cpu, "saturated": []},
        "wanted": {"replicas": 5, "requests": requests, "binding": cpu, "saturated": []},
        "because": "cpu asks for 5 replicas",
    }


def test_what_is_saturated_is_named(shell: Shell, shop: list[Doc]) -> None:
    explained = shell.explain(
        changed(shop, **{MAX: 2, MEASURED: {"averageUtilization": 300, "averageValue": "3"}, WISHED: 2})
    )
    assert explained["path"]["wanted"]["saturated"] == [{"container": "app", "resource": "cpu"}]
    assert explained["conditions"][0]["reason"] == "Saturated"


def test_without_a_vpa_there_is_no_point_of_a_usual_demand(shell: Shell, shop: list[Doc]) -> None:
    path = shell.explain(changed(shop, Hvpa__spec__vpa={}))["path"]
    assert (path["usualReplicas"], path["usual"], path["containers"]) == (None, None, {})
    assert path["wanted"] == {"replicas": 4, "requests": {}, "binding": None, "saturated": []}
