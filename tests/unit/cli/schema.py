"""Whether an output follows its schema, by as much of JSON Schema as the schemas in `docs/` use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

DOCS = Path(__file__).parents[3] / "docs"
TYPES: Final[dict[str, Any]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None),
    "boolean": bool,
}  # fmt: skip
FITS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "enum": lambda value, wanted: value in wanted,
    "minimum": lambda value, wanted: value >= wanted,
    "maximum": lambda value, wanted: value <= wanted,
    "required": lambda value, wanted: set(wanted) <= set(value),
}
NESTED: Final = {"$ref", "anyOf", "properties", "additionalProperties", "items"}
WORDS: Final = {"$schema", "$defs", "title", "description", "default", "type"}


def schema_of(command: str) -> Any:
    """The schema of a command's output."""
    return json.loads((DOCS / f"{command}.schema.json").read_text(encoding="utf-8"))


def check(value: Any, schema: Any) -> None:
    """The value follows the schema."""
    assert faults(value, schema, schema) == []


def faults(value: Any, schema: Any, root: Any, path: str = "$") -> list[str]:
    """What is wrong with `value`; an unknown keyword is an error."""
    assert schema.keys() <= FITS.keys() | NESTED | WORDS
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, TYPES[kind]) or isinstance(value, bool) != (kind == "boolean")
    ):
        return [f"{path}: {value!r} is no {kind}"]
    unfit = [
        keyword for keyword, fits in FITS.items() if keyword in schema and not fits(value, schema[keyword])
    ]
    problems = [f"{path}: {value!r} against {keyword} {schema[keyword]!r}" for keyword in unfit]
    if "anyOf" in schema and all(faults(value, alternative, root, path) for alternative in schema["anyOf"]):
        problems.append(f"{path}: {value!r} is none of {schema['anyOf']!r}")
    if "$ref" in schema:
        problems += faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    below: list[tuple[Any, Any, Any]] = []
    if "properties" in schema:
        known = schema["properties"]
        problems += [f"{path}.{key}: unknown" for key in value if key not in known]
        below += [(key, value[key], known[key]) for key in value if key in known]
    if "additionalProperties" in schema:
        below += [(key, entry, schema["additionalProperties"]) for key, entry in value.items()]
    if "items" in schema:
        below += [(index, entry, schema["items"]) for index, entry in enumerate(value)]
    return problems + [
        problem for key, entry, part in below for problem in faults(entry, part, root, f"{path}.{key}")
    ]
