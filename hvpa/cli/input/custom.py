"""Workloads of custom kinds in files, for example Argo's Rollout.

They are read like their `scale` subresource, with the object's pod template if it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hvpa.api.objects.kinds import is_custom, kind_key
from hvpa.api.objects.read_models import PodTemplate, Selector, Workload
from hvpa.api.values.documents import Plain
from hvpa.cli.input.files import Document, value_at
from hvpa.core.workload.selector import selector_text
from hvpa.kube.cache.targeting import Target
from hvpa.kube.objects.workloads import from_scale


def named_targets(documents: Iterable[Document], namespace: str) -> set[Target]:
    """The targets of the Hvpas, HPAs, VPAs and KEDA ScaledObjects among the documents.

    `namespace` is used for documents without a namespace.
    """
    targets = set()
    for document in documents:
        for field in ("targetRef", "scaleTargetRef"):
            reference = value_at(document.content, "spec", field)
            version, kind, name = (value_at(reference, key) for key in ("apiVersion", "kind", "name"))
            if isinstance(version, str) and isinstance(kind, str) and isinstance(name, str):
                space = document.metadata.get("namespace", namespace)
                targets.add(Target(str(space), kind_key(version, kind), name))
    return targets


def is_workload(document: Document, key: Target | None, named: set[Target]) -> bool:
    """Whether the object is a workload of a custom kind: it is the target of another object (`key` is its own key),
    or has a pod template and a selector."""
    if not is_custom(_version(document.content), document.kind):
        return False
    spec = document.content.get("spec")
    has_pods = isinstance(value_at(spec, "template", "spec", "containers"), list) and value_at(
        spec, "selector"
    )
    return key in named or bool(has_pods)


def read_custom(content: Mapping[str, Plain]) -> Workload:
    """The workload of an object of a custom kind. Raises msgspec.MsgspecError."""
    spec, status = content.get("spec"), content.get("status")
    replicas = value_at(spec, "replicas")
    replicas = 1 if replicas is None else replicas  # the API server's default
    count, selector = value_at(status, "replicas"), value_at(status, "selector")
    if selector is None:
        labels = value_at(spec, "selector") or {}
        is_flat = isinstance(labels, dict) and all(isinstance(label, str) for label in labels.values())
        label_selector = Selector(match_labels=labels) if is_flat else msgspec.convert(labels, type=Selector)
        selector = selector_text(label_selector)
    scale = {
        "metadata": content["metadata"],
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas if count is None else count, "selector": selector},
    }
    workload = from_scale(_version(content), str(content["kind"]), msgspec.json.encode(scale))
    template = value_at(spec, "template")
    if not value_at(template, "spec", "containers"):
        return workload
    full_spec = msgspec.structs.replace(workload.spec, template=msgspec.convert(template, type=PodTemplate))
    return msgspec.structs.replace(workload, spec=full_spec)


def key_of(document: Document, namespace: str) -> Target | None:
    """The object's key among targets; None without a name."""
    name, space = document.metadata.get("name"), document.metadata.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(space, str):
        return None
    return Target(space, kind_key(_version(document.content), document.kind), name)


def _version(content: Mapping[str, Any]) -> str:
    return str(content.get("apiVersion", ""))
