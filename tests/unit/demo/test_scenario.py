"""The demo's load and its manifests, the course of an HPA beside a VPA and of the Hvpa under it, and what a course is
worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import demo_cluster
from demo.options import SizeStrategy
from demo.scenario import BASE_MEMORY, Scenario, State, hpa_beside_vpa, hvpa_alone, used, worth
from demo.snapshot import Resources
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.values.quantity import parse_memory

DEMO = Path(demo_cluster.__file__).parent


def load_yaml(name: str) -> dict[str, Any]:
    """One of the demo's manifests."""
    document: dict[str, Any] = yaml.safe_load((DEMO / name).read_text())
    return document


def test_phases_follow_one_another_without_gaps() -> None:
    phases = Scenario(seconds=100).phases
    assert [phase.name for phase in phases] == ["calm", "rise", "peak", "fall", "after"]
    assert phases[0].start == 0
    assert phases[-1].end == pytest.approx(100)
    assert [phase.end for phase in phases[:-1]] == [phase.start for phase in phases[1:]]


def test_the_load_rises_stays_and_falls_back() -> None:
    course = Scenario(seconds=100, low_cpu=300, high_cpu=2300)
    rise, fall = course.phase("rise"), course.phase("fall")
    assert course.cpu(0) == course.cpu(rise.start) == 300
    assert course.cpu((rise.start + rise.end) / 2) == pytest.approx(1300)
    assert course.cpu(rise.end) == course.cpu(fall.start) == 2300
    assert course.cpu(fall.end) == course.cpu(1000) == 300
    assert course.memory(rise.end) == course.high_memory


def test_nothing_runs_out_of_memory_even_if_nothing_is_scaled() -> None:
    spec = yaml.safe_load((DEMO / "workload.yaml").read_text())["spec"]
    limit = spec["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert Scenario().high_memory / spec["replicas"] + BASE_MEMORY < parse_memory(limit)


@pytest.mark.parametrize("mode", ["Auto", "Off"])
def test_the_hvpa_is_valid_in_both_modes(mode: str) -> None:
    document = demo_cluster.with_mode(load_yaml("hvpa.yaml"), "Off" if mode == "Off" else "Auto")
    assert validate_manifest(document) == []
    modes = [
        document["spec"][axis].get(direction, {}).get("updatePolicy")
        for axis in ("hpa", "vpa")
        for direction in ("scaleUp", "scaleDown")
    ]
    assert modes == [None if mode == "Auto" else {"updateMode": "Off"}] * 4


# --- an HPA beside a VPA ---
LOAD = Scenario()


def test_an_hpa_beside_a_vpa_follows_the_load() -> None:
    course = hpa_beside_vpa(LOAD, 360).course
    first, last = course[0], course[-1]
    assert (first[0], last[0]) == (-60, 359)
    assert (first[1].replicas, first[1].requests.cpu) == (2, 250)
    assert max(state.replicas for _, state in course) == 6
    assert last[1].replicas == 2
    outcome = worth(course, used(LOAD), 360)
    assert outcome.end == last[1]
    assert 0.9 < outcome.requested * 1000 / sum(used(LOAD)(second, 6) for second in range(360)) < 1.2
    assert outcome.short > 0


@pytest.mark.parametrize("sizes", ["InPlaceOrRollout", "Rollout"])
def test_the_hvpa_follows_the_load_and_restarts_pods_only_if_it_replaces_them(sizes: SizeStrategy) -> None:
    simulated = hvpa_alone(LOAD, 360, demo_cluster.with_sizes(load_yaml("hvpa.yaml"), sizes))
    first, last = simulated.course[0][1], simulated.course[-1][1]
    assert max(state.replicas for _, state in simulated.course) > first.replicas
    assert last.is_as(first)
    assert bool(simulated.restarts) == (sizes == "Rollout")


def test_a_course_is_worth_what_it_requests_and_what_is_used_above_it() -> None:
    """2 × 250m for 10 s, then 4 × 250m for 5 s; 800m are used: 300m of them above the requests for 10 s."""
    course = [
        (-5.0, State(2, Resources(250, 1))),
        (10.0, State(4, Resources(250, 1))),
    ]
    outcome = worth(course, lambda second, pods: 800.0, 15)
    assert (outcome.requested, outcome.used, outcome.short) == pytest.approx((10.0, 12.0, 3.0))
    assert outcome.end.replicas == 4


def test_memory_that_was_rounded_to_whole_kilobytes_is_the_same() -> None:
    start = State(2, Resources(250, 192 * 2**20))
    assert State(2, Resources(275, 201_327_000)).is_as(start)
    assert not State(2, Resources(250, 222_000_000)).is_as(start)
    assert not State(3, Resources(250, 192 * 2**20)).is_as(start)
    assert not State(2, Resources(276, 192 * 2**20)).is_as(start)
