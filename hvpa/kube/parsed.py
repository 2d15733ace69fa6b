"""Hvpas as they were parsed, beside the bytes that they were parsed from: each version of an Hvpa is parsed once, and
of the next version only what has changed."""

from __future__ import annotations

import msgspec
from pydantic import BaseModel

from hvpa.api.hvpa import HvpaObject, read_hvpa
from hvpa.api.objects import ObjectReference, RawHvpa
from hvpa.api.status import read_status
from hvpa.reconcile.ports import Key


class NamedRecommender(msgspec.Struct, frozen=True):
    """The HPA or VPA that an Hvpa names."""

    name: str | None = None


class Links(msgspec.Struct, frozen=True, rename="camel"):
    """What of an Hvpa's spec the indexes need; readable where the rest of the spec is not."""

    target_ref: ObjectReference = ObjectReference()
    hpa: NamedRecommender | None = None
    vpa: NamedRecommender | None = None


_decode_links = msgspec.json.Decoder(Links).decode


def links_of(hvpa: RawHvpa | None) -> Links:
    """The links of an Hvpa; none where they can't be read."""
    if hvpa is None:
        return Links()
    try:
        return _decode_links(hvpa.spec)
    except msgspec.MsgspecError:
        return Links()


class Parsed(msgspec.Struct, frozen=True):
    """An Hvpa, what it was parsed from, and its links."""

    raw: RawHvpa
    hvpa: HvpaObject
    links: Links


class ParsedHvpas:
    """The latest version of each Hvpa that somebody asked for."""

    def __init__(self) -> None:
        self._parsed: dict[Key, Parsed] = {}

    def get(self, key: Key, raw: RawHvpa) -> Parsed:
        """The Hvpa of `key`, which the store has as `raw`."""
        known = self._parsed.get(key)
        if known is not None and known.raw is raw:
            return known
        if known is None or bytes(known.raw.spec) != bytes(raw.spec):
            found = Parsed(raw, read_hvpa(raw), links_of(raw))
        else:
            old = known.hvpa
            status, unreadable = old.status, old.unreadable_status
            if bytes(known.raw.status) != bytes(raw.status):
                status, unreadable = read_status(bytes(raw.status))
            found = Parsed(
                raw, HvpaObject(raw.metadata, old.spec, old.problems, status, unreadable), known.links
            )
        for part in (found.hvpa.spec, found.hvpa.status):
            if known is None or (part is not known.hvpa.spec and part is not known.hvpa.status):
                _share_field_sets(part)
        self._parsed[key] = found
        return found

    def forget(self, key: Key) -> None:
        """The Hvpa is gone."""
        self._parsed.pop(key, None)


_given: dict[frozenset[str], set[str]] = {}
"""Sets of fields that were given; there are few different ones."""


def _share_field_sets(value: object) -> None:
    """Let all models that were given the same fields share one set of their names. Nobody changes it, since models are
    frozen and a copy gets a set of its own; one set per model would be more than half of an Hvpa's memory."""
    if isinstance(value, BaseModel):
        given = value.model_fields_set
        object.__setattr__(value, "__pydantic_fields_set__", _given.setdefault(frozenset(given), given))
        for part in vars(value).values():
            _share_field_sets(part)
    elif isinstance(value, tuple):
        for part in value:
            _share_field_sets(part)
