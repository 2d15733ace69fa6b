"""How pods with a boost count in decisions: `hvpa.core.actuation.startup.unboosted`, and the HPA's count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from builders.build import (
    at,
    container,
    decided,
    hvpa,
    objects,
    pod,
    scalable,
    stamp,
    vpa,
    workload,
)
from builders.build import hpa as build_hpa
from hvpa.api.objects.read_models import Pod
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    running,
    size_status,
)
from tests.unit.core.actuation.starting_pods import BOOST, BOOSTED, SIZE, starting


# --- capacity of nobody ----------------------------------------------------------------------------------------------
def test_other_containers_count_as_they_are() -> None:
    both = [container(requests=BOOSTED), container("side", requests={"cpu": "100m", "memory": "1Gi"})]
    template = [container(requests=REQUESTS), both[1]]
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {}),
    )
    young = pod("web-1", containers=both, change={"status": {"startTime": stamp(at(seconds=-9))}})
    seen = scalable(objects(own, workload(1, containers=template), None, vpa({"app": REQUESTS}), [young]))
    assert (seen.pods.boosted, seen.pods.unlike) == ((Fraction(31, 11), Fraction(31, 11)), {})


def test_decisions_see_pods_without_their_boosts() -> None:
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(3, {"app": SIZE}),
    )
    pods = [starting(), starting("web-2", ready=True, changed=0), running("web-3")]
    inputs = objects(
        own, workload(3, containers=[container(requests=REQUESTS)]), None, vpa({"app": REQUESTS}), pods
    )
    observation = scalable(inputs)
    assert (observation.pods.boosted, observation.pods.unlike) == ((Fraction(7, 3), Fraction(2)), {})
    assert [pod.spec.containers[0].resources.requests["cpu"] for pod in observation.resizable] == [
        "3",
        "3",
        "1",
    ]
    without = scalable(replace(inputs, pods=(running("web-3"),)))
    assert without.pods.boosted is None


def scaled(
    asked: int,
    pods: Sequence[Pod],
    blend: str = "Additive",
    metric: Mapping[str, Any] | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
) -> int:
    """How many replicas 4 become where the HPA asks for so many. Its target is 50 percent of the CPU."""
    target = metric or {"type": "Utilization", "averageUtilization": 50}
    kind, field = ("External", "external") if metric else ("Resource", "resource")
    name = {"metric": {"name": "queue"}} if metric else {"name": "cpu"}
    current = {"averageValue": "100"} if metric else {"averageUtilization": 80, "averageValue": "800m"}
    if asked < 4:
        current = {"averageUtilization": 20, "averageValue": "200m"}
    measured = build_hpa(
        asked,
        change={
            "spec": {"maxReplicas": 20, "metrics": [{"type": kind, field: {**name, "target": target}}]},
            "status": {
                "currentReplicas": 4,
                "currentMetrics": [{"type": kind, field: {**name, "current": current}}],
                "conditions": list(conditions),
            },
        },
    )
    spec = {
        "updateStrategy": {"type": "InPlace"},
        "blend": blend,
        "hpa": {"template": {"spec": {"maxReplicas": 20}}},
        "startupBoost": [{**BOOST, "after": "5m", "atMost": "10m"}],
        "weightBasedScalingIntervals": [{"vpaWeight": 0}],
    }
    own = hvpa(spec, size_status(4, {"app": SIZE}, at(hours=-1)))
    present = workload(4, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(own, present, measured, vpa({"app": REQUESTS}), pods))
    assert outcome.replicas is not None
    return outcome.replicas.target


def four(size: Mapping[str, str], ready: bool) -> list[Pod]:
    """Three pods of one core, and one of this size that started a minute ago."""
    young = starting("new-1", size, 60, ready=ready, changed=45 if ready else None)
    return [*[running(f"web-{number}") for number in range(3)], young]


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_replicas_grow_as_without_a_boost(blend: str) -> None:
    """Three pods use 80 percent, and one starts. The HPA divides by 6 cores instead of 4: it asks for 4, not 5."""
    assert scaled(5, four(REQUESTS, ready=False), blend) == 5
    assert scaled(4, four(BOOSTED, ready=False), blend) == 5


def test_a_boost_changes_nothing_beyond_the_hpas_behavior_or_for_other_metrics() -> None:
    limited = {"type": "ScalingLimited", "status": "True", "reason": "ScaleUpLimit", "message": ""}
    assert scaled(4, four(BOOSTED, ready=False), conditions=[limited]) == 4
    queue = {"type": "AverageValue", "averageValue": "80"}
    assert scaled(5, four(BOOSTED, ready=False), metric=queue) == scaled(
        5, four(REQUESTS, ready=False), metric=queue
    )


def test_a_boost_removes_no_replicas() -> None:
    """The HPA divides usage by 6 cores instead of 4."""
    assert scaled(2, four(REQUESTS, ready=True)) == 2
    assert scaled(2, four(BOOSTED, ready=True)) == 3


def test_a_pod_that_has_been_larger_for_long_counts_as_it_is() -> None:
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {"app": SIZE}),
    )
    target = workload(1, containers=[container(requests=REQUESTS)])
    inputs = objects(
        own, target, None, vpa({"app": REQUESTS}), [starting(seconds=3600, ready=True, changed=600)]
    )
    assert scalable(inputs).pods.boosted is None
