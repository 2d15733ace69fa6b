"""The demo's load, its options and its manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from demo import demo_cluster
from demo.options import OptionError, Options, options
from demo.scenario import BASE_MEMORY, Scenario
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.values.quantity import parse_memory

DEMO = Path(demo_cluster.__file__).parent


def load_yaml(name: str) -> dict[str, object]:
    """One of the demo's manifests."""
    document: dict[str, object] = yaml.safe_load((DEMO / name).read_text())
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


def test_options_come_from_the_environment() -> None:
    assert options({}) == Options(keep=False, mode="Auto", seconds=300)
    assert options({"KEEP": "1", "DEMO_MODE": "Off", "DEMO_SECONDS": "60"}) == Options(True, "Off", 60)
    assert options({"KEEP": "", "DEMO_MODE": "", "DEMO_SECONDS": ""}) == Options()
    assert options({"KEEP": "0"}) == Options()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KEEP", "yes"),
        ("DEMO_MODE", "off"),
        ("DEMO_SECONDS", "soon"),
        ("DEMO_SECONDS", "3"),
        ("DEMO_SECONDS", "nan"),
        ("DEMO_SECONDS", "inf"),
    ],
)
def test_options_that_can_not_be_used_are_named(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{name}={value}"):
        options({name: value})
