"""The recommender of the Vertical Pod Autoscaler and our model of it get the same usage, OOMs, policies and flags:
every target, bound and uncapped target must come out the same to the byte and the millicore, and the conditions too.
`tests/unit/recommend` compares the model with the recorded answers."""

from __future__ import annotations

import pytest

from localcluster.programs.build import Programs
from tests.recorded import answers
from tests.recorded.replay import Json
from tests.recorded.vpa.model import first_difference
from tests.recorded.vpa.random import RANDOM
from tests.recorded.vpa.scenarios import WRITTEN, replayed

SCENARIOS = WRITTEN | RANDOM


@pytest.fixture(scope="module")
def real(replays: Programs) -> dict[str, list[Json]]:
    """What the real recommender recommends in each scenario."""
    return replayed(replays["vpa-replay"], SCENARIOS)


def test_the_recorded_answers_are_those_of_the_real_recommender(real: dict[str, list[Json]]) -> None:
    assert {name: real[name] for name in WRITTEN} == answers.read("vpa"), "run `python -m tests.recorded`"


@pytest.mark.parametrize("name", RANDOM)
def test_our_recommender_recommends_what_the_real_one_does(name: str, real: dict[str, list[Json]]) -> None:
    difference = first_difference(SCENARIOS[name], real[name])
    assert difference is None, difference
