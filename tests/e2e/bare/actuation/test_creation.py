"""`config/size-at-creation`: new pods have the size that was decided, by a policy of the API server; and how it is
without that. Pods are created as their controllers create them. (A custom kind's: `test_custom_kind.py`.)"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hvpa.api.objects.kinds import KINDS
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import serves_mutating_policies
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import ago
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.conftest import NewScenario, Start

DECIDED: Json = {"cpu": "800m", "memory": "600M"}
SIZES = "HvpaSizes"


@pytest.fixture(autouse=True)
def policies(plane: ControlPlane) -> None:
    if not serves_mutating_policies(plane):
        pytest.skip("the API server has no MutatingAdmissionPolicy")


def has_entry(scenario: Scenario) -> bool:
    group = KINDS[scenario.kind].group
    return f"{scenario.kind}{group and f'.{group}'}/{scenario.name}" in entries(scenario)


def entries(scenario: Scenario) -> Json:
    """The sizes of the scenario's namespace, by owner."""
    sizes = scenario.api.find(SIZES, "hvpa", scenario.namespace)
    return dict(sizes["sizes"]) if sizes is not None else {}


def test_what_an_hvpa_has_left_behind_goes_when_the_operator_is_back(
    new_scenario: NewScenario, start: Start
) -> None:
    first = start()
    scenario = new_scenario(changes=in_place())
    Pods(scenario).start("0")
    scenario.vpa_recommends(**DECIDED)
    scenario.soon(lambda: entries(scenario), "an entry")
    first.kill()
    scenario.delete()
    scenario.api.patch(
        SIZES,
        "hvpa",
        scenario.namespace,
        {"sizes": {"Deployment.apps/other": "other; app 1: :"}},
    )
    start()
    scenario.soon(lambda: not entries(scenario), "no entry any more")


def test_without_the_policy_a_new_pod_is_resized_as_soon_as_it_runs(
    new_scenario: NewScenario, start: Start, line: Proxy, token: str
) -> None:
    """To this operator, the API server does not serve HvpaSizes: no size is written for the policy to find."""
    line.fail(404, times=None, path="/hvpasizes$")
    start(kubeconfig=line.kubeconfig_for(token))
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    first = pods.start("0")
    scenario.vpa_recommends(**DECIDED)
    scenario.soon(partial(pods.requests, first, **DECIDED), "a resize")
    pods.resize(first)
    newer = pods.start("1")
    scenario.soon(partial(pods.requests, newer, **DECIDED), "a resize of the new pod")
    assert pods.get(newer)["metadata"]["generation"] == 2
    assert scenario.status["actuation"]["sizeAtCreation"] is False
    assert not entries(scenario)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_pod_has_the_size_that_was_decided(new_scenario: NewScenario, kind: str) -> None:
    scenario = new_scenario(kind=kind, changes=in_place())
    pods = Pods(scenario)
    first = pods.start("0")
    scenario.vpa_recommends(**DECIDED)
    scenario.soon(partial(pods.requests, first, **DECIDED), "a resize")
    scenario.soon(partial(has_entry, scenario), "an entry")
    assert scenario.soon(
        lambda: scenario.status["actuation"]["sizeAtCreation"], "the size at creation in the status"
    )

    def created() -> bool:  # the API server's policies look at a copy of the object, too
        name = pods.start("1")
        is_sized = pods.requests(name, **DECIDED)
        if not is_sized:
            scenario.api.delete("Pod", name, scenario.namespace, grace=0)
        return is_sized

    scenario.soon(created, "a new pod of the size that was decided")
    assert scenario.resources()["requests"] == {"cpu": "500m", "memory": "500M"}


@pytest.mark.usefixtures("operator")
def test_sidecars_and_init_containers_are_created_with_more_cpu_and_sidecars_lose_it(
    new_scenario: NewScenario,
) -> None:
    limited: Json = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    first = [
        {"name": "migrate", "image": "app", "resources": limited},
        {"name": "mesh", "image": "app", "resources": limited, "restartPolicy": "Always"},
    ]
    boosts: Any = [{"container": one, "cpu": {"factor": 3}} for one in ("migrate", "mesh")]
    scenario = new_scenario(changes=in_place(startupBoost=boosts))
    scenario.change_workload({"template": {"spec": {"initContainers": first}}})
    pods, key = Pods(scenario), f"Deployment.apps/{scenario.name}"
    entry = f"{scenario.name}; mesh 300m:600m :; migrate :600m :"
    scenario.soon(lambda: entries(scenario).get(key) == entry, "an entry")

    def has(migrate: Json, mesh: Json) -> bool:
        inside = pods.get(f"{scenario.name}-0")["spec"]["initContainers"]
        return [container["resources"] for container in inside] == [migrate, mesh]

    migrating: Json = {"requests": {"cpu": "100m"}, "limits": {"cpu": "600m"}}
    meshing: Json = {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}}

    def created() -> bool:
        name, is_boosted = pods.begin("0"), has(migrating, meshing)
        if not is_boosted:
            scenario.api.delete("Pod", name, scenario.namespace, grace=0)
        return is_boosted

    scenario.soon(created, "a new pod with both boosts")
    pods.run(f"{scenario.name}-0", startTime=ago(minutes=2))
    scenario.soon(lambda: has(migrating, limited), "the sidecar's usual size")
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "1/1", "the pod counts as resized")


@pytest.mark.usefixtures("operator")
def test_the_boosts_of_pods_end_with_their_hvpa(new_scenario: NewScenario) -> None:
    boost = {"container": "app", "cpu": {"factor": 3}, "after": "1h", "atMost": "1h"}
    own: Any = [boost]
    scenario = new_scenario(changes=in_place(startupBoost=own))
    pods = Pods(scenario)
    name = pods.begin("0")
    pods.run(name, startTime=ago(minutes=2))
    scenario.soon(lambda: pods.spec(name)["requests"]["cpu"] == "1500m", "the boost")
    pods.resize(name)
    scenario.soon(lambda: scenario.status["actuation"].get("starting") == 1, "a pod that starts")
    scenario.delete()
    scenario.soon(lambda: pods.spec(name)["requests"]["cpu"] == "500m", "the usual size")
