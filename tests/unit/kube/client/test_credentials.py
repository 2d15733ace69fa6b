"""The Pod's own ServiceAccount as credentials, where there is no kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes_asyncio.config import incluster_config, kube_config

from hvpa.kube.client.credentials import TOKEN_FILE_AGE, Credentials
from hvpa.kube.client.errors import ConfigError


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a Pod would have mounted."""
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("a certificate")
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.asyncio
async def test_in_a_cluster_the_service_account_is_used_and_its_token_read_again(account: Path) -> None:
    now = 0.0
    credentials = await Credentials.load(None, monotonic=lambda: now)
    assert credentials.configuration.host == "https://192.0.2.1:443"
    assert credentials.configuration.ssl_ca_cert == str(account / "ca.crt")
    assert await credentials.authorization() == "Bearer first"
    (account / "token").write_text("second")
    assert await credentials.authorization() == "Bearer first"
    now = TOKEN_FILE_AGE
    assert await credentials.authorization() == "Bearer second"
    (account / "token").unlink()
    now = 2 * TOKEN_FILE_AGE
    assert await credentials.authorization() == "Bearer second"


@pytest.mark.asyncio
async def test_a_certificate_file_that_is_replaced_in_place_asks_for_a_new_session(account: Path) -> None:
    credentials = await Credentials.load(None)
    before = credentials.generation
    sent = await credentials.authorization()
    assert not await credentials.refused(sent, before)
    (account / "ca.crt").write_text("another certificate")
    assert await credentials.refused(sent, before)
    assert credentials.generation == before + 1
    assert not await credentials.refused(sent, before + 1)


@pytest.mark.asyncio
async def test_a_service_account_without_a_token_is_told(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(ConfigError, match="token"):
        await Credentials.load(None)
