"""Pods with resources of their own, under the operator's reconciler and an HPA."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import NodeModel, Policy, PolicyResult
from tests.unit.lab.simulate import build

MIB = build.MIB
OWN = ResourceRequirements({"cpu": 500, "memory": 512 * MIB}, {"cpu": 1000, "memory": 512 * MIB})
UTILIZATION = {
    "minReplicas": 2,
    "maxReplicas": 10,
    "metrics": [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
        }
    ],
}


def simulated(policy: Policy, *containers: Any, **workload: Any) -> PolicyResult:
    """Two hours, in which the load goes up threefold and down again."""
    scenario = build.scenario(
        duration=2 * 3600.0,
        step=30.0,
        load=build.Shape(lambda at: 240.0 if 1200 <= at < 4800 else 80.0),
        workload=build.workload(*containers, **({"resize_delay": 2.0} | workload)),
        nodes=NodeModel(cpu=64_000, memory=64 * 1024 * MIB, headroom="50%"),
    )
    return simulate(scenario, policy)


def hvpa(weight: int, strategy: str, blend: str) -> Policy:
    manifest = build.hvpa(weight, UTILIZATION, updateStrategy={"type": strategy}, blend=blend)
    return Policy("Hvpa", "Hvpa", hvpa=manifest)


def violations(result: PolicyResult) -> list[str]:
    return [event.message for event in result.events if event.kind == "Violation"]


@pytest.mark.parametrize(
    "policy",
    [
        Policy("HPA", "HPA", hpa=UTILIZATION),
        hvpa(50, "InPlaceOrRollout", "Additive"),
        hvpa(100, "InPlace", "Additive"),
        hvpa(50, "Rollout", "Additive"),
        hvpa(50, "InPlaceOrRollout", "Trajectory"),
    ],
    ids=["HPA", "Additive", "only requests", "Rollout", "Trajectory"],
)
def test_a_pod_whose_only_container_has_no_request_is_scaled_as_if_it_had_the_pods(policy: Policy) -> None:
    amounts: dict[str, Any] = {"requests": OWN.requests, "limits": OWN.limits}
    apart = simulated(policy, build.container(**amounts))
    shared = simulated(policy, build.container(requests={}, limits={}), resources=OWN)
    assert shared.totals == apart.totals
    assert shared.series.replicas == apart.series.replicas
    for resource in ("cpu", "memory"):
        assert shared.series.requests[POD, resource] == apart.series.requests["app", resource]
    assert violations(shared) == violations(apart) == []
    assert apart.totals.replica_changes + apart.totals.request_changes > 0


def test_a_start_has_the_same_boost_whether_the_container_or_the_pod_has_the_request() -> None:
    boost = [{"container": "app", "cpu": {"factor": 3}}]
    strategy = {"type": "InPlace"}
    manifest = build.hvpa(50, UTILIZATION, updateStrategy=strategy, blend="Trajectory", startupBoost=boost)
    policy, amounts = Policy("Hvpa", "Hvpa", hvpa=manifest), {"requests": OWN.requests, "limits": OWN.limits}
    apart = simulated(policy, build.container(**amounts, cpu_start_up=30_000.0))
    shared = simulated(policy, build.container(requests={}, limits={}, cpu_start_up=30_000.0), resources=OWN)
    assert shared.totals == apart.totals
    assert shared.series.requests[POD, "cpu"] == apart.series.requests["app", "cpu"]
    assert max(shared.series.requests[POD, "cpu"]) > 925  # no pod is scaled to more
    assert violations(shared) == violations(apart) == []


def test_the_fast_signal_raises_the_pod_as_it_would_raise_its_only_container() -> None:
    spec = {"updateStrategy": {"type": "InPlace"}, "fastSignal": {"mode": "Raise"}}
    policy = Policy("Hvpa", "Hvpa", hvpa=build.hvpa(50, UTILIZATION, blend="Trajectory", **spec))
    amounts: dict[str, Any] = {"requests": OWN.requests, "limits": OWN.limits}
    apart = simulated(policy, build.container(**amounts))
    shared = simulated(policy, build.container(requests={}, limits={}), resources=OWN)
    assert shared.totals == apart.totals
    assert shared.series.requests[POD, "cpu"] == apart.series.requests["app", "cpu"]
    assert any("the kubelets report" in event.message for event in shared.events)
    assert violations(shared) == violations(apart) == []


def test_with_the_fast_signal_containers_that_share_lack_less_after_a_jump() -> None:
    def unmet(mode: str) -> float:
        spec = {"updateStrategy": {"type": "InPlace"}, "fastSignal": {"mode": mode}}
        shares: dict[str, Any] = {"requests": {}, "limits": {}}
        containers = [build.container(**shares), build.container(name="proxy", **shares, cpu_per_unit=3.0)]
        scenario = build.scenario(
            duration=600.0,
            step=2.0,
            load=build.step(80.0, 200.0, 400.0),
            workload=build.workload(*containers, resize="InPlace", resources=OWN),
            nodes=NodeModel(cpu=64_000, memory=64 * 1024 * MIB, headroom="50%"),
        )
        return simulate(
            scenario, Policy("Hvpa", "Hvpa", hvpa=build.hvpa(100, **spec))
        ).totals.unmet_core_seconds

    assert unmet("Raise") < unmet("Off") / 2


@pytest.mark.parametrize("strategy", ["InPlaceOrRollout", "Rollout"])
def test_a_pod_requests_at_least_what_its_containers_request(strategy: str) -> None:
    """A pod with CPU of its own; its app requests a part of it, its proxy nothing. Memory is that of the app."""
    app = build.container(requests={"cpu": 300, "memory": 512 * MIB}, limits={"memory": 512 * MIB})
    proxy = build.container(name="proxy", requests={}, limits={}, cpu_per_unit=3.0)
    own = ResourceRequirements({"cpu": 500}, {"cpu": 1000})
    result = simulated(hvpa(50, strategy, "Trajectory"), app, proxy, resources=own)
    requests = result.series.requests
    for resource in ("cpu", "memory"):
        whole, part = requests[POD, resource], requests["app", resource]
        assert all(pod >= container for pod, container in zip(whole, part, strict=True))
    assert requests["app", "cpu"][-1] != 300
    assert set(requests["proxy", "cpu"]) == {0}
    assert violations(result) == []


def test_new_pods_have_the_decided_size_while_the_kubelets_take_their_time() -> None:
    """Ten minutes for a resize: three pods of 500m, and one that was created with 925m."""
    policy = hvpa(50, "InPlace", "Trajectory")
    result = simulated(policy, build.container(requests={}, limits={}), resources=OWN, resize_delay=600.0)
    cpu = result.series.requests[POD, "cpu"]
    first = next(value for value in cpu if value != 500)
    assert first == (3 * 500 + 925) / 4
    assert 925 in cpu
