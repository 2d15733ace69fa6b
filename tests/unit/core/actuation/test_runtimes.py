"""Pods whose runtime reads its memory when it starts (`spec.runtimes`): CPU in place, memory by other pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from builders.build import (
    at,
    condition,
    container,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    vpa,
    workload,
)
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision
from tests.unit.core.actuation.sized_pods import (
    LARGER,
    REQUESTS,
    RESTARTS,
    actuation,
    decision,
    desired,
    out_of_memory,
    patches_template,
    ready_of,
    resized,
    running,
    size_status,
)

JAVA: Final = {"runtimes": [{"container": "app", "kind": "Java"}]}
ROLLOUT: Final = {"type": "InPlaceOrRollout"}
WHY: Final = "container app reads its memory when it starts (runtimes): new pods have the new size"
GROWN: Final = {"cpu": "2", "memory": "1Gi"}
"""The larger size as far as a resize gives it."""


def template_of(decision: Decision) -> Any:
    assert decision.workload_patch is not None
    spec: Any = decision.workload_patch.body["spec"]
    return spec["template"]["spec"]["containers"][0]["resources"]


# --- pods ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["Java", "Node"])
def test_only_cpu_is_resized_in_place(kind: str) -> None:
    spec = {"runtimes": [{"container": "app", "kind": kind}]}
    assert resized(decision([running()], spec=spec)) == {"web-1": {"requests": {"cpu": "2"}}}


def test_with_the_cpu_the_pod_waits_for_another_in_its_place() -> None:
    result = decision([running(requests=GROWN), running("web-2", LARGER)], spec=JAVA, creation_sizes=())
    assert result.resizes == ()
    assert (actuation(result).resized, actuation(result).waiting) == ("1/2", 1)
    assert actuation(result).message == f"pod web-1: {WHY}"
    assert ready_of(result)[1].startswith("1/2 pods have the desired size: pod web-1: container app reads")


def test_new_pods_are_created_with_the_memory() -> None:
    result = decision([running()], spec=JAVA, creation_sizes=())
    assert result.creation_sizes == {"Deployment.apps/web": "web; app 2: 2Gi:"}


@pytest.mark.parametrize("entry", [{"kind": "Python"}, {"kind": "Go"}, {"kind": "Other"}])
def test_memory_of_other_runtimes_is_resized_in_place(entry: Mapping[str, str]) -> None:
    spec = {"runtimes": [{"container": "app", **entry}]}
    assert resized(decision([running()], spec=spec)) == {"web-1": {"requests": LARGER}}


def test_a_container_that_restarts_for_memory_is_resized() -> None:
    pods = [running(more={"resizePolicy": RESTARTS})]
    assert resized(decision(pods, spec=JAVA)) == {"web-1": {"requests": LARGER}}


def test_memory_of_another_container_is_resized() -> None:
    spec = {"runtimes": [{"container": "agent", "kind": "Java"}]}
    assert resized(decision([running()], spec=spec)) == {"web-1": {"requests": LARGER}}


def test_a_container_that_ran_out_of_memory_gets_it_at_once() -> None:
    """It starts again, and the memory beside the heap can grow."""
    pods = [out_of_memory(), running("web-2")]
    result = decision(pods, spec=JAVA)
    assert resized(result)["web-1"] == {"requests": LARGER}


def test_the_memory_of_a_guaranteed_pod_keeps_its_limit() -> None:
    size = {"requests": LARGER, "limits": LARGER}
    result = decision([running(limits=REQUESTS)], size, spec=JAVA)
    assert resized(result) == {"web-1": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}


# --- the pod template ------------------------------------------------------------------------------------------------
def test_a_rollout_replaces_pods_for_their_memory() -> None:
    result = decision([running()], strategy=ROLLOUT, spec=JAVA)
    assert resized(result) == {"web-1": {"requests": {"cpu": "2"}}}
    settled = decision([running(requests=GROWN)], strategy=ROLLOUT, spec=JAVA)
    assert template_of(settled) == {"requests": {"cpu": "2", "memory": "2Gi"}}
    assert settled.status.replacing is None  # its CPU is resized in place from now on


@pytest.mark.parametrize("strategy", [{"type": "InPlace"}, ROLLOUT | {"canary": {"pods": 1}}])
def test_no_rollout_by_type_in_place_or_during_a_trial(strategy: Mapping[str, Any]) -> None:
    status = size_status(1, {"app": {"requests": LARGER}})
    if "canary" in strategy:
        run = {"pods": ["web-1"], "previous": [{"name": "app", "requests": REQUESTS}]}
        status["desired"]["canary"] = run
    own = hvpa({"updateStrategy": strategy, "hpa": {"deploy": False}, **JAVA}, status)
    result = decided(objects(own, workload(1), None, vpa({"app": LARGER}), [running(requests=GROWN)]))
    assert not patches_template(result)


def test_a_trial_of_cpu_ends_although_memory_waits() -> None:
    status = size_status(2, {"app": {"requests": LARGER}}, at(minutes=-20))
    status["desired"]["canary"] = {
        "pods": ["web-1"],
        "since": "2026-11-21T09:45:00Z",
        "previous": [{"name": "app", "requests": REQUESTS}],
    }
    strategy = ROLLOUT | {"canary": {"pods": 1}}
    own = hvpa({"updateStrategy": strategy, "hpa": {"deploy": False}, **JAVA}, status)
    pods = [running(requests=GROWN), running("web-2")]
    result = decided(objects(own, workload(2), None, vpa({"app": LARGER}), pods))
    assert desired(result).canary is None
    assert resized(result) == {"web-2": {"requests": {"cpu": "2"}}}


def test_no_rollout_outside_its_maintenance_window() -> None:
    spec = merged(
        JAVA,
        {
            "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
            "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        },
    )
    assert not patches_template(decision([running(requests=GROWN)], strategy=ROLLOUT, spec=spec))


def test_no_second_rollout_once_the_template_has_the_memory() -> None:
    status = size_status(1, {"app": {"requests": LARGER}})
    own = hvpa({"updateStrategy": ROLLOUT, "hpa": {"deploy": False}, **JAVA}, status)
    target = workload(1, [container(requests=LARGER)])
    result = decided(objects(own, target, None, vpa({"app": LARGER}), [running(requests=GROWN)]))
    assert result.workload_patch is None


# --- sizes -----------------------------------------------------------------------------------------------------------
def recommended(
    memory: str, present: Sequence[Mapping[str, Any]], spec: Mapping[str, Any], pods: Sequence[Pod] = ()
) -> Decision:
    """What is decided where the VPA recommends this memory, and all gates are open."""
    usual = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    own = hvpa(merged(usual, spec))
    vertical = vpa({"app": {"cpu": "1", "memory": memory}})
    return decided(objects(own, workload(1, present), None, vertical, pods or None))


def memory_of(decision: Decision) -> int:
    return decision.recommended["app"].requests["memory"]


def test_memory_is_not_lowered_below_a_fixed_heap_and_its_overhead() -> None:
    """A heap of 512Mi needs 640Mi; with a limit of twice the request, a request of 320Mi."""
    java = container() | {"command": ["java", "-Xmx512m"]}
    assert memory_of(recommended("128Mi", [java], JAVA)) == 640 * 1024**2
    assert memory_of(recommended("128Mi", [java], {})) < 640 * 1024**2
    twice = container(limits={"memory": "2Gi"}) | {"command": ["java", "-Xmx512m"]}
    assert memory_of(recommended("128Mi", [twice], JAVA)) == 320 * 1024**2
    assert any(
        "its heap and overhead (runtimes)" in step for step in recommended("128Mi", [java], JAVA).steps
    )


def test_a_limit_that_stays_needs_no_request_for_the_heap() -> None:
    fixed = container(limits={"memory": "2Gi"}) | {"command": ["java", "-Xmx512m"]}
    policy = {"containerName": "app", "controlledValues": "RequestsOnly"}
    spec = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    assert memory_of(recommended("128Mi", [fixed], merged(JAVA, spec))) < 320 * 1024**2


def test_max_allowed_is_above_the_heap() -> None:
    java = container() | {"command": ["java", "-Xmx512m"]}
    policy = {"containerName": "app", "maxAllowed": {"memory": "500Mi"}}
    spec = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    assert memory_of(recommended("128Mi", [java], merged(JAVA, spec))) == 500 * 1024**2


@pytest.mark.parametrize(
    ("command", "spec", "reason"),
    [
        (["java", "-Xmx512m"], JAVA, "HeapFixed"),
        (["java", "-XX:MaxRAMPercentage=75"], JAVA, "Recommending"),
        (["java", "-Xmx512m"], {}, "Recommending"),
    ],
)
def test_the_condition_names_what_a_larger_limit_is_not_worth(
    command: list[str], spec: Mapping[str, Any], reason: str
) -> None:
    result = recommended("4Gi", [container() | {"command": command}], spec)
    active = condition(result, "VpaActive")
    assert (active.status, active.reason) == ("True", reason)
    if reason == "HeapFixed":
        assert "app: -Xmx512m in the command needs about 640Mi, 4096Mi recommended" in active.message


def test_the_condition_names_a_runtime_that_the_template_contradicts() -> None:
    active = condition(
        recommended("4Gi", [container() | {"command": ["node", "main.js"]}], JAVA), "VpaActive"
    )
    assert (active.status, active.reason) == ("True", "RuntimeMismatch")
    assert active.message == "app: Java is declared, but its template shows Node"


def test_a_recommendation_within_the_heap_is_no_finding() -> None:
    java = container(requests={"cpu": "1", "memory": "600Mi"}) | {"command": ["java", "-Xmx512m"]}
    assert condition(recommended("600Mi", [java], JAVA), "VpaActive").reason == "Recommending"


@pytest.mark.parametrize(("kind", "held"), [("Java", ["MinChange"]), ("Python", [])])
def test_memory_that_replaces_pods_has_the_least_change_of_replaced_pods(kind: str, held: list[str]) -> None:
    """15 percent more memory, jointly: enough for a resize, and too little for a rollout."""
    spec = {
        "runtimes": [{"container": "app", "kind": kind}],
        "updateStrategy": ROLLOUT,
        "blend": "Trajectory",
    }
    vertical = vpa({"app": {"cpu": "1", "memory": "1234803098"}})
    result = decided(objects(hvpa(spec), workload(3), hpa(3), vertical))
    assert [blocked.reason for blocked in result.blocked if blocked.resource == "memory"] == held
    custom = {"vpa": {"scaleUp": {"minChange": {"memory": {"value": "1"}}}}}
    result = decided(objects(hvpa(merged(spec, custom)), workload(3), hpa(3), vertical))
    assert not [blocked for blocked in result.blocked if blocked.reason == "MinChange"]


def test_what_a_rollout_is_needed_for_waits_for_the_present_one() -> None:
    """Memory of a JVM is a disruptive change with `InPlaceOrRollout`, and CPU is not."""
    replacing = workload(1, change={"status": {"updatedReplicas": 0, "conditions": []}})
    spec = merged(JAVA, {"updateStrategy": ROLLOUT, "hpa": {"deploy": False}})
    result = decided(objects(hvpa(spec), replacing, None, vpa({"app": LARGER})))
    assert [(blocked.reason, blocked.resource) for blocked in result.blocked] == [("Rollout", "memory")]
