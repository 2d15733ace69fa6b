"""The same pods, metrics, specs and times for the HPA controller of Kubernetes and for our model of it: every sync
must come out the same, whole: desired replicas, what is written to the scale subresource, conditions with their
reasons and messages, current metrics, times, events."""

from __future__ import annotations

import pytest

from localcluster.programs.build import Programs
from tests.e2e.models.hpa import cases_custom as hpa_cases_custom
from tests.e2e.models.hpa import cases_metrics as hpa_cases_metrics
from tests.e2e.models.hpa import cases_pods as hpa_cases_pods
from tests.e2e.models.hpa import cases_rates as hpa_cases_rates
from tests.e2e.models.hpa import random as hpa_random
from tests.e2e.models.hpa.model import first_difference
from tests.e2e.models.replay import Json, by_name, replay

RANDOM_SEEDS = range(40)
WRITTEN = [
    case
    for written in (hpa_cases_metrics, hpa_cases_custom, hpa_cases_pods, hpa_cases_rates)
    for case in written.cases()
]
SCENARIOS = by_name([*WRITTEN, *map(hpa_random.case, RANDOM_SEEDS)])


@pytest.fixture(scope="module")
def real(replays: Programs) -> dict[str, Json]:
    """What the real controller does in each scenario."""
    return replay(replays["hpa-replay"], list(SCENARIOS.values()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_hpa_does_what_the_real_one_does(name: str, real: dict[str, Json]) -> None:
    difference = first_difference(SCENARIOS[name], real[name], defaulted=True)
    assert difference is None, difference


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_hpa_fills_in_what_the_api_server_would(name: str, real: dict[str, Json]) -> None:
    difference = first_difference(SCENARIOS[name], real[name], defaulted=False)
    assert difference is None, difference
