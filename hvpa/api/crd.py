"""The CustomResourceDefinitions of Hvpa and of the policies, rendered from the models. `python -m hvpa.api.crd` prints
that of Hvpa as YAML, `python -m hvpa.api.crd HvpaPolicy` that of a policy.

This module turns pydantic's JSON schema into a structural schema (no references, null types or titles) and adds the
resource's names, subresources and columns. The models describe the fields.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

import yaml
from pydantic import BaseModel

from hvpa.api.hvpa.resource import API_VERSION, GROUP, KIND, VERSION
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.policy.resource import SPECS, PolicyKind
from hvpa.api.policy.spec import SET_BY_POLICY
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.schema.fields import INT32_MAX

PLURAL: Final = "hvpas"
NAME: Final = f"{PLURAL}.{GROUP}"
APPROVAL: Final = "unapproved, not part of Kubernetes: the group is that of gardener's hvpa-controller"
"""Kubernetes requires this annotation for groups below k8s.io (KEP 1111)."""

Schema = dict[str, Any]

_CONDITION: Final = '.status.conditions[?(@.type=="{}")].{}'
_DESIRED: Final = ".status.desired.{}"
_FIRST: Final = _DESIRED.format("containers[0].requests.{}")
_COLUMNS: Final = (
    ("Target", "string", ".spec.targetRef.name", "Workload to scale."),
    (
        "Ready",
        "string",
        _CONDITION.format("Ready", "status"),
        "Whether the workload matches recommendations and limits.",
    ),
    ("Mode", "string", ".spec.mode", "Apply, Review, Recommend or Paused."),
    ("Current", "integer", ".status.replicas", "Current number of replicas."),
    ("Desired", "integer", ".status.recommended.replicas", "Recommended replicas, before gates."),
    ("Resized", "string", ".status.actuation.resized", "Pods that have the desired size, and all pods."),
    ("Blocked", "string", _CONDITION.format("ScalingBlocked", "reason"), "Gate that holds scaling back."),
    (
        "Decided",
        "integer",
        _DESIRED.format("replicas"),
        "Decided replicas, if pods are resized in place.",
        True,
    ),
    ("CPU", "string", _FIRST.format("cpu"), "Decided CPU request of the first container.", True),
    ("Memory", "string", _FIRST.format("memory"), "Decided memory request of the first container.", True),
    ("Reason", "string", _CONDITION.format("Ready", "reason"), "Reason of the condition Ready.", True),
    ("HPA-Weight", "number", ".status.hpaWeight", "Horizontal weight in percent.", True),
    ("VPA-Weight", "number", ".status.vpaWeight", "Vertical weight in percent.", True),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the Hvpa was created."),
)
"""Columns of `kubectl get`: name, type, path, description, and whether only `-o wide` shows the column."""
_POLICY_COLUMNS: Final = (
    ("Stage", "string", ".spec.stage", "Mode of the Hvpas: Recommend, Review or Apply."),
    ("Selected", "integer", ".status.selected", "Workloads that belong to this policy."),
    ("Hvpas", "integer", ".status.generated", "Hvpas of this policy."),
    ("Up-To-Date", "integer", ".status.upToDate", "Hvpas that are as the policy requires."),
    (
        "Ready",
        "string",
        _CONDITION.format("Ready", "status"),
        "Whether all Hvpas are as the policy requires.",
    ),
    ("Conflict", "string", _CONDITION.format("Conflict", "status"), "Whether policies overlap.", True),
    ("Reason", "string", _CONDITION.format("Ready", "reason"), "Reason of the condition Ready.", True),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the policy was created."),
)
_POLICY: Final = (
    "makes an Hvpa for each workload that it selects, and deletes these Hvpas when it is deleted. It leaves alone what"
    " somebody wrote."
)

_UNWANTED: Final = frozenset({"title", "propertyNames", "$defs"})
_BOUNDS: Final = {"ge": ("minimum", max), "le": ("maximum", min)}
"""Keys that pydantic leaves in the schema for bounds, the JSON schema keyword, and the function that picks the narrower
bound."""


def render_crd() -> Schema:
    """Returns the CustomResourceDefinition of Hvpa as an object. The result is always the same."""
    version = _version(_root_schema(), _COLUMNS)
    version["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.targetSelector",
    }
    return _crd(KIND, "Namespaced", version) | {"metadata": _metadata(NAME)}


def render_policy_crd(kind: PolicyKind) -> Schema:
    """Returns the CustomResourceDefinition of a kind of policy."""
    spec, template = model_schema(SPECS[kind]), model_schema(HvpaSpec)
    for name in SET_BY_POLICY:
        del template["properties"][name]
    del template["required"]
    template["description"] = spec["properties"]["template"]["description"]
    spec["properties"]["template"] = template
    root = _schema_of(f"A {kind} {_POLICY}", kind, spec, model_schema(PolicyStatus))
    scope = "Namespaced" if kind == "HvpaPolicy" else "Cluster"
    return _crd(kind, scope, _version(root, _POLICY_COLUMNS)) | {
        "metadata": _metadata(f"{_plural(kind)}.{GROUP}")
    }


def _plural(kind: str) -> str:
    return f"{kind.lower()[:-1]}ies" if kind.endswith("y") else f"{kind.lower()}s"


def _metadata(name: str) -> Schema:
    return {"name": name, "annotations": {"api-approved.kubernetes.io": APPROVAL}}


def _crd(kind: str, scope: str, version: Schema) -> Schema:
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": _plural(kind),
        "singular": kind.lower(),
        **({"shortNames": ["hvpa"]} if kind == KIND else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]},
    }


def to_yaml(crd: Schema) -> str:
    """Returns the YAML of `config/crd`: keys in order, no references."""
    return yaml.dump(crd, Dumper=_PlainDumper, sort_keys=True, width=120, allow_unicode=True)


def model_schema(model: type[BaseModel]) -> Schema:
    """Returns the structural schema of a model."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _structural(schema, schema.get("$defs", {}))


def main(*kinds: PolicyKind) -> None:
    """Print the CustomResourceDefinition of Hvpa, or of a kind of policy."""
    for crd in [render_policy_crd(kind) for kind in kinds] or [render_crd()]:
        sys.stdout.write(to_yaml(crd))


def _version(schema: Schema, columns: Iterable[tuple[Any, ...]]) -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(*column) for column in columns],
    }


def _column(name: str, kind: str, path: str, description: str, wide: bool = False) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | {"priority": 1} if wide else column


def _root_schema() -> Schema:
    description = (
        "An Hvpa scales one workload horizontally and vertically, based on the recommendations of a"
        " HorizontalPodAutoscaler and a VerticalPodAutoscaler."
    )
    return _schema_of(description, KIND, model_schema(HvpaSpec), model_schema(HvpaStatus))


def _schema_of(description: str, kind: str, spec: Schema, status: Schema) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"API version: {API_VERSION}."},
            "kind": {"type": "string", "description": f"Kind: {kind}."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


# --- from JSON schema to a structural one -------------------------------------------------------------------
def _structural(schema: Schema, definitions: Schema) -> Schema:
    schema = _resolved(schema, definitions)
    result = {key: value for key, value in schema.items() if key not in _UNWANTED}
    _place_bounds(result)
    _drop_defaults_that_are_no_scalars(result)
    if isinstance(unknown := result.get("additionalProperties"), bool):
        del result["additionalProperties"]
        if unknown:
            result["x-kubernetes-preserve-unknown-fields"] = True
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
    """Returns the schema with its reference or its choice with null replaced by the target. Keys next to these take
    precedence."""
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
    """Drops defaults of objects and lists, which follow from their fields, and null defaults."""
    if not isinstance(schema.get("default"), str | int | float):
        schema.pop("default", None)


class _PlainDumper(yaml.SafeDumper):
    """Writes no anchors or aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


if __name__ == "__main__":
    main(*[kind for kind in SPECS if kind in sys.argv[1:]])
