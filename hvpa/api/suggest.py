"""Suggestions for unknown fields: the nearest name in the same object, or the object that has a field of this name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from hvpa.api.crd import model_schema
from hvpa.api.hvpa.spec import HvpaSpec

_PART: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")
_TOP: Final = ("apiVersion", "kind", "metadata", "spec")
_MOST_PLACES: Final = 2
"""Maximum number of other places to list. Names such as `value` occur in too many places to help."""


def suggestion(path: str) -> str | None:
    """Returns a suggestion for the unknown field at `path`: `scaleUp` for `spec.hpa.scaleup`; for `spec.maxReplicas`,
    that it belongs in `spec.hpa.template.spec`. None if no name is similar."""
    *parents, name = _PART.findall(path) or [""]
    schema = _spec_schema()
    for part in parents[1:]:
        schema = (
            schema.get("items", {}) if part.startswith("[") else schema.get("properties", {}).get(part, {})
        )
    known = tuple(schema.get("properties", ())) if parents[:1] == ["spec"] else () if parents else _TOP
    by_lower = {field.lower(): field for field in known}
    places = [where for where, field in _fields(_spec_schema(), "spec") if field == name]
    if 0 < len(places) <= _MOST_PLACES and name.lower() not in by_lower:
        return f"it belongs in {' or '.join(places)}"
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]}?" if near else None


@cache
def _spec_schema() -> dict[str, Any]:
    return model_schema(HvpaSpec)


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yields the path and the name of each field of a schema."""
    for name, below in schema.get("properties", {}).items():
        yield path, name
        yield from _fields(below, f"{path}.{name}")
    if "items" in schema:
        yield from _fields(schema["items"], f"{path}[]")
