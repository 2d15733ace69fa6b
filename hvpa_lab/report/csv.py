"""A report as CSV for spreadsheets: a line per workload, with the same columns in the same order in every report.

Columns for the levels of `--by` that are labels follow at the end, as `label:KEY`.
"""

from __future__ import annotations

import csv
import io
from typing import Final

from hvpa.api.values.text import printable
from hvpa_lab.report.json import CENTS, DIGITS, hours, mean
from hvpa_lab.report.rows import FIXED, Amount, Report, Row

COLUMNS: Final = (
    "namespace", "kind", "name", "hvpas", "hpas", "vpas", "blend", "basis", "vpaHistoryHours",
    "replicas", "requestedCores", "requestedMemoryGib", "requestedCost", "usedCores", "usedMemoryGib",
    "recommendedReplicas", "recommendedCores", "recommendedMemoryGib", "recommendedCost", "savingPerMonth",
    "restarts", "risks", "usageDays", "meanReplicas", "recommendedMeanReplicas",
)  # fmt: skip

_FORMULA: Final = ("=", "+", "-", "@")


def to_csv(report: Report) -> str:
    """The report as CSV, without a final line break."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    labels = [(number, level) for number, level in enumerate(report.by) if level not in FIXED]
    write((*COLUMNS, *(f"label:{level}" for _, level in labels)))
    for row in report.rows:
        cells = (*_cells(report, row), *(row.values[number] for number, _ in labels))
        write([_text(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue().rstrip("\n")


def _text(cell: str) -> str:
    """A cell that is no formula for a spreadsheet, whatever others wrote."""
    text = printable(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _cells(report: Report, row: Row) -> tuple[str | int | float | None, ...]:
    subject, chosen = row.subject, row.chosen
    meta = subject.workload.metadata
    recommenders = (subject.hvpas, subject.hpas, subject.vpas)
    used = Amount(row.used.cpu or 0, row.used.memory or 0)
    return (
        meta.namespace,
        subject.workload.kind,
        meta.name,
        *(" ".join(each.metadata.name for each in of_kind) for of_kind in recommenders),
        chosen.blend,
        row.basis,
        hours(row.history),
        row.now.replicas,
        *_priced(report, row.now.total),
        None if row.used.cpu is None else round(used.cores, DIGITS),
        None if row.used.memory is None else round(used.gib, DIGITS),
        None if chosen.size is None else chosen.size.replicas,
        *((None, None, None) if chosen.size is None else _priced(report, chosen.size.total)),
        round(0.0 - row.change.cost(report.prices), CENTS),
        row.restarts,
        " ".join(dict.fromkeys(risk.reason for risk in row.risks)),
        0 if subject.past is None else subject.past.days,
        mean(row.now),
        None if chosen.size is None else mean(chosen.size),
    )


def _priced(report: Report, amount: Amount) -> tuple[float, float, float]:
    cost = amount.cost(report.prices)
    return round(amount.cores, DIGITS), round(amount.gib, DIGITS), round(cost, CENTS)
