"""Long answers: as they come, in what pieces, and how they end; with both event loops."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hvpa.kube import http
from hvpa.kube.answers import Answer, Lost, Malformed
from hvpa.kube.http import Connections
from hvpa.kube.streams import MOST_UNREAD, Stream
from tests.unit.kube.fake_server import LONG, until
from tests.unit.kube.talk import Server
from tests.unit.kube.virtual import play

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
GONE = float("inf")
"""In place of a pause: until the client has gone."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is there within milliseconds, but for a machine that does many other things."""
    monkeypatch.setattr(http, "CONNECT_TIMEOUT", LONG)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def saying(*pieces: bytes | float, abort: bool = False) -> Server:
    """Each connection has one request, which is answered by these pieces, with pauses (seconds) between them, and is
    closed then, or cut off."""
    server = Server()

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        for piece in pieces:
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            elif piece == GONE:
                await reader.read()
            else:
                await asyncio.sleep(piece)
        if abort:
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, bytes([1] + [0] * 7)
            )
            writer.transport.abort()
        else:
            writer.close()
            await writer.wait_closed()

    server.talk = conversation
    return server


async def opened(client: Connections, silence: float = LONG) -> Stream:
    stream = await client.open("/watch", silence)
    assert isinstance(stream, Stream)
    return stream


async def heard(server: Server, silence: float = LONG) -> bytes:
    """The whole body; raises what it ends with."""
    async with server.running(), server.client() as client:
        stream = await opened(client, silence)
        try:
            return b"".join([piece async for piece in stream.pieces()])
        finally:
            await stream.end()


async def test_a_body_is_handed_out_as_it_comes() -> None:
    server, go_on = Server(), asyncio.Event()

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.read(reader)
        writer.write(HEAD + chunk(b"one"))
        await go_on.wait()
        writer.write(chunk(b"two") + END)
        await reader.read()

    server.talk = conversation
    async with server.running(), server.client() as client:
        stream = await opened(client)
        pieces = stream.pieces()
        assert await anext(pieces) == b"one"
        go_on.set()
        assert [piece async for piece in pieces] == [b"two"]
        await stream.end()
    assert server.heads == [["GET /watch HTTP/1.1", "Host: here"]]


@pytest.mark.parametrize("at", range(len(HEAD + chunk(b"one") + chunk(b"two") + END)))
async def test_it_does_not_matter_where_the_bytes_are_split(at: int) -> None:
    answer = HEAD + chunk(b"one") + chunk(b"two") + END
    assert await heard(saying(answer[:at], 0.001, answer[at:])) == b"onetwo"


@pytest.mark.parametrize(
    "end", [b"", chunk(b"two")[:-3], b"z"], ids=["no last chunk", "in mid-chunk", "no chunk"]
)
@pytest.mark.parametrize("abort", [False, True], ids=["closed", "cut"])
async def test_one_that_does_not_end_as_it_should_raises_after_what_came(end: bytes, abort: bool) -> None:
    server = saying(HEAD + chunk(b"one"), 0.01, end, 0.01, abort=abort)
    async with server.running(), server.client() as client:
        stream, got = await opened(client), bytearray()

        async def take() -> None:
            async for piece in stream.pieces():
                got.extend(piece)

        with pytest.raises((Lost, Malformed)):
            await take()
        assert bytes(got) in (b"one", b"onetw")
        await stream.end()


async def test_a_body_may_end_with_its_connection() -> None:
    assert await heard(saying(b"HTTP/1.1 200 OK\r\n\r\none", 0.01, b"two")) == b"onetwo"


async def test_a_body_that_is_there_at_once() -> None:
    assert await heard(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")) == b"one"


async def test_what_is_no_success_is_a_whole_answer() -> None:
    gone = b"HTTP/1.1 410 Gone\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\n"
    server = saying(gone + b"so", 0.01, b"rr")
    async with server.running(), server.client() as client:
        assert await client.open("/watch", LONG) == Answer(410, b"sorr", "3")


@pytest.mark.parametrize("said", [b"", b"SSH-2.0\r\n"], ids=["nothing", "something else"])
async def test_no_answer_at_all(said: bytes) -> None:
    server = saying(said)
    async with server.running(), server.client() as client:
        with pytest.raises((Lost, Malformed)):
            await client.open("/watch", LONG)


@pytest.mark.parametrize("said", [b"", HEAD + chunk(b"one")], ids=["before the head", "in the body"])
async def test_silence_ends_it(said: bytes) -> None:
    with pytest.raises(TimeoutError):
        await heard(saying(said, GONE), silence=0.05)


def test_little_by_little_is_no_silence() -> None:
    """In virtual time: a pause in which the machine does something else would be a silence."""

    async def story() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        client = Connections(("127.0.0.1", 1), {"Host": "here"})
        _, stream = await loop.create_connection(lambda: Stream(client, silence=30.0), sock=ours)
        opening = asyncio.create_task(stream.open(b"GET / HTTP/1.1\r\n\r\n"))
        theirs.send(HEAD)
        assert await opening is stream
        got, pieces = b"", stream.pieces()
        for _ in range(10):
            await asyncio.sleep(29.0)
            theirs.send(chunk(b"x"))
            got += await anext(pieces)
        heard_at = loop.time()
        with pytest.raises(TimeoutError):
            await anext(pieces)
        theirs.close()
        return got, loop.time() - heard_at

    got, silence = play(story())
    assert got == b"x" * 10
    assert silence == pytest.approx(30.0)


async def test_who_takes_nothing_makes_the_server_wait() -> None:
    server, sent = Server(), 0
    piece = chunk(b"x" * 2**16)

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await server.read(reader)
        writer.write(HEAD)
        for _ in range(1024):  # 64 MiB: more than what sockets hold
            writer.write(piece)
            await writer.drain()
            sent += 1
        writer.write(END)
        await reader.read()  # until the client closes: what is written and not sent is dropped at the end

    server.talk = conversation
    async with server.running(), server.client() as client:
        stream = await opened(client)
        await until(lambda: sent > MOST_UNREAD // 2**16)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 1024
        taken = 0
        async for part in stream.pieces():
            taken += len(part)
        assert taken == 1024 * 2**16
        await stream.end()


async def test_closing_the_client_ends_streams_and_who_waits_for_them() -> None:
    server = saying(HEAD + chunk(b"one"), GONE)
    async with server.running(), server.client() as client:
        pieces = (await opened(client)).pieces()
        assert await anext(pieces) == b"one"
        waiting = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Lost):
            await waiting


async def test_one_that_nobody_waits_for_any_more_is_closed() -> None:
    server = saying(b"", GONE)
    async with server.running(), server.client() as client:
        waiting = asyncio.ensure_future(client.open("/watch", LONG))
        await until(lambda: bool(server.heads))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: server.open == 0)
