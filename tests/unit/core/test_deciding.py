"""A decision as a whole: gardener's README examples, modes, the patch (DESIGN 3, 5, 8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import GIB, NOW, at
from hvpa.core import Decision, Objects
from hvpa.core.model import ReplicaView


def intervals(*rows: tuple[float, int, int]) -> list[dict[str, Any]]:
    return [
        {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
        for weight, first, last in rows
    ]


def direction(mode: str, wait: str, **more: Any) -> dict[str, Any]:
    return {"updatePolicy": {"updateMode": mode}, "stabilizationDuration": wait, **more}


def both(**params: Any) -> dict[str, Any]:
    return {"cpu": params, "memory": params}


def metric(name: str) -> dict[str, Any]:
    return {"resource": {"name": name, "targetAverageUtilization": 50}, "type": "Resource"}


POLICY = {
    "containerName": "resource-consumer",
    "minAllowed": {"memory": "400Mi"},
    "maxAllowed": {"memory": "3000Mi"},
}
# The first example of gardener's README, with its equal parts written once.
EXAMPLE_1: dict[str, Any] = {
    "maintenanceTimeWindow": {"begin": "220000-0000", "end": "230000-0000"},
    "hpa": {
        "deploy": True,
        "selector": {"matchLabels": {"key1": "value1"}},
        "scaleUp": direction("Auto", "2m"),
        "scaleDown": direction("Auto", "3m"),
        "template": {
            "metadata": {"labels": {"key1": "value1"}},
            "spec": {"maxReplicas": 10, "minReplicas": 1, "metrics": [metric("memory"), metric("cpu")]},
        },
    },
    "vpa": {
        "deploy": True,
        "selector": {"matchLabels": {"key2": "value2"}},
        "scaleUp": direction("Auto", "2m", minChange=both(value="3", percentage=80)),
        "scaleDown": direction("MaintenanceWindow", "3m", minChange=both(value="3", percentage=80)),
        "limitsRequestsGapScaleParams": {
            "cpu": {"percentage": 30, "value": "1"},
            "memory": {"percentage": 30, "value": "1G"},
        },
        "template": {
            "metadata": {"labels": {"key2": "value2"}},
            "spec": {"resourcePolicy": {"containerPolicies": [POLICY]}},
        },
    },
    "weightBasedScalingIntervals": intervals((0, 1, 2), (0.6, 3, 7), (0, 7, 10)),
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "resource-consumer"},
}
NAMED = {"metadata": {"name": "resource-consumer"}}


def example_1(replicas: int, desired: int, targets: Mapping[str, str]) -> Objects:
    """The first example at `replicas` x (500m, 1Gi; limits 700m, 2Gi), the HPA wanting `desired` replicas."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "700m", "memory": "2Gi"}}
    target, current = {"type": "Utilization", "averageUtilization": 50}, 50 * desired // replicas
    metrics = [{"name": name, "target": target} for name in ("memory", "cpu")]
    measured = [{"name": name, "current": {"averageUtilization": current}} for name in ("memory", "cpu")]
    of_hpa = {
        "metadata": {"labels": {"key1": "value1"}},
        "spec": {"metrics": [{"type": "Resource", "resource": metric} for metric in metrics]},
        "status": {
            "currentMetrics": [{"type": "Resource", "resource": measurement} for measurement in measured]
        },
    }
    of_vpa = {
        "metadata": {"labels": {"key2": "value2"}},
        "spec": {"targetRef": {"name": "resource-consumer"}},
    }
    return build.objects(
        build.hvpa({**EXAMPLE_1, "replicas": desired}, base={}),
        build.workload(replicas, [{"name": "resource-consumer", "resources": resources}], NAMED),
        build.hpa(desired, change=of_hpa, replicas=replicas),
        build.vpa({"resource-consumer": targets}, of_vpa),
    )


def resources(decision: Decision, name: str = "resource-consumer") -> tuple[dict[Any, int], dict[Any, int]]:
    container = decision.containers[name]
    return dict(container.requests), dict(container.limits)


def replicas(decision: Decision) -> int:
    assert decision.replicas is not None
    return decision.replicas.target


def test_example_1_in_its_middle_interval_moves_both_axes() -> None:
    decision = build.decided(example_1(3, 6, {"cpu": "1500m", "memory": "2Gi"}))
    assert decision.weight_ppm == 600_000
    # replicas: ceil(3 + (6 - 3) x (1 - 0.6)) = ceil(4.2)
    assert replicas(decision) == 5
    assert resources(decision) == (
        # CPU: 500m + (1500m - 500m) x 0.6; a change of 600m, and min(3000m, 80 percent of 500m) = 400m is asked for
        # memory: 1Gi + 1Gi x 0.6 = 1717986918.4 bytes, in whole kilobytes
        {"cpu": 1100, "memory": 1_717_987_000},
        # CPU: max(1100m x 1.3, 1100m + 1000m); memory: max(1717987k x 1.3, 1717987k + 1G)
        {"cpu": 2100, "memory": 2_717_987_000},
    )
    assert decision.status.hpa_weight == 40
    assert decision.status.vpa_weight == 60


def test_example_1_holds_small_changes_of_cpu_for_min_change() -> None:
    # 500m + (1000m - 500m) x 0.6 = 800m: a change of 300m, less than 400m
    decision = build.decided(example_1(3, 6, {"cpu": "1", "memory": "1Gi"}))
    assert resources(decision)[0] == {"cpu": 500, "memory": GIB}
    (entry,) = decision.blocked
    assert (entry.reason, entry.wanted, entry.until) == ("MinChange", 800, at(minutes=15))
    assert replicas(decision) == 5, "the other axis goes on"


def test_example_1_min_change_of_three_bytes_lets_any_change_of_memory_through() -> None:
    # 1Gi + (1Gi + 10M - 1Gi) x 0.6 = 6M more, in whole kilobytes: 1079741824 rounds up to 1079742k
    decision = build.decided(example_1(3, 3, {"cpu": "500m", "memory": str(GIB + 10_000_000)}))
    assert resources(decision)[0]["memory"] == 1_079_742_000


def test_example_1_lowers_requests_in_its_maintenance_window_only() -> None:
    objects = example_1(3, 3, {"cpu": "500m", "memory": "200Mi"})
    decision = build.decided(objects)
    held = [(entry.reason, entry.until) for entry in decision.blocked]
    assert held == [("MaintenanceWindow", at(hours=12))]
    assert decision.recheck_after == dt.timedelta(hours=12)
    # 1Gi - (1Gi - 200Mi) x 0.6 = 555325030.4 bytes; minAllowed 400Mi is below
    assert resources(build.decided(objects, at(hours=12)))[0]["memory"] == 555_326_000


@pytest.mark.parametrize(
    ("present", "desired", "expected", "weight"),
    [
        pytest.param(1, 2, 2, 0, id="1 to 2: all horizontal"),
        pytest.param(2, 8, 8, 0, id="2: all horizontal, right through the middle interval"),
        pytest.param(7, 10, 9, 60, id="7 is shared, the first that matches counts: ceil(7 + 3 x 0.4)"),
        pytest.param(8, 10, 10, 0, id="8: all horizontal"),
        pytest.param(7, 2, 5, 60, id="in from 7: floor(7 - 5 x 0.4)"),
    ],
)
def test_example_1_by_count(present: int, desired: int, expected: int, weight: int) -> None:
    decision = build.decided(example_1(present, desired, {"cpu": "500m", "memory": "2Gi"}))
    assert replicas(decision) == expected
    assert decision.status.vpa_weight == weight
    assert (resources(decision)[0]["memory"] == GIB) is (weight == 0), "with weight 0 requests stay"


def example_2(present: int, desired: int) -> Objects:
    """The second example: vertical first, both in the middle, then horizontal; its vpaWeight 1 is a fraction."""
    spec = {"replicas": desired, "weightBasedScalingIntervals": intervals((1, 1, 1), (0.6, 2, 4), (0, 5, 10))}
    hpa = build.hpa(desired, 50 * desired // present, replicas=present)
    return build.objects(build.hvpa(spec), build.workload(present), hpa, build.vpa({"app": {"cpu": "2"}}))


@pytest.mark.parametrize(
    ("present", "desired", "expected", "cpu"),
    [
        pytest.param(1, 1, 1, 2000, id="1, and the HPA is content: all vertical, to the target"),
        # The interval after it counts.
        pytest.param(1, 4, 3, 1600, id="1, and the HPA wants 4: ceil(1 + 3 x 0.4) and 1 + 1 x 0.6"),
        pytest.param(3, 3, 3, 1600, id="3, and the HPA is content: 1 + 1 x 0.6"),
        pytest.param(3, 8, 5, 1600, id="3, and the HPA wants 8: ceil(3 + 5 x 0.4)"),
        pytest.param(4, 1, 2, 1600, id="4, and the HPA wants 1: floor(4 - 3 x 0.4)"),
        pytest.param(5, 9, 9, 1000, id="5: all horizontal"),
    ],
)
def test_example_2(present: int, desired: int, expected: int, cpu: int) -> None:
    decision = build.decided(example_2(present, desired))
    assert replicas(decision) == expected
    assert decision.containers["app"].requests["cpu"] == cpu


def test_example_3_is_all_vertical_once_all_replicas_are_there() -> None:
    limited = [{"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}]
    spec = {"replicas": 10, "weightBasedScalingIntervals": intervals((0, 1, 3), (0.6, 4, 10))}
    hpa = build.hpa(10, 80, {"status": {"conditions": limited}}, replicas=10)
    objects = build.objects(build.hvpa(spec), build.workload(10), hpa, build.vpa({"app": {"cpu": "2"}}))
    assert build.decided(objects).containers["app"].requests["cpu"] == 2000


# --- modes -----------------------------------------------------------------------------------------------------------
def usual(spec: Mapping[str, Any] | None = None, **rest: Any) -> Objects:
    return build.objects(
        build.hvpa({"replicas": 6, **(spec or {})}),
        rest.pop("target", None),
        build.hpa(6, 100),
        build.vpa({"app": {"cpu": "2", "memory": "1Gi"}}),
        **rest,
    )


def test_both_axes_are_one_patch() -> None:
    decision = build.decided(usual())
    assert decision.workload_patch is not None
    container = {"name": "app", "resources": {"requests": {"cpu": "1500m"}}}
    template = {"spec": {"containers": [container]}}
    assert decision.workload_patch.body["spec"] == {"replicas": 5, "template": template}
    assert decision.applied == (("horizontal", "up"), ("vertical", "up"))
    assert decision.replicas == ReplicaView(current=3, hpa=6, target=5, recommended=5)
    assert [step.split(":")[0] for step in decision.steps] == ["weight", "replicas", "app cpu"]


def test_recommend_shows_everything_and_changes_nothing() -> None:
    decision = build.decided(usual({"mode": "Recommend"}))
    assert decision.workload_patch is None
    assert decision.applied == ()
    assert decision.blocked == ()
    assert replicas(decision) == 3
    assert decision.containers["app"].requests["cpu"] == 1000
    assert decision.recommended["app"].requests["cpu"] == 1500
    recommended = decision.status.recommended
    assert recommended is not None
    assert recommended.replicas == 5
    assert recommended.containers[0].requests == {"cpu": "1500m", "memory": "1Gi"}
    ready = decision.status.conditions[0]
    assert (ready.status, ready.reason) == ("True", "Recommend")


def test_paused_changes_nothing_and_is_reported_with_a_warning() -> None:
    decision = build.decided(usual({"mode": "Paused"}))
    assert decision.workload_patch is None
    assert {entry.reason for entry in decision.blocked} == {"Paused"}
    paused = next(condition for condition in decision.status.conditions if condition.type == "Paused")
    assert (paused.status, paused.reason) == ("True", "Paused")
    assert ("Warning", "Paused") in [(event.type, event.reason) for event in decision.events]


def test_update_policy_off_is_still_recommended_and_weight_0_is_not() -> None:
    off = {"updatePolicy": {"updateMode": "Off"}}
    decision = build.decided(usual({"hpa": {"scaleUp": off}, "vpa": {"scaleUp": off}}))
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == 5
    assert decision.recommended["app"].requests["cpu"] == 1500
    weightless = build.decided(usual({"weightBasedScalingIntervals": [{"vpaWeight": 0}]}))
    assert weightless.recommended["app"].requests["cpu"] == 1000


def test_at_rest_nothing_is_written() -> None:
    objects = build.objects(
        horizontal=build.hpa(), vertical=build.vpa({"app": {"cpu": "1", "memory": "1Gi"}})
    )
    settled = build.settled(objects)
    decision = build.decided(settled, at(hours=5))
    assert decision.status == settled.hvpa.status
    writes = (decision.workload_patch, decision.scale_replicas, decision.owned, decision.events)
    assert writes == (None, None, (), ())
    assert decision.recheck_after is None


def test_killed_between_the_patch_and_the_status_the_same_decisions_follow() -> None:
    objects = usual()
    first = build.decided(objects)
    done = build.apply(objects, first)
    crashed = replace(done, hvpa=objects.hvpa)  # the status was never written
    again = build.decided(crashed, at(seconds=1))
    assert again.workload_patch is None
    assert again.status.axes == build.decided(done, at(seconds=1)).status.axes


def test_stabilization_window_that_ends_first_is_when_to_look_again() -> None:
    spec = {
        "hpa": {"scaleUp": {"stabilizationDuration": "10m"}},
        "vpa": {"scaleUp": {"stabilizationDuration": "4m"}},
    }
    last = {"lastScaleTime": build.stamp(at(minutes=-1))}
    status = {"axes": {"horizontal": last, "vertical": last}}
    objects = replace(usual(), hvpa=build.hvpa({"replicas": 6, **spec}, status))
    assert build.decided(objects).recheck_after == dt.timedelta(minutes=3)
    assert build.decided(usual(), NOW).recheck_after is None


def test_nothing_is_written_for_a_named_hpa_whose_target_is_gone() -> None:
    # The scale subresource of an Hvpa without `spec.replicas` holds the target's count at first, and there is none.
    objects = build.objects(build.hvpa({"hpa": {"name": "keda-web", "deploy": False}, "replicas": None}))
    objects = replace(objects, workload=None, pods=())
    decision = build.decided(objects)
    assert build.condition(decision, "Ready").reason == "TargetNotFound"
    assert (decision.scale_replicas, decision.workload_patch) == (None, None)
