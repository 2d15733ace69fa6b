"""Requests, streams, and what becomes of errors and refused credentials."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import stat
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ApiError, ConfigError, Unreachable
from hvpa.kube.client.transport import MERGE_PATCH, Body, Transport
from localcluster.client.pki import Authority, inline
from tests.unit.kube.fake_server import LONG, FakeServer, kubeconfig, reserved_port, status, until

pytestmark = pytest.mark.asyncio


async def ok(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"{}")


async def test_a_request_carries_token_body_and_type_and_is_counted(tmp_path: Path) -> None:
    server = FakeServer()
    server.handler = ok
    async with server.running(), server.transport(tmp_path) as transport:
        answer = await transport.request(
            "PATCH", "/x", {"a": "b c"}, Body(b'{"k":1}', MERGE_PATCH), verb="patch"
        )
    assert answer == b"{}"
    assert server.requests == [("PATCH", "/x", {"a": "b c"})]
    assert server.bodies == [{"k": 1}]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert server.headers[0]["Content-Type"] == MERGE_PATCH
    assert server.counted == [("patch", "200")]


async def test_errors_carry_the_server_s_message_and_wait(tmp_path: Path) -> None:
    server = FakeServer()

    async def busy(request: web.Request) -> web.StreamResponse:
        return status(429, "TooManyRequests", "slow down", {"Retry-After": "3"})

    server.handler = busy
    async with server.running(), server.transport(tmp_path) as transport:
        with pytest.raises(ApiError, match="slow down") as caught:
            await transport.request("GET", "/x")
    assert (caught.value.status, caught.value.retry_after) == (429, 3.0)
    assert server.counted == [("get", "429")]


async def test_no_answer_in_time_and_no_server_are_unreachable(tmp_path: Path) -> None:
    server = FakeServer()

    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(10)
        raise AssertionError

    server.handler = never
    async with server.running(), server.transport(tmp_path) as transport:
        with pytest.raises(Unreachable, match="in time"):
            await transport.request("GET", "/x", timeout=0.05)
        with pytest.raises(Unreachable):
            await anext(transport.stream("/x", {}, 0.05))
    with reserved_port() as port:
        server.url = f"http://127.0.0.1:{port}"
        async with server.transport(tmp_path) as transport:
            with pytest.raises(Unreachable):
                await transport.request("GET", "/x")
    assert server.counted == [("get", "error"), ("watch", "error"), ("get", "error")]


async def test_a_stream_hands_out_lines_of_any_length_and_drops_a_cut_one(tmp_path: Path) -> None:
    server = FakeServer()
    long = b"x" * 3_000_000

    async def lines(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in (b"a\nb", b"b\n\n", long, b"\ncut"):
            await response.write(chunk)
        return response

    server.handler = lines
    async with (
        server.running(),
        server.transport(tmp_path) as transport,
        aclosing(transport.stream("/x", {"watch": "true"}, LONG)) as stream,
    ):
        got = [line async for line in stream]
    assert got == [b"a", b"bb", long]
    assert server.counted == [("watch", "200")]


def only(token: str) -> FakeServer:
    """A server that knows one token."""
    server = FakeServer()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {token}":
            return status(401, "Unauthorized", "Unauthorized")
        return web.Response(body=b"{}")

    server.handler = handler
    return server


async def test_a_refused_token_is_read_again_and_the_request_repeated_once(tmp_path: Path) -> None:
    server = only("new")
    file = tmp_path / "token"
    file.write_text("old\n")
    async with server.running(), server.transport(tmp_path, {"tokenFile": "token"}) as transport:
        file.write_text("new\n")
        await transport.request("GET", "/x")
        assert [code for _, code in server.counted] == ["401", "200"]
        file.write_text("wrong")
        await transport.request("GET", "/x")  # still the token that worked
        assert len(server.requests) == 3


async def test_credentials_that_stay_refused_are_not_tried_for_ever(tmp_path: Path) -> None:
    server = only("other")
    async with server.running(), server.transport(tmp_path) as transport:
        with pytest.raises(ApiError) as caught:
            await transport.request("GET", "/x")
    assert caught.value.status == 401
    assert len(server.requests) == 1  # nothing new was found to try with


def plugin(folder: Path, script: str) -> dict[str, object]:
    """The user section for an exec plugin made of a shell script."""
    path = folder / "plugin"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


def credential(token: str, expires: str) -> str:
    return (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        f'"status":{{"token":"{token}","expirationTimestamp":"{expires}"}}}}'
    )


async def test_an_exec_plugin_runs_again_after_most_of_its_token_s_life(tmp_path: Path) -> None:
    expires = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=280)).isoformat()
    count = tmp_path / "count"
    script = f"echo x >> {count}\ncat <<END\n{credential('one', expires)}\nEND\n"
    now = 1000.0
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", plugin(tmp_path, script))
    credentials = await Credentials.load(str(path), monotonic=lambda: now)
    for step in (
        1.0,
        10.0,
        20.0,
    ):  # the library alone would run it each time: less than five minutes are left
        now += step
        assert await credentials.authorization() == "Bearer one"
    assert count.read_text().count("x") == 1
    now = 1270.0
    await asyncio.gather(*(credentials.authorization() for _ in range(5)))
    assert count.read_text().count("x") == 2


async def test_a_plugin_that_fails_leaves_the_token_that_is_still_good(tmp_path: Path) -> None:
    expires = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=60)).isoformat()
    path = kubeconfig(
        tmp_path, "http://127.0.0.1:1", plugin(tmp_path, f"cat <<END\n{credential('one', expires)}\nEND\n")
    )
    now = 1000.0
    credentials = await Credentials.load(str(path), monotonic=lambda: now)
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
async def test_a_kubeconfig_that_can_t_be_used_is_told_in_one_line(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        await Credentials.load(str(path))
    assert "\n" not in str(caught.value)


async def test_a_netrc_entry_for_the_server_does_not_get_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b")
    monkeypatch.setenv("NETRC", str(netrc))
    server = FakeServer()
    server.handler = ok
    async with server.running(), server.transport(tmp_path) as transport:
        await transport.request("GET", "/x")
    assert server.headers[0]["Authorization"] == "Bearer secret"


async def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = FakeServer()
    proxy.handler = ok
    async with proxy.running():
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        path = kubeconfig(tmp_path, "http://cluster.invalid:6443")
        transport = Transport(await Credentials.load(str(path)))
        assert await transport.request("GET", "/x") == b"{}"
        await transport.close()


async def test_a_path_before_all_paths(tmp_path: Path) -> None:
    server = FakeServer()
    server.handler = ok
    async with server.running():
        server.url += "/clusters/one/"
        async with server.transport(tmp_path) as transport:
            await transport.request("GET", "/x")
            async with aclosing(transport.stream("/y", {}, LONG)) as lines:
                assert [line async for line in lines] == []
    assert [path for _, path, _ in server.requests] == ["/clusters/one/x", "/clusters/one/y"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:99999", "ort"),
        ("http://user:pw@127.0.0.1:1", "AUTHORIZATION"),
        ("ftp://127.0.0.1:1", "ftp"),
    ],
)
async def test_what_can_t_be_asked_is_told(tmp_path: Path, url: str, message: str) -> None:
    transport = Transport(await Credentials.load(str(kubeconfig(tmp_path, url))))
    with pytest.raises(Unreachable, match=message) as caught:
        await transport.request("GET", "/x")
    assert "secret" not in str(caught.value)
    await transport.close()


async def test_a_request_under_way_ends_before_its_session_is_closed(tmp_path: Path) -> None:
    server = FakeServer()
    go_on = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            await go_on.wait()
        return web.Response(body=b"{}")

    server.handler = handler
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
        assert before.retired
        assert before.active == 1
        go_on.set()
        assert await slow == b"{}"
        assert before.client.closed
        await transport.close()


async def test_closing_cuts_requests_under_way(tmp_path: Path) -> None:
    server = FakeServer()
    never = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        await never.wait()
        raise AssertionError

    server.handler = handler
    async with server.running(), server.transport(tmp_path) as transport:
        asked = asyncio.ensure_future(transport.request("GET", "/x"))
        await until(lambda: len(server.requests) == 1)
        await transport.close()
        with pytest.raises(Unreachable):
            await asked
    assert server.counted == [("get", "error")]


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


async def both_ways(transport: Transport) -> bytes:
    """What is answered to a request; a stream must be possible as well."""
    async with aclosing(transport.stream("/x", {}, LONG)) as lines:
        assert [line async for line in lines] == []
    return await transport.request("GET", "/x")


async def test_what_a_kubeconfig_says_about_tls_holds_for_requests_and_streams(
    tmp_path: Path, authority: Authority
) -> None:
    server = FakeServer()
    server.handler = ok
    user = authority.client("user")
    trusted = {"certificate-authority": str(authority.certificate)}
    certificate = {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    named = {"tls-server-name": "kubernetes.default.svc"}
    async with server.running(serving(authority, clients=True)):
        for cluster in (trusted, trusted | named, {"insecure-skip-tls-verify": True}):
            async with server.transport(tmp_path, certificate, cluster) as transport:
                assert await both_ways(transport) == b"{}"
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
                    await anext(transport.stream("/x", {}, LONG))


async def test_a_certificate_that_does_not_verify_leads_to_new_credentials_once(
    tmp_path: Path, authority: Authority
) -> None:
    server = FakeServer()
    server.handler = ok
    old, new = (
        {"certificate-authority-data": inline(one.certificate)}
        for one in (Authority(tmp_path / "old"), authority)
    )
    async with server.running(serving(authority)), server.transport(tmp_path, None, old) as transport:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await transport.request("GET", "/x")
        kubeconfig(tmp_path, server.url, None, new)
        assert await both_ways(transport) == b"{}"
    assert [code for _, code in server.counted[:3]] == ["error", "error", "200"]
