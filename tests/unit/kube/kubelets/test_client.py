"""Answers of kubelets, good and bad, over TLS on loopback."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from hvpa.kube.kubelets import client
from hvpa.kube.kubelets.client import MOST_BYTES, PATH, KubeletClient, KubeletError
from localcluster.client.pki import Authority

RIGHT = "the account for kubelets needs the right to get nodes/metrics (config/fast-signal)"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Token:
    """The same token for all; it notes which a kubelet has refused."""

    def __init__(self) -> None:
        self.refusals: list[str] = []

    async def __call__(self) -> str:
        return "Bearer t"

    def refused(self, header: str) -> None:
        self.refusals.append(header)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@asynccontextmanager
async def serving(authority: Authority, handler: Handler) -> AsyncIterator[int]:
    """A kubelet's port, where `handler` answers."""
    pair = authority.server("kubelet")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.router.add_get(PATH, handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def read(authority: Authority, handler: Handler, trust: Path | None = None) -> bytes:
    context = ssl.create_default_context(cafile=str(trust or authority.certificate))
    async with serving(authority, handler) as port, KubeletClient(context, Token()) as kubelets:
        return await kubelets.read("127.0.0.1", port)


async def test_an_answer_is_decompressed(authority: Authority) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer t"
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=gzip.compress(b"metrics"), headers={"Content-Encoding": "gzip"})

    assert await read(authority, answer) == b"metrics"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (403, f"HTTP 403: {RIGHT}"),
        (401, f"HTTP 401: {RIGHT}"),
        (500, "HTTP 500"),
        (302, "HTTP 302"),
    ],
)
async def test_a_status_other_than_200_is_no_answer(authority: Authority, status: int, reason: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "https://127.0.0.1:1/"})

    with pytest.raises(KubeletError, match=f"^{re.escape(reason)}$"):
        await read(authority, answer)


async def test_a_token_that_a_kubelet_does_not_know_is_reported(authority: Authority) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=401)

    token = Token()
    context = ssl.create_default_context(cafile=str(authority.certificate))
    async with serving(authority, answer) as port, KubeletClient(context, token) as kubelets:
        with pytest.raises(KubeletError, match="HTTP 401"):
            await kubelets.read("127.0.0.1", port)
    assert token.refusals == ["Bearer t"]


async def test_a_long_answer_is_cut_off(authority: Authority) -> None:
    """10 MB, of which the network sees 10 kB."""

    async def answer(_: web.Request) -> web.Response:
        body = gzip.compress(bytes(10 * 2**20))
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    with pytest.raises(KubeletError, match=f"longer than {MOST_BYTES} bytes"):
        await read(authority, answer)


async def test_bytes_that_are_not_compressed_as_announced_are_no_answer(authority: Authority) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"metrics", headers={"Content-Encoding": "gzip"})

    with pytest.raises(KubeletError):
        await read(authority, answer)


async def test_a_kubelet_that_hangs_is_left(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 0.2)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"metr")
        await asyncio.sleep(1)
        return response

    with pytest.raises(KubeletError, match=r"^no answer within 0\.2 s at port \d+$"):
        await read(authority, answer)


async def test_a_certificate_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"metrics")

    with pytest.raises(
        KubeletError,
        match=r"^its certificate is not trusted \([a-z -]*certificate.*\); see --kubelet-certificate-authority",
    ):
        await read(authority, answer, trust=Authority(tmp_path / "other").certificate)


async def test_a_port_where_nobody_listens_is_no_answer(authority: Authority) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    async with serving(authority, answer) as port:
        pass
    async with KubeletClient(ssl.create_default_context(), Token()) as kubelets:
        with pytest.raises(
            KubeletError, match=rf"^no connection to port {port} \(Connect(ion refused| call failed.*)\)$"
        ):
            await kubelets.read("127.0.0.1", port)


async def test_polls_of_a_node_share_a_connection(authority: Authority) -> None:
    peers = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response(body=b"metrics")

    context = ssl.create_default_context(cafile=str(authority.certificate))
    async with serving(authority, answer) as port, KubeletClient(context, Token()) as kubelets:
        for _ in range(3):
            await kubelets.read("127.0.0.1", port)
    assert len(peers) == 3
    assert len(set(peers)) == 1
