"""Conditional writes of spec.mode, by `hvpa pause`, `hvpa resume` and `hvpa undo`. They name clients that may set the
field back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from hvpa.cli.errors import plain_line
from hvpa.cli.input.live import Reader
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import MERGE_PATCH, Body
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.objects.slim import DROPPED_ANNOTATION

BEFORE: Final = "hvpa.autoscaling.k8s.io/mode-before-pause"
"""Annotation of a paused Hvpa: the mode before `hvpa pause`."""
MANAGER: Final = "kubectl-hvpa"
"""Field manager of these writes."""
TRIES: Final = 5
"""Maximum attempts of a write that conflicts with other clients' writes."""
_BY_HAND: Final = frozenset(
    {MANAGER, "hvpa", "kubectl-create", "kubectl-edit", "kubectl-patch", "kubectl-replace"}
)
"""Managers that write once: the operator, these commands, and kubectl unless it applies a file."""
_CLIENT_SIDE_APPLY: Final = "kubectl-client-side-apply"


class _Manager(msgspec.Struct, rename="camel"):
    manager: str = ""
    operation: str = ""
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class HvpaMeta(msgspec.Struct, rename="camel"):
    """The used metadata."""

    name: str
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: list[_Manager] = []


class _Spec(msgspec.Struct):
    mode: str = "Apply"


class _Applied(msgspec.Struct):
    spec: dict[str, Any] = {}


class PausableHvpa(msgspec.Struct):
    """The used fields of an Hvpa."""

    metadata: HvpaMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)

    def __str__(self) -> str:
        return f"Hvpa {self.metadata.namespace}/{self.metadata.name}"


class ModeChange(NamedTuple):
    """The change of an Hvpa's mode."""

    mode: str
    """The new mode."""
    done: str
    """The message after the change."""
    before: str | None = None
    """The mode to store for `hvpa resume`; None: remove the stored mode."""


Decide = Callable[[PausableHvpa], ModeChange | str]
"""Returns the change of an Hvpa, or why it is not changed."""
decode = msgspec.json.Decoder(PausableHvpa).decode


def paused(hvpa: PausableHvpa) -> ModeChange | str:
    """Decide to pause an Hvpa."""
    if hvpa.spec.mode == "Paused":
        return "is paused already"
    return ModeChange("Paused", f"paused (its mode was {hvpa.spec.mode})", before=hvpa.spec.mode)


async def change_mode(reader: Reader, hvpa: PausableHvpa, decide: Decide, *, known: bool) -> None:
    """Change an Hvpa in its current state (`known`: as listed). After a conflict, it is read and decided again."""
    path = HVPAS.path(hvpa.metadata.namespace, hvpa.metadata.name)
    for left in reversed(range(TRIES)):
        if not known:
            hvpa = decode(await reader.transport.request("GET", path))
        known = False
        change = decide(hvpa)
        if isinstance(change, str):
            print(f"{hvpa}: {change}", flush=True)
            return
        version, annotations = hvpa.metadata.resource_version, {BEFORE: change.before}
        metadata = {"resourceVersion": version, "annotations": annotations}
        body = Body(msgspec.json.encode({"metadata": metadata, "spec": {"mode": change.mode}}), MERGE_PATCH)
        try:
            await reader.transport.request("PATCH", path, {"fieldManager": MANAGER}, body)
        except ApiError as error:
            if error.status != 409 or not left:
                raise
            continue
        print(f"{hvpa}: {change.done}", flush=True)
        if owners := list(_owners(hvpa)):
            print(
                f"warning: {hvpa}: spec.mode is also set by {plain_line(', '.join(owners))}, which may set it back:"
                f" change it to {change.mode} there too",
                file=sys.stderr,
            )
        return


def _owners(hvpa: PausableHvpa) -> Iterator[str]:
    """The managers that have set spec.mode and may set it again: tools that compare the cluster with a source."""
    for manager in hvpa.metadata.managed_fields:
        if "f:mode" not in (manager.fields.get("f:spec") or {}) or manager.manager in _BY_HAND:
            continue
        # kubectl also owns the defaults of the API server, but sets only the fields in its file.
        if manager.manager != _CLIENT_SIDE_APPLY or _is_in_file(hvpa):
            yield f"{manager.manager} ({manager.operation})"


def _is_in_file(hvpa: PausableHvpa) -> bool:
    """Whether the last file of `kubectl apply` contains spec.mode."""
    applied = hvpa.metadata.annotations.get(DROPPED_ANNOTATION, "{}")
    try:
        return "mode" in msgspec.json.decode(applied, type=_Applied).spec
    except msgspec.MsgspecError:
        return False
