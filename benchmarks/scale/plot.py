"""The picture of the scale benchmark: what the operator costs, against the number of Hvpas."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.joint.plot import STYLE
from benchmarks.scale.report import ROWS, Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: Final = (
    (
        "CPU per Hvpa, ms",
        {
            "a step": "step: CPU per Hvpa, ms",
            "bare client": "step: CPU of the bare client per Hvpa, ms",
            "creation": "creation: CPU per Hvpa, ms",
        },
    ),
    ("resident memory, MB", {"most": "memory: resident, the most of all phases, MB"}),
    (
        "from status to patch, ms",
        {
            "step, median": "step: last status to patched workload, median, ms",
            "step, p99": "step: the same, p99, ms",
            "trickle, p99": "trickle: the same, p99, ms",
        },
    ),
    (
        "all done, s",
        {
            "creation": "creation: all HPAs and VPAs exist after, s",
            "step": "step: first status to last patched workload, s",
            "its floor": "step: the floor of that, s",
            "start-up": "start-up: first patch after, s",
        },
    ),
)
"""Title, and label -> row of the table."""
COLOURS: Final = ("#7570b3", "#d95f02", "#1b9e77", "#e7298a")
WIDTH: Final = 3.2
"""Inches of a panel."""


def to_svg(results: Sequence[Figures]) -> bytes:
    """The picture; dotted lines are goals. The same results give the same bytes."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**STYLE, "svg.hashsalt": "scale"})
        figure = Figure(figsize=(WIDTH * len(PANELS), WIDTH), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(1, len(PANELS), squeeze=False)[0]
        for ax, (title, lines) in zip(panels, PANELS, strict=True):
            _panel(ax, title, lines, results)
        figure.supxlabel("dotted: goals", fontsize=7)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _panel(ax: Axes, title: str, lines: dict[str, str], results: Sequence[Figures]) -> None:
    ax.set_title(title)
    ax.set_xlabel("Hvpas")
    ax.set_xscale("log")
    ax.set_yscale("log")
    rows = {row.label: row for row in ROWS}
    for (label, name), colour in zip(lines.items(), COLOURS, strict=False):
        row = rows[name]
        points = [(f["hvpas"], value) for f in results if (value := row.value(f)) is not None]
        if not points:
            continue
        ax.plot(
            *zip(*points, strict=True), color=colour, marker="o", markersize=4, linewidth=1.2, label=label
        )
        if row.goal is not None:
            limits = [
                (f["hvpas"], limit) for f in results if (limit := row.goal.limit(f["hvpas"])) is not None
            ]
            if limits:
                ax.plot(*zip(*limits, strict=True), color=colour, linestyle=":", linewidth=1.2)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, high / 10), high)
    if ax.lines:
        ax.legend(frameon=False, fontsize=7)
