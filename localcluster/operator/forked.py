"""Operators that start at once: each is forked from a process that has imported the operator already, since imports
take nearly all of a start's processor time (`python -m hvpa run` needs 1.5 s of it until it is ready, forked 0.1 s).
A forked operator is a process of its own all the same, with its own arguments, environment, log, session and signals.

`python -m localcluster.operator.forked SOCKET` is the process that forks. There is one connection per operator: a line
of JSON (`argv` after `python -m`, `env`, `cwd`, `log`), the operator's process id, and at its end its exit code."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from localcluster.client.api import wait_for
from localcluster.process import Child, Process, spawn

_IMPORTED = ("hvpa.cli.run", "uvloop")
_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""


class Forker:
    """The process that forks operators, for the length of a `with` block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hvpa-fork-")
        self._address = f"{self._folder.name}/socket"
        argv = [sys.executable, "-m", __name__, self._address]
        root = Path(__file__).resolve().parents[2]
        self._process = Process("forker", argv, Path(self._folder.name) / "log", cwd=root)

    def __enter__(self) -> Forker:
        self._process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._folder.cleanup()

    def fork(self, argv: list[str], log: Path, env: dict[str, str] | None, cwd: Path | None) -> Child:
        """Start `python -m MODULE …`; anything else (a shell, say) is started as `spawn` does."""
        if argv[:2] != [sys.executable, "-m"]:
            return spawn(argv, log, env, cwd)
        connection = wait_for(partial(_connected, self._address), 60, self._process.tail, 0.02)
        request = {"argv": argv[2:], "env": env, "cwd": str(cwd or Path.cwd()), "log": str(log)}
        connection.sendall(json.dumps(request).encode() + b"\n")
        return _Forked(connection)


def _connected(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


class _Forked:
    """An operator as its starter sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = int(connection.recv(16))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Exit code; raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                code = self._connection.recv(16)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
            self._connection.close()
            self.returncode = int(code or -signal.SIGKILL)  # no code: it went with the process that forks
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


# --- the process that forks ------------------------------------------------------------------------------------------
def main(address: str) -> NoReturn:
    """Fork an operator for each connection and report each one's end, until killed."""
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    _fork(listener, selector)
                else:
                    _report_end(selector, key)


def _fork(listener: socket.socket, selector: selectors.BaseSelector) -> None:
    connection, _ = listener.accept()
    with connection.makefile("rb", buffering=0) as lines:
        request = json.loads(lines.readline())
    child = os.fork()
    if child == 0:
        for key in list(selector.get_map().values()):
            _close(key)
        selector.close()
        _run(request, connection)
    selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))


def _close(key: selectors.SelectorKey) -> None:
    os.close(key.fd)
    if key.data:
        key.data[1].close()


def _report_end(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    child, connection = key.data
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))
    selector.unregister(key.fileobj)
    _close(key)


def _run(request: dict[str, Any], connection: socket.socket) -> NoReturn:
    """Be the operator: in its session, dying with the process that forks, then `python -m MODULE …`."""
    code: object = 1
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log, stream.fileno())
        os.close(log)
        os.chdir(request["cwd"])
        if request["env"] is not None:
            os.environ.clear()
            os.environ.update(request["env"])
        connection.sendall(b"%d" % os.getpid())
        connection.close()
        sys.argv = request["argv"]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main(sys.argv[1])
