"""gardener's schema against ours: docs/migrating-from-gardener.md lists all that its accepted and ours refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from builders.gardener.crd import crd as old_crd
from builders.gardener.manifests import FORMS
from hvpa.api.crd import render_crd
from hvpa.api.hvpa.resource import parse_spec, validate_manifest
from hvpa.core.spec.check import spec_problems

PAGE: Final = Path(__file__).parents[3] / "docs/migrating-from-gardener.md"
HEADING: Final = "## What the old schema accepted and HVPA refuses"
SIZES: Final = {"maxLength", "maxItems", "maxProperties"}
BOUNDS: Final = ("minimum", "maximum", "minLength", "pattern", "format", *SIZES)
NEW: Final = {
    "spec.blend",
    "spec.trajectory.intervals",
    "spec.hpa.name",
    "spec.vpa.name",
    "spec.startupBoost",
    "spec.hpa.fallback.replicas",
    "spec.runtimes",
}
"""Fields that the old schema does not know: what is refused in these, no old manifest has."""
INT32: Final = 2**31 - 1


class Stricter(NamedTuple):
    """Something that the new schema refuses in a field, and the keyword by which it does."""

    path: str
    keyword: str


def stricter(old: dict[str, Any], new: dict[str, Any] | None, path: str) -> Iterator[Stricter]:
    """All that `old` accepts and `new` may refuse. A field of a status that `new` does not know is dropped."""
    if new is None:
        if not path.startswith("status."):
            yield Stricter(path, "unknown")
    elif "properties" in new or not new.get("x-kubernetes-preserve-unknown-fields"):
        yield from (Stricter(path, keyword) for keyword in _keywords(old, new))
        for name in set(new.get("required", ())) - set(old.get("required", ())):
            yield Stricter(f"{path}.{name}", "required")
        for rule in new.get("x-kubernetes-validations", ()):
            yield Stricter(path + rule.get("fieldPath", ""), "rule")
        for name, field in old.get("properties", {}).items():
            yield from stricter(field, new.get("properties", {}).get(name), f"{path}.{name}")
        for keyword, place in (("items", "[]"), ("additionalProperties", "[*]")):
            if isinstance(entries := old.get(keyword), dict):
                yield from stricter(entries, new.get(keyword), path + place)


def _keywords(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """The keywords by which `new` refuses a value, not counting what it holds."""
    if old.get("x-kubernetes-preserve-unknown-fields"):
        yield "unknown"
    if not _takes(old, new):
        yield "type"
    if "enum" in new and new["enum"] != old.get("enum"):
        yield "enum"
    for keyword in BOUNDS:
        if (
            keyword in new
            and new[keyword] != old.get(keyword)
            and (keyword, new[keyword]) != ("maximum", INT32)
        ):
            yield keyword


def _takes(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether `new` takes all types of values that `old` takes."""
    both = new.get("x-kubernetes-int-or-string")
    return (
        bool(both)
        or (old.get("type"), new.get("type")) == ("integer", "number")
        or old.get("type") == new.get("type")
    )


def _differences() -> list[Stricter]:
    old = old_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    new: Any = json.loads(json.dumps(render_crd()))["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]
    differences = [
        difference for part in ("spec", "status") for difference in stricter(old[part], new[part], part)
    ]
    return [difference for difference in differences if difference.path not in NEW]


DIFFERENCES: Final = _differences()
_TABLE: Final = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
PATTERNS: Final = [
    pattern
    for row in _TABLE.splitlines()
    if row.startswith("| `")
    for pattern in re.findall(r"`([^`]+)`", row.split("|")[1])
]


def _matches(path: str, pattern: str) -> bool:
    """Whether a path of the schema is meant; brackets stand for themselves."""
    return fnmatchcase(path.replace("[", "(").replace("]", ")"), pattern.replace("[", "(").replace("]", ")"))


@pytest.mark.parametrize(
    "path", sorted({difference.path for difference in DIFFERENCES if difference.keyword not in SIZES})
)
def test_what_is_refused_is_listed(path: str) -> None:
    assert any(_matches(path, pattern) for pattern in PATTERNS), path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_listed_is_refused(pattern: str) -> None:
    differences = [
        difference
        for difference in DIFFERENCES
        if difference.keyword not in SIZES and _matches(difference.path, pattern)
    ]
    assert differences or pattern in ("minChange", "limitsRequestsGapScaleParams"), pattern


def test_sizes_are_those_that_are_listed() -> None:
    new = json.dumps(render_crd())
    assert "sizes of all fields" in _TABLE
    for keyword, sizes in (
        ("maxLength", {253, 63, 64}),
        ("maxItems", {100, 10}),
        ("maxProperties", {100, 10}),
    ):
        assert sizes <= {int(size) for size in re.findall(rf'"{keyword}": (\d+)', new)}
        for size in sizes:
            assert re.search(rf"\b{size}\b", _TABLE), size


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_gardeners_generators_is_accepted_without_a_warning(form: str) -> None:
    manifest = FORMS[form]
    assert validate_manifest(manifest) == []
    spec, problems = parse_spec(manifest["spec"])
    assert problems == ()
    assert spec is not None
    assert spec.warnings == ()
    assert spec_problems(spec) == ()
