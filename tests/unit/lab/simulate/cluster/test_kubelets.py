"""What the simulated kubelets report, and when: their samples are as old as those of real ones."""

from __future__ import annotations

import datetime as dt

import pytest

from hvpa.core.model import PodUsage
from hvpa.kube.kubelets import poller
from hvpa_lab.simulate.cluster.kubelets import FREQUENT, LATER, SOON, SimulatedKubelets
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import KubeletKind, NodeModel
from tests.unit.lab.simulate import build

CALM, JUMP = 56.0, 196.0
"""The load with which two pods use 300m and 1 core each."""


class Fixture:
    """Two pods of 500m, with steps of a second."""

    def __init__(self, kind: KubeletKind = "Default", seed: int = 0) -> None:
        self.state = SimWorkload(build.workload(replicas=2), NodeModel())
        self.kubelets = SimulatedKubelets(self.state, kind, seed)
        self.kubelets.above = 90
        self.now = 0.0
        self.needed: list[float] = []
        """When a poll found that a container may need more."""
        self.news: list[float] = []
        """When the newest sample arrived."""

    def run(self, seconds: int, load: float) -> None:
        for _ in range(seconds):
            self.state.advance(self.now, 1.0, load)
            self.now += 1
            instant = build.START + dt.timedelta(seconds=self.now)
            if self.kubelets.advance(self.now, instant):
                self.needed.append(self.now)
            if self.kubelets.usage().time == instant:
                self.news.append(self.now)

    def used(self) -> list[PodUsage]:
        return list(self.kubelets.usage().of.values())


def test_nothing_is_known_at_first() -> None:
    usage = Fixture().kubelets.usage()
    assert (usage.time, dict(usage.of), usage.nodes) == (None, {}, 1)


@pytest.mark.parametrize("kind", ["Default", "Housekeeping1s", "StatsFromCRI"])
def test_usage_is_that_of_the_containers(kind: KubeletKind) -> None:
    fixture = Fixture(kind)
    fixture.run(90, CALM)
    assert [usage.cpu for usage in fixture.used()] == pytest.approx([300, 300], abs=1)
    assert [usage.memory for usage in fixture.used()] == [128 * build.MIB] * 2
    assert not any(usage.grows for usage in fixture.used())
    assert fixture.needed == []


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("Default", 3, 30), ("Housekeeping1s", 1, 6), ("StatsFromCRI", 1, 6)]
)
def test_a_jump_is_known_as_late_as_on_a_real_node(kind: KubeletKind, least: float, most: float) -> None:
    delays = []
    for seed in range(20):
        fixture = Fixture(kind, seed)
        fixture.run(100, CALM)
        fixture.run(60, JUMP)
        delays.append(fixture.needed[0] - 100)
    assert least <= sorted(delays)[len(delays) // 2] <= most
    assert len(set(delays)) > 1


def test_polls_are_frequent_while_a_container_needs_more_and_for_a_while_after() -> None:
    calm, busy = Fixture("StatsFromCRI"), Fixture("Default")
    calm.run(100, CALM)
    busy.run(100, JUMP)
    assert len(calm.news) == pytest.approx(100 / SOON, abs=5)  # the pace of its own samples
    gaps = [later - earlier for earlier, later in zip(busy.needed, busy.needed[1:], strict=False)]
    assert max(gaps) <= SOON + 1 < LATER


def test_a_container_that_does_not_run_has_no_samples() -> None:
    fixture = Fixture("StatsFromCRI")
    fixture.run(60, CALM)
    first, other = fixture.state.pods
    first.containers[0].running = False
    fixture.run(3, CALM)  # the next poll finds the last sample
    before = fixture.kubelets.usage().of[first.name, "app"]
    fixture.run(20, CALM)
    usage = fixture.kubelets.usage().of
    assert usage[first.name, "app"].memory_time == before.memory_time
    assert usage[other.name, "app"].memory_time != before.memory_time


def test_polls_have_the_pace_of_the_operator() -> None:
    assert (SOON, LATER, FREQUENT) == (poller.SOON, poller.LATER, poller.FREQUENT)
