"""The plot of the kept evidence: for each kind of workload and of resizes, the line of HPA and VPA through their
headrooms, joint scaling, other policies, and the oracle."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.joint.kept import Kept, Line, Place
from benchmarks.joint.policies import BASELINE, POLICY
from benchmarks.joint.report import NAMES, RESIZES, at_default, kinds, limit_beside, mean, of_kind, point

COLOURS: Final = {BASELINE: "#555555", POLICY: "#1f6fd6"}
_OTHERS: Final = "#b7791f"
_ORACLE: Final[dict[str, Any]] = {
    "xycoords": ("axes fraction", "data"),
    "xytext": (0, 2),
    "textcoords": "offset points",
    "ha": "right",
    "color": "#2f855a",
    "fontsize": 6,
}


def draw(kept: Kept) -> str:
    """Return the plot as SVG; the same results give the same text."""
    kinds_of_pods = kinds(kept)
    with mpl.rc_context({"svg.hashsalt": "evidence", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(10, 5.2), layout="constrained")
        panels = figure.subplots(2, 4, sharex=True, sharey=True, squeeze=False)
        for panel in panels.flat:
            panel.set_visible(False)
        for resize, workload in kinds_of_pods:
            panel = panels[list(RESIZES).index(resize)][list(NAMES).index(workload)]
            panel.set_visible(True)
            _panel(panel, of_kind(kept, resize, workload), f"{NAMES[workload]},\n{RESIZES[resize]}")
        figure.supxlabel("unmet demand beside HPA and VPA with their default headroom (1: as much)")
        figure.supylabel("cost beside theirs")
        return svg(figure)


def svg(figure: Figure) -> str:
    """Return the figure as SVG without a date."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _panel(panel: Axes, places: Sequence[Place], title: str) -> None:
    panel.set_title(title, fontsize=7)
    panel.set_xscale("log")
    oracle = limit_beside(places)
    panel.axhline(oracle, color="#2f855a", linestyle="--", linewidth=1)
    panel.annotate("oracle", (0.98, oracle), **_ORACLE)
    policies = dict.fromkeys((line.policy, line.target) for place in places for line in place.lines)
    for policy in dict.fromkeys(name for name, _ in policies):
        points = [_point(places, policy, target) for name, target in policies if name == policy]
        colour = COLOURS.get(policy, _OTHERS)
        panel.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1, color=colour)
        where = (3, -8) if policy in COLOURS else (3, 3)
        panel.annotate(policy, points[-1], xytext=where, textcoords="offset points", color=colour, fontsize=6)


def _point(places: Sequence[Place], policy: str, target: int) -> tuple[float, float]:
    """Return unmet demand and cost relative to HPA and VPA with the default headroom: geometric means over the
    loads."""
    unmet, cost = [], []
    for place in places:
        seeds = range(len(place.oracle))
        own, base = point(_line(place, policy, target), seeds), point(at_default(place, BASELINE), seeds)
        unmet.append(math.exp(own.unmet - base.unmet))
        cost.append(own.cost / base.cost)
    return mean(unmet), mean(cost)


def _line(place: Place, policy: str, target: int) -> Line:
    (matching,) = (line for line in place.lines if (line.policy, line.target) == (policy, target))
    return matching
