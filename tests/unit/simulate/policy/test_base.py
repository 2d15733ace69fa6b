"""Policies at work: what can go wrong, and when each part looks."""

from __future__ import annotations

import asyncio
from array import array
from typing import Any

import pytest

from hvpa.reconcile.reconciler import Reconciler, Result
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.engine import scaler
from hvpa.simulate.measure import Recorder
from hvpa.simulate.model import Policy
from hvpa.simulate.policy.base import SimulationError, Surroundings
from hvpa.simulate.policy.hvpa import HvpaScaler, run_to_end
from hvpa.simulate.policy.recommenders import Every
from tests.unit.simulate import build

POLICIES = build.Policies()


def at_work(policy: Policy, **changes: Any) -> tuple[Any, Surroundings]:
    scenario = build.scenario(**changes)
    state = Workload(scenario.workload, scenario.nodes)
    around = Surroundings(scenario, state, Recorder(scenario, state, array("d", [90.0])))
    return scaler(policy, around), around


def test_a_coroutine_that_waits_has_no_place_in_a_simulation() -> None:
    with pytest.raises(SimulationError, match="never wait"):
        run_to_end(asyncio.sleep(0))


def test_a_reconcile_that_fails_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> Result:
        return Result("failed")

    monkeypatch.setattr(Reconciler, "reconcile", fails)
    one, _ = at_work(POLICIES.hvpa)
    with pytest.raises(SimulationError, match="policy Hvpa: failed"):
        one.step(0.0)


def test_a_crash_in_the_decision_is_told_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("hvpa.reconcile.reconciler.decide", breaks)
    one, _ = at_work(POLICIES.hvpa)
    with pytest.raises(SimulationError, match=r"policy Hvpa: .*nothing to divide by"):
        one.step(0.0)


def test_an_hvpa_that_never_comes_to_rest_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    one, around = at_work(POLICIES.hvpa)
    assert isinstance(one, HvpaScaler)

    async def changes_again(*_: object) -> Result:
        around.state.changes += 1
        return Result("done")

    monkeypatch.setattr(Reconciler, "reconcile", changes_again)
    with pytest.raises(SimulationError, match="does not come to rest"):
        one.step(0.0)


@pytest.mark.parametrize(("resize", "in_place"), [("Recreate", False), ("InPlace", True)])
def test_the_operator_is_told_how_pods_are_resized(
    monkeypatch: pytest.MonkeyPatch, resize: str, in_place: bool
) -> None:
    given: list[bool] = []

    class Watched(Reconciler):
        def __init__(self, *parts: Any) -> None:
            given.append(parts[2].in_place)
            super().__init__(*parts)

    monkeypatch.setattr("hvpa.simulate.policy.hvpa.Reconciler", Watched)
    at_work(POLICIES.hvpa, workload=build.workload(resize=resize))
    assert given == [in_place]


def test_the_cpu_that_an_hpa_keeps_to_follows_the_template() -> None:
    utilization = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    policy = Policy("hpa", "HPA", hpa={"maxReplicas": 5, "metrics": [utilization]})
    one, around = at_work(policy)
    assert one.cpu_target() == 400
    own = around.state.template["app"]
    doubled = type(own)({"cpu": 1000, "memory": 512 * build.MIB}, {})
    around.state.set_template({"app": doubled}, 0.0)
    assert one.cpu_target() == 800


@pytest.mark.parametrize("policy", [POLICIES.vpa, POLICIES.fixed])
def test_without_an_hpa_there_is_no_such_cpu(policy: Policy) -> None:
    one, _ = at_work(policy)
    assert one.cpu_target() is None


def test_a_metric_of_one_container_counts_that_ones_request() -> None:
    metric = {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "app",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    }
    one, _ = at_work(Policy("hpa", "HPA", hpa={"maxReplicas": 5, "metrics": [metric]}))
    assert one.cpu_target() == 250


def test_a_metric_of_memory_says_nothing_of_cpu() -> None:
    target = {"type": "AverageValue", "averageValue": "300Mi"}
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    one, _ = at_work(Policy("hpa", "HPA", hpa={"maxReplicas": 5, "metrics": [metric]}))
    assert one.cpu_target() is None


def test_a_period_comes_round_once_however_long_one_did_not_ask() -> None:
    every = Every(10.0, 5.0)
    assert [every.due(now) for now in (0.0, 5.0, 6.0, 40.0, 44.0, 45.0)] == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
