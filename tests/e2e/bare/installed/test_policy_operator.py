"""The admission policy that confines the operator's own account, a part of `config/default`: with its token a workload
can be sized, and nothing else done to it. (That the operator can do all that it needs is what all other tests
show: they run under this policy.)"""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.api.hvpa.status import ROLLOUT
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, Operator
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, deployment, merged
from localcluster.workloads.scenario import new_namespace
from localcluster.workloads.view import LAST_APPLIED
from tests.e2e.bare.accounts import api_of, new_account, rule
from tests.e2e.bare.conftest import NewScenario

CONFIG = REPOSITORY / "config"
FILE = CONFIG / "operator-policy/policy.yaml"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
REFUSED = "the operator may change"


@pytest.fixture(scope="module")
def policed(plane: ControlPlane, thief: KubeApi) -> str:
    """A namespace with the Deployment and the StatefulSet `app`; `config/default`, and so the policy, is in force."""
    namespace = new_namespace(plane.api, "policed")
    for kind in ("Deployment", "StatefulSet"):
        workload = deployment("app", namespace, kind=kind)
        workload["metadata"]["annotations"] = {"theirs": "a"}
        plane.api.create(workload)
    await_refusals(thief, namespace)
    return namespace


def await_refusals(api: KubeApi, namespace: str) -> None:
    """Wait until the policy holds for an account."""
    tries = itertools.count(1)

    def refused() -> str:
        return refusal(api, namespace, {"metadata": {"labels": {"try": str(next(tries))}}})

    wait_for(refused, 60, "a refusal")


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


def is_refused(message: str) -> bool:
    """Whether that is the policy's refusal, or that of an older API server which nobody may write this field on: a
    StatefulSet's `revisionHistoryLimit` on 1.30."""
    return REFUSED in message or "updates to statefulset spec for fields other than" in message


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


def test_a_rollout_may_be_held_and_let_go(policed: str, thief: KubeApi, plane: ControlPlane) -> None:
    note = {"metadata": {"annotations": {ROLLOUT: "{}"}}}
    for held in (True, None):
        assert refusal(thief, policed, {**note, "spec": {"paused": held}}) == ""
    for partition in (3, 0):
        strategy = {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
        assert refusal(thief, policed, {**note, "spec": strategy}, "StatefulSet") == ""
    plane.api.create(deployment("app", policed, kind="DaemonSet"))
    for kind in ("OnDelete", "RollingUpdate"):
        assert refusal(thief, policed, {"spec": {"updateStrategy": {"type": kind}}}, "DaemonSet") == ""
    more = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}}
    assert REFUSED in refusal(thief, policed, more, "DaemonSet")


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
        {"spec": {"revisionHistoryLimit": 2}},
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
    assert is_refused(refusal(thief, policed, body, kind))
    sized = merged(body, {"spec": {"replicas": 7}})
    assert is_refused(refusal(thief, policed, sized, kind)), "hidden beside what may be changed"
    assert plane.api.get(kind, "app", policed) == before


def test_others_are_not_bounded(policed: str, plane: ControlPlane) -> None:
    assert refusal(plane.api, policed, {"metadata": {"labels": {"by": "admin"}}}) == ""


def test_a_pod_gets_no_resources_of_its_own(policed: str, thief: KubeApi, plane: ControlPlane) -> None:
    schemas = plane.api.raw("GET", "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    if "resources" not in schemas["io.k8s.api.core.v1.PodSpec"]["properties"]:
        pytest.skip("the API server has no resources of pods")
    assert REFUSED in refusal(thief, policed, pod(resources={"requests": {"cpu": "2"}}))


def test_all_fields_that_the_api_server_knows_are_compared(plane: ControlPlane) -> None:
    """One that a later Kubernetes adds shows here, once the tests run on a control plane that new, or in `make compat`.
    An older one does not know all that are compared."""
    text = FILE.read_text()
    schemas = plane.api.raw("GET", "/openapi/v3/apis/apps/v1")["components"]["schemas"]

    def compared(new: str, old: str) -> set[str]:
        return set(re.findall(rf"\b{new}\.\?(\w+)\s+== {old}\.\?\1\b", text))

    def known(*types: str) -> set[str]:
        return {field for name in types for field in schemas[f"io.k8s.api.{name}"]["properties"]}

    workload = known("apps.v1.DeploymentSpec", "apps.v1.StatefulSetSpec") - {"replicas", "template"}
    held = {"paused", "updateStrategy"}
    assert workload - compared(r"object\.spec", r"oldObject\.spec") == held
    rolling = known("apps.v1.RollingUpdateStatefulSetStrategy", "apps.v1.RollingUpdateDaemonSet")
    strategy = r"spec\.\?updateStrategy\.\?rollingUpdate"
    assert rolling - compared(rf"object\.{strategy}", rf"oldObject\.{strategy}") == {"partition"}
    of_pod = known("core.v1.PodSpec") - compared(r"variables\.pod", r"variables\.podBefore")
    assert of_pod | {"resources"} == {"containers", "resources"}
    assert known("core.v1.Container") - compared("c", "b") == {"name", "resources"}


def test_the_operator_is_not_held_up(policed: str, operator: Operator, new_scenario: NewScenario) -> None:
    scenario, stateful = new_scenario(), new_scenario(kind="StatefulSet", changes=VERTICAL_ONLY)
    scenario.hpa_wants(4)
    scenario.await_replicas(4)
    stateful.vpa_recommends(cpu="1")
    stateful.await_requests(cpu="1")


def rendered(plane: ControlPlane, folder: Path) -> list[Json]:
    """What kustomize makes of a folder."""
    return [
        document for document in yaml.safe_load_all(plane.kubectl("kustomize", folder).stdout) if document
    ]


def on_top_of_default(folder: Path, **fields: str) -> Path:
    """A kustomization of a user's own on top of `config/default`."""
    base = os.path.relpath(CONFIG / "default", folder)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], **fields}))
    return folder


def test_it_confines_the_account_by_whatever_name_a_kustomization_on_top_gives_it(
    plane: ControlPlane, tmp_path: Path
) -> None:
    namespace = new_namespace(plane.api, "renamed")
    documents = rendered(plane, on_top_of_default(tmp_path, namespace=namespace, namePrefix="my-"))
    (account,) = (
        document["metadata"]["name"] for document in documents if document["kind"] == "ServiceAccount"
    )
    rights = rule("apps", ["deployments"], ["get", "patch"])
    for name in (account, "bystander"):
        new_account(plane, namespace, name, rights)
    plane.api.create(deployment("app", namespace))
    policies = [document for document in documents if document["kind"] in (POLICY, BINDING)]
    assert len(policies) == 2
    try:
        for policy in policies:
            plane.api.apply(policy)
        confined = api_of(plane, namespace, account)
        await_refusals(confined, namespace)
        assert REFUSED in refusal(confined, namespace, container(image="theirs"))
        assert refusal(confined, namespace, {"spec": {"replicas": 3}}) == ""
        assert refusal(api_of(plane, namespace, "bystander"), namespace, container(image="theirs")) == ""
    finally:
        for policy in reversed(policies):
            plane.api.delete(f"{policy['apiVersion']}/{policy['kind']}", policy["metadata"]["name"])


def test_where_the_account_is_gone_no_user_is_held_up(
    policed: str, plane: ControlPlane, tmp_path: Path
) -> None:
    documents = rendered(plane, on_top_of_default(tmp_path, namespace="nowhere", namePrefix="gone-"))
    policies = [document for document in documents if document["kind"] in (POLICY, BINDING)]
    try:
        for policy in policies:
            plane.api.apply(policy)
        for number in range(20):  # it takes the API server some time to learn of it
            assert refusal(plane.api, policed, {"metadata": {"labels": {"try": f"gone-{number}"}}}) == ""
    finally:
        for policy in reversed(policies):
            plane.api.delete(f"{policy['apiVersion']}/{policy['kind']}", policy["metadata"]["name"])


def test_it_can_be_left_out(plane: ControlPlane) -> None:
    def names(folder: str) -> set[tuple[str, str]]:
        return {
            (document["kind"], document["metadata"]["name"]) for document in rendered(plane, CONFIG / folder)
        }

    policy = {(kind, "hvpa-operator") for kind in (POLICY, BINDING)}
    whole, rest = names("default"), names("without-operator-policy")
    assert rest == whole - policy
    assert policy <= whole


def test_the_network_policy_is_one_that_the_api_server_takes(plane: ControlPlane) -> None:
    for document in rendered(plane, CONFIG / "network-policy"):
        plane.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(document))
