"""What `make cluster-up` prints can be followed: each command, file and target in it is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from localcluster import __main__ as command_line

ROOT = Path(__file__).resolve().parents[3]
STATE = {"kubeconfig": "/a folder/kubeconfig", "programs": "/programs"}


def test_a_shell_finds_the_cluster_its_kubectl_and_hvpa() -> None:
    script = "; ".join([*command_line.exports(STATE, Path("/helm's")), 'echo "$KUBECONFIG|$PATH"'])
    printed = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    kubeconfig, _, path = printed.partition("|")
    assert kubeconfig == "/a folder/kubeconfig"
    assert path.split(":")[:3] == ["/programs", str(Path(sys.executable).parent), "/helm's"]


def test_the_next_steps_name_targets_and_files_that_are_there() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make (?:-s )?([a-z-]+)", command_line.NEXT_STEPS))
    assert named == {"cluster-env", "cluster-load", "cluster-down"} & targets
    files = re.findall(r"config/\S+", command_line.NEXT_STEPS)
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_the_tutorial_has_each_of_the_steps() -> None:
    page = (ROOT / "docs/tutorial.md").read_text()
    steps = [
        line.partition("#")[0].strip()
        for line in command_line.NEXT_STEPS.splitlines()
        if line.startswith("  ")
    ]
    for step in steps:
        assert step in page, step


def test_without_a_control_plane_a_command_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HVPA_CLUSTER_FOLDER", str(tmp_path))
    for command in ("env", "load --cpu 1", "operator"):
        assert command_line.main(shlex.split(command)) == 1
        assert capsys.readouterr().err == "no control plane runs; start one: make cluster-up\n"
