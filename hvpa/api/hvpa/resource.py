"""The Hvpa object: reads it from the cluster's bytes or from a manifest, and reports its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import msgspec
from pydantic import Field, ValidationError, model_validator

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, read_status
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.schema.base import FieldError, SpecModel, fault, field_errors
from hvpa.api.schema.fields import Annotations, Labels, NamespaceName, ObjectName, Text, Timestamp

GROUP: Final = "autoscaling.k8s.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Hvpa"


@dataclass(frozen=True, slots=True)
class HvpaObject:
    """An Hvpa in the form that decisions use."""

    metadata: Meta
    spec: HvpaSpec | None
    """None if the spec does not validate; `problems` has the reasons."""
    problems: tuple[FieldError, ...]
    status: HvpaStatus
    unreadable_status: tuple[str, ...] = ()
    """Top-level fields of the stored status that could not be read and are missing from `status`. A write must remove
    them."""


def read_hvpa(raw: RawHvpa) -> HvpaObject:
    """Returns the Hvpa that the cluster stores. Never raises: errors are in `problems`."""
    spec, problems = read_spec(bytes(raw.spec))
    status, unreadable = read_status(bytes(raw.status))
    return HvpaObject(raw.metadata, spec, problems, status, unreadable)


def parse_spec(document: object) -> tuple[HvpaSpec | None, tuple[FieldError, ...]]:
    """Returns the spec of a manifest, or its errors with paths that begin at `spec`. Never raises."""
    try:
        return HvpaSpec.model_validate(document, by_alias=True, by_name=False), ()
    except ValidationError as error:
        return None, field_errors(error, "spec")


def read_spec(raw: bytes) -> tuple[HvpaSpec | None, tuple[FieldError, ...]]:
    """Returns the spec that the cluster stores, or its errors with paths that begin at `spec`. Never raises."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, (FieldError("spec", str(error)),)
    return parse_spec(document)


# --- manifests ----------------------------------------------------------------------------------------------
class ManifestMeta(SpecModel):
    """`metadata` of a manifest: all fields of ObjectMeta. Only the fields that users write are checked."""

    name: ObjectName | None = None
    generate_name: Text | None = None
    namespace: NamespaceName | None = None
    labels: Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Any = None
    deletion_grace_period_seconds: Any = None
    finalizers: Any = None
    generation: Any = None
    managed_fields: Any = None
    owner_references: Any = None
    resource_version: Any = None
    self_link: Any = None
    uid: Any = None

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if not self.name and not self.generate_name:
            raise fault("is required", "name")
        return self


class _Manifest(SpecModel):
    """A whole manifest. Its status is not checked: it belongs to the operator."""

    api_version: Literal["autoscaling.k8s.io/v1alpha1"]
    kind: Literal["Hvpa"]
    metadata: ManifestMeta
    spec: HvpaSpec
    status: Any = None


def validate_manifest(document: object) -> list[FieldError]:
    """Returns the errors for which the API server would refuse this manifest; an empty list if it is valid. Never
    raises."""
    if not isinstance(document, dict):
        return [FieldError("manifest", "must be an object")]
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != wanted:
            return [FieldError(field, f"must be {wanted}")]
    try:
        _Manifest.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        return list(field_errors(error))
    return []
