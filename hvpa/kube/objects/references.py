"""What objects refer to: the workload that an Hvpa names, and by what an HPA or VPA is found."""

from __future__ import annotations

from typing import NamedTuple

from hvpa.api.objects import kinds
from hvpa.api.objects.read_models import Hpa, ObjectReference, Vpa
from hvpa.kube.objects.stored_hvpa import Links, StoredHvpa

HVPA_KIND = "Hvpa"
RefToken = tuple[str, ...]
"""Namespace and owner uid, or namespace, kind and name of a target."""


class Target(NamedTuple):
    """A workload that an Hvpa names. `kind` is a `hvpa.api.objects.kinds.kind_key`."""

    namespace: str
    kind: str
    name: str


def reference_of(obj: Hpa | Vpa) -> ObjectReference:
    """What the recommender is for."""
    return obj.spec.scale_target_ref if isinstance(obj, Hpa) else obj.spec.target_ref


def tokens_of(obj: Hpa | Vpa) -> tuple[RefToken, ...]:
    """The target and the controller: no other owner has a say, and there may be thousands of them."""
    meta, reference, controller = obj.metadata, reference_of(obj), obj.metadata.controller()
    target = (meta.namespace, kind_key(reference), reference.name)
    return (target,) if controller is None else ((meta.namespace, controller.uid), target)


def target_of(hvpa: StoredHvpa | None, links: Links) -> Target | None:
    """What an Hvpa names as its target; none for one that is gone, or going and no longer scaled by."""
    if hvpa is None or hvpa.metadata.deletion_timestamp is not None:
        return None
    return target_in(hvpa.metadata.namespace, links)


def target_in(namespace: str, links: Links) -> Target:
    """What an Hvpa of a namespace names as its target."""
    return Target(namespace, kind_key(links.target_ref), links.target_ref.name)


def kind_key(reference: ObjectReference) -> str:
    """The kind that a reference names: `Hvpa`, or as `hvpa.api.objects.kinds.kind_key` has it."""
    if reference.kind == HVPA_KIND:
        return HVPA_KIND
    return kinds.kind_key(reference.api_version, reference.kind)
