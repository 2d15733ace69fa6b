"""Which workloads a policy selects, which of several policies wins, and the template for a workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.objects.read_models import Workload
from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.spec import CaseCondition, ClusterHvpaPolicySpec, HvpaPolicySpec
from hvpa.api.values.quantity import QuantityError, Resource, parse_resource

KUBE_SYSTEM: Final = "kube-system"
_SIZE: Final = re.compile(r"([0-9]{1,30}) ([0-9]{1,30})")
"""A size in an annotation, which anybody may have written: `int` refuses very long numbers."""


class Size(NamedTuple):
    """Requests of a pod, in millicores and bytes."""

    cpu: int
    memory: int

    def __str__(self) -> str:
        return f"{self.cpu} {self.memory}"


def size_of(workload: Workload) -> Size:
    """Returns the requests of a pod, summed over its containers. Requests that can't be read count as 0."""
    return Size(_requested(workload, "cpu"), _requested(workload, "memory"))


def _requested(workload: Workload, resource: Resource) -> int:
    total = 0
    for container in workload.spec.template.spec.containers:
        try:
            total += parse_resource(resource, container.resources.requests.get(resource, 0))
        except QuantityError:
            continue
    return total


def read_size(text: str | None) -> Size | None:
    """Returns the size that an annotation has; None if it has none."""
    match = _SIZE.fullmatch(text or "")
    return None if match is None else Size(int(match[1]), int(match[2]))


def rank(policy: PolicyObject, spec: HvpaPolicySpec) -> tuple[bool, int, bool, str]:
    """Returns the order of policies for the same workload, most specific first: an HvpaPolicy before a
    ClusterHvpaPolicy, then more conditions on workloads, then not all namespaces, then the name."""
    chosen = spec.workloads
    conditions = len(chosen.selector.match_labels) + len(chosen.selector.match_expressions)
    is_cluster = isinstance(spec, ClusterHvpaPolicySpec)
    all_namespaces = isinstance(spec, ClusterHvpaPolicySpec) and spec.namespaces.all
    return (is_cluster, -conditions - bool(chosen.names), all_namespaces, policy.metadata.name)


def selects_namespace(
    spec: ClusterHvpaPolicySpec, namespace: str, labels: Mapping[str, str], operator: str
) -> bool:
    """Whether a ClusterHvpaPolicy selects workloads of a namespace. `operator` is the operator's namespace."""
    return not why_not_namespace(spec, namespace, labels, operator)


def why_not_namespace(
    spec: ClusterHvpaPolicySpec, namespace: str, labels: Mapping[str, str], operator: str
) -> str:
    """Returns why a ClusterHvpaPolicy does not select workloads of a namespace; empty if it does."""
    chosen = spec.namespaces
    if namespace in chosen.exclude:
        return "namespaces.exclude has its namespace"
    if namespace in chosen.names:
        return ""
    if namespace in (KUBE_SYSTEM, operator):
        return "namespaces.names does not have its namespace, as kube-system and the operator's namespace require"
    if chosen.all or chosen.selector.matches(labels):
        return ""
    return "namespaces does not select its namespace"


def selects_workload(spec: HvpaPolicySpec, workload: Workload, operator: str) -> bool:
    """Whether a policy selects a workload of a selected namespace."""
    return not why_not_workload(spec, workload, operator)


def why_not_workload(spec: HvpaPolicySpec, workload: Workload, operator: str) -> str:
    """Returns why a policy does not select a workload of a selected namespace; empty if it does. In the operator's
    namespace, it selects only workloads that it names, so that nobody scales the operator by mistake."""
    chosen, meta = spec.workloads, workload.metadata
    if workload.kind not in chosen.kinds:
        return "workloads.kinds does not have its kind"
    if meta.name in chosen.exclude.names:
        return "workloads.exclude.names has its name"
    if chosen.exclude.selector.matches(meta.labels):
        return "workloads.exclude.selector matches its labels"
    if chosen.names and meta.name not in chosen.names:
        return "workloads.names does not have its name"
    if meta.namespace == operator and not chosen.names:
        return "workloads.names does not have its name, as the operator's namespace requires"
    if not _matches_or_is_empty(chosen.selector, meta.labels):
        return "workloads.selector does not match its labels"
    return ""


def case_of(spec: HvpaPolicySpec, workload: Workload, size: Size) -> int | None:
    """Returns the number of the first case whose conditions the workload meets."""
    for index, case in enumerate(spec.cases):
        if _meets(case.when, workload, size):
            return index
    return None


def _meets(when: CaseCondition, workload: Workload, size: Size) -> bool:
    if when.min_cpu is not None and size.cpu < when.min_cpu:
        return False
    if when.min_memory is not None and size.memory < when.min_memory:
        return False
    return _matches_or_is_empty(when.selector, workload.metadata.labels)


def _matches_or_is_empty(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return selector.is_empty or selector.matches(labels)
