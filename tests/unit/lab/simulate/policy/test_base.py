"""Policies at work: what can go wrong, when each part looks, and what the VPA recommender is reported of the pods."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from hvpa.api.objects.read_models import Vpa, VpaMeta
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa.reconcile.reconciler import Reconciler, ReconcileResult
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender
from hvpa_lab.simulate.cluster.metrics_server import Every
from hvpa_lab.simulate.cluster.objects import instant_at
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.engine import scaler
from hvpa_lab.simulate.measure import Recorder
from hvpa_lab.simulate.model import NodeModel, Policy
from hvpa_lab.simulate.policy.base import Context, SimulationError, VpaLoop
from hvpa_lab.simulate.policy.hvpa import HvpaScaler, run_to_end
from hvpa_lab.simulate.reactions import cpu_target
from tests.unit.lab.simulate import build

POLICIES = build.Policies()


def at_work(policy: Policy, **changes: Any) -> tuple[Any, Context]:
    scenario = build.scenario(**changes)
    state = SimWorkload(scenario.workload, scenario.nodes)
    context = Context(scenario, state, Recorder(scenario, state, array("d", [90.0])))
    return scaler(policy, context), context


def test_a_coroutine_that_waits_has_no_place_in_a_simulation() -> None:
    with pytest.raises(SimulationError, match="never wait"):
        run_to_end(asyncio.sleep(0))


def test_a_reconcile_that_fails_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> ReconcileResult:
        return ReconcileResult("failed")

    monkeypatch.setattr(Reconciler, "reconcile", fails)
    scaler, _ = at_work(POLICIES.hvpa)
    with pytest.raises(SimulationError, match="policy Hvpa: failed"):
        scaler.step(0.0)


def test_a_crash_in_the_decision_is_reported_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("hvpa.reconcile.reconciler.decide", breaks)
    scaler, _ = at_work(POLICIES.hvpa)
    with capture_logs(), pytest.raises(SimulationError, match=r"policy Hvpa: .*nothing to divide by"):
        scaler.step(0.0)


def test_an_hvpa_that_never_comes_to_rest_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    scaler, context = at_work(POLICIES.hvpa)
    assert isinstance(scaler, HvpaScaler)

    async def changes_again(*_: object) -> ReconcileResult:
        context.state.changes += 1
        return ReconcileResult("done")

    monkeypatch.setattr(Reconciler, "reconcile", changes_again)
    with pytest.raises(SimulationError, match="does not settle"):
        scaler.step(0.0)


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
    scaler, context = at_work(policy)
    assert cpu_target(scaler.hpa, context.state) == expected


def test_a_utilization_follows_the_template() -> None:
    scaler, context = at_work(hpa_with(UTILIZATION))
    own = context.state.template["app"]
    doubled = type(own)({"cpu": 1000, "memory": 512 * build.MIB}, {})
    context.state.set_template({"app": doubled}, 0.0)
    assert cpu_target(scaler.hpa, context.state) == 800


def test_a_period_comes_round_once_however_long_one_did_not_ask() -> None:
    every = Every(10.0, 5.0)
    assert [now for now in (0.0, 5.0, 6.0, 40.0, 44.0, 45.0) if every.due(now)] == [5.0, 40.0, 45.0]


MIB = build.MIB
VPA = Vpa(metadata=VpaMeta(name="web"))


@dataclass
class Calls:
    """All calls that the recommender's model got, in order."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == kind]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    reported = Calls()
    for name in ("add_sample", "record_oom", "forget"):
        real = getattr(VerticalRecommender, name)

        def listen(self: VerticalRecommender, *args: Any, name: str = name, real: Any = real) -> None:
            reported.calls.append((name, *args))
            real(self, *args)

        monkeypatch.setattr(VerticalRecommender, name, listen)
    return reported


class Fixture:
    def __init__(self, workload: Any = None, nodes: NodeModel = NodeModel()) -> None:  # noqa: B008  # frozen
        self.state = SimWorkload(workload or build.workload(replicas=2), nodes)
        scenario = build.scenario()
        context = Context(scenario, self.state, Recorder(scenario, self.state, array("d")))
        self.metrics, self.controller = context.metrics, VpaLoop(context)
        self.now = 0.0

    def run(self, seconds: float, load: float = 40.0) -> None:
        end = self.now + seconds
        while self.now < end:
            self.metrics.advance(self.now)
            if self.controller.period.due(self.now):
                self.controller.recommend(VPA, instant_at(build.START, self.now))
            self.state.advance(self.now, 15.0, load)
            self.now += 15.0


def test_pods_are_reported_of_before_they_are_measured_and_then_sampled_once_a_minute(calls: Calls) -> None:
    fixture = Fixture()
    fixture.run(150)
    began = build.START.timestamp()
    assert calls.of("add_sample") == [
        ("web-1", "app", began, None, None),
        ("web-2", "app", began, None, None),
        *((pod, "app", began + at, 0.22, 120.0 * MIB) for at in (60, 120) for pod in ("web-1", "web-2")),
    ]


def test_what_was_measured_before_is_no_new_sample(calls: Calls) -> None:
    fixture = Fixture()
    fixture.run(61)
    count = len(calls.calls)
    fixture.controller.recommend(VPA, build.START)
    assert len(calls.calls) == count


def test_a_pod_that_is_gone_is_forgotten_and_its_last_measurement_with_it(calls: Calls) -> None:
    fixture = Fixture()
    fixture.run(120)
    fixture.metrics.advance(120.0)
    fixture.state.scale(1, 120.0)
    fixture.run(61)
    assert calls.of("forget") == [("web-2",)]
    assert all(pod == "web-1" for pod, *_ in calls.of("add_sample")[-2:])


def test_a_pod_that_waits_for_a_node_is_no_pod_yet(calls: Calls) -> None:
    fixture = Fixture(build.workload(replicas=1), NodeModel(cpu=600, memory=10**10, start_up=600.0))
    fixture.state.scale(2, 0.0)
    fixture.run(300)
    assert {pod for pod, *_ in calls.of("add_sample")} == {"web-1"}
    fixture.run(600)
    assert {pod for pod, *_ in calls.of("add_sample")} == {"web-1", "web-2"}


def test_an_oom_is_reported_once_with_what_was_requested(calls: Calls) -> None:
    leaky = build.container(limits={"memory": 600 * MIB}, memory_leak=30 * MIB / 15.0)
    fixture = Fixture(build.workload(leaky, replicas=1))
    fixture.run(600)
    ooms = calls.of("record_oom")
    assert len(ooms) == fixture.state.pods[0].containers[0].restarts == 2
    assert {(pod, container, memory) for pod, container, _, memory in ooms} == {("web-1", "app", 512 * MIB)}
    assert [at for *_, at, _ in ooms] == sorted({at for *_, at, _ in ooms})
    fixture.state.scale(0, fixture.now)
    fixture.run(60)
    assert calls.of("forget") == [("web-1",)]


def test_the_oom_of_a_pod_that_is_gone_by_the_next_loop_counts(calls: Calls) -> None:
    leaky = build.container(limits={"memory": 600 * MIB}, memory_leak=30 * MIB / 15.0)
    fixture = Fixture(build.workload(leaky, replicas=1))
    fixture.run(75)
    while not fixture.state.pods[0].containers[0].restarts:
        fixture.run(15)
    assert calls.of("record_oom") == []
    fixture.state.scale(0, fixture.now)
    fixture.run(60)
    assert [kind for kind, *_ in calls.calls[-2:]] == ["record_oom", "forget"]


def test_the_successor_of_a_stateful_sets_pod_goes_by_its_name(calls: Calls) -> None:
    fixture = Fixture(build.workload(replicas=2, kind="StatefulSet"))
    fixture.run(120)
    fixture.state.evict(fixture.state.pods[1], 120.0)
    fixture.run(180)
    assert calls.of("forget") == []
    assert {pod for pod, *_ in calls.of("add_sample")} == {"web-0", "web-1"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [({"cpu": 900, "memory": 1}, 720), ({"memory": 1}, 400)],
    ids=["the pod's own request", "without one, that of the container"],
)
def test_a_utilization_is_of_the_request_of_the_pod(own: dict[Resource, int], expected: float) -> None:
    scaler, context = at_work(hpa_with(UTILIZATION))
    template = {**context.state.template, POD: ResourceRequirements(own, {})}
    context.state.set_template(template, 0.0)
    assert cpu_target(scaler.hpa, context.state) == expected
