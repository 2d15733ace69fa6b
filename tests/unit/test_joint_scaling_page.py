"""docs/joint-scaling.md: every number on the page is what the code makes of it, and who follows its steps is right."""

from __future__ import annotations

import datetime as dt
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import yaml

from builders import build
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu
from hvpa.cli.main import main
from hvpa.core import Settings
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import DEFAULT_OVERLAP
from hvpa.core.recommenders.manifests import HPA_WINDOW
from hvpa.core.trajectory.means import HALF_LIFE, Mean, weight_since
from hvpa.core.trajectory.solve import BAND
from hvpa.core.values.weight import Bounds
from tests.unit.core.trajectory import jointly
from tests.unit.joint_page import (
    BASE_USAGE,
    CPU,
    DOCS,
    FIVE_ROWS,
    GIGA,
    MEMORY,
    ONE_LINE,
    PLAIN,
    SHOP,
    WEIGHTS,
    WRITTEN,
    Row,
    Usually,
    decided,
    path,
    pods,
    read_pods,
    result,
    short_for,
    table,
    wanted,
)


# --- decisions -------------------------------------------------------------------------------------------------------
def test_the_manifests_are_valid() -> None:
    whole = {
        **SHOP,
        "spec": {key: value for key, value in SHOP["spec"].items() if key != "weightBasedScalingIntervals"},
    }
    for fragment in (FIVE_ROWS, WEIGHTS, WRITTEN, BASE_USAGE):
        assert validate_manifest({**whole, "spec": {**whole["spec"], **fragment}}) == []
    assert validate_manifest(SHOP) == []
    assert HvpaSpec.model_validate(SHOP["spec"]).joint


# --- in between ------------------------------------------------------------------------------------------------------
HELD = table("| there is | usual, now | wanted | held | done |")


@pytest.mark.parametrize("row", HELD, ids=[row["held"] for row in HELD])
def test_what_is_done_where_an_axis_is_held(row: Row) -> None:
    axis, _, direction = row["held"].partition(".")
    usual, _, now = row["usual, now"].partition(", ")
    change = {axis: {direction: {"updatePolicy": {"updateMode": "Off"}}}}
    decision = decided(
        read_pods(row["there is"]), parse_cpu(now) // 2, Usually(parse_cpu(usual), 3), PLAIN, change
    )
    assert wanted(decision) == read_pods(row["wanted"])
    assert result(decision) == read_pods(row["done"])
    assert {entry.reason for entry in decision.blocked} == {"UpdatePolicy"}


@pytest.mark.parametrize(("minutes", "expected"), [(5, "3 × 1"), (6, "3 × 1500m")])
def test_a_count_that_is_held_for_no_more_than_five_minutes_is_waited_for(
    minutes: int, expected: str
) -> None:
    scaled = {"horizontal": {"lastScaleTime": build.stamp(build.at(minutes=minutes - 10))}}
    change = {"hpa": {"scaleUp": {"stabilizationDuration": "10m"}}}
    decision = decided(read_pods("3 × 1"), 2250, Usually(3000, 3), PLAIN, change, scaled)
    assert [entry.reason for entry in decision.blocked] == ["StabilizationWindow"]
    assert "only where the count is held for more than 5 minutes" in ONE_LINE
    assert result(decision) == read_pods(expected)


def test_larger_and_fewer_pods_take_two_patches() -> None:
    first = decided(read_pods("6 × 500m"), 1500, Usually(3000, 3), PLAIN)
    second = decided(result(first), 1500, Usually(3000, 3), PLAIN)
    assert [entry.reason for entry in first.blocked] == ["PodReplacement"]
    told = [pods(*result(one)[:2]) for one in (first, second)]
    assert f"from 6 × 500m with 3 cores needed, first {told[0]}, then {told[1]}." in ONE_LINE
    assert result(decided(result(second), 1500, Usually(3000, 3), PLAIN)) == result(second)


@pytest.mark.parametrize("minutes", [0, 5])
def test_saturation_is_told(minutes: int) -> None:
    decision = decided(read_pods("3 × 1"), 7000, Usually(3000, 3), PLAIN, None, short_for(minutes))
    ready = next(one for one in decision.status.conditions if one.type == "Ready")
    told = f"14 cores, with the manifest below: {pods(*wanted(decision)[:2])}, after 5 minutes."
    assert told in ONE_LINE
    assert ready.reason == "Saturated"
    assert (result(decision) == wanted(decision)) is (minutes == 5)


def test_small_differences() -> None:
    told = [
        (used, result(decided(read_pods("5 × 1"), used, Usually(3000, 3), PLAIN))[0]) for used in (1850, 1800)
    ]
    assert told == [(1850, 5), (1800, 4)]
    assert "With pods of 1 core, 3.7 cores keep 5 of them, and 3.6 are served by 4." in ONE_LINE


def test_without_weight_memory_stays_unless_the_path_names_cpu_alone() -> None:
    targets = {"cpu": "750m", "memory": "900M"}
    fixed_size = decided(
        read_pods("3 × 500m"),
        750,
        Usually(1500, 3),
        targets,
        {"weightBasedScalingIntervals": [{"vpaWeight": 0}]},
    )
    interval = {"maxReplicas": 6, "maxResources": {"cpu": "500m"}, "extrapolation": "horizontalOnly"}
    change = {"weightBasedScalingIntervals": None, "trajectory": {"intervals": [interval]}}
    named = decided((3, 500, 2 * GIGA), 750, Usually(1500, 3), targets, change)
    assert (wanted(fixed_size), wanted(named)) == ((3, 500, GIGA), (3, 500, GIGA))
    larger = decided((3, 500, GIGA), 750, Usually(1500, 3), {"cpu": "750m", "memory": "3G"}, change)
    assert wanted(larger) == (3, 500, 3 * GIGA)


# --- demand ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("replicas", "reading"),
    [(3, jointly.utilization("cpu", 50, 50, "500m")), (3, jointly.value("cpu", "700m", "700m"))],
    ids=["Utilization", "AverageValue"],
)
def test_what_is_needed_is_told_in_requests(replicas: int, reading: Any) -> None:
    decision = build.decided(jointly.state(replicas, readings=[reading], targets={"app": {"cpu": "750m"}}))
    (item,) = jointly.view(decision).items
    assert item.present == 3000
    assert (
        "used × 100 / averageUtilization. At 50 percent, pods that use 1500m together need 3 cores."
        in ONE_LINE
    )
    assert "At 700m and 1 core, pods that use 2100m need 3 cores." in ONE_LINE


def test_usual_demand_goes_half_the_way_in_a_day() -> None:
    mean = Mean(0.0, weight_since(None, build.NOW), build.NOW, 100.0)
    ways = [mean.at(build.NOW + dt.timedelta(days=days)).mean for days in (1, 2)]
    assert [round(one, 6) for one in ways] == [50, 75]
    assert "a day later the mean has gone 50 percent of the way, two days later 75 percent" in ONE_LINE


def test_additive_can_end_at_more() -> None:
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    target = build.workload(1)
    seen = build.objects(
        build.hvpa(spec), target, build.hpa(5, 250, replicas=1), build.vpa({"app": {"cpu": "5"}})
    )
    blended = build.decided(seen)
    made = path(spec, 1000, 8000, Bounds(1, 10)).point({CPU: 5000})
    assert (jointly.count(blended), jointly.requests(blended)["cpu"]) == (3, 3000)
    told = "For a demand that rises from 1 to 5 cores, at weight 50, it can go from 1 pod of 1 core to 3 of 3: 9 cores."
    assert f"{told} The path has {made.replicas} of {format_cpu(made.sizes[CPU])}." in ONE_LINE


# --- the picture -----------------------------------------------------------------------------------------------------
def words(svg: str) -> set[str]:
    """What is written in a drawing: matplotlib draws letters as shapes, and says in comments which."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    comment: Any = ET.Comment
    return {(one.text or "").strip() for one in ET.fromstring(svg, parser).iter() if one.tag is comment}


def test_the_picture_is_what_the_command_draws(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (command,) = (
        line
        for line in (DOCS / "joint-scaling.md").read_text().splitlines()
        if line.startswith("hvpa explain -f")
    )
    drawn = tmp_path / "path.svg"
    words_of_command = command.replace("docs/path.svg", str(drawn)).replace(
        "docs/path.yaml", str(DOCS / "path.yaml")
    )
    assert main(words_of_command.split()[1:]) == 0
    told = capsys.readouterr().out
    assert {"usual demand: 3 × 2", "now: 3 × 2", "wanted: 5 × 2", "usually 6", "needs 9"} <= words(
        drawn.read_text()
    )
    assert words((DOCS / "path.svg").read_text()) == words(drawn.read_text())
    assert "wanted: 5 replicas of app cpu 2\n" in told
    assert (
        "In the picture 6 cores are usual: 3 pods of 2 cores. Now it is 9 cores: 5 pods of 2 cores"
        in ONE_LINE
    )
    assert "keep their size until 9 cores become usual" in ONE_LINE
    assert "the pods that there are, both at 3 of 2 cores, and what is wanted: 5 of 2 cores." in ONE_LINE


def test_the_path_of_the_picture() -> None:
    (hvpa, *_) = yaml.safe_load_all((DOCS / "path.yaml").read_text())
    spec = {"weightBasedScalingIntervals": hvpa["spec"]["weightBasedScalingIntervals"]}
    (policy,) = hvpa["spec"]["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
    base, upper = (parse_cpu(policy[name]["cpu"]) for name in ("minAllowed", "maxAllowed"))
    curve = path(spec, base, upper, Bounds(1, 10)).curves[CPU]
    assert validate_manifest(hvpa) == []
    assert "from 1 pod of 1 core to 8 of 8 cores, and is flat from there" in ONE_LINE
    assert [curve.top(count) for count in (1, 7, 8, 9, 10)] == [1000, 7000, 8000, 8000, 8000]


# --- what is left ----------------------------------------------------------------------------------------------------
_SCALE = {"m": 0.001, "M": 1e6, "G": 1e9}


def _amount(text: str) -> float:
    number, suffix = re.fullmatch(r"([\d.]+)([mMG]?)", text).groups()  # type: ignore[union-attr]
    return float(number) * _SCALE.get(suffix, 1)


def test_equations_are_right() -> None:
    found = re.findall(r"([\d.]+[mMG]?(?: [×/] [\d.]+[mMG]?)+) = ([\d.]*\d[mMG]?)", ONE_LINE)
    assert len(found) == 12
    for left, right in found:
        first, *rest = left.split(" ")
        value = _amount(first)
        for operator, operand in zip(rest[::2], rest[1::2], strict=True):
            value = value * _amount(operand) if operator == "×" else value / _amount(operand)
        assert value == pytest.approx(_amount(right), rel=0.001), left


def test_defaults_and_delays() -> None:
    assert Margin(percentage=10) == DEFAULT_OVERLAP
    assert Settings().hpa_tolerance_ppm == 100_000
    assert BAND * DEFAULT_OVERLAP.percentage == 20
    assert "by no more than twice the overlap, 20 percent" in ONE_LINE
    assert "more than the HPA's tolerance, 10 percent" in ONE_LINE
    assert "`overlap` to spare, 10 percent by default: to demand / 0.9 / request" in ONE_LINE
    assert "any larger one up to that of usual demand / 0.9." in ONE_LINE
    assert "no more than 10 percent below what it takes when" in ONE_LINE
    assert "is less than 10 percent off in all of them" in ONE_LINE
    assert HPA_WINDOW == 5 * 60
    assert "`hpa.scaleDown.stabilizationDuration`, or of 5 minutes" in ONE_LINE
    assert dt.timedelta(days=1) == HALF_LIFE
    assert "and not lowered for a day" in ONE_LINE


@pytest.mark.parametrize("field", ["overlap", "baseResourcesPerReplica"])
def test_the_largest_percentage(field: str) -> None:
    problems = [
        validate_manifest(
            {**SHOP, "spec": {**SHOP["spec"], "trajectory": {field: {"cpu": {"percentage": one}}}}}
        )
        for one in (90, 91)
    ]
    assert [len(one) for one in problems] == [0, 1]
    assert "at most 90 percent" in ONE_LINE


def test_memory_that_is_not_measured_comes_and_goes_with_cpu() -> None:
    targets = {"cpu": "1", "memory": "2500M"}
    decision = decided((4, 1000, 2500 * 10**6), 500, Usually(4000, 5), targets)
    view = jointly.view(decision)
    cpu, memory = (next(item for item in view.items if item.key == key) for key in (CPU, MEMORY))
    assert f"usually 4 cores, which take {cpu.usual_replicas} pods; there were 5 on average;" in ONE_LINE
    told = f"Then n = {view.mean_replicas:.0f}, and usual memory is {format_memory(memory.usual or 0)}."
    assert f"the VPA says 1 core and 2500M. {told}" in ONE_LINE
    assert wanted(decision) == (2, 1000, 2500 * 10**6)
