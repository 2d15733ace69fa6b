"""What is published of the pods' usage, and when."""

from __future__ import annotations

import datetime as dt
import math

import pytest

from hvpa.api.objects.read_models import MetricName, ObjectReference
from hvpa_lab.recommend.hpa.controller import MetricsError
from hvpa_lab.simulate.cluster.metrics_server import MetricsServer
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import MetricsModel, NodeModel
from tests.unit.lab.simulate import build

MIB = build.MIB


class Fixture:
    def __init__(self, model: MetricsModel, *containers: str) -> None:
        parts = [build.container(name=name) for name in containers or ("app",)]
        self.state = SimWorkload(build.workload(*parts, replicas=2), NodeModel())
        self.server = MetricsServer(model, self.state, build.START)

    def run(self, until: float, load: float = 100.0, start: float = 0.0) -> list[float]:
        """Second by second; the times at which something was published."""
        times = []
        for now in range(int(start), int(until)):
            self.server.load = load
            before = self.server.published
            self.server.advance(float(now))
            if self.server.published is not before:
                times.append(float(now))
            self.state.advance(float(now), 1.0, load)
        return times


def test_it_publishes_every_period_from_its_offset_on() -> None:
    assert Fixture(MetricsModel(resolution=15, offset=4)).run(50) == [4, 19, 34, 49]


def test_what_is_published_is_as_old_as_the_delay() -> None:
    fixture = Fixture(MetricsModel(resolution=15, delay=5))
    assert fixture.run(36) == [5, 20, 35]
    published = fixture.server.published
    assert published is not None
    assert (published.at, published.measured_at) == (35, 30)


def test_cpu_is_the_mean_since_the_last_note_and_memory_the_present_one() -> None:
    fixture = Fixture(MetricsModel(resolution=10))
    fixture.run(5, load=0.0)
    fixture.run(11, load=100.0, start=5)
    readings = fixture.server.resource("cpu", "")
    assert [reading.value for reading in readings.values()] == [270, 270], (
        "half of the time 20m, half of it 520m"
    )
    assert {reading.timestamp for reading in readings.values()} == {build.START + dt.timedelta(seconds=10)}
    assert {reading.window for reading in readings.values()} == {dt.timedelta(seconds=10)}
    memory = fixture.server.resource("memory", "")
    assert [reading.value for reading in memory.values()] == [150 * MIB * 1000] * 2


def test_before_the_second_note_there_is_nothing() -> None:
    fixture = Fixture(MetricsModel(resolution=10))
    with pytest.raises(MetricsError, match="no metrics"):
        fixture.server.resource("cpu", "")
    fixture.run(5)
    with pytest.raises(MetricsError, match="no metrics"):
        fixture.server.resource("cpu", "")


def test_a_pod_that_has_just_started_is_left_out() -> None:
    fixture = Fixture(MetricsModel(resolution=10))
    fixture.run(15)
    fixture.state.scale(3, 15.0)
    fixture.run(21, start=15)
    assert len(fixture.server.resource("cpu", "")) == 2
    fixture.run(31, start=21)
    assert len(fixture.server.resource("cpu", "")) == 3


def test_a_container_that_started_ten_seconds_before_is_fresh_enough() -> None:
    fixture = Fixture(MetricsModel(resolution=30))
    fixture.run(49)
    fixture.state.scale(3, 49.0)
    fixture.run(61, start=49)
    readings = fixture.server.resource("cpu", "")
    assert readings["web-3"].value == 20, "it was not ready, and used its base since it began"


def test_a_pod_is_left_out_while_one_of_its_containers_has_no_usage() -> None:
    fixture = Fixture(MetricsModel(resolution=10), "app", "sidecar")
    fixture.run(25)
    pod = fixture.state.pods[0]
    pod.end(pod.containers[1], 25.0, of_heap=False)
    fixture.state.changes += 1
    fixture.run(31, start=25)
    first = fixture.server.resource("cpu", "")["web-1"]
    assert 0 < first.value < 1040, "the one that runs is enough"
    pod.containers[1].start(35.0, math.inf)
    fixture.state.changes += 1
    fixture.run(41, start=31)
    assert list(fixture.server.resource("cpu", "")) == ["web-2"]
    fixture.run(51, start=41)
    assert list(fixture.server.resource("cpu", "")) == ["web-1", "web-2"]


def test_containers_are_added_up_or_taken_alone() -> None:
    fixture = Fixture(MetricsModel(resolution=10), "app", "sidecar")
    fixture.run(11)
    assert [reading.value for reading in fixture.server.resource("cpu", "").values()] == [1040, 1040]
    assert [reading.value for reading in fixture.server.resource("cpu", "app").values()] == [520, 520]
    with pytest.raises(MetricsError):
        fixture.server.resource("cpu", "unknown")


@pytest.mark.parametrize("name", ["load", "requests"])
def test_the_load_is_the_one_custom_metric(name: str) -> None:
    fixture = Fixture(MetricsModel(resolution=10, load=name))
    fixture.run(11, load=31.0)
    server, load = fixture.server, MetricName(name=name)
    assert [reading.value for reading in server.pods(load).values()] == [15500, 15500]
    fixture.state.pods[0].part = 3.0
    assert [reading.value for reading in server.pods(load).values()] == [23250, 7750], "each pod its part"
    assert server.object(load, ObjectReference()) == 31000
    assert server.external(load) == [31000]
    for ask in (server.pods, server.external):
        with pytest.raises(MetricsError, match=f"no metric queue, only {name}"):
            ask(MetricName(name="queue"))
    with pytest.raises(MetricsError, match="queue"):
        server.object(MetricName(name="queue"), ObjectReference())


def test_further_metrics_are_made_of_the_load() -> None:
    fixture = Fixture(MetricsModel(resolution=10, share="share", queue="queue"))
    fixture.run(11, load=31.0)
    fixture.server.waiting = 100.0
    assert fixture.server.external(MetricName(name="share")) == [15500]
    assert fixture.server.object(MetricName(name="queue"), ObjectReference()) == 131000
    fixture.state.scale(0, 11.0)
    assert fixture.server.external(MetricName(name="share")) == [31000], "as if there were one pod"
    with pytest.raises(MetricsError, match="no metric share"):
        fixture.server.pods(MetricName(name="share"))


def test_without_a_ready_pod_no_pod_has_a_metric() -> None:
    fixture = Fixture(MetricsModel(resolution=10))
    fixture.run(11)
    fixture.state.scale(0, 11.0)
    with pytest.raises(MetricsError, match="no metrics"):
        fixture.server.pods(MetricName(name="load"))


def test_a_step_longer_than_the_period_publishes_once() -> None:
    fixture = Fixture(MetricsModel(resolution=10))
    published = []
    for now in (0.0, 35.0, 39.0, 40.0):
        fixture.server.advance(now)
        published.append(fixture.server.published)
    assert [usage.at for usage in published if usage is not None] == [0.0, 35.0, 35.0, 40.0]
