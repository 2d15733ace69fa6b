"""The fast signal in a simulation: the operator's own reconciler polls simulated kubelets."""

from __future__ import annotations

from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import MetricsModel, NodeModel, Policy, PolicyResult
from tests.unit.lab.simulate import build


def simulated(mode: str) -> PolicyResult:
    """Ten minutes in which the load triples; resizes in place."""
    signal = {"updateStrategy": {"type": "InPlace"}, "fastSignal": {"mode": mode}}
    manifest = build.hvpa(weight=100, **signal)
    sidecar = build.container(name="sidecar", cpu_per_unit=1.0)
    scenario = build.scenario(
        duration=900.0,
        step=5.0,
        load=build.step(90.0, 300.0, 600.0),
        workload=build.workload(build.container(), sidecar, resize="InPlace"),
        nodes=NodeModel(headroom="20%"),
        metrics=MetricsModel(kubelets="Housekeeping1s"),
        policies=(Policy("Hvpa", "Hvpa", hvpa=manifest),),
    )
    return simulate(scenario, scenario.policies[0])


def test_requests_follow_a_jump_sooner_with_the_signal() -> None:
    fast, slow = simulated("Raise"), simulated("Off")
    assert fast.totals.unmet_core_seconds < slow.totals.unmet_core_seconds / 2
    jump = round(300 / 5)
    cpu = fast.series.requests["app", "cpu"]
    assert cpu[jump + 6] > cpu[jump - 1]
    assert any("the kubelets report" in event.message for event in fast.events)
