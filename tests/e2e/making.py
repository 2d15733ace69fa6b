"""Running make as a user does."""

from __future__ import annotations

import os
import subprocess

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.programs.build import build


def make(plane: ControlPlane, *args: str) -> str:
    """Run make against the control plane; its output."""
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        ["make", *args, f"KUBECTL={build(full=False)['kubectl']}"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
