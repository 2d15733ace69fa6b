"""The kinds of workloads."""

from __future__ import annotations

import typing

import pytest

from hvpa.api.objects.kinds import (
    KINDS,
    WorkloadKind,
    api_version_of,
    has_replicas,
    in_words,
    is_custom,
    kind_key,
)


def test_each_kind_has_its_version() -> None:
    assert tuple(KINDS) == typing.get_args(WorkloadKind)
    assert {name: kind.group for name, kind in KINDS.items() if kind.group != "apps"} == {
        "ReplicationController": ""
    }
    assert api_version_of("ReplicationController") == "v1"
    assert api_version_of("DaemonSet") == api_version_of("Job") == "apps/v1"


def test_they_are_listed_by_their_versions() -> None:
    assert (
        in_words()
        == "Deployment, StatefulSet, DaemonSet and ReplicaSet of apps/v1, ReplicationController of v1"
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "key"),
    [
        ("apps/v1", "Deployment", "Deployment"),
        ("extensions/v1beta1", "Deployment", "Deployment"),
        ("apps/v1", "Job", "Job"),
        ("v1", "Pod", "Pod"),
        (None, "Rollout", "Rollout"),
        ("argoproj.io/v1alpha1", "Rollout", "Rollout.argoproj.io"),
    ],
)
def test_a_custom_kind_is_named_with_its_group(api_version: str | None, kind: str, key: str) -> None:
    assert kind_key(api_version, kind) == key
    assert is_custom(api_version, kind) == (key != kind)


def test_a_daemonset_alone_has_no_replicas() -> None:
    assert [kind for kind in (*KINDS, "Rollout") if not has_replicas(kind)] == ["DaemonSet"]
