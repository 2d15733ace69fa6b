"""Errors of talking to an API server, and what they mean for the one who wrote."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from hvpa.api.values import text
from hvpa.reconcile.ports import Conflict, NodeTooSmall, Overloaded, Refused, Unavailable, WriteError

DEFAULT_RETRY_AFTER = 1.0
"""Seconds, for a 429 without Retry-After (API Priority and Fairness always sends one)."""
NO_REFUSALS = frozenset({401, 404, 408, 409, 410, 429})
"""Codes below 500 that say nothing about what a write says, but about who sends it, when, and on what. All others are
refusals: validation answers 422, policies 422, rights and quotas 403, webhooks 400, 403 or what they like."""
NODE_CAPACITY = "NodeCapacity"
"""The cause of a 403 for a resize beyond the allocatable resources of the pod's node (`ReasonNodeCapacity` in
plugin/pkg/admission/podresize of Kubernetes 1.37)."""
MAX_RETRY_AFTER = 60.0
"""Seconds; a server that asks for more is asked again after this."""


UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding raises: no JSON, another type, bytes that are no UTF-8, too deep."""

T = TypeVar("T")


class ConfigError(Exception):
    """The kubeconfig, the in-cluster environment or a credential plugin can't be used; one line for the user."""


class Unreachable(Exception):
    """No response: refused, reset, timed out, not TLS, or cut short."""


class TooLarge(Unreachable):
    """The body of a response has more bytes than its reader can take; `status` is the response's."""

    def __init__(self, status: int, most: int) -> None:
        super().__init__(f"the response has more than {most} bytes")
        self.status = status


class ApiError(Exception):
    """The API server's response was not a success. `retry_after` in seconds, where it asked to wait."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        *,
        is_of_an_object: bool = True,
        causes: Collection[str] = (),
    ) -> None:
        """`is_of_an_object`: a 404 means that there is no such object, and not that the path is unknown. `causes`: the
        machine-readable reasons of the refusal's details."""
        super().__init__(text.one_line(message or reason) or f"HTTP {status}")
        self.status = status
        self.reason = text.one_line(reason, text.REASON_LENGTH)
        self.retry_after = retry_after
        self.is_of_an_object = is_of_an_object
        self.causes = causes

    @property
    def overloaded(self) -> bool:
        """Whether the server asked to come back later."""
        return self.status == 429 or (self.status == 503 and self.retry_after is not None)


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    name: str = ""
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode


def api_error(status: int | None, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error of a response with HTTP `status` and `body` (a metav1.Status, or anything a proxy may send); `status`
    is None for the event of a watch, whose status stands in its body."""
    try:
        found = _decode_status(body)
    except UNREADABLE:
        found = _Status(500, "", body[:200].decode("utf-8", "replace").strip())
    wait = None if retry_after is None else _seconds(retry_after)
    code = found.code if status is None else status
    details = found.details or _Details()
    causes = [one.reason for one in details.causes or ()]
    return ApiError(
        code, found.reason, found.message, wait, is_of_an_object=bool(details.name), causes=causes
    )


def _seconds(retry_after: str) -> float:
    """The seconds of a Retry-After header. Whatever it says, the result is a time that can be waited for: a date (which
    no API server sends) counts as the default, as does what is no number."""
    try:
        wait = float(retry_after)
    except ValueError:
        return DEFAULT_RETRY_AFTER
    return DEFAULT_RETRY_AFTER if math.isnan(wait) else min(max(wait, 0.0), MAX_RETRY_AFTER)


def in_one_line(error: BaseException) -> str:
    """What an error says, in one line; its type where it says nothing."""
    if isinstance(error, TimeoutError):
        return "no response in time"
    return " ".join(str(error).split()) or type(error).__name__


def decoded(read: Callable[[bytes], T], response: bytes, what: str) -> T:
    """What `read` makes of a response. Raises Unreachable where that can't be read, which names `what` it should be:
    the response was cut off, or is something else than the API server's."""
    try:
        return read(response)
    except UNREADABLE as error:
        raise Unreachable(f"{what} can't be read: {error}") from error


def missing(error: WriteError) -> ApiError | None:
    """The response 404 that made a write fail; None where it failed otherwise."""
    cause = error.__cause__
    return cause if isinstance(cause, ApiError) and cause.status == 404 else None


def write_error(error: ApiError | Unreachable, patched: bool) -> WriteError:
    """What a failed write means to the reconciler; `patched`: the object was expected to exist."""
    if isinstance(error, Unreachable):
        return Unavailable(str(error))
    if error.status == 409 or (error.status == 404 and patched):
        return Conflict(str(error))
    if error.overloaded:
        wait = DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after
        return Overloaded(str(error), dt.timedelta(seconds=wait))
    if error.status >= 500:
        return Unavailable(str(error))
    if error.status == 403 and NODE_CAPACITY in error.causes:
        return NodeTooSmall(str(error))
    if error.status >= 400 and error.status not in NO_REFUSALS:
        return Refused(str(error))
    return WriteError(str(error))
