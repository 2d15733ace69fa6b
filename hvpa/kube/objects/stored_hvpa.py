"""Hvpas as the local copy holds them: parsed when somebody first asks, of the next version only what has changed, and
without the bytes afterwards."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hvpa.api.hvpa.resource import FieldError, HvpaObject, HvpaSpec, read_spec
from hvpa.api.hvpa.status import HvpaStatus, read_status
from hvpa.api.objects.read_models import ObjectReference, RawHvpa
from hvpa.kube.objects.interning import ModelSharer, text
from hvpa.kube.objects.slim import is_kept, slim_meta, slim_reference

_NOTHING = msgspec.Raw(b"{}")
_set = msgspec.structs.force_setattr
_sharer = ModelSharer()


class NamedRecommender(msgspec.Struct, frozen=True, gc=False):
    """The HPA or VPA that an Hvpa names, and whether it deploys one."""

    name: str | None = None
    deploy: bool = False


class Links(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What of an Hvpa's spec the indexes need; readable where the rest of the spec is not."""

    target_ref: ObjectReference = ObjectReference()
    hpa: NamedRecommender | None = None
    vpa: NamedRecommender | None = None
    mode: str = "Apply"


NO_LINKS = Links()
_UNNAMED = {deploy: NamedRecommender(deploy=deploy) for deploy in (False, True)}
_decode_links = msgspec.json.Decoder(Links).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Parsed(NamedTuple):
    """An Hvpa, and the hashes of what it was parsed from."""

    hvpa: HvpaObject
    spec: int
    rest: int | None
    """Of the spec without `replicas`, which changes all the time; None where that can't be told."""
    status: int


class StoredHvpa(RawHvpa, frozen=True):
    """An Hvpa of which `spec` and `status` are dropped once they were parsed. What they were is told by their hashes,
    which nobody can make collide: Python keys them anew in each process."""

    links: Links = NO_LINKS
    spec_hash: int = 0
    status_hash: int = 0
    parsed: _Parsed | None = None
    """This version or an earlier one."""

    def succeed(self, old: StoredHvpa | None) -> None:
        """Take over from the version before what need not be parsed again."""
        same = old is not None and old.spec_hash == self.spec_hash
        _set(self, "links", old.links if old is not None and same else _links(self.spec))
        _set(self, "parsed", old.parsed if old is not None else None)

    def read(self) -> HvpaObject:
        """The Hvpa, parsed."""
        known = self.parsed
        if known is not None and known.hvpa.metadata is self.metadata:
            return known.hvpa
        spec, problems, rest = self._spec(known)
        status, unreadable = self._status(known)
        found = HvpaObject(self.metadata, spec, problems, status, unreadable)
        _set(self, "parsed", _Parsed(found, self.spec_hash, rest, self.status_hash))
        _set(self, "spec", _NOTHING)
        _set(self, "status", _NOTHING)
        return found

    def _spec(self, known: _Parsed | None) -> tuple[HvpaSpec | None, tuple[FieldError, ...], int | None]:
        if known is not None and known.spec == self.spec_hash:
            return known.hvpa.spec, known.hvpa.problems, known.rest
        replicas, rest = _without_replicas(self.spec)
        if known is not None and rest is not None and rest == known.rest and known.hvpa.spec is not None:
            return known.hvpa.spec.model_copy(update={"replicas": replicas}), known.hvpa.problems, rest
        spec, problems = read_spec(bytes(self.spec))
        if spec is not None:
            _sharer.share(spec, self.spec)
        return spec, problems, rest

    def _status(self, known: _Parsed | None) -> tuple[HvpaStatus, tuple[str, ...]]:
        if known is not None and known.status == self.status_hash:
            return known.hvpa.status, known.hvpa.unreadable_status
        status, unreadable = read_status(bytes(self.status))
        _sharer.share(status, self.status)
        return status, unreadable


def stored(raw: RawHvpa) -> StoredHvpa:
    """An Hvpa as it came, for the local copy."""
    spec, status = bytes(raw.spec), bytes(raw.status)
    slim_meta(raw.metadata, is_kept)
    _set(raw.metadata, "uid", text(raw.metadata.uid))  # what it owns names it as well
    return StoredHvpa(
        raw.metadata,
        msgspec.Raw(spec),
        msgspec.Raw(status),
        spec_hash=hash(spec),
        status_hash=hash(status),
    )


def _links(spec: msgspec.Raw) -> Links:
    """The links of an Hvpa; none where they can't be read."""
    try:
        found = _decode_links(spec)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return NO_LINKS
    hpa, vpa = _slim_named(found.hpa), _slim_named(found.vpa)
    return Links(slim_reference(found.target_ref), hpa, vpa, text(found.mode))


def _slim_named(named: NamedRecommender | None) -> NamedRecommender | None:
    return _UNNAMED[named.deploy] if named is not None and named.name is None else named


def _without_replicas(spec: msgspec.Raw) -> tuple[int, int | None]:
    """`replicas`, and the hash of everything else; None for one whose `replicas` is not a plain count."""
    try:
        fields = _decode_fields(spec)
        replicas = msgspec.json.decode(fields.pop("replicas"), type=int)
    except (msgspec.MsgspecError, ValueError, RecursionError, KeyError):
        return 0, None
    if not 0 <= replicas < 2**31:
        return 0, None
    return replicas, hash(tuple([(name, bytes(value)) for name, value in fields.items()]))
