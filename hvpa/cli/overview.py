"""The Hvpas of a namespace or of all, one line each, for `hvpa status` without a name: mode, Ready, and the changes
that wait for approval."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hvpa.api.hvpa.resource import HvpaObject, read_hvpa
from hvpa.api.hvpa.status import BlockedScaling, HvpaStatus, StatusCondition, to_wire
from hvpa.api.objects.read_models import RawHvpa
from hvpa.api.values.text import printable
from hvpa.cli.errors import CommandError
from hvpa.cli.explain.words import change_text, kind, readable
from hvpa.cli.input.live import Reader
from hvpa.cli.output import Json, indented, table
from hvpa.core.gates.gates import APPROVAL
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import read_list
from hvpa.kube.objects.resources import HVPAS

COLUMNS = ("NAMESPACE", "NAME", "MODE", "READY", "REASON", "WAITS FOR APPROVAL")
_decode = msgspec.json.Decoder(RawHvpa).decode


async def read_all(reader: Reader, *, everywhere: bool) -> list[HvpaObject]:
    """Returns the Hvpas of the reader's namespace, or of all. Raises CommandError."""
    hvpas: list[HvpaObject] = []
    path = HVPAS.path(None if everywhere else reader.namespace)
    try:
        await read_list(
            reader.transport,
            path,
            lambda page: hvpas.extend([read_hvpa(_decode(item)) for item in page.items or ()]),
        )
    except ApiError as error:
        if error.status == 404:
            raise CommandError(await reader.why_no_hvpas()) from error
        raise
    return sorted(hvpas, key=lambda hvpa: (hvpa.metadata.namespace, hvpa.metadata.name))


def waiting(status: HvpaStatus) -> list[BlockedScaling]:
    """Returns the changes that wait for approval."""
    return [entry for entry in status.last_blocked_scaling if entry.reason == APPROVAL]


def change(entry: BlockedScaling) -> str:
    """Returns a change of a request in words, such as `app cpu 500m -> 800m`."""
    resource = kind(entry.resource)
    pair = readable(resource, entry.current or "0"), readable(resource, entry.wanted or "0")
    return change_text(entry.container, entry.resource, pair)


def overview(hvpas: Sequence[HvpaObject], output: str) -> str:
    """Returns the table, or the same as JSON."""
    rows = [_row(hvpa) for hvpa in hvpas]
    if output == "json":
        return indented({"hvpas": [_as_json(hvpa) for hvpa in hvpas]})
    lines = table([COLUMNS, *rows]) if rows else ["There are no Hvpas."]
    return "\n".join(printable(line) for line in lines)


def _ready(hvpa: HvpaObject) -> StatusCondition | None:
    return next((entry for entry in hvpa.status.conditions if entry.type == "Ready"), None)


def _row(hvpa: HvpaObject) -> tuple[str, ...]:
    ready, meta = _ready(hvpa), hvpa.metadata
    state = ("-", "-") if ready is None else (ready.status, ready.reason)
    waits = ", ".join([change(entry) for entry in waiting(hvpa.status)])
    return meta.namespace, meta.name, "-" if hvpa.spec is None else hvpa.spec.mode, *state, waits or "-"


def _as_json(hvpa: HvpaObject) -> Json:
    ready = _ready(hvpa)
    return {
        "namespace": hvpa.metadata.namespace,
        "name": hvpa.metadata.name,
        "mode": None if hvpa.spec is None else hvpa.spec.mode,
        "ready": None if ready is None else to_wire(ready),
        "waitsForApproval": [to_wire(entry) for entry in waiting(hvpa.status)],
    }
