"""Errors of talking to an API server, and what they mean for the one who wrote."""

from __future__ import annotations

import datetime as dt

import msgspec

from hvpa.reconcile.ports import Conflict, Overloaded, WriteError

DEFAULT_RETRY_AFTER = 1.0
"""Seconds, for a 429 without Retry-After (API Priority and Fairness always sends one)."""
MAX_RETRY_AFTER = 60.0
"""Seconds; a server that asks for more is asked again after this."""


class ConfigError(Exception):
    """The kubeconfig, the in-cluster environment or a credential plugin can't be used; one line for the user."""


class Unreachable(Exception):
    """No answer: refused, reset, timed out, not TLS, or cut short."""


class ApiError(Exception):
    """The API server's answer was not a success. `retry_after` in seconds, where it asked to wait."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


_decode_status = msgspec.json.Decoder(_Status).decode


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error of an answer with HTTP `status` and `body` (a metav1.Status, or anything a proxy may send)."""
    try:
        told = _decode_status(body)
        reason, message = told.reason, told.message
    except msgspec.MsgspecError:
        reason, message = "", body[:200].decode("utf-8", "replace").strip()
    wait = None
    if retry_after is not None:
        try:
            wait = min(max(float(retry_after), 0.0), MAX_RETRY_AFTER)
        except ValueError:
            wait = DEFAULT_RETRY_AFTER
    return ApiError(status, reason, message, wait)


def status_event_error(raw: bytes) -> ApiError:
    """The error that a watch event of type ERROR carries."""
    try:
        told = _decode_status(raw)
    except msgspec.MsgspecError:
        return ApiError(500, "", "watch error that can't be read")
    return ApiError(told.code, told.reason, told.message)


def write_error(error: ApiError | Unreachable, patched: bool) -> WriteError:
    """What a failed write means to the reconciler; `patched`: the object was expected to exist."""
    if isinstance(error, Unreachable):
        return WriteError(str(error))
    if error.status == 409 or (error.status == 404 and patched):
        return Conflict(str(error))
    if error.status == 429 or (error.status == 503 and error.retry_after is not None):
        wait = DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after
        return Overloaded(str(error), dt.timedelta(seconds=wait))
    return WriteError(str(error))
