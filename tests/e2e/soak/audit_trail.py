"""Reading the audit log while it grows: every write that the API server carried out, and which process sent it."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcluster.client.audit import BEGUN, WRITE_VERBS, is_dry_run
from tests.e2e.soak.uris import is_expected

CREDENTIAL = "authentication.kubernetes.io/credential-id"
REVIEWS = frozenset({"tokenreviews", "subjectaccessreviews"})
"""What is created to ask the API server something, and not kept."""
KEPT = 5
"""Unexpected URIs of a credential that are kept for the report."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was carried out. `received` and `answered` are seconds of the epoch, by the API server's clock;
    `credential` is the token's, of whoever has one."""

    received: float
    answered: float
    credential: str
    verb: str
    resource: str
    namespace: str
    name: str
    body: Any

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.namespace}/{self.name}"


class AuditTrail:
    """The audit log from where it was last read to its end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = 0
        self._rest = b""
        self.forms: dict[str, Callable[[str], bool]] = {}
        """By credential: which URIs it may request, if those are other ones than an operator's."""
        self.requests = 0
        """All answered requests so far."""
        self.unexpected: dict[str, set[str]] = defaultdict(set)
        """By credential: URIs that it should not request, a few of them."""

    def news(self) -> Iterator[Write]:
        """The writes that were carried out since the last time, in the order of their answers."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            read = log.read()
        self._offset += len(read)
        *lines, self._rest = (self._rest + read).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # cut off by a SIGKILL of the API server
            if event.get("stage") == BEGUN:
                continue
            self.requests += 1
            self._judge(event)
            is_done = event.get("responseStatus", {}).get("code", 500) < 300 and not is_dry_run(event)
            if event["verb"] in WRITE_VERBS and is_done:
                yield _write(event)

    def _judge(self, event: dict[str, Any]) -> None:
        uri, credential = event["requestURI"], _credential(event)
        kept = self.unexpected[credential]
        if len(kept) < KEPT and not self.forms.get(credential, is_expected)(uri):
            kept.add(uri)


def credential_of(token: str) -> str:
    """What the audit log calls a ServiceAccount's token."""
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def _credential(event: dict[str, Any]) -> str:
    """The token that a request was sent with; empty without one."""
    credential: str = event["user"].get("extra", {}).get(CREDENTIAL, [""])[0]
    return credential


def _write(event: dict[str, Any]) -> Write:
    reference, body = event.get("objectRef", {}), event.get("requestObject")
    parts = (reference.get("resource", ""), reference.get("subresource", ""))
    return Write(
        received=dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        answered=dt.datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        credential=_credential(event),
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        namespace=reference.get("namespace", ""),
        name=reference.get("name") or (body or {}).get("metadata", {}).get("name", ""),
        body=body,
    )
