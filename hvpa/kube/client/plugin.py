"""Credential plugins (client.authentication.k8s.io, `exec` of a kubeconfig's user).

They run with a timeout, in their own process group. No process stays behind, and no secret is reported.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Any, Final

from hvpa.api.values.text import one_line
from hvpa.kube.client.library import ConfigException, ExecProvider, kube_config

TIMEOUT: Final = 60.0
"""Timeout of a plugin in seconds; some plugins wait for a person to sign in with a browser."""
SHORT: Final = 4
"""Values of `env` up to this length are not treated as secrets, such as a region's `eu`: they may be part of other
words."""


class Plugin(ExecProvider):
    """The library's plugin, with another way to run the command."""

    def __init__(self, exec_config: Any) -> None:
        super().__init__(exec_config)
        env = exec_config.safe_get("env") or ()
        self._secrets = sorted({str(variable["value"]) for variable in env}, key=len, reverse=True)

    async def run(self, previous_response: str | None = None) -> Any:
        """The `status` of the ExecCredential that the plugin writes. Raises ConfigException."""
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        env = {**self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        command = _Command(self.args, env)
        try:
            # In a thread: asyncio's own subprocesses can't be cancelled while they start (Python 3.11).
            code, output, errors = await asyncio.to_thread(command)
        except asyncio.CancelledError:
            command.end()
            raise
        except TimeoutError as error:
            raise ConfigException(f"credential plugin gave no response within {TIMEOUT:.0f} s") from error
        except OSError as error:
            raise ConfigException(f"exec: {self.args[0]}: {error.strerror or error}") from error
        if code != 0:
            said = self._redacted(one_line(errors.decode("utf-8", "replace").strip()))
            raise ConfigException(f"exec: process returned {code}" + (f". {said}" if said else ""))
        return self._status(output)

    def _status(self, output: bytes) -> Any:
        try:
            data = json.loads(output)
        except ValueError as error:
            raise ConfigException("exec: the plugin's output is not JSON") from error
        if not isinstance(data, dict) or not isinstance(data.get("status"), dict):
            raise ConfigException("exec: malformed response: no status")
        if data.get("apiVersion") != self.api_version:
            raise ConfigException(f"exec: the plugin's response is not of {self.api_version}")
        return data["status"]

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            if len(secret) > SHORT:
                text = text.replace(secret, "***")
        return text


def install() -> None:
    """Make the library use this class for plugins."""
    kube_config.ExecProvider = Plugin  # type: ignore[attr-defined]


class _Command:
    """A command, run by the calling thread. However it ends, no process of its group stays, except processes that a
    successful command left on purpose."""

    def __init__(self, args: list[str], env: Mapping[str, str]) -> None:
        self._args, self._env = args, env
        # A plugin may ask a person at a terminal for a password, which requires the terminal's session.
        self._is_own_group = os.name == "posix" and not (sys.stdin and sys.stdin.isatty())
        self._lock = threading.Lock()
        self._process: Popen[bytes] | None = None
        self._is_unwanted = False

    def __call__(self) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors. Raises OSError, and TimeoutError after TIMEOUT."""
        with self._lock:
            if self._is_unwanted:
                raise TimeoutError
            stdin = DEVNULL if self._is_own_group else None
            self._process = process = Popen(
                self._args,
                env=self._env,
                stdin=stdin,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=self._is_own_group,
            )
        with process:  # closes the pipes, which a process outside of the group may hold, and reaps
            try:
                output, errors = process.communicate(timeout=TIMEOUT)
                return process.returncode, output, errors
            except TimeoutExpired as error:
                raise TimeoutError from error
            finally:
                if process.returncode != 0:
                    self._kill(process)

    def end(self) -> None:
        """Kill the command; no caller waits for it any more."""
        with self._lock:
            self._is_unwanted = True
            if self._process is not None and self._process.returncode is None:
                self._kill(self._process)

    def _kill(self, process: Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self._is_own_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
