"""Requests, streams, and what becomes of errors; credentials, and what becomes of refused ones."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.config import incluster_config, kube_config

from hvpa.kube.client.credentials import TOKEN_FILE_AGE, Credentials
from hvpa.kube.client.errors import ApiError, ConfigError, Unreachable
from hvpa.kube.client.transport import MERGE_PATCH, Body, Transport
from localcluster.client.pki import Authority, inline
from tests.unit.kube.fake_server import LONG, FakeServer, always, kubeconfig, reserved_port, status, until

OK = always(b"{}")
NOWHERE = "http://127.0.0.1:1"


async def never(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def streamed(transport: Transport, path: str = "/x", silence: float = LONG) -> list[bytes]:
    """All lines of a stream."""
    async with aclosing(transport.stream(path, {"watch": "true"}, silence)) as lines:
        return [line async for line in lines]


async def test_a_request_carries_token_body_and_type_and_is_counted(tmp_path: Path) -> None:
    server = FakeServer(OK)
    async with server.connected(tmp_path) as transport:
        body = Body(b'{"k":1}', MERGE_PATCH)
        assert await transport.request("PATCH", "/x", {"a": "b c"}, body, verb="patch") == b"{}"
    assert server.requests == [("PATCH", "/x", {"a": "b c"})]
    assert server.bodies == [{"k": 1}]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert server.headers[0]["Content-Type"] == MERGE_PATCH
    assert server.counted == [("patch", "200")]


async def test_errors_carry_the_server_s_message_and_wait(tmp_path: Path) -> None:
    server = FakeServer(always(status(429, "TooManyRequests", "slow down", {"Retry-After": "3"})))
    async with server.connected(tmp_path) as transport:
        with pytest.raises(ApiError, match="slow down") as caught:
            await transport.request("GET", "/x")
    assert (caught.value.status, caught.value.retry_after) == (429, 3.0)
    assert server.counted == [("get", "429")]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/apis/apps/v1/namespaces/ns/deployments/a\x00b", {}),
        ("/a\nb", {}),
        ("/a/../b", {}),
        ("/a?b=c", {}),
        ("/x", {"labelSelector": "\ud800"}),
    ],
)
async def test_a_request_that_can_t_be_built_is_its_caller_s_fault_and_retires_no_connection(
    tmp_path: Path, path: str, query: dict[str, str]
) -> None:
    server = FakeServer(OK)
    async with server.connected(tmp_path) as transport:
        await transport.request("GET", "/x")
        for attempt in (
            transport.request("GET", path, query),
            transport.page(path, query, LONG, 10),
            anext(transport.stream(path, query, LONG)),
        ):
            with pytest.raises(ValueError, match=r"is not a request path|surrogates") as caught:
                await attempt
            assert not isinstance(caught.value, Unreachable)
        await transport.request("GET", "/x")
        assert server.connections() == 1
    assert server.counted == [("get", "200")] * 2


async def test_a_token_that_no_header_can_carry_retires_no_connection(tmp_path: Path) -> None:
    server = FakeServer(OK)
    async with server.connected(tmp_path, user={"token": "a\nb"}) as transport:
        with pytest.raises(Unreachable):
            await transport.request("GET", "/x")
        (session,) = transport._open
        assert not session.retired
    assert server.counted == [("get", "error")]


async def test_no_response_in_time_and_no_server_are_unreachable(tmp_path: Path) -> None:
    server = FakeServer(never)
    async with server.connected(tmp_path) as transport:
        with pytest.raises(Unreachable, match="in time"):
            await transport.request("GET", "/x", timeout=0.05)
        with pytest.raises(Unreachable):
            await streamed(transport, silence=0.05)
    with reserved_port() as port:
        server.url = f"http://127.0.0.1:{port}"
        async with server.transport(tmp_path) as transport:
            with pytest.raises(Unreachable):
                await transport.request("GET", "/x")
    assert server.counted == [("get", "error"), ("watch", "error"), ("get", "error")]


async def test_a_stream_hands_out_lines_of_any_length_and_drops_a_cut_one(tmp_path: Path) -> None:
    long = b"x" * 3_000_000

    async def lines(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in (b"a\nb", b"b\n\n", long, b"\ncut"):
            await response.write(chunk)
        return response

    server = FakeServer(lines)
    async with server.connected(tmp_path) as transport:
        assert await streamed(transport) == [b"a", b"bb", long]
    assert server.counted == [("watch", "200")]


async def test_a_path_before_all_paths(tmp_path: Path) -> None:
    server = FakeServer(OK)
    async with server.running():
        server.url += "/clusters/one/"
        async with server.transport(tmp_path) as transport:
            await transport.request("GET", "/x")
            assert await streamed(transport, "/y") == []
    assert server.paths == ["/clusters/one/x", "/clusters/one/y"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:99999", "ort"),
        ("http://user:pw@127.0.0.1:1", "host 127.0.0.1:1 "),
        ("ftp://127.0.0.1:1", "ftp"),
    ],
)
async def test_an_address_that_can_t_be_used_is_unreachable(tmp_path: Path, url: str, message: str) -> None:
    transport = Transport(await Credentials.load(str(kubeconfig(tmp_path, url))))
    with pytest.raises(Unreachable, match=message) as caught:
        await transport.request("GET", "/x")
    assert "secret" not in str(caught.value)
    await transport.close()


async def test_a_netrc_entry_for_the_server_does_not_get_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b")
    monkeypatch.setenv("NETRC", str(netrc))
    server = FakeServer(OK)
    async with server.connected(tmp_path) as transport:
        await transport.request("GET", "/x")
    assert server.headers[0]["Authorization"] == "Bearer secret"


async def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = FakeServer(OK)
    async with proxy.running():
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        path = kubeconfig(tmp_path, "http://cluster.invalid:6443")
        transport = Transport(await Credentials.load(str(path)))
        assert await transport.request("GET", "/x") == b"{}"
        await transport.close()


async def test_a_request_under_way_ends_before_its_session_is_closed(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            await go_on.wait()
        return web.Response(body=b"{}")

    server = FakeServer(handler)
    async with server.running():
        credentials = await Credentials.load(str(kubeconfig(tmp_path, server.url)))
        transport = Transport(credentials)
        slow = asyncio.ensure_future(transport.request("GET", "/slow"))
        await until(lambda: len(server.requests) == 1)
        before = transport._session
        assert before is not None
        credentials.generation += 1
        await transport.request("GET", "/x")
        assert transport._session is not before
        assert (before.retired, before.active) == (True, 1)
        go_on.set()
        assert await slow == b"{}"
        assert before.client.closed
        await transport.close()


async def test_closing_cuts_requests_under_way(tmp_path: Path) -> None:
    server = FakeServer(never)
    async with server.connected(tmp_path) as transport:
        under_way = asyncio.ensure_future(transport.request("GET", "/x"))
        await until(lambda: len(server.requests) == 1)
        await transport.close()
        with pytest.raises(Unreachable):
            await under_way
    assert server.counted == [("get", "error")]


# --- credentials ------------------------------------------------------------------------------------------------------
def only(token: str) -> FakeServer:
    """A server that knows one token."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {token}":
            return status(401, "Unauthorized", "Unauthorized")
        return web.Response(body=b"{}")

    return FakeServer(handler)


async def test_a_refused_token_is_read_again_and_the_request_repeated_once(tmp_path: Path) -> None:
    server = only("new")
    file = tmp_path / "token"
    file.write_text("old\n")
    async with server.connected(tmp_path, {"tokenFile": "token"}) as transport:
        file.write_text("new\n")
        await transport.request("GET", "/x")
        assert [code for _, code in server.counted] == ["401", "200"]
        file.write_text("wrong")
        await transport.request("GET", "/x")  # still the token that worked
        assert len(server.requests) == 3


async def test_credentials_that_stay_refused_are_not_tried_for_ever(tmp_path: Path) -> None:
    server = only("other")
    async with server.connected(tmp_path) as transport:
        with pytest.raises(ApiError) as caught:
            await transport.request("GET", "/x")
    assert caught.value.status == 401
    assert len(server.requests) == 1  # nothing new was found to try with


def plugin(folder: Path, script: str) -> dict[str, object]:
    """The user section for an exec plugin made of a shell script."""
    path = folder / "plugin"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


def credential(seconds: float) -> str:
    """Prints a token that is good for so long."""
    expires = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat()
    return (
        'cat <<END\n{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        f'"status":{{"token":"one","expirationTimestamp":"{expires}"}}}}\nEND\n'
    )


async def test_an_exec_plugin_runs_again_after_most_of_its_token_s_life(tmp_path: Path) -> None:
    count, now = tmp_path / "count", 1000.0
    user = plugin(tmp_path, f"echo x >> {count}\n{credential(280)}")
    credentials = await Credentials.load(str(kubeconfig(tmp_path, NOWHERE, user)), monotonic=lambda: now)
    # The library alone would run it each time: less than five minutes are left.
    for now in (1001.0, 1011.0, 1031.0):  # noqa: B007
        assert await credentials.authorization() == "Bearer one"
    assert count.read_text().count("x") == 1
    now = 1270.0
    await asyncio.gather(*(credentials.authorization() for _ in range(5)))
    await until(lambda: count.read_text().count("x") == 2)
    assert count.read_text().count("x") == 2


async def test_a_plugin_that_fails_leaves_the_token_that_is_still_good(tmp_path: Path) -> None:
    now, user = 1000.0, plugin(tmp_path, credential(60))
    credentials = await Credentials.load(str(kubeconfig(tmp_path, NOWHERE, user)), monotonic=lambda: now)
    plugin(tmp_path, "echo broken >&2; exit 1")
    now = 1050.0
    assert await credentials.authorization() == "Bearer one"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("{", "kubeconfig can't be used"),
        ("a: 1", "Expected key current-context"),
        ('{"contexts":[],"clusters":[],"users":[],"current-context":"x"}', "x"),
    ],
)
async def test_a_kubeconfig_that_can_t_be_used_is_an_error_of_one_line(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        await Credentials.load(str(path))
    assert "\n" not in str(caught.value)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a Pod would have mounted for its ServiceAccount; there is no kubeconfig."""
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("a certificate")
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


async def test_in_a_cluster_the_service_account_is_used_and_its_token_read_again(account: Path) -> None:
    now = 0.0
    credentials = await Credentials.load(None, monotonic=lambda: now)
    assert credentials.configuration.host == "https://192.0.2.1:443"
    assert credentials.configuration.ssl_ca_cert == str(account / "ca.crt")
    (account / "token").write_text("second")
    assert await credentials.authorization() == "Bearer first"
    now = TOKEN_FILE_AGE
    assert await credentials.authorization() == "Bearer second"
    (account / "token").unlink()
    now = 2 * TOKEN_FILE_AGE
    assert await credentials.authorization() == "Bearer second"


async def test_a_certificate_file_that_is_replaced_in_place_asks_for_a_new_session(account: Path) -> None:
    credentials = await Credentials.load(None)
    before, sent = credentials.generation, await credentials.authorization()
    assert not await credentials.refused(sent, before)
    (account / "ca.crt").write_text("another certificate")
    assert await credentials.refused(sent, before)
    assert credentials.generation == before + 1
    assert not await credentials.refused(sent, before + 1)


async def test_a_service_account_without_a_token_is_an_error(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(ConfigError, match="token"):
        await Credentials.load(None)


# --- TLS --------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


def serving(authority: Authority, clients: bool = False) -> ssl.SSLContext:
    """A server's side of TLS; `clients`: they must have a certificate."""
    pair = authority.server("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return tls


async def test_tls_of_a_kubeconfig_holds_for_requests_and_streams(
    tmp_path: Path, authority: Authority
) -> None:
    server, user = FakeServer(OK), authority.client("user")
    trusted = {"certificate-authority": str(authority.certificate)}
    certificate = {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    named = {"tls-server-name": "kubernetes.default.svc"}
    async with server.running(serving(authority, clients=True)):
        for cluster in (trusted, trusted | named, {"insecure-skip-tls-verify": True}):
            async with server.transport(tmp_path, certificate, cluster) as transport:
                assert await streamed(transport) == []
                assert await transport.request("GET", "/x") == b"{}"
        wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"token": "secret"}, trusted),
            (certificate, trusted | {"tls-server-name": "somebody.else"}),
            (certificate, {}),
        ]
        for who, cluster in wrong:
            async with server.transport(tmp_path, who, cluster) as transport:
                with pytest.raises(Unreachable):
                    await transport.request("GET", "/x")
                with pytest.raises(Unreachable):
                    await streamed(transport)


async def test_a_certificate_that_does_not_verify_leads_to_new_credentials_once(
    tmp_path: Path, authority: Authority
) -> None:
    server = FakeServer(OK)
    old, new = (
        {"certificate-authority-data": inline(issuer.certificate)}
        for issuer in (Authority(tmp_path / "old"), authority)
    )
    async with server.running(serving(authority)), server.transport(tmp_path, None, old) as transport:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await transport.request("GET", "/x")
        kubeconfig(tmp_path, server.url, None, new)
        assert await streamed(transport) == []
        assert await transport.request("GET", "/x") == b"{}"
    assert [code for _, code in server.counted[:3]] == ["error", "error", "200"]
