"""Requests to the API server: bytes in, bytes out, by aiohttp, with kubernetes-asyncio's authentication.

All requests are sent the same way, also through a proxy (docs/decisions/0016). A request is repeated here only after
credentials were renewed (`_sent`). `hvpa/kube/cluster.py` (`_send`) sends a write once more if it got no response.
The library's generated models are bypassed on purpose: bodies are decoded once, into narrow structs.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from hvpa.kube.client.address import Address, address_of
from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ConfigError, TooLarge, Unreachable, api_error, in_one_line
from hvpa.kube.client.library import Configuration
from hvpa.kube.client.paths import valid_path

REQUEST_TIMEOUT = 10.0
"""Timeout of a whole request in seconds, except for lists."""
CONNECT_TIMEOUT = 5.0
"""Timeout to connect in seconds, TLS included."""
MOST_BYTES = 18 * 2**20
"""Maximum bytes of a response's body or a watch event.

This is twice 9 MiB; an object of 1.5 MiB (etcd's limit of a request) takes 9 MiB if JSON writes each character with
six bytes.
"""
READ_BUFFER = 2**18
"""Bytes that a connection reads ahead (aiohttp's default: a quarter of it; kubernetes-asyncio's: eight times it)."""
DEAD_AFTER = 15
"""Seconds after which a connection ends if its peer acknowledges nothing: the default duration of a lease."""
_SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", DEAD_AFTER),  # seconds of idle time before the first probe,
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),  # seconds between probes,
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),  # probes without response until the connection ends
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 1000 * DEAD_AFTER),  # for sent data; in milliseconds
)
"""Socket options that detect a peer that disappeared silently, even during a watch, which may be silent for a minute.

Each entry is level, name and value. A system that lacks an option only loses that check.
"""
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
"""Exceptions of a broken connection or response.

A request that can't be built is its caller's fault instead: a ValueError, raised before any connection (`_target`).
"""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

OnRequest = Callable[[str, str], None]
"""Receives verb and HTTP status code (or "error") of each request."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request's serialised body and its media type."""

    data: bytes
    content_type: str = JSON


def deletion(uid: str, resource_version: str = "") -> Body:
    """The body of a DELETE with preconditions: only this object in this version, as far as uid and version are
    given."""
    named = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {name: value for name, value in named.items() if value}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    return Body(msgspec.json.encode(options))


@dataclass(frozen=True, slots=True)
class _Call:
    """A request."""

    method: str
    target: str
    """Path and query, escaped."""
    body: Body | None
    timeout: float
    """Seconds: for the whole request, or of silence for a stream."""
    verb: str
    most: int = MOST_BYTES
    """Maximum bytes of the response's body."""
    is_stream: bool = False


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """The part of the URL after the server's address. Raises ValueError for a path that no request can have."""
    return f"{valid_path(path)}?{urlencode(query)}" if query else valid_path(path)


class _Response(NamedTuple):
    """A response and its complete body; the body of a successful stream is still to come."""

    http: aiohttp.ClientResponse
    body: bytes = b""


class Transport:
    """The connection to an API server. Safe for concurrent use within one event loop.

    If a request gets no response, or a stream breaks, all open connections may lead to a dead peer: later requests
    open new connections.
    """

    def __init__(
        self,
        credentials: Credentials,
        on_request: OnRequest = lambda verb, code: None,
        user_agent: str = "hvpa",
    ) -> None:
        self._credentials = credentials
        self._on_request = on_request
        self._headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._server: _Server | None = None
        self._session: _Session | None = None
        """The session of the next request; streams have their own sessions."""
        self._open: set[_Session] = set()

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._credentials.configuration.host)

    async def close(self) -> None:
        """Close all connections; requests in flight are cut."""
        self._session = None
        for session in self._open:
            await session.client.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = REQUEST_TIMEOUT,
        verb: str = "",
    ) -> bytes:
        """The body of the response.

        `timeout` is in seconds; `verb` is the Kubernetes verb for the metrics (default: the method in lower case).
        Raises ApiError for any status except 2xx; Unreachable without a response or with more than MOST_BYTES;
        ValueError if the request is invalid, which affects no other request.
        """
        async with self._sent(
            _Call(method, _target(path, query), body, timeout, verb or method.lower())
        ) as response:
            return response.body

    async def page(self, path: str, query: Mapping[str, str], timeout: float, most: int) -> bytes:
        """The body of a page of a list. Raises like `request`, and TooLarge if it has more than `most` bytes."""
        call = _Call("GET", _target(path, query), None, timeout, "list", min(most, MOST_BYTES))
        async with self._sent(call) as response:
            return response.body

    async def stream(
        self, path: str, query: Mapping[str, str], read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch as they arrive, until the server ends it. Close it with `aclosing`.

        Raises like `request`, and Unreachable if nothing arrived for `read_timeout` seconds or the connection broke.
        """
        call = _Call("GET", _target(path, query), None, read_timeout, "watch", is_stream=True)
        async with self._sent(call) as response:
            try:
                async for line in _lines(response.http.content.iter_any()):
                    yield line
            except (*_BROKEN, ValueError) as error:
                await self._retire(self._session)
                raise Unreachable(in_one_line(error)) from error
            finally:
                response.http.close()

    @asynccontextmanager
    async def _sent(self, call: _Call) -> AsyncIterator[_Response]:
        """The response, if it is a success. On a 401, or a certificate that doesn't verify, credentials are renewed
        once, and the request is sent again."""
        for renew in (True, False):
            session, authorization = await self._prepare(call.is_stream)
            async with session.in_use():
                response = await self._try(session, authorization, call, renew)
                if response is not None:
                    yield response
                    return

    async def _try(
        self, session: _Session, authorization: str | None, call: _Call, renew: bool
    ) -> _Response | None:
        """A single attempt. With `renew`, returns None if the credentials were refused and new credentials are
        available."""
        try:
            response = await session.send(call, authorization)
        except TooLarge as error:
            self._on_request(call.verb, str(error.status))
            raise
        except _BROKEN as error:
            self._on_request(call.verb, "error")
            await self._retire(session)
            untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
            if untrusted and renew and await self._renew(authorization, session.server):
                return None
            raise Unreachable(in_one_line(error)) from error
        except ValueError as error:  # aiohttp refuses an address or a token; the connections are fine
            self._on_request(call.verb, "error")
            raise Unreachable(in_one_line(error)) from error
        status = response.http.status
        self._on_request(call.verb, str(status))
        if 200 <= status < 300:
            return response
        if status == 401 and renew and await self._renew(authorization, session.server):
            return None
        raise api_error(status, response.body, response.http.headers.get("Retry-After"))

    async def _prepare(self, is_stream: bool) -> tuple[_Session, str | None]:
        """A session with the current TLS identity, and the Authorization header.

        A stream has its own session with a new connection, which is closed at its end.
        """
        try:
            authorization = await self._credentials.authorization()
            if self._server is None or self._server.generation != self._credentials.generation:
                self._server = _Server.of(self._credentials)
                await self._retire(self._session)
            if not is_stream and self._session is not None:
                return self._session, authorization
            session = _Session(self._server, self._headers)
        except (ConfigError, OSError, ValueError) as error:  # certificates that can't be loaded
            raise Unreachable(in_one_line(error)) from error
        self._open = {opened for opened in self._open if not opened.client.closed} | {session}
        if is_stream:
            session.retired = True
        else:
            self._session = session
        return session, authorization

    async def _retire(self, session: _Session | None) -> None:
        """Start no more requests over the connections of this session."""
        if session is self._session:
            self._session = None
        if session is not None:
            await session.retire()

    async def _renew(self, authorization: str | None, server: _Server) -> bool:
        try:
            return await self._credentials.refused(authorization, server.generation)
        except ConfigError as error:
            raise Unreachable(
                f"credentials refused, and their renewal failed: {in_one_line(error)}"
            ) from error


# --- connections ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Server:
    """The parameters of connections to the API server, for a generation of the credentials."""

    generation: int
    url: str
    tls: ssl.SSLContext
    tls_name: str | None
    """The name that the server's certificate must have, if it differs from the host of `url`."""
    proxy: Address | None

    @classmethod
    def of(cls, credentials: Credentials) -> _Server:
        """The server of these credentials.

        Raises OSError or ValueError for certificates that can't be loaded, ConfigError for a proxy that can't be
        used.
        """
        configuration = credentials.configuration
        url = str(configuration.host).rstrip("/")
        if configuration.proxy:
            proxy: Address | None = Address(configuration.proxy, credentials.proxy_authorization)
        else:
            proxy = _proxy_of_environment(url)
        name = configuration.tls_server_name
        return cls(credentials.generation, url, _tls(configuration), name or None, proxy)


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # cluster CAs often don't meet it
    return context


def _proxy_of_environment(url: str) -> Address | None:
    """The proxy of a server by HTTPS_PROXY and NO_PROXY. Raises ConfigError."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None else address_of(proxy, "the proxy of the environment")


def _new_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    for level, name, value in _SOCKET_OPTIONS:
        with suppress(AttributeError, OSError):
            made.setsockopt(level, getattr(socket, name), value)
    return made


class _Connector(aiohttp.TCPConnector):
    """aiohttp's connector, without connections that have unread bytes.

    A load balancer that is about to close an idle connection may send unrequested bytes. aiohttp would take them for
    the response to the next request.
    """

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection that is new or has no unread bytes."""
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class _Session:
    """Connections to a server that are kept for the next request."""

    def __init__(self, server: _Server, headers: Mapping[str, str]) -> None:
        """`headers` are sent with every request."""
        self.server = server
        self.active = 0
        """Number of requests in flight."""
        self.retired = False
        """Once True, no other request begins, and the session is closed after its last request."""
        # `trust_env` stays off: with it, aiohttp looks for proxies and .netrc in a thread before every request, and
        # refuses a token for a host in .netrc.
        self.client = aiohttp.ClientSession(
            connector=_Connector(ssl=server.tls, limit=0, socket_factory=_new_socket),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
        )

    async def send(self, call: _Call, authorization: str | None) -> _Response:
        """The response, whatever its status. Raises the exceptions in _BROKEN, TooLarge, and ValueError if the
        server's address or the credentials are invalid in a request."""
        headers = {}
        if call.body is not None:
            headers["Content-Type"] = call.body.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        proxy, to_proxy = self.server.proxy, None
        if proxy is not None and proxy.basic is not None:
            to_proxy = {"Proxy-Authorization": proxy.basic}
            if self.server.url.startswith(
                "http://"
            ):  # without a tunnel: the request itself goes to the proxy
                headers |= to_proxy
        total, silence = (None, call.timeout) if call.is_stream else (call.timeout, None)
        response = await self.client.request(
            call.method,
            URL(f"{self.server.url}{call.target}", encoded=True),
            data=None if call.body is None else call.body.data,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_TIMEOUT, sock_read=silence),
            allow_redirects=False,
            proxy=None if proxy is None else proxy.url,
            proxy_headers=to_proxy,
            server_hostname=self.server.tls_name,
        )
        if call.is_stream and 200 <= response.status < 300:
            return _Response(response)
        return _Response(response, await _whole(response, call.most))

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Count a request as active during the block."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            if self.retired:
                await self.retire()

    async def retire(self) -> None:
        """Start no more requests over these connections."""
        self.retired = True
        if self.active == 0:
            await self.client.close()


async def _whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body. Raises TooLarge."""
    pieces, size = [], 0
    try:
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > most:
                raise TooLarge(response.status, most)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        response.release()  # closes the connection if part of the body is still to come


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split a body into lines of up to MOST_BYTES (aiohttp's own readline has a lower limit).

    A remainder without newline is an event that was cut off: the watch resumes before it.
    """
    begun = bytearray()
    async for piece in pieces:
        complete, newline, rest = piece.rpartition(b"\n")
        if newline:
            for line in bytes(begun + complete).split(b"\n"):
                if line:
                    yield line
            begun.clear()
        begun += rest
        if len(begun) > MOST_BYTES:
            raise Unreachable(f"a line of the response has more than {MOST_BYTES} bytes")
