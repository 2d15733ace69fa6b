"""The whole result of `hvpa init`, which is printed as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hvpa_lab.init.source.present import Present
from hvpa_lab.init.trial import Trial
from hvpa_lab.init.verdict import Verdict
from hvpa_lab.simulate.history.fit import Fit
from hvpa_lab.simulate.history.pattern import Pattern
from hvpa_lab.simulate.history.record import History


@dataclass(frozen=True, slots=True)
class InitResult:
    """The result of a run."""

    present: Present
    history: History
    recent: History
    """The rows of the history that were simulated."""
    fit: Fit
    pattern: Pattern
    tried: Sequence[Trial]
    """The Hvpas that were tried, with their outcomes."""
    trial: Trial
    """The trial of the chosen Hvpa."""
    verdict: Verdict
    folder: Path
