"""A report as a self-contained HTML page for managers: what is requested, used, and could be saved, and how sure that
is. It has no scripts, and the same report gives the same bytes."""

from __future__ import annotations

from hvpa.api.values.prices import money
from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.charts.standalone import render
from hvpa_lab.report.groups import Sums, groups, named, sums
from hvpa_lab.report.rows import HOURS_PER_MONTH, Basis, Report

BASES: dict[Basis, str] = {
    "Measured": "At least a week of usage, and a fixed number of replicas",
    "History": "At least a day of VPA history, and a fixed number of replicas",
    "MeasuredReplicas": "Requests: at least a week of usage or a day of VPA history. Replicas: the mean of at "
    "least a week, with Hvpas changed by the factor of this instant",
    "Mixed": "Requests: at least a day of VPA history. Replicas: this instant, so nights and weekends differ",
    "YoungHistory": "Less than a day of VPA history or a week of usage: hours or days are missing",
    "Snapshot": "Usage at this instant alone: other hours differ",
    "None": "Nothing is measured, so no change is counted",
}
"""What each basis means, from the most to the least reliable."""


def to_html(report: Report, top: int | None = None) -> str:
    """The page, with the first `top` workloads (None: all)."""
    whole, prices = sums(report.rows), report.prices
    by_basis = {
        basis: sums([row for row in report.rows if row.basis == basis])
        for basis, count in whole.bases.items()
        if count
    }
    return render(
        "hvpa_lab.report",
        title="What Hvpas would request",
        tables=True,
        at=format_timestamp(report.at),
        report=report,
        past=report.inventory.around.past,
        prices=prices,
        hours=HOURS_PER_MONTH,
        currency=f" {prices.currency}" if prices.currency else "",
        whole=whole,
        groups=groups(report),
        bases=[(BASES[basis], figures) for basis, figures in by_basis.items()],
        rows=report.rows[:top],
        money=money,
        named=named,
        bars=_bars,
    )


def _bars(part: Sums, whole: Sums, report: Report) -> tuple[float, float]:
    """Lengths of the bars of a group's cost now and with Hvpas, in percent of the largest cost."""
    prices = report.prices
    largest = max(whole.requested.cost(prices), whole.recommended.cost(prices))
    costs = (part.requested.cost(prices), part.recommended.cost(prices))
    now, then = (100 * cost / largest if largest else 0.0 for cost in costs)
    return now, then
