"""Whatever limits replicas or a size is named, in one place for all strategies (docs/decisions/0061)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.core import Decision
from hvpa.core.model import JointResource
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.bounds import recommender_cap
from hvpa.core.trajectory.view import SolutionView
from hvpa.core.values.arithmetic import RequestBounds
from hvpa.core.workload.containers import ContainerResource

GIB = 1024**3
JOINT: dict[str, Any] = {"blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 50}]}


def policy(**fields: Any) -> dict[str, Any]:
    container_policy = {"containerName": "app", **fields}
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [container_policy]}}}}}


def decided(
    request: Mapping[str, str],
    target: Mapping[str, str],
    *,
    uncapped: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    pods: list[Any] | None = None,
    hpa: Any = None,
) -> Decision:
    """A decision on 3 pods that request this, of which the VPA's target and uncapped target are known."""
    containers = [build.container(requests=request, limits=limits)]
    recommendation = {"containerName": "app", "target": target, "uncappedTarget": uncapped or target}
    status = {"status": {"recommendation": {"containerRecommendations": [recommendation]}}}
    vpa = build.vpa({"app": target}, status)
    made = (
        [build.pod(f"web-{number}", containers=containers) for number in range(3)] if pods is None else pods
    )
    hvpa = build.hvpa({"weightBasedScalingIntervals": [{"vpaWeight": 100}], **(spec or {})})
    return build.decided(
        build.objects(hvpa, build.workload(3, containers), hpa or build.hpa(3, 50), vpa, made)
    )


def ready(decision: Decision) -> tuple[str, str, str]:
    condition = build.condition(decision, "Ready")
    return condition.status, condition.reason, condition.message


ALL = {"cpu": "1", "memory": "1Gi"}
REQUESTS_ONLY = policy(controlledValues="RequestsOnly")
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "maxAllowed, at which the recommender cuts its target": (
        {"target": {"cpu": "1"}, "spec": policy(maxAllowed={"cpu": "1"})},
        "app cpu: the VPA's target reaches maxAllowed, 1 core"),
    "maxAllowed, and what is needed beyond": (
        {"target": {"cpu": "1"}, "uncapped": {"cpu": "3210m"}, "spec": policy(maxAllowed={"cpu": "1"})},
        "app cpu: needs about 3300m, but maxAllowed is 1 core"),
    "a limit that stays, as request = limit with RequestsOnly": (
        {"target": {"cpu": "3"}, "limits": {"cpu": "1"}, "spec": REQUESTS_ONLY},
        "app cpu: needs about 3 cores, but its limit (controlledValues RequestsOnly) is 1 core"),
    "the smaller of both": (
        {"target": {"memory": "3Gi"}, "limits": {"memory": "1Gi"},
         "spec": policy(controlledValues="RequestsOnly", maxAllowed={"memory": "2Gi"})},
        "but its limit (controlledValues RequestsOnly) is 1Gi"),
    "the recommender's own cap": (
        {"target": {"memory": "1Gi"}, "uncapped": {"memory": "3Gi"}},
        "app memory: needs about 3147Mi, but the VPA's recommender recommends at most 1Gi"),
    "the recommender's own cap below maxAllowed": (
        {"target": {"memory": "1Gi"}, "uncapped": {"memory": "3Gi"},
         "spec": policy(maxAllowed={"memory": "2Gi"})},
        "app memory: needs about 3147Mi, but the VPA's recommender recommends at most 1Gi"),
    "Trajectory: the recommender's own cap of what no metric measures": (
        {"target": {"memory": "1Gi"}, "uncapped": {"memory": "3Gi"}, "spec": JOINT}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("change", "text"), CASES.values(), ids=CASES)
def test_the_bound_is_named_with_what_is_needed(change: dict[str, Any], text: str) -> None:
    others = {name: value for name, value in change.items() if name != "target"}
    condition = ready(decided(ALL, {**ALL, **change.get("target", {})}, **others))
    if text:
        assert condition[:2] == ("True", "Saturated")
    assert text in condition[2]


BELOW: dict[str, dict[str, Any]] = {
    "a limit that the target does not exceed": {"limits": {"cpu": "1"}, "spec": REQUESTS_ONLY},
    "a bound that is not reached": {"spec": policy(maxAllowed={"cpu": "2", "memory": "2Gi"})},
    "a limit that follows": {"limits": {"cpu": "1"}},
    "minAllowed, which the user asks for": {
        "uncapped": {"cpu": "100m", "memory": "100Mi"}, "spec": policy(minAllowed=ALL)},
}  # fmt: skip


@pytest.mark.parametrize("change", BELOW.values(), ids=BELOW)
def test_where_no_bound_is_reached_none_is_named(change: dict[str, Any]) -> None:
    assert ready(decided(ALL, ALL, **change))[:2] == ("True", "Reconciled")


def test_on_the_way_to_a_cap_the_step_is_reported_and_no_bound() -> None:
    decision = decided(ALL, {"cpu": "2", "memory": "1Gi"}, uncapped={"cpu": "5", "memory": "1Gi"})
    assert decision.applied == (("vertical", "up"),)
    assert ready(decision)[1] == "Reconciled"


# --- out of memory ---------------------------------------------------------------------------------------------------
def killed(restarts: int = 4, *, is_waiting: bool = True, **requests: str) -> list[Any]:
    """3 pods whose containers ran out of memory a minute ago, and wait to be started again."""
    containers = [build.container(requests={**ALL, **requests}, limits={"memory": requests["memory"]})]
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(minutes=-1))}}
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if is_waiting else {"running": {}}
    status = [{"name": "app", "state": state, "lastState": ended, "restartCount": restarts}]
    change = {"status": {"containerStatuses": status}}
    return [
        build.pod(f"web-{number}", not is_waiting, containers=containers, change=change)
        for number in range(3)
    ]


OOM: dict[str, tuple[dict[str, Any], str]] = {
    "maxAllowed": (policy(maxAllowed={"memory": "4Gi"}), "app memory: ran out of 4Gi, and maxAllowed allows no more"),
    "a limit that stays": (
        REQUESTS_ONLY, "app memory: ran out of 4Gi, and its limit (controlledValues RequestsOnly) allows no more"),
    "four times the target": ({}, "app memory: ran out of 4Gi, and 4 times the VPA's target allows no more"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "text"), OOM.values(), ids=OOM)
@pytest.mark.parametrize("strategy", [{}, JOINT])
def test_where_all_pods_run_out_of_memory_the_bound_is_named_before_the_crash_loop(
    spec: dict[str, Any], text: str, strategy: dict[str, Any]
) -> None:
    request, target = {"cpu": "1", "memory": "4Gi"}, {"cpu": "1", "memory": "1Gi"}
    change: dict[str, Any] = {"limits": {"memory": "4Gi"}, "spec": {**strategy, **spec}}
    status, reason, message = ready(decided(request, target, pods=killed(memory="4Gi"), **change))
    assert (status, reason) == ("False", "OutOfMemory")
    assert message.startswith(text)
    assert "CrashLoopBackOff" in message
    running = decided(request, target, pods=killed(1, is_waiting=False, memory="4Gi"), **change)
    assert ready(running)[:2] == ("True", "Saturated")
    assert text in ready(running)[2]


def test_where_memory_may_be_raised_no_bound_is_named() -> None:
    spec = policy(maxAllowed={"memory": "5Gi"})
    request, target = {"cpu": "1", "memory": "4Gi"}, {"cpu": "1", "memory": "1Gi"}
    pods = killed(memory="4Gi")
    condition = ready(decided(request, target, limits={"memory": "4Gi"}, spec=spec, pods=pods))
    assert condition[:2] == ("False", "PodsNotStarting")
    assert "allows no more" not in condition[2]


@pytest.mark.parametrize(("present", "is_named"), [(None, True), (5000, False)])
def test_of_what_a_metric_measures_replicas_make_up_for_the_recommenders_cap(
    present: int | None, is_named: bool
) -> None:
    @dataclass
    class Measured(SolutionView):
        """A joint decision in which this one container resource is measured or not."""

        @property
        def items(self) -> Any:
            return (JointResource(ResourceKey("app", "cpu"), 1000, 1000, 1000, present=present),)

    item = ContainerResource("app", "cpu", 1000, None, 1000, RequestBounds(), scales_limit=True, beyond=5000)
    measured: Any = Measured(cast(Any, None))
    assert bool(recommender_cap(item, measured)) == is_named


# --- what others refuse ----------------------------------------------------------------------------------------------
def test_a_size_that_was_taken_back_names_the_node_or_quota() -> None:
    record = {
        "count": 1, "time": stamp(NOW), "message": "pod web-0: Node didn't have enough capacity: cpu",
        "changes": [{"container": "app", "resource": "cpu", "previous": 1000, "failed": 2000}],
    }  # fmt: skip
    hvpa = build.hvpa(
        {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "updateStrategy": {"type": "InPlace"}},
        {"rolledBack": record},
    )
    workload = build.workload(3, [build.container(requests=ALL)])
    vpa = build.vpa({"app": {"cpu": "2"}})
    decision = build.decided(build.objects(hvpa, workload, build.hpa(3, 50), vpa))
    assert [entry.reason for entry in decision.blocked] == ["RolledBack"]
    assert ready(decision)[1] == "HeldBack"
    for kind in ("Ready", "ScalingBlocked"):
        assert "Node didn't have enough capacity: cpu" in build.condition(decision, kind).message


# --- Trajectory at both ends -----------------------------------------------------------------------------------------
def at_both_ends(memory: str, utilization: int = 50, target: str = "4Gi") -> Decision:
    """10 of 10 pods, each with the 4Gi that it may have; the HPA measures CPU."""
    spec = {
        **JOINT,
        **policy(maxAllowed={"cpu": "2", "memory": "4Gi"}),
        "hpa": {"template": {"spec": {"minReplicas": 2, "maxReplicas": 10}}},
    }
    containers = [build.container(requests={"cpu": "1", "memory": "4Gi"})]
    hpa = build.hpa(10, utilization, replicas=10)
    target_of = {"target": {"cpu": "1", "memory": target}, "uncappedTarget": {"cpu": "1", "memory": memory}}
    capped = {"containerName": "app", **target_of}
    vpa = build.vpa({}, {"status": {"recommendation": {"containerRecommendations": [capped]}}})
    pods = [build.pod(f"web-{number}", containers=containers) for number in range(10)]
    return build.decided(build.objects(build.hvpa(spec), build.workload(10, containers), hpa, vpa, pods))


def test_memory_that_no_metric_measures_is_saturated_at_its_bound() -> None:
    condition = ready(at_both_ends("12Gi"))
    assert condition[:2] == ("True", "Saturated")
    assert "app memory: needs about 13G, but maxAllowed is 4Gi" in condition[2]
    assert "the VPA's target reaches maxAllowed" in ready(at_both_ends("4Gi"))[2]
    assert "target is not below" not in ready(at_both_ends("3Gi", target="3Gi"))[2]


def test_an_end_of_the_written_out_path_is_named() -> None:
    ends = [{"maxReplicas": 3, "maxResources": {"cpu": "1", "memory": "1Gi"}}]
    spec = {
        "blend": "Trajectory",
        "trajectory": {"intervals": ends},
        "weightBasedScalingIntervals": None,
        "hpa": {"template": {"spec": {"minReplicas": 1, "maxReplicas": 3}}},
    }
    condition = ready(decided(ALL, ALL, spec=spec, hpa=build.hpa(3, 250)))
    assert condition[:2] == ("True", "Saturated")
    assert "of 1 core (the end of spec.trajectory.intervals) serve" in condition[2]
