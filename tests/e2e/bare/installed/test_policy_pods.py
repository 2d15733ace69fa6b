"""The admission policy of `config/deletion-cost`: with the operator's token, HVPA's own deletion costs can be set and
removed, and nothing else of a pod can be changed."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest
import yaml

from hvpa.core.actuation.removal import CANNOT, LACKS
from hvpa.core.model import DELETION_COST
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY, SERVICE_ACCOUNT, install_deletion_cost
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.accounts import api_of

REFUSED = "the operator may"


@pytest.fixture(scope="module")
def policed(plane: ControlPlane) -> str:
    """A namespace with two pods; one has a cost of another client. The policy is in force."""
    namespace = new_namespace(plane.api, "pods")
    for name, notes in (("own", {"theirs": "a"}), ("other", {DELETION_COST: "5"})):
        containers = [{"name": "app", "image": "app"}]
        metadata = {"name": name, "namespace": namespace, "annotations": notes}
        plane.api.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
        )
    install_deletion_cost(plane)
    thief, tries = api_of(plane, NAMESPACE, SERVICE_ACCOUNT), itertools.count(1)
    wait_for(
        lambda: refusal(thief, namespace, {"metadata": {"labels": {"try": str(next(tries))}}}),
        60,
        "a refusal",
    )
    plane.api.patch("Pod", "own", namespace, {"metadata": {"labels": {"try": None}}})
    return namespace


@pytest.fixture(scope="module")
def thief(plane: ControlPlane) -> KubeApi:
    """Whoever has the operator's token."""
    return api_of(plane, NAMESPACE, SERVICE_ACCOUNT)


def refusal(api: KubeApi, namespace: str, body: Json, name: str = "own") -> str:
    """What a patch is refused with; empty where it is taken."""
    try:
        api.patch("Pod", name, namespace, body)
    except ApiError as error:
        if error.status != 422:
            raise
        return error.message
    return ""


def cost(value: str | None) -> Json:
    return {"metadata": {"annotations": {DELETION_COST: value}}}


def test_the_operator_s_costs_may_be_set_changed_and_removed(policed: str, thief: KubeApi) -> None:
    for value in (LACKS, CANNOT, None):
        assert refusal(thief, policed, cost(value)) == ""


@pytest.mark.parametrize("value", [None, CANNOT, "6"])
def test_the_cost_of_another_client_may_not_be_changed(
    policed: str, thief: KubeApi, value: str | None
) -> None:
    assert REFUSED in refusal(thief, policed, cost(value), "other")


@pytest.mark.parametrize(
    "body",
    [
        cost("5"),
        {"metadata": {"annotations": {"theirs": "b"}}},
        {"metadata": {"annotations": {"theirs": None}}},
        {"metadata": {"annotations": {"new": "a", DELETION_COST: CANNOT}}},
        {"metadata": {"labels": {"new": "a"}}},
        {"metadata": {"finalizers": ["example.test/mine"]}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "u"}]}},
        {"spec": {"activeDeadlineSeconds": 1}},
        {"spec": {"containers": [{"name": "app", "image": "theirs"}]}},
    ],
    ids=lambda body: re.sub(r"[^\w]+", "-", str(body))[-40:],
)
def test_nothing_else_may(policed: str, thief: KubeApi, body: Json) -> None:
    assert REFUSED in refusal(thief, policed, body)


def test_others_are_not_bounded(policed: str, plane: ControlPlane) -> None:
    assert refusal(plane.api, policed, {"metadata": {"labels": {"by": "admin"}}}) == ""


def test_the_policy_follows_the_names_that_a_kustomization_on_top_gives(
    plane: ControlPlane, tmp_path: Path
) -> None:
    bases = [os.path.relpath(REPOSITORY / "config" / name, tmp_path) for name in ("default", "deletion-cost")]
    fields = {"resources": bases, "namespace": "elsewhere", "namePrefix": "my-"}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(fields))
    documents = list(yaml.safe_load_all(plane.kubectl("kustomize", tmp_path).stdout))
    bindings = {
        document["metadata"]["name"]: document["spec"]
        for document in documents
        if document["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    for name in ("my-hvpa-operator", "my-hvpa-deletion-cost"):
        reference = bindings[name]["paramRef"]
        assert (bindings[name]["policyName"], reference["name"], reference["namespace"]) == (
            name,
            "my-hvpa",
            "elsewhere",
        )
