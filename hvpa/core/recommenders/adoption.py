"""Adoption of an HPA or VPA that acts (docs/decisions/0099).

The object belongs to somebody else, and must act again when its Hvpa is gone. So it gets no owner reference, by which
the garbage collector would delete it with the Hvpa. Its annotation ADOPTED has the Hvpa and the former spec instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hvpa.api.hvpa.spec import TargetRef
from hvpa.api.objects.read_models import Hpa, Meta, OwnerReference, Vpa
from hvpa.api.values.names import is_subdomain
from hvpa.core.model import ADOPTED, TEMPLATE_HASH, OwnedChange, OwnedKind
from hvpa.core.values.patch import difference


class Adoption(msgspec.Struct, frozen=True, gc=False):
    """The annotation ADOPTED: name and uid of the Hvpa, and the spec before."""

    hvpa: str
    uid: str
    spec: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def former(self) -> dict[str, Any]:
        """Returns the spec before; empty if somebody changed it to something without a target."""
        try:
            former = msgspec.json.decode(self.spec, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            return {}
        return former if isinstance(former.get("scaleTargetRef", former.get("targetRef")), dict) else {}

    def is_of(self, target: TargetRef) -> bool:
        """Returns whether the object acted on this workload, as far as known."""
        former = self.former
        reference = former.get("scaleTargetRef", former.get("targetRef", {}))
        return not former or (reference.get("kind"), reference.get("name")) == (target.kind, target.name)


_decode: Final = msgspec.json.Decoder(Adoption).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def adoption_of(obj: Hpa | Vpa) -> Adoption | None:
    """Returns the adoption of an object; None if no Hvpa has adopted it, or if it has a controller."""
    note = obj.metadata.annotations.get(ADOPTED)
    return None if note is None or obj.metadata.controller() is not None else read_note(note)


def read_note(note: str) -> Adoption | None:
    """Returns the adoption that an annotation describes; None if somebody changed it to something else."""
    try:
        adoption = _decode(note)
    except (msgspec.DecodeError, RecursionError):
        return None
    return adoption if is_subdomain(adoption.hvpa) else None


def holder_of(obj: Hpa | Vpa) -> OwnerReference | None:
    """Returns the controller of an object, or else the Hvpa that adopted it."""
    adoption = adoption_of(obj)
    if adoption is None:
        return obj.metadata.controller()
    return OwnerReference("Hvpa", adoption.hvpa, adoption.uid)


def adopting(document: Mapping[str, Any], obj: Hpa | Vpa, hvpa: Meta) -> dict[str, Any]:
    """Returns the manifest of an adopted object from that of an owned one. Conditional on the version of the object, so
    that the spec of the annotation is the spec that the manifest replaces."""
    meta = obj.metadata
    if adoption_of(obj) is None:
        note = _encode({"hvpa": hvpa.name, "uid": hvpa.uid, "spec": obj.raw_spec}).decode()
    else:
        note = meta.annotations[ADOPTED]
    metadata = {key: value for key, value in document["metadata"].items() if key != "ownerReferences"}
    metadata["annotations"] = {**metadata["annotations"], ADOPTED: note}
    metadata |= {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return {**document, "metadata": metadata}


def returned(obj: Hpa | Vpa, adoption: Adoption) -> OwnedChange:
    """Returns the write that makes an adopted object as it was. Labels and annotations of the template stay."""
    meta = obj.metadata
    patch: dict[str, object] = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {ADOPTED: None, TEMPLATE_HASH: None},
        }
    }
    if former := adoption.former:
        patch["spec"] = difference(msgspec.json.decode(obj.raw_spec), former)
    kind: OwnedKind = "HorizontalPodAutoscaler" if isinstance(obj, Hpa) else "VerticalPodAutoscaler"
    return OwnedChange("return", kind, meta.name, patch)
