"""Structured logs on stderr. A log line that can't be written is lost, and nothing else happens."""

from __future__ import annotations

import logging
from typing import Any

import structlog

from hvpa.operator.log.output import LineOutput, occupy_standard_descriptors
from hvpa.operator.log.text import bounded, one_line, to_json

STDERR = 2


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
            bounded,
            structlog.processors.JSONRenderer(to_json),
        ]
    else:
        renderer = [
            structlog.processors.format_exc_info,
            bounded,
            one_line,
            structlog.dev.ConsoleRenderer(colors=False),
        ]
    occupy_standard_descriptors()
    output = LineOutput(STDERR)
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *args: output,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(threshold, logging.WARNING))
    logging.raiseExceptions = False
