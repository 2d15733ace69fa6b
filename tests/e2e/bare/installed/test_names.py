"""Names that are none: the API server refuses them, and of Hvpas that were stored before, nothing is requested."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from hvpa.api.crd import NAME
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.conftest import USER, NewScenario

CRD: Final = "CustomResourceDefinition"
API: Final = "argoproj.io/v1alpha1"
TARGETS: Final[list[Json]] = [
    {"apiVersion": f"{API}?x0=", "kind": "Rollout", "name": "web"},
    {"apiVersion": "apps/v1/deployments?limit=1&x=", "kind": "Rollout", "name": "web"},
    {"apiVersion": "../api/v1/namespaces/kube-system/secrets?x=", "kind": "Rollout", "name": "web"},
    {"apiVersion": "autoscaling/v2/namespaces/kube-system", "kind": "HorizontalPodAutoscaler", "name": "web"},
    {"apiVersion": API, "kind": "Rollout", "name": "../../../kube-system/rollouts/web"},
    {"apiVersion": API, "kind": "Rollout", "name": "a\x00b"},
    {"apiVersion": API, "kind": "Ro\x1b[2J\nllout", "name": "web"},
    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a%2f..%2fb"},
]


@contextmanager
def without_patterns(plane: ControlPlane) -> Iterator[None]:
    """The CRD as it was before names had patterns."""
    now = plane.api.get(CRD, NAME)
    before = copy.deepcopy(now)
    _forget_patterns(before)
    spec = {"versions": before["spec"]["versions"]}
    plane.api.patch(CRD, NAME, None, {"spec": spec})
    try:
        yield
    finally:
        plane.api.patch(CRD, NAME, None, {"spec": {"versions": now["spec"]["versions"]}})


def _forget_patterns(value: object) -> None:
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            del value["pattern"]
        for part in value.values():
            _forget_patterns(part)
    elif isinstance(value, list):
        for part in value:
            _forget_patterns(part)


def hvpa(namespace: str, name: str, target: Json, **spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    whole = {"targetRef": target, "updateStrategy": {"type": "InPlace"}, **spec}
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": metadata, "spec": whole}


def hostile(namespace: str) -> list[Json]:
    """Hvpas with each of the names, and with such a name of an HPA and of a VPA."""
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    targets = [hvpa(namespace, f"target-{number}", target) for number, target in enumerate(TARGETS)]
    named = [
        hvpa(namespace, f"names-{kind}", deployment, **{kind: {"name": "../x?y="}}) for kind in ("hpa", "vpa")
    ]
    return [*targets, *named]


def test_the_api_server_refuses_a_name_that_is_none(plane: ControlPlane, space: str) -> None:
    for manifest in hostile(space):
        with pytest.raises(ApiError, match=r"spec\.(targetRef\.(apiVersion|kind|name)|hpa\.name|vpa\.name)"):
            plane.api.create(manifest)


def test_nothing_is_requested_for_an_hvpa_that_was_stored_before_names_were_checked(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    ordinary, space = new_scenario(), new_namespace(plane.api)
    # Earlier tests may have left Hvpas in namespaces of their own.
    known = {manifest["metadata"]["namespace"] for manifest in plane.api.list("Hvpa")}
    mark = plane.audit.mark()
    made = hostile(space)
    with without_patterns(plane):
        wait_for(lambda: plane.api.create(made[0]), 60, "the CRD without patterns counts")
        for manifest in made[1:]:
            plane.api.create(manifest)
    for manifest in made:
        await_invalid(plane, manifest)
    ordinary.hpa_wants(5)
    ordinary.await_replicas(5)
    requests = plane.audit.requests(mark, user=USER)
    own = [request for request in requests if request.namespace == space]
    assert {(request.resource, request.verb) for request in own} <= {
        ("hvpas", "patch"),
        ("events", "create"),
        ("events", "patch"),
    }
    assert {request.namespace for request in requests} <= {*known, space, "hvpa-system", ""}
    # Of all namespaces: watches, and the lists with which these began.
    whole = [
        request for request in requests if not request.namespace and request.verb not in ("watch", "create")
    ]
    assert [request for request in whole if request.verb != "list" or "limit=" not in request.uri] == []
    assert [
        request.uri for request in requests if "%" in request.uri.partition("?")[0] or ".." in request.uri
    ] == []
    assert "Traceback" not in operator.log.read_text()


def await_invalid(plane: ControlPlane, made: Json) -> None:
    """Wait until the Hvpa's condition Ready names the field."""
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    field = "spec.targetRef." if name.startswith("target") else f"spec.{name.removeprefix('names-')}.name"

    def is_invalid() -> bool:
        status = plane.api.get("Hvpa", name, namespace)["status"]
        (ready,) = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
        message: str = ready["message"]
        return ready["reason"] == "InvalidSpec" and field in message and message.isprintable()

    wait_for(is_invalid, 60, f"{name} is reported as invalid")
