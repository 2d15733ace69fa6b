"""The metrics that judge canaries are read for Hvpas that name them, and often while a trial runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from hvpa.core.model import MetricValue
from tests.unit.core.actuation.sized_pods import running
from tests.unit.reconcile.fakes import KEY, Harness

SIZE = {"cpu": "1", "memory": "1G"}
P99 = {"external": {"metric": {"name": "p99"}}, "above": "500m"}
JUDGED: dict[str, Any] = {
    "hpa": {"deploy": False},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    "updateStrategy": {"type": "InPlace", "canary": {"rollbackOnMetrics": [P99]}},
}
OTHER: dict[str, Any] = build.merged(JUDGED, {"updateStrategy": {"canary": {"rollbackOnMetrics": []}}})
NAMES = ("External p99",)


def harness(spec: dict[str, Any], memory: str) -> Harness:
    pods = [running(f"web-{number}", SIZE) for number in range(3)]
    target = build.workload(3, [build.container(requests=SIZE)])
    recommended = build.vpa({"app": {"cpu": "1", "memory": memory}})
    return Harness(build.objects(build.hvpa(spec), target, None, recommended, pods))


def test_rollback_metrics_are_read_often_while_a_trial_runs() -> None:
    web = harness(JUDGED, "3G")
    web.cluster.values = (MetricValue("200m", build.NOW),)
    web.reconcile()
    assert web.cluster.judged == [(NAMES, False), (NAMES, True)]
    assert web.cluster.one is not None
    (record,) = web.cluster.one.hvpa.status.canary_metrics
    assert record.value == "200m"
    web.reconcile()
    assert web.cluster.judged[2:] == [(NAMES, True)]


def test_rollback_metrics_of_a_trial_are_read_while_the_hvpa_is_paused() -> None:
    web = harness(JUDGED, "3G")
    web.reconcile()
    assert web.cluster.one is not None
    status = web.cluster.one.hvpa.status
    assert status.canary_metrics
    web.change(hvpa=replace(build.hvpa(build.merged(JUDGED, {"mode": "Paused"})), status=status))
    web.reconcile()
    assert web.cluster.judged[-1][0] == NAMES


@pytest.mark.parametrize("spec", [OTHER, build.merged(JUDGED, {"mode": "Paused"})], ids=["none", "paused"])
def test_metrics_of_other_hvpas_are_never_read(spec: dict[str, Any]) -> None:
    web = harness(spec, "3G")
    web.reconcile()
    web.reconciler.forget(KEY)
    assert web.cluster.judged == []


def test_reading_ends_with_the_field_and_with_the_hvpa() -> None:
    web = harness(JUDGED, "1G")
    web.reconcile()
    web.change(hvpa=build.hvpa(OTHER))
    web.reconcile()
    web.reconcile()
    assert web.cluster.judged == [(NAMES, False), ((), False)]
    web.change(hvpa=build.hvpa(JUDGED))
    web.reconcile()
    web.cluster.one = None
    web.reconcile()
    assert web.cluster.judged[2:] == [(NAMES, False), ((), False)]
