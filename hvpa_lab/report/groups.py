"""Groups of workloads with the same value of a label or the same namespace, and the sums of their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from hvpa.api.values.prices import Prices
from hvpa_lab.report.rows import BASES, Amount, Basis, Report, Row, sum_of

SURE: Final[tuple[Basis, ...]] = ("Measured", "History")
"""What a saving must rest on to count for a month: with an HPA, replicas at other hours differ."""
NO_VALUE: Final = "(none)"
"""How a group is named whose workloads have no such label."""


class Sums(NamedTuple):
    """The figures of some workloads together."""

    workloads: int
    requested: Amount
    used: Amount
    measured: Amount
    """Requests of the workloads whose usage is known: their share of use is `used` / `measured`."""
    change: Amount
    """What an Hvpa would request in addition; negative if it would request less."""
    sure: Amount
    """The part of `change` that rests on at least a week of usage or a day of VPA history."""
    restarts: int
    with_risks: int
    """Number of workloads with a risk."""
    risks: Mapping[str, int]
    """Number of workloads with each risk, most frequent first."""
    bases: Mapping[Basis, int]
    """Number of workloads on each basis."""

    @property
    def recommended(self) -> Amount:
        """What an Hvpa would request."""
        return self.requested.plus(self.change)

    def saving(self, prices: Prices) -> float:
        """The saving of a month; negative if an Hvpa would cost more."""
        return 0.0 - self.change.cost(prices)

    def sure_saving(self, prices: Prices) -> float:
        """The part of the saving that rests on at least a week of usage or a day of VPA history."""
        return 0.0 - self.sure.cost(prices)

    def shares(self) -> tuple[int | None, int | None]:
        """Used percent of the requested CPU and memory, where both are known; None if nothing is."""
        pairs = zip(self.used, self.measured, strict=True)
        cpu, memory = (round(100 * used / requested) if requested else None for used, requested in pairs)
        return cpu, memory


class Group(NamedTuple):
    """Workloads with the same values of the first levels."""

    values: tuple[str, ...]
    sums: Sums


def sums(rows: Sequence[Row]) -> Sums:
    """The figures of these workloads together."""
    risks = Counter(reason for row in rows for reason in {risk.reason for risk in row.risks})
    bases = Counter(row.basis for row in rows)
    return Sums(
        len(rows),
        sum_of(row.now.total for row in rows),
        sum_of(Amount(row.used.cpu or 0, row.used.memory or 0) for row in rows),
        sum_of(_measured(row) for row in rows),
        sum_of(row.change for row in rows),
        sum_of(row.change for row in rows if row.basis in SURE),
        sum(row.restarts for row in rows),
        sum(bool(row.risks) for row in rows),
        dict(sorted(risks.items(), key=lambda entry: (-entry[1], entry[0]))),
        {basis: bases[basis] for basis in BASES},
    )


def _measured(row: Row) -> Amount:
    requested = row.now.total
    return Amount(
        0 if row.used.cpu is None else requested.cpu, 0 if row.used.memory is None else requested.memory
    )


def groups(report: Report) -> list[Group]:
    """All groups, each followed by its parts at the next level; at each level the largest saving first."""
    return list(_groups(report.rows, (), len(report.by), report.prices))


def _groups(rows: Sequence[Row], values: tuple[str, ...], levels: int, prices: Prices) -> Iterator[Group]:
    level = len(values)
    if level == levels:
        return
    ordered = sorted(rows, key=lambda row: row.values[level])
    parts = {value: list(members) for value, members in groupby(ordered, lambda row: row.values[level])}
    made = {value: Group((*values, value), sums(members)) for value, members in parts.items()}
    for value in sorted(made, key=lambda value: (-made[value].sums.saving(prices), value)):
        yield made[value]
        yield from _groups(parts[value], made[value].values, levels, prices)


def named(value: str) -> str:
    """A value as the name of its group."""
    return value or NO_VALUE
