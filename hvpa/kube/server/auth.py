"""Authorization of requests by bearer token.

The API server's TokenReview must accept the token, and its SubjectAccessReview must allow the user the required
rights. For the metrics this is the request's verb on its path (as in controller-runtime and kube-rbac-proxy).

Without a response of the API server, every request is refused. Tokens are never stored or logged: results are cached
for a short time under a keyed hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import structlog
from aiohttp import web

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Body, Transport
from hvpa.kube.server.endpoints import text_response

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ALLOWED_SECONDS = 60.0
"""Seconds for which an allowed token is cached (controller-runtime: one minute for the token, five for the right)."""
REFUSED_SECONDS = 10.0
"""Seconds for which a refused token is cached; short, so that a user who was just granted the right need not wait."""
USER = web.RequestKey("user", str)
"""Key of a request under which its user's name is stored."""
REMEMBERED = 256
"""Maximum results in each of both caches; the oldest is dropped first. Refused tokens, which anybody can make up,
displace no allowed token."""
REVIEWS_AT_ONCE = 4
"""Maximum concurrent reviews; other requests wait."""
REVIEW_SECONDS = 5.0
"""Timeout of a review in seconds (Prometheus gives up after ten)."""


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    """Status of a TokenReview (the first two fields) or a SubjectAccessReview."""

    authenticated: bool = False
    user: _User | None = None
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_decode_review = msgspec.json.Decoder(_Review).decode


class Right(NamedTuple):
    """A right that a request needs."""

    attributes: Mapping[str, Mapping[str, str]]
    """Attributes of a SubjectAccessReview."""
    words: str = ""
    """The right in words; if empty, a refusal does not name it."""


def right_on_path(request: web.BaseRequest) -> Sequence[Right]:
    """The right to the request's verb on its path."""
    attributes = {"path": request.path, "verb": request.method.lower()}
    return (Right({"nonResourceAttributes": attributes}),)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The result of a review."""

    status: int
    """200, 401 or 403."""
    user: str = ""
    """Empty if the token has no user."""
    lacks: str = ""
    """The missing right, in words."""


class TokenGuard:
    """Lets requests pass if their token has the rights that `needed` returns.

    Refusals: 401 without an accepted token; 403 without a right; 503 without a response of the API server; 500 if it
    refuses the review (this process lacks the rights of `config/secure-metrics`) or its response is invalid.
    """

    def __init__(
        self,
        transport: Transport,
        monotonic: Callable[[], float] = time.monotonic,
        needed: Callable[[web.BaseRequest], Sequence[Right]] = right_on_path,
    ) -> None:
        self._transport = transport
        self._needed = needed
        self._salt = secrets.token_bytes(32)
        self._allowed = _Memory(ALLOWED_SECONDS, monotonic)
        self._refused = _Memory(REFUSED_SECONDS, monotonic)
        self._turn = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def __call__(self, request: web.BaseRequest) -> web.Response | None:
        """None if the request may be served, with its user's name as `request[USER]`; else the refusal."""
        token = _bearer(request.headers.get("Authorization", ""))
        if token is None:
            return _unauthorized()
        try:
            verdict = await self._judge(token, self._needed(request))
        except Unreachable as error:
            log.warning("the API server can't be reached to review a token", error=str(error))
            return text_response(503, "the API server can't be reached")
        except ApiError as error:
            log.warning("a review of a token was refused", status=error.status, error=str(error))
            busy = error.status == 429 or error.status >= 500
            return text_response(503 if busy else 500, "the API server did not review the request")
        except msgspec.MsgspecError as error:
            log.warning("a review of a token can't be read", error=str(error))
            return text_response(500, "the API server's review can't be read")
        if verdict.status == 401:
            return _unauthorized()
        if verdict.status == 403:
            lacks = verdict.lacks and f", who lacks the right to {verdict.lacks}"
            return text_response(403, f"authorization denied for user {verdict.user!r}{lacks}")
        request[USER] = verdict.user
        return None

    async def _judge(self, token: str, needed: Sequence[Right]) -> _Verdict:
        """The result for a token, from the cache or the API server. Raises ApiError, Unreachable and MsgspecError."""
        rights = json.dumps([access.attributes for access in needed])
        key = hashlib.blake2b(
            f"{rights}\0{token}".encode("utf-8", "surrogateescape"), key=self._salt
        ).digest()
        known = self._known(key)
        if known is None:
            async with self._turn:
                known = self._known(key)  # another request may have reviewed the same token in the meantime
                if known is None:
                    known = await self._review(token, needed)
                    (self._allowed if known.status == 200 else self._refused).put(key, known)
        return known

    def _known(self, key: bytes) -> _Verdict | None:
        return self._allowed.get(key) or self._refused.get(key)

    async def _review(self, token: str, needed: Sequence[Right]) -> _Verdict:
        review = await self._ask(TOKEN_REVIEWS, "TokenReview", {"token": token})
        if not review.authenticated or review.user is None:
            return _Verdict(401)
        user = review.user
        who = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups or [],
            "extra": user.extra or {},
        }
        for right in needed:
            access = await self._ask(ACCESS_REVIEWS, "SubjectAccessReview", {**who, **right.attributes})
            if access.denied or not access.allowed:
                return _Verdict(403, user.username, right.words)
        return _Verdict(200, user.username)

    async def _ask(self, path: str, kind: str, spec: dict[str, Any]) -> _Status:
        group = path.removeprefix("/apis/").rpartition("/")[0]
        body = Body(msgspec.json.encode({"apiVersion": group, "kind": kind, "spec": spec}))
        request = self._transport.request("POST", path, body=body, timeout=REVIEW_SECONDS, verb="create")
        return _decode_review(await request).status


class _Memory:
    """Results by key, for some seconds, REMEMBERED of them at most."""

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._found: OrderedDict[bytes, tuple[float, _Verdict]] = OrderedDict()

    def get(self, key: bytes) -> _Verdict | None:
        until, verdict = self._found.get(key, (0.0, None))
        return verdict if verdict is not None and self._monotonic() < until else None

    def put(self, key: bytes, verdict: _Verdict) -> None:
        self._found[key] = (self._monotonic() + self._seconds, verdict)
        self._found.move_to_end(key)
        if len(self._found) > REMEMBERED:
            self._found.popitem(last=False)


def _bearer(header: str) -> str | None:
    """The token of an Authorization header; None without a token."""
    scheme, _, token = header.strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token and " " not in token else None


def _unauthorized() -> web.Response:
    return text_response(401, "unauthorized", {"WWW-Authenticate": "Bearer"})
