"""Which workloads a policy selects, and which policy is more specific."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.policy.spec import ClusterHvpaPolicySpec
from hvpa.core.policies.selecting import (
    Size,
    rank,
    read_size,
    selects_namespace,
    selects_workload,
    size_of,
)
from tests.unit.core.policies.world import SYSTEM, policy, workload

Json = dict[str, Any]
BATCH = {"matchLabels": {"tier": "batch"}}


@pytest.mark.parametrize(
    ("workloads", "is_selected"),
    [
        ({}, True),
        ({"kinds": ["StatefulSet"]}, False),
        ({"selector": BATCH}, True),
        ({"selector": {"matchLabels": {"tier": "web"}}}, False),
        ({"names": ["web"]}, True),
        ({"names": ["other"]}, False),
        ({"names": ["web"], "selector": {"matchLabels": {"tier": "web"}}}, False),
        ({"exclude": {"names": ["web"]}}, False),
        ({"exclude": {"selector": BATCH}}, False),
        ({"exclude": {"names": ["other"], "selector": {"matchLabels": {"tier": "web"}}}}, True),
    ],
)
def test_a_workload_must_meet_all_conditions(workloads: Json, is_selected: bool) -> None:
    made = policy(spec={"workloads": workloads})
    assert made.spec is not None
    assert selects_workload(made.spec, workload(labels={"tier": "batch"}), SYSTEM) is is_selected


@pytest.mark.parametrize(
    ("namespaces", "selected"),
    [
        ({"all": True}, {"shop", "lab"}),
        ({"all": True, "exclude": ["lab"]}, {"shop"}),
        ({"names": ["lab", "kube-system", SYSTEM]}, {"lab", "kube-system", SYSTEM}),
        ({"names": ["lab"], "exclude": ["lab"]}, set()),
        ({"selector": {"matchLabels": {"team": "a"}}}, {"shop"}),
        ({"names": ["lab"], "selector": {"matchLabels": {"team": "a"}}}, {"shop", "lab"}),
    ],
)
def test_namespaces_of_a_cluster_policy(namespaces: Json, selected: set[str]) -> None:
    made = policy("all", {"namespaces": namespaces}, namespace="")
    labels: dict[str, dict[str, str]] = {
        "shop": {"team": "a"},
        "lab": {},
        "kube-system": {"team": "a"},
        SYSTEM: {"team": "a"},
    }
    assert isinstance(made.spec, ClusterHvpaPolicySpec)
    assert {name for name in labels if selects_namespace(made.spec, name, labels[name], SYSTEM)} == selected


def test_more_specific_policies_come_first() -> None:
    selector = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    ordered = [
        policy("z", {"workloads": {"names": ["web"], "selector": BATCH}}),
        policy("x", {"workloads": {"selector": BATCH}}),
        policy("y", {"workloads": {"selector": selector}}),
        policy("a"),
        policy("c", {"workloads": {"names": ["web"]}}, namespace=""),
        policy("n", {"namespaces": {"names": ["default"]}}, namespace=""),
        policy("b", namespace=""),
    ]
    ranks = [rank(each, each.spec) for each in ordered if each.spec is not None]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ordered)


def test_a_size_is_the_sum_of_what_containers_request() -> None:
    containers = [
        {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
        {"name": "b", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "c"},
    ]
    change = {"spec": {"template": {"spec": {"containers": containers}}}}
    assert size_of(workload(change=change)) == Size(1250, 2**30)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_written_size_is_read_back(cpu: int, memory: int) -> None:
    assert read_size(str(Size(cpu, memory))) == Size(cpu, memory)


@given(st.none() | st.text() | st.text("0123 -m٣"))
def test_other_texts_are_no_size(text: str | None) -> None:
    size = read_size(text)
    assert size is None or [int(part) for part in (text or "").split(" ")] == list(size)
