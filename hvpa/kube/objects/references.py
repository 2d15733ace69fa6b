"""What objects refer to: the workload that an Hvpa names, and by what an HPA or VPA is found."""

from __future__ import annotations

from typing import NamedTuple

from hvpa.api.objects.read_models import Hpa, ObjectReference, Vpa
from hvpa.kube.objects.stored_hvpa import Links, StoredHvpa

HVPA_KIND = "Hvpa"
RefToken = tuple[str, ...]
"""Namespace and owner uid, or namespace, kind and name of a target."""


class Target(NamedTuple):
    """A workload that an Hvpa names."""

    namespace: str
    kind: str
    name: str


def reference_of(obj: Hpa | Vpa) -> ObjectReference:
    """What the recommender is for."""
    return obj.spec.scale_target_ref if isinstance(obj, Hpa) else obj.spec.target_ref


def tokens_of(obj: Hpa | Vpa) -> tuple[RefToken, ...]:
    """The target and the controller: no other owner has a say, and there may be thousands of them."""
    meta, reference, controller = obj.metadata, reference_of(obj), obj.metadata.controller()
    target = (meta.namespace, reference.kind, reference.name)
    return (target,) if controller is None else ((meta.namespace, controller.uid), target)


def target_of(hvpa: StoredHvpa | None, links: Links) -> Target | None:
    """What an Hvpa names as its target; none for one that is gone, or going and no longer scaled by."""
    if hvpa is None or hvpa.metadata.deletion_timestamp is not None:
        return None
    return Target(hvpa.metadata.namespace, links.target_ref.kind, links.target_ref.name)
