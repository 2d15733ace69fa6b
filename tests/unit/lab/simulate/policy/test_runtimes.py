"""Runtimes that read their memory at their start, under the operator's own reconciler."""

from __future__ import annotations

import pytest

from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import NodeModel, Policy, PolicyResult, RuntimeModel
from tests.unit.lab.simulate import build

MIB = build.MIB
JAVA = [{"container": "app", "kind": "Java"}]


def simulated(heap: int | str, runtimes: object) -> PolicyResult:
    """Seven quiet hours of pods with 1Gi that use 130Mi, of which 30Mi are in the heap."""
    manifest = build.hvpa(weight=100, updateStrategy={"type": "InPlaceOrRollout"}, runtimes=runtimes)
    amounts = {"cpu": 500, "memory": 1024 * MIB}
    app = build.container(requests=amounts, limits=amounts, runtime=RuntimeModel("Java", heap))
    scenario = build.scenario(
        duration=7 * 3600.0,
        step=60.0,
        workload=build.workload(app),
        nodes=NodeModel(cpu=64_000, headroom="100%"),
    )
    return simulate(scenario, Policy("Hvpa", "Hvpa", hvpa=manifest))


def memory_at_the_end(result: PolicyResult) -> int:
    return round(result.series.requests["app", "memory"][-1])


def test_the_operator_reads_a_heap_of_fixed_size_from_the_simulated_template() -> None:
    """600Mi and a quarter more, below which no declared runtime falls. The VPA recommends its minimum of 250Mi."""
    declared, undeclared = simulated(600 * MIB, JAVA), simulated(600 * MIB, [])
    assert memory_at_the_end(declared) == 750 * MIB
    assert memory_at_the_end(undeclared) == pytest.approx(250 * MIB, rel=0.02)


def test_the_operator_replaces_pods_for_memory_if_the_runtime_is_declared() -> None:
    declared, undeclared = simulated("75%", JAVA), simulated("75%", [])
    assert memory_at_the_end(declared) == memory_at_the_end(undeclared)
    assert (declared.totals.restarts, undeclared.totals.restarts) == (3, 0)
    assert [
        event.reason for result in (declared, undeclared) for event in result.events if event.kind == "OOM"
    ] == []
