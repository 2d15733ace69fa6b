"""The sample of `config/policy` that bounds the operator's own account: with its token a workload can be sized, and
nothing else done to it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.bare.conftest import Play
from tests.e2e.bare.manifests import VERTICAL_ONLY, deployment, merged
from tests.e2e.bare.stage import new_namespace
from tests.e2e.bare.view import LAST_APPLIED
from tests.e2e.world.controlplane import ControlPlane
from tests.e2e.world.kube import ApiError, Json, KubeApi, wait_for
from tests.e2e.world.operator import REPOSITORY, Operator

FILE = REPOSITORY / "config/policy/hvpa_operator.yaml"
REFUSED = "the operator may change"


@pytest.fixture(scope="module")
def policed(plane: ControlPlane, thief: KubeApi) -> Iterator[str]:
    """A namespace with the Deployment and the StatefulSet `app`, the policy in force."""
    namespace = new_namespace(plane.api, "policed")
    for kind in ("Deployment", "StatefulSet"):
        workload = deployment("app", namespace, kind=kind)
        workload["metadata"]["annotations"] = {"theirs": "a"}
        plane.api.create(workload)
    documents = list(yaml.safe_load_all(FILE.read_text()))
    try:
        for one in documents:
            plane.api.apply(one)
        tries = itertools.count(1)

        def refused() -> str:
            return refusal(thief, namespace, {"metadata": {"labels": {"try": str(next(tries))}}})

        wait_for(refused, 60, "a refusal")
        yield namespace
    finally:
        for one in reversed(documents):
            plane.api.delete(f"{one['apiVersion']}/{one['kind']}", one["metadata"]["name"])


@pytest.fixture(scope="module")
def thief(account: Path) -> KubeApi:
    """Whoever has the operator's token."""
    return KubeApi(account)


def refusal(api: KubeApi, namespace: str, body: Json, kind: str = "Deployment") -> str:
    """What a patch is refused with; empty where it is taken."""
    try:
        api.patch(kind, "app", namespace, body, type="strategic")
    except ApiError as error:
        if error.status != 422:
            raise
        return error.message
    return ""


def container(**fields: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", **fields}]}}}}


def pod(**fields: Any) -> Json:
    return {"spec": {"template": {"spec": fields}}}


SIZES = {"requests": {"cpu": "700m"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_sizes_counts_and_the_note_may_be_changed(policed: str, thief: KubeApi, kind: str) -> None:
    note = {"metadata": {"annotations": {LAST_APPLIED: "{}"}}}
    for body in (note, merged(merged({"spec": {"replicas": 5}}, container(resources=SIZES)), note)):
        assert refusal(thief, policed, body, kind) == ""
    assert refusal(thief, policed, {"metadata": {"annotations": {LAST_APPLIED: None}}}, kind) == ""


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize(
    "body",
    [
        container(image="theirs"),
        container(command=["sh"]),
        container(env=[{"name": "A", "value": "b"}]),
        container(securityContext={"runAsUser": 0}),
        container(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}),
        {"spec": {"template": {"spec": {"containers": [{"name": "second", "image": "theirs"}]}}}},
        pod(initContainers=[{"name": "first", "image": "theirs"}]),
        pod(serviceAccountName="admin"),
        pod(hostNetwork=True),
        pod(volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
        pod(nodeName="node-0"),
        {"spec": {"template": {"metadata": {"labels": {"other": "a"}}}}},
        {"spec": {"template": {"metadata": {"annotations": {"inject": "a"}}}}},
        {"spec": {"minReadySeconds": 2}},
        {"metadata": {"annotations": {"theirs": "b"}}},
        {"metadata": {"annotations": {"theirs": None}}},
        {"metadata": {"annotations": {"new": "a"}}},
        {"metadata": {"labels": {"new": "a"}}},
        {"metadata": {"finalizers": ["example.test/mine"]}},
    ],
    ids=lambda body: re.sub(r"[^\w]+", "-", str(body))[-40:],
)
def test_nothing_else_may(policed: str, thief: KubeApi, plane: ControlPlane, kind: str, body: Json) -> None:
    before = plane.api.get(kind, "app", policed)
    assert REFUSED in refusal(thief, policed, body, kind)
    sized = merged(body, {"spec": {"replicas": 7}})
    assert REFUSED in refusal(thief, policed, sized, kind), "hidden beside what may be changed"
    assert plane.api.get(kind, "app", policed) == before


def test_others_are_not_bounded(policed: str, plane: ControlPlane) -> None:
    assert refusal(plane.api, policed, {"metadata": {"labels": {"by": "admin"}}}) == ""


def test_all_fields_that_the_api_server_knows_are_compared(plane: ControlPlane) -> None:
    """One that a later Kubernetes adds shows here, once the tests run on a control plane that new, or in `make compat`.
    An older one does not know all that are compared."""
    text = FILE.read_text()
    schemas = plane.api.raw("GET", "/openapi/v3/apis/apps/v1")["components"]["schemas"]

    def compared(new: str, old: str) -> set[str]:
        return set(re.findall(rf"\b{new}\.\?(\w+) == {old}\.\?\1\b", text))

    def known(*types: str) -> set[str]:
        return {field for one in types for field in schemas[f"io.k8s.api.{one}"]["properties"]}

    workload = known("apps.v1.DeploymentSpec", "apps.v1.StatefulSetSpec") - {"replicas", "template"}
    assert workload - compared(r"object\.spec", r"oldObject\.spec") == set()
    assert known("core.v1.PodSpec") - compared(r"variables\.pod", r"variables\.podBefore") == {"containers"}
    assert known("core.v1.Container") - compared("c", "b") == {"name", "resources"}


def test_the_operator_is_not_held_up(policed: str, operator: Operator, play: Play) -> None:
    stage, stateful = play(), play(kind="StatefulSet", changes=VERTICAL_ONLY)
    stage.hpa_wants(4)
    stage.await_replicas(4)
    stateful.vpa_recommends(cpu="1")
    stateful.await_requests(cpu="1")
