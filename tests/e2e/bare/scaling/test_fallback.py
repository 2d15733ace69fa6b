"""The HPA loses its metrics on a real API server: the replicas rise to the fallback, and stay (`spec.hpa.fallback`)."""

from __future__ import annotations

import pytest

from tests.e2e.bare.conditions.recommenders import hpa_says, inactive
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")


def test_replicas_rise_to_the_fallback_once_metrics_are_lost(new_scenario: NewScenario) -> None:
    scenario = new_scenario(changes={"hpa": {"fallback": {"after": "1s", "replicas": 5}}})
    scenario.hpa_wants(2)
    scenario.await_condition("HpaActive", "True", "Recommending")
    hpa_says(scenario, inactive("FailedGetResourceMetric", "no metrics known"))
    scenario.soon(lambda: scenario.replicas == 5, "the fallback")
    message = scenario.await_condition("HpaActive", "False", "FailedGetResourceMetric")["message"]
    assert "no metrics known" in message
