"""Work that may go on when the command has returned: it is done in a process of its own, and the command waits
for that one's result, not for its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

HandOver = Callable[[int, Path], None]
"""Lets the command return with an exit code; what is printed from then on goes to the end of a file. Raises
`BrokenPipeError` when the command is gone."""


def in_background(work: Callable[[HandOver], int]) -> int:
    """The exit code that `work` hands over, or returns where it doesn't. It returns in both processes: in the
    command, and in the background when the work is done. SIGTERM and what else raises `KeyboardInterrupt` in
    the command is handed on to the work as SIGTERM."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        # Out of reach of the terminal's Ctrl-C and of its end.
        os.setsid()
        return work(lambda code, log: _hand_over(writing, code, log))
    os.close(writing)
    try:
        told = os.read(reading, 1)
    except KeyboardInterrupt:
        os.kill(worker, signal.SIGTERM)
        told = b""
    if told:
        return told[0]
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    return code if code >= 0 else 128 - code


def _hand_over(pipe: int, code: int, log: Path) -> None:
    sys.stdout.flush()
    with log.open("ab") as output, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.write(pipe, bytes([code]))
    os.close(pipe)
