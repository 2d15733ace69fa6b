"""The HPA and VPA that an Hvpa owns: what they must look like, and whether an existing one does."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from operator import attrgetter

import msgspec
from msgspec import structs

from hvpa.api.hvpa.selector import TemplateMeta
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import WORKLOAD_API_VERSION, Hpa, Meta, Vpa
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.core.model import API_VERSION, TEMPLATE_HASH, OwnedKind
from hvpa.core.values.memo import Basis, latest

HPA_API_VERSION = "autoscaling/v2"
VPA_API_VERSION = "autoscaling.k8s.io/v1"

NEUTRAL_BEHAVIOR: Mapping[str, Mapping[str, object]] = {
    "scaleDown": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
    },
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 10_000, "periodSeconds": 1}],
    },
}
"""Switches the HPA's own memory off, so that stabilization happens once, in the Hvpa (DESIGN 4)."""
HPA_WINDOW = 300
"""Seconds for which an HPA remembers what it wanted before it scales in (`--horizontal-pod-autoscaler-downscale-
stabilization`)."""
LONGEST_WINDOW = 3600
"""The longest that an HPA takes (`MaxStabilizationWindowSeconds` in pkg/apis/autoscaling/validation)."""


TOLERANCE = "tolerance"
"""Field of an HPA's `behavior` that API servers before 1.35 drop without a word (docs/compatibility.md): where it is
missing, applying it again would not bring it back."""


class Manifest(msgspec.Struct, frozen=True, gc=False):
    """What tells an owned object as it is applied from any other; the document itself is made again when it is needed
    (`document`). `template_hash` stands in its annotations, so that a changed template is noticed even where the
    difference is something that is no longer asked for."""

    kind: OwnedKind
    name: str
    template: TemplateMeta
    template_hash: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        """The template's, and the hash."""
        return {
            **self.template.annotations,
            **({TEMPLATE_HASH: self.template_hash} if self.template_hash else {}),
        }


_FIELDS = attrgetter(*[name for name in HvpaSpec.model_fields if name != "replicas"])


def apart_from_replicas(spec: HvpaSpec) -> tuple[object, ...]:
    """All of a spec but `replicas`, into which the HPA writes: part by part, since a spec in which only that has
    changed is a new object with the same parts."""
    parts: tuple[object, ...] = _FIELDS(spec)
    return parts


def wanted(kind: OwnedKind, name: str, owner: Meta, spec: HvpaSpec) -> Manifest:
    """The manifest of the object `name` that the Hvpa `owner` wants. Treat it as frozen: it is shared."""
    return (_wanted_hpa if kind == "HorizontalPodAutoscaler" else _wanted_vpa)(name, owner, spec)


def _basis(name: str, owner: Meta, spec: HvpaSpec) -> Basis:
    return Basis((owner.namespace, owner.name), apart_from_replicas(spec), (name, owner.uid))


@latest(_basis)
def _wanted_hpa(name: str, owner: Meta, spec: HvpaSpec) -> Manifest:
    return _hashed(Manifest("HorizontalPodAutoscaler", name, spec.hpa.template.metadata), owner, spec)


@latest(_basis)
def _wanted_vpa(name: str, owner: Meta, spec: HvpaSpec) -> Manifest:
    return _hashed(Manifest("VerticalPodAutoscaler", name, spec.vpa.template.metadata), owner, spec)


def _hashed(bare: Manifest, owner: Meta, spec: HvpaSpec) -> Manifest:
    text = json.dumps(document(bare, owner, spec), sort_keys=True)
    return structs.replace(bare, template_hash=hashlib.sha256(text.encode()).hexdigest()[:16])


def document(manifest: Manifest, owner: Meta, spec: HvpaSpec) -> dict[str, object]:
    """An owned object as it is applied, for the Hvpa of which `wanted` made the manifest."""
    controller = {
        "apiVersion": API_VERSION,
        "kind": "Hvpa",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    metadata = {
        "name": manifest.name,
        "namespace": owner.namespace,
        "labels": dict(manifest.template.labels),
        "annotations": manifest.annotations,
        "ownerReferences": [controller],
    }
    found = {"kind": manifest.kind, "metadata": metadata}
    if manifest.kind == "HorizontalPodAutoscaler":
        return {"apiVersion": HPA_API_VERSION, **found, "spec": hpa_spec(owner.name, spec)}
    return {"apiVersion": VPA_API_VERSION, **found, "spec": vpa_spec(spec)}


def hpa_spec(owner: str, spec: HvpaSpec) -> dict[str, object]:
    """The spec of the owned HPA: the template's, pointed at the Hvpa itself, the `owner`."""
    template = spec.hpa.template.spec
    body = dict(template.to_v2()) if template is not None else {}
    body["scaleTargetRef"] = {"apiVersion": API_VERSION, "kind": "Hvpa", "name": owner}
    body.setdefault("behavior", behavior(spec))
    return body


def behavior(spec: HvpaSpec) -> Mapping[str, object]:
    """The owned HPA's behaviour where the template sets none: no memory. But in a joint decision an HPA counts as many
    pods as it takes at the present, not one step of them, so that one quiet quarter of a minute would take replicas
    away: there it remembers the largest desired replicas for as long as the Hvpa waits before it scales in."""
    if not spec.joint:
        return NEUTRAL_BEHAVIOR
    wait = math.ceil(spec.hpa.scale_down.stabilization_duration.total_seconds())
    window = min(wait, LONGEST_WINDOW) if wait else HPA_WINDOW
    inward = {**NEUTRAL_BEHAVIOR["scaleDown"], "stabilizationWindowSeconds": window}
    return {**NEUTRAL_BEHAVIOR, "scaleDown": inward}


def vpa_spec(spec: HvpaSpec) -> dict[str, object]:
    """The spec of the owned VPA: the template's, for the workload, with `updateMode: Off`."""
    target = spec.target_ref
    body: dict[str, object] = {
        "targetRef": {
            "apiVersion": target.api_version or WORKLOAD_API_VERSION,
            "kind": target.kind,
            "name": target.name,
        },
        "updatePolicy": {"updateMode": "Off"},
    }
    template = spec.vpa.template.spec
    if template is not None and template.resource_policy is not None:
        body["resourcePolicy"] = template.resource_policy.to_wire()
    return body


def up_to_date(existing: Hpa | Vpa, manifest: Manifest, owner: Meta, spec: HvpaSpec) -> bool:
    """Whether `existing` has all that `manifest` asks for; fields that the API server filled in don't matter."""
    have = existing.metadata
    if not (manifest.template.labels.items() <= have.labels.items()):
        return False
    if not (manifest.annotations.items() <= have.annotations.items()):
        return False
    controller = have.controller()
    if controller is None or controller.uid != owner.uid:
        return False
    covers = _hpa_covers if manifest.kind == "HorizontalPodAutoscaler" else _vpa_covers
    return covers(existing, manifest, owner, spec)


def _compared(existing: Hpa | Vpa, manifest: Manifest, owner: Meta, spec: HvpaSpec) -> Basis:
    return Basis((owner.namespace, owner.name), (existing.raw_spec, manifest))


def _covers(existing: Hpa | Vpa, manifest: Manifest, owner: Meta, spec: HvpaSpec) -> bool:
    asked = json.loads(json.dumps(document(manifest, owner, spec)["spec"]))
    return _contains(msgspec.json.decode(existing.raw_spec), asked)


_hpa_covers = latest(_compared)(_covers)
_vpa_covers = latest(_compared)(_covers)


def _contains(have: object, asked: object) -> bool:
    if isinstance(asked, dict):
        return isinstance(have, dict) and all(
            _contains(have[key], value) if key in have else key == TOLERANCE for key, value in asked.items()
        )
    if isinstance(asked, list):
        return (
            isinstance(have, list)
            and len(have) == len(asked)
            and all(_contains(one, other) for one, other in zip(have, asked, strict=True))
        )
    return have == asked or _same_quantity(have, asked)


def _same_quantity(one: object, other: object) -> bool:
    """The API server rewrites quantities into their canonical form (`1000m` becomes `1`)."""
    if not isinstance(one, str | int | float) or not isinstance(other, str | int | float):
        return False
    try:
        return parse_quantity(one) == parse_quantity(other)
    except QuantityError:
        return False
