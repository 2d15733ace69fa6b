"""The soak's reading of an audit log that grows."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.e2e.soak.audit_trail import CREDENTIAL, AuditTrail, credential_of


def line(verb: str, code: int, name: str, uri: str = "/apis/apps/v1") -> bytes:
    event = {
        "verb": verb,
        "user": {"username": "u", "extra": {CREDENTIAL: ["JTI=1"]}},
        "objectRef": {"resource": "hvpas", "subresource": "status", "namespace": "ns", "name": name},
        "requestURI": uri,
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": "2026-11-21T18:00:00.250000Z",
        "stageTimestamp": "2026-11-21T18:00:00.500000Z",
        "requestObject": {"status": {}},
    }
    return json.dumps(event).encode() + b"\n"


def test_writes_that_were_carried_out_are_reported_once_and_torn_lines_are_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    last = line("update", 201, "c")
    log.write_bytes(line("patch", 200, "a") + line("patch", 409, "b") + line("list", 200, "") + last[:50])
    audit_trail = AuditTrail(log)
    (first,) = audit_trail.news()
    assert (first.verb, first.resource, first.namespace, first.name) == ("patch", "hvpas/status", "ns", "a")
    assert (first.credential, first.answered - first.received, first.body) == ("JTI=1", 0.25, {"status": {}})
    with log.open("ab") as more:
        more.write(last[50:] + b'{"cut o' + b"\n" + line("delete", 200, "d"))
    assert [write.name for write in audit_trail.news()] == ["c", "d"]
    assert list(audit_trail.news()) == []
    assert audit_trail.requests == 5


def test_uris_that_no_operator_should_send_are_kept_by_credential(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(line("get", 404, "a", "/apis/apps/v1?x0=") + line("get", 200, "b"))
    audit_trail = AuditTrail(log)
    assert list(audit_trail.news()) == []
    assert audit_trail.unexpected == {"JTI=1": {"/apis/apps/v1?x0="}}


def test_a_credential_may_have_a_form_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(line("get", 200, "a", "/own") + line("get", 200, "b"))
    claims = base64.urlsafe_b64encode(b'{"jti":"1"}').rstrip(b"=").decode()
    audit_trail = AuditTrail(log)
    audit_trail.forms[credential_of(f"head.{claims}.signature")] = "/own".__eq__
    assert list(audit_trail.news()) == []
    assert audit_trail.unexpected == {"JTI=1": {"/apis/apps/v1"}}
