"""Policies as objects: reads them from the cluster's bytes, and checks manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import msgspec
from pydantic import ValidationError

from hvpa.api.hvpa.resource import ManifestMeta
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.policy.spec import ClusterHvpaPolicySpec, HvpaPolicySpec
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.schema.base import FieldError, SpecModel, field_errors, read_json

PolicyKind = Literal["HvpaPolicy", "ClusterHvpaPolicy"]
SPECS: Final[dict[PolicyKind, type[HvpaPolicySpec]]] = {
    "HvpaPolicy": HvpaPolicySpec,
    "ClusterHvpaPolicy": ClusterHvpaPolicySpec,
}


class PolicyKey(NamedTuple):
    """Kind, namespace (empty for a ClusterHvpaPolicy) and name of a policy."""

    kind: PolicyKind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """A policy in the form that decisions use."""

    kind: PolicyKind
    metadata: Meta
    spec: HvpaPolicySpec | None
    """None if the spec does not validate; `problems` has the reasons."""
    problems: tuple[FieldError, ...]
    status: PolicyStatus

    @property
    def key(self) -> PolicyKey:
        """Returns kind, namespace and name."""
        return PolicyKey(self.kind, self.metadata.namespace, self.metadata.name)


class _Manifest(SpecModel):
    """A whole manifest. Its status is not checked: it belongs to the operator."""

    api_version: Literal["autoscaling.k8s.io/v1alpha1"]
    kind: PolicyKind
    metadata: ManifestMeta
    spec: HvpaPolicySpec
    status: Any = None


class _ClusterManifest(_Manifest):
    spec: ClusterHvpaPolicySpec


def validate_policy(document: object) -> tuple[HvpaPolicySpec | None, tuple[FieldError, ...]]:
    """Returns the spec of a policy's manifest, or the errors for which the API server or the operator would refuse it.
    Never raises."""
    is_cluster = isinstance(document, dict) and document.get("kind") == "ClusterHvpaPolicy"
    model = _ClusterManifest if is_cluster else _Manifest
    try:
        return model.model_validate(document, by_alias=True, by_name=False).spec, ()
    except ValidationError as error:
        return None, field_errors(error)


def read_policy(kind: PolicyKind, raw: RawHvpa) -> PolicyObject:
    """Returns the policy that the cluster stores. Never raises: errors are in `problems`."""
    spec, problems = None, tuple[FieldError, ...]()
    try:
        spec = SPECS[kind].model_validate(msgspec.json.decode(raw.spec), by_alias=True, by_name=False)
    except ValidationError as error:
        problems = field_errors(error, "spec")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problems = (FieldError("spec", str(error)),)
    return PolicyObject(kind, raw.metadata, spec, problems, read_policy_status(bytes(raw.status)))


def read_policy_status(raw: bytes) -> PolicyStatus:
    """Returns the status that the cluster stores; an empty status, which the next write replaces, if it can't be
    read."""
    try:
        return read_json(PolicyStatus, raw)
    except (ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return PolicyStatus()
