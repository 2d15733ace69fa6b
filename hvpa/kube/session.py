"""One TLS identity's connections to the API server: by a client of our own (hvpa/kube/http.py), and through a proxy by
aiohttp, over kubernetes-asyncio's connector."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from hvpa.kube.answers import Answer
from hvpa.kube.config import Credentials
from hvpa.kube.http import CONNECT_TIMEOUT, Connections
from hvpa.kube.library import RESTClientObject
from hvpa.kube.streams import keep_alive

READ_BUFFER = 2**18
"""Bytes that a connection of aiohttp's reads ahead (its default: a quarter of it; the library's: eight times it)."""

BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
"""What is raised for a connection or an answer that is not as it should be."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body, serialised, and its media type."""

    data: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `timeout` in seconds: of the whole (`Session.ask`), or of silence (`Session.open`)."""

    method: str
    path: str
    query: Mapping[str, str] | None
    body: Body | None
    timeout: float
    verb: str

    @property
    def target(self) -> str:
        """Path and query, percent-encoded."""
        return f"{self.path}?{_encoded(tuple(self.query.items()))}" if self.query else self.path


@lru_cache
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Kept for the few that most requests have."""
    return urlencode(query)


class Long(Protocol):
    """An answer whose body is still to come."""

    @property
    def status(self) -> int:
        """Its status."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes. Raises what is in BROKEN."""
        ...

    def end(self) -> object:
        """Close the connection."""
        ...


class _Response:
    """aiohttp's."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        connection = response.connection
        keep_alive(None if connection is None else connection.transport)

    def pieces(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    def end(self) -> None:
        self._response.close()


class Session:
    """`active` requests are under way; closed when it was replaced (`retired`) and the last one is over.

    aiohttp's connector, with its TLS settings, is the library's. The library's session is not used: with `trust_env` it
    asks for proxies and .netrc in a thread before every request, and refuses a token for a host that .netrc names.
    """

    def __init__(self, credentials: Credentials, headers: Mapping[str, str]) -> None:
        """`headers` are sent with every request. Raises OSError or ValueError for certificates that can't be loaded."""
        configuration = credentials.configuration
        self.generation = credentials.generation
        self.base = str(configuration.host).rstrip("/")
        self.active = 0
        self.retired = False
        self._headers = headers
        address = URL(self.base)
        self._prefix = address.raw_path.rstrip("/")
        self._library = RESTClientObject(configuration)
        connector = self._library.pool_manager.connector
        assert isinstance(connector, aiohttp.TCPConnector)
        self.session = aiohttp.ClientSession(
            connector=connector, connector_owner=False, read_bufsize=READ_BUFFER
        )
        self._options: dict[str, Any] = {"allow_redirects": False}
        proxy = self._library.proxy or _proxy_of_environment(self.base)
        if proxy:
            self._options["proxy"] = proxy
        if self._library.server_hostname:
            self._options["server_hostname"] = self._library.server_hostname
        self.own = None if proxy else self._connections(address, connector._ssl)
        """The client of our own; None where aiohttp has to do it."""

    def _connections(self, address: URL, tls: object) -> Connections | None:
        assert isinstance(tls, ssl.SSLContext)
        host, port = address.raw_host, address.port
        if (
            address.scheme not in ("http", "https")
            or host is None
            or port is None
            or address.user is not None
        ):
            return None
        return Connections(
            (host, port),
            {"Host": address.host_port_subcomponent or host, **self._headers},
            tls if address.scheme == "https" else None,
            self._library.server_hostname,
        )

    async def ask(self, call: Call, authorization: str | None) -> Answer:
        """The whole answer, whatever its status. Raises what is in BROKEN."""
        if self.own is None:
            return await _whole(await self._send(call, authorization, _limits(call.timeout)))
        body = call.body
        return await self.own.ask(
            call.method,
            self._prefix + call.target,
            call.timeout,
            b"" if body is None else body.data,
            None if body is None else body.content_type,
            authorization,
        )

    async def open(self, call: Call, authorization: str | None) -> Long | Answer:
        """A success whose body is still to come, or the whole of another answer. Raises what is in BROKEN."""
        if self.own is not None:
            return await self.own.open(self._prefix + call.target, call.timeout, authorization)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=call.timeout)
        response = await self._send(call, authorization, limits)
        return _Response(response) if 200 <= response.status < 300 else await _whole(response)

    async def _send(
        self, call: Call, authorization: str | None, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = dict(self._headers)
        if call.body is not None:
            headers["Content-Type"] = call.body.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self.session.request(
            call.method,
            URL(self.base + call.target, encoded=True),
            data=None if call.body is None else call.body.data,
            headers=headers,
            timeout=limits,
            **self._options,
        )

    async def leave(self) -> None:
        """A request is over."""
        self.active -= 1
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        """Close it where nobody needs it any more."""
        if self.retired and self.active == 0:
            await self.close()

    async def close(self) -> None:
        """Close all idle connections; requests under way are cut."""
        if self.own is not None:
            await self.own.close()
        await self.session.close()
        await self._library.close()


async def _whole(response: aiohttp.ClientResponse) -> Answer:
    try:
        return Answer(response.status, await response.read(), response.headers.get("Retry-After"))
    finally:
        response.release()


@lru_cache
def _limits(timeout: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)


def _proxy_of_environment(url: str) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say about a server; asked once per session."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)
