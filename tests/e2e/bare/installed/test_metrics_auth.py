"""/metrics over HTTPS for tokens with the right, on a real API server, with the roles of `config/secure-metrics`."""

from __future__ import annotations

import http.client
import shutil
import ssl
from pathlib import Path

import yaml

from localcluster.client.pki import Authority
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.process import free_port
from tests.e2e.bare.accounts import bind_cluster_role, new_account
from tests.e2e.bare.conftest import Start


def apply_roles(plane: ControlPlane) -> None:
    """The roles of `kubectl apply -k config/secure-metrics`."""
    rendered = plane.kubectl("kustomize", REPOSITORY / "config/secure-metrics").stdout
    for document in filter(None, yaml.safe_load_all(rendered)):
        if document["metadata"]["name"].startswith("hvpa-metrics-") and "Role" in document["kind"]:
            plane.api.apply(document)


def scrape(trust: ssl.SSLContext, port: int, token: str | None, path: str = "/metrics") -> tuple[int, str]:
    """Status and body of a request with this token, or without one."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trust)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_only_a_token_with_the_right_reads_the_metrics(
    plane: ControlPlane, space: str, token: str, start: Start, tmp_path: Path
) -> None:
    apply_roles(plane)
    for name in ("reader", "stranger"):
        new_account(plane, space, name)
    bind_cluster_role(plane, "hvpa-metrics-reader", space, "reader")
    reader, stranger = (plane.service_account_token(space, name) for name in ("reader", "stranger"))
    authority, port = Authority(tmp_path, "metrics-ca"), free_port()
    trust = ssl.create_default_context(cafile=authority.certificate)
    served = tmp_path / "served"
    served.mkdir()
    pair = authority.server("metrics")
    for source, name in ((pair.certificate, "tls.crt"), (pair.key, "tls.key")):
        shutil.copy(source, served / name)
    secure = (
        "--metrics-bind-address",
        f"127.0.0.1:{port}",
        "--metrics-secure",
        "--metrics-cert-dir",
        str(served),
    )
    running = start("--namespace", space, *secure)

    status, body = scrape(trust, port, reader)
    assert status == 200
    assert "hvpa_leader 1.0" in body
    for refused, code in (
        (None, 401),
        ("", 401),
        ("made-up", 401),
        (reader[:-4] + "AAAA", 401),
        (stranger, 403),
        (token, 403),  # the operator's own account
    ):
        status, body = scrape(trust, port, refused)
        assert status == code, refused
        assert "hvpa_leader" not in body
    assert scrape(trust, port, stranger, "/healthz")[0] == 404
    assert (running.probe("healthz"), running.probe("readyz")) == (200, 200)  # as before, without TLS
    log = running.log.read_text()
    assert log
    assert not [secret for secret in (reader, stranger, token, "made-up") if secret in log]
