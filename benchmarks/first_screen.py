"""The picture on the README's first screen, from kept results: the cost beside an HPA and a VPA in simulations, and the
seconds of slow requests after a jump of the load on a real node."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.joint.kept import FOLDER, Kept
from benchmarks.joint.plot import COLOURS, svg
from benchmarks.joint.policies import BASELINE, POLICY
from benchmarks.joint.report import NAMES, RESIZES, beside, of_kind
from benchmarks.node.jumps import BOTH, FAST, GOAL, HIGH, HPA, HVPA

FACTORS: Final = (5.0, 10.0)
"""The jumps that the picture shows. After a jump to twice the load, requests stay fast with each policy."""
WAYS: Final[Mapping[str, tuple[str, str]]] = {
    HPA: ("HPA alone", "#b5b5b5"),
    BOTH: ("HPA + VPA", COLOURS[BASELINE]),
    HVPA: ("HVPA", COLOURS[POLICY]),
    FAST: ("HVPA, fast signal", "#2f855a"),
}
"""Name and colour of each policy."""


class Slow(NamedTuple):
    """A policy after a jump: seconds with a P99 above the goal and percent of requests that failed, as medians, and the
    least and largest number of seconds."""

    seconds: float
    least: int
    largest: int
    failed: float


def slow() -> dict[tuple[float, str], Slow]:
    """Return the kept jumps on a real node (a kubelet with its defaults), by factor and policy."""
    runs: list[dict[str, Any]] = json.loads((FOLDER / "node.json").read_text())["jumps"]
    results = {}
    for factor, policy in dict.fromkeys((run["factor"], run["policy"]) for run in runs):
        own = [run for run in runs if (run["factor"], run["policy"]) == (factor, policy)]
        above = [run["above"] for run in own]
        failed = statistics.median(100 * run["failed"] / run["sent"] for run in own)
        results[factor, policy] = Slow(statistics.median(above), min(above), max(above), failed)
    return results


def draw(kept: Kept) -> str:
    """Return the picture as SVG; the same results give the same text."""
    with mpl.rc_context({"svg.hashsalt": "first screen", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _cost(left, kept)
        _felt(right, slow())
        return svg(figure)


def _cost(panel: Axes, kept: Kept) -> None:
    """Bars for each kind of workload: the cost for the same unmet demand, and its spread over seeds."""
    panel.set_title("Cost for the same unmet demand\n(HPA + VPA = 100 %, simulated)", fontsize=10)
    for place, (resize, colour) in enumerate(zip(RESIZES, (COLOURS[POLICY], "#9cc2ee"), strict=True)):
        results = [beside(of_kind(kept, resize, workload)) for workload in NAMES]
        at = [row + (place - 0.5) * 0.38 for row in range(len(NAMES))]
        costs = [round(100 * result.cost) for result in results]
        panel.barh(at, costs, 0.36, color=colour, label=f"pods {RESIZES[resize]}")
        for height, cost in zip(at, costs, strict=True):
            panel.annotate(f"{cost} %", (3, height), va="center", color="white" if not place else "black")
    panel.axvline(100, color=COLOURS[BASELINE], linewidth=1.5)
    panel.set_yticks(range(len(NAMES)), [name.replace(", ", ",\n") for name in NAMES.values()])
    panel.invert_yaxis()
    panel.set_xlim(0, 105)
    panel.set_xticks(range(0, 101, 20), [f"{percent} %" for percent in range(0, 101, 20)])
    _finish(panel)


def _felt(panel: Axes, results: Mapping[tuple[float, str], Slow]) -> None:
    """Bars for each jump and policy: median, least and largest number of slow seconds, and failed requests."""
    panel.set_title(
        f"Slow seconds after a load jump\n(P99 above {GOAL:.0f} ms; real node, {HIGH:.0f} s watched)",
        fontsize=10,
    )
    width = 0.8 / len(WAYS)
    for place, (policy, (name, colour)) in enumerate(WAYS.items()):
        shown: Sequence[Slow] = [results[factor, policy] for factor in FACTORS]
        at = [group + (place - (len(WAYS) - 1) / 2) * width for group in range(len(FACTORS))]
        spread = [[one.seconds - one.least for one in shown], [one.largest - one.seconds for one in shown]]
        panel.bar(at, [one.seconds for one in shown], width * 0.92, color=colour, label=name)
        panel.errorbar(at, [one.seconds for one in shown], spread, fmt="none", ecolor="black", elinewidth=1)
        for position, one in zip(at, shown, strict=True):
            panel.annotate(f"{one.seconds:.0f} s", (position, one.largest + 2), ha="center", fontsize=9)
    panel.set_xticks(range(len(FACTORS)), [f"to {factor:.0f} times the load" for factor in FACTORS])
    panel.set_ylim(0, HIGH)
    _finish(panel)


def _finish(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.45, -0.1), ncols=2, frameon=False)
