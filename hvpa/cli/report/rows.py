"""What each blend makes of each workload, by `hvpa.core.observe` and `decide`, and what that costs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from hvpa.api.hvpa.spec import Blend
from hvpa.api.values.prices import Prices
from hvpa.cli.report.costs import Amount, Size, size_now, size_of
from hvpa.cli.report.inventory import Candidate, Inventory, Subject
from hvpa.cli.report.risks import Facts, Risk, risks
from hvpa.core import Settings, decide, observe
from hvpa.core.model import Decision, Observation


@dataclass(frozen=True, slots=True)
class Option:
    """What one blend would set if nothing were held back; `size` is None where nothing can be decided, and `why` says
    what the decision rests on, or why there is none. `is_own`: by an Hvpa that exists."""

    blend: Blend
    is_own: bool
    size: Size | None
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """A workload, as it is and as each blend would have it."""

    subject: Subject
    now: Size
    options: tuple[Option, ...]
    risks: tuple[Risk, ...]

    def total(self, option: Option) -> Amount:
        """What the workload would request; what it requests now where the blend decides nothing."""
        return self.now.total if option.size is None else option.size.total

    def largest(self, prices: Prices) -> float:
        """The largest difference in money that a blend makes, up or down."""
        return max(abs((self.total(one) - self.now.total).cost(prices)) for one in self.options)


@dataclass(frozen=True, slots=True)
class Report:
    """All of it. `rows` are sorted by the largest difference in money."""

    at: dt.datetime
    prices: Prices
    vpa_weight: int
    inventory: Inventory
    rows: tuple[Row, ...]

    @property
    def now(self) -> Amount:
        """What all workloads with a recommender request now."""
        return _sum(row.now.total for row in self.rows)

    def with_blend(self, blend: Blend) -> Amount:
        """What they would request; a workload about which the blend decides nothing counts as it is now."""
        return _sum(
            next((row.total(one) for one in row.options if one.blend == blend), row.now.total)
            for row in self.rows
        )


def report(found: Inventory, now: dt.datetime, settings: Settings, prices: Prices, vpa_weight: int) -> Report:
    """Decide about every workload, as of `now`; `vpa_weight` is that of drafts, in percent."""
    rows = [_row(subject, now, settings) for subject in found.subjects]
    rows.sort(key=lambda row: -row.largest(prices))
    return Report(now, prices, vpa_weight, found, tuple(rows))


def _row(subject: Subject, now: dt.datetime, settings: Settings) -> Row:
    decided = [_decided(one, now, settings) for one in subject.candidates]
    first, _ = decided[0]
    facts = Facts(subject, first, tuple(decision for _, decision in decided))
    options = tuple(
        _option(candidate, seen, decision)
        for candidate, (seen, decision) in zip(subject.candidates, decided, strict=True)
    )
    return Row(subject, size_now(subject.workload), options, tuple(risks(facts)))


def _decided(candidate: Candidate, now: dt.datetime, settings: Settings) -> tuple[Observation, Decision]:
    seen = observe(candidate.objects, now, settings)
    return seen, decide(seen)


def _option(candidate: Candidate, seen: Observation, decision: Decision) -> Option:
    view = decision.replicas
    if seen.problem is not None or seen.workload is None or view is None:
        why = "nothing is decided" if seen.problem is None else seen.problem.message
        return Option(candidate.blend, candidate.is_own, None, why)
    size = size_of(seen.workload, view.recommended, decision.recommended)
    why = "; ".join(decision.steps) if decision.joint is None else decision.joint.because
    return Option(candidate.blend, candidate.is_own, size, why)


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())
