"""Structured logs on standard error. Text from other clients can't forge a line, control a terminal or fill a disk. A
line that can't be written is lost: the operator neither waits for its reader nor fails."""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import json
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import msgspec
import structlog

from hvpa.api.values.text import printable, printable_json

MOST_TEXT: Final = 2048
"""Maximum length of a value."""
MOST_ENTRIES: Final = 50
"""Maximum number of entries of a mapping or list, and of values of a line."""
MOST_TRACEBACK: Final = 16_384
"""Maximum length of a traceback. A longer traceback loses its beginning, because the end is more useful."""
DEEPEST: Final = 4
"""Maximum nesting of mappings and lists. Deeper levels are written as text."""
BACKLOG: Final = 2**20
"""Maximum size in bytes of the lines that wait for a reader. Further lines are lost, and counted."""
_AT_ONCE: Final = select.PIPE_BUF
"""Number of bytes that can be written without waiting when `poll` reports that a write is possible (POSIX, for
pipes)."""
_LAST_WORDS: Final = 1.0
"""Seconds that the process waits for a reader when it ends."""
_STDERR: Final = 2
_EXCEPTION: Final = "exception"

Entry = MutableMapping[str, Any]


def configure_logs(style: str, level: str) -> None:
    """Configures the logs. `style` is "json" or "console"; `level` is the lowest level to show."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        bounded,
    ]
    if style == "json":
        processors.append(structlog.processors.JSONRenderer(to_json))
    else:
        processors += [entry_line, structlog.dev.ConsoleRenderer(colors=False)]
    _occupy_standard_descriptors()
    output = LineOutput(_STDERR)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *args: output,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(threshold, logging.WARNING))
    logging.raiseExceptions = False


class _Bridge(logging.Handler):
    """Passes log records of libraries to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record. Never raises."""
        with contextlib.suppress(Exception):
            error = {"exc_info": record.exc_info} if record.exc_info else {}
            structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, **error)


# --- text -------------------------------------------------------------------------------------------------------------
def bounded(logger: object, method: str, entry: Entry) -> Entry:
    """Shortens long values. This processor must run after the traceback has become text."""
    traceback = entry.pop(_EXCEPTION, None)
    result: Entry = _bounded(entry, 0)
    if traceback is not None:
        is_short = len(traceback) <= MOST_TRACEBACK
        result[_EXCEPTION] = traceback if is_short else f"…{traceback[1 - MOST_TRACEBACK :]}"
    return result


def entry_line(logger: object, method: str, entry: Entry) -> Entry:
    """Returns the entry without control characters, for people. Line breaks in values are escaped, and the lines of a
    traceback are indented."""
    traceback = entry.pop(_EXCEPTION, None)
    result: Entry = {
        printable(str(key)): value if isinstance(value, int | float | None) else printable(str(value))
        for key, value in entry.items()
    }
    if traceback is not None:
        result[_EXCEPTION] = "\n".join(f"    {printable(line)}" for line in traceback.split("\n"))
    return result


def to_json(line: object, default: Any = None, **options: object) -> bytes:
    """Returns a line of JSON in which invisible characters are escaped in ASCII. Never raises."""
    try:
        encoded = msgspec.json.encode(line, enc_hook=str)
    # The text is not valid Unicode, or a key is not text.
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        encoded = json.dumps(line, default=str, skipkeys=True).encode()
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return printable_json(encoded.decode()).encode()


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, int) and abs(value) >= 2**64:
        return "a huge number"
    if isinstance(value, int | float | dt.datetime | dt.timedelta | None):
        return value
    if depth < DEEPEST and isinstance(value, Mapping):
        entries = list(value.items())[:MOST_ENTRIES]
        return {_cut(key): _bounded(entry, depth + 1) for key, entry in entries}
    if depth < DEEPEST and isinstance(value, list | tuple):
        return [_bounded(entry, depth + 1) for entry in value[:MOST_ENTRIES]]
    return _cut(value)


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


# --- output -----------------------------------------------------------------------------------------------------------
class LineOutput:
    """Writes lines to a file descriptor, immediately if possible. Otherwise a thread waits for the reader and writes
    the lines in order. A line that can't be written (full disk, closed pipe) is lost, without an error."""

    def __init__(self, descriptor: int, backlog: int = BACKLOG) -> None:
        """`backlog` is the number of bytes that may wait."""
        self._descriptor = descriptor
        self._limit = backlog
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._writer: threading.Thread | None = None

    def msg(self, message: str | bytes) -> None:
        """Writes a line, without waiting and without an error."""
        data = message.encode("utf-8", "backslashreplace") if isinstance(message, str) else message
        with self._lock:
            rest = data + b"\n"
            if self._writer is None:
                rest = self._write(rest, wait=False)
            if rest:
                self._keep(rest)

    debug = info = warning = error = critical = exception = fatal = log = msg

    def flush(self, timeout: float = _LAST_WORDS) -> None:
        """Waits until all lines are written, at most `timeout` seconds."""
        writer = self._writer
        if writer is not None:
            writer.join(timeout)

    def _write(self, data: bytes, *, wait: bool) -> bytes:
        """Writes, and returns the part that the descriptor does not accept yet. A part that it never accepts is
        lost."""
        rest = memoryview(data)
        try:
            while rest and self._poll.poll(None if wait else 0):
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._descriptor, rest[:_AT_ONCE]) :]
        except OSError:
            return b""
        return bytes(rest)

    def _keep(self, data: bytes) -> None:
        if self._bytes + len(data) > self._limit and self._waiting:
            self._lost += 1
            return
        for line in filter(None, (self._lost_line(), data)):
            self._waiting.append(line)
            self._bytes += len(line)
        if self._writer is None:
            self._writer = threading.Thread(target=self._drain, name="log", daemon=True)
            self._writer.start()
            atexit.register(self.flush)

    def _drain(self) -> None:
        while (data := self._next()) is not None:
            self._write(data, wait=True)

    def _next(self) -> bytes | None:
        with self._lock:
            if self._waiting:
                data = self._waiting.popleft()
                self._bytes -= len(data)
                return data
            if line := self._lost_line():
                return line
            self._writer = None
            atexit.unregister(self.flush)
            return None

    def _lost_line(self) -> bytes:
        """Returns a line that reports the number of lines lost since the last such line; empty if there were none."""
        lost, self._lost = self._lost, 0
        if not lost:
            return b""
        return (
            b'{"count":%d,"event":"log lines lost: standard error was not read","level":"warning"}\n' % lost
        )


def _occupy_standard_descriptors() -> None:
    """Opens /dev/null for each of standard input, output and error that the caller has closed. Otherwise a socket could
    take its number and receive printed or logged text."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # opens the lowest free number, which is `descriptor`
