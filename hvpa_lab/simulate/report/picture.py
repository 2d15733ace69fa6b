"""A simulation's plots as a PNG, with a column for each scenario. Needs matplotlib (the extra `plots`).

The same results give the same bytes: the picture has no date or version, and ignores the user's style.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib import dates
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hvpa_lab.simulate.model import SimulationResult
from hvpa_lab.simulate.report.plots import PlotLine, SeriesPanel, colour, dash, panels
from hvpa_lab.simulate.report.text import plain_text, short, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 11.0
"""Width of a scenario, in inches."""
ROW: Final = 1.55
"""Height of a panel, in inches."""
HEAD: Final = 1.1
"""Height above the panels in inches, including a legend of two rows."""
LEGEND_ROW: Final = 0.2
"""Height of each further row of the legend, in inches."""
MOST_COLUMNS: Final = 6
LONGEST_LABEL: Final = 30
DPI: Final = 110
INK: Final = "#44484d"
GRID: Final = "#e3e5e8"
STYLE: Final[Any] = {
    "axes.edgecolor": "#b6babf",
    "axes.facecolor": "white",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": "#1b1e21",
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.parse_math": False,
    "timezone": "UTC",
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}
LINE_STYLES: Final[Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def to_png(results: Sequence[SimulationResult]) -> bytes:
    """The PNG with all results."""
    drawn = [(result, panels(result)) for result in results]
    rows = max((len(parts) for _, parts in drawn), default=0) or 1
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        head = HEAD + max((_beyond(result) for result in results), default=0.0)
        figure = Figure(figsize=(WIDTH * max(1, len(drawn)), head + ROW * rows), dpi=DPI)
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, max(1, len(drawn)), sharex="col", squeeze=False)
        for column, (result, parts) in enumerate(drawn):
            _scenario(result, parts, [row[column] for row in grid])
        height = figure.get_figheight()
        figure.subplots_adjust(0.55 / WIDTH, 0.4 / height, 1 - 0.3 / WIDTH, 1 - head / height, 0.08, 0.34)
        file = io.BytesIO()
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _scenario(result: SimulationResult, parts: Sequence[SeriesPanel], axes: Sequence[Axes]) -> None:
    for ax, panel in zip(axes, parts, strict=False):
        _panel(result, panel, ax)
    top, bottom = axes[0], axes[-1]
    locator = dates.AutoDateLocator(tz=dt.UTC)  # type: ignore[no-untyped-call]
    bottom.xaxis.set_major_locator(locator)
    formatter = dates.ConciseDateFormatter(locator, tz=dt.UTC)  # type: ignore[no-untyped-call]
    bottom.xaxis.set_major_formatter(formatter)
    bottom.set_xlim(_date(result, 0.0), _date(result, result.duration))
    top.annotate(
        short(plain_text(result.name), 80),
        (0, 1.62),
        (0, _beyond(result) * 72),
        xycoords="axes fraction",
        textcoords="offset points",
        annotation_clip=False,
        fontsize=13,
        fontweight="bold",
    )
    handles = [
        Line2D([], [], color=colour(at), linestyle=LINE_STYLES[dash(at)], linewidth=2.2)
        for at in range(len(result.policies))
    ]
    if handles:
        top.legend(
            handles,
            _labels(result),
            loc="lower left",
            bbox_to_anchor=(-0.005, 1.18),
            ncols=_columns(result),
            frameon=False,
            fontsize=9,
            borderpad=0,
        )


def _labels(result: SimulationResult) -> list[str]:
    """The policies' names, after a hair space: matplotlib hides a name that begins with an underscore."""
    return [f"\u200a{short(plain_text(policy.name), LONGEST_LABEL)}" for policy in result.policies]


def _columns(result: SimulationResult) -> int:
    """Number of columns of the legend: as many as fit, by the longest name."""
    longest = max(map(width, _labels(result)), default=0)
    return max(1, min(MOST_COLUMNS, int((WIDTH - 0.85) / (0.6 + 0.078 * longest))))


def _beyond(result: SimulationResult) -> float:
    """Height that the legend needs beyond `HEAD`, in inches."""
    return LEGEND_ROW * max(0, math.ceil(len(result.policies) / _columns(result)) - 2)


def _panel(result: SimulationResult, panel: SeriesPanel, ax: Axes) -> None:
    ax.set_title(f"{panel.title}, {panel.unit}")
    for line in panel.lines:
        _line(result, line, ax)
    if result.warm_up:
        ax.axvspan(_date(result, 0.0), _date(result, result.warm_up), color="#f0f1f3", zorder=0)
    ax.set_ylim(bottom=0.0)


def _line(result: SimulationResult, line: PlotLine, ax: Axes) -> None:
    ax.plot(
        [_date(result, at * result.step) for at in line.indices],
        [math.nan if value is None else value for value in line.values],
        color="#6b7178" if line.policy is None else colour(line.policy),
        linestyle=LINE_STYLES[line.dash],
        linewidth=0.8 if line.dash == "dot" else 1.2,
        drawstyle="steps-post" if line.steps else "default",
        alpha=0.7 if line.dash == "dot" else 1.0,
        zorder=2 if line.policy is None else 3 - line.policy / 1000,  # the first policy on top
    )


def _date(result: SimulationResult, seconds: float) -> float:
    """The instant as matplotlib's number: days since 1970."""
    return (result.start.timestamp() + seconds) / 86400
