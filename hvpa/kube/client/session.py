"""Connections to the API server, by aiohttp: one way for all requests, also through a proxy (docs/decisions/0016)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import TooLarge
from hvpa.kube.client.library import Configuration

CONNECT_TIMEOUT = 5.0
"""Seconds until a connection is there, TLS included."""
READ_BUFFER = 2**18
"""Bytes that a connection reads ahead (aiohttp's default: a quarter of it; kubernetes-asyncio's: eight times it)."""
DEAD_AFTER = 15
"""Seconds after which a connection ends whose peer acknowledges nothing: as long as a lease lasts by default."""
_SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", DEAD_AFTER),  # an idle peer is probed after so many seconds,
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),  # again after so many,
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),  # and is gone after so many probes
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 1000 * DEAD_AFTER),  # of what was sent; in milliseconds
)
"""Level, name and value of what lets the system notice a peer that is gone without a word, also that of a watch, which
may rightly be silent for a minute. Where a system lacks one of them, only that is lost."""

BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
"""What is raised for a connection or a response that is not as it should be."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body, serialised, and its media type."""

    data: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `timeout` in seconds: of the whole, or of silence where the response is a stream. `most`: bytes that
    the response's body may have."""

    method: str
    path: str
    query: Mapping[str, str] | None
    body: Body | None
    timeout: float
    verb: str
    most: int

    @property
    def target(self) -> str:
        """Path and query, percent-encoded."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Response(NamedTuple):
    """A whole response; `retry_after` is the header of this name."""

    status: int
    body: bytes
    retry_after: str | None


@dataclass(frozen=True, slots=True)
class Server:
    """What connections to the API server are made of, as of one generation of the credentials."""

    generation: int
    url: str
    tls: ssl.SSLContext
    tls_name: str | None
    """The name that the server's certificate must be for, where that is not the host of `url`."""
    proxy: str | None

    @classmethod
    def of(cls, credentials: Credentials) -> Server:
        """The server of these credentials. Raises OSError or ValueError for certificates that can't be loaded."""
        configuration = credentials.configuration
        url = str(configuration.host).rstrip("/")
        proxy = configuration.proxy or _proxy_of_environment(url)
        name = configuration.tls_server_name
        return cls(credentials.generation, url, _tls(configuration), name or None, proxy)


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # cluster CAs often lack what it asks for
    return context


class _Connector(aiohttp.TCPConnector):
    """aiohttp's, which would take bytes that nobody requested, sent over a kept connection (as by a load balancer that
    is about to close it), for the response to the next request."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection that is new, or of which nothing is left to be read."""
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class Session:
    """Connections to one server that are kept for the next request. `active` requests are under way; once the session
    is `retired`, no other request begins, and it is closed when the last one has ended."""

    def __init__(self, server: Server, headers: Mapping[str, str]) -> None:
        """`headers` are sent with every request."""
        self.server = server
        self.active = 0
        self.retired = False
        # `trust_env` stays off: with it, aiohttp looks for proxies and .netrc in a thread before every request, and
        # refuses a token for a host that .netrc names.
        self._client = aiohttp.ClientSession(
            connector=_Connector(ssl=server.tls, limit=0, socket_factory=_new_socket),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
        )

    @property
    def closed(self) -> bool:
        """Whether all connections have been closed."""
        return self._client.closed

    async def request(self, call: Call, authorization: str | None) -> Response:
        """The whole response, whatever its status. Raises what is in BROKEN, and TooLarge."""
        limits = aiohttp.ClientTimeout(total=call.timeout, sock_connect=CONNECT_TIMEOUT)
        return await _whole(await self._send(call, authorization, limits), call.most)

    async def stream(self, call: Call, authorization: str | None) -> aiohttp.ClientResponse | Response:
        """A success whose body is still to come, or the whole of another response. Raises as `request`."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=call.timeout)
        response = await self._send(call, authorization, limits)
        return response if 200 <= response.status < 300 else await _whole(response, call.most)

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """For the time of a request."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            if self.retired:
                await self.retire()

    async def retire(self) -> None:
        """Begin no more requests over these connections."""
        self.retired = True
        if self.active == 0:
            await self.close()

    async def _send(
        self, call: Call, authorization: str | None, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {}
        if call.body is not None:
            headers["Content-Type"] = call.body.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self._client.request(
            call.method,
            URL(self.server.url + call.target, encoded=True),
            data=None if call.body is None else call.body.data,
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            proxy=self.server.proxy,
            server_hostname=self.server.tls_name,
        )

    async def close(self) -> None:
        """Close all connections; requests under way are cut."""
        await self._client.close()


async def _whole(response: aiohttp.ClientResponse, most: int) -> Response:
    pieces, size = [], 0
    try:
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > most:
                raise TooLarge(response.status, most)
            pieces.append(piece)
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return Response(response.status, body, response.headers.get("Retry-After"))
    finally:
        response.release()  # closes the connection where something of the body is still to come


def _new_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    for level, name, value in _SOCKET_OPTIONS:
        with suppress(AttributeError, OSError):
            made.setsockopt(level, getattr(socket, name), value)
    return made


def _proxy_of_environment(url: str) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say about a server."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)
