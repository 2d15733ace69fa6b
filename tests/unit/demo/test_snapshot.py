"""Reading the demo's objects."""

from __future__ import annotations

import datetime as dt
from typing import Any

from demo.snapshot import Held, Resources, snapshot

DEPLOYMENT: dict[str, Any] = {
    "spec": {
        "replicas": 3,
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "resources": {
                            "requests": {"cpu": "200m", "memory": "192Mi"},
                            "limits": {"cpu": "0.8"},
                        },
                    }
                ]
            }
        },
    },
    "status": {"readyReplicas": 2},
}


def test_before_the_recommenders_exist_only_the_workload_is_known() -> None:
    seen = snapshot({**DEPLOYMENT, "status": {}}, {}, None, None)
    assert (seen.replicas, seen.ready) == (3, 0)
    assert seen.requests == Resources(200, 192 * 2**20)
    assert seen.limits == Resources(800, None)
    assert (seen.hpa_wish, seen.vpa_target, seen.held) == (None, Resources(), ())


def test_an_hpa_that_has_measured_nothing_wishes_nothing() -> None:
    assert snapshot(DEPLOYMENT, {}, {"status": {"desiredReplicas": 2}}, None).hpa_wish is None
    assert (
        snapshot(DEPLOYMENT, {}, {"status": {"desiredReplicas": 0, "currentMetrics": [{}]}}, None).hpa_wish
        is None
    )
    assert (
        snapshot(DEPLOYMENT, {}, {"status": {"desiredReplicas": 4, "currentMetrics": [{}]}}, None).hpa_wish
        == 4
    )


def test_the_vpa_target_is_read_from_its_recommendation() -> None:
    target = {"containerName": "app", "target": {"cpu": "511m", "memory": "262144k"}}
    vpa = {"status": {"recommendation": {"containerRecommendations": [target]}}}
    assert snapshot(DEPLOYMENT, {}, None, vpa).vpa_target == Resources(511, 262144000)
    assert snapshot(DEPLOYMENT, {}, None, {"status": {"recommendation": None}}).vpa_target == Resources()


def test_blocked_scalings_report_direction_reason_and_time() -> None:
    blocked = [
        {
            "axis": "horizontal",
            "direction": "up",
            "reason": "StabilizationWindow",
            "until": "2026-11-21T10:15:00Z",
        },
        {"axis": "horizontal", "direction": "down", "reason": "UpdatePolicy"},
        {
            "axis": "vertical",
            "direction": "up",
            "reason": "MinChange",
            "container": "app",
            "resource": "memory",
        },
        {"axis": "vertical", "direction": "down", "reason": "Rollout", "container": "app", "resource": "cpu"},
    ]
    assert snapshot(DEPLOYMENT, {"status": {"lastBlockedScaling": blocked}}, None, None).held == (
        Held("out", "pods", "StabilizationWindow", dt.datetime(2026, 11, 21, 10, 15, tzinfo=dt.UTC)),
        Held("in", "pods", "UpdatePolicy"),
        Held("up", "memory", "MinChange"),
        Held("down", "cpu", "Rollout"),
    )


def test_the_decided_size_counts_where_pods_are_resized_and_what_pods_have_is_added_up() -> None:
    status = {
        "desired": {"containers": [{"name": "app", "requests": {"cpu": "1500m"}}]},
        "actuation": {"resized": "1/2"},
    }
    pods: list[Any] = [
        {
            "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"containerStatuses": [{"restartCount": count}]},
        }
        for cpu, count in (("1500m", 0), ("0.2", 2))
    ]
    pods.append({"spec": {"containers": [{"name": "app", "resources": {}}]}, "status": {}})
    seen = snapshot(DEPLOYMENT, {"status": status}, None, None, pods)
    assert seen.requests == Resources(1500, 192 * 2**20)
    assert (seen.resized, seen.asked, seen.restarts) == ("1/2", 1700, 2)
