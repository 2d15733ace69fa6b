"""Running Helm and kubectl on the chart, for the tests beside this file."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from localcluster.operator.operator import REPOSITORY
from localcluster.programs.build import build, kubernetes_version

CHART = REPOSITORY / "charts/hvpa"
IMAGE = ("--set", "image.repository=hvpa")
"""No image is published, so the chart has no default; `config` has this name."""

Json = dict[str, Any]


def run(program: Path, *args: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program with a home folder that is empty, so that nothing of the user's is read."""
    argv = [str(program), *map(str, args)]
    with tempfile.TemporaryDirectory(prefix="hvpa-helm-") as home:
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(kubeconfig or Path(home) / "none"),
        }
        return subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False, env=environment)


def succeed(program: Path, *args: str | Path, kubeconfig: Path | None = None) -> str:
    """The output of a program that must succeed."""
    done = run(program, *args, kubeconfig=kubeconfig)
    assert done.returncode == 0, f"{program.name} {args}: {done.stderr or done.stdout}"
    return done.stdout


def template(helm: Path, *args: str, name: str = "hvpa", namespace: str = "hvpa-system") -> list[Json]:
    """The objects that the chart renders to, as for the API server of the tests."""
    output = succeed(
        helm,
        "template",
        name,
        CHART,
        "--namespace",
        namespace,
        "--kube-version",
        kubernetes_version(),
        *IMAGE,
        *args,
    )
    return documents(output)


def kustomize(folder: Path) -> list[Json]:
    """The objects of a kustomization."""
    return documents(succeed(build(full=False)["kubectl"], "kustomize", folder))


def documents(text: str) -> list[Json]:
    """The objects of a stream of YAML."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
