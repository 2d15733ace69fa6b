"""/metrics over HTTPS for tokens with the right, on a real API server, with the roles of `config/secure-metrics`."""

from __future__ import annotations

import http.client
import shutil
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from localcluster.client.api import Json, wait_for
from localcluster.client.kubeconfig import token_user
from localcluster.client.pki import Authority
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, Operator
from localcluster.process import free_port
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.accounts import bind_cluster_role, new_account
from tests.e2e.bare.conftest import Start


@dataclass
class Secured:
    """Where an operator serves its metrics, and the certificate that it is given."""

    folder: Path
    authority: Authority
    port: int = field(default_factory=free_port)

    @property
    def flags(self) -> list[str]:
        address = f"127.0.0.1:{self.port}"
        return ["--metrics-bind-address", address, "--metrics-secure", "--metrics-cert-dir", str(self.folder)]

    def present(self, name: str) -> None:
        """Put a new certificate of this name in the place of the present one."""
        pair = self.authority.server(name)
        for source, target in ((pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            shutil.copy(source, self.folder / f"{target}.new")
            (self.folder / f"{target}.new").rename(self.folder / target)

    def scrape(self, token: str | None, path: str = "/metrics") -> tuple[int, str]:
        """Status and body of a request with this token, or without one."""
        status, body, _ = self._get(token, path)
        return status, body

    def presented(self) -> str:
        """The common name of the certificate that is presented now."""
        return self._get(None, "/metrics")[2]

    def _get(self, token: str | None, path: str) -> tuple[int, str, str]:
        trust = ssl.create_default_context(cafile=self.authority.certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trust)
        try:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            connection.request("GET", path, headers=headers)
            assert isinstance(connection.sock, ssl.SSLSocket)
            subject = (connection.sock.getpeercert() or {})["subject"]
            answer = connection.getresponse()
            body = answer.read().decode()
            return answer.status, body, str(dict(pair[0] for pair in subject)["commonName"])  # type: ignore[misc]
        finally:
            connection.close()


@pytest.fixture(scope="module")
def overlay(plane: ControlPlane) -> list[Json]:
    """What `kubectl apply -k config/secure-metrics` would apply; its roles are applied."""
    rendered = plane.kubectl("kustomize", REPOSITORY / "config/secure-metrics").stdout
    documents = [one for one in yaml.safe_load_all(rendered) if one]
    for one in documents:
        if one["metadata"]["name"].startswith("hvpa-metrics-") and "Role" in one["kind"]:
            plane.api.apply(one)
    return documents


@pytest.fixture(scope="module")
def space(plane: ControlPlane) -> str:
    return new_namespace(plane.api, "metrics")


@pytest.fixture(scope="module")
def tokens(plane: ControlPlane, overlay: list[Json], space: str) -> dict[str, str]:
    """Tokens of three accounts: two that may read the metrics, and one that may not."""
    for name in ("reader", "reader-too", "stranger"):
        new_account(plane, space, name)
        if name != "stranger":
            bind_cluster_role(plane, "hvpa-metrics-reader", space, name)
    return {name: plane.service_account_token(space, name) for name in ("reader", "reader-too", "stranger")}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("metrics-pki"), "metrics-ca")


@pytest.fixture
def secured(authority: Authority, tmp_path: Path) -> Secured:
    found = Secured(tmp_path, authority)
    found.present("first")
    return found


@pytest.fixture(scope="module")
def operator(
    plane: ControlPlane,
    account: Path,
    overlay: list[Json],
    space: str,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Secured, Operator]]:
    """One operator with the rights of the overlay, for the tests that leave it as it is."""
    where = Secured(tmp_path_factory.mktemp("metrics-tls"), authority)
    where.present("first")
    with Operator(plane, account, "--namespace", space, "--log-level", "debug", *where.flags) as running:
        yield where, running


def test_only_a_token_with_the_right_reads_the_metrics(
    operator: tuple[Secured, Operator], tokens: dict[str, str], token: str
) -> None:
    where, running = operator
    status, body = where.scrape(tokens["reader"])
    assert status == 200
    assert "hvpa_leader 1.0" in body
    for refused, code in (
        (None, 401),
        ("", 401),
        ("made-up", 401),
        (tokens["reader"][:-4] + "AAAA", 401),
        (tokens["stranger"], 403),
        (token, 403),  # the operator's own account
    ):
        status, body = where.scrape(refused)
        assert status == code, refused
        assert "hvpa_leader" not in body
    assert where.scrape(tokens["stranger"], "/healthz")[0] == 404
    assert (running.probe("healthz"), running.probe("readyz")) == (200, 200)  # as before, without TLS
    log = running.log.read_text()
    assert log
    assert not [one for one in (*tokens.values(), token, "made-up") if one in log]


def test_a_certificate_that_is_replaced_is_presented_without_a_restart(
    operator: tuple[Secured, Operator], tokens: dict[str, str]
) -> None:
    where, _ = operator
    assert where.presented() == "first"
    where.present("second")
    wait_for(lambda: where.presented() == "second", 60, "the new certificate")
    assert where.scrape(tokens["reader"])[0] == 200


def test_the_reviews_are_all_that_it_needs_and_few(
    plane: ControlPlane, operator: tuple[Secured, Operator], tokens: dict[str, str]
) -> None:
    where, _ = operator
    assert where.scrape(tokens["reader-too"])[0] == 200
    mark = plane.audit.mark()
    for _ in range(5):
        assert where.scrape(tokens["reader-too"])[0] == 200
    resources = {"tokenreviews", "subjectaccessreviews"}
    assert [one for one in plane.audit.requests(mark) if one.resource in resources] == []


def test_without_the_api_server_no_client_is_let_in(
    plane: ControlPlane, secured: Secured, tokens: dict[str, str], token: str, start: Start, space: str
) -> None:
    with plane.proxy() as line:
        start("--namespace", space, *secured.flags, kubeconfig=line.kubeconfig_with(token_user(token)))
        assert secured.scrape(tokens["reader-too"])[0] == 200
        with line.refused():
            status, body = secured.scrape(tokens["reader"])
            assert (status, body) == (503, "the API server can't be asked\n")
            assert secured.scrape(tokens["reader-too"])[0] == 200  # known since a moment ago
        assert secured.scrape(tokens["reader"])[0] == 200


def test_without_the_roles_no_client_is_let_in(
    plane: ControlPlane, secured: Secured, tokens: dict[str, str], start: Start, space: str
) -> None:
    plane.circumstances.meant.add(new_account(plane, space, "operator-without-reviews"))
    bind_cluster_role(plane, "hvpa-operator", space, "operator-without-reviews")
    kubeconfig = plane.service_account_kubeconfig(space, "operator-without-reviews")
    running = start("--namespace", space, *secured.flags, kubeconfig=kubeconfig)
    assert secured.scrape(tokens["reader"]) == (500, "the API server did not review the request\n")
    refused = "metrics: a review was refused"
    wait_for(lambda: [one for one in running.log_lines() if one.get("event") == refused], 60, "it says so")


def test_the_overlay_deploys_the_operator_with_its_flags_and_the_certificate(
    plane: ControlPlane, overlay: list[Json]
) -> None:
    (deployment,) = [one for one in overlay if one["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folder = "/run/hvpa/metrics-tls"
    assert container["args"][-2:] == ["--metrics-secure", f"--metrics-cert-dir={folder}"]
    assert container["volumeMounts"] == [{"name": "metrics-tls", "mountPath": folder, "readOnly": True}]
    secret = {"secretName": "hvpa-metrics-tls", "defaultMode": 0o440}
    assert pod["volumes"] == [{"name": "metrics-tls", "secret": secret}]
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    plane.api.apply(deployment)  # the API server takes it
    plain = yaml.safe_load_all(plane.kubectl("kustomize", REPOSITORY / "config/default").stdout)
    plane.apply_all([one for one in plain if one])
