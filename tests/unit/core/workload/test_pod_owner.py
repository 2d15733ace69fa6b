"""A pod belongs to a workload by its controller, never by labels alone (decision 0060)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import pod, workload
from hvpa.api.objects.kinds import api_version_of
from hvpa.api.objects.read_models import OwnerReference, Pod, Workload
from hvpa.core.workload.pod_owner import HASHES, LONGEST_NAME, by_owner, owns
from tests.unit.core.named import named

HASH = {"pod-template-hash": "5d"}


def of(kind: str, name: str, uid: str = "x", version: str = "apps/v1", **labels: str) -> Pod:
    """A pod that this controls."""
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
    return pod(change={"metadata": {"ownerReferences": [owner], "labels": {"app": "web", **labels}}})


def custom(kind: str, version: str) -> Workload:
    return structs.replace(workload(kind=kind), api_version=version)


@pytest.mark.parametrize(
    ("kind", "one", "expected"),
    named(
        {
            "by the uid": ("Deployment", of("Deployment", "web", "w"), True),
            "a ReplicaSet of the Deployment": ("Deployment", of("ReplicaSet", "web-5d", **HASH), True),
            "of a manifest without versions": (
                "Deployment",
                of("ReplicaSet", "web-5d", version="", **HASH),
                True,
            ),
            "of another Deployment": ("Deployment", of("ReplicaSet", "web-api-5d", **HASH), False),
            "of a Deployment whose name begins alike": (
                "Deployment",
                of("ReplicaSet", "web2-5d", **HASH),
                False,
            ),
            "of another hash": ("Deployment", of("ReplicaSet", "web-6e", **HASH), False),
            "a ReplicaSet that no Deployment made": ("Deployment", of("ReplicaSet", "web-5d"), False),
            "a ReplicaSet of a Rollout of the same name": (
                "Deployment",
                of("ReplicaSet", "web-5d", **{"rollouts-pod-template-hash": "5d"}),
                False,
            ),
            "a ReplicaSet of another API group": (
                "Deployment",
                of("ReplicaSet", "web-5d", version="example.org/v1", **HASH),
                False,
            ),
            "a Job": ("Deployment", of("Job", "web-5d", version="batch/v1", **HASH), False),
            "a StatefulSet of the same name": ("Deployment", of("StatefulSet", "web"), False),
            "a deleted Deployment of the same name": ("Deployment", of("Deployment", "web", "old"), False),
            "the ReplicaSet of a StatefulSet's name": (
                "StatefulSet",
                of("ReplicaSet", "web-5d", **HASH),
                False,
            ),
            "the StatefulSet itself": ("StatefulSet", of("StatefulSet", "web", "w"), True),
            "by its name if the uid is not known": ("StatefulSet", of("StatefulSet", "web", ""), True),
            "another StatefulSet": ("StatefulSet", of("StatefulSet", "web-2", ""), False),
            "the ReplicaSet itself": ("ReplicaSet", of("ReplicaSet", "web", ""), True),
            "the ReplicationController itself": (
                "ReplicationController",
                of("ReplicationController", "web", "", "v1"),
                True,
            ),
            "a kind of the same name in another group": (
                "StatefulSet",
                of("StatefulSet", "web", "", "apps.kruise.io/v1beta1"),
                False,
            ),
        }
    ),
)
def test_whose_pod_it_is(kind: str, one: Pod, expected: bool) -> None:
    assert owns(workload(kind=kind), one) is expected


@pytest.mark.parametrize("label", HASHES)
def test_an_argo_rollout_has_replica_sets_too(label: str) -> None:
    rollout = custom("Rollout", "argoproj.io/v1alpha1")
    assert owns(rollout, of("ReplicaSet", "web-5d", **{label: "5d"}))
    assert not owns(rollout, of("ReplicaSet", "web-5d", **{label: "6e"}))


@pytest.mark.parametrize(
    ("one", "expected"),
    named(
        {
            "the workload itself": (of("CloneSet", "web", "w", "apps.kruise.io/v1alpha1"), True),
            "another of its kind": (of("CloneSet", "api", "x", "apps.kruise.io/v1alpha1"), False),
            "a custom kind in between": (of("Shard", "web-0", "x", "example.org/v1"), True),
            "a Job": (of("Job", "web", "x", "batch/v1"), False),
            "a DaemonSet": (of("DaemonSet", "web"), False),
            "a StatefulSet": (of("StatefulSet", "web"), False),
            "a ReplicationController": (of("ReplicationController", "web", "x", "v1"), False),
            "a Node": (of("Node", "n1", "x", "v1"), False),
            "the ReplicaSet of a Deployment of another name": (of("ReplicaSet", "api-5d", **HASH), False),
        }
    ),
)
def test_of_a_custom_kind_it_is_not_known_what_stands_in_between(one: Pod, expected: bool) -> None:
    assert owns(custom("CloneSet", "apps.kruise.io/v1alpha1"), one) is expected


@pytest.mark.parametrize("references", [[], [{"kind": "Deployment", "name": "web", "uid": "w"}]])
def test_a_pod_without_a_controller_is_nobodys(references: list[Mapping[str, Any]]) -> None:
    assert not owns(workload(), pod(change={"metadata": {"ownerReferences": references}}))


def test_a_long_name_is_cut_before_the_hash() -> None:
    name = "a" * 252
    long = workload(change={"metadata": {"name": name}})
    cut = f"{name[: LONGEST_NAME - 3]}-5d"
    assert len(cut) == LONGEST_NAME
    assert owns(long, of("ReplicaSet", cut, **HASH))
    assert not owns(long, of("ReplicaSet", f"{name}-5d", **HASH))


def test_pods_are_split_by_owner_and_kept_if_all_are_the_workloads() -> None:
    own, other = pod("a"), of("Job", "import", version="batch/v1")
    pods = (own, pod("b"))
    assert by_owner(pods, workload()).own is pods
    assert by_owner((other, own), workload()) == ((own,), (other,))


NAMES = st.text("ab-5", min_size=1, max_size=8)


@given(NAMES, NAMES, NAMES)
def test_a_replica_set_belongs_to_one_deployment_at_most(first: str, second: str, template_hash: str) -> None:
    replica_set = f"{first}-{template_hash}"
    pod = of("ReplicaSet", replica_set, **{"pod-template-hash": template_hash})
    owners = [name for name in {first, second} if owns(workload(change={"metadata": {"name": name}}), pod)]
    assert owners == [first]


def test_the_version_of_a_kind_does_not_matter() -> None:
    old = OwnerReference(kind="StatefulSet", name="web", api_version="apps/v1beta2", controller=True)
    meta = structs.replace(pod().metadata, owner_references=[old])
    assert api_version_of("StatefulSet") == "apps/v1"
    assert owns(workload(kind="StatefulSet"), structs.replace(pod(), metadata=meta))
