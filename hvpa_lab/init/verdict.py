"""Assesses a trial: the Hvpa to choose, and whether to use it, in words."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from hvpa_lab.init.trial import Trial, TrialOutcome

WORTH: Final = 0.02
"""Minimum saving, as a fraction, that justifies a change."""
STARVES: Final = 0.001
"""Unmet demand today, as a fraction, that justifies a higher cost; `hvpa simulate --sweep` accepts less."""
OFTEN: Final = 7.0
"""Weekly restarts per pod beyond today's: once a day, more often than usual releases."""
MATCHES: Final = 0.2
"""Maximum relative difference in replicas between the simulation of today's configuration and the history."""


class Verdict(NamedTuple):
    """The advice and its reasons."""

    advice: Literal["Take", "Keep"]
    words: str
    doubts: tuple[str, ...]
    """Reasons not to rely on it."""


def best(trials: Sequence[Trial]) -> Trial:
    """The cheapest of the trials with no more unmet demand, OOMs and restarts than today.

    If no trial qualifies, more restarts are preferred to more OOMs, and more OOMs to more unmet demand.
    """
    return min(trials, key=lambda trial: (_worse(trial), _mean(trial.hvpa, lambda outcome: outcome.cost)))


def _worse(trial: Trial) -> tuple[bool, bool, bool]:
    return (
        _exceeds(trial, lambda outcome: outcome.counted_unmet),
        _exceeds(trial, lambda outcome: outcome.ooms),
        _exceeds(trial, lambda outcome: outcome.restarts),
    )


def _exceeds(trial: Trial, value: Callable[[TrialOutcome], float]) -> bool:
    return _mean(trial.hvpa, value) > _mean(trial.today, value)


def _target_does(trial: Trial) -> bool:
    """Whether today's HPA with the Hvpa's target is no worse than today, and saves about as much."""
    if not trial.rival:
        return False
    rival = replace(trial, hvpa=trial.rival)
    return not any(_worse(rival)) and min(rival.savings) > max(WORTH, max(trial.savings) - WORTH)


def _mean(outcomes: Sequence[TrialOutcome], value: Callable[[TrialOutcome], float]) -> float:
    return statistics.fmean(value(outcome) for outcome in outcomes)


def judged(trial: Trial, doubts: Sequence[str]) -> Verdict:
    """The verdict on the chosen Hvpa."""
    summary, reasons = _summary(trial), _against(trial)
    if reasons:
        words = f"Keep today's configuration, because {' and '.join(reasons)}: an Hvpa is {summary}."
        return Verdict("Keep", words, tuple(doubts))
    if _serves(trial) and min(trial.savings) < WORTH:
        return Verdict("Take", f"It serves demand that is unmet today: {summary}.", tuple(doubts))
    return Verdict("Take", f"{summary[:1].upper()}{summary[1:]}.", tuple(doubts))


def _against(trial: Trial) -> list[str]:
    """The reasons against the Hvpa. Its cost is a reason only without other reasons, and if it does not serve more."""
    unmet, ooms, _ = _worse(trial)
    more_restarts = _mean(trial.hvpa, _restarts_of_a_pod) - _mean(trial.today, _restarts_of_a_pod)
    reasons = (
        (unmet, "it leaves more of the demand unmet"),
        (ooms, "containers run out of memory more often"),
        (more_restarts > OFTEN, "each pod is replaced more than once a day"),
        (_target_does(trial), f"today's HPA does as well at {trial.draft.target} percent"),
    )
    objections = [reason for is_so, reason in reasons if is_so]
    if objections or min(trial.savings) >= WORTH or _serves(trial):
        return objections
    if max(trial.savings) >= WORTH:
        return [f"with some seeds it saves less than {WORTH:.0%}"]
    return [f"it saves less than {WORTH:.0%}" if max(trial.savings) >= 0 else "it costs more"]


def _restarts_of_a_pod(outcome: TrialOutcome) -> float:
    """Weekly restarts per pod."""
    return outcome.restarts / max(outcome.replicas, 1)


def _serves(trial: Trial) -> bool:
    """Whether today's configuration leaves much of the demand unmet, and the Hvpa less."""
    today, hvpa = (
        _mean(outcomes, lambda outcome: outcome.counted_unmet) for outcomes in (trial.today, trial.hvpa)
    )
    return today >= STARVES and hvpa < today


def on_the_target(trial: Trial) -> str:
    """The effect of the Hvpa's target in today's HPA; empty if today's target is the same."""
    if not trial.rival_savings:
        return ""
    rival = replace(trial, hvpa=trial.rival)
    return f"The target alone: today's HPA at {trial.draft.target} percent would be {_summary(rival)}."


def _summary(trial: Trial) -> str:
    """`31 percent cheaper (27 to 34), 2 restarts a week, no OOM, unmet demand as today`."""
    savings = trial.savings
    return ", ".join(
        [
            _price(savings),
            _restarts(trial),
            _ooms(trial),
            _unmet(trial),
        ]
    )


def _price(savings: Sequence[float]) -> str:
    mean = statistics.fmean(savings)
    if round(mean * 100) == 0:
        return "as expensive as today"
    sign = 1 if mean > 0 else -1
    low, high = sorted(sign * saving * 100 for saving in (min(savings), max(savings)))
    spread = "" if round(low) == round(high) else f" ({low:.0f} to {high:.0f})"
    return f"{abs(mean) * 100:.0f} percent {'cheaper' if mean > 0 else 'more expensive'}{spread}"


def _restarts(trial: Trial) -> str:
    hvpa, now = (_mean(outcomes, lambda outcome: outcome.restarts) for outcomes in (trial.hvpa, trial.today))
    today = "" if round(hvpa) == round(now) else f" (today {_count(now)})"
    return f"{_count(hvpa)} restart{'' if 0 < hvpa < 1.5 else 's'} a week{today}"


def _ooms(trial: Trial) -> str:
    hvpa, now = (_mean(outcomes, lambda outcome: outcome.ooms) for outcomes in (trial.hvpa, trial.today))
    if hvpa == now == 0:
        return "no OOM"
    return f"{_count(hvpa)} OOMs (today {_count(now)})"


def _count(value: float) -> str:
    return "no" if value == 0 else "fewer than 1" if value < 0.5 else f"{value:.0f}"


def _unmet(trial: Trial) -> str:
    hvpa, now = (
        _mean(outcomes, lambda outcome: outcome.counted_unmet) for outcomes in (trial.hvpa, trial.today)
    )
    if hvpa == now:
        return "unmet demand as today" if now else "no unmet demand, as today"
    return f"{hvpa:.2%} of the demand unmet instead of {now:.2%}"
