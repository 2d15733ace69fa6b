"""Structured logs on stderr. A log line that can't be written is lost, and nothing else happens."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import msgspec
import structlog

STDERR = 2


class _Output:
    """Writes lines to a file descriptor, without a buffer that could fail later (at exit, with a full disk)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def msg(self, message: str | bytes) -> None:
        """Write one line; errors (a full disk, a closed pipe) are ignored."""
        data = message.encode("utf-8", "backslashreplace") if isinstance(message, str) else message
        rest = memoryview(data + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            return

    debug = info = warning = error = critical = exception = fatal = log = msg


class _Bridge(logging.Handler):
    """Hands what libraries log on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record; never raises."""
        try:
            log = structlog.get_logger()
            error = {"exc_info": record.exc_info} if record.exc_info else {}
            log.log(record.levelno, record.getMessage(), logger=record.name, **error)
        except Exception:
            return


def configure_logs(style: str, level: str) -> None:
    """`style`: "json" or "console"; `level`: the least that is shown."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if style == "json":
        renderer: list[Any] = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(_to_json),
        ]
    else:
        renderer = [
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        ]
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *args: _Output(STDERR),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(threshold, logging.WARNING))
    logging.raiseExceptions = False


def _to_json(line: object, default: Any = None, **options: object) -> bytes:
    try:
        return msgspec.json.encode(line, enc_hook=_as_text)
    except (
        UnicodeEncodeError,
        TypeError,
        ValueError,
        RecursionError,
    ):  # text that is no Unicode, keys that are no text
        return json.dumps(line, default=str, skipkeys=True).encode()


def _as_text(value: object) -> str:
    return str(value)
