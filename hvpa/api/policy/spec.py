"""The specs of HvpaPolicy and ClusterHvpaPolicy: which workloads get an Hvpa, and which.

The template is kept as the user wrote it: the API server checks it by the schema of an Hvpa's spec (`hvpa.api.crd`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.schema.base import FieldError, Rule, SpecModel, dotted_path, fault
from hvpa.api.schema.fields import (
    LIST_LENGTH,
    Bytes,
    Count,
    Flag,
    Millicores,
    NamespaceName,
    ObjectName,
    PositiveCount,
)

Stage = Literal["Recommend", "Review", "Apply"]
PolicyWorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet"]
SET_BY_POLICY: Final = ("mode", "replicas", "targetRef")
"""Fields of an Hvpa's spec that its template does not have."""
MOST_CASES: Final = 20
Document = dict[str, Any]
_Fields = Annotated[
    Document, WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
_Names = Annotated[tuple[ObjectName, ...], Field(max_length=LIST_LENGTH)]
_NamespaceNames = Annotated[tuple[NamespaceName, ...], Field(max_length=LIST_LENGTH)]


class NamespaceChoice(SpecModel):
    """Namespaces. A namespace that `all`, `names` or `selector` selects is selected, unless it is excluded."""

    RULES = (
        Rule(
            "(has(self.all) && self.all) || (has(self.names) && self.names.size() > 0) || (has(self.selector)"
            " && ((has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0)"
            " || (has(self.selector.matchExpressions) && self.selector.matchExpressions.size() > 0)))",
            lambda choice: choice.all or bool(choice.names) or not choice.selector.is_empty,
            "selects no namespace: set all, names or selector",
        ),
    )

    all: Flag = False
    """Whether all namespaces are selected, except kube-system and the operator's namespace."""
    names: _NamespaceNames = ()
    """Names of namespaces. Only these may include kube-system and the operator's namespace."""
    selector: LabelSelector = LabelSelector()
    """Labels of namespaces. An empty selector selects nothing."""
    exclude: _NamespaceNames = ()
    """Names of namespaces that are not selected."""


class WorkloadExclusion(SpecModel):
    """Workloads that are not selected: those with one of the names, and those that the selector selects."""

    names: _Names = ()
    """Names of workloads."""
    selector: LabelSelector = LabelSelector()
    """Labels of workloads. An empty selector selects nothing."""


class WorkloadChoice(SpecModel):
    """Workloads of the selected namespaces. A workload must meet all conditions."""

    kinds: Annotated[tuple[PolicyWorkloadKind, ...], Field(min_length=1, max_length=3)] = (
        "Deployment",
        "StatefulSet",
    )
    """Kinds of workloads. Default: Deployment and StatefulSet."""
    selector: LabelSelector = LabelSelector()
    """Labels of workloads. If empty, the labels don't matter."""
    names: _Names = ()
    """Names of workloads. If empty, the names don't matter."""
    exclude: WorkloadExclusion = WorkloadExclusion()
    """Workloads that are not selected."""


class CaseCondition(SpecModel):
    """Conditions on a workload. All conditions that are set must be met."""

    RULES = (
        Rule(
            "has(self.minCpu) || has(self.minMemory) || (has(self.selector)"
            " && ((has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0)"
            " || (has(self.selector.matchExpressions) && self.selector.matchExpressions.size() > 0)))",
            lambda when: (
                when.min_cpu is not None or when.min_memory is not None or not when.selector.is_empty
            ),
            "has no condition: set selector, minCpu or minMemory",
        ),
    )

    selector: LabelSelector = LabelSelector()
    """Labels of the workload."""
    min_cpu: Millicores | None = None
    """Smallest CPU request of a pod, summed over its containers, at the time at which its Hvpa is created."""
    min_memory: Bytes | None = None
    """Smallest memory request of a pod, summed over its containers, at the time at which its Hvpa is created."""


class Case(SpecModel):
    """Changes to the template for some of the workloads."""

    when: CaseCondition
    """The workloads."""
    patch: _Fields
    """Fields of the template with other values. Objects are merged, lists are replaced. null is refused, because tools
    drop it: to remove the HPA, set hpa.deploy to false."""


class Rollout(SpecModel):
    """How a change of the policy reaches the Hvpas."""

    max_concurrent: PositiveCount = 10
    """How many workloads may change at the same time because of the policy. The next workload follows when the operator
    has decided with the new spec and, in modes Review and Apply, the workload's pods are as decided and available."""
    max_removals: Count = 10
    """How many Hvpas of workloads that the policy no longer selects may be removed within an hour. If there are more,
    or if the policy selects no workload at all, none of them is removed: a mistake in a selector takes no Hvpas away.
    Hvpas of workloads that are gone or opt out don't count."""


class HvpaPolicySpec(SpecModel):
    """Selects workloads and defines their Hvpas."""

    stage: Stage = "Recommend"
    """Mode of the Hvpas. Recommend: they only show what they would do. Review: they scale replicas, and change requests
    once they are approved (`hvpa approve`). Apply: they scale. Workloads with an HPA or VPA that acts stay in Recommend
    (see the annotation hvpa.autoscaling.k8s.io/adopt)."""
    workloads: WorkloadChoice = WorkloadChoice()
    """Workloads that get an Hvpa. Default: all Deployments and StatefulSets."""
    template: _Fields
    """The spec of the Hvpas, without targetRef, mode and replicas."""
    cases: Annotated[tuple[Case, ...], Field(max_length=MOST_CASES)] = ()
    """Changes to the template by label or size. The first case whose conditions a workload meets applies."""
    rollout: Rollout = Rollout()
    """How a change of the policy reaches the Hvpas."""

    @model_validator(mode="after")
    def _has_valid_templates(self) -> Self:
        for at, document in self._templates():
            if (null := _null_in(document)) is not None:
                raise fault("must not be null: set another value", *at, *null)
            for name in SET_BY_POLICY:
                if name in document:
                    raise fault("is set by the policy, not by the template", *at, name)
            if problems := parse_spec(targeting(document, "apps/v1", "Deployment", "name"))[1]:
                raise fault(_without_root(problems[0]), *at)
        return self

    def _templates(self) -> list[tuple[tuple[str | int, ...], Document]]:
        cases = [(("cases", index, "patch"), self.document(index)) for index in range(len(self.cases))]
        return [(("template",), self.template), *cases]

    def document(self, case: int | None) -> Document:
        """Returns the template, with the changes of the case of this number."""
        return self.template if case is None else merged(self.template, self.cases[case].patch)

    def specs(self) -> list[tuple[str, HvpaSpec]]:
        """Returns the specs of the Hvpas, for a Deployment, by the path of their template."""
        parsed = [
            (dotted_path(at), parse_spec(targeting(document, "apps/v1", "Deployment", "name"))[0])
            for at, document in self._templates()
        ]
        return [(at, spec) for at, spec in parsed if spec is not None]


class ClusterHvpaPolicySpec(HvpaPolicySpec):
    """Selects workloads in many namespaces and defines their Hvpas."""

    namespaces: NamespaceChoice
    """Namespaces of the workloads."""


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Returns the document with the fields of the patch. Example: `{a: {b: 1}}` and `{a: {c: 2}}` are
    `{a: {b: 1, c: 2}}`."""
    result = dict(document)
    for key, value in patch.items():
        if isinstance(value, dict):
            old = result.get(key)
            result[key] = merged(old if isinstance(old, dict) else {}, value)
        else:
            result[key] = value
    return result


def targeting(document: Mapping[str, Any], api_version: str, kind: str, name: str) -> Document:
    """Returns the spec of an Hvpa with this target."""
    return {**document, "targetRef": {"apiVersion": api_version, "kind": kind, "name": name}}


def _null_in(document: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Returns the path of a null outside of lists; None without one."""
    for key, value in document.items():
        if value is None:
            return (key,)
        if isinstance(value, dict) and (below := _null_in(value)) is not None:
            return (key, *below)
    return None


def _without_root(problem: FieldError) -> str:
    return f"{problem.path.removeprefix('spec.')}: {problem.message}"
