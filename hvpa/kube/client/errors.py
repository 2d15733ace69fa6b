"""Errors of requests to an API server, and their meaning for writes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from hvpa.api.values import text
from hvpa.reconcile.ports import Conflict, NodeTooSmall, Overloaded, Refused, Unavailable, WriteError

DEFAULT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 without Retry-After (API Priority and Fairness always sends the header)."""
NO_REFUSALS = frozenset({401, 404, 408, 409, 410, 429})
"""Codes below 500 that concern sender, time or target of a write, not its content.

All other codes are refusals: validation responds 422, policies 422, permissions and quotas 403, webhooks 400, 403 or
any other code.
"""
NODE_CAPACITY = "NodeCapacity"
"""The cause of a 403 for a resize beyond the allocatable resources of the pod's node (`ReasonNodeCapacity` in
plugin/pkg/admission/podresize of Kubernetes 1.37)."""
UNKNOWN_FIELDS = "failed to create typed patch object"
"""The API server's message about an applied object with fields that its schema does not have. It sends this as a 500
(apimachinery/pkg/util/managedfields/internal/structuredmerge.go)."""
MAX_RETRY_AFTER = 60.0
"""Maximum seconds to wait; a longer Retry-After is cut to this."""


UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions of a decoder: invalid JSON, wrong type, invalid UTF-8, nested too deeply."""

T = TypeVar("T")


class ConfigError(Exception):
    """The kubeconfig, the in-cluster environment or a credential plugin can't be used; one line for the user."""


class Unreachable(Exception):
    """There was no response: refused, reset, timed out, not TLS, or cut short."""


class TooLarge(Unreachable):
    """The body of a response has more bytes than its reader accepts; `status` is the response's."""

    def __init__(self, status: int, most: int) -> None:
        super().__init__(f"the response has more than {most} bytes")
        self.status = status


class ApiError(Exception):
    """The API server's response was not a success."""

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
        """`is_of_an_object`: whether a 404 means that the object does not exist, rather than that the path is
        unknown.

        `retry_after`: seconds to wait, if the server sent them. `causes`: the machine-readable reasons in the
        refusal's details.
        """
        super().__init__(text.one_line(message or reason) or f"HTTP {status}")
        self.status = status
        self.reason = text.one_line(reason, text.REASON_LENGTH)
        self.retry_after = retry_after
        self.is_of_an_object = is_of_an_object
        self.causes = causes

    @property
    def overloaded(self) -> bool:
        """Whether the server requested a later retry."""
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
    """The error of a response with HTTP `status` and `body` (a metav1.Status, or any text of a proxy).

    `status` is None for a watch event, whose body contains the status.
    """
    try:
        reported = _decode_status(body)
    except UNREADABLE:
        reported = _Status(500, "", body[:200].decode("utf-8", "replace").strip())
    wait = None if retry_after is None else _seconds(retry_after)
    code = reported.code if status is None else status
    details = reported.details or _Details()
    causes = [cause.reason for cause in details.causes or ()]
    return ApiError(
        code, reported.reason, reported.message, wait, is_of_an_object=bool(details.name), causes=causes
    )


def _seconds(retry_after: str) -> float:
    """The seconds of a Retry-After header, always a usable time.

    A date (which no API server sends) or an invalid number counts as the default.
    """
    try:
        wait = float(retry_after)
    except ValueError:
        return DEFAULT_RETRY_AFTER
    return DEFAULT_RETRY_AFTER if math.isnan(wait) else min(max(wait, 0.0), MAX_RETRY_AFTER)


def in_one_line(error: BaseException) -> str:
    """The error's message in one line; its type if it has no message."""
    if isinstance(error, TimeoutError):
        return "no response in time"
    return " ".join(str(error).split()) or type(error).__name__


def decoded(read: Callable[[bytes], T], response: bytes, what: str) -> T:
    """The decoded response. Raises Unreachable, which names `what` was expected, if the response can't be read.

    The response was then cut off, or did not come from the API server.
    """
    try:
        return read(response)
    except UNREADABLE as error:
        raise Unreachable(f"{what} can't be read: {error}") from error


def not_found_error(error: WriteError) -> ApiError | None:
    """The 404 that made a write fail; None if it failed otherwise."""
    cause = error.__cause__
    return cause if isinstance(cause, ApiError) and cause.status == 404 else None


def write_error(error: ApiError | Unreachable, patched: bool) -> WriteError:
    """The reconciler's error for a failed write. `patched`: the object was expected to exist."""
    if isinstance(error, Unreachable):
        return Unavailable(str(error))
    if error.status == 409 or (error.status == 404 and patched):
        return Conflict(str(error))
    if error.overloaded:
        wait = DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after
        return Overloaded(str(error), dt.timedelta(seconds=wait))
    if error.status >= 500 and UNKNOWN_FIELDS not in str(error):
        return Unavailable(str(error))
    if error.status == 403 and NODE_CAPACITY in error.causes:
        return NodeTooSmall(str(error))
    if error.status >= 400 and error.status not in NO_REFUSALS:
        return Refused(str(error))
    return WriteError(str(error))
