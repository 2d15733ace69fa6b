"""`spec.updateStrategy.canary`: a new size is tried on some pods first, and taken back where they fail."""

from __future__ import annotations

from functools import partial

import pytest

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")
CANARY: Json = {"updateStrategy": {"type": "InPlace", "canary": {"pods": 1, "duration": "5m"}}}
SMALL = {"cpu": "500m", "memory": "400M"}
LARGE = {"cpu": "500m", "memory": "500M"}


def fails_a_canary(scenario: Scenario) -> None:
    """A smaller size is tried on the first of three pods, which runs out of memory."""
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(3)]
    scenario.vpa_recommends(cpu="500m", memory="400M")
    scenario.soon(partial(pods.requests, names[0], **SMALL), "a resize of the first pod")
    assert all(pods.requests(name, **LARGE) for name in names[1:])
    pods.ran_out_of_memory(names[0])
    scenario.soon(partial(pods.requests, names[0], **LARGE), "the size before")
    scenario.await_event(
        "RolledBack", f"memory 400M -> 500M of app: pod {names[0]}: container app ran out of memory"
    )
    assert all(pods.requests(name, **LARGE) for name in names)


def test_a_size_that_a_pod_does_not_stand_is_taken_back(new_scenario: NewScenario) -> None:
    scenario = new_scenario(changes=merged(merged(VERTICAL_ONLY, weight(100)), CANARY))
    fails_a_canary(scenario)
    scenario.await_blocked("RolledBack", "vertical", "down")
    assert scenario.status["rolledBack"]["count"] == 1


def test_a_size_that_a_pod_stands_goes_on_to_the_others(new_scenario: NewScenario) -> None:
    canary: Json = {"updateStrategy": {"type": "InPlace", "canary": {"duration": "1s"}}}
    scenario = new_scenario(changes=merged(merged(VERTICAL_ONLY, weight(100)), canary))
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(3)]
    scenario.vpa_recommends(cpu="500m", memory="400M")
    scenario.soon(partial(pods.requests, names[0], **SMALL), "a resize of the first pod")
    assert all(pods.requests(name, **LARGE) for name in names[1:])
    pods.resize(names[0])
    for name in names[1:]:
        scenario.soon(partial(pods.requests, name, **SMALL), f"a resize of {name}")
        pods.resize(name)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "3/3", "all pods resized")
    assert "canary" not in scenario.status["desired"]
    assert "rolledBack" not in scenario.status
