"""The HPA controller of Kubernetes and our model of it get the same pods, metrics, specs and times: every sync must
come out the same, whole: desired replicas, what is written to the scale subresource, conditions with reasons and
messages, current metrics, times, events. `tests/unit/recommend` compares the model with the recorded answers."""

from __future__ import annotations

import pytest

from localcluster.programs.build import Programs
from tests.recorded import answers
from tests.recorded.hpa.model import first_difference, theirs
from tests.recorded.hpa.random import RANDOM
from tests.recorded.hpa.scenarios import WRITTEN
from tests.recorded.replay import Json, replay

SCENARIOS = WRITTEN | RANDOM


@pytest.fixture(scope="module")
def real(replays: Programs) -> dict[str, Json]:
    """What the real controller does in each scenario."""
    return replay(replays["hpa-replay"], list(SCENARIOS.values()))


def test_the_recorded_answers_are_those_of_the_real_controller(real: dict[str, Json]) -> None:
    real_answers = {name: [theirs(sync) for sync in real[name]["syncs"]] for name in WRITTEN}
    assert real_answers == answers.read("hpa"), "run `python -m tests.recorded`"


@pytest.mark.parametrize("name", RANDOM)
def test_our_hpa_does_what_the_real_one_does(name: str, real: dict[str, Json]) -> None:
    """With the specs that the API server completed, and with our own defaults."""
    syncs = real[name]["syncs"]
    syncs_of_theirs = [theirs(sync) for sync in syncs]
    completed = first_difference(SCENARIOS[name], syncs_of_theirs, [sync.get("spec") for sync in syncs])
    assert completed is None, completed
    difference = first_difference(SCENARIOS[name], syncs_of_theirs)
    assert difference is None, difference
