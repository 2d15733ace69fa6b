"""Hvpas as the local copy holds them: parsed on first read, without their bytes afterwards.

HVPA parses only the changed part of the next version.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hvpa.api.hvpa.resource import HvpaObject, read_spec
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, read_status
from hvpa.api.objects.read_models import ObjectReference, RawHvpa
from hvpa.api.schema.base import FieldError
from hvpa.core.policies.model import APPLIED
from hvpa.kube.client.errors import UNREADABLE
from hvpa.kube.objects.interning import ModelSharer, share, text
from hvpa.kube.objects.slim import is_kept, slim_meta, slim_reference

_NOTHING = msgspec.Raw(b"{}")
_set = msgspec.structs.force_setattr
_sharer = ModelSharer()


class NamedRecommender(msgspec.Struct, frozen=True, gc=False):
    """The HPA or VPA that an Hvpa names, and whether it deploys the object."""

    name: str | None = None
    deploy: bool = False


class Links(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of an Hvpa's spec that the indexes need; readable even if the rest of the spec is not."""

    target_ref: ObjectReference = ObjectReference()
    hpa: NamedRecommender | None = None
    vpa: NamedRecommender | None = None
    mode: str = "Apply"

    def recommenders(self) -> dict[str, str | None]:
        """The named HPA and VPA, by kind."""
        return {
            "HorizontalPodAutoscaler": self.hpa.name if self.hpa else None,
            "VerticalPodAutoscaler": self.vpa.name if self.vpa else None,
        }


NO_LINKS = Links()
_decode_links = msgspec.json.Decoder(Links).decode


class _Parsed(NamedTuple):
    """An Hvpa, and the hashes of the bytes from which it was parsed."""

    hvpa: HvpaObject
    spec: int
    status: int


class StoredHvpa(RawHvpa, frozen=True):
    """An Hvpa that drops `spec` and `status` after parsing and keeps their hashes.

    No client can make the hashes collide: Python keys them differently in each process.
    """

    links: Links = NO_LINKS
    spec_hash: int = 0
    status_hash: int = 0
    parsed: _Parsed | None = None
    """This version or an earlier version."""

    def succeed(self, old: StoredHvpa | None) -> None:
        """Take over the parts of the previous version that need not be parsed again."""
        same = old is not None and old.spec_hash == self.spec_hash
        _set(self, "links", old.links if old is not None and same else _links(self.spec))
        _set(self, "parsed", old.parsed if old is not None else None)

    def read(self) -> HvpaObject:
        """The parsed Hvpa."""
        known = self.parsed
        if known is not None and known.hvpa.metadata is self.metadata:
            return known.hvpa
        spec, problems = self._spec(known)
        status, unreadable = self._status(known)
        hvpa = HvpaObject(self.metadata, spec, problems, status, unreadable)
        _set(self, "parsed", _Parsed(hvpa, self.spec_hash, self.status_hash))
        _set(self, "spec", _NOTHING)
        _set(self, "status", _NOTHING)
        return hvpa

    def _spec(self, known: _Parsed | None) -> tuple[HvpaSpec | None, tuple[FieldError, ...]]:
        if known is not None and known.spec == self.spec_hash:
            return known.hvpa.spec, known.hvpa.problems
        spec, problems = read_spec(bytes(self.spec))
        if spec is not None:
            _sharer.share(spec, self.spec)
        return spec, problems

    def _status(self, known: _Parsed | None) -> tuple[HvpaStatus, tuple[str, ...]]:
        if known is not None and known.status == self.status_hash:
            return known.hvpa.status, known.hvpa.unreadable_status
        status, unreadable = read_status(bytes(self.status))
        _sharer.share(status, self.status)
        return status, unreadable


def stored(raw: RawHvpa) -> StoredHvpa:
    """An Hvpa as received, for the local copy."""
    spec, status = bytes(raw.spec), bytes(raw.status)
    slim_meta(raw.metadata, is_kept)
    _set(raw.metadata, "uid", text(raw.metadata.uid))  # its owned objects contain it as well
    if (applied := raw.metadata.annotations.get(APPLIED)) is not None:
        raw.metadata.annotations[APPLIED] = share(applied)  # the same for all Hvpas of a policy
    return StoredHvpa(
        raw.metadata,
        msgspec.Raw(spec),
        msgspec.Raw(status),
        spec_hash=hash(spec),
        status_hash=hash(status),
    )


def _links(spec: msgspec.Raw) -> Links:
    """The links of an Hvpa; no links if they can't be read."""
    try:
        links = _decode_links(spec)
    except UNREADABLE:
        return NO_LINKS
    return Links(slim_reference(links.target_ref), links.hpa, links.vpa, text(links.mode))
