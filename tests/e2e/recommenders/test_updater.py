"""The updater and the webhook of the Vertical Pod Autoscaler and our models of them get the same pods, recommendations,
policies and flags: which pods are resized, which are evicted, in which order, and what pods then request must come out
the same. `tests/unit/lab/simulate` compares the models with the recorded answers."""

from __future__ import annotations

import pytest

from localcluster.programs.build import Programs
from tests.recorded import answers
from tests.recorded.replay import Json
from tests.recorded.updater.model import first_difference
from tests.recorded.updater.random import RANDOM
from tests.recorded.updater.scenarios import WRITTEN, replayed

SCENARIOS = WRITTEN | RANDOM


@pytest.fixture(scope="module")
def real(replays: Programs) -> dict[str, list[Json]]:
    """What the real updater and the real webhook do in each scenario."""
    return replayed(replays["updater-replay"], SCENARIOS)


def test_the_recorded_answers_are_those_of_the_real_updater(real: dict[str, list[Json]]) -> None:
    assert {name: real[name] for name in WRITTEN} == answers.read("updater"), "run `python -m tests.recorded`"


def test_the_random_scenarios_resize_and_evict(real: dict[str, list[Json]]) -> None:
    """Else they would show nothing."""
    real_answers = [answer for name in RANDOM for answer in real[name]]
    assert sum(len(answer["resized"]) for answer in real_answers) > 100
    assert sum(len(answer["evicted"]) for answer in real_answers) > 100


@pytest.mark.parametrize("name", RANDOM)
def test_our_updater_does_what_the_real_one_does(name: str, real: dict[str, list[Json]]) -> None:
    difference = first_difference(SCENARIOS[name], real[name])
    assert difference is None, difference
