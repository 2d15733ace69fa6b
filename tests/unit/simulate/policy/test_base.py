"""Policies at work: what can go wrong, and when each part looks."""

from __future__ import annotations

import asyncio
from array import array
from typing import Any

import pytest

from hvpa.reconcile.reconciler import Reconciler, Result
from hvpa.simulate.cluster.metrics_server import Every
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.engine import scaler
from hvpa.simulate.measure import Recorder
from hvpa.simulate.model import Policy
from hvpa.simulate.policy.base import Context, SimulationError
from hvpa.simulate.policy.hvpa import HvpaScaler, run_to_end
from hvpa.simulate.reactions import cpu_target
from tests.unit.simulate import build

POLICIES = build.Policies()


def at_work(policy: Policy, **changes: Any) -> tuple[Any, Context]:
    scenario = build.scenario(**changes)
    state = Workload(scenario.workload, scenario.nodes)
    context = Context(scenario, state, Recorder(scenario, state, array("d", [90.0])))
    return scaler(policy, context), context


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


def test_a_crash_in_the_decision_is_reported_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("hvpa.reconcile.reconciler.decide", breaks)
    one, _ = at_work(POLICIES.hvpa)
    with pytest.raises(SimulationError, match=r"policy Hvpa: .*nothing to divide by"):
        one.step(0.0)


def test_an_hvpa_that_never_comes_to_rest_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    one, context = at_work(POLICIES.hvpa)
    assert isinstance(one, HvpaScaler)

    async def changes_again(*_: object) -> Result:
        context.state.changes += 1
        return Result("done")

    monkeypatch.setattr(Reconciler, "reconcile", changes_again)
    with pytest.raises(SimulationError, match="does not come to rest"):
        one.step(0.0)


def metric(name: str, container: str = "", **target: object) -> dict[str, object]:
    """An HPA's metric of all containers, or of one."""
    kind = "ContainerResource" if container else "Resource"
    named = {"name": name, "container": container} if container else {"name": name}
    return {"type": kind, kind[0].lower() + kind[1:]: {**named, "target": target}}


def hpa_with(*metrics: object) -> Policy:
    return Policy("hpa", "HPA", hpa={"maxReplicas": 5, "metrics": list(metrics)})


UTILIZATION = metric("cpu", type="Utilization", averageUtilization=80)
OF_MEMORY = metric("memory", type="AverageValue", averageValue="300Mi")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (POLICIES.vpa, None),
        (POLICIES.fixed, None),
        (hpa_with(UTILIZATION), 400),
        (hpa_with(metric("cpu", "app", type="Utilization", averageUtilization=50)), 250),
        (hpa_with(metric("cpu", type="AverageValue", averageValue="300m")), 300),
        (hpa_with(metric("cpu", "gone", type="Utilization", averageUtilization=50)), None),
        (hpa_with(OF_MEMORY), None),
        (hpa_with(OF_MEMORY, UTILIZATION), 400),
    ],
)
def test_the_cpu_that_an_hpa_keeps_each_pod_at(policy: Policy, expected: float | None) -> None:
    one, context = at_work(policy)
    assert cpu_target(one.hpa, context.state) == expected


def test_a_utilization_follows_the_template() -> None:
    one, context = at_work(hpa_with(UTILIZATION))
    own = context.state.template["app"]
    doubled = type(own)({"cpu": 1000, "memory": 512 * build.MIB}, {})
    context.state.set_template({"app": doubled}, 0.0)
    assert cpu_target(one.hpa, context.state) == 800


def test_a_period_comes_round_once_however_long_one_did_not_ask() -> None:
    every = Every(10.0, 5.0)
    assert [now for now in (0.0, 5.0, 6.0, 40.0, 44.0, 45.0) if every.due(now)] == [5.0, 40.0, 45.0]
