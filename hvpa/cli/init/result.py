"""All that `hvpa init` found, which text and JSON print."""

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
    """`recent` are the rows that were simulated, `tried` the Hvpas with what each did, `trial` the chosen one."""

    present: Present
    history: History
    recent: History
    fit: Fit
    pattern: Pattern
    tried: Sequence[Trial]
    trial: Trial
    verdict: Verdict
    folder: Path
