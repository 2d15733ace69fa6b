"""Simulates today's configuration and the Hvpas: each Hvpa with one seed, the chosen Hvpa with all seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hvpa.api.values.duration import DAY
from hvpa.api.values.prices import Prices
from hvpa.cli.errors import CommandError
from hvpa_lab.init.draft import Draft
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.model import PolicyResult, SimulationResult
from hvpa_lab.simulate.parallel import Run, plan_seeds, simulate_all
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.progress import progress_bar
from hvpa_lab.simulate.report.compare import ALIKE_UNMET


class Work(NamedTuple):
    """Parameters of simulations."""

    jobs: int
    """Number of concurrent processes."""
    progress: str
    """When to show progress."""
    prices: Prices


class TrialOutcome(NamedTuple):
    """The outcome of a policy with a seed."""

    seed: int
    cost: float
    """Weekly cost of its requests."""
    unmet: float
    ooms: int
    restarts: float
    """Restarts per week."""
    replicas: float
    """Mean over time."""

    @property
    def counted_unmet(self) -> float:
        """The unmet share of the demand, rounded to a relevant difference."""
        return round(self.unmet, ALIKE_UNMET)


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcomes of today's configuration and of an Hvpa, with the same seeds in the same order."""

    draft: Draft
    today: Sequence[TrialOutcome]
    hvpa: Sequence[TrialOutcome]
    rival: Sequence[TrialOutcome] = ()
    """Outcomes of today's configuration with the Hvpa's target for its HPA; empty if the target is the same."""

    @property
    def savings(self) -> list[float]:
        """The Hvpa's saving as a share of today's cost, by seed: 0.3 is 30 percent cheaper."""
        return self._savings(self.hvpa)

    @property
    def rival_savings(self) -> list[float]:
        """The saving of the other target alone."""
        return self._savings(self.rival) if self.rival else []

    def _savings(self, outcomes: Sequence[TrialOutcome]) -> list[float]:
        pairs = zip(self.today, outcomes, strict=True)
        return [1 - outcome.cost / today.cost if today.cost else 0.0 for today, outcome in pairs]


def outcomes(
    path: Path, shown: Path, seeds: Sequence[int], only: Sequence[str], work: Work
) -> dict[str, list[TrialOutcome]]:
    """The outcomes of each policy of the scenario, by name, in the order of the seeds.

    Messages show `shown` instead of the file's folder. Raises CommandError.
    """
    try:
        run: Run = plan_seeds(path, seeds, only)
        with progress_bar(work.progress) as progress:
            results = simulate_all(run, work.jobs, progress)
    except (ScenarioError, SimulationError) as error:
        raise CommandError(str(error).replace(str(path.parent), str(shown))) from error
    by_policy: dict[str, list[TrialOutcome]] = {}
    for result in results:
        for policy in result.policies:
            by_policy.setdefault(policy.name, []).append(_outcome(result, policy, work.prices))
    return by_policy


def _outcome(result: SimulationResult, policy: PolicyResult, prices: Prices) -> TrialOutcome:
    totals, weeks = policy.totals, (result.duration - result.warm_up) / (7 * DAY)
    counted = policy.series.replicas[int(result.warm_up // result.step) :]
    return TrialOutcome(
        seed=result.seed,
        cost=prices.cost(totals.core_hours_requested, totals.gib_hours_requested) / weeks,
        unmet=totals.unmet_demand_share,
        ooms=totals.ooms,
        restarts=totals.restarts / weeks,
        replicas=statistics.fmean(counted),
    )
