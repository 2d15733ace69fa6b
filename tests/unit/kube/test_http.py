"""Requests over connections that are kept, closed by either side, lost, cut, or silent; with both event loops."""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
from pathlib import Path

import pytest

from hvpa.kube import http
from hvpa.kube.answers import Answer, Lost, Malformed
from hvpa.kube.http import Connections
from tests.e2e.world.pki import Authority
from tests.unit.kube.fake_server import LONG, reserved_port, until
from tests.unit.kube.talk import OK, Server

CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
UNTIL_END = b"HTTP/1.1 200 OK\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
FINE = Answer(200, b"ok", None)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is there within milliseconds, but for a machine that does many other things."""
    monkeypatch.setattr(http, "CONNECT_TIMEOUT", LONG)


def talk(*answers: bytes | None) -> Server:
    """Each connection has one request, whose answer is the next of these, and is closed then. None: no byte."""
    left = list(answers)
    server = Server()

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(left.pop(0) or b"")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server.talk = conversation
    return server


def reused_once(answer: bytes | None) -> Server:
    """The first connection answers one request well, and the second one so; later connections answer all."""
    server = Server()

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server.connections > 1:
            await server.answer_all(reader, writer)
        await server.read(reader)
        writer.write(OK)
        await server.read(reader)
        writer.write(answer or b"")
        await writer.drain()

    server.talk = conversation
    return server


async def test_what_is_sent() -> None:
    server = Server()
    async with server.running(), server.client() as client:
        assert await client.ask("GET", "/x?a=b", LONG) == FINE
        await client.ask("PATCH", "/x", LONG, b'{"k":1}', "application/json", "Bearer secret")
        await client.ask("POST", "/x", LONG)
        await client.ask("DELETE", "/x", LONG)
    assert server.heads == [
        ["GET /x?a=b HTTP/1.1", "Host: here"],
        [
            "PATCH /x HTTP/1.1",
            "Host: here",
            "Authorization: Bearer secret",
            "Content-Type: application/json",
            "Content-Length: 7",
        ],
        ["POST /x HTTP/1.1", "Host: here", "Content-Length: 0"],
        ["DELETE /x HTTP/1.1", "Host: here"],
    ]
    assert server.bodies == [b"", b'{"k":1}', b"", b""]
    assert server.connections == 1


@pytest.mark.parametrize(
    ("target", "content_type", "authorization"),
    [
        ("/a b", None, None),
        ("/a\r\nX: y", None, None),
        ("/ä", None, None),
        ("/", "text\r\nX: y", None),
        ("/", None, "Bearer a\nX: y"),
        ("/", None, "Bearer a\0"),
        ("/", None, "Bearer ä"),
    ],
)
async def test_nothing_can_be_put_into_the_head(
    target: str, content_type: str | None, authorization: str | None
) -> None:
    server = Server()
    async with server.running(), server.client() as client:
        with pytest.raises(Malformed) as caught:
            await client.ask("GET", target, LONG, b"", content_type, authorization)
    assert server.connections == 0
    assert "X: y" not in str(caught.value)
    with pytest.raises(Malformed):
        Connections(("127.0.0.1", 1), {"User-Agent": "a\r\nb"})


@pytest.mark.parametrize("answer", [OK, CHUNKS, UNTIL_END, LAST])
async def test_an_answer_that_comes_byte_by_byte(answer: bytes) -> None:
    server = Server()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        for at in range(len(answer)):
            writer.write(answer[at : at + 1])
            await asyncio.sleep(0)

    server.talk = slowly
    async with server.running(), server.client() as client:
        assert await client.ask("GET", "/", LONG) == FINE


@pytest.mark.parametrize("answer", [OK, CHUNKS])
async def test_a_connection_that_is_lost_in_mid_answer_is_an_error(answer: bytes) -> None:
    server = talk(*(answer[:at] for at in range(len(answer))))
    async with server.running(), server.client() as client:
        for _ in range(len(answer)):
            with pytest.raises(Lost):
                await client.ask("GET", "/", LONG)
    assert server.connections == len(answer)  # a new connection that breaks is no reason to try again


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (OK, 1),
        (CHUNKS, 1),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", 1),
        (LAST, 3),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3),
        (OK + b"garbage", 3),
        (OK + OK, 3),
    ],
)
async def test_a_connection_is_used_again_where_it_can_be(answer: bytes, connections: int) -> None:
    server = Server(answer=answer)
    async with server.running(), server.client() as client:
        for _ in range(3):
            assert (await client.ask("PATCH", "/", LONG, b"{}")).body in (b"ok", b"no")
        assert server.connections == connections
        await until(lambda: server.open == (1 if connections == 1 else 0))


async def test_bytes_on_an_idle_connection_end_it() -> None:
    server = Server()
    chatter = asyncio.Event()

    async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(OK)
        await chatter.wait()
        writer.write(OK.replace(b"ok", b"no"))
        await reader.read()

    server.talk = talkative
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        chatter.set()
        await until(lambda: server.connections == 1 and server.open == 0)
        assert await client.ask("PATCH", "/", LONG) == FINE
        assert server.connections == 2


async def test_an_answer_to_head_has_no_body() -> None:
    server = Server(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    async with server.running(), server.client() as client:
        assert (await client.ask("HEAD", "/", LONG)).body == b""


async def test_a_large_answer_is_whole() -> None:
    body = os.urandom(5_000_000)
    server = Server(answer=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    async with server.running(), server.client() as client:
        assert (await client.ask("PUT", "/", LONG, body)).body == body
    assert server.bodies == [body]


async def test_requests_at_once_have_connections_of_their_own_and_the_last_one_is_used_first() -> None:
    server = Server()
    async with server.running(), server.client() as client:
        await asyncio.gather(*(client.ask("GET", "/", LONG) for _ in range(4)))
        assert (server.connections, len(client._idle)) == (4, 4)
        last = client._idle[-1]
        await client.ask("GET", "/", LONG)
        assert client._idle[-1] is last


async def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_IDLE", 2)
    server = Server()
    async with server.running(), server.client() as client:
        await asyncio.gather(*(client.ask("GET", "/", LONG) for _ in range(4)))
        await until(lambda: server.open == 2)


async def test_idle_connections_are_closed_after_a_while() -> None:
    server = Server()
    async with server.running(), server.client(keep=0.05) as client:
        await asyncio.gather(client.ask("GET", "/", LONG), client.ask("GET", "/", LONG))
        await until(lambda: server.open == 0)
        assert (client._idle, client._timer) == ([], None)
        assert await client.ask("PATCH", "/", LONG) == FINE


async def test_one_that_was_used_meanwhile_is_closed_later() -> None:
    server, keep = Server(), 600.0
    async with server.running(), server.client(keep=keep) as client:
        await asyncio.gather(client.ask("GET", "/", LONG), client.ask("GET", "/", LONG))
        for one in client._idle:
            one.idle_since -= keep  # so much later
        await client.ask("GET", "/", LONG)
        _, used = client._idle
        assert client._timer is not None
        client._timer.cancel()
        client._sweep()  # what the timer does
        assert client._idle == [used]
        assert client._timer.when() == pytest.approx(used.idle_since + keep, abs=keep / 2)
        await until(lambda: server.open == 1)


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    server = talk(OK, OK)
    async with server.running(), server.client() as client:
        await client.ask("PATCH", "/", LONG)
        await until(lambda: not client._idle)
        assert await client.ask("PATCH", "/", LONG) == FINE


async def test_a_kept_connection_whose_end_is_being_told_is_not_used() -> None:
    server = Server()
    async with server.running(), server.client() as client:
        await client.ask("PATCH", "/", LONG)
        client._idle[-1].eof_received()  # what the event loop says before `connection_lost`
        assert await client.ask("PATCH", "/", LONG) == FINE
        assert server.connections == 2
        await until(lambda: server.open == 1)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_what_may_be_sent_twice_is_sent_again_where_a_kept_connection_ends(method: str) -> None:
    server = reused_once(None)
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        assert await client.ask(method, "/again", LONG, b"{}") == FINE
    assert [head[0].split()[1] for head in server.heads] == ["/", "/again", "/again"]
    assert server.bodies[1:] == [b"{}", b"{}"]


@pytest.mark.parametrize("method", ["PATCH", "POST"])
async def test_what_may_not_be_sent_twice_is_not(method: str) -> None:
    server = reused_once(None)
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        with pytest.raises(Lost):
            await client.ask(method, "/again", LONG, b"{}")
    assert len(server.heads) == 2


@pytest.mark.parametrize("begun", [OK[:1], OK[:-1], b"HTTP/1.1 103 Early Hints\r\n\r\n"])
async def test_once_an_answer_has_begun_nothing_is_sent_again(begun: bytes) -> None:
    server = reused_once(begun)
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        with pytest.raises(Lost):
            await client.ask("GET", "/again", LONG)
    assert len(server.heads) == 2


async def test_nothing_is_sent_a_third_time() -> None:
    server = Server()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server.connections == 1:
            await server.read(reader)
            writer.write(OK)
        await server.read(reader)

    server.talk = once
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        with pytest.raises(Lost):
            await client.ask("GET", "/", LONG)
    assert (len(server.heads), server.connections) == (3, 2)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_a_caller_that_is_cancelled_leaves_no_answer_for_the_next_one() -> None:
    server = Server()
    go_on = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        if server.connections == 1:
            await go_on.wait()
            writer.write(OK.replace(b"ok", b"no"))
        else:
            writer.write(OK)
        await reader.read()

    server.talk = late
    async with server.running(), server.client() as client:
        asked = asyncio.ensure_future(client.ask("PATCH", "/", LONG))
        await until(lambda: len(server.heads) == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        go_on.set()
        assert await client.ask("PATCH", "/", LONG) == FINE
        assert server.connections == 2


@pytest.mark.parametrize("begun", [b"", OK[:-1]])
async def test_no_answer_in_time(begun: bytes) -> None:
    server = Server()

    async def stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(OK)
        await server.read(reader)
        writer.write(begun)
        await reader.read()

    server.talk = stuck
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)  # or there might be no connection yet when the time is over
        with pytest.raises(TimeoutError):
            await client.ask("GET", "/", 0.05)
        await until(lambda: len(server.heads) == 2 and server.open == 0)
    assert (len(server.heads), server.connections) == (2, 1)


async def test_the_limit_is_for_all_tries_together(monkeypatch: pytest.MonkeyPatch) -> None:
    server = reused_once(None)
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)

        async def never(*anything: object, **options: object) -> None:
            await asyncio.sleep(60)

        monkeypatch.setattr(http, "start_connection", never)
        with pytest.raises(TimeoutError):
            await client.ask("GET", "/", 0.05)


async def test_a_server_that_does_not_answer_tls_is_given_up(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "CONNECT_TIMEOUT", 0.05)
    server = Server(silent)
    tls = ssl.create_default_context(cafile=authority.certificate)
    async with server.running(), server.client(tls) as client:
        with pytest.raises(TimeoutError):
            await client.ask("GET", "/", 60.0)


async def test_no_server() -> None:
    with reserved_port() as port:
        client = Connections(("127.0.0.1", port), {})
        with pytest.raises(OSError, match=rf"can't connect to 127.0.0.1:{port}: .*111"):
            await client.ask("GET", "/", LONG)
    name = ".".join(["server"] * 50)  # too long to ask a name server for, who may be slow
    client = Connections((name, 1), {})
    with pytest.raises(OSError, match=rf"can't connect to {name}:1: .+"):
        await client.ask("GET", "/", LONG)


async def test_closing_cuts_what_is_under_way_and_nothing_is_asked_afterwards() -> None:
    server = reused_once(None)

    async def held(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(OK)
        await reader.read()

    server.talk = held
    async with server.running(), server.client() as client:
        await client.ask("GET", "/", LONG)
        asked = asyncio.ensure_future(client.ask("GET", "/", LONG))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Lost):
            await asked
        assert client._open == set()
        with pytest.raises(Lost):
            await client.ask("GET", "/", LONG)
        await until(lambda: server.open == 0)


async def test_closing_ends_a_connection_that_comes_about_afterwards() -> None:
    server = Server()
    async with server.running(), server.client() as client:
        asked = asyncio.ensure_future(client.ask("GET", "/", LONG))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Lost):
            await asked
        await until(lambda: server.open == 0)


async def test_what_comes_before_the_caller_has_its_answer_is_nobody_s_either() -> None:
    server = Server(silent)
    async with server.running(), server.client() as client:
        asked = asyncio.ensure_future(client.ask("GET", "/", LONG))
        asking: list[http._Connection] = []

        def is_asking() -> bool:
            asking[:] = [one for one in client._open if isinstance(one, http._Connection) and one._waiting]
            return bool(asking)

        await until(is_asking)
        (connection,) = asking
        connection.data_received(OK)
        connection.data_received(b"H")
        assert await asked == FINE
        assert client._idle == []
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("length", ["Content-Length: 2\r\n", ""])
async def test_an_answer_in_a_coding_that_was_not_asked_for(length: str) -> None:
    server = talk(f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n{length}\r\nok".encode())
    async with server.running(), server.client() as client:
        with pytest.raises(Malformed, match="gzip"):
            await client.ask("GET", "/", LONG)


async def test_an_answer_that_is_not_http() -> None:
    server = Server(answer=b"220 smtp.example.org ESMTP\r\n")
    async with server.running(), server.client() as client:
        with pytest.raises(Malformed):
            await client.ask("GET", "/", LONG)
        await until(lambda: server.open == 0)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_no_descriptor_is_left(authority: Authority) -> None:
    pair = authority.server("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    trust = ssl.create_default_context(cafile=authority.certificate)
    server = Server(answer=OK)
    async with server.running(tls):
        before = descriptors()
        async with server.client(trust) as client:
            for _ in range(3):
                assert await client.ask("GET", "/", LONG) == FINE
            for delay in (0.0, 0.0005, 0.002, 0.004):
                asked = [asyncio.ensure_future(client.ask("GET", "/", LONG)) for _ in range(5)]
                await asyncio.sleep(delay)
                for one in asked:
                    one.cancel()
                await asyncio.gather(*asked, return_exceptions=True)
        gc.collect()
        await until(lambda: descriptors() <= before)


def serving(authority: Authority, clients: Path | None = None) -> ssl.SSLContext:
    """A server's side of TLS; with `clients`, it asks for a certificate of that authority."""
    pair = authority.server("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
    tls.load_cert_chain(pair.certificate, pair.key)
    if clients is not None:
        tls.verify_mode = ssl.CERT_REQUIRED
    return tls


async def test_tls_with_a_client_certificate(authority: Authority) -> None:
    server = Server()
    trust = ssl.create_default_context(cafile=authority.certificate)
    async with server.running(serving(authority, authority.certificate)):
        async with server.client(trust) as client:
            with pytest.raises(OSError):  # noqa: PT011 (the text is OpenSSL's, and depends on its version)
                await client.ask("GET", "/", LONG)
        user = authority.client("user")
        trust.load_cert_chain(user.certificate, user.key)
        async with server.client(trust) as client:
            assert await client.ask("GET", "/", LONG) == FINE
            assert await client.ask("PATCH", "/", LONG) == FINE
    assert len(server.heads) == 2


async def test_a_certificate_must_be_the_authority_s_and_the_name_s(
    authority: Authority, tmp_path: Path
) -> None:
    server = Server()
    trust = ssl.create_default_context(cafile=authority.certificate)
    stranger = ssl.create_default_context(cafile=Authority(tmp_path / "other").certificate)
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    async with server.running(serving(authority)):
        for tls, name in ((stranger, None), (trust, "somebody.else")):
            async with server.client(tls, name) as client:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await client.ask("GET", "/", LONG)
        for tls, name in ((trust, None), (trust, "kubernetes.default.svc"), (anybody, "somebody.else")):
            async with server.client(tls, name) as client:
                assert await client.ask("GET", "/", LONG) == FINE
