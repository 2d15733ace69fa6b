"""What `tools/crd_changes.py` finds: nothing where a schema only takes more, and each way to take less, in every schema
of our own CRD."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from hvpa.api.crd import render_crd
from tools.crd_changes import LOWER, UPPER, refusals

Schema = dict[str, Any]
CRD = render_crd()


def schemas(schema: Schema) -> Iterator[Schema]:
    """A schema and all within it."""
    yield schema
    for below in schema.get("properties", {}).values():
        yield from schemas(below)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key])


SCHEMAS = list(schemas(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))


def crd(schema: Schema, **version: object) -> Schema:
    """A CRD with one version."""
    served = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "spec": {"group": "test", "scope": "Namespaced", "names": {"plural": "tests"}, "versions": [served]}
    }


def changed(schema: Schema, key: str, value: object) -> Schema:
    """A schema with another value of a key; None: without it."""
    kept = {name: entry for name, entry in schema.items() if name != key}
    return kept if value is None else {**kept, key: value}


def found(older: Schema, newer: Schema) -> list[str]:
    """What the newer schema refuses."""
    return refusals(crd(older), crd(newer))


def test_the_same_crd_refuses_nothing() -> None:
    assert len(SCHEMAS) > 300
    assert refusals(CRD, copy.deepcopy(CRD)) == []


def test_a_change_is_named_by_its_path() -> None:
    newer = copy.deepcopy(CRD)
    spec = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["maintenanceWindows"]["items"]["properties"]["timeZone"]
    spec["mode"]["enum"].remove("Paused")
    assert refusals(CRD, newer) == [
        "v1alpha1.spec.maintenanceWindows[].timeZone: is gone",
        "v1alpha1.spec.mode: 'Paused' is no value any more",
    ]


@pytest.mark.parametrize("keyword", [*UPPER, *LOWER])
def test_each_bound_may_widen_and_not_narrow(keyword: str) -> None:
    narrower = -1 if keyword in UPPER else 1
    for schema in (candidate for candidate in SCHEMAS if keyword in candidate):
        bound = schema[keyword]
        tight, wide, free = (
            changed(schema, keyword, to) for to in (bound + narrower, bound - narrower, None)
        )
        assert found(schema, tight) == [f"v1: {keyword} is {bound + narrower}, was {bound}"]
        assert found(schema, wide) == []
        assert found(free, schema) == [f"v1: {keyword} is {bound}, was not bounded"]
        assert found(schema, free) == []


def test_no_field_may_go_or_become_required_and_new_ones_may_come() -> None:
    for schema in SCHEMAS:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        for name in fields:
            without = changed(
                schema, "properties", {key: field for key, field in fields.items() if key != name}
            )
            assert found(schema, without) == [f"v1.{name}: is gone"]
            optional = changed(schema, "required", [field for field in required if field != name])
            assert found(without, optional) == []
            assert found(optional, changed(schema, "required", [name])) == [f"v1.{name}: is required"]


def test_no_value_of_an_enum_may_go_and_no_field_may_get_one() -> None:
    for schema in (candidate for candidate in SCHEMAS if "enum" in candidate):
        first, *rest = schema["enum"]
        assert found(schema, changed(schema, "enum", [*rest, "new"])) == [
            f"v1: {first!r} is no value any more"
        ]
        free = changed(schema, "enum", None)
        assert found(schema, free) == []
        assert found(free, schema) == [f"v1: takes only {schema['enum']}"]


def test_types_and_defaults_stay_and_patterns_and_rules_may_only_go() -> None:
    for schema in SCHEMAS:
        for key in {"type", "default", "anyOf", "additionalProperties"} & schema.keys():
            assert len(found(schema, changed(schema, key, None))) == 1, key
        for key in {"type", "default", "pattern", "format"} & schema.keys():
            assert found(schema, changed(schema, key, "other")) == [
                f"v1: {key} is 'other', was {schema[key]!r}"
            ]
            assert len(found(changed(schema, key, None), schema)) == 1, key
        for key in {"pattern", "format", "x-kubernetes-validations"} & schema.keys():
            assert found(schema, changed(schema, key, None)) == []
        rules = schema.get("x-kubernetes-validations", ())
        assert found(changed(schema, "x-kubernetes-validations", None), schema) == [
            f"v1: has a new rule: {rule['rule']}" for rule in rules
        ]


def test_version_names_and_the_scale_stay() -> None:
    scale = {"scale": {"specReplicasPath": ".spec.replicas"}}
    older = crd({}, subresources=scale)
    for gone in (crd({}, name="v2"), crd({}, served=False)):
        assert refusals(older, gone) == ["v1: is not served any more"]
    assert refusals(older, crd({})) == [f"v1.subresources.scale: is None, was {scale['scale']!r}"]
    moved = crd({}, subresources={"scale": {"specReplicasPath": ".spec.count"}})
    path = "v1.subresources.scale.specReplicasPath"
    assert refusals(older, moved) == [f"{path}: is '.spec.count', was '.spec.replicas'"]
    more = crd({})
    more["spec"]["names"]["shortNames"] = ["t"]
    assert refusals(crd({}), more) == []
    fewer = copy.deepcopy(more)
    fewer["spec"]["names"]["shortNames"] = ["u"]
    assert refusals(more, fewer) == ["names.shortNames: 't' is gone"]
