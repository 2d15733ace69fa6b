"""Requests to the API server: bytes in, bytes out, over kubernetes-asyncio's session, TLS and authentication.

The library's generated models are bypassed on purpose: bodies are decoded once, into narrow structs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client import _RequestContextManager
from yarl import URL

from hvpa.kube.config import Credentials
from hvpa.kube.errors import ConfigError, Unreachable, api_error
from hvpa.kube.library import RESTClientObject

CONNECT_TIMEOUT = 5.0
REQUEST_TIMEOUT = 10.0
"""Seconds for a whole request, lists excepted."""
KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""TCP keep-alive on watches: a peer that is gone without a word is noticed after 30 s (client-go pings after 30 s)."""

READ_BUFFER = 2**18
"""Bytes that a connection reads ahead (aiohttp's default is a quarter of it, the library's eight times as much)."""

_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
"""What aiohttp raises for a connection or an answer that is not as it should be."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

OnRequest = Callable[[str, str], None]
"""Told verb and HTTP status code (or "error") of each request."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body, serialised, and its media type."""

    data: bytes
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: Mapping[str, str] | None
    body: Body | None
    limits: aiohttp.ClientTimeout
    verb: str

    def headers(self, authorization: str | None) -> dict[str, str]:
        headers = {} if self.body is None else {"Content-Type": self.body.content_type}
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers


class _Session:
    """One TLS identity's session; closed when it was replaced and its last request is over.

    The connector, with its TLS settings, is the library's. Its session is not used: with `trust_env` it asks for
    proxies and .netrc in a thread before every request, and refuses a token for a host that .netrc names.
    """

    def __init__(self, credentials: Credentials) -> None:
        configuration = credentials.configuration
        self.generation = credentials.generation
        self.base = str(configuration.host).rstrip("/")
        self.active = 0
        self.retired = False
        self._library = RESTClientObject(configuration)
        self.session = aiohttp.ClientSession(
            connector=self._library.pool_manager.connector, connector_owner=False, read_bufsize=READ_BUFFER
        )
        self._options: dict[str, Any] = {"allow_redirects": False}
        proxy = self._library.proxy or _proxy_of_environment(self.base)
        if proxy:
            self._options["proxy"] = proxy
        if self._library.server_hostname:
            self._options["server_hostname"] = self._library.server_hostname

    def send(self, call: _Call, headers: dict[str, str]) -> _RequestContextManager:
        url = self.base + call.path + ("?" + urlencode(call.query) if call.query else "")
        data = None if call.body is None else call.body.data
        return self.session.request(
            call.method,
            URL(url, encoded=True),
            data=data,
            headers=headers,
            timeout=call.limits,
            **self._options,
        )

    async def leave(self) -> None:
        """A request is over."""
        self.active -= 1
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        if self.retired and self.active == 0:
            await self.close()

    async def close(self) -> None:
        await self.session.close()
        await self._library.close()


@lru_cache
def _limits(timeout: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)


class Transport:
    """The connection to one API server. Safe for concurrent use within one event loop."""

    def __init__(
        self,
        credentials: Credentials,
        on_request: OnRequest = lambda verb, code: None,
        user_agent: str = "hvpa",
    ) -> None:
        self._credentials = credentials
        self._on_request = on_request
        self._headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._session: _Session | None = None

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._credentials.configuration.host)

    async def close(self) -> None:
        """Close all idle connections; requests under way are cut."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = REQUEST_TIMEOUT,
        verb: str = "",
    ) -> bytes:
        """The body of the answer. Raises ApiError for any status but 2xx, and Unreachable for none at all.

        `verb` is the Kubernetes verb for the metrics (default: the method in lower case); `timeout` in seconds.
        """
        call = _Call(method, path, query, body, _limits(timeout), verb or method.lower())
        session, response = await self._answer(call)
        try:
            return await response.read()
        except _BROKEN as error:
            raise Unreachable(_text(error)) from error
        finally:
            response.release()
            await session.leave()

    async def stream(
        self, path: str, query: Mapping[str, str], read_timeout: float, verb: str = "watch"
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a long answer (a watch), as they come. Ends when the server ends it; raises as `request`, and
        Unreachable when nothing came for `read_timeout` seconds or the connection broke. Close it with `aclosing`."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
        session, response = await self._answer(_Call("GET", path, query, None, limits, verb))
        try:
            _keep_alive(response)
            async for line in _lines(response):
                yield line
        except _BROKEN as error:
            raise Unreachable(_text(error)) from error
        finally:
            response.close()
            await session.leave()

    async def _answer(self, call: _Call) -> tuple[_Session, aiohttp.ClientResponse]:
        """The answer, if it is a success, and the session that it came through, which counts as in use. On a 401, or a
        certificate that doesn't verify, credentials are renewed once, and the request is sent again."""
        session, authorization = await self._prepare()
        answer = await self._send(session, authorization, call, renew=True)
        if answer is None:
            session, authorization = await self._prepare()
            answer = await self._send(session, authorization, call, renew=False)
        assert answer is not None
        return session, answer

    async def _send(
        self, session: _Session, authorization: str | None, call: _Call, renew: bool
    ) -> aiohttp.ClientResponse | None:
        """One try. With `renew`, None when the credentials were refused and new ones are there."""
        session.active += 1
        answer: aiohttp.ClientResponse | None = None
        try:
            answer = await self._try(session, authorization, call, renew)
        finally:
            if answer is None:
                await session.leave()
        return answer

    async def _try(
        self, session: _Session, authorization: str | None, call: _Call, renew: bool
    ) -> aiohttp.ClientResponse | None:
        try:
            response = await session.send(call, {**self._headers, **call.headers(authorization)})
        except _BROKEN as error:
            self._on_request(call.verb, "error")
            untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
            if untrusted and renew and await self._renew(authorization, session.generation):
                return None
            raise Unreachable(_text(error)) from error
        self._on_request(call.verb, str(response.status))
        if 200 <= response.status < 300:
            return response
        try:
            if response.status == 401 and renew and await self._renew(authorization, session.generation):
                return None
            body = await response.read()
        except _BROKEN as error:
            raise Unreachable(_text(error)) from error
        finally:
            response.release()
        raise api_error(response.status, body, response.headers.get("Retry-After"))

    async def _prepare(self) -> tuple[_Session, str | None]:
        """The session for the present TLS identity, and the Authorization header."""
        try:
            authorization = await self._credentials.authorization()
            if self._session is None or self._session.generation != self._credentials.generation:
                old, self._session = self._session, _Session(self._credentials)
                if old is not None:
                    old.retired = True
                    await old.close_if_unused()
        except (
            ConfigError,
            OSError,
            ValueError,
        ) as error:  # OSError, ValueError: certificates that can't be loaded
            raise Unreachable(_text(error)) from error
        return self._session, authorization

    async def _renew(self, authorization: str | None, generation: int) -> bool:
        try:
            return await self._credentials.refused(authorization, generation)
        except ConfigError as error:
            raise Unreachable(f"credentials refused, and new ones can't be had: {_text(error)}") from error


def _proxy_of_environment(url: str) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say about a server; asked once per session."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Split a body into lines of any length (aiohttp's own readline has a limit)."""
    parts: list[bytes] = []
    async for chunk in response.content.iter_any():
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if parts:
                parts.append(line)
                line = b"".join(parts)
                parts.clear()
            if line:
                yield line
        if rest:
            parts.append(rest)
    # A rest without newline is an event that was cut off: the watch is resumed before it.


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    connection = response.connection
    transport = connection.transport if connection is not None else None
    raw = transport.get_extra_info("socket") if transport is not None else None
    if raw is None:
        return
    try:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        return  # only a finer detection of dead peers is lost


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "no answer in time"
    return " ".join(str(error).split()) or type(error).__name__
