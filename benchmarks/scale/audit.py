"""What the operator asked of the API server, from the audit log: counted while it is read, as the log of a large run
doesn't belong into memory; and, for a few objects, what it wrote."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from localcluster.operator.operator import NAMESPACE, SERVICE_ACCOUNT

USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
WRITES = frozenset({"create", "update", "patch", "delete"})


def policy(sample: str) -> str:
    """An audit policy that logs the operator's requests alone, with what it writes in the namespace `sample`. (And the
    requests by which `localcluster.client.audit` finds out whether the log is up to date.)"""
    marks = {"resources": [{"group": "", "resources": ["configmaps"]}], "namespaces": ["default"]}
    rules = [
        {"level": "Request", "users": [USER], "namespaces": [sample], "verbs": sorted(WRITES)},
        {"level": "Metadata", "users": [USER]},
        {"level": "Metadata", "verbs": ["get"], **marks},
        {"level": "None"},
    ]
    document = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
    return yaml.safe_dump({**document, "rules": rules})


class _User(msgspec.Struct):
    username: str = ""


class _Reference(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    code: int = 0


class Entry(msgspec.Struct):
    """A line of the log, as far as anything here depends on it."""

    stage: str
    verb: str
    user: _User
    objectRef: _Reference = _Reference()
    responseStatus: _Status = _Status()
    requestObject: msgspec.Raw = msgspec.Raw(b"")
    requestReceivedTimestamp: dt.datetime | None = None
    stageTimestamp: dt.datetime | None = None

    @property
    def kind(self) -> Kind:
        """What kind of request it was."""
        about = self.objectRef
        return Kind(self.verb, "/".join(part for part in (about.resource, about.subresource) if part))


_decode = msgspec.json.Decoder(Entry).decode


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of request: `patch hvpas/status`."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def is_write(self) -> bool:
        """Whether it asked for a change (of anything but the operator's own Lease)."""
        return self.verb in WRITES and self.resource != "leases"


@dataclass(frozen=True, slots=True)
class Requested:
    """The operator's requests of a time: how many of each kind, how many were refused by code, the bodies of writes in
    the sampled namespace, and for how many seconds each write was in the API server."""

    kinds: Counter[Kind]
    refused: Counter[str]
    bodies: dict[Kind, list[bytes]]
    seconds: dict[Kind, list[float]]

    def counts(self) -> dict[str, int]:
        """The numbers, the largest first."""
        return {str(kind): count for kind, count in self.kinds.most_common()}


def read(log: Path, start: int, end: int) -> Requested:
    """The operator's requests in this part of the log. Of a watch only the beginning counts."""
    requested = Requested(Counter(), Counter(), {}, {})
    for entry in entries(log, start, end):
        if (entry.verb == "watch") != (entry.stage == "ResponseStarted"):
            continue
        kind = entry.kind
        requested.kinds[kind] += 1
        if kind.is_write and entry.requestReceivedTimestamp and entry.stageTimestamp:
            took = (entry.stageTimestamp - entry.requestReceivedTimestamp).total_seconds()
            requested.seconds.setdefault(kind, []).append(took)
        if entry.responseStatus.code >= 300:
            requested.refused[f"{kind} {entry.responseStatus.code}"] += 1
        elif bytes(entry.requestObject):
            requested.bodies.setdefault(kind, []).append(bytes(entry.requestObject))
    return requested


def entries(log: Path, start: int, end: int) -> Iterator[Entry]:
    """The lines about the operator's requests in this part of the log."""
    with log.open("rb") as file:
        file.seek(start)
        left = end - start
        for line in file:
            left -= len(line)
            if left < 0:
                return
            entry = _decode(line)
            if entry.user.username == USER:
                yield entry
