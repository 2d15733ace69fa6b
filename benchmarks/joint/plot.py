"""The picture of `python -m benchmarks joint`: what each policy costs and how much demand it leaves unmet.

One panel for each load (rows) and workload (columns), one line for each policy through its points of the sweep; the
default headroom's point is the large one. Cheaper is lower, served better is further to the left. The same results give
the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.joint.policies import BASELINE, DEFAULT_TARGET
from benchmarks.joint.report import Done, done
from benchmarks.joint.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 4.4
"""Inches of a panel."""
HEIGHT: Final = 3.2
LINEAR: Final = 10.0
"""Core-seconds up to which the axis is linear; from there on each power of ten takes as much room."""
COLOURS: Final = ("#d95f02", "#7570b3", "#1b9e77", "#e7298a", "#66a61e", "#a6761d", "#1f78b4", "#666666")
"""Of policies, in their order; the baseline is black."""
STYLE: Final[Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e5e8",
    "font.family": ["DejaVu Sans"],
    "font.size": 8,
    "svg.hashsalt": "joint",
    "text.parse_math": False,
}


def to_svg(runs: Sequence[Run]) -> bytes:
    """The picture of all runs."""
    found = done(runs)
    loads = list(dict.fromkeys(one.run.load for one in found))
    workloads = list(dict.fromkeys(one.run.workload for one in found))
    policies = [name for name in dict.fromkeys(one.run.policy for one in found) if name != BASELINE]
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(policies)} | {BASELINE: "black"}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        size = (WIDTH * max(1, len(workloads)), HEIGHT * max(1, len(loads)) + 0.8)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        grid = figure.subplots(max(1, len(loads)), max(1, len(workloads)), squeeze=False)
        for row, load in zip(grid, loads, strict=False):
            for ax, workload in zip(row, workloads, strict=False):
                own = [one for one in found if (one.run.load, one.run.workload) == (load, workload)]
                _panel(ax, f"{load}, {workload}", own, colours)
                ax.set_visible(bool(own))
        figure.legend(handles=_legend(colours), loc="outside upper left", ncols=6, frameon=False)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _panel(ax: Axes, title: str, found: Sequence[Done], colours: dict[str, str]) -> None:
    ax.set_title(title)
    ax.set_xlabel("unmet demand, core-seconds")
    ax.set_ylabel("cost, core-hours + GiB-hours / 8")
    most = max((one.outcome.totals.unmet_core_seconds for one in found), default=0.0)
    ax.set_xscale("symlog", linthresh=LINEAR)
    ax.set_xticks([0, *(10**power for power in range(1, 9))])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    lines: dict[tuple[str, str], list[Done]] = {}
    for one in found:
        lines.setdefault((one.run.policy, one.run.resize), []).append(one)
    for (policy, resize), points in lines.items():
        points.sort(key=lambda one: one.run.target)
        ax.plot(
            [one.outcome.totals.unmet_core_seconds for one in points],
            [one.cost for one in points],
            color=colours[policy],
            linestyle="-" if resize == "Recreate" else "--",
            linewidth=1.2,
        )
        for one in points:
            usual = one.run.target == DEFAULT_TARGET
            ax.plot(
                one.outcome.totals.unmet_core_seconds,
                one.cost,
                color=colours[policy],
                marker="o" if resize == "Recreate" else "s",
                markersize=6 if usual else 3,
                zorder=4 if policy == BASELINE else 3,
                markerfacecolor=colours[policy] if resize == "Recreate" else "white",
            )
    ax.set_xlim(-1, max(10 * LINEAR, 1.5 * most))
    ax.set_ylim(0, 1.08 * max((one.cost for one in found), default=1.0))


def _legend(colours: dict[str, str]) -> list[Line2D]:
    kinds: tuple[tuple[str, Any, str], ...] = (("Recreate", "-", "o"), ("InPlace", "--", "s"))
    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    for label, style, marker in kinds:
        handles.append(Line2D([], [], color="#888888", linestyle=style, marker=marker, label=label))
    return handles
