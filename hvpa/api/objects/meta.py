"""What all read-models share: the base, metadata and conditions.

Read-models are msgspec structs, not pydantic models: they arrive by the thousand from watches, are already validated by
the API server, and whatever is not declared is skipped while decoding (docs/decisions/0001-read-models.md). Quantities
stay as the server sent them and are parsed, cached, where they are used.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import msgspec

Quantity = str | int | float
ResourceList = dict[str, Quantity]
ConditionStatus = str
Instant = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""A point in time; one without a zone is refused."""


Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number as Go reads it."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A number of replicas or pods."""


class ReadModel(msgspec.Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Base of all read-models: frozen, camelCase on the wire, unknown fields skipped."""


class OwnerReference(ReadModel, frozen=True):
    """An entry of `metadata.ownerReferences`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool | None = None


class Meta(ReadModel, frozen=True):
    """The part of `metadata` that decisions and conditional writes need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int = 0
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []

    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None


class Condition(ReadModel, frozen=True):
    """A status condition, as all Kubernetes objects carry them."""

    type: str = ""
    status: ConditionStatus = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None


def condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of type `kind`, or None."""
    for entry in conditions or ():
        if entry.type == kind:
            return entry
    return None


class RawHvpa(ReadModel, frozen=True):
    """An Hvpa before its spec and status are validated (`hvpa.api.hvpa.resource.read_hvpa` does that)."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")
