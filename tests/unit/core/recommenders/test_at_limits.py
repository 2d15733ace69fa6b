"""Pods at their CPU limits: their usage does not show their demand, and the HPA stays within its tolerance
(docs/decisions/0075)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW
from hvpa.api.objects.read_models import Hpa
from hvpa.core import Objects
from hvpa.core.recommenders.desired_replicas import measured_replicas, trusted_replicas
from hvpa.core.recommenders.estimate import leading_metric, readings_of
from hvpa.core.values.clock import Clock
from hvpa.core.values.weight import Bounds

GUARANTEED = build.container(limits={"cpu": "1", "memory": "1Gi"})
SIDECAR = build.container("sidecar", {"cpu": "100m"})
WITH_LIMIT = build.container("sidecar", {"cpu": "100m"}, {"cpu": "500m"})
BOUNDS = Bounds(1, 50)


def of_cpu(used: str, target: int = 98, desired: int = 20, container: str = "", policy: str = "Max") -> Hpa:
    """An HPA on CPU with 20 pods, which use this much each. `policy` is that of scaling up."""
    kind, source = ("ContainerResource", "containerResource") if container else ("Resource", "resource")
    named = {"name": "cpu", **({"container": container} if container else {})}
    current = {"averageUtilization": int(used.removesuffix("m")) // 10, "averageValue": used}
    goal = {"type": "Utilization", "averageUtilization": target}
    change = {
        "spec": {
            "metrics": [{"type": kind, source: {**named, "target": goal}}],
            "behavior": {"scaleUp": {"selectPolicy": policy}},
        },
        "status": {"currentMetrics": [{"type": kind, source: {**named, "current": current}}]},
    }
    return build.hpa(desired, None, change, replicas=20)


def pods(hpa: Hpa, containers: Sequence[Any] = (GUARANTEED,), spec: dict[str, Any] | None = None) -> Objects:
    """20 pods with these containers, and their Hvpa."""
    running = [build.pod(f"web-{number}", containers=containers) for number in range(20)]
    return build.objects(
        build.hvpa({"replicas": 20, **(spec or {})}), build.workload(20, containers), hpa, pods=running
    )


def wanted(objects: Objects) -> int | None:
    return trusted_replicas(objects.hpas[0], build.scalable(objects), BOUNDS, Clock(NOW)).replicas


@pytest.mark.parametrize(
    ("used", "count"),
    [
        pytest.param("979m", 20, id="below 98 percent of the limit"),
        pytest.param("980m", 23, id="the demand is at least 115 percent of the limit, as for the VPA"),
        pytest.param("1000m", 23, id="at the limit"),
    ],
)
def test_pods_at_their_cpu_limits_need_more_pods_than_the_hpa_sees(used: str, count: int) -> None:
    assert wanted(pods(of_cpu(used))) == count


@pytest.mark.parametrize(
    ("used", "target", "desired", "count"),
    [
        pytest.param("850m", 98, 18, 20, id="18 pods would use 94 percent of their limits"),
        pytest.param("700m", 98, 15, 16, id="16 pods use 88 percent"),
        pytest.param("500m", 98, 11, 12, id="12 pods use 84 percent"),
        pytest.param("600m", 80, 15, 15, id="a target that usage can exceed by more than the tolerance"),
        pytest.param("1000m", 80, 20, 20, id="the HPA sees that, and is slower by its owner's wish"),
    ],
)
def test_pods_are_not_removed_if_the_others_would_be_close_to_their_cpu_limits(
    used: str, target: int, desired: int, count: int
) -> None:
    assert wanted(pods(of_cpu(used, target, desired))) == count


def test_an_hpa_that_can_not_see_the_demand_is_not_corrected() -> None:
    """Its count would be corrected again and again."""
    objects = pods(of_cpu("850m", 98, 18), spec={"replicas": 18})
    desired = trusted_replicas(objects.hpas[0], build.scalable(objects), BOUNDS, Clock(NOW))
    assert (desired.replicas, desired.scale_replicas, desired.problem) == (20, None, None)


@pytest.mark.parametrize(("policy", "count"), [("Disabled", 20), ("Min", 23)])
def test_an_hpa_that_may_not_scale_up_adds_no_pods(policy: str, count: int) -> None:
    assert wanted(pods(of_cpu("1000m", policy=policy))) == count


def test_pods_without_usage_are_not_at_their_limits() -> None:
    assert wanted(pods(of_cpu("0m", 98, 1))) == 1


def test_the_count_stays_inside_the_bounds() -> None:
    objects = pods(of_cpu("1000m"))
    desired = trusted_replicas(objects.hpas[0], build.scalable(objects), Bounds(1, 21), Clock(NOW))
    assert desired.replicas == 21


def test_an_hpa_that_sees_more_is_followed() -> None:
    assert wanted(pods(of_cpu("1000m", target=50, desired=40))) == 40


def test_an_hpa_that_is_read_as_it_is_counts_the_same() -> None:
    objects = pods(of_cpu("1000m"))
    assert measured_replicas(objects.hpas[0], build.scalable(objects), BOUNDS, Clock(NOW)).replicas == 23


@pytest.mark.parametrize(
    ("containers", "container", "used", "count"),
    [
        pytest.param([GUARANTEED, SIDECAR], "", "1000m", 20, id="the sidecar has no limit"),
        pytest.param([GUARANTEED, WITH_LIMIT], "", "1000m", 20, id="the sidecar has room"),
        pytest.param([GUARANTEED, WITH_LIMIT], "", "1480m", 23, id="both are at their limits"),
        pytest.param([GUARANTEED, SIDECAR], "app", "1000m", 23, id="only the app is measured"),
        pytest.param([build.container()], "", "1000m", 20, id="the app has no limit"),
        pytest.param([], "", "1000m", 20, id="no template is known"),
    ],
)
def test_all_measured_containers_must_have_a_limit(
    containers: list[Any], container: str, used: str, count: int
) -> None:
    # The target of 150 percent is out of reach for the sum of both.
    target = 150 if used == "1480m" else 98
    assert wanted(pods(of_cpu(used, target, container=container), containers)) == count


def test_an_injected_container_may_use_what_the_app_leaves() -> None:
    objects = pods(of_cpu("1000m"))
    assert wanted(replace(objects, pods=pods(of_cpu("1000m"), [GUARANTEED, SIDECAR]).pods)) == 20


def test_memory_at_its_limit_is_none_of_it() -> None:
    change = {
        "spec": {
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "memory",
                        "target": {"type": "Utilization", "averageUtilization": 98},
                    },
                }
            ]
        },
        "status": {
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "memory",
                        "current": {"averageUtilization": 100, "averageValue": "1Gi"},
                    },
                }
            ]
        },
    }
    assert wanted(pods(build.hpa(20, None, change, replicas=20))) == 20


def test_a_joint_decision_has_a_rule_of_its_own() -> None:
    objects = pods(of_cpu("1000m"), spec={"blend": "Trajectory"})
    desired = trusted_replicas(objects.hpas[0], build.scalable(objects), BOUNDS, Clock(NOW))
    assert desired.replicas == 20


def test_the_message_says_that_pods_are_at_their_limits() -> None:
    objects = pods(of_cpu("1000m"))
    observation, clock = build.scalable(objects), Clock(NOW)
    readings = readings_of(observation, objects.hpas[0], clock)
    assert leading_metric(observation, objects.hpas[0], readings, clock) == ("cpu (at the limit)", 103)


def test_the_operator_adds_pods_until_their_usage_shows_the_demand() -> None:
    most = {"hpa": {"template": {"spec": {"maxReplicas": 50}}}}
    decision = build.decided(pods(of_cpu("1000m"), spec=most))
    assert build.counts(decision).target == 23
