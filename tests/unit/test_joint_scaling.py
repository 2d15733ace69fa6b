"""docs/joint-scaling.md: the numbers on the page are what the code makes of its tables and manifests, and who follows
its steps is right."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import build
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu, parse_memory
from hvpa.cli.main import main
from hvpa.core import Decision, Settings
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import DEFAULT_OVERLAP, Point, ResourceKey
from hvpa.core.path.path import Path as ScalingPath
from hvpa.core.recommenders.manifests import HPA_WINDOW
from hvpa.core.trajectory.config import path_of
from hvpa.core.trajectory.means import Mean, weight_since
from hvpa.core.values import tuning
from hvpa.core.values.arithmetic import RequestBounds, ceil_div
from hvpa.core.values.tuning import SETTLING
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.containers import ContainerResource
from tests.unit.core.trajectory import jointly

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "joint-scaling.md").read_text()
ONE_LINE = " ".join(PAGE.split())
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
GIB, GIGA = 1024**3, 10**9
FIVE_ROWS, WEIGHTS, WRITTEN, BASE_USAGE, SHOP = map(
    yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
)
PLAIN = {"cpu": "1", "memory": "1G"}
"""The VPA's targets, where they do not matter."""
TEN = Bounds(1, 10)
Row = dict[str, str]
Pods = tuple[int, int, int]
"""How many, and what each requests: millicores, bytes."""


# --- what the page has -----------------------------------------------------------------------------------------------
def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(header: str) -> list[Row]:
    """The rows of the page's table that begins with this header, by column (a second column of a name gets a `'`)."""
    _, separator, rest = PAGE.partition(f"\n{header}\n")
    assert separator, header
    names: list[str] = []
    for name in cells(header):
        names.append(f"{name}'" if name in names else name)
    return [dict(zip(names, cells(line), strict=True)) for line in rest.partition("\n\n")[0].splitlines()[1:]]


def pods(replicas: int, cpu: int) -> str:
    """Pods as the page writes them."""
    return f"{replicas} × {format_cpu(cpu)}"


def read_pods(text: str) -> Pods:
    """The pods that the page writes; memory 1G where it names none."""
    count, _, sizes = text.partition(" × ")
    cpu, _, memory = sizes.partition(", ")
    return int(count), parse_cpu(cpu), parse_memory(memory or "1G")


# --- what the code makes of it ---------------------------------------------------------------------------------------
def path(change: Mapping[str, Any], base: int, upper: int, counts: Bounds, memory: int = 0) -> ScalingPath:
    """The path of an Hvpa with minAllowed `base` and maxAllowed `upper` (millicores)."""
    spec = build.hvpa({"blend": "Trajectory", "weightBasedScalingIntervals": None, **change}).spec
    assert spec is not None
    items = [ContainerResource("app", "cpu", base, None, base, RequestBounds(base, upper), True)]
    if memory:
        items.append(ContainerResource("app", "memory", memory, None, memory, RequestBounds(), True))
    return path_of(spec, items, {CPU: base, MEMORY: memory}, counts, vertical_only=False)


def of_weight(weight: int, base: int = 1000, upper: int = 8000) -> ScalingPath:
    """The path of one weight for all counts."""
    return path({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, base, upper, TEN)


def decided(
    there: str | Pods,
    used: int,
    usual_cpu: int = 3000,
    targets: Mapping[str, str] = PLAIN,
    change: Mapping[str, Any] | None = None,
    axes: Mapping[str, Any] | None = None,
) -> Decision:
    """What is decided about the page's last manifest with a `change`: pods that there are, CPU that all of them use
    (millicores), the usual demand for CPU, the VPA's targets, and what `axes` remember besides."""
    replicas, cpu, memory = read_pods(there) if isinstance(there, str) else there
    each = ceil_div(used, replicas)
    reading = jointly.utilization("cpu", 50, each * 100 // cpu, f"{each}m")
    time = build.stamp(build.NOW)
    mean = {"container": "app", "resource": "cpu", "mean": usual_cpu, "weight": 86400, "present": used * 2}
    known = {
        "base": {"app": {"cpu": "500m", "memory": "1G"}},
        "usualDemand": [{**mean, "time": time}],
    }
    spec = build.merged(SHOP["spec"], change or {})
    spec.setdefault("weightBasedScalingIntervals", None)
    return build.decided(
        jointly.state(
            replicas,
            [jointly.app(f"{cpu}m", str(memory))],
            [reading],
            {"app": targets},
            {**spec, "targetRef": build.SPEC["targetRef"]},
            status={"axes": build.merged({"vertical": known}, axes or {})},
            desired=min(6, jointly.as_desired(replicas, reading)),
            hpa={"spec": {"maxReplicas": 6}},
        )
    )


def short_for(minutes: int) -> dict[str, Any]:
    """The axes where more CPU is wanted for so long."""
    since = build.stamp(build.at(minutes=-minutes))
    return {
        "vertical": {"pending": [{"container": "app", "resource": "cpu", "direction": "up", "since": since}]}
    }


def result(decision: Decision) -> Pods:
    """What is set."""
    sizes = jointly.requests(decision)
    return jointly.count(decision), sizes["cpu"], sizes["memory"]


def wanted(decision: Decision) -> tuple[int, int]:
    """Replicas and CPU that are wanted while nothing is held."""
    replicas, sizes = jointly.wanted(decision)
    return replicas, sizes[CPU]


def shown(point: Point) -> str:
    return pods(point.replicas, point.sizes[CPU])


# --- sentences with a number -----------------------------------------------------------------------------------------
CONSTANTS: list[tuple[object, object, list[str]]] = [
    (Margin(percentage=10), DEFAULT_OVERLAP, ["`overlap` to spare, 10 percent by default"]),
    (2, tuning.LOWER_OVERLAPS, ["lowers it if it is off by more than twice the overlap, 20 percent"]),
    (100_000, Settings().hpa_tolerance_ppm, ["more than the HPA's tolerance, 10 percent"]),
    (300, HPA_WINDOW, ["`hpa.scaleDown.stabilizationDuration`, or of 5 minutes"]),
    (
        dt.timedelta(days=1),
        tuning.HALF_LIFE,
        ["and does not lower it for a day", "their running mean: a value from a day ago counts half"],
    ),
    (
        dt.timedelta(seconds=60),
        SETTLING,
        ["For 60 seconds after HVPA changed their number, it removes no replica"],
    ),
    (
        dt.timedelta(minutes=5),
        tuning.NOT_WORTH_REPLACING,
        [
            "CPU must have been short for 5 minutes (held by `SustainedDemand`, with the time)",
            "HVPA does not fully serve a spike of less than 5 minutes",
            "only if the count is held for more than 5 minutes",
        ],
    ),
    (
        dt.timedelta(hours=6),
        tuning.SHRINKS_AFTER,
        [
            "once the lower value has been wanted for 6 hours without interruption",
            "with larger pods, and 6 hours later again",
            "Lower values of CPU and memory: after 6 hours",
        ],
    ),
    (
        dt.timedelta(minutes=5),
        tuning.STEADY,
        [
            "the largest minute of the last five",
            "For 5 minutes after the operator's start, HVPA scales nothing in or down",
        ],
    ),
    (120, tuning.JUMP_PERCENT, ["A measurement that is more than 20 percent above the largest minute"]),
    (115, tuning.SATURATED_PERCENT, ["Pods that use 115 percent of their CPU requests"]),
    (98, tuning.PINNED_PERCENT, ["or 98 percent of their limits"]),
    (150, tuning.BOOST_PERCENT, ["1.5 times the demand at that threshold"]),
    (50, tuning.DEFAULT_WEIGHT_PERCENT, ["the weights (50 if you set none)"]),
]


@pytest.mark.parametrize(("expected", "constant", "sentences"), CONSTANTS)
def test_a_constant_is_what_the_page_says(expected: object, constant: object, sentences: list[str]) -> None:
    assert expected == constant
    assert [sentence for sentence in sentences if sentence not in ONE_LINE] == []


def test_equations_are_right() -> None:
    def amount(text: str) -> float:
        number, suffix = re.fullmatch(r"([\d.]+)([mMG]?)", text).groups()  # type: ignore[union-attr]
        return float(number) * {"m": 0.001, "M": 1e6, "G": 1e9}.get(suffix, 1)

    equations = re.findall(r"([\d.]+[mMG]?(?: [×/] [\d.]+[mMG]?)+) = ([\d.]*\d[mMG]?)", ONE_LINE)
    assert len(equations) == 2
    for left, right in equations:
        first, *rest = left.split(" ")
        value = amount(first)
        for operator, operand in zip(rest[::2], rest[1::2], strict=True):
            value = value * amount(operand) if operator == "×" else value / amount(operand)
        assert value == pytest.approx(amount(right), rel=0.001), left


def test_the_manifests_are_valid() -> None:
    plain = {key: value for key, value in SHOP["spec"].items() if key != "weightBasedScalingIntervals"}
    for fragment in (FIVE_ROWS, WEIGHTS, WRITTEN, BASE_USAGE, SHOP["spec"]):
        assert validate_manifest({**SHOP, "spec": {**plain, **fragment}}) == []
    assert HvpaSpec.model_validate(SHOP["spec"]).joint


@pytest.mark.parametrize("field", ["overlap", "baseResourcesPerReplica"])
def test_the_largest_percentage(field: str) -> None:
    def problems(percentage: int) -> int:
        change = {"trajectory": {field: {"cpu": {"percentage": percentage}}}}
        return len(validate_manifest({**SHOP, "spec": {**SHOP["spec"], **change}}))

    assert (problems(90), problems(91)) == (0, 1)
    assert "at most 90 percent" in ONE_LINE


# --- paths -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weight", [0, 30, 50, 80, 100])
def test_the_shapes_by_weight(weight: int) -> None:
    rows = table("| demand | weight 0 | weight 30 | weight 50 | weight 80 | weight 100 |")
    assert "minReplicas 1, maxReplicas 10, `minAllowed` 1 core, `maxAllowed` 8 cores; one weight" in ONE_LINE
    assert len(rows) == 5
    for row in rows:
        assert row[f"weight {weight}"] == shown(of_weight(weight).point({CPU: parse_cpu(row["demand"])}))


@pytest.mark.parametrize("weight", [0, 30, 50, 80])
def test_the_formulas_of_a_weight(weight: int) -> None:
    curve = of_weight(weight, upper=10**9).curves[CPU]
    assert "n pods have at most base × n^(w / (1 - w)) each" in ONE_LINE
    assert "at most base × n^(1 / (1 - w)) together: base × n at weight 0, base × n² at weight 50" in ONE_LINE
    for count in range(1, 10):
        exact = 1000 * count ** (weight / (100 - weight))
        assert exact - 1e-6 <= (curve.top(count) or 0) < exact + 1


def test_a_weight_for_a_largest_demand() -> None:
    weight = 1 - math.log(5) / math.log(20)
    expected = f"1 - ln(5) / ln(20) = {weight:.3f}, so {math.ceil(weight * 100)}."
    assert (
        f"w = 1 - ln(n) / ln(D / b), rounded up. For 20 cores on 5 pods of base 1 core: {expected}"
        in ONE_LINE
    )
    assert [of_weight(percent).point({CPU: 20_000}).replicas for percent in (46, 47)] == [6, 5]
    assert "80 and above is nearly vertical: 2 pods serve 32 times the base" in ONE_LINE
    assert of_weight(80, 100, 10**6).curves[CPU].reach(2) == 32 * 100


def test_the_path_that_is_written_out() -> None:
    made = path(FIVE_ROWS, 500, 8000, Bounds(1, 5), 2 * GIB)
    demand = {CPU: 4000, MEMORY: 26 * GIB}
    counts, point = (
        {key: made.curves[key].count(amount) for key, amount in demand.items()},
        made.point(demand),
    )
    cpu, memory = (format_cpu(made.curves[CPU].top(3) or 0), format_memory(made.curves[MEMORY].top(4) or 0))
    assert 0 <= point.sizes[MEMORY] - 6656 * 1024**2 < 1000
    assert (
        f"A demand of 4 cores and 26Gi takes {counts[CPU]} replicas for CPU (3 × {cpu} cores),"
        f" {counts[MEMORY]} for memory (4 × {memory}), so there are {point.replicas}, of"
        f" {format_cpu(point.sizes[CPU])} core and {format_memory(point.sizes[MEMORY])} each (6656Mi"
    ) in ONE_LINE


def test_a_conversion_of_weights_to_intervals() -> None:
    made = {"by weights": path(WEIGHTS, 500, 3000, TEN), "by intervals": path(WRITTEN, 500, 3000, TEN)}
    by_count = table("| replicas | by weights | serve | by intervals | serve |")
    by_demand = table("| demand | by weights | by intervals |")
    assert "Base 500m, minReplicas 1, maxReplicas 10, `maxAllowed` 3 cores:" in ONE_LINE
    assert (len(by_count), len(by_demand)) == (7, 6)
    for (name, drawn), serve in zip(made.items(), ("serve", "serve'"), strict=True):
        for row in by_count:
            edge = drawn.curves[CPU].edge(int(row["replicas"]))
            assert [row[name], row[serve]] == [format_cpu(cpu or 0) for cpu in edge]
        for row in by_demand:
            assert row[name] == shown(drawn.point({CPU: parse_cpu(row["demand"])}))
    intervals = list(WRITTEN["trajectory"]["intervals"])
    more = {4: "667m", 5: "834m"}
    intervals[1:1] = [{"maxReplicas": n, "maxResources": {"cpu": size}} for n, size in more.items()]
    exact = path({"trajectory": {"intervals": intervals}}, 500, 3000, TEN).curves[CPU]
    assert "an interval for 4 replicas (667m) and one for 5 (834m) it is the same" in ONE_LINE
    assert all(exact.edge(n) == made["by weights"].curves[CPU].edge(n) for n in range(1, 11))


def test_base_usage() -> None:
    made = path({**BASE_USAGE, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}, 1000, 8000, TEN)
    work = 5 * made.curves[CPU].size_bounds.reserve.work(1000)
    point = made.point({CPU: work})
    count, size = point.replicas, point.sizes[CPU]
    assert f"weight 50 and base 1 core, 5 pods of 1 core do the work of {format_cpu(work)} cores" in ONE_LINE
    assert (
        f"takes {count} pods of {size}m: {work}m / {count} and the 200m. Together {count * size}m" in ONE_LINE
    )


def test_additive_can_end_at_more() -> None:
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    horizontal, vertical = build.hpa(5, 250, replicas=1), build.vpa({"app": {"cpu": "5"}})
    blended = build.decided(build.objects(build.hvpa(spec), build.workload(1), horizontal, vertical))
    assert (jointly.count(blended), jointly.requests(blended)["cpu"]) == (3, 3000)
    point = of_weight(50).point({CPU: 5000})
    assert (
        "If demand rises from 1 to 5 cores at weight 50, `Additive` can go from 1 pod of 1 core to 3 pods of 3:"
        " 9 cores."
        f" The path has {point.replicas} of {format_cpu(point.sizes[CPU])}."
    ) in ONE_LINE


# --- the picture -----------------------------------------------------------------------------------------------------
def test_the_picture_is_what_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = (line for line in PAGE.splitlines() if line.startswith("hvpa explain -f"))
    drawn = tmp_path / "path.html"
    command = command.replace("path.html", str(drawn)).replace("docs/path.yaml", str(DOCS / "path.yaml"))
    assert main(command.split()[1:]) == 0
    (cpu,) = json.loads(re.findall(r'id="data">(.*)</script>', drawn.read_text())[0])
    marks = {name: (mark["replicas"], mark["size"]) for name, mark in cpu["marks"].items()}
    assert marks == {"usual": (3, 2000), "now": (3, 2000), "wanted": (5, 2000)}
    assert {total["of"]: total["demand"] for total in cpu["totals"][:2]} == {"usual": 6000, "wanted": 9000}
    assert "wanted: 5 replicas of app cpu 2\n" in capsys.readouterr().out
    assert (
        "In the picture, 6 cores are usual: 3 pods of 2 cores. The present demand is 9 cores: 5 pods of 2 cores"
        in ONE_LINE
    )
    assert "keep their size until 9 cores become usual" in ONE_LINE
    assert "the present pods, both at 3 of 2 cores, and the wanted point: 5 of 2 cores." in ONE_LINE


def test_the_path_of_the_picture() -> None:
    (hvpa, *_) = yaml.safe_load_all((DOCS / "path.yaml").read_text())
    spec = {"weightBasedScalingIntervals": hvpa["spec"]["weightBasedScalingIntervals"]}
    (policy,) = hvpa["spec"]["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
    base, upper = (parse_cpu(policy[name]["cpu"]) for name in ("minAllowed", "maxAllowed"))
    curve = path(spec, base, upper, TEN).curves[CPU]
    assert validate_manifest(hvpa) == []
    assert "from 1 pod of 1 core to 8 of 8 cores, and is flat from there" in ONE_LINE
    assert [curve.top(count) for count in (1, 7, 8, 9, 10)] == [1000, 7000, 8000, 8000, 8000]


# --- demand ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("reading", "sentence"),
    [
        (
            jointly.utilization("cpu", 50, 50, "500m"),
            "used × 100 / averageUtilization. At 50 percent, pods that use 1500m together need 3 cores.",
        ),
        (jointly.value("cpu", "700m", "700m"), "At 700m and 1 core, pods that use 2100m need 3 cores."),
    ],
    ids=["Utilization", "AverageValue"],
)
def test_what_is_needed_is_stated_in_requests(reading: Any, sentence: str) -> None:
    decision = build.decided(jointly.state(3, readings=[reading], targets={"app": {"cpu": "750m"}}))
    (item,) = jointly.view(decision).items
    assert item.present == 3000
    assert sentence in ONE_LINE


def test_usual_demand_goes_half_the_way_in_a_day() -> None:
    mean = Mean(0.0, weight_since(None, build.NOW), build.NOW, 100.0)
    ways = [round(mean.at(build.NOW + dt.timedelta(days=days)).mean) for days in (1, 2)]
    expected = "the mean has gone {} percent of the way after one day, and {} percent after two"
    assert expected.format(*ways) in ONE_LINE


@pytest.mark.parametrize(("target", "memory"), [("900M", GIGA), ("1050M", GIGA), ("2500M", 2500 * 10**6)])
def test_memory_that_is_not_measured_follows_the_vpa(target: str, memory: int) -> None:
    assert result(decided("3 × 1", 1500, 3000, {"cpu": "1", "memory": target})) == (3, 1000, memory)
    assert "no metric measures, usually memory, requests the VPA's target and adds no replicas." in ONE_LINE


def test_saturated_pods_count_for_more() -> None:
    reading = jointly.utilization("cpu", 80, 120, "600m")
    decision = build.decided(
        jointly.state(4, [jointly.app("500m")], [reading], {"app": {"cpu": "600m"}}, desired=10)
    )
    assert (
        "use 600m each, and the target is 80 percent. The measured demand is 3 cores; HVPA serves 4313m"
        in ONE_LINE
    )
    assert jointly.view(decision).items[0].present == 3000
    size = jointly.requests(decision)["cpu"]
    assert jointly.count(decision) == 4 + ceil_div(4313 - 4 * 500, size), (
        "the four have 500m until they are replaced"
    )


# --- small differences, and what is held -----------------------------------------------------------------------------
HELD = table("| pods | usual, now | wanted | held | set |")


@pytest.mark.parametrize("row", HELD, ids=[row["held"] for row in HELD])
def test_what_is_done_where_an_axis_is_held(row: Row) -> None:
    axis, _, direction = row["held"].partition(".")
    usual, now = (parse_cpu(amount) for amount in row["usual, now"].split(", "))
    change = {axis: {direction: {"updatePolicy": {"updateMode": "Off"}}}}
    decision = decided(row["pods"], now // 2, usual, change=change)
    assert wanted(decision) == read_pods(row["wanted"])[:2]
    assert result(decision) == read_pods(row["set"])
    assert {entry.reason for entry in decision.blocked} == {"UpdatePolicy"}


def test_small_differences() -> None:
    assert [result(decided("5 × 1", used))[0] for used in (1850, 1800)] == [5, 4]
    assert "With pods of 1 core, 3.7 cores keep 5 of them, and 3.6 are served by 4." in ONE_LINE


def test_larger_and_fewer_pods_take_two_patches() -> None:
    first = decided("6 × 500m", 1500)
    second = decided(result(first), 1500)
    expected = [pods(*result(decision)[:2]) for decision in (first, second)]
    assert f"from 6 × 500m with 3 cores needed, first {expected[0]}, then {expected[1]}." in ONE_LINE
    assert result(decided(result(second), 1500)) == result(second)


@pytest.mark.parametrize("minutes", [0, 5])
def test_saturation_is_reported(minutes: int) -> None:
    decision = decided("3 × 1", 7000, axes=short_for(minutes))
    expected = f"14 cores, with the manifest below: {pods(*wanted(decision))}, after 5 minutes."
    assert expected in ONE_LINE
    assert build.condition(decision, "Ready").reason == "Saturated"
    assert (result(decision)[:2] == wanted(decision)) is (minutes == 5)


# --- predict it yourself ---------------------------------------------------------------------------------------------
LINES = table("| replicas | cpu of each | serve |")
SIZES = [parse_cpu(row["cpu of each"]) for row in LINES]


def test_the_lines_that_the_reader_writes_down() -> None:
    curve = jointly.view(decided("1 × 500m", 100, 500)).path.curves[CPU]
    assert len(LINES) == 6
    for row in LINES:
        edge = curve.edge(int(row["replicas"]))
        assert [row["cpu of each"], row["serve"]] == [format_cpu(cpu or 0) for cpu in edge]


def predicted(there: tuple[int, int], now: int, usual: int) -> tuple[int, int]:
    """The answer of somebody who follows steps 2 to 4."""
    count, cpu = there
    line = next((n for n, size in enumerate(SIZES, 1) if n * size >= usual), len(SIZES))
    size = min(2000, max(500, ceil_div(usual, line)))
    if -2 * (cpu // 10) <= size - cpu <= cpu // 10:
        size = cpu
    if ceil_div(now, size) > 6:
        size = min(2000, max(size, ceil_div(now, 6)))
    have = min(cpu, size)

    def pods_for(amount: int) -> int:
        of_those = ceil_div(amount, have)
        return of_those if of_those <= count else count + ceil_div(amount - count * have, size)

    if pods_for(now) >= count:
        replicas = pods_for(now) if pods_for(ceil_div(now * 10, 11)) > count else count
    else:
        replicas = min(count, max(pods_for(now), ceil_div(ceil_div(now * 10, 9), have)))
    return max(1, min(6, replicas)), size


@pytest.mark.parametrize("replicas", [1, 3, 4, 6])
def test_who_follows_the_steps_is_right(replicas: int) -> None:
    for cpu, now, usual in product((500, 900, 2000), (340, 1700, 4400, 13000), (400, 2500, 9700)):
        used = ceil_div(now // 2, replicas) * replicas
        if used * 100 >= 115 * replicas * cpu:
            continue  # saturated pods count for more
        decision = decided((replicas, cpu, GIGA), used, usual)
        assert wanted(decision) == predicted((replicas, cpu), used * 2, usual), (replicas, cpu, now, usual)
