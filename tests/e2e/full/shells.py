"""Shells in which a page's own commands are run, as a user types them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from localcluster.process import Process
from tests.e2e.node.leftovers import machine

ROOT: Final = Path(__file__).resolve().parents[3]
MAKEFILE: Final = (ROOT / "Makefile").read_text()
MAKE: Final = re.compile(r"""\bmake (?:-s )?([a-z-]+)((?: [A-Z_]+=(?:"[^"]*"|\w+))*)""")
"""A target, and the variables that are set for it."""


def blocks(text: str) -> list[str]:
    """The commands of a page."""
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


class Shells:
    """A user's shells, which share the folder of their control plane. They stand in a folder that has all of the
    repository, so that what the commands write is not in the repository."""

    def __init__(self, folder: Path, **variables: str) -> None:
        """`variables` are further variables of make, such as `LOAD_ARGS`."""
        self.folder = folder
        self.place = folder / "repository"
        self.place.mkdir()
        for path in ROOT.iterdir():
            (self.place / path.name).symlink_to(path)
        self.env = {
            **os.environ,
            "HVPA_CLUSTER_FOLDER": str(folder / "cluster"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        self.variables = {"PY": shlex.quote(sys.executable), **variables}

    def settle(self, environment: str) -> None:
        """Set the environment of all shells that start from now on, as `environment` does in a shell."""
        printed = self.run(environment + 'echo "$KUBECONFIG"; echo "$PATH"')
        self.env["KUBECONFIG"], self.env["PATH"] = printed.splitlines()

    def owners(self) -> set[int]:
        """The processes whose control planes have real nodes in these shells' folder."""
        return {
            int(match[1])
            for file in self.folder.glob("cluster/run/nodes/*/kubelet.yaml")
            if (match := re.search(r"^cgroupRoot: /hvpa-node-(\d+)-", file.read_text(), re.MULTILINE))
        }

    def end(self, block: str) -> None:
        """Run the block that ends the control plane; a real node leaves nothing."""
        owners = self.owners()
        self.run(block)
        for owner in owners:
            left = machine(owner)
            assert (left["cgroups"], left["running"]) == ([], [])
        assert not (self.folder / "cluster/run/nodes").exists()

    def script(self, block: str) -> str:
        """A block of the page for a shell. In place of `make` stands what its recipe runs, since `make` looks after the
        virtual environment first, and the operator's endpoints are left out: tests beside this one have the same
        ports. A target without a virtual environment, such as `deploy`, is made as it is."""

        def as_recipe(match: re.Match[str]) -> str:
            target, given = match.groups()
            if not (recipe := re.findall(rf"^{target}: venv\b.*\n\t@(.*)$", MAKEFILE, re.MULTILINE)):
                return match[0]
            (line,) = recipe
            values = self.variables | dict(assignment.split("=", 1) for assignment in shlex.split(given))
            return re.sub(r"\$\((\w+)\)", lambda name: values.get(name[1], ""), line)

        block = MAKE.sub(as_recipe, block)
        return block.replace("hvpa run", "hvpa run --metrics-bind-address 0 --health-probe-bind-address 0")

    def start(self, name: str, block: str) -> Process:
        """The process of a shell that runs a block and goes on."""
        argv = ["/bin/bash", "-ec", self.script(block)]
        process = Process(name, argv, self.folder / f"{name}.log", env=self.env, cwd=self.place)
        process.start()
        return process

    @contextlib.contextmanager
    def started(self, name: str, block: str) -> Iterator[Process]:
        """The process of a shell that runs a block until the end of the context, as if by Ctrl-C."""
        process = self.start(name, block)
        try:
            yield process
        finally:
            process.kill()

    def run(self, block: str, seconds: float = 480) -> str:
        """What a block prints that ends within these seconds, without a signal."""
        argv = ["/bin/bash", "-ec", self.script(block)]
        done = subprocess.run(
            argv, env=self.env, cwd=self.place, capture_output=True, text=True, timeout=seconds
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
