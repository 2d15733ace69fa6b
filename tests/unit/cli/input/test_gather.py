"""Which objects of the files belong to the Hvpa, and what is filled in that files don't say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hvpa.api.objects.read_models import Hpa
from hvpa.cli.input.files import value_at
from hvpa.cli.input.gather import Gathered, gather
from hvpa.core.model import ADOPTED
from hvpa.core.workload.pod_owner import by_owner
from tests.unit.cli.support import Doc, Shell, changed, of_kind

OWNED_BY_UID = "99999999-0000-0000-0000-000000000000"


def reference(**changes: Any) -> Doc:
    """An owner reference to the Hvpa."""
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "hvpa-sample", **changes}


def gathered(shell: Shell, documents: list[Doc], namespace: str | None = None) -> Gathered:
    """What is gathered from these documents."""
    return gather([shell.file(documents)], namespace)


def only_hpa(inputs: Gathered) -> Hpa:
    """The one HPA that was found."""
    (hpa,) = inputs.objects.hpas
    return hpa


def hpa_condition(explained: Any) -> tuple[str, str]:
    """Status and reason of HpaActive."""
    return next(
        (condition["status"], condition["reason"])
        for condition in explained["conditions"]
        if condition["type"] == "HpaActive"
    )


# --- namespaces ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "flag", "namespace"),
    [
        pytest.param({}, None, "default", id="none is named"),
        pytest.param({"Hvpa__metadata__namespace": "shop"}, None, "shop", id="only the Hvpa names one"),
        pytest.param({"Deployment__metadata__namespace": "shop"}, "shop", "shop", id="one is given"),
    ],
)
def test_documents_without_a_namespace_are_in_the_hvpas(
    shell: Shell, gardener: list[Doc], changes: Doc, flag: str | None, namespace: str
) -> None:
    objects = gathered(shell, changed(gardener, **changes), flag).objects
    assert objects.workload is not None
    assert {objects.hvpa.metadata.namespace, objects.workload.metadata.namespace} == {namespace}
    assert (len(objects.hpas), len(objects.vpas), len(objects.pods)) == (1, 1, 3)


@pytest.mark.parametrize(
    ("kind", "left"), [("Deployment", (0, 1, 1)), ("HPA", (1, 0, 1)), ("VPA", (1, 1, 0))]
)
def test_objects_of_another_namespace_do_not_count(
    shell: Shell, gardener: list[Doc], kind: str, left: tuple[int, int, int]
) -> None:
    objects = gathered(shell, changed(gardener, **{f"{kind}__metadata__namespace": "elsewhere"})).objects
    assert (int(objects.workload is not None), len(objects.hpas), len(objects.vpas)) == left


@pytest.mark.parametrize("change", [{"namespace": "elsewhere"}, {"labels": {"app": "other"}}])
def test_pods_are_those_of_the_namespace_that_the_workload_selects(
    shell: Shell, gardener: list[Doc], change: Doc
) -> None:
    ((field, value),) = change.items()
    assert len(gathered(shell, changed(gardener, **{f"Pod__metadata__{field}": value})).objects.pods) == 2


def owned_pods(shell: Shell, documents: list[Doc], **metadata: Any) -> int:
    """How many of the pods are the Deployment's, one of them with this metadata."""
    changes = {f"Pod__metadata__{name}": value for name, value in metadata.items()}
    objects = gathered(shell, changed(documents, **changes)).objects
    assert objects.workload is not None
    return len(by_owner(objects.pods, objects.workload).own)


def test_a_pod_without_owner_references_belongs_to_the_workload_that_selects_it(
    shell: Shell, gardener: list[Doc]
) -> None:
    assert owned_pods(shell, gardener) == 3


@pytest.mark.parametrize(
    ("owner", "uid", "count"),
    [
        ({"kind": "Job", "apiVersion": "batch/v1", "name": "import"}, "w", 2),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "resource-consumer-5d4f"}, "w", 1),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "resource-consumer-api-5d4f"}, "w", 2),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "5d4f"}, "w", 2),
        ({"kind": "Deployment", "apiVersion": "apps/v1", "name": "resource-consumer"}, "", 1),
        ({"kind": "Deployment", "apiVersion": "apps/v1", "name": "resource-consumer"}, "w", 2),
    ],
)
def test_a_pod_that_names_its_owner_is_that_owners(
    shell: Shell, gardener: list[Doc], owner: Doc, uid: str, count: int
) -> None:
    """Of three pods one names its owner. If that is the workload, the two others were created by somebody else."""
    reference = {**owner, "uid": "x", "controller": True}
    documents = changed(gardener, Deployment__metadata__uid=uid)
    assert owned_pods(shell, documents, ownerReferences=[reference]) == count
    assert owned_pods(shell, documents, ownerReferences=[{**reference, "controller": False}]) == 2


# --- kinds -----------------------------------------------------------------------------------------------------------
def test_kinds_of_other_groups_are_left_out(shell: Shell, gardener: list[Doc]) -> None:
    impostor = {"apiVersion": "example.com/v1", "kind": "Deployment", "metadata": {"name": 3}, "spec": "none"}
    assert gathered(shell, [*gardener, impostor]).objects.workload is not None


def test_a_stateful_set_is_a_workload_too(shell: Shell, gardener: list[Doc]) -> None:
    documents = changed(gardener, Hvpa__spec__targetRef__kind="StatefulSet", Deployment__kind="StatefulSet")
    documents = changed(documents, VPA__spec__targetRef__kind="StatefulSet")
    workload = gathered(shell, documents).objects.workload
    assert workload is not None
    assert workload.kind == "StatefulSet"
    assert shell.explain(documents)["replicas"]["target"] == 5


def test_of_two_objects_of_one_name_the_later_counts(shell: Shell, gardener: list[Doc]) -> None:
    later = of_kind(changed(gardener, Deployment__spec__replicas=4), "Deployment")
    workload = gathered(shell, [*gardener, later]).objects.workload
    assert workload is not None
    assert workload.spec.replicas == 4


# --- ownership -------------------------------------------------------------------------------------------------------
def test_uids_are_the_same_each_time(shell: Shell, gardener: list[Doc]) -> None:
    first, again = gathered(shell, gardener).objects, gathered(shell, gardener).objects
    assert first.hvpa.metadata.uid == again.hvpa.metadata.uid != ""
    assert first.hpas[0].metadata.uid == again.hpas[0].metadata.uid != first.hvpa.metadata.uid


def test_a_recommender_that_the_selector_matches_is_ours(shell: Shell, gardener: list[Doc]) -> None:
    inputs = gathered(shell, gardener)
    controller = only_hpa(inputs).metadata.controller()
    assert controller is not None
    assert controller.uid == inputs.objects.hvpa.metadata.uid
    assert inputs.objects.vpas[0].metadata.controller() is not None


KEDA = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "x", "uid": "k", "controller": True}


@pytest.mark.parametrize("metadata", [{"labels": {"key1": "other"}}, {"ownerReferences": [KEDA]}])
def test_a_recommender_with_other_labels_or_of_another_client_is_foreign(
    shell: Shell, gardener: list[Doc], metadata: Doc
) -> None:
    ((field, value),) = metadata.items()
    documents = changed(gardener, **{f"HPA__metadata__{field}": value})
    kept = [owner.name for owner in only_hpa(gathered(shell, documents)).metadata.owner_references]
    assert kept == [owner["name"] for owner in metadata.get("ownerReferences", ())]
    assert hpa_condition(shell.explain(documents)) == ("False", "ForeignHpa")


def test_an_hpa_that_points_at_the_workload_is_adopted_first(shell: Shell, gardener: list[Doc]) -> None:
    at_workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "resource-consumer"}
    documents = changed(gardener, HPA__spec__scaleTargetRef=at_workload)
    apply = shell.explain(documents)
    assert hpa_condition(apply) == ("False", "HpaAwaited")
    assert apply["replicas"]["target"] == 3, "it acts until then"
    recommend = shell.explain(changed(documents, Hvpa__spec__mode="Recommend"))
    assert hpa_condition(recommend) == ("True", "ReadAsIs")
    assert recommend["recommended"]["replicas"] == 5
    assert not recommend["changes"]


def test_an_exported_hpa_that_an_hvpa_from_a_repository_adopted_is_the_hvpas(
    shell: Shell, gardener: list[Doc]
) -> None:
    name = of_kind(gardener, "Hvpa")["metadata"]["name"]
    note = json.dumps({"hvpa": name, "uid": "u-1", "spec": {}})
    documents = changed(gardener, HPA__metadata__annotations={ADOPTED: note}, HPA__metadata__labels={})
    inputs = gathered(shell, documents)
    assert inputs.objects.hvpa.metadata.uid == "u-1"
    assert only_hpa(inputs).metadata.owner_references == []
    assert hpa_condition(shell.explain(documents)) == ("True", "Recommending")
    assert hpa_condition(shell.explain(changed(gardener, HPA__metadata__labels={}))) == (
        "False",
        "ForeignHpa",
    )
    other = changed(documents, HPA__metadata__annotations={ADOPTED: "[]"})
    assert hpa_condition(shell.explain(other)) == ("False", "ForeignHpa")


def test_a_vpa_that_updates_pods_is_adopted_and_foreign_where_nothing_is(
    shell: Shell, gardener: list[Doc]
) -> None:
    documents = changed(gardener, VPA__spec__updatePolicy={"updateMode": "Recreate"})
    assert gathered(shell, documents).objects.vpas[0].metadata.owner_references == []
    assert shell.explain(documents)["changes"] is True


def test_nothing_is_owned_where_nothing_is_deployed(shell: Shell, gardener: list[Doc]) -> None:
    documents = changed(gardener, Hvpa__spec__hpa__deploy=False)
    assert only_hpa(gathered(shell, documents)).metadata.owner_references == []


def test_an_exported_hpa_knows_the_uid_of_an_hvpa_from_a_repository(
    shell: Shell, gardener: list[Doc]
) -> None:
    owner = reference(uid=OWNED_BY_UID, controller=True)
    documents = changed(
        gardener,
        HPA__metadata__ownerReferences=[owner],
        HPA__metadata__labels={},
    )
    assert gathered(shell, documents).objects.hvpa.metadata.uid == OWNED_BY_UID
    assert hpa_condition(shell.explain(documents))[1] == "Recommending"


def test_an_owner_reference_without_a_uid_is_completed(shell: Shell, gardener: list[Doc]) -> None:
    references = [reference(controller=True), {"kind": "Other", "name": "hvpa-sample"}]
    documents = changed(gardener, HPA__metadata__ownerReferences=references)
    inputs = gathered(shell, documents)
    uids = [owner.uid for owner in only_hpa(inputs).metadata.owner_references]
    assert uids == [inputs.objects.hvpa.metadata.uid, ""]


def test_uids_of_the_files_are_kept(shell: Shell, gardener: list[Doc]) -> None:
    documents = changed(gardener, Hvpa__metadata__uid="own", HPA__metadata__uid="theirs")
    inputs = gathered(shell, documents)
    assert (inputs.objects.hvpa.metadata.uid, only_hpa(inputs).metadata.uid) == ("own", "theirs")


# --- a workload without a controller ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("status", "complete"),
    [
        (None, True),
        ({}, True),
        ({"replicas": 3}, True),
        ({"replicas": 3, "readyReplicas": 3}, True),
        ({"replicas": 3, "readyReplicas": 2}, False),
        ({"replicas": 3, "availableReplicas": 1}, False),
    ],
)
def test_a_status_that_no_controller_wrote_is_completed(
    shell: Shell, gardener: list[Doc], status: Doc | None, complete: bool
) -> None:
    documents = changed(gardener, Deployment__status=status)
    reported = "complete" if complete else "not complete"
    assert gathered(shell, documents).notes == (
        "the status of Deployment resource-consumer was not written by its controller: HVPA treats the rollout as "
        f"{reported}",
    )
    assert (shell.explain(documents)["blocked"] == []) is complete


def test_a_controllers_status_is_believed(shell: Shell, gardener: list[Doc]) -> None:
    assert gathered(shell, gardener).notes == ()
    documents = changed(gardener, Deployment__status={"observedGeneration": 4, "replicas": 3})
    assert gathered(shell, documents).notes == ()
    assert {hold["reason"] for hold in shell.explain(documents)["blocked"]} == {"Rollout"}


# --- kinds of workloads ----------------------------------------------------------------------------------------------
def as_kind(documents: list[Doc], kind: str, version: str) -> list[Doc]:
    """The same documents with the Deployment as another kind, which the Hvpa and its VPA name."""
    converted = []
    for document in changed(documents, Hvpa__spec__updateStrategy={"type": "InPlace"}):
        if document["kind"] == "Deployment":
            spec, status = {**document["spec"]}, {**document.get("status", {})}
            if kind == "ReplicationController":
                spec["selector"] = spec["selector"]["matchLabels"]
            if kind == "DaemonSet":
                count = spec.pop("replicas")
                names = ("desired", "current", "updated")
                status = {"observedGeneration": 1, "numberReady": count, "numberAvailable": count}
                status |= {f"{name}NumberScheduled": count for name in names}
            document = {**document, "apiVersion": version, "kind": kind, "spec": spec, "status": status}
        for field in ("targetRef", "scaleTargetRef"):
            if value_at(document, "spec", field, "kind") == "Deployment":
                reference = {**document["spec"][field], "apiVersion": version, "kind": kind}
                document = {**document, "spec": {**document["spec"], field: reference}}
        converted.append(document)
    return converted


KINDS = {
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Rollout": "argoproj.io/v1alpha1",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_of_every_kind_is_found(shell: Shell, gardener: list[Doc], kind: str) -> None:
    deployment = gathered(shell, gardener).objects.workload
    objects = gathered(shell, as_kind(gardener, kind, KINDS[kind])).objects
    assert deployment is not None
    assert objects.workload is not None
    assert (objects.workload.kind, objects.workload.api_version) == (kind, KINDS[kind])
    assert objects.workload.spec.replicas == deployment.spec.replicas
    assert [container.resources for container in objects.workload.spec.template.spec.containers] == [
        container.resources for container in deployment.spec.template.spec.containers
    ]
    assert len(objects.pods) == 3
    assert objects.unlisted is None


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_explained_is_decided_for_a_workload_of_every_kind(
    shell: Shell, gardener: list[Doc], kind: str
) -> None:
    ready = shell.explain(as_kind(gardener, kind, KINDS[kind]))["conditions"][0]
    assert ready["reason"] not in ("TargetNotFound", "TargetUnreadable", "UnsupportedTarget")


def test_a_custom_kind_of_another_group_is_another_workload(shell: Shell, gardener: list[Doc]) -> None:
    documents = as_kind(gardener, "Rollout", "argoproj.io/v1alpha1")
    other = [
        {**document, "apiVersion": "example.com/v1"} if document["kind"] == "Rollout" else document
        for document in documents
    ]
    assert gathered(shell, other).objects.workload is None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"spec": {"replicas": "many"}}, "spec.replicas: must be"),
        ({"spec": {"replicas": -1}}, "must not be negative"),
        ({"spec": {"selector": 3}}, "must be an object"),
        ({"status": {"selector": "a in ("}}, "no label selector"),
        ({"metadata": None}, "metadata: must be an object"),
    ],
)
def test_a_custom_object_that_cannot_be_used_is_skipped_with_one_line(
    shell: Shell, gardener: list[Doc], changes: Doc, error: str
) -> None:
    documents = [
        {**document, **changes} if document["kind"] == "Rollout" else document
        for document in as_kind(gardener, "Rollout", "argoproj.io/v1alpha1")
    ]
    ran = shell.run("explain", "-f", shell.file(documents))
    (line,) = ran.err.splitlines()
    assert (ran.code, line.startswith("hvpa: skipped: ")) == (0, True)
    assert "Rollout" in line
    assert error in line


def test_a_daemon_set_without_a_status_has_as_many_replicas_as_pods(
    shell: Shell, gardener: list[Doc]
) -> None:
    documents = [
        {**document, "status": {}} if document["kind"] == "DaemonSet" else document
        for document in as_kind(gardener, "DaemonSet", "apps/v1")
    ]
    workload = gathered(shell, documents).objects.workload
    assert workload is not None
    assert (workload.spec.replicas, workload.status.ready_replicas) == (3, 3)
