"""Pods at their CPU limit: what each uses stays the same however many there are, so the HPA asks for more with each
step. While new pods become ready, it counts others than the operator does, and that is no stale count (DESIGN 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory import jointly

SINCE_LONG, SINCE_LATELY = -3600, -20
"""Seconds since which pods are ready."""


def pods(*ready: int) -> list[Any]:
    return [
        build.pod(
            f"web-{index}",
            change={
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(seconds=seconds))}
                    ]
                }
            },
        )
        for index, seconds in enumerate(ready)
    ]


def pegged(*ready: int) -> Objects:
    """Four pods that use twice what they should. The HPA counts all of them and asks for 8."""
    hvpa = build.hvpa({**jointly.JOINT, "replicas": 8})
    hpa = jointly.hpa(4, jointly.utilization("cpu", 50, 100, "1"), desired=8)
    return build.objects(
        hvpa, build.workload(4), hpa, build.vpa({"app": {"cpu": "1", "memory": "1Gi"}}), pods(*ready)
    )


def again(objects: Objects, decision: Decision) -> Objects:
    """The same HPA status once more, after what the operator wrote."""
    return replace(objects, hvpa=build.with_status(objects.hvpa, decision.status))


def reason(decision: Decision) -> str:
    return next(condition.reason for condition in decision.status.conditions if condition.type == "HpaActive")


def test_what_the_hpa_asks_for_while_pods_become_ready_is_neither_corrected_nor_stale() -> None:
    objects = pegged(SINCE_LONG, SINCE_LONG, SINCE_LATELY, SINCE_LATELY)
    decision = build.decided(objects)
    for _ in range(4):
        decision = build.decided(objects)
        assert (decision.scale_replicas, reason(decision)) == (None, "Recommending")
        assert [event for event in decision.events if event.reason == "StaleDesiredReplicas"] == []
        objects = again(objects, decision)
    assert decision.recheck_after is not None
    assert decision.recheck_after <= at(seconds=40) - build.NOW
    later = build.decided(objects, at(seconds=40))
    assert later.replicas is not None
    assert (later.replicas.hpa, later.scale_replicas, reason(later)) == (8, None, "Recommending")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_count_that_its_metrics_do_not_call_for_is_corrected_once_all_are_measured(times: int) -> None:
    hpa = jointly.hpa(4, jointly.utilization("cpu", 50, 50, "500m"), desired=8)
    objects = replace(pegged(*[SINCE_LONG] * 4), hpas=(hpa,))
    decision = build.decided(objects)
    for _ in range(times):
        decision = build.decided(objects)
        objects = again(objects, decision)
    assert (decision.scale_replicas, reason(decision)) == (
        (4, "Recommending") if times < 3 else (None, "StaleDesiredReplicas")
    )
