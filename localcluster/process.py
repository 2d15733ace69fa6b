"""Child processes that are owned by handle and cannot outlive the process that started them. `flags.py` defines
programs and their flags; this module only starts them, ends them and reads their logs."""

from __future__ import annotations

import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

# Runs between fork and the program: tells Linux to kill the program when the thread that started it is gone (which also
# covers SIGKILL of the tests), and gives up if that has already happened. 1 is PR_SET_PDEATHSIG (linux/prctl.h).
_TIED = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""

# Ports are below the range from which the kernel takes ports of outgoing connections (32768 and up on Linux, 49152 on
# macOS): otherwise a client that reconnects while a server restarts could get the server's own port.
_PORTS = range(20000, 30000)
_BLOCK = 100
_choosing = threading.Lock()
_handed_out: set[int] = set()
_blocks: list[socket.socket] = []
"""Marks the blocks of ports of this process for other processes of tests: the first number of each, bound as a UDP
port."""


def free_port() -> int:
    """A free TCP port on 127.0.0.1. This process has not returned it before, and no other process of tests returns it
    while this process lives: between its choice and its use it is as good as taken."""
    with _choosing:
        mine = [block.getsockname()[1] for block in _blocks]
        while True:
            for first in mine:
                for port in range(first, first + _BLOCK):
                    if port not in _handed_out:
                        _handed_out.add(port)
                        if _is_free(port):
                            return port
            mine = [_another_block()]


def _another_block() -> int:
    """Take a block of ports for as long as this process lives; returns its first port. Raises `OSError` if none is
    left."""
    for first in random.sample(_PORTS[::_BLOCK], len(_PORTS) // _BLOCK):
        sign = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sign.bind(("127.0.0.1", first))
        except OSError:
            sign.close()
            continue
        _blocks.append(sign)
        return first
    raise OSError(f"no free port in {_PORTS}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class _Spawner:
    """Starts all processes from a single thread that never ends: the kernel's parent-death signal comes when the
    *thread* that forked ends, so a process started by a short-lived thread would die with that thread."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def call(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spawner", daemon=True)
                self._thread.start()
        response: queue.SimpleQueue[subprocess.Popen[bytes] | BaseException] = queue.SimpleQueue()

        def job() -> None:
            try:
                response.put(start())
            except BaseException as error:
                response.put(error)

        self._jobs.put(job)
        result = response.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def _run(self) -> None:
        while True:
            self._jobs.get()()


_spawner = _Spawner()


class Child(Protocol):
    """The used part of a `subprocess.Popen`."""

    pid: int

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Exit code; raises `subprocess.TimeoutExpired`."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        ...


def spawn(argv: list[str], log: Path, env: dict[str, str] | None, cwd: Path | None) -> Child:
    """Start a program in its own session; it does not outlive this process."""
    tied = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *argv]
    with log.open("ab") as output:
        return _spawner.call(
            lambda: subprocess.Popen(
                tied,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        )


Start = Callable[[list[str], Path, dict[str, str] | None, Path | None], Child]
"""Starts a program: arguments, log, environment, working directory."""


class Process:
    """A program, its handle and its log. A restart appends to the same log."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        start: Start = spawn,
    ) -> None:
        """`argv[0]` is the absolute path of the program; `env` replaces the environment, None inherits it."""
        self.name = name
        self.argv = [str(part) for part in argv]
        self.log = log
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self._start = start
        self._child: Child | None = None

    def start(self) -> None:
        """Start it in its own session (Ctrl-C on a terminal is for the tests, which then end it in order)."""
        if self.alive:
            raise RuntimeError(f"{self.name} runs already")
        self._child = self._start(self.argv, self.log, self._env, self._cwd)

    @property
    def alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        """Process id, which is also its process group and session."""
        if self._child is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return None if self._child is None else self._child.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal only to the program; nothing happens if it has ended."""
        if self._child is not None:
            self._child.send_signal(number)

    def wait(self, timeout: float) -> int:
        """Exit code, once it ended; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._child is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._child.wait(timeout)

    def kill(self) -> None:
        """SIGKILL to the program and everything in its process group, and wait for its end."""
        if self._child is None or self._child.poll() is not None:
            return
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(60)

    def terminate(self, timeout: float = 10) -> int:
        """SIGTERM, then SIGKILL after `timeout` seconds; returns the exit code (-9 if it had to be killed)."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait(60)

    def tail(self, lines: int = 40) -> str:
        """The last lines of its log."""
        return tail(self.log, lines) if self.log.exists() else ""


def tail(log: Path, lines: int) -> str:
    """The last lines of a file, of about the last 200 bytes per line."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 200 * lines))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
