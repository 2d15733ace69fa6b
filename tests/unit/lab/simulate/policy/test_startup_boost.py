"""More CPU for the start of pods in a simulation, by the operator's own reconciler."""

from __future__ import annotations

import pytest

from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import NodeModel, Policy, PolicyResult
from tests.unit.lab.simulate import build

BOOST = [{"container": "app", "cpu": {"factor": 3}}]


def simulated(boost: object) -> PolicyResult:
    """Half an hour in which the load doubles; a start takes 45 s of a core, and pods are limited to 500m."""
    manifest = build.hvpa(weight=0, updateStrategy={"type": "InPlace"}, startupBoost=boost)
    app = build.container(limits={"cpu": 500}, cpu_start_up=1500.0)
    scenario = build.scenario(
        duration=1800.0,
        step=5.0,
        load=build.step(90.0, 600.0, 180.0),
        workload=build.workload(app, resize="InPlace"),
        nodes=NodeModel(cpu=64_000, headroom="400%"),
        policies=(Policy("Hvpa", "Hvpa", hvpa=manifest),),
    )
    return simulate(scenario, scenario.policies[0])


def test_pods_start_as_fast_as_their_boost_allows() -> None:
    boosted, usual = simulated(BOOST), simulated([])
    (fast,), (slow,) = boosted.reactions, usual.reactions
    assert fast.start_up == pytest.approx(30, abs=10)
    assert slow.start_up == pytest.approx(90, abs=10)
    assert boosted.totals.unmet_core_seconds < usual.totals.unmet_core_seconds
    assert boosted.series.replicas[-1] == usual.series.replicas[-1]
    assert boosted.series.requests["app", "cpu"][-1] == usual.series.requests["app", "cpu"][-1]
