"""Where log lines go: a file descriptor that may be full, closed, or a pipe that nobody reads, without the operator
waiting for it or failing."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import threading
from collections import deque

BACKLOG = 2**20
"""Bytes of lines that wait for a reader; further ones are lost, and counted."""
_AT_ONCE = select.PIPE_BUF
"""So many bytes can be written without waiting where `poll` says that something can (POSIX, for pipes)."""
_LAST_WORDS = 1.0
"""Seconds that the process's end waits for a reader."""


class LineOutput:
    """Writes lines to a file descriptor: at once where that takes them, else, in order, from a thread that waits for
    its reader. A line that can't be written (a full disk, a closed pipe) is lost, and nothing else happens."""

    def __init__(self, descriptor: int, backlog: int = BACKLOG) -> None:
        """`backlog` is how many bytes may wait."""
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
        """Write one line, without waiting and without an error."""
        data = message.encode("utf-8", "backslashreplace") if isinstance(message, str) else message
        with self._lock:
            rest = data + b"\n"
            if self._writer is None:
                rest = self._write(rest, wait=False)
            if rest:
                self._keep(rest)

    debug = info = warning = error = critical = exception = fatal = log = msg

    def flush(self, timeout: float = _LAST_WORDS) -> None:
        """Wait until all lines are written, so many seconds at most."""
        writer = self._writer
        if writer is not None:
            writer.join(timeout)

    def _write(self, data: bytes, *, wait: bool) -> bytes:
        """Write, and give back what the descriptor does not take yet; what it never takes is lost."""
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
        """A line in place of those that were lost since the last one; empty where there were none."""
        lost, self._lost = self._lost, 0
        if not lost:
            return b""
        return b'{"count":%d,"event":"log lines lost: nobody read them","level":"warning"}\n' % lost


def occupy_standard_descriptors() -> None:
    """Open what of standard input, output and error the caller has closed, on nothing: or a socket would get its
    number, and be sent what is printed or logged."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
