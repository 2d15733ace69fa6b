"""Which HPA and VPA an Hvpa reads, and what is to be changed about those it owns: by the rules of its mode.

No status of an HPA or VPA has a say in it, so it is decided on objects without one, and once for the same objects.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Hpa, HpaStatusRead, Meta, Vpa, VpaStatusRead
from hvpa.core.model import OtherHvpa, Recommender
from hvpa.core.recommenders import manifests, ownership
from hvpa.core.recommenders import read_only as reading
from hvpa.core.recommenders.ownership import O, OwnerRules, hpa_rules, vpa_rules
from hvpa.core.values.memo import Basis, latest

_NO_HPA_STATUS, _NO_VPA_STATUS = HpaStatusRead(), VpaStatusRead()
Others = tuple[OtherHvpa, ...]


def resolve_hpa(hvpa: Meta, spec: HvpaSpec, hpas: tuple[Hpa, ...], others: Others = ()) -> Recommender[Hpa]:
    """The HPA to read, why it can't be used if so, and what is to be changed about owned ones."""
    return _with_status(_bare_hpa(hvpa, spec, hpas, others), hpas)


def resolve_vpa(hvpa: Meta, spec: HvpaSpec, vpas: tuple[Vpa, ...], others: Others = ()) -> Recommender[Vpa]:
    """The VPA to read, why it can't be used if so, and what is to be changed about owned ones."""
    return _with_status(_bare_vpa(hvpa, spec, vpas, others), vpas)


def _basis(owner: Meta, spec: HvpaSpec, candidates: Sequence[O], others: Others) -> Basis:
    """What the rules look at: of the Hvpa's metadata who it is, of the candidates all but their status."""
    parts: list[object] = [*manifests.apart_from_replicas(spec)]
    for one in candidates:
        parts += (one.metadata, one.raw_spec)
    return Basis((owner.namespace, owner.name), tuple(parts), (owner.uid, owner.creation_timestamp, others))


@latest(_basis)
def _bare_hpa(owner: Meta, spec: HvpaSpec, candidates: Sequence[Hpa], others: Others) -> Recommender[Hpa]:
    bare = tuple([structs.replace(one, status=_NO_HPA_STATUS) for one in candidates])
    return _resolved(hpa_rules(owner, spec, others), owner, spec, bare, others)


@latest(_basis)
def _bare_vpa(owner: Meta, spec: HvpaSpec, candidates: Sequence[Vpa], others: Others) -> Recommender[Vpa]:
    bare = tuple([structs.replace(one, status=_NO_VPA_STATUS) for one in candidates])
    return _resolved(vpa_rules(owner, spec), owner, spec, bare, others)


def _resolved(
    rules: OwnerRules[O], owner: Meta, spec: HvpaSpec, candidates: tuple[O, ...], others: Others
) -> Recommender[O]:
    if spec.mode == "Apply":
        return ownership.resolve(rules, owner, spec, candidates)
    return reading.read(rules, owner, spec, others, candidates)


def _with_status(bare: Recommender[O], candidates: tuple[O, ...]) -> Recommender[O]:
    """The same with the object as it was seen in place of the one without its status."""
    if bare.object is None:
        return bare
    metadata = bare.object.metadata
    (whole,) = [one for one in candidates if one.metadata is metadata]
    return structs.replace(bare, object=whole)
