"""The CustomResourceDefinition of Hvpa, rendered from the models. `python -m hvpa.api.crd` prints it as YAML.

What belongs here: nothing about single fields, which the models describe. This turns pydantic's JSON schema into a
structural one (no references, null types, titles) and puts the resource's names, subresources and columns around it.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import yaml
from pydantic import BaseModel

from hvpa.api.hvpa.resource import API_VERSION, GROUP, KIND, VERSION
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.schema.fields import INT32_MAX

PLURAL: Final = "hvpas"
NAME: Final = f"{PLURAL}.{GROUP}"
APPROVAL: Final = "unapproved, not part of Kubernetes: the group is that of gardener's hvpa-controller"
"""Groups below k8s.io need this annotation (KEP 1111)."""

Schema = dict[str, Any]

_CONDITION: Final = '.status.conditions[?(@.type=="{}")].{}'
_DESIRED: Final = ".status.desired.{}"
_FIRST: Final = _DESIRED.format("containers[0].requests.{}")
_COLUMNS: Final = (
    ("Target", "string", ".spec.targetRef.name", "Workload that is scaled."),
    ("Ready", "string", _CONDITION.format("Ready", "status"), "Whether the workload is as it should be."),
    ("Mode", "string", ".spec.mode", "Apply, Recommend or Paused."),
    ("Current", "integer", ".status.replicas", "Present number of replicas."),
    ("Desired", "integer", ".status.recommended.replicas", "Replicas if nothing were held back."),
    ("Resized", "string", ".status.actuation.resized", "Pods that have the desired size, of all."),
    ("Blocked", "string", _CONDITION.format("ScalingBlocked", "reason"), "What holds scaling back."),
    (
        "Decided",
        "integer",
        _DESIRED.format("replicas"),
        "Replicas that were decided, of pods resized in place.",
        True,
    ),
    ("CPU", "string", _FIRST.format("cpu"), "CPU that was decided for the first container of these.", True),
    ("Memory", "string", _FIRST.format("memory"), "Memory that was decided for it.", True),
    ("Reason", "string", _CONDITION.format("Ready", "reason"), "Why Ready is what it is.", True),
    ("HPA-Weight", "number", ".status.hpaWeight", "Horizontal weight in percent.", True),
    ("VPA-Weight", "number", ".status.vpaWeight", "Vertical weight in percent.", True),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the Hvpa was made."),
)
"""Columns of `kubectl get`: name, type, path, description, and whether it is shown with `-o wide` only."""

_UNWANTED: Final = frozenset({"title", "propertyNames", "$defs"})
_BOUNDS: Final = {"ge": ("minimum", max), "le": ("maximum", min)}
"""pydantic's names for bounds that it could not place, the schema's, and which of two is the narrower."""


def render_crd() -> Schema:
    """The CustomResourceDefinition as an object; the same one each time."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {"api-approved.kubernetes.io": APPROVAL}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": "hvpa",
                "shortNames": ["hvpa"],
            },
            "versions": [_version()],
        },
    }


def to_yaml(crd: Schema) -> str:
    """The YAML that stands in `config/crd`: keys in order, no references."""
    return yaml.dump(crd, Dumper=_PlainDumper, sort_keys=True, width=120, allow_unicode=True)


def model_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of a model."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _structural(schema, schema.get("$defs", {}))


def main() -> None:
    """Print the CustomResourceDefinition."""
    sys.stdout.write(to_yaml(render_crd()))


def _version() -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root_schema()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.targetSelector",
            },
        },
        "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
    }


def _column(name: str, kind: str, path: str, description: str, wide: bool = False) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | {"priority": 1} if wide else column


def _root_schema() -> Schema:
    return {
        "type": "object",
        "description": "An Hvpa scales one workload horizontally and vertically, by the recommendations of a"
        " HorizontalPodAutoscaler and a VerticalPodAutoscaler.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"API version: {API_VERSION}."},
            "kind": {"type": "string", "description": f"Kind: {KIND}."},
            "metadata": {"type": "object"},
            "spec": model_schema(HvpaSpec),
            "status": model_schema(HvpaStatus),
        },
    }


# --- from JSON schema to a structural one -------------------------------------------------------------------
def _structural(schema: Schema, definitions: Schema) -> Schema:
    schema = _resolved(schema, definitions)
    result = {key: value for key, value in schema.items() if key not in _UNWANTED}
    _place_bounds(result)
    _drop_defaults_that_are_no_scalars(result)
    if result.get("additionalProperties") is False:
        del result["additionalProperties"]
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "properties" in result:
        result["properties"] = {
            name: _structural(field, definitions) for name, field in result["properties"].items()
        }
    for nested in ("items", "additionalProperties"):
        if nested in result:
            result[nested] = _structural(result[nested], definitions)
    return result


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema with its reference and its choice with null put in place; what stands beside them goes first."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        return _resolved(target | {key: value for key, value in schema.items() if key != "$ref"}, definitions)
    choices = schema.get("anyOf")
    if choices is None or "x-kubernetes-int-or-string" in schema:
        return schema
    (only,) = (choice for choice in choices if choice.get("type") != "null")
    return _resolved(only | {key: value for key, value in schema.items() if key != "anyOf"}, definitions)


def _place_bounds(schema: Schema) -> None:
    for unplaced, (keyword, narrower) in _BOUNDS.items():
        bounds = [schema[key] for key in (unplaced, keyword) if key in schema]
        schema.pop(unplaced, None)
        if bounds:
            schema[keyword] = narrower(bounds)
    if schema.get("type") == "integer" and schema.get("maximum", 0) <= INT32_MAX and "maximum" in schema:
        schema["format"] = "int32"


def _drop_defaults_that_are_no_scalars(schema: Schema) -> None:
    """Defaults of objects and lists are those of their fields; null is none."""
    if not isinstance(schema.get("default"), str | int | float):
        schema.pop("default", None)


class _PlainDumper(yaml.SafeDumper):
    """Writes no anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


if __name__ == "__main__":
    main()
