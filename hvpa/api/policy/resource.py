"""Policies as objects: reads them from the cluster's bytes, and checks manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec
from pydantic import ValidationError

from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.policy.spec import ClusterHvpaPolicySpec, HvpaPolicySpec
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.schema.base import FieldError, field_errors, read_json

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


def read_policy(kind: PolicyKind, raw: RawHvpa) -> PolicyObject:
    """Returns the policy that the cluster stores. Never raises: errors are in `problems`."""
    spec, problems = None, tuple[FieldError, ...]()
    try:
        spec = SPECS[kind].model_validate(msgspec.json.decode(raw.spec), by_alias=True, by_name=False)
    except ValidationError as error:
        problems = field_errors(error, "spec")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problems = (FieldError("spec", str(error)),)
    try:
        status = read_json(PolicyStatus, bytes(raw.status))
    except (ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = PolicyStatus()  # the next write replaces it
    return PolicyObject(kind, raw.metadata, spec, problems, status)
