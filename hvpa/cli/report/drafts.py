"""Hvpas that exist in memory only: for workloads that have none, and of another blend for those that have one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from hvpa.api.hvpa.intervals import ScalingInterval
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import Blend, HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta, RawHvpa, Workload
from hvpa.core.model import LAST_APPLIED, Objects
from hvpa.kube.objects.stored_hvpa import StoredHvpa, stored

BLENDS: Final[tuple[Blend, ...]] = ("Additive", "Trajectory")
DEFAULT_VPA_WEIGHT: Final = 50
"""Vertical weight in percent where no Hvpa says one: half of each relative increase is served by larger pods. The value
of getting-started and of the measurements in docs/joint-scaling.md."""
_UID: Final = "report"
"""No object of a cluster has such a uid, so a draft owns nothing."""


def draft(workload: Workload, hpa: str | None, vpa: str | None, blend: Blend, vpa_weight: int) -> StoredHvpa:
    """An Hvpa in mode Recommend that reads the HPA and the VPA of these names (None: there is none). Its own name can't
    be that of an Hvpa in the cluster, as it has a slash.

    With an HPA and a VPA, `vpa_weight` (percent) counts at every replica count; with one of them alone no weight is
    set, so that all of a change is its own.
    """
    meta, spec = workload.metadata, _spec(workload, blend)
    if hpa is not None:
        spec["hpa"] = {"name": hpa}
    if vpa is not None:
        spec["vpa"] = {"name": vpa}
    if hpa is not None and vpa is not None:
        # A fraction: as a percentage, a weight of 1 would be read as the fraction 1.
        spec["weightBasedScalingIntervals"] = [{"vpaWeight": vpa_weight / 100}]
    metadata = Meta(name=f"{workload.kind}/{meta.name}", namespace=meta.namespace, uid=_UID)
    return stored(RawHvpa(metadata, msgspec.Raw(msgspec.json.encode(spec))))


def _spec(workload: Workload, blend: Blend) -> dict[str, Any]:
    target = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": workload.metadata.name,
    }
    return {"mode": "Recommend", "blend": blend, "targetRef": target}


def with_blend(objects: Objects, blend: Blend, vpa_weight: int) -> Objects:
    """The objects of an Hvpa whose spec is valid, as if it were created now with another blend: it remembers nothing of
    the steps of the blend that it has. Where its spec writes its path out (`trajectory.intervals`), there are no
    weights, and `vpa_weight` (percent) counts at every replica count."""
    hvpa, workload = objects.hvpa, objects.workload
    assert hvpa.spec is not None
    changes: dict[str, Any] = {"blend": blend}
    if hvpa.spec.trajectory is not None and blend == "Additive":
        changes["trajectory"] = None
        if hvpa.spec.trajectory.intervals:
            changes["weight_based_scaling_intervals"] = (ScalingInterval(vpa_weight=vpa_weight / 100),)
    spec = _changed(hvpa.spec, changes)
    fresh = HvpaObject(hvpa.metadata, spec, hvpa.problems, HvpaStatus())
    return replace(objects, hvpa=fresh, workload=None if workload is None else _unmarked(workload))


def _changed(spec: HvpaSpec, changes: dict[str, Any]) -> HvpaSpec:
    """A spec with other fields, made anew: a copy would keep the properties that were computed of the old ones."""
    fields: dict[str, Any] = {name: getattr(spec, name) for name in HvpaSpec.model_fields}
    return HvpaSpec.model_construct(**fields | changes)


def _unmarked(workload: Workload) -> Workload:
    """The workload without the record of the last step."""
    meta = workload.metadata
    if LAST_APPLIED not in meta.annotations:
        return workload
    kept = {name: value for name, value in meta.annotations.items() if name != LAST_APPLIED}
    return msgspec.structs.replace(workload, metadata=msgspec.structs.replace(meta, annotations=kept))
