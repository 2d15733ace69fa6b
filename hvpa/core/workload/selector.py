"""A label selector as text, and back."""

from __future__ import annotations

import re
from typing import Final

from hvpa.api.objects.read_models import Selector, SelectorRequirement

_NAME: Final = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_REQUIREMENT: Final = re.compile(
    rf"!\s*(?P<without>{_NAME})|(?P<key>{_NAME})(?:\s*(?P<equals>!=|==?)\s*(?P<value>[-A-Za-z0-9_.]*)"
    r"|\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\))?"
)
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
"""A comma that is not within parentheses."""


def selector_text(selector: Selector) -> str:
    """A label selector as text, as the scale subresource wants it (`labels.Selector.String()` in apimachinery)."""
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for one in sorted(selector.match_expressions or [], key=lambda entry: entry.key):
        values = ",".join(sorted(one.values or []))
        texts = {"In": f"{one.key} in ({values})", "NotIn": f"{one.key} notin ({values})"}
        texts["DoesNotExist"] = f"!{one.key}"
        parts.append(texts.get(one.operator, one.key))
    return ",".join(parts)


def parse_selector(text: str) -> Selector:
    """A label selector of its text, as `labels.Parse` in apimachinery reads it (but `<` and `>`, which no workload's
    selector has). Raises ValueError. Example: `app=web,tier in (a,b),!old`."""
    labels: dict[str, str] = {}
    expressions = []
    for part in _BETWEEN.split(text) if text.strip() else ():
        found = _REQUIREMENT.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"no label selector: {text[:200]!r}")
        one = _requirement(found)
        if one.operator == "In" and found["equals"] is not None and one.key not in labels:
            labels[one.key] = found["value"]
        else:
            expressions.append(one)
    return Selector(labels or None, expressions or None)


def _requirement(found: re.Match[str]) -> SelectorRequirement:
    if found["without"] is not None:
        return SelectorRequirement(found["without"], "DoesNotExist")
    key, equals = found["key"], found["equals"]
    if found["operator"] is not None:
        values = frozenset(one.strip() for one in found["values"].split(","))
        return SelectorRequirement(key, "In" if found["operator"] == "in" else "NotIn", values)
    if equals is None:
        return SelectorRequirement(key, "Exists")
    return SelectorRequirement(key, "NotIn" if equals == "!=" else "In", frozenset({found["value"]}))
