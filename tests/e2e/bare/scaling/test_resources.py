"""What is set on a real API server for containers of every shape: exactly the requests and limits that are governed."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial

import pytest

from localcluster.client.api import ApiError, Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario


@dataclass(frozen=True)
class Case:
    """A container's resources before, what the VPA targets, and the resources after that."""

    before: Json
    target: Json
    after: Json
    policy: Json = field(default_factory=dict)
    gap: Json = field(default_factory=dict)


def pair(requests: Json | None, limits: Json | None = None) -> Json:
    parts = {"requests": requests, "limits": limits}
    return {key: value for key, value in parts.items() if value is not None}


CASES = {
    "no resources": Case(
        before={}, target={"cpu": "300m", "memory": "200M"}, after=pair({"cpu": "300m", "memory": "200M"})
    ),
    "a limit without a request": Case(
        before=pair(None, {"cpu": "1"}),
        target={"cpu": "1500m"},
        after=pair({"cpu": "1500m"}, {"cpu": "1500m"}),
    ),
    "a request without a limit": Case(
        before=pair({"cpu": "1", "memory": "1G"}),
        target={"cpu": "500m", "memory": "2G"},
        after=pair({"cpu": "500m", "memory": "2G"}),
    ),
    "limit equal to request": Case(
        before=pair({"memory": "1G"}, {"memory": "1G"}),
        target={"memory": "1500M"},
        after=pair({"memory": "1500M"}, {"memory": "1500M"}),
    ),
    "limits in proportion": Case(
        before=pair({"cpu": "100m", "memory": "100M"}, {"cpu": "250m", "memory": "300M"}),
        target={"cpu": "333m", "memory": "150M"},
        after=pair({"cpu": "333m", "memory": "150M"}, {"cpu": "833m", "memory": "450M"}),
    ),
    "limits by gap parameters": Case(
        before=pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "2G"}),
        target={"cpu": "2", "memory": "2G"},
        after=pair({"cpu": "2", "memory": "2G"}, {"cpu": "3", "memory": "2600M"}),
        gap={"cpu": {"value": "1", "percentage": 30}, "memory": {"value": "200M", "percentage": 30}},
    ),
    "requests only": Case(
        before=pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1500M"}),
        target={"cpu": "1500m", "memory": "3G"},
        after=pair({"cpu": "1500m", "memory": "1500M"}, {"cpu": "2", "memory": "1500M"}),
        policy={"controlledValues": "RequestsOnly"},
    ),
    "memory only": Case(
        before=pair({"cpu": "1", "memory": "1G"}),
        target={"cpu": "3", "memory": "3G"},
        after=pair({"cpu": "1", "memory": "3G"}),
        policy={"controlledResources": ["memory"]},
    ),
    "bounds": Case(
        before=pair({"cpu": "1", "memory": "1G"}),
        target={"cpu": "9", "memory": "100M"},
        after=pair({"cpu": "4", "memory": "400M"}),
        policy={"minAllowed": {"memory": "400M"}, "maxAllowed": {"cpu": "4"}},
    ),
    "resources that neither recommender scales": Case(
        before=pair(
            {"cpu": "1", "ephemeral-storage": "1Gi", "example.com/gpu": "1"},
            {"ephemeral-storage": "2Gi", "example.com/gpu": "1", "memory": "1G"},
        ),
        target={"cpu": "2", "memory": "2G", "ephemeral-storage": "9Gi"},
        after=pair(
            {"cpu": "2", "memory": "2G", "ephemeral-storage": "1Gi", "example.com/gpu": "1"},
            {"ephemeral-storage": "2Gi", "example.com/gpu": "1", "memory": "2G"},
        ),
    ),
    "quantities in odd forms": Case(
        before=pair({"cpu": "0.1", "memory": "1e8"}, {"cpu": "1e0", "memory": "1.5Gi"}),
        target={"cpu": "0.2", "memory": "2e8"},
        after=pair({"cpu": "200m", "memory": "200M"}, {"cpu": "2", "memory": "3221226k"}),
    ),
}
"""Memory is in whole kilobytes: 3Gi is 3221225472 bytes, rounded up."""


def scenario_of(new_scenario: NewScenario, case: Case) -> Scenario:
    policies = [{"containerName": "app", **case.policy}]
    changes = {
        "vpa": {
            "template": {"spec": {"resourcePolicy": {"containerPolicies": policies}}},
            "limitsRequestsGapScaleParams": case.gap,
        }
    }
    scenario = new_scenario(create=False, changes=merged(VERTICAL_ONLY, changes))
    app: Json = {
        "name": "app",
        "image": "app",
        "resources": case.before,
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    sidecar: Json = {"name": "sidecar", "image": "sidecar", "resources": pair({"cpu": "7m"}, {"cpu": "8m"})}
    spec: Json = {"initContainers": [{"name": "init", "image": "init", "resources": pair({"cpu": "1m"})}]}
    spec |= {"containers": [sidecar, app], "volumes": [{"name": "v", "emptyDir": {}}]}
    scenario.workload["spec"]["template"]["spec"] = spec
    return scenario.create()


def has_stepped(scenario: Scenario) -> bool:
    return bool(scenario.target["metadata"]["generation"] == 2)


def test_exactly_what_is_governed_is_set(new_scenario: NewScenario, operator: Operator) -> None:
    scenarios = {name: scenario_of(new_scenario, case) for name, case in CASES.items()}
    before = {name: scenario.target for name, scenario in scenarios.items()}
    for name, scenario in scenarios.items():
        scenario.vpa_recommends(**CASES[name].target)
    wrong = {}
    for name, scenario in scenarios.items():
        expected = copy.deepcopy(before[name]["spec"])
        expected["template"]["spec"]["containers"][1]["resources"] = CASES[name].after
        scenario.soon(partial(has_stepped, scenario), f"{name}: a step")
        if scenario.target["spec"] != expected:
            wrong[name] = (scenario.resources(), CASES[name].after)
    assert not wrong


def test_containers_get_no_more_than_a_limit_of_the_pod_that_stays_leaves(
    new_scenario: NewScenario, operator: Operator
) -> None:
    policies = [{"containerName": "app", "controlledValues": "RequestsOnly"}]
    only = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": policies}}}}}
    scenario = new_scenario(create=False, changes=merged(VERTICAL_ONLY, only))
    pod = scenario.workload["spec"]["template"]["spec"]
    limits = {"cpu": "1500m", "memory": "1500M"}
    pod["resources"] = pair({"cpu": "1", "memory": "1G"}, limits)
    pod["containers"][0]["resources"] = pair({"cpu": "500m", "memory": "500M"})
    pod["containers"].append({"name": "side", "image": "side", "resources": pair({"cpu": "200m"})})
    scenario.create()
    scenario.vpa_recommends(cpu="3", memory="2G")
    scenario.await_requests(cpu="1", memory="1G")
    assert scenario.target["spec"]["template"]["spec"]["resources"] == pair(limits, limits)
    assert scenario.resources("side") == pair({"cpu": "200m"})
    message = scenario.await_condition("VpaActive", "True", "PodLevelResources")["message"]
    assert "app cpu: 3 recommended, 1 at most" in message
    scenario.await_event("PodLevelResources", "app memory: 2G recommended, 1G at most")
    assert "lastError" not in scenario.status
    with pytest.raises(ApiError, match="must be greater than or equal to aggregate container requests"):
        scenario.set_requests(cpu="1301m")
