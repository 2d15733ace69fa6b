"""Runtimes that read their memory when they start (`spec.runtimes`), in the simulator."""

from __future__ import annotations

import pytest

from builders.build import MIB
from tests.unit.closed_loop.test_capacity import hvpa, pods, simulated
from tests.unit.lab.simulate import build
from tests.unit.lab.simulate.joint_build import HOUR, Run, metric

pytestmark = pytest.mark.long


def grown(strategy: str, kind: str, *metrics: str) -> Run:
    """The load goes from 3 to 8 cores, and memory follows it with 500Mi for each."""
    app = pods("InPlace", 1000, memory_base=300 * MIB, memory_per_unit=500 * MIB)
    runtimes = [{"container": "app", "kind": kind}]
    own = hvpa(50, *[metric(70, resource) for resource in metrics], strategy=strategy, runtimes=runtimes)
    return simulated(own, build.step(3.0, 4 * HOUR, 8.0), 10, 6, app)


def test_cpu_is_resized_in_place_and_a_rollout_replaces_pods_for_memory() -> None:
    java, python = (grown("InPlaceOrRollout", kind, "cpu") for kind in ("Java", "Python"))
    for simulation in (java, python):
        assert [event for event in simulation.result.events if event.kind == "Violation"] == []
        assert simulation.end.cpu > 2500
        assert simulation.end.memory > 1.5 * 1024 * MIB
    assert python.result.totals.restarts == 0
    assert 0 < java.result.totals.restarts <= 12  # Rollout alone: 49 to 54


def test_a_memory_metric_only_counts_pods() -> None:
    """The size of memory follows the VPA, so no metric of minutes replaces pods. A quiet day of 2 cores, then 8."""
    runtimes = [{"container": "app", "kind": "Java"}]
    metrics = (metric(70), metric(70, "memory"))
    runs = {}
    for strategy in ("InPlaceOrRollout", "InPlace", "Rollout"):
        own = hvpa(50, *metrics, strategy=strategy, runtimes=runtimes)
        app = pods(strategy, 1000, memory_base=300 * MIB, memory_per_unit=500 * MIB)
        runs[strategy] = simulated(own, build.step(2.0, 30 * HOUR, 8.0), 60, 6, app)
        events = runs[strategy].result.events
        assert [event.message for event in events if event.kind == "Violation"] == []
    assert runs["InPlaceOrRollout"].end.cores < 1.2 * runs["Rollout"].end.cores


def test_in_place_alone_only_new_pods_have_other_memory() -> None:
    simulation = grown("InPlace", "Java", "cpu")
    assert simulation.end.cpu > 2500
    assert simulation.end.memory == 1024 * MIB
    assert simulation.result.totals.restarts == 0
