"""Approvals of sizes (mode Review): what an annotation approves, and what a decision makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import (
    NOW,
    at,
    condition,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    oom_killed,
    pod,
    stamp,
    vpa,
    workload,
)
from hvpa.core.gates.approval import ANNOTATION, NONE, approved
from hvpa.core.gates.gates import NO_CLOCK
from hvpa.core.model import Decision
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from tests.unit.core.fast import pods as fast

APP_CPU = ResourceKey("app", "cpu")
TOMORROW = stamp(at(days=1))


def annotation(cpu: str = "800m", memory: str | None = None, **more: Any) -> dict[str, str]:
    size = {"cpu": cpu} | ({} if memory is None else {"memory": memory})
    return {ANNOTATION: json.dumps({"until": TOMORROW, "sizes": {"app": size}, **more})}


# --- the annotation --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wanted", "passes"), [(800, True), (720, True), (880, True), (719, False), (881, False), (500, False)]
)
def test_an_approval_is_bound_to_the_size_within_the_margin(wanted: int, passes: bool) -> None:
    until = approved(annotation()).held_until(Clock(NOW), APP_CPU, 500, wanted, 10)
    assert until == (None if passes else NO_CLOCK)


@pytest.mark.parametrize(
    ("more", "current", "passes"),
    [
        ({}, 900, True),
        ({"only": "up"}, 500, True),
        ({"only": "up"}, 900, False),
        ({"until": stamp(at(seconds=1))}, 500, True),
        ({"until": stamp(NOW)}, 500, False),
        ({"by": "ann"}, 500, True),
    ],
)
def test_an_approval_has_a_direction_and_an_end(more: dict[str, Any], current: int, passes: bool) -> None:
    clock = Clock(NOW)
    until = approved(annotation(**more)).held_until(clock, APP_CPU, current, 800, 10)
    assert until == (None if passes else NO_CLOCK)
    if more.get("until") == stamp(at(seconds=1)):
        assert clock.changes_at == at(seconds=1)


def test_another_container_or_resource_is_not_approved() -> None:
    for key in (ResourceKey("app", "memory"), ResourceKey("agent", "cpu")):
        assert approved(annotation()).held_until(Clock(NOW), key, 500, 800, 50) == NO_CLOCK
    assert approved({}) is NONE
    assert NONE.held_until(Clock(NOW), APP_CPU, 500, 800, 50) == NO_CLOCK


BAD = {
    "no JSON": "yes",
    "no size": json.dumps({"until": TOMORROW, "sizes": {}}),
    "no end": json.dumps({"sizes": {"app": {"cpu": "1"}}}),
    "an end without a time zone": json.dumps(
        {"until": "2026-12-01T00:00:00", "sizes": {"app": {"cpu": "1"}}}
    ),
    "another resource": json.dumps({"until": TOMORROW, "sizes": {"app": {"gpu": "1"}}}),
    "no quantity": json.dumps({"until": TOMORROW, "sizes": {"app": {"cpu": "many"}}}),
    "a number": json.dumps({"until": TOMORROW, "sizes": {"app": {"cpu": 1}}}),
    "another direction": json.dumps({"until": TOMORROW, "sizes": {"app": {"cpu": "1"}}, "only": "down"}),
    "an unknown field": json.dumps({"until": TOMORROW, "sizes": {"app": {"cpu": "1"}}, "allow": "all"}),
    "a negative size": json.dumps({"until": TOMORROW, "sizes": {"app": {"cpu": "-1"}}}),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_an_annotation_that_is_not_valid_approves_nothing_and_says_why(text: str) -> None:
    found = approved({ANNOTATION: text})
    assert found.held_until(Clock(NOW), APP_CPU, 500, 1000, 50) == NO_CLOCK
    assert found.problem is not None
    assert found.problem.reason == "ApprovalInvalid"
    assert ANNOTATION in found.problem.message


@given(st.text(), st.integers(0, 10**15), st.integers(0, 10**15))
def test_any_text_can_be_read(text: str, current: int, wanted: int) -> None:
    found = approved({ANNOTATION: text})
    assert found.held_until(Clock(NOW), APP_CPU, current, wanted, 10) == NO_CLOCK


# --- the decision ----------------------------------------------------------------------------------------------------
REVIEW = {"mode": "Review", "weightBasedScalingIntervals": [{"vpaWeight": 100}], "hpa": {"deploy": False}}
LIMITED = [
    {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
    {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"},
]
LARGER = {"app": {"cpu": "2", "memory": "1Gi"}}


def reviewed(
    annotations: Mapping[str, str] | None = None, spec: Mapping[str, Any] | None = None, **rest: Any
) -> Decision:
    """What is decided where the VPA recommends 2 cores instead of 1."""
    own = hvpa(merged(REVIEW, spec or {}), metadata={"annotations": dict(annotations or {})})
    return decided(objects(own, rest.pop("target", None), vertical=vpa(rest.pop("targets", LARGER)), **rest))


def held(decision: Decision) -> list[tuple[str, str | None, int]]:
    return [(blocked.reason, blocked.resource, blocked.wanted) for blocked in decision.blocked]


def test_a_size_waits_for_approval_and_replicas_do_not() -> None:
    metrics = {"hpa": {"deploy": True}, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    result = reviewed(spec=metrics, horizontal=hpa(6, 100))
    assert held(result) == [("Approval", "cpu", 1500)]
    assert result.replicas is not None
    assert result.replicas.target == 5
    assert result.workload_patch is not None
    assert "template" not in result.workload_patch.body["spec"]  # type: ignore[operator]
    assert condition(result, "ScalingBlocked").reason == "Approval"


def test_an_approved_size_is_applied() -> None:
    result = reviewed(annotation("2"))
    assert held(result) == []
    assert "approved" not in result.events[0].message, "nobody is named"
    assert result.containers["app"].requests["cpu"] == 2000
    assert result.workload_patch is not None


@pytest.mark.parametrize(
    ("by", "named"),
    [
        ("ann", '; approved by "ann"; VPA: '),
        ("ann\n\u202e", '; approved by "ann\\\\n\\\\u202e"; '),
        ('x"; replicas 1 -> 9', '; approved by "x\\"; replicas 1 -> 9"; '),
        (200 * "a", f'; approved by "{63 * "a"}…"; '),
    ],
)
def test_the_events_of_an_approved_step_name_who_approved(by: str, named: str) -> None:
    on_hvpa, on_workload = reviewed(annotation("2", by=by)).events[:2]
    assert named in on_hvpa.message
    assert named in on_workload.message


def test_the_events_of_a_step_that_needed_no_approval_name_nobody() -> None:
    known = annotation("2", by="ann")
    assert "approved" not in reviewed(known, {"mode": "Apply"}).events[0].message
    rescue = reviewed(
        annotation("3", by="ann"),
        {"review": {"rescues": "Pass"}},
        pods=[oom_killed(at(minutes=-2)), pod("web-2"), pod("web-3")],
        targets={"app": {"cpu": "1", "memory": "2Gi"}},
    )
    assert "out of memory: app" in rescue.events[0].message
    assert "approved" not in rescue.events[0].message
    spec = {"hpa": {"deploy": True}, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    of_replicas = reviewed(known, spec, horizontal=hpa(6, 100))
    assert of_replicas.events[0].message.startswith("replicas 3 -> 5;")
    assert "approved" not in of_replicas.events[0].message


@pytest.mark.parametrize(
    ("cpu", "margin", "reasons"), [("1900m", 10, []), ("1900m", 0, ["Approval"]), ("1", 10, ["Approval"])]
)
def test_the_margin_is_a_field(cpu: str, margin: int, reasons: list[str]) -> None:
    result = reviewed(annotation(cpu), {"review": {"margin": margin}})
    assert [reason for reason, *_ in held(result)] == reasons


def test_in_other_modes_nothing_needs_approval() -> None:
    assert held(reviewed(spec={"mode": "Apply"})) == []


def test_an_invalid_annotation_makes_the_hvpa_not_ready() -> None:
    result = reviewed({ANNOTATION: "yes"})
    ready = condition(result, "Ready")
    assert (ready.status, ready.reason) == ("False", "ApprovalInvalid")
    assert held(result) == [("Approval", "cpu", 2000)]
    assert condition(reviewed({ANNOTATION: "yes"}, {"mode": "Apply"}), "Ready").status == "True"


@pytest.mark.parametrize(("rescues", "reasons"), [("Wait", ["Approval"]), ("Pass", [])])
def test_memory_that_ran_out_is_a_rescue(rescues: str, reasons: list[str]) -> None:
    pods = [oom_killed(at(minutes=-2)), pod("web-2"), pod("web-3")]
    result = reviewed(
        spec={"review": {"rescues": rescues}}, pods=pods, targets={"app": {"cpu": "1", "memory": "2Gi"}}
    )
    assert [reason for reason, *_ in held(result)] == reasons


@pytest.mark.parametrize(("rescues", "reasons"), [("Wait", ["Approval"]), ("Pass", [])])
def test_cpu_of_pods_that_use_all_of_it_is_a_rescue_beyond_max_replicas(
    rescues: str, reasons: list[str]
) -> None:
    """`Additive`: the HPA wants more than maxReplicas."""
    scaled = {
        "hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 3}}},
        "review": {"rescues": rescues},
    }
    horizontal = hpa(3, 200, {"spec": {"maxReplicas": 3}, "status": {"conditions": LIMITED}})
    result = reviewed(spec=scaled, horizontal=horizontal)
    assert [reason for reason, resource, _ in held(result) if resource == "cpu"] == reasons


@pytest.mark.parametrize(
    ("used", "rescues", "reasons"),
    [(200, "Wait", ["Approval"]), (200, "Pass", []), (120, "Pass", []), (100, "Pass", ["Approval"])],
)
def test_saturated_cpu_is_a_rescue_with_trajectory(used: int, rescues: str, reasons: list[str]) -> None:
    spec = {
        "blend": "Trajectory",
        "hpa": {"deploy": True},
        "updateStrategy": {"type": "InPlace"},
        "review": {"rescues": rescues},
    }
    horizontal = hpa(3, used)
    result = reviewed(spec=spec, horizontal=horizontal, targets={"app": {"cpu": "1", "memory": "1Gi"}})
    assert [reason for reason, resource, _ in held(result) if resource == "cpu"] == reasons


@pytest.mark.parametrize(("rescues", "wanted"), [("Wait", 1000), ("Pass", 1715)])
def test_a_fast_raise_is_a_rescue(rescues: str, wanted: int) -> None:
    change = {"mode": "Review", "review": {"rescues": rescues}}
    assert fast.cpu(fast.deciding(fast.usage(1200, 1200), change)) == wanted


@pytest.mark.parametrize("cpu", ["500m", "2"])
def test_another_size_is_no_rescue(cpu: str) -> None:
    """Also the way back after a rescue."""
    result = reviewed(spec={"review": {"rescues": "Pass"}}, targets={"app": {"cpu": cpu, "memory": "1Gi"}})
    assert [(reason, resource) for reason, resource, _ in held(result)] == [("Approval", "cpu")]


def test_pods_of_an_approved_size_are_resized_after_the_approval_has_ended() -> None:
    """An approval is for the decision; its resizes follow."""
    desired = {
        "replicas": 1,
        "containers": [{"name": "app", "requests": {"cpu": "2", "memory": "1Gi"}}],
        "since": stamp(at(minutes=-5)),
        "generation": 1,
    }
    own = hvpa(merged(REVIEW, {"updateStrategy": {"type": "InPlace"}}), {"desired": desired})
    result = decided(objects(own, workload(1), vertical=vpa(LARGER)))
    assert [resize.pod for resize in result.resizes] == ["web-0"]
