"""The same usage, OOMs, policies and flags for the recommender of the Vertical Pod Autoscaler and for our model of it:
every target, bound and uncapped target must come out the same to the byte and the millicore, and the conditions too."""

from __future__ import annotations

import pytest

from localcluster.programs.build import Programs
from tests.e2e.models.replay import Json, by_name, replay
from tests.e2e.models.vpa import cases as vpa_cases
from tests.e2e.models.vpa import random as vpa_random
from tests.e2e.models.vpa.model import first_difference

RANDOM_SEEDS = range(20)
SCENARIOS = by_name([*vpa_cases.cases(), *map(vpa_random.case, RANDOM_SEEDS)])


@pytest.fixture(scope="module")
def real(replays: Programs) -> dict[str, Json]:
    """What the real recommender says in each scenario."""
    return replay(replays["vpa-replay"], list(SCENARIOS.values()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_recommender_says_what_the_real_one_says(name: str, real: dict[str, Json]) -> None:
    difference = first_difference(SCENARIOS[name], real[name])
    assert difference is None, difference
