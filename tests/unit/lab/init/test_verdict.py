"""Which Hvpa is taken, and the words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hvpa_lab.init.draft import Draft, drafts
from hvpa_lab.init.source.present import TargetName, present
from hvpa_lab.init.trial import Trial, TrialOutcome
from hvpa_lab.init.verdict import best, judged, on_the_target
from hvpa_lab.simulate.history.fit import fit
from tests.unit.lab.init.documents import CPU_70, hpa, workload
from tests.unit.lab.simulate.history.build import history

NOW = present([workload(), hpa(CPU_70)], TargetName("Deployment", "web"), "shop", 33)
AT_70, AT_80 = drafts(NOW, fit(history(48)), (None, None))


def outcomes(*costs: float, unmet: float = 0.0, ooms: int = 0, restarts: float = 0.0) -> list[TrialOutcome]:
    return [TrialOutcome(seed, cost, unmet, ooms, restarts, 3.0) for seed, cost in enumerate(costs)]


TODAY = outcomes(100, 100, 100)


def trial(
    hvpa: Sequence[TrialOutcome],
    today: Sequence[TrialOutcome] = TODAY,
    *,
    draft: Draft = AT_80,
    rival: Sequence[TrialOutcome] = (),
) -> Trial:
    return Trial(draft, today, hvpa, rival)


@pytest.mark.parametrize(
    ("one", "advice", "words"),
    [
        (trial(outcomes(73, 69, 66, restarts=2)), "Take",
         "31 percent cheaper (27 to 34), 2 restarts a week (today no), no OOM, no unmet demand, as today."),
        (trial(outcomes(70, 70, 70, unmet=0.01, restarts=1), outcomes(100, 100, 100, unmet=0.01, restarts=1)), "Take",
         "30 percent cheaper, 1 restart a week, no OOM, unmet demand as today."),
        (trial(outcomes(50, 50, 50, unmet=0.02)), "Keep",
         "Keep today's configuration, because it leaves more of the demand unmet: an Hvpa is 50 percent cheaper,"
         " no restarts a week, no OOM, 2.00% of the demand unmet instead of 0.00%."),
        (trial(outcomes(50, 50, 50, ooms=3, unmet=0.02)), "Keep",
         "Keep today's configuration, because it leaves more of the demand unmet and containers run out of memory "
         "more often:"
         " an Hvpa is 50 percent cheaper, no restarts a week, 3 OOMs (today no),"
         " 2.00% of the demand unmet instead of 0.00%."),
        (trial(outcomes(110, 111, 112)), "Keep",
         "Keep today's configuration, because it costs more: an Hvpa is 11 percent more expensive (10 to 12), no "
         "restarts a week,"
         " no OOM, no unmet demand, as today."),
        (trial(outcomes(99, 100, 101)), "Keep",
         "Keep today's configuration, because it saves less than 2%: an Hvpa is as expensive as today, no restarts "
         "a week,"
         " no OOM, no unmet demand, as today."),
        (trial(outcomes(90, 100, 95)), "Keep",
         "Keep today's configuration, because with some seeds it saves less than 2%: an Hvpa is 5 percent cheaper "
         "(0 to 10),"
         " no restarts a week, no OOM, no unmet demand, as today."),
        (trial(outcomes(120, 120, 120, restarts=0.2), outcomes(100, 100, 100, unmet=0.03, ooms=1)), "Take",
         "It serves demand that is unmet today: 20 percent more expensive, fewer than 1 restart a week, no OOMs "
         "(today 1),"
         " 0.00% of the demand unmet instead of 3.00%."),
        (trial(outcomes(101, 101, 101), outcomes(100, 100, 100, unmet=0.0009)), "Keep",
         "Keep today's configuration, because it costs more: an Hvpa is 1 percent more expensive, no restarts a "
         "week, no OOM,"
         " 0.00% of the demand unmet instead of 0.09%."),
        (trial(outcomes(70, 70, 70, restarts=22)), "Keep",
         "Keep today's configuration, because each pod is replaced more than once a day: an Hvpa is 30 percent cheaper,"
         " 22 restarts a week (today no), no OOM, no unmet demand, as today."),
        (trial(outcomes(70, 70, 70), rival=outcomes(69, 69, 69)), "Keep",
         "Keep today's configuration, because today's HPA does as well at 80 percent: an Hvpa is 30 percent cheaper,"
         " no restarts a week, no OOM, no unmet demand, as today."),
        (trial(outcomes(70, 70, 70), rival=outcomes(69, 69, 69, unmet=0.1)), "Take",
         "30 percent cheaper, no restarts a week, no OOM, no unmet demand, as today."),
    ],
)  # fmt: skip
def test_the_verdict_in_words(one: Trial, advice: str, words: str) -> None:
    assert judged(one, ["the fit is poor"]) == (advice, words, ("the fit is poor",))


def test_the_cheapest_that_is_no_worse_is_taken() -> None:
    dear, cheap = trial(outcomes(80), outcomes(100), draft=AT_70), trial(outcomes(70), outcomes(100))
    assert best([dear, cheap]) is cheap
    for worse in (outcomes(60, unmet=0.01), outcomes(60, ooms=1), outcomes(60, restarts=1)):
        assert best([dear, trial(worse, outcomes(100))]) is dear
    restarts, ooms = (
        trial(outcomes(90, restarts=9), outcomes(100)),
        trial(outcomes(60, ooms=1), outcomes(100)),
    )
    unmet = trial(outcomes(50, unmet=0.1), outcomes(100))
    assert best([unmet, ooms, restarts]) is restarts
    assert best([unmet, ooms]) is ooms


def test_what_the_target_alone_would_do() -> None:
    assert on_the_target(trial(outcomes(70), outcomes(100))) == ""
    assert on_the_target(trial(outcomes(70), outcomes(100), rival=outcomes(88))) == (
        "The target alone: today's HPA at 80 percent would be 12 percent cheaper, no restarts a week, no OOM,"
        " no unmet demand, as today."
    )


def test_a_workload_that_costs_nothing_saves_nothing() -> None:
    assert trial(outcomes(0), outcomes(0)).savings == [0]
