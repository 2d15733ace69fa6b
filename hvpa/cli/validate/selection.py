"""Which workloads of the files the policies of the files select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from hvpa.api.hvpa.resource import read_hvpa
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import RawHvpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyObject, read_policy
from hvpa.api.policy.spec import ClusterHvpaPolicySpec, PolicyWorkloadKind
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.values import text
from hvpa.cli.input.files import Document
from hvpa.cli.input.gather import DEFAULT_NAMESPACE
from hvpa.cli.validate.inputs import InputFinding
from hvpa.core.policies.model import PolicyInput, PresentHvpa, Target
from hvpa.core.policies.plan import plan
from hvpa.core.policies.selecting import selects_namespace
from hvpa.kube.clock import SystemClock

SELECTABLE: Final = frozenset(get_args(PolicyWorkloadKind))
"""Kinds of workloads that policies can select."""
OPERATOR: Final = "hvpa-system"
"""The operator's namespace as config/ and the chart have it. (`hvpa.cli.input.operator` would load the client.)"""


def selections(
    documents: Iterable[Document], policies: Sequence[Document], hvpas: Iterable[Document]
) -> list[InputFinding]:
    """Returns a finding for each policy about its workloads; none if the files have no workloads. The policies and
    Hvpas must be valid."""
    others = list(documents)
    workloads = [
        found
        for document in others
        if document.kind in SELECTABLE and (found := _decoded(document, Workload)) is not None
    ]
    if not workloads:
        return []
    namespaces = {str(each.metadata.get("name")): each for each in others if each.kind == "Namespace"}
    labels = {name: _labels(each) for name, each in namespaces.items()}
    read = {key: each for document in policies for key, each in _read(document)}
    present = [each for document in hvpas if (each := _present(document)) is not None]
    world = PolicyInput(
        [made for _, made in read.values()],
        labels,
        workloads,
        SELECTABLE,
        present,
        operator_namespace=OPERATOR,
    )
    made = plan(world, SystemClock().now())
    names: dict[PolicyKey, list[str]] = {}
    for change in made.changes:
        if change.policy is not None and change.action == "create":
            target = change.body["spec"]["targetRef"]
            names.setdefault(change.policy, []).append(f"{change.namespace}/{target['name']}")
    places = {each.metadata.namespace for each in workloads}
    unknown = places - namespaces.keys()
    findings = []
    for key, (document, policy) in read.items():
        status = made.statuses.get(key, policy.status)
        reason = _reason(status, names.get(key, []), len(workloads))
        needs_labels = isinstance(policy.spec, ClusterHvpaPolicySpec) and not (
            policy.spec.namespaces.all or policy.spec.namespaces.selector.is_empty
        )
        if needs_labels and unknown:
            reason += f"; the files lack the labels of the namespaces {text.names(sorted(unknown))}"
        is_lost = any(each.type == "Conflict" and each.status == "True" for each in status.conditions)
        is_odd = (
            not status.selected and not is_lost and any(_covers(policy, labels, place) for place in places)
        )
        severity = "warning" if is_odd else "note"
        findings.append(
            InputFinding(severity, document.file, document.line(), reason, "", document.title)  # type: ignore[arg-type]
        )
    return findings


def _covers(policy: PolicyObject, labels: Mapping[str, Mapping[str, str]], namespace: str) -> bool:
    """Whether a policy is about workloads of a namespace."""
    if isinstance(policy.spec, ClusterHvpaPolicySpec):
        return selects_namespace(policy.spec, namespace, labels.get(namespace, {}), OPERATOR)
    return policy.metadata.namespace == namespace


def _reason(status: PolicyStatus, made: Sequence[str], total: int) -> str:
    """Returns how many workloads of the files a policy selects, and how many get an Hvpa."""
    if not status.selected:
        reason = f"selects none of the {total} workloads in the files"
    else:
        names = f": {text.names(sorted(made))}" if made else ""
        reason = f"selects {status.selected} of the {total} workloads in the files, and makes {len(made)} Hvpas{names}"
    if status.opted_out:
        reason += f"; {status.opted_out} opt out"
    if status.written_by_others:
        reason += f"; {status.written_by_others} have an Hvpa of their own"
    conflict = [
        each.message for each in status.conditions if each.type == "Conflict" and each.status == "True"
    ]
    return "; ".join([reason, *conflict])


def _read(document: Document) -> list[tuple[PolicyKey, tuple[Document, PolicyObject]]]:
    raw = _decoded(document, RawHvpa, is_cluster=document.kind == "ClusterHvpaPolicy")
    if raw is None:
        return []
    policy = read_policy(document.kind, raw)  # type: ignore[arg-type]
    return [(policy.key, (document, policy))]


def _present(document: Document) -> PresentHvpa | None:
    raw = _decoded(document, RawHvpa)
    reference: Any = document.content["spec"]
    target = reference["targetRef"]
    if raw is None:
        return None
    kind = kind_key(target.get("apiVersion"), target["kind"])
    return PresentHvpa(
        raw.metadata, Target(raw.metadata.namespace, kind, target["name"]), lambda: read_hvpa(raw)
    )


def _decoded(document: Document, kind: type[Any], *, is_cluster: bool = False) -> Any:
    """Returns an object as the cluster would have it; None if it can't be read."""
    metadata = dict(document.metadata)
    namespace = "" if is_cluster else metadata.get("namespace") or DEFAULT_NAMESPACE
    unique = f"{document.kind}/{namespace}/{metadata.get('name')}"
    complete = {**document.content, "metadata": {**metadata, "namespace": namespace, "uid": unique}}
    try:
        return msgspec.json.decode(msgspec.json.encode(complete), type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _labels(document: Document) -> dict[str, str]:
    labels = document.metadata.get("labels")
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
