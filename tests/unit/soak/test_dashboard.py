"""What the soak finds wrong with the dashboard."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

from localcluster.process import Process
from tests.e2e.soak.audit_trail import Write
from tests.e2e.soak.dashboard import Dashboard


def write(credential: str, resource: str) -> Write:
    return Write(0.0, 0.0, credential, "create", resource, "ns", "web", None)


def test_a_dashboard_that_writes_or_ends_is_wrong(tmp_path: Path) -> None:
    child = Process("dashboard", [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log")
    child.start()
    try:
        served = Dashboard(child, 1, ssl.create_default_context(), "JTI=1", "reader", "hostile")
        for arguments in (
            ("JTI=1", "tokenreviews"),
            ("JTI=1", "subjectaccessreviews"),
            ("JTI=2", "deployments"),
        ):
            served.note(write(*arguments))
        assert served.problems() == []
        served.note(write("JTI=1", "deployments"))
        assert served.problems() == ["dashboard sent create deployments ns/web"]
        served.show([("ns", "web")])
        assert served.probe() is False, "nothing listens there"
    finally:
        child.kill()
    assert served.problems()[0].startswith("the dashboard ended with -9")
