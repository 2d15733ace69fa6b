"""The manifests of the HPA and VPA that an Hvpa owns, and whether an existing object matches its manifest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.kinds import api_version_of
from hvpa.api.objects.read_models import Hpa, Meta, Vpa
from hvpa.api.schema.base import FieldPath
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.core.model import ADOPTED, API_VERSION, TEMPLATE_HASH, OwnedKind

NEUTRAL_IN = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
}
NEUTRAL_OUT = {**NEUTRAL_IN, "policies": [{"type": "Pods", "value": 10_000, "periodSeconds": 1}]}
"""Both switch the HPA's own stabilization off, so that only the Hvpa stabilizes (DESIGN 4)."""
HPA_WINDOW = 300
"""Seconds for which an HPA keeps its highest desired replicas before it scales in
(`--horizontal-pod-autoscaler-downscale-stabilization`)."""
LONGEST_WINDOW = 3600
"""Maximum stabilization window of an HPA, in seconds (`MaxStabilizationWindowSeconds` in
pkg/apis/autoscaling/validation)."""
TOLERANCE = "tolerance"
"""Field of an HPA's `behavior` that API servers before 1.35 drop silently (docs/compatibility.md). If it is missing,
applying it again has no effect."""


def document(kind: OwnedKind, name: str, owner: Meta, spec: HvpaSpec) -> dict[str, Any]:
    """Return the manifest of the HPA or VPA `name` of the Hvpa `owner`. Its annotations have a hash of it, so HVPA
    notices a changed template even if the change only removes a field. No template can feign an adoption, by which HVPA
    would write any spec."""
    is_hpa = kind == "HorizontalPodAutoscaler"
    template = spec.hpa.template.metadata if is_hpa else spec.vpa.template.metadata
    reference = {"apiVersion": API_VERSION, "kind": "Hvpa", "name": owner.name}
    annotations = {key: value for key, value in template.annotations.items() if key != ADOPTED}
    manifest: dict[str, Any] = {
        "apiVersion": "autoscaling/v2" if is_hpa else "autoscaling.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": dict(template.labels),
            "annotations": annotations,
            "ownerReferences": [{**reference, "uid": owner.uid, "controller": True}],
        },
        "spec": _hpa_spec(reference, spec) if is_hpa else _vpa_spec(spec),
    }
    text = json.dumps(manifest, sort_keys=True)
    annotations[TEMPLATE_HASH] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return manifest


def _hpa_spec(target: Mapping[str, str], spec: HvpaSpec) -> dict[str, object]:
    """Return the template's spec with the Hvpa itself as target. With `deploy`, a spec has one (`HpaSpec`)."""
    template = spec.hpa.template.spec
    assert template is not None
    body = dict(template.to_v2())
    body["scaleTargetRef"] = target
    body.setdefault("behavior", _behavior(spec))
    return body


def _behavior(spec: HvpaSpec) -> Mapping[str, object]:
    """Return the owned HPA's behavior if the template sets none: no stabilization.

    In a joint decision, the HPA's desired replicas are the full count for the present demand, not a single step, so one
    measurement that is briefly low would remove replicas. The HPA then keeps its highest desired replicas for as long
    as the Hvpa waits before it scales in.
    """
    wait = math.ceil(spec.hpa.scale_down.stabilization_duration.total_seconds())
    window = (min(wait, LONGEST_WINDOW) or HPA_WINDOW) if spec.joint else 0
    return {"scaleDown": {**NEUTRAL_IN, "stabilizationWindowSeconds": window}, "scaleUp": NEUTRAL_OUT}


def _vpa_spec(spec: HvpaSpec) -> dict[str, object]:
    """Return the template's spec for the workload, with `updateMode: Off`."""
    target, template = spec.target_ref, spec.vpa.template.spec
    version = target.api_version or api_version_of(target.kind)
    body: dict[str, object] = {
        "targetRef": {"apiVersion": version, "kind": target.kind, "name": target.name},
        "updatePolicy": {"updateMode": "Off"},
    }
    if template is not None:
        body |= template.others
        if template.resource_policy is not None:
            body["resourcePolicy"] = template.resource_policy.to_wire()
    return body


def passed_on(kind: OwnedKind, spec: HvpaSpec) -> tuple[FieldPath, ...]:
    """Return the paths, in the template's spec, of the fields that HVPA does not know and sends as they are."""
    template = spec.hpa.template.spec if kind == "HorizontalPodAutoscaler" else spec.vpa.template.spec
    return () if template is None else tuple(template.passed_on())


def not_taken(have: object, asked: object, paths: Iterable[FieldPath]) -> FieldPath | None:
    """Return the first of these paths whose value in the spec `have` is not that of the spec `asked`."""
    return next((path for path in paths if not _contains(_at(have, path), _at(asked, path))), None)


def _at(value: Any, path: FieldPath) -> object:
    """Return the value at a path; None if there is none."""
    try:
        return reduce(lambda part, name: part[name], path, value)
    except (KeyError, IndexError, TypeError):
        return None


def up_to_date(existing: Hpa | Vpa, document: Mapping[str, Any]) -> bool:
    """Return whether `existing` has all fields of `document`; fields that the API server filled in are ignored."""
    have, asked = existing.metadata, document["metadata"]
    controller, owners = have.controller(), asked.get("ownerReferences", ())
    return (
        asked["labels"].items() <= have.labels.items()
        and asked["annotations"].items() <= have.annotations.items()
        and [owner["uid"] for owner in owners] == ([] if controller is None else [controller.uid])
        and _contains(msgspec.json.decode(existing.raw_spec), document["spec"])
    )


def _contains(have: object, asked: object) -> bool:
    if isinstance(asked, dict):
        return isinstance(have, dict) and all(
            _contains(have[key], value) if key in have else key == TOLERANCE for key, value in asked.items()
        )
    if isinstance(asked, list | tuple):
        return isinstance(have, list) and len(have) == len(asked) and all(map(_contains, have, asked))
    return have == asked or _same_quantity(have, asked)


def _same_quantity(have: object, asked: object) -> bool:
    """Return whether both are the same quantity. The API server rewrites quantities into their canonical form (`1000m`
    becomes `1`)."""
    if not isinstance(have, str | int | float) or not isinstance(asked, str | int | float):
        return False
    try:
        return parse_quantity(have) == parse_quantity(asked)
    except QuantityError:
        return False
