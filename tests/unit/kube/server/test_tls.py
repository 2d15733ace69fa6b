"""HTTPS with a certificate from files that are replaced while the server runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hvpa.kube.server.tls import CERTIFICATE, KEY, LOOK, Certificate, CertificateError
from localcluster.client.pki import Authority, KeyPair
from tests.unit.kube.server.listening import fine, listening


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def pairs(authority: Authority) -> list[KeyPair]:
    return [authority.server(name) for name in ("one", "two")]


def put(folder: Path, certificate: Path | None, key: Path | None) -> None:
    """Replace the files by new ones, as an update of a mounted Secret does."""
    for source, name in ((certificate, CERTIFICATE), (key, KEY)):
        (folder / name).unlink(missing_ok=True)
        if source is not None:
            shutil.copy(source, folder / name)


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path, pairs: list[KeyPair]) -> Path:
    put(tmp_path, pairs[0].certificate, pairs[0].key)
    return tmp_path


@asynccontextmanager
async def presenting(folder: Path, clock: Clock) -> AsyncIterator[int]:
    """The port of a server that presents the certificate in a folder."""
    async with listening({"/metrics": fine}, tls=Certificate(folder, clock).context) as (port, _):
        yield port


async def presented(port: int, authority: Authority, name: str | None = "localhost") -> str:
    """The common name of the certificate that is presented to a client that names the server, or does not."""
    trust = ssl.create_default_context(cafile=authority.certificate)
    trust.check_hostname = name is not None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trust, server_hostname=name if name is not None else ""
    )
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"fine")
    certificate = writer.get_extra_info("peercert")
    writer.close()
    await writer.wait_closed()
    return str(dict(pair[0] for pair in certificate["subject"])["commonName"])


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", None])
async def test_a_certificate_that_was_replaced_is_presented(
    folder: Path, authority: Authority, pairs: list[KeyPair], name: str | None
) -> None:
    clock = Clock()
    async with presenting(folder, clock) as port:
        assert await presented(port, authority, name) == "one"
        put(folder, pairs[1].certificate, pairs[1].key)
        clock.now += LOOK / 2
        assert await presented(port, authority, name) == "one"
        clock.now += LOOK
        with capture_logs() as logs:
            assert await presented(port, authority, name) == "two"
            clock.now += LOOK
            assert await presented(port, authority, name) == "two"
        assert [line["event"] for line in logs] == ["the certificate was replaced"]


async def test_one_that_can_not_be_used_leaves_the_old_one_in_place(
    folder: Path, authority: Authority, pairs: list[KeyPair]
) -> None:
    clock = Clock()
    async with presenting(folder, clock) as port:
        for certificate, key, reason in (
            (pairs[1].certificate, pairs[0].key, "not a certificate and its key (KEY_VALUES_MISMATCH)"),
            (pairs[1].key, pairs[1].key, "not a certificate and its key"),
            (None, None, "No such file"),
        ):
            put(folder, certificate, key)
            clock.now += LOOK
            with capture_logs() as logs:
                assert await presented(port, authority) == "one"
            (log,) = logs
            assert log["event"] == "the new certificate can't be used; keeping the old certificate"
            assert reason in log["error"]
        put(folder, pairs[1].certificate, pairs[1].key)
        clock.now += LOOK
        assert await presented(port, authority) == "two"


def test_the_link_of_a_mounted_secret_is_followed(tmp_path: Path, pairs: list[KeyPair]) -> None:
    for name, pair in zip(("..first", "..second"), pairs, strict=True):
        (tmp_path / name).mkdir()
        put(tmp_path / name, pair.certificate, pair.key)
    (tmp_path / "..data").symlink_to("..first")
    for name in (CERTIFICATE, KEY):
        (tmp_path / name).symlink_to(Path("..data") / name)
    clock = Clock()
    certificate = Certificate(tmp_path, clock)
    (tmp_path / "..new").symlink_to("..second")
    os.replace(tmp_path / "..new", tmp_path / "..data")
    clock.now += LOOK
    with capture_logs() as logs:
        certificate._look()
    assert [line["event"] for line in logs] == ["the certificate was replaced"]


@pytest.mark.parametrize("missing", [CERTIFICATE, KEY])
def test_without_its_files_there_is_no_certificate(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(CertificateError, match=r"No such file"):
        Certificate(folder)


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_refused(folder: Path, text: str) -> None:
    (folder / CERTIFICATE).write_text(text)
    with pytest.raises(CertificateError, match=r"are not a certificate and its key"):
        Certificate(folder)


@pytest.fixture
def old_protocols() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.usefixtures("old_protocols")
async def test_old_protocols_are_not_spoken(folder: Path, authority: Authority) -> None:
    async with presenting(folder, Clock()) as port:
        trust = ssl.create_default_context(cafile=authority.certificate)
        trust.set_ciphers("DEFAULT:@SECLEVEL=0")
        trust.minimum_version = ssl.TLSVersion.TLSv1
        trust.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
