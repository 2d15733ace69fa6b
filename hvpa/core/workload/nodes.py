"""What nodes allow: the largest node that a workload's pods may use (`spec.vpa.maxAllowed: LargestNode`), and nodes
that resize no CPU or no memory.

The rules are the scheduler's for required node selectors, required node affinity and taints (pkg/scheduler/framework/
plugins/nodeaffinity and tainttoleration, and component-helpers/scheduling/corev1). HVPA does not evaluate pods on the
nodes, such as DaemonSets, nor pod affinity, topology spread, volumes, runtime classes and devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hvpa.api.objects.read_models import (
    Expression,
    Node,
    NodeSelectorTerm,
    Taint,
    TemplateSpec,
    Toleration,
)
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.model import LargestNode
from hvpa.core.workload.containers import amounts

NODE_RULES: Final[Mapping[str, Resource]] = {
    'alongside CPU Manager policy "static"': "cpu",
    'alongside Memory Manager policy "Static"': "memory",
    "In-place resize of containers with swap is not supported": "memory",
}
"""Refusals of a kubelet that no size of the resource avoids, by a part of its message (pkg/kubelet/allocation). With
swap, it refuses another memory request unless that restarts the container."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}\Z", re.ASCII)
_EXCLUDES: Final = ("NoSchedule", "NoExecute")
_FOR_A_TIME: Final = (
    "node.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
)
"""Beginnings of taints that a node has for a time only, such as `unschedulable` while it is drained."""


def rules_named(message: str) -> Mapping[str, Resource]:
    """Returns the `NODE_RULES` that a kubelet's message names."""
    return {part: resource for part, resource in NODE_RULES.items() if part in message}


def never_resized(message: str) -> frozenset[Resource]:
    """Returns the resources of which a kubelet resizes nothing, by its message; empty if another size may be
    possible."""
    return frozenset(rules_named(message).values())


def largest_node(nodes: Iterable[Node], pod: TemplateSpec) -> LargestNode:
    """Returns the largest CPU and memory among the nodes that pods of this template may use."""
    largest: dict[Resource, int] = {}
    for node in nodes:
        if not _may_use(node, pod):
            continue
        for resource, amount in amounts(node.status.allocatable).items():
            largest[resource] = max(amount, largest.get(resource, 0))
    if largest.keys() < set(RESOURCES):
        return LargestNode(problem="there is no node that the pods may use")
    return LargestNode(largest)


def _may_use(node: Node, pod: TemplateSpec) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    affinity = None if pod.affinity is None else pod.affinity.node_affinity
    if affinity is not None and affinity.required is not None:
        terms = affinity.required.node_selector_terms
        if not any(_meets_term(node, term) for term in terms):
            return False
    return all(_tolerates(pod.tolerations, taint) for taint in node.spec.taints)


def _meets_term(node: Node, term: NodeSelectorTerm) -> bool:
    """Whether a node meets all requirements of a term; a term without requirements selects no node."""
    fields = {"metadata.name": node.metadata.name}
    checks = [_meets(expression, node.metadata.labels) for expression in term.match_expressions]
    checks += [_meets(expression, fields) for expression in term.match_fields]
    return bool(checks) and all(checks)


def _meets(expression: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "NotIn":
        return value not in expression.values
    if expression.operator == "Exists":
        return value is not None
    if expression.operator == "DoesNotExist":
        return value is None
    if value is None or len(expression.values) != 1:
        return False
    if not (_NUMBER.match(value) and _NUMBER.match(expression.values[0])):
        return False
    have, bound = int(value), int(expression.values[0])
    return have > bound if expression.operator == "Gt" else expression.operator == "Lt" and have < bound


def _tolerates(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    if taint.effect not in _EXCLUDES or taint.key.startswith(_FOR_A_TIME):
        return True
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.key and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
