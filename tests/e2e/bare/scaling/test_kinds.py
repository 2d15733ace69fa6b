"""Each kind of workload that gardener's hvpa-controller scaled: by its template, and with pods resized in place."""

from __future__ import annotations

from functools import partial

import pytest

from hvpa.api.objects.kinds import KINDS
from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import merged, weight
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import NewScenario

COUNTED = [kind.name for kind in KINDS.values() if kind.has_replicas]
pytestmark = pytest.mark.usefixtures("operator")
VERTICAL: Json = {"hpa": {"deploy": False}}


@pytest.mark.parametrize("kind", COUNTED)
def test_both_axes_are_scaled(new_scenario: NewScenario, kind: str) -> None:
    scenario = new_scenario(kind=kind, changes={**weight(50), "mode": "Paused"})
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    scenario.soon(lambda: scenario.recommends(4), "a recommendation on both axes")
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(4)
    scenario.soon(lambda: scenario.requests == {"cpu": "1", "memory": "1G"}, "the requests between")


@pytest.mark.parametrize("kind", KINDS)
def test_running_pods_are_resized(new_scenario: NewScenario, kind: str) -> None:
    scenario = new_scenario(kind=kind, changes=merged(VERTICAL, {"updateStrategy": {"type": "InPlace"}}))
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    scenario.vpa_recommends(cpu="800m", memory="600M")
    for name in names:
        scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), f"a resize of {name}")
    assert scenario.requests == {"cpu": "500m", "memory": "500M"}


def test_a_daemonset_has_no_replicas_to_scale(new_scenario: NewScenario) -> None:
    scenario = new_scenario(kind="DaemonSet", create=False)
    scenario.create(wait=False)
    scenario.await_condition("HpaActive", "False", "NoReplicaCount")
    assert scenario.api.find("HorizontalPodAutoscaler", scenario.name, scenario.namespace) is None
