"""The operator's requests in the audit log: counted while reading, because the log of a large run does not fit into
memory; and, for a few objects, the bodies of its writes."""

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
    """Return an audit policy that logs only the operator's requests, with bodies of writes in the namespace `sample`.
    (And the requests by which `localcluster.client.audit` checks that the log is up to date.)"""
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


class AuditEntry(msgspec.Struct):
    """The fields of a line of the log that are used here."""

    stage: str
    verb: str
    user: _User
    objectRef: _Reference = _Reference()
    responseStatus: _Status = _Status()
    requestObject: msgspec.Raw = msgspec.Raw(b"")
    requestReceivedTimestamp: dt.datetime | None = None
    stageTimestamp: dt.datetime | None = None

    @property
    def kind(self) -> RequestKind:
        """The kind of its request."""
        about = self.objectRef
        return RequestKind(self.verb, "/".join(part for part in (about.resource, about.subresource) if part))


_decode = msgspec.json.Decoder(AuditEntry).decode


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request: `patch hvpas/status`."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def is_write(self) -> bool:
        """Whether it is a write (other than to the operator's own Lease)."""
        return self.verb in WRITES and self.resource != "leases"


@dataclass(frozen=True, slots=True)
class Requested:
    """The operator's requests in a time."""

    kinds: Counter[RequestKind]
    """Requests by kind."""
    refused: Counter[str]
    """Refused requests by kind and code."""
    bodies: dict[RequestKind, list[bytes]]
    """Bodies of writes in the sampled namespace."""
    seconds: dict[RequestKind, list[float]]
    """Seconds of each write in the API server."""

    def counts(self) -> dict[str, int]:
        """Return the counts, the largest first."""
        return {str(kind): count for kind, count in self.kinds.most_common()}


def read(log: Path, start: int, end: int) -> Requested:
    """Return the operator's requests in this part of the log. A watch counts at its beginning."""
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


def entries(log: Path, start: int, end: int) -> Iterator[AuditEntry]:
    """Yield the lines about the operator's requests in this part of the log."""
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
