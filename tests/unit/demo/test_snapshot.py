"""Reading the demo's objects, and the lines of its table."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from demo.snapshot import (
    IN_PLACE,
    ROLLOUT,
    WIDTH,
    Columns,
    Held,
    LoadState,
    Resources,
    Snapshot,
    clock,
    header,
    held,
    line,
    snapshot,
)

APP = {"name": "app", "resources": {"requests": {"cpu": "200m", "memory": "192Mi"}, "limits": {"cpu": "0.8"}}}
DEPLOYMENT: dict[str, Any] = {
    "spec": {"replicas": 3, "template": {"spec": {"containers": [APP]}}},
    "status": {"readyReplicas": 2},
}


def test_before_the_recommenders_exist_only_the_workload_is_known() -> None:
    look = snapshot({**DEPLOYMENT, "status": {}}, {}, None, None)
    assert (look.replicas, look.ready) == (3, 0)
    assert look.requests == Resources(200, 192 * 2**20)
    assert look.limits == Resources(800, None)
    assert (look.hpa_desired, look.vpa_target, look.held) == (None, Resources(), ())


@pytest.mark.parametrize(
    ("status", "desired"),
    [
        ({"desiredReplicas": 2}, None),
        ({"desiredReplicas": 0, "currentMetrics": [{}]}, None),
        ({"desiredReplicas": 4, "currentMetrics": [{}]}, 4),
    ],
)
def test_an_hpa_that_has_measured_nothing_wants_nothing(status: Any, desired: int | None) -> None:
    assert snapshot(DEPLOYMENT, {}, {"status": status}, None).hpa_desired == desired


def test_the_vpa_target_is_read_from_its_recommendation() -> None:
    target = {"containerName": "app", "target": {"cpu": "511m", "memory": "262144k"}}
    vpa = {"status": {"recommendation": {"containerRecommendations": [target]}}}
    assert snapshot(DEPLOYMENT, {}, None, vpa).vpa_target == Resources(511, 262144000)
    assert snapshot(DEPLOYMENT, {}, None, {"status": {"recommendation": None}}).vpa_target == Resources()


def test_blocked_scalings_report_direction_reason_and_time() -> None:
    out = {"axis": "horizontal", "direction": "up", "reason": "StabilizationWindow"}
    up = {
        "axis": "vertical",
        "direction": "up",
        "reason": "MinChange",
        "container": "app",
        "resource": "memory",
    }
    blocked = [
        {**out, "until": "2026-11-21T10:15:00Z"},
        {**out, "direction": "down", "reason": "UpdatePolicy"},
        up,
        {**up, "direction": "down", "reason": "Rollout", "resource": "cpu"},
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
    pods.append({**pods[0], "status": {"phase": "Failed", "reason": "OutOfcpu"}})
    look = snapshot(DEPLOYMENT, {"status": status}, None, None, pods)
    assert look.requests == Resources(1500, 192 * 2**20)
    assert (look.resized, look.asked, look.restarts) == ("1/2", 1700, 2)


# --- the table ---
NOW = dt.datetime(2026, 11, 21, 10, 0, tzinfo=dt.UTC)
MIB = 2**20


def later(seconds: float) -> dt.datetime:
    """So many seconds after NOW."""
    return NOW + dt.timedelta(seconds=seconds)


SEEN = Snapshot(
    replicas=7,
    ready=5,
    requests=Resources(618, 372 * MIB),
    limits=Resources(2472, 1489 * MIB),
    hpa_desired=10,
    vpa_target=Resources(442, 283 * MIB),
    held=(Held("out", "pods", "StabilizationWindow", later(7)),),
    resized="4/7",
    asked=3706,
)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        pytest.param(
            ROLLOUT,
            "1:08 2089m 308m 5/7 618m/2472m 372Mi/1489Mi 10 442m 283Mi pods out 7s (stabilization)",
            id="load, pods, resources, recommendations, and what is held back",
        ),
        pytest.param(
            IN_PLACE,
            "1:08 2089m 308m 5/7 618m 372Mi 4/7 0 3706m 4810m pods out 7s (stabilization)",
            id="sizes, and what an HPA beside a VPA would have had",
        ),
    ],
)
def test_a_line_shows(columns: Columns, text: str) -> None:
    shown = line(columns, LoadState(68.2, NOW, 2089.4, 308, 4810.0), SEEN)
    assert " ".join(shown.split()) == text
    assert header(columns).index("pods") + len("pods") == shown.index(" 5/7") + len(" 5/7")


def test_before_the_load_nothing_is_known_of_another_scaler() -> None:
    snapshot = Snapshot(replicas=2, ready=0, requests=Resources(200, None), limits=Resources())
    assert line(IN_PLACE, LoadState(0, NOW, 300, 0), snapshot).split()[-6:] == [
        "200m",
        "-",
        "-",
        "0",
        "0m",
        "-",
    ]


def test_what_is_not_known_yet_is_a_dash() -> None:
    snapshot = Snapshot(replicas=2, ready=0, requests=Resources(200, None), limits=Resources())
    shown = " ".join(line(ROLLOUT, LoadState(0, NOW, 300, 0), snapshot).split())
    assert shown == "0:00 300m 0m 0/2 200m/- -/- - -"


def test_columns_stand_under_their_names() -> None:
    snapshot = Snapshot(
        2, 2, Resources(200, 192 * MIB), Resources(800, 768 * MIB), 3, Resources(250, 200 * MIB)
    )
    text = line(ROLLOUT, LoadState(5, NOW, 300, 160), snapshot)
    for name, value in (("load", "300m"), ("cpu req/lim", "200m/800m"), ("VPA target", "250m 200Mi")):
        assert header(ROLLOUT).index(name) + len(name) == text.index(f" {value}") + len(f" {value}")


def test_no_line_is_wider_than_a_terminal() -> None:
    held_back = tuple(
        Held("down", what, "StabilizationWindow", later(n)) for n, what in enumerate("abcdefgh")
    )
    widest = Snapshot(
        10, 10, Resources(2000, 1024 * MIB), Resources(8000, 4096 * MIB), 10, Resources(2000, 2**30)
    )
    assert len(line(ROLLOUT, LoadState(600, NOW, 12000, 8000), widest)) <= WIDTH
    cut = line(
        ROLLOUT, LoadState(600, NOW, 12000, 8000), Snapshot(10, 10, Resources(), Resources(), held=held_back)
    )
    assert len(cut) == WIDTH
    assert cut.endswith("…")


def test_the_longest_usual_line_is_not_cut() -> None:
    held_back = tuple(Held("down", what, "StabilizationWindow", later(29)) for what in ("cpu", "memory"))
    requests, limits = Resources(1618, 372 * MIB), Resources(6472, 1489 * MIB)
    snapshot = Snapshot(10, 15, requests, limits, 10, Resources(1442, 283 * MIB), held_back)
    assert line(ROLLOUT, LoadState(168, NOW, 2400, 1308), snapshot).endswith(
        "cpu+mem down 29s (stabilization)"
    )


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ((), ""),
        ((Held("out", "pods", "UpdatePolicy"),), "pods out (mode Off)"),
        ((Held("up", "cpu", "MinChange", later(882)),), "cpu up 14:42 (too small)"),
        (
            (Held("down", "cpu", "Rollout"), Held("down", "memory", "Rollout")),
            "cpu+mem down (rollout)",
        ),
        (
            (
                Held("in", "pods", "StabilizationWindow", later(4)),
                Held("down", "cpu", "StabilizationWindow", later(12)),
                Held("down", "memory", "MinChange"),
            ),
            "pods in 4s, cpu down 12s (stabilization), mem down (too small)",
        ),
        ((Held("in", "pods", "StabilizationWindow", later(-3)),), "pods in 0s (stabilization)"),
        ((Held("in", "pods", "Contested"),), "pods in (contested)"),
    ],
)
def test_what_shares_a_reason_is_reported_together(entries: tuple[Held, ...], text: str) -> None:
    assert held(entries, NOW) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (-2, "0:00")])
def test_times_are_minutes_and_seconds(seconds: float, text: str) -> None:
    assert clock(seconds) == text
