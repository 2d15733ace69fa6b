"""Credentials that are renewed late, plugins that hang, and passwords that stand in a URL: no request waits for them
without need, no process is left behind, and no text has a secret."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import signal
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from hvpa.kube.client import plugin as plugins
from hvpa.kube.client.address import address_of
from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ConfigError, Unreachable
from hvpa.kube.client.transport import Transport
from tests.unit.kube.client.test_transport import NOWHERE, credential, plugin
from tests.unit.kube.fake_server import FakeServer, always, kubeconfig, until

SECRET = "hunter2-swordfish"
SOON = re.sub('stamp":"[^"]*', 'stamp":"soon', credential(9))


class Life:
    """Credentials of a plugin whose token is good for 100 s, and their clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1000.0
        self.pids = folder / "pids"

    async def loaded(self, url: str = NOWHERE) -> Credentials:
        path = kubeconfig(self.folder, url, plugin(self.folder, credential(100)))
        return await Credentials.load(str(path), monotonic=lambda: self.now)

    def hangs(self) -> None:
        """The plugin and a child of it hang from now on."""
        pids = shlex.quote(str(self.pids))
        plugin(self.folder, f"sleep 1000 &\necho $! >> {pids}\necho $$ >> {pids}\nwait\n")

    def processes(self) -> list[int]:
        """Plugins and children that were begun."""
        return [int(pid) for pid in self.pids.read_text().split()] if self.pids.exists() else []

    async def all_gone(self) -> None:
        await until(lambda: not any(map(is_alive, self.processes())))


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.fixture
def life(tmp_path: Path) -> Any:
    life = Life(tmp_path)
    yield life
    for pid in life.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_requests_go_on_with_the_present_token_while_the_plugin_hangs_at_its_renewal(
    life: Life,
) -> None:
    server = FakeServer(always({}))
    async with server.running():
        credentials = await life.loaded(server.url)
        life.hangs()
        life.now = 1085.0
        transport = Transport(credentials)
        for _ in range(5):
            await transport.request("GET", "/")
        await until(lambda: len(life.processes()) == 2)
        await transport.close()
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer one"}
    assert len(life.processes()) == 2, "one plugin for all"
    assert credentials._renewal is not None
    credentials._renewal.cancel()
    await life.all_gone()


async def test_a_plugin_that_hangs_is_killed_with_its_children_and_reaped_and_tried_again(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "TIMEOUT", 0.3)
    credentials = await life.loaded()
    life.hangs()
    life.now = 1085.0
    with capture_logs() as logs:
        assert await credentials.authorization() == "Bearer one"
        await until(lambda: bool(logs))
        await life.all_gone()
    assert [line["event"] for line in logs] == ["credentials not renewed"]
    plugin(life.folder, credential(100).replace('"one"', '"two"'))
    await credentials.authorization()
    assert credentials._renewal is not None
    assert credentials._renewal.done(), "not before some seconds have passed"
    life.now = 1091.0
    assert await credentials.authorization() == "Bearer one"
    await credentials._renewal
    assert await credentials.authorization() == "Bearer two"


async def test_only_a_token_that_has_expired_is_waited_for(life: Life) -> None:
    credentials = await life.loaded()
    plugin(life.folder, credential(100).replace('"one"', '"two"'))
    life.now = 1101.0
    assert await credentials.authorization() == "Bearer two"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param('echo "no $SECRET" >&2; exit 3', r"process returned 3\. no \*\*\*", id="env in its errors"),
        pytest.param('printf "%s" "$SECRET"', "not JSON", id="output that is no JSON"),
        pytest.param("echo '[]'", "no status", id="other JSON"),
        pytest.param(
            'echo "{\\"apiVersion\\": \\"$SECRET\\", \\"status\\": {}}"', "not of client.auth", id="another version"
        ),
        pytest.param(SOON, "can't be used", id="a time that is none"),
        pytest.param("head -c 3000000 /dev/zero", "not JSON", id="endless output"),
    ],
)  # fmt: skip
async def test_a_plugin_that_fails_is_reported_without_secrets(
    tmp_path: Path, script: str, message: str
) -> None:
    user: Any = plugin(tmp_path, script)
    user["exec"]["env"] = [{"name": "SECRET", "value": SECRET}, {"name": "REGION", "value": "eu"}]
    with pytest.raises(ConfigError, match=message) as caught, capture_logs() as logs:
        await Credentials.load(str(kubeconfig(tmp_path, NOWHERE, user)))
    assert SECRET not in f"{caught.value} {logs}"


# --- passwords in URLs ---
async def everything_said(path: Path) -> str:
    """What is said of a server that can't be reached."""
    try:
        credentials = await Credentials.load(str(path))
    except ConfigError as error:
        return str(error)
    transport = Transport(credentials)
    with pytest.raises(Unreachable) as caught:
        await transport.request("GET", "/")
    await transport.close()
    return transport.server + "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("user", [{"token": "t"}, {"username": "u", "password": "p"}, {}])
@pytest.mark.parametrize(
    "url",
    [
        "http://me:{}@127.0.0.1:1",
        "https://me:{}@127.0.0.1:1/a/path",
        "https://{}@127.0.0.1:1",
        "https://me:{}@host:no-port",
        "https://me:{}/x@127.0.0.1:1",
        "https://me:{}#x@127.0.0.1:1",
        "https://me:{}@[::1",
        "me:{}@127.0.0.1:1",
        "ftp://me:{}@127.0.0.1:1",
    ],
)
async def test_a_password_in_a_server_s_url_is_in_no_text(
    tmp_path: Path, url: str, user: dict[str, Any]
) -> None:
    assert SECRET not in await everything_said(kubeconfig(tmp_path, url.format(SECRET), user))


@pytest.mark.parametrize(
    "url", ["http://me:{}@127.0.0.1:1", "http://me:{}@127.0.0.1:no", "http://me:{}/x@127.0.0.1:1"]
)
async def test_a_password_in_a_proxy_s_url_is_in_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    named = kubeconfig(tmp_path, "https://192.0.2.1", cluster={"proxy-url": url.format(SECRET)})
    assert SECRET not in await everything_said(named)
    monkeypatch.setenv("https_proxy", url.format(SECRET))
    monkeypatch.delenv("no_proxy", raising=False)
    assert SECRET not in await everything_said(kubeconfig(tmp_path, "https://192.0.2.1"))


async def test_a_proxy_that_refuses_is_reported_without_its_password_and_has_received_it(
    tmp_path: Path,
) -> None:
    received = bytearray()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://me:{SECRET}@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    text = await everything_said(kubeconfig(tmp_path, "https://192.0.2.1", cluster={"proxy-url": url}))
    proxy.close()
    await proxy.wait_closed()
    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert SECRET not in text
    assert basic not in text
    assert f"Proxy-Authorization: {basic}" in received.decode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, "Basic " + base64.b64encode(b"me:p@ss").decode()),
        ({"token": "t"}, "Bearer t"),
    ],
)  # fmt: skip
async def test_a_password_in_the_url_is_sent_as_kubectl_does(
    tmp_path: Path, user: dict[str, Any], header: str
) -> None:
    server = FakeServer(always({}))
    async with server.running():
        path = kubeconfig(tmp_path, server.url.replace("//", "//me:p%40ss@"), user or {"as": "x"})
        credentials = await Credentials.load(str(path))
        transport = Transport(credentials)
        await transport.request("GET", "/")
        await transport.close()
    assert server.headers[0]["Authorization"] == header


@given(st.text("ab:@/?#%[]\\é ", max_size=12))
def test_whatever_a_password_is_no_address_has_it(password: str) -> None:
    for url in (f"https://me:{SECRET}{password}@host:1/p", f"https://me:{password}{SECRET}@host"):
        try:
            address = address_of(url, "the server")
        except ConfigError as error:
            text = str(error)
        else:
            text = address.url
        assert SECRET not in text
