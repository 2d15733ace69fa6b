"""An HPA that measures memory alone, as a percentage of the requests (docs/decisions/0073): larger memory requests
lower the percentage, and the remaining pods must have enough CPU."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from hvpa.core import Decision
from tests.unit.core.named import named

FIRST: dict[str, dict[str, str]] = {"app": {"cpu": "500m", "memory": "1Gi"}}
GROWN = {"cpu": "1", "memory": "4Gi"}
"""Memory has grown fourfold, CPU twofold."""


def resource(name: str, **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


PERCENT: dict[str, Any] = {"type": "Utilization", "averageUtilization": 50}


def decided(
    utilization: int = 12,
    metrics: list[dict[str, Any]] | None = None,
    base: dict[str, dict[str, str]] | None = None,
    requests: dict[str, str] | None = None,
    replicas: int = 8,
    weight: int = 0,
) -> Decision:
    """The decision if pods use `utilization` percent of their memory requests (the target is 50), and `base` is
    recorded as their first requests."""
    current = {"averageUtilization": utilization, "averageValue": "500Mi"}
    measured = {"type": "Resource", "resource": {"name": "memory", "current": current}}
    calls = -(-replicas * utilization // 50)
    change = {
        "spec": {"metrics": metrics or [resource("memory", **PERCENT)]},
        "status": {"currentMetrics": [measured]},
    }
    spec = {"replicas": calls, "weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    vertical = {} if base is None else {"base": base}
    hvpa = build.hvpa(spec, {"axes": {"vertical": vertical}})
    target = build.workload(replicas, [build.container(requests=GROWN if requests is None else requests)])
    horizontal = build.hpa(calls, replicas=replicas, change=change)
    return build.decided(build.objects(hvpa, target, horizontal, build.vpa({"app": GROWN})))


@pytest.mark.parametrize(
    ("fields", "expected"),
    named(
        {
            "2 pods of the HPA have a quarter of the memory, but half of the CPU": ({"base": FIRST}, 4),
            "as far as the weight": ({"base": FIRST, "weight": 50}, 6),
            "no more than there are": ({"base": FIRST, "utilization": 36}, 8),
            "CPU has grown as much": ({"base": {"app": {"cpu": "250m", "memory": "1Gi"}}}, 2),
            "CPU has grown more": ({"base": {"app": {"cpu": "100m", "memory": "1Gi"}}}, 2),
            "nothing has grown": ({}, 2),
            "scaling out is the HPA's": ({"base": FIRST, "utilization": 100, "replicas": 4}, 8),
            "no CPU is requested": ({"base": FIRST, "requests": {"cpu": "0", "memory": "4Gi"}}, 2),
            "another container's first requests": ({"base": {"old": FIRST["app"]}}, 2),
            "an absolute target does not depend on requests": (
                {"base": FIRST, "metrics": [resource("memory", type="AverageValue", averageValue="2Gi")]},
                2,
            ),
        }
    ),
)
def test_pods_are_removed_as_far_as_their_cpu_allows(fields: dict[str, Any], expected: int) -> None:
    decision = decided(**fields)
    assert decision.replicas is not None
    assert decision.replicas.target == expected


def test_the_reason_is_in_the_trace() -> None:
    decision = decided(base=FIRST)
    assert (
        "replicas: 8 now, the HPA recommends 2; 4 after weighting, as fewer than 4 lack CPU, which no metric measures"
        in decision.steps
    )


def test_the_first_requests_are_recorded_for_such_an_hpa_only() -> None:
    axes = decided().status.axes
    assert axes is not None
    assert axes.vertical is not None
    assert axes.vertical.base == {"app": {"cpu": "1", "memory": "4Gi"}}
    both = decided(metrics=[resource("memory", **PERCENT), resource("cpu", **PERCENT)], base=None).status.axes
    assert both is None or both.vertical is None or both.vertical.base == {}


def test_cpu_that_is_measured_sets_no_floor() -> None:
    decision = decided(metrics=[resource("memory", **PERCENT), resource("cpu", **PERCENT)], base=FIRST)
    assert decision.replicas is not None
    assert decision.replicas.target == 8, "a metric has no value"
    assert not any("lack CPU" in step for step in decision.steps)
