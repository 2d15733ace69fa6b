"""Finds incompatible changes of a CustomResourceDefinition: a line for each change by which the newer version refuses
or drops a valid object of the older version (docs/releases.md lists the allowed changes). Pure: both versions are
objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]

UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
TEXTS: Final = ("description", "title", "example", "externalDocs")
HANDLED: Final = (*UPPER, *LOWER, *TEXTS, "properties", "required", "enum", "x-kubernetes-validations")
NARROWS: Final = (
    "pattern",
    "format",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "multipleOf",
    "not",
)
"""Keywords that only exclude values, so that removing them is safe."""


def refusals(older: Schema, newer: Schema) -> list[str]:
    """Return the changes that can break an object or a client of the older CRD."""
    after = {version["name"]: version for version in newer["spec"]["versions"] if version["served"]}
    losses: list[str] = []
    for part in ("group", "scope", "names"):
        losses += _lost(older["spec"][part], newer["spec"][part], part)
    for before in older["spec"]["versions"]:
        name = before["name"]
        if name not in after:
            losses.append(f"{name}: is not served any more")
            continue
        losses += _lost(
            before.get("subresources", {}), after[name].get("subresources", {}), f"{name}.subresources"
        )
        schema, newer_schema = (version["schema"]["openAPIV3Schema"] for version in (before, after[name]))
        losses += _narrowed(schema, newer_schema, name)
    return losses


def _lost(older: object, newer: object, path: str) -> Iterator[str]:
    """Yield the parts of a value that are missing or different in the newer version. Additions are safe."""
    if isinstance(older, dict) and isinstance(newer, dict):
        for key, value in older.items():
            yield from _lost(value, newer.get(key), f"{path}.{key}")
    elif isinstance(older, list) and isinstance(newer, list):
        yield from (f"{path}: {item!r} is gone" for item in older if item not in newer)
    elif older != newer:
        yield f"{path}: is {newer!r}, was {older!r}"


def _narrowed(older: Schema, newer: Schema, path: str) -> Iterator[str]:
    yield from _bounds(older, newer, path)
    yield from _sets(older, newer, path)
    for key in sorted({*older, *newer} - {*HANDLED}):
        before, after = older.get(key), newer.get(key)
        if isinstance(before, dict) and isinstance(after, dict):  # items, additionalProperties
            yield from _narrowed(before, after, f"{path}[]")
        elif before != after and not (key in NARROWS and key not in newer):
            yield f"{path}: {key} is {after!r}, was {before!r}"
    properties = newer.get("properties", {})
    for name, schema in older.get("properties", {}).items():
        if name in properties:
            yield from _narrowed(schema, properties[name], f"{path}.{name}")
        else:
            yield f"{path}.{name}: is gone"


def _bounds(older: Schema, newer: Schema, path: str) -> Iterator[str]:
    for keys, sign in ((UPPER, 1), (LOWER, -1)):
        for key in keys:
            before, after = older.get(key), newer.get(key)
            if after is not None and (before is None or sign * after < sign * before):
                yield f"{path}: {key} is {after}, was {'not bounded' if before is None else before}"


def _sets(older: Schema, newer: Schema, path: str) -> Iterator[str]:
    for name in newer.get("required", ()):
        if name not in older.get("required", ()):
            yield f"{path}.{name}: is required"
    if "enum" in newer:
        if "enum" not in older:
            yield f"{path}: takes only {newer['enum']}"
        yield from (
            f"{path}: {value!r} is no value any more"
            for value in older.get("enum", ())
            if value not in newer["enum"]
        )
    known = [rule["rule"] for rule in older.get("x-kubernetes-validations", ())]
    for rule in newer.get("x-kubernetes-validations", ()):
        if rule["rule"] not in known:
            yield f"{path}: has a new rule: {rule['rule']}"
