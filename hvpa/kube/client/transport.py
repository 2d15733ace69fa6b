"""Requests to the API server: bytes in, bytes out, with kubernetes-asyncio's authentication.

The library's generated models are bypassed on purpose: bodies are decoded once, into narrow structs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ConfigError, TooLarge, Unreachable, api_error
from hvpa.kube.client.session import BROKEN, Body, Call, Response, Server, Session

__all__ = [
    "APPLY_PATCH",
    "JSON",
    "MERGE_PATCH",
    "REQUEST_TIMEOUT",
    "STRATEGIC_MERGE_PATCH",
    "Body",
    "OnRequest",
    "Transport",
]

REQUEST_TIMEOUT = 10.0
"""Seconds for a whole request, lists excepted."""
MOST_BYTES = 18 * 2**20
"""What the body of a response, or an event of a watch, may have: twice 9 MiB, which is an object of 1.5 MiB (etcd's
limit of a request) where JSON writes each character with six bytes."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

OnRequest = Callable[[str, str], None]
"""Receives verb and HTTP status code (or "error") of each request."""

_Got = Response | aiohttp.ClientResponse


class Transport:
    """The connection to one API server. Safe for concurrent use within one event loop.

    Where a request gets no response, or a stream breaks, the connections that are there may all lead to a peer that is
    gone: later requests open new ones.
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
        self._server: Server | None = None
        self._session: Session | None = None
        """Where the next request goes to; streams have sessions of their own."""
        self._open: set[Session] = set()

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._credentials.configuration.host)

    async def close(self) -> None:
        """Close all connections; requests under way are cut."""
        self._session = None
        for session in self._open:
            await session.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = REQUEST_TIMEOUT,
        verb: str = "",
    ) -> bytes:
        """The body of the response. Raises ApiError for any status but 2xx, and Unreachable for no response at all, or
        one with more than MOST_BYTES.

        `verb` is the Kubernetes verb for the metrics (default: the method in lower case); `timeout` in seconds.
        """
        return await self._body(Call(method, path, query, body, timeout, verb or method.lower(), MOST_BYTES))

    async def page(self, path: str, query: Mapping[str, str], timeout: float, most: int) -> bytes:
        """The body of one page of a list. Raises as `request`, and TooLarge where it has more than `most` bytes."""
        return await self._body(Call("GET", path, query, None, timeout, "list", min(most, MOST_BYTES)))

    async def stream(
        self, path: str, query: Mapping[str, str], read_timeout: float, verb: str = "watch"
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a long response (a watch), as they come. Ends when the server ends it; raises as `request`, and
        Unreachable when nothing came for `read_timeout` seconds or the connection broke. Close it with `aclosing`."""
        call = Call("GET", path, query, None, read_timeout, verb, MOST_BYTES)
        async with self._sent(call, is_stream=True) as response:
            assert not isinstance(response, Response)
            try:
                async for line in _lines(response.content.iter_any()):
                    yield line
            except BROKEN as error:
                await self._retire(self._session)
                raise Unreachable(_text(error)) from error
            finally:
                response.close()

    async def _body(self, call: Call) -> bytes:
        async with self._sent(call, is_stream=False) as response:
            assert isinstance(response, Response)
            return response.body

    @asynccontextmanager
    async def _sent(self, call: Call, is_stream: bool) -> AsyncIterator[_Got]:
        """The response, if it is a success. On a 401, or a certificate that doesn't verify, credentials are renewed
        once, and the request is sent again."""
        for renew in (True, False):
            session, authorization = await self._prepare(is_stream)
            async with session.in_use():
                response = await self._try(session, authorization, call, is_stream, renew)
                if response is not None:
                    yield response
                    return

    async def _try(
        self, session: Session, authorization: str | None, call: Call, is_stream: bool, renew: bool
    ) -> _Got | None:
        """One try. With `renew`, None when the credentials were refused and new ones are there."""
        send = session.stream if is_stream else session.request
        try:
            response = await send(call, authorization)
        except TooLarge as error:
            self._on_request(call.verb, str(error.status))
            raise
        except BROKEN as error:
            self._on_request(call.verb, "error")
            await self._retire(session)
            untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
            if untrusted and renew and await self._renew(authorization, session.server):
                return None
            raise Unreachable(_text(error)) from error
        self._on_request(call.verb, str(response.status))
        if 200 <= response.status < 300:
            return response
        if response.status == 401 and renew and await self._renew(authorization, session.server):
            return None
        assert isinstance(response, Response)
        raise api_error(response.status, response.body, response.retry_after)

    # --- sessions -----------------------------------------------------------------------------------------------------
    async def _prepare(self, is_stream: bool) -> tuple[Session, str | None]:
        """A session with the current TLS identity, and the Authorization header. A stream has a session of its own:
        with a connection that is new, and is closed at its end."""
        try:
            authorization = await self._credentials.authorization()
            if self._server is None or self._server.generation != self._credentials.generation:
                self._server = Server.of(self._credentials)
                await self._retire(self._session)
            if not is_stream and self._session is not None:
                return self._session, authorization
            session = Session(self._server, self._headers)
        except (ConfigError, OSError, ValueError) as error:  # certificates that can't be loaded
            raise Unreachable(_text(error)) from error
        self._open = {one for one in self._open if not one.closed} | {session}
        if is_stream:
            session.retired = True
        else:
            self._session = session
        return session, authorization

    async def _retire(self, session: Session | None) -> None:
        """Begin no more requests over the connections of this session."""
        if session is self._session:
            self._session = None
        if session is not None:
            await session.retire()

    async def _renew(self, authorization: str | None, server: Server) -> bool:
        try:
            return await self._credentials.refused(authorization, server.generation)
        except ConfigError as error:
            raise Unreachable(f"credentials refused, and new ones can't be had: {_text(error)}") from error


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split a body into lines of up to MOST_BYTES (aiohttp's own readline has a lower limit)."""
    parts: list[bytes] = []
    size = 0
    async for chunk in pieces:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if parts:
                parts.append(line)
                line = b"".join(parts)
                parts.clear()
                size = 0
            if line:
                yield line
        if rest:
            parts.append(rest)
            size += len(rest)
            if size > MOST_BYTES:
                raise Unreachable(f"a line of the response has more than {MOST_BYTES} bytes")
    # A rest without newline is an event that was cut off: the watch is resumed before it.


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no response in time"
    return " ".join(str(error).split()) or type(error).__name__
