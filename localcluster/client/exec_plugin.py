"""A fake exec credential plugin (client.authentication.k8s.io/v1): hands out a token whose stated life is
a minute, and counts how often it is asked."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from localcluster.client.kubeconfig import write_kubeconfig

_SCRIPT = """\
import datetime, json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "answer.json")) as file:
    answer = json.load(file)
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(str(answer["code"]) + "\\n")
following = os.path.join(folder, "following.json")
if os.path.exists(following):
    os.replace(following, os.path.join(folder, "answer.json"))
if answer["code"]:
    sys.stderr.write(answer["message"])
    sys.exit(answer["code"])
end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=answer["lifetime"])
json.dump({
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": answer["token"], "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ")},
}, sys.stdout)
"""


class ExecPlugin:
    """The plugin in a folder of its own. What it answers can be changed while clients use it."""

    def __init__(self, folder: Path, token: str, lifetime: float = 60) -> None:
        """`lifetime` is what the plugin says, in seconds (the API server itself gives no token below ten
        minutes; let the proxy reject the old one with `Proxy.reject_token`)."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._script = folder / "plugin.py"
        self._script.write_text(_SCRIPT)
        self.answer(token, lifetime)

    def answer(self, token: str, lifetime: float = 60) -> None:
        """Hand out this token from now on."""
        self._write("answer", {"token": token, "lifetime": lifetime, "code": 0, "message": ""})

    def then(self, token: str, lifetime: float = 60) -> None:
        """Hand out this token once the plugin has been asked for the present one."""
        self._write("following", {"token": token, "lifetime": lifetime, "code": 0, "message": ""})

    def fail(self, message: str = "no credentials to be had", code: int = 1) -> None:
        """Exit with this code and message from now on."""
        self._write("answer", {"token": "", "lifetime": 0, "code": code, "message": message})

    @property
    def calls(self) -> int:
        """How often it was run."""
        path = self._folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def user(self) -> dict[str, Any]:
        """The `user` entry of a kubeconfig that logs in by this plugin."""
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": sys.executable,
                "args": [str(self._script)],
                "interactiveMode": "Never",
                "provideClusterInfo": False,
            }
        }

    def kubeconfig(self, server: str, authority: Path) -> Path:
        """Write a kubeconfig for a server that logs in by this plugin."""
        return write_kubeconfig(self._folder / "exec.kubeconfig", server, authority, self.user())

    def _write(self, name: str, answer: dict[str, object]) -> None:
        temporary = self._folder / f"{name}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(answer))
        temporary.replace(self._folder / f"{name}.json")
