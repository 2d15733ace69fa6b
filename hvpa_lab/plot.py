"""A path as an SVG picture: replicas against the request of each pod, a panel per container resource.

Lines of equal capacity cross it. Needs matplotlib (the extra `lab`). The same path gives the same bytes: the output
depends on no user style, date or version.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from hvpa.api.values.quantity import BINARY_SUFFIXES, Resource, format_resource
from hvpa.core.model import JointView
from hvpa.core.path.curve import ResourceCurve
from hvpa.core.path.path import ResourceKey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 7.6
"""Width of the picture in inches."""
PANEL: Final = 3.7
"""Height of a panel in inches, including its title."""
HEAD: Final = 0.75
"""Inches above the panels."""
FOOT: Final = 0.5
FEW_COUNTS: Final = 12
"""Minimum number of replica counts that are drawn, if the path has that many."""
LINES: Final = 7
"""Number of lines of equal capacity."""
TICKS: Final = 6
ROOM: Final = 0.05
"""Height of a label, as a fraction of the panel's height."""
FINE: Final = 120
"""Points of a line of equal capacity."""
MARGIN: Final = 0.12
"""Free space above the largest request, as a fraction of the panel."""
INK: Final = "#44484d"
STYLE: Final[Any] = {
    "axes.edgecolor": "#b6babf",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": "#1b1e21",
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "font.family": ["DejaVu Sans"],
    "svg.hashsalt": "hvpa",
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}
CURVE: Final = "#1f5fae"
CAPACITY: Final = "#b9bec5"
OUTSIDE: Final = "#f0f1f3"
_WHOLE: Final = 100
"""From this value on, an amount is shown in whole units."""


class MarkStyle(NamedTuple):
    """The look of a mark. Marks at the same point differ in size, so that all stay visible."""

    colour: str
    marker: str
    size: float
    filled: bool
    order: int
    word: str
    demand: str = ""

    def style(self, size: float) -> dict[str, Any]:
        """The style for matplotlib."""
        fill = self.colour if self.filled else "none"
        edge = {"markeredgecolor": self.colour, "markeredgewidth": 1.6}
        return {"marker": self.marker, "markersize": size, "markerfacecolor": fill, **edge}


USUAL: Final = MarkStyle("#8a5a00", "o", 14, False, 6, "usual demand", "usually")
CURRENT: Final = MarkStyle("#44484d", "s", 8, False, 7, "now")
WANTED: Final = MarkStyle("#b3261e", "D", 5.5, True, 8, "wanted", "needs")


class Mark(NamedTuple):
    """A point on the path."""

    look: MarkStyle
    replicas: int
    """The replica count."""
    sizes: Mapping[ResourceKey, int]
    """The request of each pod, in millicores or bytes."""
    demand: Mapping[ResourceKey, int]
    """The demand that the point serves, by container and resource, for its line of equal capacity."""


def draw(view: JointView, current_replicas: int, title: str) -> bytes:
    """The path of a decision, with the points of the usual demand, the current size and the wanted size."""
    usual = {item.key: item.usual for item in view.items if item.usual is not None}
    present = {item.key: item.present for item in view.items if item.present is not None}
    marks = [] if view.usual is None else [Mark(USUAL, view.usual.replicas, view.usual.sizes, usual)]
    marks.append(Mark(CURRENT, current_replicas, {item.key: item.current for item in view.items}, {}))
    marks.append(Mark(WANTED, view.wanted.replicas, view.wanted.sizes, present))
    curves, file = view.path.curves, io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        height = HEAD + PANEL * len(curves) + FOOT
        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(curves), 1, squeeze=False)
        for (key, curve), row in zip(curves.items(), grid, strict=True):
            PathPanel(key, curve, marks, row[0]).draw()
        figure.suptitle(title, x=0.1, y=1 - 0.2 / height, ha="left", fontsize=12)
        figure.subplots_adjust(0.1, FOOT / height, 0.87, 1 - (HEAD + 0.3) / height, 0, 0.36)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


class PathPanel:
    """The panel of one container resource."""

    def __init__(self, key: ResourceKey, curve: ResourceCurve, marks: Sequence[Mark], ax: Axes) -> None:
        self.key = key
        self.curve = curve
        self.marks = [mark for mark in marks if key in mark.sizes]
        self.ax = ax
        self.first, self.last = self._counts()
        self.left, self.right = self.first - 0.6, self.last + 0.6
        self.path_counts = range(curve.counts.lower, self.last + 1)
        self.height = self._height()

    def _counts(self) -> tuple[int, int]:
        """The replica counts that are shown: the whole path, unless it is too long."""
        lower, upper = self.curve.counts.lower, self.curve.counts.upper
        shown = [mark.replicas for mark in self.marks]
        last = max([lower + FEW_COUNTS, *(2 * count for count in shown)])
        last = last if upper is None else min(upper, last)
        return min([lower, *shown]), max([last, *shown])

    def _height(self) -> float:
        """The request at the upper edge."""
        tops = [self.curve.top(count) for count in self.path_counts]
        sizes = [*(top for top in tops if top is not None), *(mark.sizes[self.key] for mark in self.marks)]
        highest = max([*sizes, self.curve.size_bounds.base, 1])
        return highest * (2 if None in tops else 1) * (1 + MARGIN)

    def draw(self) -> None:
        """Draw the panel."""
        ax, resource, upper = self.ax, self.key.resource, self.curve.counts.upper
        ax.set_xlim(self.left, self.right)
        ax.set_ylim(0, self.height)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
        ticks = multiples(resource, self.height, TICKS)
        ax.set_yticks(ticks, [short(resource, tick) for tick in ticks])
        ax.set_title(f"{self.key.container} {resource}: request of each pod", pad=22)
        goes_on = " (the path goes on)" if upper is None else f" (the path goes on to {upper})"
        beyond = goes_on if upper is None or upper > self.last else ""
        ax.set_xlabel(f"replicas{beyond}", color=INK, fontsize=8, labelpad=2)
        self._bounds()
        self._capacities()
        self._curve()
        for mark in self.marks:
            style = mark.look.style(mark.look.size)
            at = mark.replicas, mark.sizes[self.key]
            ax.plot(*at, linestyle="none", zorder=mark.look.order, clip_on=False, **style)
        self._legend()

    # --- lines of equal capacity --------------------------------------------------------------------------------------
    def _capacities(self) -> None:
        """Draw round totals in grey, and each mark's demand in its colour, with labels at their ends."""
        work, resource = self.curve.size_bounds.reserve.work, self.key.resource
        taken: list[float] = []
        for mark in self.marks:
            demand, look = mark.demand.get(self.key), mark.look
            if demand:
                end = self._capacity(demand, look.colour, "--")
                text = f"{look.demand} {short(resource, demand)}{' ↑' if end > 1 else ''}"
                end = min(end, 1 - ROOM / 2)
                end += next(shift for shift in (0, ROOM, -ROOM, -2 * ROOM) if _is_free(end + shift, taken))
                self._label(end, text, look.colour, taken)
        for total in multiples(resource, self.last * work(int(self.height)), LINES)[1:]:
            end = self._capacity(total, CAPACITY, "-")
            if _is_free(end, taken):
                self._label(end, short(resource, total), INK, taken)

    def _capacity(self, total: int, colour: str, style: str) -> float:
        """Draw a line; returns its end at the right edge, as a fraction of the panel's height."""
        size = self.curve.size_bounds.reserve.size
        left = max(self.left, 0.05)
        xs = [left + (self.right - left) * at / FINE for at in range(FINE + 1)]
        ys = [size(max(1, round(total / x))) for x in xs]
        self.ax.plot(xs, ys, color=colour, linestyle=style, linewidth=0.8, zorder=1.5)
        return ys[-1] / self.height

    def _label(self, end: float, text: str, colour: str, taken: list[float]) -> None:
        """Label a line at its end, unless it ends above the panel."""
        if end <= 1:
            taken.append(end)
            self.ax.text(
                1.008, end, text, color=colour, fontsize=7.5, va="center", transform=self.ax.transAxes
            )

    # --- the path ----------------------------------------------------------------------------------------------------
    def _curve(self) -> None:
        """Draw the requests on the path at each replica count, from the size at which fewer replicas no longer suffice
        to the largest."""
        curve, ax = self.curve, self.ax
        xs, ys = [], []
        for count, low, top in self._stretches():
            ax.plot([count, count], [low, min(top, self.height)], color=CURVE, linewidth=2.4, zorder=3)
            xs.append(count)
            ys.append(min(top, self.height))
            if curve.top(count) is None:
                ax.plot(count, self.height * 0.985, marker="^", color=CURVE, markersize=6, zorder=4)
        ax.plot(xs, ys, color=CURVE, linewidth=0.7, alpha=0.5, zorder=2.5)
        ax.plot(xs, ys, color=CURVE, linestyle="none", marker="o", markersize=3.5, zorder=3.5)

    def _stretches(self) -> Iterator[tuple[int, float, float]]:
        """Replica count, and the smallest and the largest request of the path there."""
        curve, before = self.curve, 0
        for count in self.path_counts:
            low = max(curve.size_bounds.lower, curve.fixed_size(count))
            if before:
                low = curve.size(count, before + 1)
            top, reach = curve.top(count), curve.reach(count)
            yield count, low, self.height if top is None else max(low, top)
            if reach is None:
                return
            before = reach

    # --- bounds and legend -------------------------------------------------------------------------------------------
    def _bounds(self) -> None:
        """Draw the area out of bounds in grey."""
        ax, counts, sizes = self.ax, self.curve.counts, self.curve.size_bounds
        ax.axvspan(self.left, counts.lower - 0.35, color=OUTSIDE, linewidth=0, zorder=0)
        if counts.upper is not None:
            ax.axvspan(counts.upper + 0.35, self.right, color=OUTSIDE, linewidth=0, zorder=0)
        if sizes.lower:
            ax.axhspan(0, sizes.lower, color=OUTSIDE, linewidth=0, zorder=0)
        if sizes.upper is not None:
            ax.axhspan(sizes.upper, self.height, color=OUTSIDE, linewidth=0, zorder=0)

    def _legend(self) -> None:
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=CURVE, marker="o", markersize=3.5, linewidth=2.4)
        ]
        labels = ["the path"]
        for look, replicas, sizes, _ in self.marks:
            handles.append(Line2D([], [], color="none", **look.style(min(look.size, 9))))
            labels.append(f"{look.word}: {replicas} × {short(self.key.resource, sizes[self.key])}")
        handles += [Line2D([], [], color=CAPACITY, linewidth=0.8), Patch(color=OUTSIDE)]
        labels += ["same total", "out of bounds"]
        self.ax.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(-0.015, 0.985), ncols=len(labels), frameon=False,
            fontsize=7.5, handlelength=1.4, columnspacing=1.3, handletextpad=0.5,
        )  # fmt: skip


def _is_free(end: float, taken: Sequence[float]) -> bool:
    return all(abs(end - taken_end) >= 0.99 * ROOM for taken_end in taken)


# --- scales ----------------------------------------------------------------------------------------------------------
def step(resource: Resource, span: float, most: int) -> int:
    """The smallest round step (millicores, bytes) that fits into `span` at most `most` times.

    Round means 1, 2 or 5 followed by zeros, for memory a power of two. Example: CPU, span 900, most 6: 200.
    """
    least = max(1.0, span / most)
    if resource == "memory":
        return 1 << math.ceil(math.log2(least))
    power = 1
    while power * 10 < least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def multiples(resource: Resource, span: float, most: int) -> Sequence[int]:
    """Round amounts from 0 up to `span`, at most `most` besides the 0."""
    return range(0, int(span) + 1, step(resource, span, most))


def short(resource: Resource, amount: int) -> str:
    """An amount in a few characters: three digits are enough to read a plot."""
    if resource == "cpu":
        many = amount >= _WHOLE * 100 and amount % 1000
        return f"{amount / 1000:.1f}" if many else format_resource("cpu", amount)
    for suffix, unit in reversed(BINARY_SUFFIXES.items()):
        if amount >= unit:
            value = float(amount / unit)
            text = f"{value:.0f}" if value >= _WHOLE else f"{value:.2f}".rstrip("0").rstrip(".")
            return f"{text}{suffix}"
    return str(amount)
