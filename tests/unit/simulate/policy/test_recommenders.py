"""What the VPA recommender of a simulation is reported of the pods."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import pytest

from hvpa.api.objects.read_models import Vpa, VpaMeta
from hvpa.recommend.vpa.recommender import VerticalRecommender
from hvpa.simulate.cluster.objects import instant
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.measure import Recorder
from hvpa.simulate.model import NodeModel
from hvpa.simulate.policy.base import Context, VpaController
from tests.unit.simulate import build

MIB = build.MIB
VPA = Vpa(metadata=VpaMeta(name="web"))


@dataclass
class Calls:
    """All calls that the recommender's model got, in order."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == kind]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Calls:
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
        self.state = Workload(workload or build.workload(replicas=2), nodes)
        scenario = build.scenario()
        context = Context(scenario, self.state, Recorder(scenario, self.state, array("d")))
        self.metrics, self.controller = context.metrics, VpaController(context)
        self.now = 0.0

    def run(self, seconds: float, load: float = 40.0) -> None:
        end = self.now + seconds
        while self.now < end:
            self.metrics.advance(self.now)
            if self.controller.period.due(self.now):
                self.controller.recommend(VPA, instant(build.START, self.now))
            self.state.advance(self.now, 15.0, load)
            self.now += 15.0


def test_pods_are_reported_of_before_they_are_measured_and_then_sampled_once_a_minute(heard: Calls) -> None:
    fixture = Fixture()
    fixture.run(150)
    began = build.START.timestamp()
    assert heard.of("add_sample") == [
        ("web-1", "app", began, None, None),
        ("web-2", "app", began, None, None),
        *((pod, "app", began + at, 0.22, 120.0 * MIB) for at in (60, 120) for pod in ("web-1", "web-2")),
    ]


def test_what_was_measured_before_is_no_new_sample(heard: Calls) -> None:
    fixture = Fixture()
    fixture.run(61)
    count = len(heard.calls)
    fixture.controller.recommend(VPA, build.START)
    assert len(heard.calls) == count


def test_a_pod_that_is_gone_is_forgotten_and_its_last_measurement_with_it(heard: Calls) -> None:
    fixture = Fixture()
    fixture.run(120)
    fixture.metrics.advance(120.0)
    fixture.state.scale(1, 120.0)
    fixture.run(61)
    assert heard.of("forget") == [("web-2",)]
    assert all(pod == "web-1" for pod, *_ in heard.of("add_sample")[-2:])


def test_a_pod_that_waits_for_a_node_is_no_pod_yet(heard: Calls) -> None:
    fixture = Fixture(build.workload(replicas=1), NodeModel(cpu=600, memory=10**10, start_up=600.0))
    fixture.state.scale(2, 0.0)
    fixture.run(300)
    assert {pod for pod, *_ in heard.of("add_sample")} == {"web-1"}
    fixture.run(600)
    assert {pod for pod, *_ in heard.of("add_sample")} == {"web-1", "web-2"}


def test_an_oom_is_reported_once_with_what_was_requested(heard: Calls) -> None:
    leaky = build.container(limits={"memory": 600 * MIB}, memory_leak=30 * MIB / 15.0)
    fixture = Fixture(build.workload(leaky, replicas=1))
    fixture.run(600)
    ooms = heard.of("record_oom")
    assert len(ooms) == fixture.state.pods[0].containers[0].restarts == 2
    assert {(pod, container, memory) for pod, container, _, memory in ooms} == {("web-1", "app", 512 * MIB)}
    assert [at for *_, at, _ in ooms] == sorted({at for *_, at, _ in ooms})
    fixture.state.scale(0, fixture.now)
    fixture.run(60)
    assert heard.of("forget") == [("web-1",)]


def test_the_successor_of_a_stateful_sets_pod_goes_by_its_name(heard: Calls) -> None:
    fixture = Fixture(build.workload(replicas=2, kind="StatefulSet"))
    fixture.run(120)
    fixture.state.evict(fixture.state.pods[1], 120.0)
    fixture.run(180)
    assert heard.of("forget") == []
    assert {pod for pod, *_ in heard.of("add_sample")} == {"web-0", "web-1"}
