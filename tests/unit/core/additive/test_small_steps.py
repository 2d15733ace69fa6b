"""What reviews found of `Additive`: small steps that restarted pods, and waits without an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.named import named


def decided(request: Mapping[str, str], target: Mapping[str, str], **rest: Any) -> Decision:
    """Three pods whose VPA recommends `target`, at full vertical weight."""
    containers = [build.container(requests=request)]
    status = rest.pop("status", None)
    return build.decided(
        build.objects(
            build.hvpa({"weightBasedScalingIntervals": [{"vpaWeight": 100}]}, status),
            build.workload(3, containers, rest.pop("workload", None)),
            rest.pop("horizontal", build.hpa()),
            build.vpa({"app": target}, rest.pop("vertical", None)),
            rest.pop("pods", None)
            or [build.pod(f"web-{index}", containers=containers) for index in range(3)],
        )
    )


def holds(decision: Decision) -> list[tuple[Any, ...]]:
    return [(one.axis, one.direction, one.reason, one.until) for one in decision.blocked]


@pytest.mark.parametrize(
    ("request_now", "target", "passes"),
    named(
        {
            "a millicore more": ("1", "1001m", False),
            "a tenth of the request, and half of minChange": ("1", "1100m", True),
            "less than both": ("1", "1099m", False),
            "a tenth of a small request": ("500m", "550m", True),
            "less than a tenth of it": ("500m", "549m", False),
            "half of minChange of a large request": ("4", "4100m", True),
            "less than half of minChange": ("4", "4099m", False),
        }
    ),
)
def test_min_change_timeout_lets_through_what_is_worth_it(
    request_now: str, target: str, passes: bool
) -> None:
    since = stamp(at(minutes=-15))
    pending = [{"container": "app", "resource": "cpu", "direction": "up", "since": since}]
    status = {"axes": {"vertical": {"pending": pending}}}
    decision = decided({"cpu": request_now}, {"cpu": target}, status=status)
    assert (decision.workload_patch is not None) == passes
    assert holds(decision) == ([] if passes else [("vertical", "up", "MinChange", None)])


def test_a_request_does_not_rise_for_a_target_below_it() -> None:
    decision = decided({"memory": "1Gi"}, {"memory": "1073741500"})
    assert (decision.workload_patch, decision.blocked) == (None, ())


@pytest.mark.parametrize(
    ("request_now", "target", "direction"),
    named(
        {
            "pods too large for every node": ("64", "2", "down"),
            "pods too small to become ready": ("1", "4", "up"),
        }
    ),
)
def test_a_change_that_repairs_pods_passes_after_the_progress_deadline(
    request_now: str, target: str, direction: str
) -> None:
    def after(minutes: float) -> Decision:
        created = {"metadata": {"creationTimestamp": stamp(at(minutes=-minutes))}}
        containers = [build.container(requests={"cpu": request_now})]
        pods = [build.pod(f"web-{one}", False, created, containers) for one in range(3)]
        none_ready = {"status": {"readyReplicas": 0, "availableReplicas": 0}}
        return decided({"cpu": request_now}, {"cpu": target}, workload=none_ready, pods=pods)

    assert holds(after(5)) == [("vertical", direction, "Rollout", at(minutes=5))]
    assert after(10).containers["app"].requests["cpu"] == int(target) * 1000


def test_a_deployment_that_lacks_pods_waits_as_long_as_it_reports_progress() -> None:
    def after(minutes: float | None) -> Decision:
        status: dict[str, Any] = {"updatedReplicas": 2}
        if minutes is not None:
            updated = stamp(at(minutes=-minutes))
            status["conditions"] = [{"type": "Progressing", "status": "True", "lastUpdateTime": updated}]
        return decided({"cpu": "1"}, {"cpu": "4"}, workload={"status": status})

    assert holds(after(None)) == [("vertical", "up", "Rollout", None)]
    assert holds(after(2)) == [("vertical", "up", "Rollout", at(minutes=8))]
    assert after(12).containers["app"].requests["cpu"] == 4000


@pytest.mark.parametrize(("weight", "desired", "expected"), [(100, 9, 9), (50, 2, 4)])
def test_an_axis_that_is_not_there_does_not_hold_back_the_other(
    weight: int, desired: int, expected: int
) -> None:
    """Out, all of the step is the HPA's; in, its interval's share."""
    silent = {"status": {"conditions": [{"type": "RecommendationProvided", "status": "False"}]}}
    objects: Objects = build.objects(
        build.hvpa({"weightBasedScalingIntervals": [{"vpaWeight": weight}], "replicas": desired}),
        build.workload(6),
        build.hpa(desired, 200 if desired > 6 else 10, replicas=6),
        build.vpa({"app": {"cpu": "1"}}, silent),
    )
    decision = build.decided(objects, NOW)
    assert decision.replicas is not None
    assert (decision.replicas.target, holds(decision)) == (expected, [])


@pytest.mark.parametrize(
    ("last_up", "is_raised"),
    named(
        {
            "a step down came since": (None, True),
            "a step up came before": (-30, True),
            "a step up came since": (-10, False),
        }
    ),
)
def test_a_step_down_does_not_erase_that_a_container_ran_out_of_memory(
    last_up: int | None, is_raised: bool
) -> None:
    containers = [build.container(requests={"cpu": "1", "memory": "1Gi"})]
    axis = {"lastScaleTime": stamp(at(minutes=-10))}
    if last_up is not None:
        axis["lastScaleUpTime"] = stamp(at(minutes=last_up))
    pods = [build.oom_killed(at(minutes=-20), containers=containers)]
    request = {"cpu": "1", "memory": "1Gi"}
    decision = decided(request, request, status={"axes": {"vertical": axis}}, pods=pods)
    assert (decision.containers["app"].requests["memory"] > 2**30) == is_raised
