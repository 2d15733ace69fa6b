"""What the demo makes of the writes that the API server logged."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from demo.outcome import Rivals
from demo.scenario import State
from demo.snapshot import Held, Resources, Snapshot
from demo.verdict import Evidence, Step, Write, changes, judge, missing

MIB = 2**20
OPERATOR = "system:serviceaccount:hvpa-system:hvpa"
START = State(2, Resources(200, 192 * MIB))


def patch(replicas: int | None = None, cpu: str | None = None, memory: str | None = None) -> dict[str, Any]:
    """The body of one of the operator's patches."""
    body: dict[str, Any] = {"metadata": {"annotations": {}}, "spec": {}}
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    if requests:
        container = {"name": "app", "resources": {"requests": requests}}
        body["spec"]["template"] = {"spec": {"containers": [container]}}
    return body


def write(seconds: float, body: dict[str, Any], user: str = OPERATOR) -> Write:
    """One accepted write to the Deployment."""
    return Write(user, seconds, "", body)


GOOD = Evidence(
    start=START,
    writes=[
        write(20, patch(replicas=4)),
        write(30, patch(cpu="400m", memory="256Mi")),
        write(110, patch(replicas=3, cpu="300m")),
        write(130, patch(replicas=2, cpu="200m", memory="192Mi")),
    ],
    operator=OPERATOR,
    hpa_writers=Counter({"system:serviceaccount:kube-system:horizontal-pod-autoscaler": 7}),
    vpa_writers=Counter({"vpa-recommender": 5}),
    rise=10,
    fall=100,
)


def test_all_four_directions_by_the_operator_alone_are_good() -> None:
    verdict = judge(GOOD)
    assert verdict.exit_code == 0
    assert verdict.faults == ()
    assert [step.direction for step in verdict.steps] == ["out", "up", "in", "down", "in", "down"]


def test_the_last_screen_has_what_an_hpa_and_a_vpa_would_have_had() -> None:
    rival = [(0.0, State(3, Resources(250, 128 * MIB)))]
    outcome = judge(replace(GOOD, rivals=Rivals(rival, lambda second, pods: 1000.0, 150))).outcome
    assert any(
        line.split() == ["CPU", "requested", "170", "core-s", "112", "core-s", "51", "%", "more"]
        for line in outcome
    )
    assert judge(GOOD).outcome == ()


def test_the_summary_reports_ranges_counts_and_writers() -> None:
    summary = "\n".join(judge(GOOD).summary)
    for text in (
        "2 to 4, 2 at the end",
        "200m to 400m, 200m at the end",
        "192Mi to 256Mi, 192Mi at the end",
        "scaled out       once  (first at 0:20: 2 to 4 replicas)",
        "scaled up        once  (first at 0:30: cpu 200m to 400m, memory 192Mi to 256Mi)",
        f"Deployment       patched 4 times by {OPERATOR}",
        "HPA's status     written 7 times by system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        "VPA's status     written 5 times by vpa-recommender",
    ):
        assert text in summary


def test_nothing_scaled_is_four_faults_that_report_desired_sizes_and_reason() -> None:
    off = Held("out", "pods", "UpdatePolicy")
    snapshots = [
        Snapshot(2, 2, Resources(200), Resources(), 2, Resources(180)),
        Snapshot(2, 2, Resources(200), Resources(), 9, Resources(900), (off, off)),
    ]
    verdict = judge(replace(GOOD, writes=[], seen=snapshots))
    assert verdict.exit_code == 1
    replicas = "the HPA asked for 2 to 9 replicas"
    size = "the VPA asked for 180m to 900m of CPU; nothing was held back"
    assert verdict.faults == (
        f"not scaled out: {replicas}; held back by UpdatePolicy (1 of 2 looks)",
        f"not scaled up: {size}",
        f"not scaled in: {replicas}; nothing was held back",
        f"not scaled down: {size}",
    )
    assert "patched by no client" in "\n".join(verdict.summary)


IN_PLACE = replace(
    GOOD,
    writes=[write(20, patch(replicas=4)), write(130, patch(replicas=2))],
    course=[
        (0.0, START),
        (20.0, State(4, Resources(400, 256 * MIB))),
        (110.0, State(3, Resources(300, 256 * MIB))),
        (130.0, START),
    ],
    resizes=Counter({OPERATOR: 12}),
)


def test_where_pods_are_resized_the_steps_are_what_was_seen() -> None:
    verdict = judge(IN_PLACE)
    assert verdict.faults == ()
    assert {step.direction for step in verdict.steps} == {"out", "up", "in", "down"}
    summary = "\n".join(verdict.summary)
    assert f"pods             resized 12 times by {OPERATOR}" in summary
    assert "restarts         none" in summary
    assert "restarts" not in "\n".join(judge(GOOD).summary)


def test_scaling_out_or_up_before_the_load_rises_does_not_count() -> None:
    early = [replace(write, seconds=5.0) if write.seconds < 100 else write for write in GOOD.writes]
    assert [fault.split(":")[0] for fault in judge(replace(GOOD, writes=early)).faults] == [
        "not scaled out",
        "not scaled up",
    ]


def test_scaling_in_or_down_before_the_load_falls_does_not_count() -> None:
    assert missing([Step("in", 99, ""), Step("down", 100, "")], rise=10, fall=100) == ["out", "up", "in"]


HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
FAULTS: dict[str, tuple[Evidence, tuple[str, ...]]] = {
    "a workload that does not come back": (
        replace(GOOD, writes=GOOD.writes[:-1]),
        ("not back where it began, at 2 × 200m, 192Mi: 3 × 300m, 256Mi",)),
    "a restart where pods are resized, and anybody else who resizes": (
        replace(IN_PLACE, restarts=1, resizes=Counter({OPERATOR: 12, "admin": 1})),
        ("pods restarted once, although they are resized in place", "pods were also resized by admin")),
    "a recommendation that somebody else wrote": (
        replace(GOOD, vpa_writers=Counter({"vpa-recommender": 5, "admin": 1})),
        ("the VPA's status was also written by admin: its recommendation is not real",)),
    "anybody else who writes to the Deployment": (
        replace(GOOD, writes=[*GOOD.writes, write(50, patch(replicas=9), HPA)]),
        (f"the Deployment was also written by {HPA} (once)",)),
    "what was not waited for": (
        replace(GOOD, writes=[], gave_up_early=True),
        ("not scaled out: the HPA asked for nothing; nothing was held back",
         "not scaled up: the VPA asked for nothing; nothing was held back",
         "not scaled in: not waited for, since the rise was not followed",
         "not scaled down: not waited for, since the rise was not followed")),
    "no recommendations": (
        replace(GOOD, hpa_writers=Counter(), vpa_writers=Counter()),
        ("no recommendation was written into the HPA's status", "no recommendation was written into the VPA's status")),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_a_fault(name: str) -> None:
    evidence, faults = FAULTS[name]
    verdict = judge(evidence)
    assert (verdict.exit_code, verdict.faults) == (1, faults)
    assert "2 to 4" in verdict.summary[0] or not evidence.writes, "writes of others are no scaling"


def test_one_change_may_go_up_in_one_resource_and_down_in_the_other() -> None:
    after = State(2, Resources(300, 128 * MIB))
    assert changes(START, after, 7) == [
        Step("down", 7, "memory 192Mi to 128Mi"),
        Step("up", 7, "cpu 200m to 300m"),
    ]
    assert changes(START, START, 7) == []
