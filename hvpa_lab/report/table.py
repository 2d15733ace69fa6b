"""A report as text: the requests of each workload now and with each blend, its risks, and totals at the end.

Lines have at most WIDTH columns, unless they can't be broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.values.prices import Prices
from hvpa.api.values.text import names, printable
from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.report.inventory import BLENDS, Inventory, Subject
from hvpa_lab.report.rows import HOURS_PER_MONTH, Amount, Report, Row

WIDTH: Final = 100
_COLUMNS: Final = (10, 5, 8, 8, 9, 9, 11, 9, 9, 11)
"""Widths: label, pods, a pod's cores and GiB, all pods' cores, GiB and cost, and the three differences."""
_GROUPS: Final = ((1, ""), (2, "each pod"), (3, "all pods"), (3, "difference to now"))
"""Headings above the columns after the label: number of columns, and text."""
_NAMES: Final = ("pods", "cores", "GiB", "cores", "GiB", "per month", "cores", "GiB", "per month")
_INDENT: Final = "  "


def to_text(report: Report) -> str:
    """The whole report, without a final line break.

    Text from other clients can't break a line or move the terminal's cursor.
    """
    blocks = [_head(report)]
    if report.rows:
        blocks += [_heading(), *(_block(row, report.prices) for row in report.rows), _totals(report)]
    blocks.append(_rest(report.inventory))
    return "\n\n".join("\n".join(printable(line) for line in block) for block in blocks if block)


def _head(report: Report) -> list[str]:
    prices = report.prices
    lines = [
        f"Sizes that an Hvpa would set at {format_timestamp(report.at)} if no gate held them back. Nothing was "
        "changed.",
        "Additive: the next step towards the recommendations of HPA and VPA; more steps follow. Trajectory: the "
        "final replicas and requests for the demand of now and of the last day.",
        f"Without an Hvpa: vertical weight {report.vpa_weight} if there are an HPA and a VPA (--vpa-weight), "
        "within their limits; without a VPA only replicas are scaled, without an HPA only requests.",
        "Figures apply to this instant: a cost per month assumes that these sizes stay for a month. They differ "
        "at other times of the day; hvpa init and hvpa simulate cover whole days.",
        f"A month has {HOURS_PER_MONTH} hours; a core-hour costs {prices.cpu:g}, a GiB-hour {prices.memory:g} "
        "(flags --cpu-price and --memory-price).",
    ]
    return [line for paragraph in lines for line in _wrapped(paragraph, "", "")]


# --- a workload -----------------------------------------------------------------------------------------------------
def _block(row: Row, prices: Prices) -> list[str]:
    lines = _wrapped(_title(row.subject), "", "    ")
    now = row.now
    lines.append(_line("now", [str(now.replicas), *_figures(now.pod), *_figures(now.total, prices)]))
    for option in row.options:
        if option.size is None:
            lines += _wrapped(f"{option.blend}: not decided: {option.why}", _INDENT, "      ")
            continue
        cells = [str(option.size.replicas), *_figures(option.size.pod), *_figures(option.size.total, prices)]
        lines.append(_line(option.blend, [*cells, *_differences(row.difference(option), prices)]))
    for risk in row.risks:
        lines += _wrapped(f"! {risk.reason}: {risk.message}", _INDENT, "      ")
    return lines


def _title(subject: Subject) -> str:
    meta = subject.workload.metadata
    parts = [_hvpa(hvpa) for hvpa in subject.hvpas]
    parts += [f"HPA {hpa.metadata.name}" for hpa in subject.hpas]
    parts += [f"VPA {vpa.metadata.name}" for vpa in subject.vpas]
    return f"{subject.workload.kind} {meta.namespace}/{meta.name} ({', '.join(parts)})"


def _hvpa(hvpa: HvpaObject) -> str:
    name = f"Hvpa {hvpa.metadata.name}"
    if hvpa.spec is None:
        return name
    return f"{name}: {'Trajectory' if hvpa.spec.joint else 'Additive'}, mode {hvpa.spec.mode}"


def _heading() -> list[str]:
    rooms, first = [], 1
    for count, name in _GROUPS:
        room = sum(_COLUMNS[first : first + count]) + count - 1
        rooms.append(f" {name} ".center(room - 1, "-").rjust(room) if name else " " * room)
        first += count
    return [f"{_INDENT}{' ' * _COLUMNS[0]} {' '.join(rooms)}".rstrip(), _line("", _NAMES)]


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
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS[1:], strict=False)]
    return f"{_INDENT}{' '.join([f'{label:<{_COLUMNS[0]}}', *padded])}".rstrip()


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
