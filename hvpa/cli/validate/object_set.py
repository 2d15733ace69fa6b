"""Checks across the objects of an input: two Hvpas with the same target, containers that don't exist, an HPA or VPA
that scales the workload itself.

Only objects of the same namespace are compared; an object without a namespace is in the namespace to which it is
applied.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.api.hvpa.resource import KIND
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.templates import ContainerPolicy
from hvpa.api.objects.read_models import policies_by_name
from hvpa.api.values.documents import Plain
from hvpa.api.values.quantity import RESOURCES, Resource, readable_resource
from hvpa.cli.input.files import Document, value_at
from hvpa.core.model import GROUP
from hvpa.core.spec.ranges import POLICIES
from hvpa.core.spec.review import Remark, are_off, has_vpa
from hvpa.core.workload.containers import amount

_HPA: Final = "HorizontalPodAutoscaler"
_VPA: Final = "VerticalPodAutoscaler"
_KEDA: Final = "ScaledObject"


@dataclass(frozen=True, slots=True)
class ValidHvpa:
    """An Hvpa without errors: its document and its spec."""

    document: Document
    spec: HvpaSpec

    @property
    def name(self) -> Plain:
        """Its name."""
        return self.document.metadata.get("name")


def review_set(
    hvpa: ValidHvpa, hvpas: Sequence[ValidHvpa], documents: Sequence[Document]
) -> Iterator[Remark]:
    """The remarks on `hvpa`, given all `hvpas` and all `documents` of the input."""
    near = [other for other in documents if _namespace(other) == _namespace(hvpa.document)]
    yield from _same_target(hvpa, [other for other in hvpas if other is not hvpa and other.document in near])
    for other in near:
        if (
            other.kind == hvpa.spec.target_ref.kind
            and other.metadata.get("name") == hvpa.spec.target_ref.name
        ):
            yield from _containers(hvpa.spec, other)
            yield from _sizes(hvpa.spec, other)
            yield from _resizes(hvpa.spec, other)
            yield from _replacements(hvpa.spec, other)
    if hvpa.spec.mode != "Recommend":
        yield from _scaled_by_others(hvpa, near)


def _same_target(hvpa: ValidHvpa, others: Sequence[ValidHvpa]) -> Iterator[Remark]:
    target = hvpa.spec.target_ref
    for other in others:
        if other.name == hvpa.name and hvpa.name is not None:
            at = f"{other.document.file}:{other.document.line()}"
            reason = (
                f"another Hvpa has the same name ({at}): the Hvpa that is applied last replaces the other"
            )
            yield Remark("metadata.name", reason, "rename or remove either Hvpa")
            continue
        both_apply = hvpa.spec.applies and other.spec.applies
        if both_apply and (other.spec.target_ref.kind, other.spec.target_ref.name) == (
            target.kind,
            target.name,
        ):
            at = f"{other.document.place} scales {target.kind} {target.name} too"
            remedy = "remove either Hvpa, or set its mode: Recommend"
            yield Remark("spec.targetRef", f"{at}: neither Hvpa will scale it", remedy)


# --- containers -----------------------------------------------------------------------------------------------
def _containers(spec: HvpaSpec, workload: Document) -> Iterator[Remark]:
    names = list(_container_names(workload))
    metrics = spec.hpa.template.spec.metrics if spec.hpa.template.spec is not None else ()
    named = {
        f"spec.hpa.template.spec.metrics[{index}].containerResource.container": metric.container_resource.container
        for index, metric in enumerate(metrics)
        if metric.container_resource is not None
    }
    policies = {f"{POLICIES}[{index}].containerName": policy for index, policy in enumerate(_policies(spec))}
    for path, name in [*((path, policy.container_name) for path, policy in policies.items()), *named.items()]:
        if names and name not in (None, "*", *names):
            near = difflib.get_close_matches(str(name), names, n=1)
            reason = f"{workload.place} has no container {name}"
            yield Remark(path, reason, f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}")


def _policies(spec: HvpaSpec) -> Sequence[ContainerPolicy]:
    policy = spec.vpa.template.spec.resource_policy if spec.vpa.template.spec is not None else None
    return () if policy is None else policy.container_policies


def _sizes(spec: HvpaSpec, workload: Document) -> Iterator[Remark]:
    """Requests that the Hvpa can only lower, or not raise, because of its own container policies."""
    policies = _policies(spec) if spec.vpa.deploy else ()
    find = policies_by_name(policies)
    for container in _plain_containers(workload):
        policy = find(str(container.get("name")))
        index = next((number for number, candidate in enumerate(policies) if candidate is policy), None)
        if index is None or policy.mode == "Off" or are_off(spec.vpa):
            continue
        controlled = RESOURCES if policy.controlled_resources is None else policy.controlled_resources
        for resource in RESOURCES:
            request, limit = (
                _amount(_below(container, "resources", part), resource) for part in ("requests", "limits")
            )
            most = amount(policy.max_allowed, resource)
            if resource not in controlled or request is None:
                continue
            requested = (
                f"{readable_resource(resource, request)} of {resource} for container {container['name']}"
            )
            what = f"{workload.place} requests {requested}"
            if most is not None and most < request:
                yield Remark(
                    f"{POLICIES}[{index}].maxAllowed[{resource}]",
                    f"{what}, which is more: the request is lowered to maxAllowed, and never raised",
                    "raise maxAllowed to the most that a pod may need, or lower the request",
                )
            elif policy.controlled_values == "RequestsOnly" and limit is not None and limit <= request:
                yield Remark(
                    f"{POLICIES}[{index}].controlledValues",
                    f"{what}, which is its limit: with RequestsOnly the limit stays, and the request is never raised",
                    "use RequestsAndLimits, or raise the limit",
                )


def _amount(amounts: dict[str, Plain], resource: Resource) -> int | None:
    """A resource of an unchecked manifest."""
    return amount(
        {key: quantity for key, quantity in amounts.items() if isinstance(quantity, str | int | float)},
        resource,
    )


def _container_names(workload: Document) -> Iterator[str]:
    for field in ("containers", "initContainers"):
        yield from (str(container["name"]) for container in _plain_containers(workload, field))


def _plain_containers(workload: Document, field: str = "containers") -> Iterator[dict[str, Plain]]:
    """The containers of the pod template that have a name."""
    entries = _below(workload.content, "spec", "template", "spec").get(field)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry


def _resizes(spec: HvpaSpec, workload: Document) -> Iterator[Remark]:
    """Pods that can't be resized in place, if the strategy has no other way."""
    kind = spec.strategy.type
    at = workload.place
    containers = [*_plain_containers(workload), *_plain_containers(workload, "initContainers")]
    has_any = any(
        _amount(_below(container, "resources", part), resource)
        for container in [*containers, _below(workload.content, "spec", "template", "spec")]
        for part in ("requests", "limits")
        for resource in RESOURCES
    )
    if kind == "InPlace" and containers and not has_any and has_vpa(spec):
        yield Remark(
            "spec.updateStrategy.type",
            f"{at} has neither requests nor limits: pods of QoS class BestEffort can't be resized",
            "set requests in its template; or use InPlaceOrRollout, which patches the template",
        )


def _replacements(spec: HvpaSpec, workload: Document) -> Iterator[Remark]:
    """A workload that does not replace its pods, and so does not give them another size by itself."""
    kind = spec.strategy.type
    why = _keeps_pods(workload)
    if not why or kind == "InPlace" or not has_vpa(spec) or are_off(spec.vpa):
        return
    some, field = "no pod", why.partition(" ")[0]
    which = "pods that can't be resized" if kind == "InPlaceOrRollout" else "pods"
    if field == "partition":
        some, which = "not all pods", f"{which} with a lower ordinal"
    until = "it is resumed" if field == "paused" else "a user deletes them"
    yield Remark(
        "spec.updateStrategy.type",
        f"{workload.place} replaces {some} by itself ({why}): {which} keep their size until {until}",
        f"{_REPLACING[field]}; or use InPlace, which resizes running pods",
    )


_REPLACING = {
    "updateStrategy": "let its updateStrategy be RollingUpdate",
    "partition": "set its partition to 0",
    "paused": "remove spec.paused from it",
}
"""The remedy that lets a workload replace its pods, by the field that prevents it."""


def _keeps_pods(workload: Document) -> str:
    """The field that prevents a workload from replacing pods, with its value; empty if it replaces them."""
    spec = _below(workload.content, "spec")
    if workload.kind == "Deployment":
        return "paused true" if spec.get("paused") is True else ""
    strategy = _below(spec, "updateStrategy")
    if workload.kind not in ("StatefulSet", "DaemonSet"):
        return ""
    if strategy.get("type") == "OnDelete":
        return "updateStrategy OnDelete"
    partition = _below(strategy, "rollingUpdate").get("partition")
    is_set = workload.kind == "StatefulSet" and isinstance(partition, int) and partition > 0
    return f"partition {partition}" if is_set else ""


# --- other autoscalers ------------------------------------------------------------------------------------------
def _scaled_by_others(hvpa: ValidHvpa, documents: Sequence[Document]) -> Iterator[Remark]:
    for other in documents:
        at = other.place
        name = other.metadata.get("name")
        if other.kind in (_HPA, _KEDA):
            yield from _foreign_hpa(hvpa, other, name, at)
        elif other.kind == _VPA:
            yield from _foreign_vpa(hvpa, other, name, at)


def _foreign_hpa(hvpa: ValidHvpa, other: Document, name: Plain, at: str) -> Iterator[Remark]:
    reference = _below(other.content, "spec", "scaleTargetRef")
    if other.kind == _HPA and hvpa.spec.hpa.name is not None and hvpa.spec.hpa.name == name:
        group = str(reference.get("apiVersion", "")).partition("/")[0]
        if (reference.get("kind"), reference.get("name"), group) != (KIND, hvpa.name, GROUP):
            reason = (
                f"{at} has another scaleTargetRef than this Hvpa: it would scale the workload without the Hvpa,"
                " and is not used"
            )
            yield Remark(
                "spec.hpa.name", reason, f"set its scaleTargetRef to kind: {KIND}, name: {hvpa.name}"
            )
    elif _is_target(hvpa.spec, reference) and not _adopted(
        other, hvpa.spec.hpa.deploy, hvpa.spec.hpa.selector
    ):
        yield Remark(
            "spec.hpa",
            f"{at} scales {hvpa.spec.target_ref.kind} {hvpa.spec.target_ref.name} itself: the Hvpa will not scale "
            "replicas as well (ForeignHpa)",
            "remove it; or set mode: Recommend, which changes nothing",
        )


def _foreign_vpa(hvpa: ValidHvpa, other: Document, name: Plain, at: str) -> Iterator[Remark]:
    mode = _below(other.content, "spec", "updatePolicy").get("updateMode")
    acts = mode not in ("Off", False)  # unquoted, YAML reads Off as false
    if not acts:
        return
    if hvpa.spec.vpa.name is not None and hvpa.spec.vpa.name == name:
        reason = f"{at} changes requests without the Hvpa (updateMode {mode or 'is not set'}): it is not used"
        yield Remark("spec.vpa.name", reason, 'set its updatePolicy: {updateMode: "Off"}')
    elif _is_target(hvpa.spec, _below(other.content, "spec", "targetRef")):
        yield Remark(
            "spec.vpa",
            f"{at} acts on {hvpa.spec.target_ref.kind} {hvpa.spec.target_ref.name} itself: the Hvpa will not scale "
            "requests as well (ForeignVpa)",
            'set its updatePolicy: {updateMode: "Off"}, or remove it; or set mode: Recommend, which changes nothing',
        )


def _is_target(spec: HvpaSpec, reference: dict[str, Plain]) -> bool:
    kind = reference.get("kind", "Deployment")  # KEDA's default; required in an HPA or VPA
    return bool((kind, reference.get("name")) == (spec.target_ref.kind, spec.target_ref.name))


def _adopted(other: Document, deploy: bool, selector: LabelSelector) -> bool:
    """Whether the Hvpa would adopt this HPA."""
    labels = other.metadata.get("labels")
    if other.kind != _HPA or not deploy or not isinstance(labels, dict):
        return False
    return selector.matches({key: value for key, value in labels.items() if isinstance(value, str)})


def _below(content: Plain, *names: str) -> dict[str, Plain]:
    """The object at these names; empty if missing."""
    mapping = value_at(content, *names)
    return mapping if isinstance(mapping, dict) else {}


def _namespace(document: Document) -> Plain:
    return document.metadata.get("namespace")
