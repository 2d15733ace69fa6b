"""The Dockerfile, as far as its text shows (no container engine runs here)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.config.folders import CONFIG, only

ROOT = CONFIG.parent
LINES = (ROOT / "Dockerfile").read_text().splitlines()


def _of(instruction: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_what_builds_the_image_is_not_in_it() -> None:
    build, final = _of("FROM")
    assert (build.partition(" AS ")[2], final) == ("build", build.partition(" AS ")[0])
    last = next(number for number, line in reversed(list(enumerate(LINES))) if line.startswith("FROM "))
    assert [line for line in LINES[last:] if line.startswith(("RUN ", "ADD "))] == []


def test_base_and_packages_are_pinned() -> None:
    (base,) = _of("ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-[a-z-]+@sha256:[0-9a-f]{64}", base)
    installs = [line for line in LINES if "pip" in line and "install" in line and "/wheels" not in line]
    assert installs
    assert all("--no-deps --require-hashes" in line for line in installs)


def test_it_runs_as_the_user_of_the_deployment_and_starts_the_operator() -> None:
    pod = only("manager", "Deployment", "hvpa")["spec"]["template"]["spec"]["securityContext"]
    assert _of("USER") == [f"{pod['runAsUser']}:{pod['runAsGroup']}"]
    assert (_of("ENTRYPOINT"), _of("CMD")) == (['["hvpa"]'], ['["run", "--leader-elect"]'])


def test_what_is_copied_is_there() -> None:
    copied = [name for line in _of("COPY") if not line.startswith("--") for name in line.split()[:-1]]
    assert copied
    assert all((Path(ROOT) / name).exists() for name in copied)


@pytest.mark.parametrize(
    ("image", "refused"),
    [
        ("", False),
        ("mirror.test/python:3@sha256:" + "0" * 64, False),
        ("python:3.11.14-slim-bookworm", True),
        ("python@sha256:0", True),
    ],
)
def test_another_base_must_be_named_by_digest(image: str, refused: bool) -> None:
    command = ["make", "docker-build", "DOCKER=true", f"PYTHON_IMAGE={image}"]
    # Not with the flags of a make that runs the tests: `make -s` would print no command.
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) is refused
    assert ("digest" in done.stderr) is refused
    assert (f"--build-arg PYTHON_IMAGE={image}" in done.stdout) is (bool(image) and not refused)
