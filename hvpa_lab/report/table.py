"""A report as text: the requests of each workload now and with each blend, its risks, and totals at the end.

Lines have at most WIDTH columns, unless they can't be broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import RESOURCES
from hvpa.api.values.text import names, printable
from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.report.groups import Sums, groups, named, sums
from hvpa_lab.report.inventory import BLENDS, Inventory, Subject
from hvpa_lab.report.risks import human
from hvpa_lab.report.rows import HOURS_PER_MONTH, Amount, Report, Row

WIDTH: Final = 100
_COLUMNS: Final = (10, 5, 8, 8, 9, 9, 11, 9, 9, 11)
"""Widths: label, pods, a pod's cores and GiB, all pods' cores, GiB and cost, and the three differences."""
_GROUPS: Final = ((1, ""), (2, "each pod"), (3, "all pods"), (3, "difference to now"))
"""Headings above the columns after the label: number of columns, and text."""
_NAMES: Final = ("pods", "cores", "GiB", "cores", "GiB", "per month", "cores", "GiB", "per month")
_INDENT: Final = "  "
_GROUP_COLUMNS: Final = (13, 5, 7, 8, 4, 4, 7, 8, 10, 10, 8, 5)
"""Widths: label, workloads, requested cores and GiB, used percent of both, cores and GiB with Hvpas, saving, the sure
part of it, restarts, and workloads with risks."""
_GROUP_TOPS: Final = ((1, ""), (2, "now"), (2, "used"), (2, "with Hvpas"), (2, "saving"))
_GROUP_NAMES: Final = (
    "count", "cores", "GiB", "cpu", "mem", "cores", "GiB", "per month", "sure", "restarts", "risks",
)  # fmt: skip


def to_text(report: Report, top: int | None = None) -> str:
    """The report without a final line break: all groups, and the first `top` workloads (None: all).

    Text from other clients can't break a line or move the terminal's cursor.
    """
    blocks = [
        _head(report),
        [line for note in report.inventory.around.notes for line in _wrapped(note, "", "")],
    ]
    if report.rows:
        shown = report.rows[:top]
        blocks.append(_groups(report))
        blocks.append(_shown(report, len(shown)))
        blocks += [_heading(), *(_block(row, report.prices) for row in shown), _totals(report)]
    blocks.append(_rest(report.inventory))
    return "\n\n".join("\n".join(printable(line) for line in block) for block in blocks if block)


def _head(report: Report) -> list[str]:
    prices = report.prices
    lines = [
        f"Sizes that an Hvpa would set at {format_timestamp(report.at)} if no gate held them back. Nothing was "
        "changed.",
        "Additive: the next step towards the recommendations of HPA and VPA; more steps follow. Trajectory: the "
        "final replicas and requests for the demand of now and of the last day.",
        f"Without an Hvpa: vertical weight {report.inventory.vpa_weight} if there are an HPA and a VPA (--vpa-weight), "
        "within their limits; without an HPA only requests are scaled; without a VPA requests are estimated from the "
        f"usage of {_when(report)}, or unchanged if it is unknown.",
        _span(report),
        f"A month has {HOURS_PER_MONTH} hours; a core-hour costs {prices.cpu:g}, a GiB-hour {prices.memory:g} "
        "(flags --prices, --cpu-price and --memory-price)."
        + (f" Currency: {prices.currency}." if prices.currency else ""),
    ]
    return [line for paragraph in lines for line in _wrapped(paragraph, "", "")]


def _when(report: Report) -> str:
    past = report.inventory.around.past
    return "now" if past is None else f"the last {past.days} days"


def _span(report: Report) -> str:
    """The time that the figures cover."""
    past = report.inventory.around.past
    if past is None:
        return (
            "Figures apply to this instant: a cost per month assumes that these sizes stay for a month. They differ at "
            "other times of the day; --prometheus covers a month, hvpa init and hvpa simulate whole days."
        )
    known = sum(row.subject.past is not None for row in report.rows)
    return (
        f"Used: the mean of {_when(report)}, by Prometheus at {past.source}, for {known} of {len(report.rows)} "
        "workloads. Replicas of HPAs: their mean over that time; with Hvpas, it differs from the HPA's by the factor "
        "of this instant. Requests are those of now."
    )


# --- groups ---------------------------------------------------------------------------------------------------------
def _groups(report: Report) -> list[str]:
    """A line per group, with its subgroups below it, and a line for all workloads."""
    if not report.by:
        return []
    lines = _wrapped(
        f"By {', '.join(report.by)}. With Hvpas: the size of the workload's own Hvpa, else Trajectory's; count: "
        "workloads; sure: the part of the saving that rests on at least a day of VPA history or a week of usage, with "
        "fixed replicas; risks: workloads with a risk.",
        "",
        "",
    )
    lines += ["", _tops(_GROUP_TOPS, _GROUP_COLUMNS), _group_line("", _GROUP_NAMES)]
    for group in groups(report):
        label = f"{_INDENT * (len(group.values) - 1)}{named(group.values[-1])}"
        lines += _group_lines(label, group.sums, report.prices)
    return [*lines, *_group_lines("all", sums(report.rows), report.prices)]


def _group_lines(label: str, figures: Sums, prices: Prices) -> list[str]:
    shares = ["?" if share is None else f"{share}%" for share in figures.shares()]
    cells = [
        f"{figures.workloads}",
        *_coarse(figures.requested),
        *shares,
        *_coarse(figures.recommended),
        f"{figures.saving(prices):,.2f}",
        f"{figures.sure_saving(prices):,.2f}",
        f"{figures.restarts}",
        f"{figures.with_risks}",
    ]
    if len(label) <= _GROUP_COLUMNS[0]:
        return [_group_line(label, cells)]
    return [label, _group_line("", cells)]


def _coarse(amount: Amount) -> list[str]:
    return [f"{amount.cores:,.1f}", f"{amount.gib:,.1f}"]


def _group_line(label: str, cells: Sequence[str]) -> str:
    return _columns(label, cells, _GROUP_COLUMNS)


def _shown(report: Report, shown: int) -> list[str]:
    count = len(report.rows)
    if shown == count:
        return []
    text = f"The {shown} of {count} workloads with the largest difference in cost (--top all shows all):"
    return _wrapped(text, "", "")


# --- a workload -----------------------------------------------------------------------------------------------------
def _block(row: Row, prices: Prices) -> list[str]:
    lines = _wrapped(_title(row.subject), "", "    ")
    now = row.now
    lines.append(_line("now", [now.shown, *_figures(now.pod), *_figures(now.total, prices)]))
    for option in row.options:
        if option.size is None:
            lines += _wrapped(f"{option.blend}: not decided: {option.why}", _INDENT, "      ")
            continue
        cells = [option.size.shown, *_figures(option.size.pod), *_figures(option.size.total, prices)]
        lines.append(_line(option.blend, [*cells, *_differences(row.difference(option), prices)]))
    lines += _wrapped(_facts(row), _INDENT, "      ")
    for risk in row.risks:
        lines += _wrapped(f"! {risk.reason}: {risk.message}", _INDENT, "      ")
    return lines


def _facts(row: Row) -> str:
    """Usage, restarts and basis in words."""
    amounts = zip(RESOURCES, row.used, strict=True)
    used = [human(resource, amount) for resource, amount in amounts if amount is not None]
    history = f", VPA for {readable_duration(row.history)}" if row.history is not None else ""
    past = row.subject.past
    days = "" if past is None else f", usage of {past.days} day{'s' if past.days != 1 else ''}"
    return (
        f"used: {', '.join(used) or 'unknown'}; restarts: {row.restarts}; basis: {row.basis}{history}{days}"
    )


def _title(subject: Subject) -> str:
    meta = subject.workload.metadata
    parts = [_hvpa(hvpa) for hvpa in subject.hvpas]
    parts += [f"HPA {hpa.metadata.name}" for hpa in subject.hpas]
    parts += [f"VPA {vpa.metadata.name}" for vpa in subject.vpas]
    if subject.is_estimated:
        source = "the usage of now" if subject.past is None else "past usage"
        parts.append(f"no VPA: requests estimated from {source}")
    return f"{subject.workload.kind} {meta.namespace}/{meta.name} ({', '.join(parts)})"


def _hvpa(hvpa: HvpaObject) -> str:
    name = f"Hvpa {hvpa.metadata.name}"
    if hvpa.spec is None:
        return name
    return f"{name}: {'Trajectory' if hvpa.spec.joint else 'Additive'}, mode {hvpa.spec.mode}"


def _heading() -> list[str]:
    return [_INDENT + _tops(_GROUPS, _COLUMNS), _line("", _NAMES)]


def _tops(tops: Sequence[tuple[int, str]], widths: Sequence[int]) -> str:
    """Headings above columns: the number of columns, and the text, of each."""
    rooms, first = [], 1
    for count, name in tops:
        room = sum(widths[first : first + count]) + count - 1
        rooms.append(f" {name} ".center(room - 1, "-").rjust(room) if name else " " * room)
        first += count
    return f"{' ' * widths[0]} {' '.join(rooms)}".rstrip()


def _figures(amount: Amount, prices: Prices | None = None) -> list[str]:
    cost = [] if prices is None else [f"{amount.cost(prices):,.2f}"]
    return [f"{amount.cores:.2f}", f"{amount.gib:.2f}", *cost]


def _differences(amount: Amount, prices: Prices) -> list[str]:
    return [_signed(difference) for difference in (amount.cores, amount.gib, amount.cost(prices))]


def _signed(value: float) -> str:
    """The value with its sign; without a sign if it rounds to 0."""
    text = f"{value:+,.2f}"
    return "0.00" if float(text.replace(",", "")) == 0 else text


def _line(label: str, cells: Sequence[str]) -> str:
    return _INDENT + _columns(label, cells, _COLUMNS)


def _columns(label: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=False)]
    return " ".join([f"{label:<{widths[0]}}", *padded]).rstrip()


# --- totals ---------------------------------------------------------------------------------------------------------
def _totals(report: Report) -> list[str]:
    count, now, prices = len(report.rows), report.now, report.prices
    lines = [f"All {count} workloads" if count != 1 else "This workload"]
    lines.append(_line("now", ["", "", "", *_figures(now, prices)]))
    for blend in BLENDS:
        difference = report.difference(blend)
        total = _figures(now.plus(difference), prices)
        lines.append(_line(blend, ["", "", "", *total, *_differences(difference, prices)]))
    return lines


def _rest(inventory: Inventory) -> list[str]:
    """The workloads and recommenders that are not in the table."""
    lines: list[str] = []
    if not inventory.subjects:
        lines.append("No workload has an HPA, a VPA or an Hvpa.")
    if inventory.without:
        many = names(
            [
                f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
                for workload in inventory.without
            ]
        )
        remedy = "create an HPA or a VPA with updateMode Off to include them in the table"
        lines += _wrapped(f"No recommender ({len(inventory.without)}; {remedy}): {many}", "", _INDENT)
    if inventory.left_out:
        many = names(
            [
                f"{left_out.kind} {left_out.namespace}/{left_out.name}: {left_out.why}"
                for left_out in inventory.left_out
            ]
        )
        lines += _wrapped(f"Left out ({len(inventory.left_out)}): {many}", "", _INDENT)
    return lines


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
