"""The metrics of policies: counts, and names only of policies that need a person."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from hvpa.api.policy.resource import PolicyKey
from hvpa.api.policy.status import PolicyStatus
from hvpa.kube.server.policy_metrics import PolicyMetrics
from tests.unit.core.policies.world import policy


def status(reason: str, holds: bool = False, **counts: int) -> PolicyStatus:
    condition = {"type": "Ready", "status": str(holds), "reason": reason, "message": "m"}
    return policy(status={"conditions": [condition], **counts}).status


def series(statuses: dict[PolicyKey, PolicyStatus]) -> list[str]:
    registry = CollectorRegistry()
    registry.register(PolicyMetrics(lambda: statuses))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_workloads_are_counted_by_kind_of_policy_and_problems_have_names() -> None:
    found = series(
        {
            PolicyKey("HvpaPolicy", "shop", "a"): status("UpToDate", True, selected=3, generated=2),
            PolicyKey("HvpaPolicy", "lab", "a"): status(
                "RemovalHeld", selected=1, awaitingRemoval=7, removalHeld=True
            ),
            PolicyKey("HvpaPolicy", "lab", "waits for the end of the hour"): status("RemovalHeld"),
            PolicyKey("HvpaPolicy", "lab", "new"): PolicyStatus(),
            PolicyKey("ClusterHvpaPolicy", "", "all"): status("NothingSelected"),
        }
    )
    assert 'hvpa_policies{kind="HvpaPolicy",ready="True",reason="UpToDate"} 1.0' in found
    assert 'hvpa_policies{kind="ClusterHvpaPolicy",ready="False",reason="NothingSelected"} 1.0' in found
    assert 'hvpa_policy_workloads{kind="HvpaPolicy",state="selected"} 4.0' in found
    assert 'hvpa_policy_workloads{kind="HvpaPolicy",state="awaiting_removal"} 7.0' in found
    assert 'hvpa_policy_workloads{kind="ClusterHvpaPolicy",state="selected"} 0.0' in found
    assert [line for line in found if line.startswith("hvpa_policy_problem")] == [
        'hvpa_policy_problem{kind="HvpaPolicy",name="a",namespace="lab",reason="RemovalHeld"} 1.0'
    ]


def test_without_policies_there_are_no_series() -> None:
    assert series({}) == []


def test_the_number_of_series_does_not_grow_with_policies_that_are_well() -> None:
    few, many = (
        series({PolicyKey("HvpaPolicy", "shop", str(n)): status("UpToDate", True) for n in range(count)})
        for count in (1, 500)
    )
    assert len(few) == len(many)
