"""The whole result of `hvpa init`, which is printed as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hvpa.cli.init.source.present import Present
from hvpa.cli.init.trial import Trial
from hvpa.cli.init.verdict import Verdict
from hvpa.simulate.history.fit import Fit
from hvpa.simulate.history.pattern import Pattern
from hvpa.simulate.history.record import History


@dataclass(frozen=True, slots=True)
class Result:
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
