"""The CustomResourceDefinition: what holds for every field. Names, columns, subresources, defaults and bounds are those
of the file in `config/crd`; that an API server takes it is tested end to end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.api.crd import main, render_crd

FILE = Path(__file__).parents[3] / "config" / "crd" / "autoscaling.k8s.io_hvpas.yaml"


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas inside of one, with their paths."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from schemas(field, f"{path}.{name}")
    for nested in ("items", "additionalProperties"):
        if nested in schema:
            yield from schemas(schema[nested], f"{path}[]")


(VERSION,) = render_crd()["spec"]["versions"]
ALL = dict(schemas(VERSION["schema"]["openAPIV3Schema"]))


def test_the_file_in_config_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    text = capsys.readouterr().out
    assert FILE.read_text(encoding="utf-8") == text, "run `make generate`"
    assert yaml.load(text, yaml.CSafeLoader) == render_crd()


def test_only_the_templates_of_hpa_and_vpa_keep_unknown_fields() -> None:
    kept = [path for path in ALL if ALL[path].get("x-kubernetes-preserve-unknown-fields")]
    hpa, vpa = ".spec.hpa.template.spec", ".spec.vpa.template.spec"
    policies = f"{vpa}.resourcePolicy.containerPolicies[]"
    open_models = [hpa, *[f"{hpa}.behavior{way}" for way in ("", ".scaleUp", ".scaleDown")]]
    open_models += [vpa, f"{vpa}.resourcePolicy", policies]
    refused = [
        f"{hpa}.scaleTargetRef",
        *[f"{vpa}.{name}" for name in ("targetRef", "updatePolicy", "startupBoost")],
    ]
    assert sorted(kept) == sorted([*open_models, *refused, f"{policies}.startupBoost"])


def test_every_field_is_described() -> None:
    fields = [path for path in ALL if not path.endswith("[]") and path != ".metadata"]
    assert [path for path in fields if not ALL[path].get("description")] == []


def is_bounded(schema: dict[str, Any]) -> bool:
    """Whether the API server can determine how large a value may become (it prices CEL rules by that)."""
    match schema.get("type"):
        case "string":
            return bool(schema.keys() & {"maxLength", "enum", "format"})
        case "array":
            return "maxItems" in schema
        case "object":
            return "maxProperties" in schema or "additionalProperties" not in schema
        case "integer":
            return schema["format"] == "int32" and "minimum" in schema
    return True


def test_every_field_of_the_spec_is_bounded() -> None:
    fields = [path for path in ALL if path.startswith(".spec") and not path.endswith(".annotations[]")]
    assert [path for path in fields if not is_bounded(ALL[path])] == []


def test_no_field_of_the_status_has_a_rule() -> None:
    """Its lists and texts have no bounds, so the API server would estimate too high a cost, and refuse the CRD."""
    of_status = [path for path in ALL if path.startswith(".status")]
    assert len(of_status) > 100
    assert [path for path in of_status if "x-kubernetes-validations" in ALL[path]] == []


READ_AS_TEXT = re.compile(r"\b(?:string|quantity|isQuantity)\(([^()]*)\)")
"""What a rule reads as text: the innermost argument. (Rules that match a pattern are those of plain strings.)"""


def test_rules_read_a_string_or_an_integer_as_text_by_a_name_only() -> None:
    """API servers before 1.34 price it by the longest request otherwise, and refuse the CRD (decision note 20)."""
    rules = [rule["rule"] for schema in ALL.values() for rule in schema.get("x-kubernetes-validations", ())]
    read = {argument for rule in rules for argument in READ_AS_TEXT.findall(rule)}
    assert read == {"a", "b"}, "compare quantities by `cel_at_most`"


def is_structural(schema: dict[str, Any]) -> bool:
    """Whether the API server takes it in version v1 of CustomResourceDefinitions."""
    unknown = {"$ref", "$defs", "title", "const", "ge", "le", "propertyNames"}
    typed = "type" in schema or schema.get("x-kubernetes-int-or-string") is True
    return (
        typed and not schema.keys() & unknown and not schema.keys() >= {"properties", "additionalProperties"}
    )


def test_every_schema_is_structural() -> None:
    assert [path for path, schema in ALL.items() if not is_structural(schema)] == []


def test_no_field_of_the_status_is_required() -> None:
    assert [path for path in ALL if path.startswith(".status") and "required" in ALL[path]] == []
