"""Requests to the API server: bytes in, bytes out, with kubernetes-asyncio's authentication and TLS settings.

The library's generated models are bypassed on purpose: bodies are decoded once, into narrow structs.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar

import aiohttp

from hvpa.kube.answers import Answer
from hvpa.kube.config import Credentials
from hvpa.kube.errors import ConfigError, Unreachable, api_error
from hvpa.kube.session import BROKEN, Body, Call, Long, Session

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

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

OnRequest = Callable[[str, str], None]
"""Told verb and HTTP status code (or "error") of each request."""

_Got = TypeVar("_Got", Answer, Long | Answer)
_Send = Callable[[Session, Call, str | None], Awaitable[_Got]]


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
        self._session: Session | None = None

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
        call = Call(method, path, query, body, timeout, verb or method.lower())
        session, answer = await self._answer(call, Session.ask)
        await session.leave()
        return answer.body

    async def stream(
        self, path: str, query: Mapping[str, str], read_timeout: float, verb: str = "watch"
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a long answer (a watch), as they come. Ends when the server ends it; raises as `request`, and
        Unreachable when nothing came for `read_timeout` seconds or the connection broke. Close it with `aclosing`."""
        call = Call("GET", path, query, None, read_timeout, verb)
        session, answer = await self._answer(call, Session.open)
        assert not isinstance(answer, Answer)
        try:
            async for line in _lines(answer):
                yield line
        except BROKEN as error:
            raise Unreachable(_text(error)) from error
        finally:
            answer.end()
            await session.leave()

    async def _answer(self, call: Call, send: _Send[_Got]) -> tuple[Session, _Got]:
        """The answer, if it is a success, and the session that it came through, which counts as in use. On a 401, or a
        certificate that doesn't verify, credentials are renewed once, and the request is sent again."""
        session, authorization = await self._prepare()
        answer = await self._try(session, authorization, call, send, renew=True)
        if answer is None:
            session, authorization = await self._prepare()
            answer = await self._try(session, authorization, call, send, renew=False)
        assert answer is not None
        return session, answer

    async def _try(
        self, session: Session, authorization: str | None, call: Call, send: _Send[_Got], renew: bool
    ) -> _Got | None:
        """One try. With `renew`, None when the credentials were refused and new ones are there."""
        session.active += 1
        good = False
        try:
            answer = await send(session, call, authorization)
            self._on_request(call.verb, str(answer.status))
            good = 200 <= answer.status < 300
            if good:
                return answer
            if answer.status == 401 and renew and await self._renew(authorization, session.generation):
                return None
        except BROKEN as error:
            self._on_request(call.verb, "error")
            if _untrusted(error) and renew and await self._renew(authorization, session.generation):
                return None
            raise Unreachable(_text(error)) from error
        finally:
            if not good:
                await session.leave()
        assert isinstance(answer, Answer)
        raise api_error(answer.status, answer.body, answer.retry_after)

    async def _prepare(self) -> tuple[Session, str | None]:
        """The session for the present TLS identity, and the Authorization header."""
        try:
            authorization = await self._credentials.authorization()
            if self._session is None or self._session.generation != self._credentials.generation:
                old, self._session = self._session, Session(self._credentials, self._headers)
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


def _untrusted(error: BaseException) -> bool:
    """Whether the server's certificate doesn't verify."""
    return isinstance(error, ssl.SSLCertVerificationError | aiohttp.ClientConnectorCertificateError)


async def _lines(answer: Long) -> AsyncGenerator[bytes, None]:
    """Split a body into lines of any length (aiohttp's own readline has a limit)."""
    parts: list[bytes] = []
    async for chunk in answer.pieces():
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


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return " ".join(str(error).split()) or type(error).__name__
